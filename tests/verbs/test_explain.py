"""Why a document is found, and at which stage it drops out when it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.errors import NotFoundError, ValidationError

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

TOKENS = "# Tokens\n\nTokens are refreshed every quarter of an hour by the gateway.\n"
UNRELATED = "why do divers breathe helium below the ice"


def why(workspace: Workspace, path: str, **more: object) -> str:
    return str(ask(workspace, "explain_search", query="tokens", path=path, **more)["why"])


def test_what_is_not_in_the_index_is_told_with_the_reason(project: Project) -> None:
    project.doc("auth.md", TOKENS)
    workspace = project.open()
    project.doc("late.md", TOKENS)
    assert why(workspace, "docs/late.md").startswith("not indexed yet")
    assert "did you mean docs/auth.md" in why(workspace, "docs/aut.md")
    assert "docs/**/*.md" in why(workspace, "src/auth.py")
    project.write("docs/huge.md", "word " * 3_000_000)
    workspace.sync()
    assert "10 MB" in why(workspace, "docs/huge.md")


def test_what_a_filter_leaves_out_is_told(project: Project) -> None:
    project.memory("old.md", f"---\nstatus: archived\n---\n{TOKENS}")
    project.memory("over.md", f"---\nexpires_at: 2020-01-01\n---\n{TOKENS}")
    project.memory("plan.md", f"---\ntags: [auth]\ntype: plan\n---\n{TOKENS}")
    workspace = project.open()
    for path, filters, expected in (
        ("old.md", {}, "filtered: its status is archived, which is left out unless asked for"),
        ("over.md", {"tags": ["ui"]}, "filtered: it expired at 2020-01-01T00:00:00Z"),
        (".memories/plan.md", {"tags": ["auth"], "kind": "plan"}, "shown as number 1: "),
        ("memory:plan", {"tags": ["ui"]}, "filtered: it has not the tags asked for"),
        ("plan", {"kind": "fact"}, "filtered: it has not the type asked for"),
    ):
        assert why(workspace, path, lane="memory", **filters).startswith(expected), path


def test_other_words_and_the_cut_are_told(project: Project) -> None:
    project.flags["embedding.model"] = "none"
    project.doc("ships.md", "# Ships\n\nA schooner carries tar.\n")
    for number in range(8):
        project.doc(f"copy{number}.md", f"{TOKENS}\n{'Tokens. ' * (8 - number)}")
    workspace = project.open()
    assert why(workspace, "docs/ships.md") == "other words: no word of the query stands in it"
    explain = workspace.explain("docs")
    copies = [explain.explain("tokens", f"docs/copy{number}.md") for number in range(8)]
    last = max(copies, key=lambda copy: copy.position)
    expected = f"cut by limit: it is number {last.position}, and 5 were asked for"
    assert why(workspace, last.path) == expected
    assert explain.explain("tokens", last.path, limit=8).stage == "shown"


def test_a_document_far_down_in_every_source_is_no_candidate(project: Project) -> None:
    for number in range(300):
        project.doc(f"{number:03}.md", "# Tokens\n\nTokens tokens tokens tokens.\n")
    filler = "A schooner carries barrels of tar. " * 20
    project.doc("zlast.md", f"# Harbour\n\n{filler} One token.\n")
    explanation = project.open().explain("docs").explain("tokens", "docs/zlast.md")
    assert explanation.stage == "not a candidate"
    assert explanation.measured
    assert explanation.measured.keyword_rank == 301


def test_an_unrelated_question_finds_nothing_in_a_large_lane_and_says_so(project: Project) -> None:
    for number in range(120):
        text = f"The gateway of zone {number} refreshes tokens hourly."
        project.doc(f"{number:03}.md", f"# Page {number}\n\n{text}\n")
    workspace = project.open()
    gauge = workspace.corpus("docs").gauge()
    assert gauge.measured
    hits = workspace.documents.search("gateway zone 77 refreshes tokens").hits
    assert hits[0].document.path == "docs/077.md"
    nothing = workspace.documents.search(UNRELATED)
    assert nothing.hits == ()
    (note,) = [note for note in nothing.notes if note.startswith("nothing relevant: ")]
    path = note.partition("the best of them is ")[2].partition(":")[0]
    assert workspace.explain("docs").explain(UNRELATED, path).stage == "below the floor"
    workspace.save()
    assert project.open().corpus("docs").gauge() == gauge


def many_memories(project: Project) -> None:
    """Write enough memories that a floor is measured, and one plan among them."""
    for number in range(120):
        text = f"The gateway of zone {number} refreshes tokens hourly."
        project.memory(f"{number:03}.md", f"---\ntags: [zones]\n---\n# Zone {number}\n\n{text}\n")
    header = "---\ntags: [auth]\ntype: plan\n---\n"
    project.memory("plan.md", f"{header}# Single sign-on\n\nUsers type one password a day.\n")


WEAK = "why do users of helium dive below the frozen lake"


def test_what_a_filter_leaves_is_shown_even_if_it_is_weak(project: Project) -> None:
    many_memories(project)
    workspace = project.open()
    assert workspace.corpus("memory").gauge().measured
    assert workspace.memories.search(WEAK).hits == ()
    assert workspace.memories.search(WEAK, tags=["zones"]).hits == ()
    narrow = workspace.memories.search(WEAK, tags=["auth"], kind="plan")
    assert [hit.document.path for hit in narrow.hits] == ["plan.md"]
    assert any(note.startswith("weak matches: ") for note in narrow.notes)
    explain = workspace.explain("memory")
    assert explain.explain(WEAK, "plan.md").stage == "below the floor"
    assert explain.explain(WEAK, "plan.md", tags=["auth"]).stage == "shown"


def test_a_weak_page_that_is_shown_after_a_strong_one_is_not_below_the_floor(
    project: Project,
) -> None:
    many_memories(project)
    workspace = project.open()
    query = "sign-on password users type once a day"
    hits = workspace.memories.search(query, limit=5).hits
    assert hits[0].score > 0.5 > hits[-1].score
    explanation = workspace.explain("memory").explain(query, hits[-1].document.path)
    assert (explanation.stage, explanation.position) == ("shown", 5)


def test_recall_finds_nothing_for_a_word_that_nothing_has_and_says_so(project: Project) -> None:
    many_memories(project)
    workspace = project.open()
    answer = ask(workspace, "recall", query="XYZZY")
    assert answer["result"] == []
    assert any(note.startswith("nothing relevant: ") for note in answer["notes"])
    found = ask(workspace, "recall", query="gateway of zone 77 refreshes tokens")
    assert found["result"][0]["path"] == ".memories/077.md"
    assert found["result"][0]["score"] > 0.5
    assert "score" not in ask(workspace, "recall")["result"][0]


def test_in_a_small_project_weak_matches_are_called_weak(project: Project) -> None:
    project.memory("plan.md", "# Single sign-on\n\nUsers type one password a day.\n")
    workspace = project.open()
    for verb in ("recall", "search_memories"):
        answer = ask(workspace, verb, query="XYZZY")
        if answer["result"]:
            assert any(note.startswith("weak matches: ") for note in answer["notes"])


@pytest.mark.parametrize("verb", ["recall", "search_memories", "search_docs"])
def test_an_unknown_tag_is_named_with_those_that_exist(project: Project, verb: str) -> None:
    for number in range(12):
        project.memory(f"{number}.md", f"---\ntags: [t{number}, auth]\n---\n{TOKENS}")
        project.doc(f"{number}.md", f"---\ntags: [t{number}, auth]\n---\n{TOKENS}")
    name = "tags" if verb != "search_memories" else "filter_tags"
    answer = ask(project.open(), verb, query="tokens", **{name: ["authn"]})
    (note,) = [note for note in answer["notes"] if "authn" in note]
    assert note.startswith("nothing has the tag 'authn'; existing tags: auth, ")


def test_an_unknown_type_is_named_with_those_that_exist(project: Project) -> None:
    project.memory("plan.md", f"---\ntype: plan\n---\n{TOKENS}")
    answer = ask(project.open(), "search_memories", query="tokens", filter_type="plans")
    assert answer["result"] == []
    assert answer["notes"][0] == "nothing has the type 'plans'; existing types: plan"


@pytest.mark.parametrize("verb", ["search_memories", "search_docs"])
def test_an_empty_query_is_refused(project: Project, verb: str) -> None:
    with pytest.raises(ValidationError, match="the query is empty"):
        ask(project.open(), verb, query="  ")


def test_an_empty_query_and_an_empty_lane_are_refused(project: Project) -> None:
    explain = project.open().explain("docs")
    with pytest.raises(ValidationError):
        explain.explain(" ", "docs/auth.md")
    with pytest.raises(NotFoundError):
        explain.explain("tokens", "docs/auth.md")
