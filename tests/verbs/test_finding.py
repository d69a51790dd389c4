"""One search over all lanes: the order of hits, counts for filters, and what a score is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.conftest import Project

from ragdocs.errors import ValidationError
from ragdocs.protocols import Encoder, Vectors
from ragdocs.types import Probe, Query
from ragdocs.verbs.finding import Filters, Found
from ragdocs.workspace import Workspace

WORDS = [
    "ledger",
    "invoice",
    "refund",
    "tenant",
    "currency",
    "dispute",
    "replica",
    "partition",
    "snapshot",
    "limiter",
    "backoff",
    "signature",
    "session",
    "rollback",
    "schema",
    "dashboard",
    "sweeper",
    "acquirer",
]
QUERY = "webhook delivered twice"


@pytest.fixture
def workspace(project: Project) -> Workspace:
    """A project with enough passages that both lanes have a floor."""
    for number in range(110):
        first, second, third = (WORDS[(number * step) % len(WORDS)] for step in (1, 5, 7))
        body = f"The {first} waits for the {second} number {number} of the {third}.\n"
        project.doc(f"ops/page-{number}.md", f"# Page {number}\n\n{body}")
        project.memory(f"notes/note-{number}.md", f"---\ntype: journal\n---\n{body}")
    project.doc(
        "api/hooks.md", "---\ntags: [api]\n---\n# Hooks\n\nA webhook delivered twice is skipped.\n"
    )
    project.memory(
        "dedup.md",
        "---\ntype: fact\ntags: [api, billing]\ncreated_at: 2026-11-16T08:00:00Z\n---\n"
        "A webhook delivered twice has one event id. See [[docs/api/hooks.md]].\n",
    )
    project.memory(
        "plan.md",
        "---\ntype: plan\ntags: [billing]\ncreated_at: 2026-10-01T08:00:00Z\nimportance: 9\n---\n"
        "Compare every webhook that is delivered twice.\n",
    )
    project.memory(
        "old.md",
        "---\ntype: plan\nstatus: archived\ntags: [billing]\n---\nHash a webhook delivered twice.\n",
    )
    return project.open()


def paths(found: Found) -> list[str]:
    return [lane_hit.hit.document.path for lane_hit in found.hits]


def search(workspace: Workspace, query: str = QUERY, **filters: Any) -> Found:
    return workspace.finding.search(query, Filters(**filters), 10)


def test_hits_of_all_lanes_are_in_one_order_and_pages_follow_one_another(
    workspace: Workspace,
) -> None:
    found = search(workspace)
    assert set(paths(found)) == {"docs/api/hooks.md", "dedup.md", "plan.md"}
    scores = [lane_hit.hit.score for lane_hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    single = [
        workspace.finding.search(QUERY, Filters(), 1, offset).hits[0].hit.document.path
        for offset in range(3)
    ]
    assert single == paths(found)
    assert (found.total, found.below, found.passages) == (3, None, 224)
    with pytest.raises(ValidationError, match="offset"):
        workspace.finding.search(QUERY, Filters(), 1, -1)


def test_a_lane_scores_as_in_its_own_search(workspace: Workspace) -> None:
    found = search(workspace)
    for lane_hit in found.hits:
        own = workspace.corpus(lane_hit.lane).search(
            Query(probes=(Probe(QUERY),), limit=50), workspace.clock()
        )
        scores = {hit.chunk.id: hit.score for hit in own.hits}
        assert lane_hit.hit.score == pytest.approx(scores[lane_hit.hit.chunk.id])


class Counting:
    """An encoder that notes what it is given."""

    def __init__(self, encoder: Encoder) -> None:
        self.identity = encoder.identity
        self.dim = encoder.dim
        self.latin_only = encoder.latin_only
        self.texts: list[str] = []
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return self._encoder.encode(texts)

    def rest(self, _: float, /) -> bool:
        return False

    def close(self) -> None:
        self._encoder.close()

    def prepare(self) -> None:
        self._encoder.prepare()


def test_the_query_is_encoded_once(workspace: Workspace) -> None:
    assert workspace.encoder is not None
    encoder = Counting(workspace.encoder)
    for open_lane in workspace.open_lanes.values():
        open_lane.corpus.encoder = encoder
    search(workspace, "a query that nobody asked before", tags=("api",))
    assert encoder.texts == ["a query that nobody asked before"]


@pytest.mark.parametrize(
    ("filters", "expected", "facet", "counts"),
    [
        ({}, {"docs/api/hooks.md", "dedup.md", "plan.md"}, "lane", {"docs": 1, "memory": 2}),
        ({"lanes": ("docs",)}, {"docs/api/hooks.md"}, "lane", {"docs": 1, "memory": 2}),
        ({"kinds": ("fact",)}, {"dedup.md"}, "type", {"fact": 1, "plan": 1}),
        ({"tags": ("api",)}, {"docs/api/hooks.md", "dedup.md"}, "tag", {"api": 2, "billing": 2}),
        ({"tags": ("api",)}, {"docs/api/hooks.md", "dedup.md"}, "type", {"fact": 1}),
        ({"path": "docs/api"}, {"docs/api/hooks.md"}, "path", {".memories": 2, "docs/api": 1}),
        ({"path": ".memories"}, {"dedup.md", "plan.md"}, "lane", {"docs": 0, "memory": 2}),
        ({"since": "7d"}, {"dedup.md"}, "since", {"today": 1, "7d": 1, "30d": 1}),
        ({"status": "archived"}, {"old.md"}, "status", {"active": 3, "archived": 1}),
        ({}, {"docs/api/hooks.md", "dedup.md", "plan.md"}, "status", {"active": 3, "archived": 1}),
    ],
)
def test_a_filter_narrows_the_hits_and_its_own_counts_ignore_it(
    workspace: Workspace,
    filters: dict[str, Any],
    expected: set[str],
    facet: str,
    counts: dict[str, int],
) -> None:
    found = search(workspace, **filters)
    assert set(paths(found)) == expected
    assert found.facets[facet] == counts


def test_what_is_not_relevant_is_not_shown_but_the_best_of_it_is_named(
    workspace: Workspace,
) -> None:
    found = search(workspace, "sumo wrestlers rank their partition")
    assert (found.hits, found.total) == ((), 0)
    assert found.below is not None
    assert 0 < found.below.hit.score < 0.5
    assert not any(found.facets["lane"].values())


def test_without_a_query_the_newest_documents_are_listed(workspace: Workspace) -> None:
    found = search(workspace, "", lanes=("memory",), tags=("billing",))
    assert paths(found) == ["dedup.md", "plan.md"]
    assert found.facets["type"] == {"fact": 1, "plan": 1}
    assert found.hits[0].hit.chunk.text.startswith("A webhook")


def test_a_lane_of_few_passages_shows_what_shares_a_word(project: Project) -> None:
    project.memory("one.md", "A webhook came late, and a very long story follows about it.\n")
    project.memory("two.md", "Nothing of that kind.\n")
    workspace = project.open()
    assert paths(search(workspace, "webhook and sumo wrestlers in the stable")) == ["one.md"]
