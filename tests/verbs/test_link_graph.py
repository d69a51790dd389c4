"""The graph of links, links that lead nowhere or to several texts, and gaps."""

from __future__ import annotations

import pytest
from tests.conftest import Project

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.types import Filter
from ragdocs.verbs.links import Links


@pytest.fixture
def links(project: Project) -> Links:
    project.doc("auth.md", "# Auth\n\nSee [[docs/ledger.md]] and [[src/covered.py]].\n")
    project.doc("ledger.md", "# Ledger\n")
    project.doc("a/overview.md", "# Overview\n")
    project.doc("b/overview.md", "# Overview\n")
    project.write("src/real.py", "")
    project.memory(
        "plan.md", "---\ntype: plan\n---\nSee [[docs/auth.md]], [[fact]], [[src/real.py]]."
    )
    project.memory(
        "fact.md", "---\ntags: [x]\n---\n[[src/real.py]] [[src/gone.py]] [[Overview]] [[old]]"
    )
    project.memory("more.md", "About [[docs/unwritten.md]] and [[src/covered.py]].")
    project.memory("also.md", "About [[docs/unwritten.md]] and [[src/covered.py]].")
    project.memory("old.md", "---\nstatus: archived\n---\nSee [[docs/auth.md]].")
    return project.open().links


def names(links: Links, **arguments: object) -> list[str]:
    return [node.name for node in links.graph(**arguments).nodes]  # type: ignore[arg-type]


def test_the_most_linked_come_first_and_the_rest_is_counted(links: Links) -> None:
    graph = links.graph(limit=3)
    counts = [node.links for node in graph.nodes]
    assert counts == sorted(counts, reverse=True)
    assert graph.total == 12
    assert "old.md" not in names(links)


def test_around_a_node_it_goes_step_by_step(links: Links) -> None:
    assert set(names(links, around="plan.md", steps=1)) == {
        "plan.md",
        "docs/auth.md",
        "fact.md",
        "src/real.py",
    }
    assert "docs/ledger.md" in names(links, around="memory:plan", steps=2)
    assert "src/real.py" not in names(links, around="plan.md", ghosts=False)
    assert "fact.md" in names(links, around="src/real.py", steps=1)
    centre = links.graph("plan.md").centre
    assert centre is not None
    assert [node.name for node, _ in centre.out] == ["docs/auth.md", "fact.md", "src/real.py"]


def test_a_filter_shows_its_texts_with_their_neighbours(links: Links) -> None:
    chosen = names(links, where=Filter(tags=("x",)))
    assert chosen[0] == "fact.md"
    assert "plan.md" in chosen
    assert "docs/auth.md" not in chosen


def test_what_cannot_be_asked_for_is_refused(links: Links) -> None:
    with pytest.raises(NotFoundError, match="no text and no link"):
        links.graph("nowhere")
    with pytest.raises(ValidationError, match="1 to 300"):
        links.graph(limit=301)
    with pytest.raises(ValidationError, match="1 to 4"):
        links.graph(steps=9)


def test_doubtful_links_and_gaps_are_told_apart(links: Links) -> None:
    problems = links.problems()
    broken = [(item.document.path, item.link.target) for item in problems.broken]
    assert ("fact.md", "src/gone.py") in broken
    assert "src/real.py" not in [target for _, target in broken]
    assert [item.link.target for item in problems.ambiguous] == ["Overview"]
    gaps = {gap.target: gap for gap in problems.gaps}
    assert set(gaps) == {"docs/unwritten.md", "src/real.py"}
    assert gaps["src/real.py"].is_file
    assert not gaps["docs/unwritten.md"].is_file


def test_a_change_is_seen_though_links_are_resolved_once(project: Project) -> None:
    project.memory("a.md", "See [[b]].")
    workspace = project.open()
    assert workspace.links.graph().total == 2
    project.memory("b.md", "See [[c]].")
    workspace.sync()
    assert [node.name for node in workspace.links.graph().nodes] == ["b.md", "c", "a.md"]
