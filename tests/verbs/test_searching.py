"""Searching while the files change: every answer is about one state of the index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project


@contextmanager
def churning(project: Project, workspace: Workspace) -> Iterator[None]:
    """Remove, bring back and rewrite memories in another thread until the end."""
    stop = threading.Event()

    def churn() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            for n in range(0, 40, 2):
                if turn % 2:
                    (project.root / f".memories/{n}.md").unlink()
                else:
                    project.memory(
                        f"{n}.md", f"# Note {n}\n\nshared words and version{turn} of [[src/x.py]]"
                    )
            workspace.places["memory"].corpus.sync()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_no_search_meets_half_a_change(project: Project) -> None:
    for n in range(40):
        project.memory(f"{n}.md", f"# Note {n}\n\nshared words and version0 of [[src/x.py]]")
    workspace = project.open()
    with churning(project, workspace):
        for _ in range(150):
            found = workspace.memories.search("shared words", limit=12)["result"]
            linked = workspace.memories.linked("nothing like it", "src/x.py", limit=12)["result"]
            assert len(found) == 12
            assert len(linked) == 12
            for content in [one["content"] for one in found] + [one["content"] for one in linked]:
                assert "shared words" in content


def test_a_hit_says_where_it_comes_from_as_far_as_the_memory_does(project: Project) -> None:
    project.memory(
        "a.md",
        """
        ---
        author: Ada
        source: agent
        git: {branch: main, commit: 3f2a9b8c7d, dirty: false}
        ---
        shared words about [[src/x.py]]
        """,
    )
    project.memory("b.md", "shared words about [[src/x.py]]")
    memories = project.open().memories
    for result in (
        memories.search("shared words")["result"],
        memories.linked("shared", "src/x.py")["result"],
    ):
        said = {
            one["memory_id"]: [one.get(key) for key in ("author", "source", "branch", "commit")]
            for one in result
        }
        assert said == {"memory:a": ["Ada", "agent", "main", "3f2a9b8c7d"], "memory:b": [None] * 4}


def test_a_memory_of_the_future_does_not_pose_as_new(project: Project) -> None:
    for name, moment in (
        ("future", "2099-01-01"),
        ("skewed", "2026-11-16T12:00:30Z"),
        ("old", "2026-11-13T12:00:00Z"),
    ):
        project.memory(f"{name}.md", f"---\ncreated_at: '{moment}'\n---\n\nshared words\n")
    found = {
        hit["memory_id"]: hit["age"]
        for hit in project.open().memories.search("shared words")["result"]
    }
    assert found == {
        "memory:future": "in the future",
        "memory:skewed": "just now",
        "memory:old": "3 days ago",
    }
