"""Documents, the names they go by, and the links between them.

The only module that imports networkx.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from ragdocs.engines.local.portions import FirstList
from ragdocs.system.names import link_key, link_keys
from ragdocs.types import Document, Link

Buffer = bytes | memoryview


class LinkGraph:
    """A multigraph from documents to ghost nodes.

    A ghost is a name that may or may not belong to a document.

    Links end at names, not at documents: a document may come, change or go without touching the
    links of others.
    """

    def __init__(self) -> None:
        self._links: dict[str, tuple[Link, ...]] = {}
        self._owners: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, tuple[str, ...]] = {}
        # Documents that came with a snapshot; their names are looked up when a link is followed.
        self._unnamed: list[Document] = []
        self._built: Any = None
        self._opening = threading.Lock()
        # Which documents link to a name; made when it is first asked for.
        self._sources: dict[str, set[str]] | None = None
        # Where links lead that were followed since the last change.
        self._near: dict[str, tuple[str, ...]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def open(self) -> Any:
        """Return the graph, made when it is first asked for.

        Networkx takes 0.2 s to import, and a start can wait.
        """
        # Several searches may be the first.
        with self._opening:
            if self._built is None:
                import networkx as nx

                graph: Any = nx.MultiDiGraph()
                for doc_id in self._links:
                    self._connect(graph, doc_id)
                self._built = graph
            return self._built

    def add(self, document: Document) -> None:
        """Add a document, its names and its links, replacing what it had."""
        self.remove(document.id)
        self._name(document)
        self._links[document.id] = document.links
        self._count += len(document.links)
        if self._sources is not None:
            self._point(self._sources, document.id)
        if self._built is not None:
            self._connect(self._built, document.id)

    def remove(self, doc_id: str) -> None:
        """Drop a document and its own links; links of others to it stay."""
        self._name_all()
        self._near.clear()
        for name in self._names.pop(doc_id, ()):
            self._owners[name].discard(doc_id)
            if not self._owners[name]:
                del self._owners[name]
        links = self._links.pop(doc_id, ())
        self._count -= len(links)
        if self._sources is not None:
            for ghost in {_ghost(link.target) for link in links}:
                self._sources[ghost].discard(doc_id)
                if not self._sources[ghost]:
                    del self._sources[ghost]
        if self._built is None or doc_id not in self._built:
            return
        targets = set(self._built.successors(doc_id))
        self._built.remove_node(doc_id)
        self._built.remove_nodes_from(
            [ghost for ghost in targets if not self._built.in_degree(ghost)]
        )

    def links(self, doc_id: str) -> tuple[Link, ...]:
        """Return a document's links in the order it has them."""
        return self._links.get(doc_id, ())

    def links_to(
        self, names: Sequence[str], among: Collection[str] | None = None
    ) -> dict[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names.

        All of them, in order.
        """
        ghosts = {_ghost(name) for name in names}
        pointing = self._pointing(ghosts)
        sources: Collection[str] = sorted(pointing)
        if among is not None:
            sources = [document_id for document_id in among if document_id in pointing]
        links: dict[str, tuple[Link, ...]] = {}
        for source in sources:
            chosen = []
            for link in self.links(source):
                if _ghost(link.target) in ghosts:
                    chosen.append(link)
            links[source] = tuple(chosen)
        return links

    def pointing(self, names: Sequence[str]) -> set[str]:
        """Return the documents that link to any of these names."""
        return self._pointing({_ghost(name) for name in names})

    def _pointing(self, ghosts: Collection[str]) -> set[str]:
        """Return the documents that link to any of these.

        There is no need of the graph for a single step.
        """
        if self._sources is None:
            by_ghost: dict[str, set[str]] = defaultdict(set)
            for doc_id in self._links:
                self._point(by_ghost, doc_id)
            self._sources = by_ghost
        sources: set[str] = set()
        for ghost in ghosts:
            sources.update(self._sources.get(ghost, ()))
        return sources

    def _point(self, by_ghost: dict[str, set[str]], doc_id: str) -> None:
        for link in self._links[doc_id]:
            by_ghost[_ghost(link.target)].add(doc_id)

    def dump(self) -> dict[str, Any]:
        """Return the graph as networkx's node-link data, whose lists are made as they are read."""
        links = dict(self._links)
        return {
            "directed": True,
            "multigraph": True,
            "graph": {},
            "nodes": _nodes(links),
            "edges": _edges(links),
        }

    @classmethod
    def restore(cls, data: Buffer) -> LinkGraph:
        """Rebuild a graph from what `dump` returned; the names come back with `expect`."""
        graph = cls()
        nodes = FirstList(data)
        for node in nodes:
            if node["kind"] == "document":
                graph._links[node["id"]] = ()
        # Those of one document follow one another, in its order.
        for source, edges in groupby(FirstList(nodes.rest), key=itemgetter("source")):
            links = tuple(map(_link, edges))
            graph._links[source] += links
            graph._count += len(links)
        return graph

    def expect(self, documents: Sequence[Document]) -> None:
        """Take documents whose links are in the graph already; their names can wait."""
        self._unnamed = list(documents)

    def _name_all(self) -> None:
        """Register the names of all documents that wait for it."""
        if not self._unnamed:
            return
        # Several searches may be the first.
        with self._opening:
            for document in self._unnamed:
                self._name(document)
            self._unnamed = []

    def _name(self, document: Document) -> None:
        self._names[document.id] = link_keys(document)
        for name in self._names[document.id]:
            self._owners[name].add(document.id)

    def edges(self) -> list[tuple[str, str, str, str]]:
        """List every link as (document, ghost, type, context), sorted."""
        return sorted(
            (a, b, d["edge_type"], d["edge_context"]) for a, b, d in self.open().edges(data=True)
        )

    def _connect(self, graph: Any, doc_id: str) -> None:
        graph.add_node(doc_id, kind="document")
        for order, link in enumerate(self._links[doc_id]):
            ghost = _ghost(link.target)
            graph.add_node(ghost, kind="ghost")
            graph.add_edge(doc_id, ghost, **_attributes(link, order))

    def linked(self, doc_id: str) -> tuple[str, ...]:
        """Return the other documents that one links to.

        There is no need of the graph for a single step.
        """
        near = self._near.get(doc_id)
        if near is None:
            self._name_all()
            owners: set[str] = set()
            for link in self.links(doc_id):
                owners.update(self._owners.get(link_key(link.target), ()))
            near = tuple(sorted(owners - {doc_id}))
            self._near[doc_id] = near
        return near


def _nodes(links: Mapping[str, Sequence[Link]]) -> Iterator[dict[str, Any]]:
    """Yield documents and ghosts, each before what follows from it."""
    ghosts: set[str] = set()
    for doc_id, own in links.items():
        yield {"kind": "document", "id": doc_id}
        for link in own:
            ghost = _ghost(link.target)
            if ghost not in ghosts:
                ghosts.add(ghost)
                yield {"kind": "ghost", "id": ghost}


def _edges(links: Mapping[str, Sequence[Link]]) -> Iterator[dict[str, Any]]:
    """Yield links; those of one document to one ghost have keys in their order."""
    for doc_id, own in links.items():
        keys: Counter[str] = Counter()
        for order, link in enumerate(own):
            ghost = _ghost(link.target)
            ends = {"source": doc_id, "target": ghost, "key": keys[ghost]}
            yield {**_attributes(link, order), **ends}
            keys[ghost] += 1


def _link(edge: Mapping[str, Any]) -> Link:
    return Link(edge["written"], edge["edge_type"], edge["edge_context"], edge["heading"])


def _attributes(link: Link, order: int) -> dict[str, Any]:
    return {
        "edge_type": link.kind,
        "edge_context": link.context,
        "written": link.target,
        "heading": link.heading,
        "order": order,
    }


def _ghost(target: str) -> str:
    return f"ghost:{link_key(target)}"
