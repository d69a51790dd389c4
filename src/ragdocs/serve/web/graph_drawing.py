"""A drawing of a graph in few bytes: each mark and each kind of line is described once."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragdocs.serve.web import graph_layout
from ragdocs.serve.web.graph_layout import PlacedNode

# Kinds of links with a line of their own; all others look like mentions.
KINDS = ("mentions", "related_to", "plans", "touches", "impacts")
# Lanes whose nodes have the colour and the letter of their type, and the letters of the others.
TYPED = ("memory",)
LETTERS = {"docs": "§"}
ORDER = ("memory", "docs", "ghost")
# More lines hide each other, and a page with all of them would weigh too much.
MOST_LINES = 1_000
# A name as it is read out and found; the side has it in full.
LONGEST_NAME = 60

# Two positions in the list of nodes, the smaller one first.
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spot:
    """A node where it stands: its mark, and its name beside it or only read out."""

    node: Mapping[str, Any]
    position: PlacedNode
    mark: int

    @property
    def label(self) -> str:
        """The name that is drawn, if there is room for it."""
        if self.position.anchor == graph_layout.FAR:
            return ""
        return self.position.label

    @property
    def name(self) -> str:
        """The name that is read out, unless the drawn one is the same."""
        name = graph_layout.shortened(self.node["title"], LONGEST_NAME)
        if name == self.label:
            return ""
        return name


@dataclass(frozen=True, slots=True)
class Mark:
    """A shape with a letter in it, of one size."""

    number: int
    radius: int
    letter: str
    is_round: bool


@dataclass(frozen=True, slots=True)
class Type:
    """All nodes of one lane and type."""

    lane: str
    kind: str
    spots: Sequence[Spot]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the page draws, and how many links there are."""

    marks: Sequence[Mark]
    types: Sequence[Type]
    # Kinds of links with the line that goes through all links of that kind.
    lines: Mapping[str, str]
    drawn: int
    links: int


def draw(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Drawing:
    """Place nodes and links on the canvas."""
    numbers = {}
    names = []
    degrees = []
    for number, node in enumerate(nodes):
        numbers[node["id"]] = number
        names.append(node["title"])
        degrees.append(node["links"])
    by_kind: dict[str, dict[Pair, None]] = {kind: {} for kind in KINDS}
    for edge in edges:
        kind = edge["type"]
        if kind not in by_kind:
            kind = KINDS[0]
        first, second = sorted((numbers[edge["source"]], numbers[edge["target"]]))
        by_kind[kind][first, second] = None
    pairs = list(itertools.chain(*by_kind.values()))
    positions = graph_layout.layout(names, degrees, pairs)
    drawn = _fewer(by_kind, degrees)
    lines = {}
    for kind, some in drawn.items():
        if some:
            lines[kind] = _line(some, positions)
    marks, types = _types(nodes, positions)
    return Drawing(marks, types, lines, sum(map(len, drawn.values())), len(pairs))


def _fewer(
    by_kind: Mapping[str, Mapping[Pair, None]], degrees: Sequence[int]
) -> Mapping[str, Sequence[Pair]]:
    """Return the links that are drawn: the only ones of a node before those among many."""
    all_pairs = []
    drawn: dict[str, list[Pair]] = {}
    for kind, pairs in by_kind.items():
        drawn[kind] = []
        for pair in pairs:
            all_pairs.append((kind, pair))
    all_pairs.sort(key=lambda link: min(degrees[link[1][0]], degrees[link[1][1]]))
    for kind, pair in all_pairs[:MOST_LINES]:
        drawn[kind].append(pair)
    return drawn


def _line(pairs: Sequence[Pair], positions: Sequence[PlacedNode]) -> str:
    """Return one path through all links: it goes on from node to node as long as it can."""
    ends: dict[int, dict[int, None]] = defaultdict(dict)
    for first, second in pairs:
        ends[first][second] = None
        ends[second][first] = None
    parts = []
    for first, seconds in ends.items():
        while seconds:
            walk = [first]
            while ends[walk[-1]]:
                here = walk[-1]
                there, _ = ends[here].popitem()
                del ends[there][here]
                walk.append(there)
            points = [f"{positions[node].x} {positions[node].y}" for node in walk]
            parts.append("M" + " ".join(points))
    return "".join(parts)


def _types(
    nodes: Sequence[Mapping[str, Any]], positions: Sequence[PlacedNode]
) -> tuple[list[Mark], list[Type]]:
    """Return the shapes that are needed, and the nodes by lane and type, memories first."""
    marks: dict[tuple[int, str, bool], Mark] = {}
    spots: dict[tuple[str, str], list[Spot]] = defaultdict(list)
    for node, position in zip(nodes, positions, strict=True):
        lane = node["lane"] or "ghost"
        is_typed = lane in TYPED
        kind = ""
        if is_typed:
            kind = node["type"]
        letter = _letter(lane, kind)
        look = (position.radius, letter, is_typed)
        mark = marks.setdefault(look, Mark(len(marks), *look))
        spots[lane, kind].append(Spot(node, position, mark.number))
    order = sorted(spots, key=lambda type_: (ORDER.index(type_[0]), type_[1]))
    types = [Type(lane, kind, spots[lane, kind]) for lane, kind in order]
    return list(marks.values()), types


def _letter(lane: str, kind: str) -> str:
    if lane in TYPED:
        return (kind or "M")[:1].upper()
    return LETTERS.get(lane, "")
