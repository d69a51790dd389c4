"""The block of a document that a run replaces, and how costs grow with size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bench._measure import Row

# The curves: label, and the part and name of the row it is made of.
CURVES = {
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
        points = []
        for row in rows:
            if (row.part, row.name, row.corpus) == (part, name, "generated") and row.value > 0:
                points.append((float(row.chunks), row.value))
        if len(points) > 1:
            found[label] = sorted(points)
    return found


def growth(rows: Sequence[Row]) -> str:
    """Say by what factor each cost grows from the smallest to the largest size."""
    lines = []
    for label, points in curves(rows).items():
        (small, cheap), (large, dear) = points[0], points[-1]
        order = math.log(dear / cheap) / math.log(large / small)
        lines.append(
            f"- {label}: {cheap:.2f} ms at {small:,.0f} chunks, {dear:.2f} ms at {large:,.0f}: "
            f"{dear / cheap:.1f} x the cost for {large / small:.0f} x the chunks (exponent "
            f"{order:.2f})"
        )
    return "\n".join(lines)
