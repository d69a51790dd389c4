"""Where the nodes of a graph and their names stand; networkx finds the positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 1000
HEIGHT = 700
MARGIN = 34
# Of a node without links, and what each doubling of its links adds.
LEAST_RADIUS = 7.0
RADIUS_STEP = 1.9
LARGEST_RADIUS = 17.0
# Graphs with more nodes have smaller ones.
ROOMY = 80
SMALLEST = 0.55
# Nodes without links stand in rows at the bottom, this far apart.
LONELY_STEP = (240.0, 36.0)
LONELY_A_ROW = 4
# Where the buttons are.
BUTTONS = (WIDTH - 60.0, 0.0, float(WIDTH), 124.0)
# Between the rims of two nodes.
GAP = 9.0
ITERATIONS = 90
PUSHES = 60
# Of a letter of a name, on the average, and of a line.
LETTER_WIDTH = 6.9
LINE_HEIGHT = 14
LONGEST_LABEL = 34
# The strength of the bond that keeps parts without links to each other from drifting apart.
TIE = 0.05
SEED = 7
HUB = -1
# The anchor of a name that there is no room for.
FAR = "far"

# Left, top, right, bottom.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node with its radius, and its name with the position of it relative to the node."""

    x: int
    y: int
    radius: int
    label: str
    label_x: int
    label_y: int
    # Where the name begins at its position: start, middle or end; FAR if there is no room for it.
    anchor: str


def layout(
    names: Sequence[str], degrees: Sequence[int], edges: Sequence[tuple[int, int]]
) -> list[PlacedNode]:
    """Return where each node stands; names of much linked nodes get room first."""
    if not names:
        return []
    scale = max(SMALLEST, min(1.0, math.sqrt(ROOMY / len(names))))
    radii = []
    for degree in degrees:
        radius = LEAST_RADIUS + RADIUS_STEP * math.log2(1 + degree)
        radii.append(round(scale * min(LARGEST_RADIUS, radius)))
    linked = sorted({end for edge in edges for end in edge})
    lonely = sorted(set(range(len(names))) - set(linked))
    rows = math.ceil(len(lonely) / LONELY_A_ROW)
    height = max(HEIGHT / 3, HEIGHT - rows * LONELY_STEP[1])
    positions = [(0.0, 0.0)] * len(names)
    for node, point in _positions(linked, edges, height).items():
        positions[node] = point
    for number, node in enumerate(lonely):
        positions[node] = _lonely_point(number, height)
    return _with_labels(names, degrees, _pushed_apart(positions, radii), radii)


def _lonely_point(number: int, top: float) -> tuple[float, float]:
    row, column = divmod(number, LONELY_A_ROW)
    x = MARGIN + column * LONELY_STEP[0]
    return x, min(HEIGHT - MARGIN, top + row * LONELY_STEP[1])


def _positions(
    nodes: Sequence[int], edges: Sequence[tuple[int, int]], height: float
) -> dict[int, tuple[float, float]]:
    """Place nodes by their links on the upper part of the canvas."""
    import networkx as nx

    if not nodes:
        return {}
    graph: Any = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    parts = list(nx.connected_components(graph))
    if len(parts) > 1:
        # A hub that is not drawn holds the parts together.
        for part in parts:
            graph.add_edge(HUB, max(part, key=graph.degree), weight=TIE)
    distance = 2.2 / math.sqrt(len(nodes))
    points = nx.spring_layout(graph, k=distance, iterations=ITERATIONS, seed=SEED)
    columns = _spread([float(points[node][0]) for node in nodes], WIDTH)
    rows = _spread([float(points[node][1]) for node in nodes], height)
    return dict(zip(nodes, zip(columns, rows, strict=True), strict=True))


def _spread(values: Sequence[float], length: float) -> list[float]:
    """Stretch values to a length; half of the way goes by their order, half by their size."""
    inner = length - 2 * MARGIN
    low = min(values)
    high = max(values)
    if len(values) == 1 or high == low:
        return [length / 2] * len(values)
    order = sorted(range(len(values)), key=lambda position: values[position])
    spread = [0.0] * len(values)
    for rank, position in enumerate(order):
        by_size = (values[position] - low) / (high - low)
        by_order = rank / (len(values) - 1)
        spread[position] = MARGIN + inner * (by_size + by_order) / 2
    return spread


def _pushed_apart(
    points: Sequence[tuple[float, float]], radii: Sequence[int]
) -> list[tuple[int, int]]:
    """Move nodes that lie on each other apart, step by step; no two have one position."""
    import numpy as np

    positions = np.array(points, dtype=float)
    sizes = np.array(radii)
    least = sizes[:, None] + sizes[None, :] + GAP
    np.fill_diagonal(least, 0.0)
    for _ in range(PUSHES):
        between = positions[:, None, :] - positions[None, :, :]
        distances = np.sqrt((between**2).sum(axis=2))
        overlap = np.clip(least - distances, 0.0, None)
        if not overlap.any():
            break
        directions = between / np.maximum(distances, 0.01)[:, :, None]
        positions += (directions * overlap[:, :, None]).sum(axis=1) * 0.4
        positions[:, 0] = np.clip(positions[:, 0], MARGIN, WIDTH - MARGIN)
        positions[:, 1] = np.clip(positions[:, 1], MARGIN, HEIGHT - MARGIN)
    apart: dict[tuple[int, int], None] = {}
    for left, top in positions:
        x = round(float(left))
        y = round(float(top))
        while (x, y) in apart:
            x += 1
        apart[x, y] = None
    return list(apart)


def _with_labels(
    names: Sequence[str],
    degrees: Sequence[int],
    positions: Sequence[tuple[int, int]],
    radii: Sequence[int],
) -> list[PlacedNode]:
    """Give each name the first position that is free: right, left, below, above."""
    taken: list[Box] = [BUTTONS]
    for (x, y), radius in zip(positions, radii, strict=True):
        taken.append((x - radius, y - radius, x + radius, y + radius))
    nodes: dict[int, PlacedNode] = {}
    for node in sorted(range(len(names)), key=lambda number: -degrees[number]):
        label = shortened(names[node], LONGEST_LABEL)
        x, y = positions[node]
        choices = _choices(len(label) * LETTER_WIDTH, radii[node])
        chosen = (*choices[0][:2], FAR)
        for label_x, label_y, anchor, (left, top, right, bottom) in choices:
            box = (x + left, y + top, x + right, y + bottom)
            if _is_inside(box) and not _is_taken(box, taken):
                taken.append(box)
                chosen = (label_x, label_y, anchor)
                break
        label_x, label_y, anchor = chosen
        nodes[node] = PlacedNode(x, y, radii[node], label, x + label_x, y + label_y, anchor)
    return [nodes[node] for node in range(len(names))]


def shortened(name: str, most: int) -> str:
    """Return a name of so many characters."""
    if len(name) <= most:
        return name
    return name[: most - 1].rstrip() + "…"


def _choices(width: float, radius: int) -> list[tuple[int, int, str, Box]]:
    """Return the positions of a name around a node: where it is anchored, and its box."""
    half = LINE_HEIGHT / 2
    away = radius + 7
    below = radius + LINE_HEIGHT
    above = -radius - 6
    return [
        (away, 4, "start", (away, -half, away + width, half)),
        (-away, 4, "end", (-away - width, -half, -away, half)),
        (0, below, "middle", (-width / 2, below - 11, width / 2, below + 3)),
        (0, above, "middle", (-width / 2, above - 11, width / 2, above + 3)),
    ]


def _is_inside(box: Box) -> bool:
    left, top, right, bottom = box
    return left >= 2 and top >= 2 and right <= WIDTH - 2 and bottom <= HEIGHT - 2  # noqa: PLR2004


def _is_taken(box: Box, taken: Sequence[Box]) -> bool:
    left, top, right, bottom = box
    for other_left, other_top, other_right, other_bottom in taken:
        is_beside = other_right <= left or other_left >= right
        if not is_beside and other_bottom > top and other_top < bottom:
            return True
    return False
