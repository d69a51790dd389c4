"""Linked search, merging and its suggestions, through a real client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session


def linked(session: Session, target: str, query: str = "x", **more: Any) -> dict[str, str]:
    """Return the kind of link of each memory that links to a target, best first."""
    arguments = {"query": query, "target_document": target, **more}
    hits = session.call("search_linked_memories", **arguments)["result"]
    return {hit["memory_id"]: hit["edge_type"] for hit in hits}


def files(root: Path) -> dict[str, bytes]:
    """Everything on disk but the index, which a background thread may write at any time."""
    paths = (path for path in root.rglob("*") if path.is_file() and "indices" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


# --- search_linked_memories ---


def test_the_context_of_a_link_is_about_a_hundred_characters(
    project: Project, connect: Connect
) -> None:
    project.memory("a.md", f"{'before ' * 40}[[src/auth.py]]{' after' * 40}\n")
    arguments = {"query": "x", "target_document": "src/auth.py"}
    hit = connect().call("search_linked_memories", **arguments)["result"][0]
    assert "[[src/auth.py]]" in hit["anchor_context"]
    assert 80 <= len(hit["anchor_context"]) <= 140


def test_link_kinds_are_what_the_author_wrote(project: Project, connect: Connect) -> None:
    project.memory("mentions.md", "A word on [[src/a.py]] here.\n")
    project.memory("bare.md", "# Bare\n\n[[src/a.py]]\n")
    project.memory("field.md", "plans:: [[src/a.py]]\n")
    project.memory("item.md", "- fixes [[src/a.py]]\n")
    project.memory("guess.md", "This plan blocks and fixes [[src/a.py]] soon.\n")
    assert linked(connect(), "src/a.py", limit=10) == {
        "memory:mentions": "mentions",
        "memory:bare": "related_to",
        "memory:field": "plans",
        "memory:item": "fixes",
        "memory:guess": "mentions",
    }


def test_a_target_is_matched_as_a_whole_path(project: Project, connect: Connect) -> None:
    project.memory("a.md", "On [[src/auth.py]].\n")
    project.memory("b.md", "On [[docs/guide.md#Tokens]].\n")
    session = connect()
    # A bare name stands for the only linked file of that name.
    assert list(linked(session, "auth.py")) == ["memory:a"]
    others = ["rc/auth.py", "src/auth.pyi", "src/auth", "src", "other/src/auth.py"]
    for target in [*others, "nothing", "", " "]:
        assert linked(session, target) == {}, target
    for target in ("src/auth.py", "./src/auth.py", "ghost:src/auth.py"):
        assert list(linked(session, target)) == ["memory:a"], target
    for target in ("docs/guide.md", "docs/guide", "docs/guide.md#Tokens"):
        assert list(linked(session, target)) == ["memory:b"], target


def test_wrong_link_forms_make_no_ghost_and_status_names_them(
    project: Project, connect: Connect
) -> None:
    project.memory("wrong.md", "See [src/auth.py] and [[./src/auth.py]].\n")
    session = connect()
    assert linked(session, "src/auth.py", "see") == {}
    problem = session.call("index_status")["lanes"][1]["problems"]["wrong.md"]
    assert "[src/auth.py]" in problem
    assert "[[./src/auth.py]]" in problem


def test_linked_memories_are_ranked_by_the_query(project: Project, connect: Connect) -> None:
    project.memory("a.md", "About cooking, with [[src/a.py]].\n")
    project.memory("z.md", "About session timeouts, with [[src/a.py]].\n")
    session = connect()
    assert list(linked(session, "src/a.py", "session timeouts", limit=1)) == ["memory:z"]
    everything = linked(session, "src/a.py", "")
    assert everything.keys() == {"memory:a", "memory:z"}, "the link alone is reason enough"


# --- merge_memories ---

SOURCES = ["auth-notes-1.md", "auth-notes-2", "auth-notes-3.md"]
FAILING: list[tuple[dict[str, Any], str]] = [
    ({"source_files": []}, "no source files"),
    ({"source_files": ["auth-notes-1.md", "gone.md"]}, "gone.md does not exist"),
    ({"target_file": "taken.md"}, "exists and is not one of the sources"),
    ({"target_file": "TAKEN"}, "exists"),
    ({"summary_content": " "}, "summary_content is empty"),
    ({"summary_content": "a\0b"}, "NUL"),
    ({"summary_content": "\ud800"}, "surrogates"),
    ({"summary_content": "---\na: [\n---\n"}, "frontmatter"),
    ({"summary_content": "x" * 1_000_001}, "longer than"),
    ({"source_files": "auth-notes-1.md"}, "valid list"),
    ({"target_file": SOURCES[0], "expected_version": "0" * 16}, "changed since version"),
]


def test_a_failed_merge_changes_nothing_and_a_source_may_be_the_target(
    project: Project, connect: Connect
) -> None:
    for number in (1, 2, 3):
        header = f"---\ntype: observation\ntags: [auth, n{number}]\n---"
        project.memory(f"auth-notes-{number}.md", f"{header}\n\nNote {number}.\n")
    project.memory("taken.md", "taken\n")
    session, before = connect(), files(project.root)
    merge = {"source_files": SOURCES, "target_file": "all.md", "summary_content": "Merged."}
    for change, complaint in FAILING:
        assert complaint in session.error("merge_memories", **{**merge, **change})
        assert files(project.root) == before, complaint
    answer = session.call("merge_memories", **{**merge, "target_file": SOURCES[0]})
    assert len(answer["moved_to"]) == 2
    assert session.call("get_memory_stats")["count"] == 2


# --- suggest_memory_merges ---


def test_suggestions_group_similar_journals_tightest_first(
    project: Project, connect: Connect
) -> None:
    text = "The login page loses the session after one hour of idling.\n"
    for number in (1, 2):
        project.memory(f"same-{number}.md", text)
        errors = "No errors. " * number
        project.memory(f"near-{number}.md", f"Backups run nightly on the second host. {errors}\n")
    project.memory("alone.md", "Entirely different things are written in here.\n")
    project.memory("plan.md", f"---\ntype: plan\n---\n\n{text}")
    project.memory("old.md", f"---\nstatus: archived\n---\n\n{text}")
    session = connect().settle()

    def clusters(**arguments: Any) -> list[list[str]]:
        result = session.call("suggest_memory_merges", **arguments)["result"]
        scores = [cluster["score"] for cluster in result]
        assert scores == sorted(scores, reverse=True)
        assert all(1.0 >= score >= 0.85 for score in scores)
        return [[member["id"] for member in cluster["memories"]] for cluster in result]

    same = ["memory:same-1", "memory:same-2"]
    assert clusters() == [same, ["memory:near-1", "memory:near-2"]]
    assert clusters(limit=1) == [same]
    assert clusters(filter_type="fact") == []
    assert clusters(filter_type=None)[0] == ["memory:plan", *same]


@pytest.mark.parametrize("threshold", [-0.1, 1.01, "high", None, float("nan")])
def test_a_threshold_that_cannot_be_meant_is_refused(connect: Connect, threshold: Any) -> None:
    assert "threshold" in connect().error("suggest_memory_merges", threshold=threshold)
