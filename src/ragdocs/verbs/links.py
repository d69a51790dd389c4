"""The links of a project: memories, documents and what they name, as nodes and edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import link_key, link_keys
from ragdocs.text.link_kinds import TOUCHES
from ragdocs.types import Document, Filter, Link
from ragdocs.verbs.memories.find import beginning
from ragdocs.verbs.references import find

# A target that no indexed text has; the rest of the id is the name as links are compared.
GHOST = "ghost:"
MOST_NODES = 300
MOST_STEPS = 4
# Memories that must name a target before it counts as a gap in the documentation.
GAP_MEMORIES = 2
# Memories that are listed for one gap.
MOST_NAMING = 5


@dataclass(frozen=True, slots=True)
class Node:
    """A text, or a target that is not indexed; such a one has no document."""

    id: str
    # The target as the first link to it has it.
    name: str
    document: Document | None
    # The number of other nodes that it is linked with, in either direction.
    links: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A link from one node to another."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, slots=True)
class Centre:
    """The node that was asked about: how its text begins, and every link of it."""

    node: Node
    beginning: str
    out: Sequence[tuple[Node, str]]
    back: Sequence[tuple[Node, str]]


@dataclass(frozen=True, slots=True)
class Graph:
    """Some nodes with the links between them; `total` counts all that were asked for."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    total: int
    centre: Centre | None


@dataclass(frozen=True, slots=True)
class DoubtfulLink:
    """A link that leads nowhere, or to several texts, and those texts."""

    document: Document
    link: Link
    candidates: Sequence[Document] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A target that memories name and no document covers; `is_file` says whether it exists.

    `oldest` and `newest` are the days of the memories that name it, where they have one.
    """

    target: str
    memories: Sequence[Document]
    total: int
    is_file: bool
    oldest: datetime | None = None
    newest: datetime | None = None


@dataclass(frozen=True, slots=True)
class LinkProblems:
    """Links that a person should look at."""

    broken: Sequence[DoubtfulLink]
    ambiguous: Sequence[DoubtfulLink]
    gaps: Sequence[Gap]


@dataclass(frozen=True)
class LinkMap:
    """All links of some documents, resolved by the names that the documents have."""

    documents: Mapping[str, Document]
    # Ids of documents that are archived or expired: links lead to them, but they are not shown.
    hidden: frozenset[str]
    # Where the lanes of documents are below the project's folder.
    bases: Mapping[str, str]

    @cached_property
    def owners(self) -> Mapping[str, Sequence[str]]:
        """The ids of the documents that have a name; one whose path it is has it alone."""
        by_name: dict[str, list[str]] = defaultdict(list)
        by_path: dict[str, list[str]] = {}
        for document in self.documents.values():
            base = self.bases.get(document.lane, "")
            paths = [document.path, document.path.removesuffix(".md")]
            if base:
                paths.append(f"{base}/{document.path}")
            for path in paths:
                by_path.setdefault(link_key(path), [document.id])
            for name in link_keys(document):
                by_name[name].append(document.id)
        return {**by_name, **by_path}

    @cached_property
    def edges(self) -> Sequence[Edge]:
        """Every link once for each kind, without those of a text to itself."""
        edges: dict[Edge, None] = {}
        for document in self.documents.values():
            if document.id in self.hidden:
                continue
            for link in document.links:
                for target in self.targets(link):
                    if target != document.id and target not in self.hidden:
                        edges[Edge(document.id, target, link.kind)] = None
        return list(edges)

    @cached_property
    def neighbours(self) -> Mapping[str, set[str]]:
        """The nodes that each node is linked with, in either direction."""
        neighbours: dict[str, set[str]] = defaultdict(set)
        for edge in self.edges:
            neighbours[edge.source].add(edge.target)
            neighbours[edge.target].add(edge.source)
        return neighbours

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The targets that are not indexed, as the first link to each of them has it."""
        names: dict[str, str] = {}
        for document in self.documents.values():
            if document.id in self.hidden:
                continue
            for link in document.links:
                key = link_key(link.target)
                if key not in self.owners:
                    names.setdefault(f"{GHOST}{key}", link.target)
        return names

    def targets(self, link: Link) -> Sequence[str]:
        """Return the ids of the nodes that a link leads to."""
        key = link_key(link.target)
        return self.owners.get(key) or [f"{GHOST}{key}"]

    def node(self, node_id: str) -> Node:
        """Return a node by its id."""
        document = self.documents.get(node_id)
        name = document.path if document else self.names[node_id]
        return Node(node_id, name, document, len(self.neighbours.get(node_id, ())))


@dataclass
class Links:
    """What can be asked about the links of all lanes that are open."""

    corpora: Mapping[str, Corpus]
    root: Path
    clock: Callable[[], datetime]
    # Names of 10,000 texts take 0.4 s to resolve, so that is done once for the same texts.
    _latest: LinkMap | None = None

    def graph(
        self,
        around: str = "",
        *,
        steps: int = 2,
        where: Filter | None = None,
        ghosts: bool = True,
        limit: int = 80,
    ) -> Graph:
        """Return the nodes near one node, near those that pass a filter, or the most linked."""
        if not 1 <= limit <= MOST_NODES:
            raise ValidationError(f"limit is {limit}", f"Ask for 1 to {MOST_NODES} nodes")
        if not 1 <= steps <= MOST_STEPS:
            raise ValidationError(f"steps is {steps}", f"Go 1 to {MOST_STEPS} steps")
        links = self._map()
        centre = None
        if around:
            node_id = self._node_id(links, around)
            centre = self._centre(links, node_id)
            order = _near(links, [node_id], steps)
        elif where is not None and where != Filter():
            order = _near(links, self._passing(links, where), 1)
        else:
            order = _most_linked(links)
        if not ghosts:
            order = [node for node in order if not node.startswith(GHOST)]
        chosen = dict.fromkeys(order[:limit])
        edges = []
        for edge in links.edges:
            if edge.source in chosen and edge.target in chosen:
                edges.append(edge)
        return Graph([links.node(node) for node in chosen], edges, len(order), centre)

    def problems(self) -> LinkProblems:
        """Return broken and ambiguous links of memories, and gaps in the documentation."""
        links = self._map()
        ambiguous: list[DoubtfulLink] = []
        naming: dict[str, list[DoubtfulLink]] = defaultdict(list)
        covered: set[str] = set()
        for document, link in _written_links(links):
            ids = links.targets(link)
            if not self.corpora[document.lane].lane.writable:
                covered.update(ids)
            elif ids[0].startswith(GHOST):
                naming[ids[0]].append(DoubtfulLink(document, link))
            elif len(ids) > 1:
                candidates = [links.documents[owner] for owner in ids]
                ambiguous.append(DoubtfulLink(document, link, candidates))
        broken: list[DoubtfulLink] = []
        gaps: list[Gap] = []
        for node, uses in naming.items():
            target = uses[0].link.target
            is_file = self._is_file(target)
            if len(uses) >= GAP_MEMORIES and node not in covered:
                gaps.append(_gap(target, [use.document for use in uses], is_file=is_file))
            elif not is_file and _is_path(target):
                broken += uses
        gaps.sort(key=lambda gap: (-gap.total, gap.target))
        return LinkProblems(broken, ambiguous, gaps)

    def notes(self) -> list[str]:
        """Say what a reader should know about the state of the indexes."""
        notes: dict[str, None] = {}
        for corpus in self.corpora.values():
            if corpus.unread:
                notes.update(dict.fromkeys(corpus.notes()))
        return list(notes)

    def resolved(self) -> LinkMap:
        """Return all links of the lanes as they are now."""
        return self._map()

    def _map(self) -> LinkMap:
        documents: dict[str, Document] = {}
        bases = {}
        hidden = set()
        now = self.clock()
        for name, corpus in self.corpora.items():
            bases[name] = corpus.lane.base
            for document in corpus.documents():
                documents[document.id] = document
                is_expired = document.expires_at is not None and document.expires_at <= now
                if is_expired or document.status in corpus.lane.hidden:
                    hidden.add(document.id)
        latest = self._latest
        if latest and latest.documents == documents and latest.hidden == hidden:
            return latest
        self._latest = LinkMap(documents, frozenset(hidden), bases)
        return self._latest

    def _node_id(self, links: LinkMap, name: str) -> str:
        """Return the node that is meant by an id, a path or the name in a link."""
        key = f"{GHOST}{link_key(name.removeprefix(GHOST))}"
        if name in links.documents:
            return name
        if key in links.names:
            return key
        for corpus in self.corpora.values():
            document = find(corpus, name)
            if document is not None and document.id in links.documents:
                return document.id
        owners = links.owners.get(link_key(name), ())
        if len(owners) == 1:
            return owners[0]
        raise NotFoundError(f"no text and no link is named {name[:80]!r}", "Leave `around` out")

    def _centre(self, links: LinkMap, node_id: str) -> Centre:
        node = links.node(node_id)
        text = ""
        if node.document is not None:
            text = beginning(self.corpora[node.document.lane], node.document)
        out = []
        back = []
        for edge in links.edges:
            if edge.source == node_id:
                out.append((links.node(edge.target), edge.kind))
            elif edge.target == node_id:
                back.append((links.node(edge.source), edge.kind))
        return Centre(node, text, out, back)

    def _passing(self, links: LinkMap, where: Filter) -> list[str]:
        """Return the ids of the documents that pass a filter, the most linked first."""
        ids = []
        for corpus in self.corpora.values():
            for document in corpus.documents(where):
                if document.id not in links.hidden:
                    ids.append(document.id)
        return sorted(ids, key=_by_links(links))

    def _is_file(self, target: str) -> bool:
        try:
            return (self.root / target).exists()
        except (OSError, ValueError):
            return False


def _near(links: LinkMap, seeds: Sequence[str], steps: int) -> list[str]:
    """Return nodes by their distance from the first ones, then the most linked first."""
    order = dict.fromkeys(seeds)
    last: Iterable[str] = seeds
    for _ in range(steps):
        near: set[str] = set()
        for node in last:
            near.update(links.neighbours.get(node, ()))
        last = sorted(near - order.keys(), key=_by_links(links))
        order.update(dict.fromkeys(last))
    return list(order)


def _most_linked(links: LinkMap) -> list[str]:
    """Return all nodes, the most linked first; texts without any link are the last."""
    nodes = {*links.documents, *links.names} - links.hidden
    return sorted(nodes, key=_by_links(links))


def _by_links(links: LinkMap) -> Callable[[str], tuple[int, str]]:
    def order(node: str) -> tuple[int, str]:
        return -len(links.neighbours.get(node, ())), node

    return order


def _written_links(links: LinkMap) -> Iterator[tuple[Document, Link]]:
    """Yield each document's first link to each target, without files that were being changed."""
    for document in links.documents.values():
        if document.id in links.hidden:
            continue
        seen = set()
        for link in document.links:
            key = link_key(link.target)
            is_listed = link.kind == TOUCHES or link.target.endswith("/*")
            if key not in seen and not is_listed:
                seen.add(key)
                yield document, link


def _gap(target: str, documents: Sequence[Document], *, is_file: bool) -> Gap:
    """Return a gap with some of the memories that name it, and their ages."""
    moments = []
    for document in documents:
        moment = document.created_at or document.modified_at
        if moment is not None:
            moments.append(moment)
    return Gap(
        target,
        documents[:MOST_NAMING],
        len(documents),
        is_file,
        min(moments, default=None),
        max(moments, default=None),
    )


def _is_path(target: str) -> bool:
    """Tell whether a target is meant as a file; a plain name may be a text still to be written."""
    name = target.rpartition("/")[2]
    return "/" in target or "." in name
