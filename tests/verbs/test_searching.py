"""Searching while the files change: every answer is about one state of the index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.asking import ask

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace


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
                    text = f"shared words and version{turn} of [[src/x.py]]"
                    project.memory(f"{n}.md", f"# Note {n}\n\n{text}")
            workspace.open_lanes["memory"].corpus.sync()

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
            found = workspace.memories.search("shared words", limit=12).hits
            linked = workspace.memories.linked("nothing like it", "src/x.py", limit=12).hits
            assert len(found) == len(linked) == 12
            assert all("shared words" in hit.chunk.text for hit in (*found, *linked))


def test_a_hit_says_where_it_comes_from_as_far_as_the_memory_does(project: Project) -> None:
    origin = "git: {branch: main, commit: 3f2a9b8c7d, dirty: false}"
    text = "shared words about [[src/x.py]]\n"
    project.memory("a.md", f"---\nauthor: Ada\nsource: agent\n{origin}\n---\n{text}")
    project.memory("b.md", text)
    workspace = project.open()
    found = ask(workspace, "search_memories", query="shared words")
    linked = ask(workspace, "search_linked_memories", query="x", target_document="src/x.py")
    for hit in (*found["result"], *linked["result"]):
        stated = [hit.get(key) for key in ("author", "source", "branch", "commit")]
        expected = {"memory:a": ["Ada", "agent", "main", "3f2a9b8c7d"], "memory:b": [None] * 4}
        assert stated == expected[hit["memory_id"]]


def test_a_memory_of_the_future_does_not_pose_as_new(project: Project) -> None:
    ages = {
        "2099-01-01": "in the future",
        "2026-11-16T12:00:30Z": "just now",
        "2026-11-13T12:00:00Z": "3 days ago",
    }
    for number, moment in enumerate(ages):
        project.memory(f"{number}.md", f"---\ncreated_at: '{moment}'\n---\n\nshared words\n")
    hits = ask(project.open(), "search_memories", query="shared words")["result"]
    found = {hit["memory_id"]: hit["age"] for hit in hits}
    assert found == {f"memory:{number}": age for number, age in enumerate(ages.values())}
