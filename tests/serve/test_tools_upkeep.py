"""Linked search, statistics, merging and its suggestions, through a real client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["memory_id"] for hit in answer["result"]]


def files(root: Path) -> dict[str, bytes]:
    """Everything on disk but the index, which a background thread may write at any time."""
    found = (path for path in root.rglob("*") if path.is_file() and "indices" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


# --- search_linked_memories ---


def test_the_context_of_a_link_is_about_a_hundred_characters(
    project: Project, connect: Connect
) -> None:
    project.memory("a.md", f"{'before ' * 40}[[src/auth.py]]{' after' * 40}\n")
    hit = connect().call("search_linked_memories", query="x", target_document="src/auth.py")[
        "result"
    ][0]
    assert "[[src/auth.py]]" in hit["anchor_context"]
    assert 80 <= len(hit["anchor_context"]) <= 140


def test_link_kinds_are_what_the_author_wrote(project: Project, connect: Connect) -> None:
    project.memory("mentions.md", "A word on [[src/a.py]] here.\n")
    project.memory("bare.md", "# Bare\n\n[[src/a.py]]\n")
    project.memory("field.md", "plans:: [[src/a.py]]\n")
    project.memory("item.md", "- fixes [[src/a.py]]\n")
    project.memory("guess.md", "This plan blocks and fixes [[src/a.py]] soon.\n")
    answer = connect().call(
        "search_linked_memories", query="x", target_document="src/a.py", limit=10
    )
    assert {hit["memory_id"]: hit["edge_type"] for hit in answer["result"]} == {
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
    for target in (
        "auth.py",
        "rc/auth.py",
        "src/auth.pyi",
        "src/auth",
        "src",
        "other/src/auth.py",
        "nothing",
        "",
        " ",
    ):
        assert (
            session.call("search_linked_memories", query="x", target_document=target)["result"]
            == []
        ), target
    for target in ("src/auth.py", "./src/auth.py", "ghost:src/auth.py"):
        assert ids(session.call("search_linked_memories", query="x", target_document=target)) == [
            "memory:a"
        ], target
    for target in ("docs/guide.md", "docs/guide", "docs/guide.md#Tokens"):
        assert ids(session.call("search_linked_memories", query="x", target_document=target)) == [
            "memory:b"
        ], target


def test_wrong_link_forms_make_no_ghost_and_status_names_them(
    project: Project, connect: Connect
) -> None:
    project.memory("wrong.md", "See [src/auth.py] and [[./src/auth.py]].\n")
    session = connect()
    assert (
        session.call("search_linked_memories", query="see", target_document="src/auth.py")["result"]
        == []
    )
    memory = session.call("index_status")["lanes"][1]
    assert "[src/auth.py]" in memory["problems"]["wrong.md"]
    assert "[[./src/auth.py]]" in memory["problems"]["wrong.md"]


def test_linked_memories_are_ranked_by_the_query_and_counted(
    project: Project, connect: Connect
) -> None:
    project.memory("a.md", "About cooking, with [[src/a.py]].\n")
    project.memory("z.md", "About session timeouts, with [[src/a.py]].\n")
    session = connect()
    answer = session.call(
        "search_linked_memories", query="session timeouts", target_document="src/a.py", limit=1
    )
    assert ids(answer) == ["memory:z"]
    assert answer["omitted"] == 1
    everything = session.call("search_linked_memories", query="", target_document="src/a.py")
    assert sorted(ids(everything)) == ["memory:a", "memory:z"], "the link alone is reason enough"


# --- get_memory_stats ---


# --- merge_memories ---


def three_notes(project: Project) -> None:
    for number in (1, 2, 3):
        project.memory(
            f"auth-notes-{number}.md",
            f"---\ntype: observation\ntags: [auth, n{number}]\n---\n\nNote {number}.\n",
        )


SOURCES = ["auth-notes-1.md", "auth-notes-2", "auth-notes-3.md"]


def test_a_source_may_be_the_target(project: Project, connect: Connect) -> None:
    three_notes(project)
    session = connect()
    answer = session.call(
        "merge_memories", source_files=SOURCES, target_file=SOURCES[0], summary_content="Merged."
    )
    assert len(answer["moved_to"]) == 2
    assert session.call("get_memory_stats")["count"] == 1


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
    (
        {"target_file": "auth-notes-1.md", "expected_version": "0000000000000000"},
        "changed since version",
    ),
]


def test_a_failed_merge_leaves_everything_as_it_was(project: Project, connect: Connect) -> None:
    three_notes(project)
    project.memory("taken.md", "taken\n")
    session, before = connect(), files(project.root)
    for change, says in FAILING:
        arguments = {
            "source_files": SOURCES,
            "target_file": "all.md",
            "summary_content": "Merged.",
            **change,
        }
        assert says in session.error("merge_memories", **arguments)
        assert files(project.root) == before, says
    assert session.call("get_memory_stats")["count"] == 4


# --- suggest_memory_merges ---


def test_suggestions_group_similar_journals_tightest_first(
    project: Project, connect: Connect
) -> None:
    for number in (1, 2):
        project.memory(
            f"same-{number}.md", "The login page loses the session after one hour of idling.\n"
        )
        project.memory(
            f"near-{number}.md",
            f"Backups run nightly on the second host. {'No errors. ' * number}\n",
        )
    project.memory("alone.md", "Entirely different things are written in here.\n")
    project.memory(
        "plan.md",
        "---\ntype: plan\n---\n\nThe login page loses the session after one hour of idling.\n",
    )
    project.memory(
        "old.md",
        "---\nstatus: archived\n---\n\nThe login page loses the session after one hour of idling.\n",
    )
    session = connect().settle()
    answer = session.call("suggest_memory_merges")
    assert list(answer) == ["result", "notes"]
    first, second = answer["result"]
    assert list(first) == ["cluster_id", "score", "reason", "memory_count", "memories"]
    assert [list(member) for member in first["memories"]] == [["id", "file_path", "preview"]] * 2
    assert [member["id"] for member in first["memories"]] == ["memory:same-1", "memory:same-2"]
    assert [member["id"] for member in second["memories"]] == ["memory:near-1", "memory:near-2"]
    assert first["memories"][0]["file_path"] == str(project.root / ".memories/same-1.md")
    assert first["memories"][0]["preview"].startswith("The login page")
    assert (first["cluster_id"], second["cluster_id"], first["memory_count"]) == (0, 1, 2)
    assert first["reason"] == "High vector similarity (> 0.85)"
    assert 1.0 >= first["score"] > second["score"] >= 0.85
    assert len(session.call("suggest_memory_merges", limit=1)["result"]) == 1
    assert session.call("suggest_memory_merges", filter_type="fact")["result"] == []
    every_type = session.call("suggest_memory_merges", filter_type=None)["result"][0]
    assert [member["id"] for member in every_type["memories"]] == [
        "memory:plan",
        "memory:same-1",
        "memory:same-2",
    ]


def test_a_threshold_that_cannot_be_meant_is_refused(connect: Connect) -> None:
    session = connect()
    for threshold in (-0.1, 1.01, "high", None, float("nan")):
        assert "threshold" in session.error("suggest_memory_merges", threshold=threshold)
