"""Random changes of sections and definitions in real repositories, compared with a slow oracle."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.living import test_histories
from tests.living.repositories import RANDOM_HISTORIES
from tests.living.test_histories import Note, Operation

from ragdocs.text.headings import STEP
from ragdocs.text.parts import LIKENESS

SUFFIXES = ("md", "py")
PARTS = 3
# Below the line with the name; the first of them never changes.
BODY = 5
OPERATIONS = (
    *("edit", "edit", "retitle", "retitle", "drop", "rename", "remove", "rename_and_retitle"),
    *("commit", "write", "write", "verify", "lose", "branch", "switch", "merge", "forget"),
)
steps = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 7), st.integers(0, 40)),
    min_size=3,
    max_size=9,
)


@dataclass
class PartNote(Note):
    """A memory about a part of a file: which one, and its name in the link."""

    part: int
    title: str


class PartStory(test_histories.Story):
    """A story of a document with sections and a module with functions."""

    notes: list[PartNote]  # type: ignore[assignment]

    def begin(self) -> None:
        for identity, suffix in enumerate(SUFFIXES):
            rows = [f"# file {identity}", ""]
            for part in range(PARTS):
                rows.append(heading(suffix, f"part_{part}"))
                rows.append(line(suffix, f"mark {part} of {identity}"))
                for number in range(1, BODY):
                    rows.append(line(suffix, f"row {number} of {part} of {identity}"))
                rows.append("")
            self.repository.write(f"src/{identity}.{suffix}", "\n".join(rows))

    # --- operations ---

    def edit(self, number: int, choice: int) -> None:
        path, start, rows = self.part(number, choice)
        if path:
            row = start + 2 + choice % (BODY - 1)
            rows[row] = line(path.rpartition(".")[2], f"changed {next(self.names)}")
            self.repository.write(path, "\n".join(rows))

    def retitle(self, number: int, choice: int) -> None:
        path, start, rows = self.part(number, choice)
        if path:
            rows[start] = heading(path.rpartition(".")[2], f"part_{next(self.names)}_again")
            self.repository.write(path, "\n".join(rows))

    def drop(self, number: int, choice: int) -> None:
        path, start, rows = self.part(number, choice)
        if path:
            self.repository.write(path, "\n".join(rows[:start] + rows[start + BODY + 2 :]))

    def rename_and_retitle(self, number: int, choice: int) -> None:
        """Rename a file and a part of it in one commit."""
        path = self.where(number % len(SUFFIXES))
        if path:
            self.repository.commit()
            suffix = path.rpartition(".")[2]
            self.repository.git("mv", path, f"src/renamed-{next(self.names)}.{suffix}")
            self.retitle(number, choice)
            self.repository.commit()

    def rename(self, number: int, choice: int) -> None:
        super().rename(number % len(SUFFIXES), choice)

    def remove(self, number: int, choice: int) -> None:
        super().remove(number % len(SUFFIXES), choice)

    def write(self, number: int, choice: int) -> None:
        path, start, rows = self.part(number, choice)
        if not path:
            return
        commit = self.repository.commit()
        name = f"note-{next(self.names)}.md"
        title = titled(rows[start])
        self.workspace.memories.create(name, f"About [[{path}#{title}]].\n", [])
        branch = self.repository.git("branch", "--show-current")
        text = "\n".join(rows[start : start + BODY + 1])
        identity = number % len(SUFFIXES)
        note = PartNote(name, identity, path, text, commit, branch, choice % PARTS, title)
        self.notes.append(note)

    def verify(self, number: int, _: int) -> None:
        note = self.notes[number % len(self.notes)]
        self.workspace.living.drift.verify(note.name, "memory")
        path, start, rows = self.part(note.identity, note.part)
        if path == note.path and titled(rows[start]) == note.title:
            note.text = "\n".join(rows[start : start + BODY + 1])

    def lose(self, *_: int) -> None:
        texts = [note.text for note in self.notes]
        super().lose()
        for note, text in zip(self.notes, texts, strict=True):
            rows = note.text.split("\n")
            start = marked(rows, note)
            note.text = "\n".join(rows[start : start + BODY + 1]) if start else text

    # --- the oracle ---

    def part(self, number: int, choice: int) -> tuple[str, int, list[str]]:
        """Return the file of a part, the row of its name, and all rows; no path if it is gone."""
        identity = number % len(SUFFIXES)
        path = self.where(identity)
        if not path:
            return "", 0, []
        rows = self.read(path).split("\n")
        for position, row in enumerate(rows):
            if f"mark {choice % PARTS} of {identity}" in row:
                return path, position - 1, rows
        return "", 0, []

    def expected(self, note: Note) -> tuple[str, int, str]:
        assert isinstance(note, PartNote)
        path, start, rows = self.part(note.identity, note.part)
        if not path:
            return "missing", 0, ""
        before = note.text.split("\n")
        after = rows[start : start + BODY + 1]
        changed = sum(old != new for old, new in zip(before, after, strict=True))
        if titled(rows[start]) == note.title:
            if path != note.path:
                return "moved", changed, path
            return ("changed" if changed else "ok"), changed, ""
        if (BODY + 1 - changed) / BODY <= LIKENESS:
            return "missing", 0, ""
        name = titled(rows[start])
        if path.endswith(".md"):
            name = f"file {note.identity}{STEP}{name}"
        return "moved", changed, f"{path}#{name}"


def heading(suffix: str, title: str) -> str:
    return f"## {title}" if suffix == "md" else f"def {title}():"


def titled(row: str) -> str:
    found = re.fullmatch(r"(?:## |def )(\w+)(?:\(\):)?", row)
    assert found is not None
    return found[1]


def line(suffix: str, text: str) -> str:
    return f"{text}." if suffix == "md" else f"    print({text!r})"


def marked(rows: list[str], note: PartNote) -> int:
    """Return the row of the name of a part, or 0."""
    for position, row in enumerate(rows):
        if f"mark {note.part} of {note.identity}" in row:
            return position - 1
    return 0


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("part-histories")
    return (base / str(number) for number in itertools.count())


@given(steps)
@example([("write", 1, 0), ("rename_and_retitle", 1, 0), ("edit", 1, 0), ("edit", 1, 1)])
@example([("rename_and_retitle", 0, 0), ("verify", 0, 0), ("edit", 0, 0), ("verify", 0, 0)])
@example([("retitle", 0, 0), ("verify", 0, 0), ("drop", 0, 0), ("lose", 0, 0)])
@example([("branch", 0, 0), ("retitle", 0, 0), ("switch", 0, 0), ("rename", 0, 0), ("merge", 1, 0)])
@RANDOM_HISTORIES
def test_states_of_parts_are_right_after_every_step(
    roots: Iterator[Path], own_directories: Path, operations: list[Operation]
) -> None:
    story = PartStory(next(roots), own_directories)
    for name, number, choice in operations:
        getattr(story, name)(number, choice)
        story.check()
