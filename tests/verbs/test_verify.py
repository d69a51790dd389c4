"""The live index is what its files alone would make of it.

And where it is not, the difference is named.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from ragdocs.engines.local.index import LocalIndex
from ragdocs.protocols import ProbeVector
from ragdocs.types import Filter
from ragdocs.verbs.quality.health import compare

if TYPE_CHECKING:
    from tests.conftest import Project

PARTS = ["documents", "chunks", "postings", "edges", "vectors"]


def edit(project: Project, chooser: random.Random, step: int) -> None:
    files = sorted(project.root.glob("docs/**/*.md")) + sorted(project.root.glob(".memories/*.md"))
    verb = chooser.choice(
        ["write", "write", "write", "change", "delete", "move", "touch", "append"]
    )
    text = f"# Note {step}\n\nWord{step} links [[src/f{step % 4}.py]] and [[n{step % 7}]].\n"
    body = f"---\ntags: [t{step % 3}]\n---\n\n{text}"
    if verb == "write" or not files:
        getattr(project, chooser.choice(["doc", "memory"]))(f"n{step}.md", body)
        return
    chosen = chooser.choice(files)
    actions: dict[str, Callable[[], object]] = {
        "change": lambda: chosen.write_text(body),
        "delete": chosen.unlink,
        "move": lambda: chosen.rename(chosen.with_name(f"moved{step}.md")),
        "touch": lambda: os.utime(chosen, (step, step)),
        "append": lambda: chosen.write_text(chosen.read_text() + "\n\n## More\n\nmore text\n"),
    }
    actions[verb]()


def test_verify_finds_no_difference_after_any_edits(project: Project) -> None:
    chooser = random.Random(11)
    workspace = project.open()
    for step in range(80):
        edit(project, chooser, step)
        if step % 3 == 0:
            workspace.sync()
            workspace.embed()
        if step % 20 == 19:
            workspace.sync()
            workspace.save()
            workspace = project.open()
    workspace.sync()
    workspace.embed()
    for name, open_lane in workspace.open_lanes.items():
        result = compare(open_lane.index.contents(), workspace.rebuilt(name).contents())
        assert result.difference == ""
        assert set(PARTS) <= result.compared.keys()
        assert min(result.compared.values()) > 5


@pytest.mark.parametrize("part", PARTS)
def test_verify_names_a_planted_difference(project: Project, part: str) -> None:
    project.doc("a.md", "# Alpha\n\nOne passage, linked to [b](b.md).\n")
    project.doc("b.md", "# Beta\n\nAnother passage.\n")
    workspace = project.open()
    index = workspace.open_lanes["docs"].index
    assert isinstance(index, LocalIndex)
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates([ProbeVector("q", "linked")], [Filter()], 1)
    row = cast("int", candidates.keys[0])
    if part == "documents":
        index.apply([], ["docs/a.md"])
    elif part == "chunks":
        headings = index._catalog.passages.headings
        headings[headings.index(("Alpha",))] = ("Planted",)
    elif part == "postings":
        index._keywords().write([{"body": ["planted"]}], [row])
        index._keywords().adopt([row])
    elif part == "edges":
        index._graph.remove("docs:docs/a")
    else:
        vectors = index._table()
        vectors.remove([row])
        vectors.add([row], -np.ones((1, index._dim), dtype=np.float32) / np.sqrt(index._dim))
    difference = compare(index.contents(), workspace.rebuilt("docs").contents()).difference
    assert difference.startswith(f"{part}: the live index has")
    assert "docs/a" in difference
