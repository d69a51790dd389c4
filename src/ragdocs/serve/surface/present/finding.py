"""The answer of a search over all lanes as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.present import inline, listing, quote, superseded
from ragdocs.serve.surface.present import quality as present_quality
from ragdocs.serve.surface.present.docs import also, signals

# What is said beside a memory, where there is something to say.
FLAGS = (("branch_state", ", {}"), ("drift", ", links: {}"))


def by_lane(answer: Mapping[str, Any]) -> str:
    """Write the results of all lanes, or of the one that was named."""
    if "facets" not in answer:
        return present_quality.hits(answer)
    blocks = []
    for number, hit in enumerate(answer["result"], start=1):
        blocks.append(_block(f"{number}. ", hit))
    if not blocks and answer["below"]:
        blocks.append("nothing relevant; the best passage below the floor:")
        blocks.append(_block("", answer["below"]))
    count = len(answer["result"])
    return listing(blocks, answer["total"] - count, answer["notes"], "passages")


def _block(number: str, hit: Mapping[str, Any]) -> str:
    hit = inline(hit)
    heading = layouts.heading_of(hit["title"], hit["header_path"])
    kind = hit["lane"]
    if hit["lane"] == "memory":
        kind = f"memory, {hit['type']}, {hit['age']}"
    for name, pattern in FLAGS:
        if hit.get(name):
            kind += pattern.format(hit[name])
    reason = ""
    if "why" in hit:
        reason = f"   why: {hit['why']}\n"
    reason += also(hit.get("siblings"))
    head = f"{number}{hit['location']}:{hit['lines']} · {heading} · {kind}"
    return (
        f"{head} · score {hit['score']:.2f}\n"
        f"{reason}{superseded(hit)}{quote(hit['content'])}{signals(hit.get('signals'))}"
    )
