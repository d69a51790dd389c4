"""Answers about quality and the state of the index as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragdocs.serve.surface.present import inline, joined, note_lines, plural, sizes
from ragdocs.serve.surface.present.docs import documents
from ragdocs.serve.surface.present.memories import memories
from ragdocs.serve.surface.shapes.quality import (
    Explained,
    Linted,
    ProblemShape,
    Status,
    Verified,
    VerifiedLane,
)
from ragdocs.system.patterns import later
from ragdocs.text.visible import line

# Paths of each kind that are listed where an index is behind its files.
MOST_PATHS = 20
# What follows the name of a model in its identity; the name itself may have a slash in it.
_RECIPE = later(r"/(?:[\w-]+:|words\+).*")


def hits(answer: Any) -> str:
    """Write the results of a search in either lane."""
    results = answer["result"]
    if results and "memory_id" in results[0]:
        return memories(answer)
    return documents(answer)


def explained(answer: Explained) -> str:
    """Write why a document was found or not."""
    rows = [f"{line(answer['path'])}: {line(answer['why'])}"]
    if answer["lines"]:
        words = joined(list(map(line, answer["words"])))
        missing = joined(list(map(line, answer["missing"])))
        rows += [
            f"  best passage: lines {answer['lines']}, score {answer['score']:.2f}",
            f"  words: {answer['keyword']:.2f}, number {answer['keyword_rank'] or 'none'}",
            f"  words of the query: {words}; missing: {missing}",
            f"  meaning: {answer['meaning']:.2f}, number {answer['meaning_rank'] or 'none'}",
        ]
    for signal in answer["signals"]:
        name = f"{signal['source']}[{signal['probe']}]"
        rows.append(f"  {name}: raw {signal['raw']:g}, share {signal['share']:+.4f}")
    return "\n".join(rows)


def status(answer: Status) -> str:
    """Write the state of the index."""
    answer = inline(answer)
    readiness = "indexing"
    if answer["ready"]:
        readiness = "ready"
    watcher = f"file watcher: {answer['watcher']}"
    if answer["heartbeat"]:
        watcher += f", last seen alive {answer['heartbeat']}"
    rows = [f"ragdocs {answer['version']} · {answer['project']} · {readiness} · {watcher}"]
    for lane in answer["lanes"]:
        rows += [
            f"{lane['lane']}: {sizes(lane)}, {plural(lane['links'], 'link')}",
            f"   root: {lane['root']}",
            f"   embedder: {short_model(lane['embedder'])}, vector search: {lane['vector_search']}",
        ]
        for note in lane["notes"]:
            rows.append(f"   note: {note}")
        for path, reason in lane["problems"].items():
            rows.append(f"   problem: {path}: {reason}")
    return "\n".join(rows)


def short_model(identity: str) -> str:
    """Return the name of a model without its file, its checksum and how it is used."""
    return _RECIPE.sub("", identity, count=1)


def linted(answer: Linted) -> str:
    """Write one problem a line, with path and line as editors and terminals know them."""
    rows = []
    for row in answer["result"]:
        note = "note: " if row["level"] == "note" else ""
        rows.append(f"{_place(row)}: {note}{line(row['problem'])}")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more are not listed")
    rows = rows or ["no problems found"]
    if "repairs" in answer:
        rows += _repairs(answer)
    return "\n".join([*rows, *note_lines(answer["notes"])])


def _place(row: ProblemShape) -> str:
    address = line(row["path"])
    if row["line"]:
        address += f":{row['line']}"
    return address


def _repairs(answer: Linted) -> list[str]:
    """Write what was repaired, or the diff of what would be."""
    repairs = answer.get("repairs", [])
    if not repairs:
        return ["nothing to repair"]
    rows = []
    for row in repairs:
        rows.append(f"{_place(row)}: {row['rule']}: {line(row['problem'])}")
    if answer.get("is_repaired"):
        return [f"repaired {plural(len(repairs), 'place')}, in one change:", *rows]
    return [f"would repair {plural(len(repairs), 'place')}:", *rows, answer.get("diff", "")]


def verified(answer: Verified) -> str:
    """Write how each index stands to its files, and what mends it."""
    lines: list[str] = []
    for name, lane in answer["lanes"].items():
        lines += _verified_lane(name, lane)
    if not answer["identical"]:
        lines.append("`ragdocs index` brings the index up to its files")
    return "\n".join(lines)


def _verified_lane(name: str, lane: VerifiedLane) -> list[str]:
    compared = lane["compared"].items()
    counts = ", ".join(plural(count, what.removesuffix("s")) for what, count in compared)
    if not counts:
        lines = [f"{name}: BEHIND its files"]
    elif lane["difference"]:
        lines = [f"{name}: DIFFERENT ({counts})"]
    else:
        lines = [f"{name}: identical ({counts})"]
    lines += _behind(lane["stale"], "changed since it was indexed")
    lines += _behind(lane["missing"], "not indexed")
    lines += _behind(lane["extra"], "indexed, but gone")
    if counts and lane["difference"]:
        lines.append(f"  first difference: {line(lane['difference'])}")
    return lines


def _behind(paths: Sequence[str], meaning: str) -> list[str]:
    lines = [f"  {line(path)}: {meaning}" for path in paths[:MOST_PATHS]]
    if len(paths) > MOST_PATHS:
        lines.append(f"  and {len(paths) - MOST_PATHS} more {meaning}")
    return lines
