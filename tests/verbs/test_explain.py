"""Why a document is found, and at which stage it drops out when it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import NotFoundError, ValidationError

if TYPE_CHECKING:
    from tests.conftest import Project

TOKENS = "# Tokens\n\nTokens are refreshed every quarter of an hour by the gateway.\n"


def test_a_document_that_is_shown_has_signals_that_add_up(project: Project) -> None:
    project.doc("auth.md", TOKENS)
    project.doc("ships.md", "# Ships\n\nA schooner carries tar.\n")
    answer = project.open().explain("docs").explain("how are tokens refreshed", "docs/auth.md")
    assert (answer["stage"], answer["place"]) == ("shown", 1)
    assert answer["words"] == ["tokens", "refreshed"]
    assert answer["missing"] == ["how", "are"]
    assert (answer["keyword_rank"], answer["meaning_rank"]) == (1, 1)
    assert sum(signal["share"] for signal in answer["signals"]) == pytest.approx(
        answer["score"], abs=0.001
    )


def test_what_is_not_in_the_index_is_told_with_the_reason(project: Project) -> None:
    project.doc("auth.md", TOKENS)
    workspace = project.open()
    explain = workspace.explain("docs")
    project.doc("late.md", TOKENS)
    assert explain.explain("tokens", "docs/late.md")["why"].startswith("not indexed yet")
    assert "did you mean docs/auth.md" in explain.explain("tokens", "docs/aut.md")["why"]
    assert "docs/**/*.md" in explain.explain("tokens", "src/auth.py")["why"]
    (project.root / "docs" / "bad.md").write_bytes(b"\xff\xfe\x00\xd8" * 10)
    project.write("docs/huge.md", "word " * 3_000_000)
    workspace.sync()
    assert explain.explain("tokens", "docs/huge.md")["stage"] == "not indexed"


def test_what_a_filter_leaves_out_is_told(project: Project) -> None:
    project.memory("old.md", f"---\nstatus: archived\n---\n{TOKENS}")
    project.memory("over.md", f"---\nexpires_at: 2020-01-01\n---\n{TOKENS}")
    project.memory("plan.md", f"---\ntags: [auth]\ntype: plan\n---\n{TOKENS}")
    explain = project.open().explain("memory")
    assert "status is archived" in explain.explain("tokens", "old.md")["why"]
    assert "it expired at 2020-01-01" in explain.explain("tokens", "over.md")["why"]
    assert (
        explain.explain("tokens", ".memories/plan.md", tags=["auth"], kind="plan")["stage"]
        == "shown"
    )
    assert (
        explain.explain("tokens", "memory:plan", tags=["ui"])["why"]
        == "filtered: it has not the tags asked for"
    )
    assert (
        explain.explain("tokens", "plan", kind="fact")["why"]
        == "filtered: it has not the type asked for"
    )


def test_other_words_and_the_cut_are_told(project: Project) -> None:
    project.flags["embedding.model"] = "none"
    project.doc("ships.md", "# Ships\n\nA schooner carries tar.\n")
    for number in range(8):
        project.doc(f"copy{number}.md", f"{TOKENS}\n{'Tokens. ' * (8 - number)}")
    explain = project.open().explain("docs")
    answer = explain.explain("tokens refreshed", "docs/ships.md")
    assert (answer["stage"], answer["place"], answer["keyword"]) == ("other words", 0, 0.0)
    last = max(
        (explain.explain("tokens", f"docs/copy{n}.md") for n in range(8)),
        key=lambda one: one["place"],
    )
    assert last["why"] == f"cut by limit: it is number {last['place']}, and 5 were asked for"
    assert explain.explain("tokens", last["path"], limit=8)["stage"] == "shown"


def test_a_document_far_down_in_every_source_is_no_candidate(project: Project) -> None:
    for number in range(300):
        project.doc(f"{number:03}.md", "# Tokens\n\nTokens tokens tokens tokens.\n")
    project.doc(
        "zlast.md", f"# Harbour\n\n{'A schooner carries barrels of tar. ' * 20} One token.\n"
    )
    answer = project.open().explain("docs").explain("tokens", "docs/zlast.md")
    assert answer["stage"] == "not a candidate"
    assert answer["keyword_rank"] == 301


def test_an_unrelated_question_finds_nothing_in_a_large_lane_and_says_so(project: Project) -> None:
    for number in range(120):
        project.doc(
            f"{number:03}.md",
            f"# Page {number}\n\nThe gateway of zone {number} refreshes tokens hourly.\n",
        )
    workspace = project.open()
    assert workspace.corpus("docs").gauge().measured
    found = workspace.documents.search("gateway zone 77 refreshes tokens")
    assert found["result"][0]["path"] == "docs/077.md"
    nothing = workspace.documents.search("why do divers breathe helium below the ice")
    assert nothing["result"] == []
    assert any(
        note.startswith("nothing relevant: ") and "docs/" in note for note in nothing["notes"]
    )
    path = (
        next(note for note in nothing["notes"] if "nothing" in note)
        .split("the best of them is ")[1]
        .split(":")[0]
    )
    answer = workspace.explain("docs").explain("why do divers breathe helium below the ice", path)
    assert answer["stage"] == "below the floor"
    workspace.save()
    again = project.open()
    assert again.corpus("docs").gauge() == workspace.corpus("docs").gauge()


def test_an_empty_query_and_an_empty_lane_are_refused(project: Project) -> None:
    explain = project.open().explain("docs")
    with pytest.raises(ValidationError):
        explain.explain(" ", "docs/auth.md")
    with pytest.raises(NotFoundError):
        explain.explain("tokens", "docs/auth.md")
