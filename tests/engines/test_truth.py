"""Text is the truth: an index may vanish, be damaged or be foreign.

And the answers stay the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.asking import ask

from ragdocs.engines.local.index import LocalIndex

from .test_snapshot import live, sign

if TYPE_CHECKING:
    from tests.conftest import Project


def plant(project: Project) -> None:
    project.doc("auth.md", "# Tokens\n\nTokens expire after an hour. See [setup](setup.md).\n")
    project.doc(
        "setup.md",
        "# Setup\n\nInstall it, then read about tokens.\n\n## Keys\n\nA key is a secret.\n",
    )
    project.memory(
        "a.md",
        "---\ntype: fact\ntags: [auth]\ncreated_at: 2026-11-15\n---\n\nTokens: see [[docs/auth.md]]\n",
    )
    project.memory("b.md", "The token cache lives in [[src/cache.py]].\n")


def answers(project: Project) -> list[Any]:
    workspace = project.open()
    try:
        found = []
        for text in ("tokens", "secret key", "setpu"):
            found.append(ask(workspace, "search_docs", query=text, explain=True))
        for text in ("token cache", "auth"):
            found.append(ask(workspace, "search_memories", query=text, explain=True))
        linked = {"query": "tokens", "target_document": "docs/auth.md"}
        return [*found, ask(workspace, "search_linked_memories", **linked)]
    finally:
        workspace.save()


def indices(project: Project) -> list[Path]:
    folders = []
    for place in project.open().places.values():
        assert isinstance(place.index, LocalIndex)
        if place.index._directory:
            folders.append(place.index._directory)
    return folders


@pytest.mark.parametrize("how", ["deleted", "damaged", "foreign", "half"])
def test_without_a_usable_index_the_files_give_the_same_answers(project: Project, how: str) -> None:
    plant(project)
    expected = answers(project)
    assert all(one["result"] for one in expected)
    assert answers(project) == expected
    for folder in indices(project):
        if how == "deleted":
            shutil.rmtree(folder)
        elif how == "damaged":
            file = live(folder) / "vector/faiss_index.bin"
            file.write_bytes(file.read_bytes()[::-1])
        elif how == "foreign":
            sign(live(folder), key=b"foreign")
        else:
            shutil.rmtree(live(folder) / "keyword")
        for place in project.open().places.values():
            assert isinstance(place.index, LocalIndex)
            assert place.index._directory != folder or not place.index.open()
    assert answers(project) == expected
