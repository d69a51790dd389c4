"""The load of a soak: a client that does everything, and somebody who edits the files."""

from __future__ import annotations

import random
import shutil
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.ledger import MEMORIES, WORDS, Ledger, Operation, Toll, paragraph

PAGES, NOTES, FOLDERS = 120, 24, 10
# How often the files are edited by hand; two of a hundred edits are a checkout of a whole folder.
PAUSE = 0.15
# So many own memories that searching has something to do, and so few that a long run does not grow.
MOST_FILES = 60
# Every so-manyeth memory that was written is searched for at once.
LOOKED_FOR = 5
SHARES = {
    "write": 35,
    "search_memories": 20,
    "search_docs": 14,
    "search_linked_memories": 8,
    "read_memory": 10,
    "read_doc": 5,
    "get_memory_stats": 4,
    "index_status": 2,
    "suggest_memory_merges": 1,
}
# What the two tools say of a file that is gone.
NOT_THERE = ("does not exist", "there is no document")


@dataclass(frozen=True)
class Call:
    """One call, what it writes, what it must find, and whether what it names may be gone."""

    tool: str
    arguments: Mapping[str, Any]
    operation: Operation | None = None
    wanted: str = ""
    fleeting: bool = False


@dataclass(kw_only=True)
class Client(Toll):
    """Thinks of calls and judges the answers."""

    ledger: Ledger
    tools: frozenset[str]
    _fresh: list[tuple[str, str]] = field(default_factory=list)

    def think(self) -> Call:
        """Think of the next call."""
        if self._fresh:
            name, query = self._fresh.pop()
            return Call(
                "search_memories", {"query": query, "limit": 5}, wanted=name.removesuffix(".md")
            )
        known = [tool for tool in SHARES if tool == "write" or tool in self.tools]
        tool = self.ledger.rng.choices(known, [SHARES[tool] for tool in known])[0]
        if tool == "write":
            operation = self.ledger.choose(MOST_FILES)
            return Call(operation.tool, operation.arguments, operation)
        return self._read(tool) if tool.startswith("read") else Call(tool, self._question(tool))

    def _read(self, tool: str) -> Call:
        rng = self.ledger.rng
        own = [name for name, state in self.ledger.states.items() if state is not None]
        if tool == "read_doc":
            return Call(tool, {"path": page(rng.randrange(PAGES))}, fleeting=True)
        if own and rng.random() < 0.5:
            return Call(tool, {"filename": rng.choice(own)})
        return Call(tool, {"filename": note(rng.randrange(NOTES))}, fleeting=True)

    def _question(self, tool: str) -> dict[str, Any]:
        if not tool.startswith("search"):
            return {}
        rng = self.ledger.rng
        asked = {
            "query": f"{rng.choice(WORDS)} {rng.choice(WORDS)}",
            "limit": rng.choice((1, 5, 20)),
        }
        return (
            {**asked, "target_document": f"src/{rng.choice(WORDS)}.py"}
            if "linked" in tool
            else asked
        )

    def hear(self, call: Call, answer: Mapping[str, Any]) -> None:
        """Believe an answer, and see whether it holds what it must."""
        self.counts["calls"] += 1
        if call.operation:
            self.ledger.acknowledge(call.operation, answer)
            written = [(name, state) for name, state in call.operation.after.items() if state]
            if self.ledger.counts["acknowledged"] % LOOKED_FOR == 0 and written:
                name, state = written[0]
                self._fresh.append((name, " ".join(state[-1].split()[:2])))
        if call.wanted:
            self.counts["searched at once"] += 1
            if not any(hit["memory_id"] == f"memory:{call.wanted}" for hit in answer["result"]):
                self.complain(
                    "missed",
                    f"{call.arguments} found {[hit['memory_id'] for hit in answer['result']]}",
                )

    def refuse(self, call: Call, reason: str) -> None:
        """Judge an error: not the server's fault where somebody removed what a call names."""
        self.counts["calls"] += 1
        if call.fleeting and any(words in reason for words in NOT_THERE):
            self.counts["told that it is gone"] += 1
        else:
            self.complain("errors", f"{call.tool} {str(call.arguments)[:200]}: {reason[:300]}")
            if call.operation:
                self.ledger.doubts.append(call.operation)


def page(number: int) -> str:
    return f"docs/f{number % FOLDERS}/{number}.md"


def note(number: int) -> str:
    return f"hand{number % 4}/{number}.md"


class Editor(threading.Thread):
    """Edits pages and notes as people do, and whole folders as git does, until it is stopped."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._rng = random.Random(seed)
        self._done = threading.Event()
        self._places = [root / page(n) for n in range(PAGES)] + [
            root / MEMORIES / note(n) for n in range(NOTES)
        ]
        self.edits = Counter[str]()
        for place in self._places:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._save(place)

    def run(self) -> None:
        while not self._done.wait(self._rng.uniform(0, 2 * PAUSE)):
            place = self._rng.choice(self._places)
            kind = self._rng.choices(
                ("rename", "in place", "touch", "delete", "checkout"), (40, 40, 10, 8, 2)
            )[0]
            self.edits[kind] += 1
            if kind == "checkout":
                self._check_out(place.parent)
            elif kind == "delete":
                place.unlink(missing_ok=True)
            elif kind == "touch" and place.exists():
                place.touch()
            else:
                self._save(place, by_rename=kind == "rename")

    def stop(self) -> None:
        """End, with every file in its place."""
        self._done.set()
        self.join()

    def _save(self, place: Path, *, by_rename: bool = False) -> None:
        number = self._rng.randrange(10**6)
        text = f"# About {place.stem}\n\n{paragraph(number)}\n"
        target = place.with_name(f".{place.name}.swp") if by_rename else place
        target.write_text(text)
        if by_rename:
            target.replace(place)

    def _check_out(self, folder: Path) -> None:
        shutil.rmtree(folder)
        folder.mkdir()
        for place in self._places:
            if place.parent == folder:
                self._save(place)
