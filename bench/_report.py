"""Results for people: the block of a document that a run replaces.

And a plot of cost against size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench._measure import Row

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 60, 190, 20, 40
COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#8a6d00")
# The curves: label, and the part and name of the row it is made of.
CURVES = {
    "keywords, warm": ("keywords", "match, warm, cpu p50"),
    "Whoosh's own": ("keywords", "Whoosh's own BM25F, cpu p50"),
    "vectors": ("vectors", "nearest, cpu p50"),
    "search, verb": ("search", "verb, warm, cpu p50"),
    "search over MCP": ("search", "over MCP, cpu p50"),
}


def replace_block(document: Path, name: str, body: str) -> None:
    """Put a body between the two comments that name a block."""
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = document.read_text(encoding="utf-8").partition(opening)
    _, found, after = rest.partition(closing)
    if not found:
        raise SystemExit(f"{document.name} has no {opening} … {closing}")
    document.write_text(f"{before}{opening}\n{body}\n{closing}{after}", encoding="utf-8")


def curves(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Return milliseconds against chunks for every curve, on the generated corpora."""
    found = {}
    for label, (part, name) in CURVES.items():
        chosen = [
            r
            for r in rows
            if (r.part, r.name, r.corpus) == (part, name, "generated") and r.value > 0
        ]
        if len(chosen) > 1:
            found[label] = sorted((float(r.chunks), r.value) for r in chosen)
    return found


def growth(rows: Sequence[Row]) -> str:
    """Say by what factor each cost grows from the smallest to the largest size."""
    lines = []
    for label, points in curves(rows).items():
        (small, cheap), (large, dear) = points[0], points[-1]
        order = math.log(dear / cheap) / math.log(large / small)
        lines.append(
            f"- {label}: {cheap:.2f} ms at {small:,.0f} chunks, {dear:.2f} ms at {large:,.0f}: "
            f"{dear / cheap:.1f} x the cost for {large / small:.0f} x the chunks (exponent {order:.2f})"
        )
    return "\n".join(lines)


def plot(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Draw cost against size, both axes logarithmic, as SVG."""
    xs = [math.log10(x) for points in found.values() for x, _ in points]
    ys = [math.log10(y) for points in found.values() for _, y in points]
    left, right, low, high = min(xs), max(xs), math.floor(min(ys)), math.ceil(max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - left) / (right - left) * (WIDTH - LEFT - RIGHT) + LEFT
        down = HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return round(across, 1), round(down, 1)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12"><title>Processor milliseconds a search against chunks in the index</title>'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        )
    ]
    for power in range(low, high + 1):
        _, down = place(left, power)
        parts.append(f'<path d="M{LEFT} {down}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{down + 4}" text-anchor="end">{10.0**power:g} ms</text>'
        )
    for power in range(math.ceil(left), math.floor(right) + 1):
        across, _ = place(power, low)
        parts.append(f'<path d="M{across} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{across}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power:,} chunks</text>'
        )
    for number, ((label, points), colour) in enumerate(zip(found.items(), COLOURS, strict=False)):
        drawn = [place(math.log10(x), math.log10(y)) for x, y in points]
        path = " L".join(f"{across} {down}" for across, down in drawn)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across}" cy="{down}" r="3" fill="{colour}"/>' for across, down in drawn
        ]
        level = TOP + 12 + 20 * number
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 16}" y="{level - 9}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(f'<text x="{WIDTH - RIGHT + 32}" y="{level}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
