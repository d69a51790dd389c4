"""Answers about quality as text."""

from __future__ import annotations

from typing import Any

from ragdocs.serve.surface import present
from ragdocs.text.visible import line
from ragdocs.verbs.shapes import Explained


def hits(answer: Any) -> str:
    """Write the results of a search in either lane."""
    results = answer["result"]
    is_memory = bool(results) and "memory_id" in results[0]
    return present.memories(answer) if is_memory else present.documents(answer)


def explained(answer: Explained) -> str:
    """Write why a document was found or not."""
    rows = [f"{line(answer['path'])}: {line(answer['why'])}"]
    if answer["lines"]:
        words = ", ".join(map(line, answer["words"])) or "none"
        missing = ", ".join(map(line, answer["missing"])) or "none"
        rows += [
            f"  best passage: lines {answer['lines']}, score {answer['score']:.2f}",
            f"  words: {answer['keyword']:.2f}, number {answer['keyword_rank'] or 'none'}",
            f"  of the query in it: {words}; not in it: {missing}",
            f"  meaning: {answer['meaning']:.2f}, number {answer['meaning_rank'] or 'none'}",
        ]
    for signal in answer["signals"]:
        name = f"{signal['source']}[{signal['probe']}]"
        rows.append(f"  {name}: raw {signal['raw']:g}, share {signal['share']:+.4f}")
    return "\n".join(rows)
