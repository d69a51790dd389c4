"""What was promised, what is in doubt, and whether the files keep it."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.config import load
from ragdocs.errors import RagdocsError
from ragdocs.stores.files.history import History, version_of
from ragdocs.verbs.quality.health import compare
from ragdocs.workspace import Workspace

# Words that no detector of secrets takes for one.
WORDS = [
    "alder", "amber", "anchor", "apple", "april", "aspen", "autumn", "bamboo", "barley", "basin",
    "beacon", "birch", "bridge", "candle", "canyon", "cedar", "cherry", "cliff", "clover",
    "copper", "coral", "cotton", "crane", "ember",
]  # fmt: skip
SIZES = (8, 8, 8, 8, 30, 30, 60, 300)
MEMORIES = ".memories"
_FRONTMATTER = re.compile(r"---\n.*?\n---\n\n?", re.DOTALL)
ENTRY = re.compile(r"entry (\d+) has (\d+) words ")

# A memory as its paragraphs; none where there is no file.
State = tuple[str, ...] | None


@functools.lru_cache(maxsize=8192)
def paragraph(number: int, size: int = 0) -> str:
    """Return the one text of this number and size, so that a part of it is known as torn."""
    rng = random.Random(number)
    words = rng.choices(WORDS, k=size or rng.choice(SIZES))
    return f"entry {number} has {len(words)} words {' '.join(words)} [[src/{words[0]}.py]] end {number}"


def is_whole(text: str) -> bool:
    """Tell whether a paragraph is one that was written, to the last letter."""
    found = ENTRY.match(text)
    return found is not None and text in {
        paragraph(int(found[1])),
        paragraph(int(found[1]), int(found[2])),
    }


def paragraphs(text: str) -> tuple[str, ...]:
    """Cut a memory into its paragraphs, without its frontmatter."""
    return tuple(_FRONTMATTER.sub("", text, count=1).split("\n\n"))


def torn(text: str) -> list[str]:
    """List the paragraphs of a memory that are not whole."""
    return [part[:80] for part in paragraphs(text) if not is_whole(part)]


@dataclass
class Toll:
    """Counts what was done and what it cost, and the first words on every harm."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: Toll) -> None:
        self.counts.update(other.counts)
        self.problems += other.problems

    def complain(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.problems.append(f"{kind}: {what}")


@dataclass(frozen=True)
class Operation:
    """One call and what every file it touches is after it."""

    tool: str
    arguments: Mapping[str, Any]
    after: Mapping[str, State]


@dataclass(kw_only=True)
class Ledger(Toll):
    """The files of one project as their writer knows them; no file has two calls under way."""

    root: Path
    rng: random.Random
    prefix: str = "m"
    states: dict[str, State] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    # Paths in the trash, and versions in the history, that an answer promised.
    discarded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    earlier: dict[str, tuple[str, ...]] = field(default_factory=dict)
    under_way: dict[int, Operation] = field(default_factory=dict)
    # Calls of which nobody knows whether they were made.
    doubts: list[Operation] = field(default_factory=list)
    _last: int = 0

    def choose(self, most_files: int = 16) -> Operation:
        """Think of a call on files that nobody is writing."""
        busy = {name for operation in self.under_way.values() for name in operation.after}
        free = [
            name for name, state in self.states.items() if state is not None and name not in busy
        ]
        alive = sum(state is not None for state in self.states.values())
        self._last += 1
        text = paragraph(self._last + 1_000_000 * (ord(self.prefix[-1]) - 96))
        kind = self.rng.choices(("create", "update", "append", "delete", "merge"), (3, 3, 4, 1, 1))[
            0
        ]
        if kind == "create" or len(free) < 3 or (kind == "append" and alive < 5):
            if alive < most_files:
                return self._create(text)
            kind = "delete"
        if kind == "merge":
            return self._merge(self.rng.sample(free, 3), text)
        name = self.rng.choice(free)
        if kind == "delete":
            return Operation("delete_memory", {"filename": name}, {name: None})
        if kind == "update":
            return Operation("update_memory", {"filename": name, "content": text}, {name: (text,)})
        old = self.states[name]
        assert old is not None
        return Operation("append_memory", {"filename": name, "content": text}, {name: (*old, text)})

    def _create(self, text: str) -> Operation:
        name = f"{self.prefix}{self._last}.md"
        name = f"{WORDS[self._last % 3]}/{name}" if self._last % 4 == 0 else name
        return Operation(
            "create_memory", {"filename": name, "content": text, "tags": ["fault"]}, {name: (text,)}
        )

    def _merge(self, names: list[str], text: str) -> Operation:
        onto_source = self.rng.random() < 0.5
        target = names[0] if onto_source else f"{self.prefix}{self._last}-merged.md"
        arguments = {"source_files": names, "target_file": target, "summary_content": text}
        return Operation("merge_memories", arguments, {**dict.fromkeys(names), target: (text,)})

    def acknowledge(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        """Believe an answer: from now on the files have to be so."""
        self.counts["acknowledged"] += 1
        self.counts[operation.tool] += 1
        gone = answer.get("moved_to") or []
        gone = [gone] if isinstance(gone, str) else gone
        removed = [name for name, state in operation.after.items() if state is None]
        for name, place in zip(removed, gone, strict=True):
            before = self.states[name]
            assert before is not None
            self.discarded[place] = before
        for name, state in operation.after.items():
            before = self.states.get(name)
            if before is not None and name in self.versions:
                self.earlier[self.versions.pop(name)] = before
            self.states[name] = state
            if state is not None:
                self.versions[name] = answer["version"]

    def check(self) -> None:
        """Compare the files with what was acknowledged; the rest is whole or not there."""
        for operation in (*self.under_way.values(), *self.doubts):
            self._settle(operation)
        self.under_way.clear()
        self.doubts.clear()
        for name, state in self.states.items():
            self._compare(name, state)
        known = {name for name, state in self.states.items() if state is not None}
        for name in set(self.on_disk()) - known:
            self.complain("lost", f"{name} was discarded and is there")

    def _settle(self, operation: Operation) -> None:
        found = {name: self._state(name) for name in operation.after}
        before = {name: self.states.get(name) for name in operation.after}
        if found == dict(operation.after):
            self.counts["in doubt, made"] += 1
        elif found == before:
            self.counts["in doubt, not made"] += 1
        else:
            kind = (
                "torn"
                if any(not is_whole(part) for state in found.values() for part in state or ())
                else "lost"
            )
            self.complain(kind, f"{operation.tool} {operation.arguments}: {found}")
        for name, state in found.items():
            was = before[name]
            if state != was:
                version = self.versions.pop(name, None)
                if was is not None and version:
                    self.earlier[version] = was
            self.states[name] = state

    def _compare(self, name: str, state: State) -> None:
        found = self._state(name)
        if found != state:
            damaged = any(not is_whole(part) for part in found or ())
            self.complain(
                "torn" if damaged else "lost",
                f"{name} is {str(found)[:300]}, not {str(state)[:300]}",
            )
        elif state is not None and self.versions.get(name, "") not in {
            "",
            version_of(self._place(name).read_bytes()),
        }:
            self.complain("lost", f"{name} has another version than was answered")

    def check_kept(self) -> None:
        """Look for everything that was discarded or overwritten in trash and history."""
        for place, state in self.discarded.items():
            self.counts["discarded"] += 1
            try:
                if paragraphs(Path(place).read_text()) != state:
                    self.complain("torn", f"{place} in the trash")
            except OSError:
                self.complain("lost", f"{place} in the trash")
        history = History(self.root / MEMORIES)
        for version, state in self.earlier.items():
            self.counts["overwritten"] += 1
            try:
                if paragraphs(history.recover(version).decode()) != state:
                    self.complain("torn", f"{version} in the history")
            except RagdocsError as error:
                self.complain("lost", f"{version} in the history: {error}")

    def _state(self, name: str) -> State:
        try:
            return paragraphs(self._place(name).read_text())
        except FileNotFoundError:
            return None

    def _place(self, name: str) -> Path:
        return self.root / MEMORIES / name

    def on_disk(self) -> Iterator[str]:
        """Name the memories of this ledger that are there."""
        folder = self.root / MEMORIES
        for place in folder.rglob(f"{self.prefix}*.md"):
            name = place.relative_to(folder).as_posix()
            if not name.startswith("."):
                yield name


def difference(root: Path, *settings: str) -> str:
    """Open a project as a start does and verify its index against the files."""
    flags = {
        "embedding.model": "hash",
        "memory.enabled": "true",
        **dict(s.split("=", 1) for s in settings),
    }
    workspace = Workspace(load(root, project=root, flags=flags))
    workspace.load()
    workspace.sync()
    workspace.embed()
    found = []
    for name, open_lane in workspace.open_lanes.items():
        one = compare(open_lane.index.contents(), workspace.rebuilt(name).contents())
        found += [f"{name}: {one.difference}"] if one.difference else []
    return "; ".join(found)
