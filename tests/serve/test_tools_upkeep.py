"""Linked search, merging and its suggestions, through a real client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
