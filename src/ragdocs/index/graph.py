"""Documents, the names they go by, and the links between them; the only module that imports networkx."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx

from ragdocs.types import Document, Link

# Two documents that point at the same thing are related, but less than two that point at each other.
SHARED_TARGET = 0.5
# What everybody points at relates nobody, and following it would cost a walk over the whole lane.
CROWD = 50


class LinkGraph:
    """A multigraph from documents to ghost nodes; a ghost is a name that may or may not belong to a document.

    Links end at names, not at documents: a document may come, change or go without touching the links of others.
    """

    def __init__(self) -> None:
        self._graph: Any = nx.MultiDiGraph()
        self._owners: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, tuple[str, ...]] = {}
        # networkx counts edges by walking over all of them.
        self._links = 0

    def __len__(self) -> int:
        return self._links

    def add(self, document: Document) -> None:
        """Add a document, its names and its links, replacing what it had."""
        self.remove(document.id)
        self._names[document.id] = name_keys(document)
        for name in self._names[document.id]:
            self._owners[name].add(document.id)
        self._graph.add_node(document.id, kind="document")
        self._links += len(document.links)
        for order, link in enumerate(document.links):
            ghost = _ghost(link.target)
            self._graph.add_node(ghost, kind="ghost")
            self._graph.add_edge(
                document.id,
                ghost,
                edge_type=link.kind,
                edge_context=link.context,
                written=link.target,
                heading=link.heading,
                order=order,
            )

    def remove(self, doc_id: str) -> None:
        """Drop a document and its own links; links of others to it stay."""
        for name in self._names.pop(doc_id, ()):
            self._owners[name].discard(doc_id)
            if not self._owners[name]:
                del self._owners[name]
        if doc_id not in self._graph:
            return
        self._links -= self._graph.out_degree(doc_id)
        targets = set(self._graph.successors(doc_id))
        self._graph.remove_node(doc_id)
        self._graph.remove_nodes_from([ghost for ghost in targets if not self._graph.in_degree(ghost)])

    def links(self, doc_id: str) -> tuple[Link, ...]:
        """Return a document's links in the order it has them."""
        if doc_id not in self._graph:
            return ()
        edges = [edge for same in self._graph.adj[doc_id].values() for edge in same.values()]
        edges.sort(key=lambda edge: edge["order"])
        return tuple(Link(d["written"], d["edge_type"], d["edge_context"], d["heading"]) for d in edges)

    def links_to(self, names: Sequence[str]) -> dict[str, tuple[Link, ...]]:
        """Map document ids to their links to any of these names, all of them, in order."""
        ghosts = {_ghost(name) for name in names}
        return {
            source: tuple(link for link in self.links(source) if _ghost(link.target) in ghosts)
            for source in sorted(self.pointing(names))
        }

    def pointing(self, names: Sequence[str]) -> set[str]:
        """Return the documents that link to any of these names."""
        ghosts = {ghost for name in names if (ghost := _ghost(name)) in self._graph}
        return {source for ghost in ghosts for source in self._graph.predecessors(ghost)}

    def related(self, doc_ids: Sequence[str]) -> list[tuple[str, str, float]]:
        """Return (from, to, weight) for documents that link to each document, are linked from it, or share a target."""
        triples = []
        for doc_id in doc_ids:
            weights: dict[str, float] = {}
            for other, weight in self._neighbours(doc_id):
                if other != doc_id:
                    weights[other] = max(weight, weights.get(other, 0.0))
            triples += [(doc_id, other, weights[other]) for other in sorted(weights)]
        return triples

    def dump(self) -> bytes:
        """Return the graph as node-link JSON."""
        return json.dumps(nx.node_link_data(self._graph, edges="edges"), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )

    @classmethod
    def restore(cls, data: bytes) -> LinkGraph:
        """Rebuild a graph from what `dump` returned; the names come back with `name`."""
        graph = cls()
        graph._graph = nx.node_link_graph(json.loads(data), directed=True, multigraph=True, edges="edges")
        graph._links = graph._graph.number_of_edges()
        return graph

    def name(self, document: Document) -> None:
        """Register the names of a document whose links are in the graph already."""
        self._names[document.id] = name_keys(document)
        for name in self._names[document.id]:
            self._owners[name].add(document.id)

    def edges(self) -> list[tuple[str, str, str, str]]:
        """List every link as (document, ghost, type, context), sorted."""
        return sorted((a, b, d["edge_type"], d["edge_context"]) for a, b, d in self._graph.edges(data=True))

    def _neighbours(self, doc_id: str) -> Iterator[tuple[str, float]]:
        if doc_id not in self._graph:
            return
        for ghost in set(self._graph.successors(doc_id)):
            for owner in self._owners.get(ghost.removeprefix("ghost:"), ()):
                yield owner, 1.0
            sharing = set(self._graph.predecessors(ghost))
            if len(sharing) <= CROWD:
                weight = SHARED_TARGET / math.log2(1 + len(sharing))
                yield from ((other, weight) for other in sharing)
        for name in self._names.get(doc_id, ()):
            ghost = f"ghost:{name}"
            if ghost in self._graph:
                for other in set(self._graph.predecessors(ghost)):
                    yield other, 1.0


def target_key(target: str) -> str:
    """Return the form in which names are compared: one Unicode spelling, no case, no outer slashes."""
    return unicodedata.normalize("NFC", target.strip()).casefold().strip("/")


def name_keys(document: Document) -> tuple[str, ...]:
    """Return the names under which links may point at a document: path, path without ending, stem, title, aliases."""
    name = document.path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    names = (document.path, document.path.removesuffix(".md"), stem, document.title, *document.aliases)
    return tuple(dict.fromkeys(key for name in names if (key := target_key(name))))


def _ghost(target: str) -> str:
    return f"ghost:{target_key(target)}"
