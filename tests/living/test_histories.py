"""Random edits, renames, branches and merges in real repositories, compared with a slow oracle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.living.repositories import RANDOM_HISTORIES, Repository, lose_record

LINES = 16
FILES = 3
OPERATIONS = (
    *("edit", "edit", "rename", "remove", "commit", "write", "verify", "lose"),
    *("branch", "switch", "merge", "forget"),
)
Operation = tuple[str, int, int]
steps = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 7), st.integers(1, LINES - 1)),
    min_size=3,
    max_size=9,
)


@dataclass
class Note:
    """A memory, as the oracle knows it: what its file was, and where and when it was written."""

    name: str
    identity: int
    path: str
    text: str
    commit: str
    branch: str


class Story:
    """Does what a list of operations says, and knows what should be the case after each."""

    def __init__(self, root: Path, home: Path) -> None:
        self.home = home
        self.repository = Repository(root)
        self.notes: list[Note] = []
        self.names = itertools.count()
        self.begin()
        self.repository.commit()
        self.workspace = self.repository.open()
        self.write(0, 0)

    def begin(self) -> None:
        """Write the files that the memories will be about."""
        for identity in range(FILES):
            rows = [f"# file {identity}", *(f"line {n} of {identity}" for n in range(1, LINES))]
            self.repository.write(f"src/{identity}.txt", "\n".join(rows) + "\n")

    # --- operations ---

    def edit(self, number: int, line: int) -> None:
        path = self.where(number % FILES)
        if path:
            rows = self.read(path).split("\n")
            rows[line] = f"changed {next(self.names)}"
            self.repository.write(path, "\n".join(rows))

    def rename(self, number: int, _: int) -> None:
        path = self.where(number % FILES)
        if path:
            self.repository.commit()
            suffix = path.rpartition(".")[2]
            self.repository.git("mv", path, f"src/renamed-{next(self.names)}.{suffix}")
            self.repository.commit()

    def remove(self, number: int, _: int) -> None:
        path = self.where(number % FILES)
        if path:
            self.repository.git("rm", "--quiet", "-f", path)
            self.repository.commit()

    def commit(self, *_: int) -> None:
        self.repository.commit()

    def write(self, number: int, _: int) -> None:
        identity = number % FILES
        path = self.where(identity)
        if not path:
            return
        commit = self.repository.commit()
        name = f"note-{next(self.names)}.md"
        self.workspace.memories.create(name, f"About [[{path}]].\n", [])
        branch = self.repository.git("branch", "--show-current")
        self.notes.append(Note(name, identity, path, self.read(path), commit, branch))

    def verify(self, number: int, _: int) -> None:
        note = self.notes[number % len(self.notes)]
        self.workspace.living.drift.verify(note.name, "memory")
        if (self.repository.root / note.path).exists():
            note.text = self.read(note.path)

    def lose(self, *_: int) -> None:
        lose_record(self.home)
        self.workspace = self.repository.open()
        for note in self.notes:
            note.text = self.repository.git("show", f"{note.commit}:{note.path}") + "\n"

    def branch(self, *_: int) -> None:
        self.repository.commit()
        self.repository.git("switch", "--quiet", "-c", f"topic/{next(self.names)}")

    def switch(self, number: int, _: int) -> None:
        self.repository.commit()
        branches = self.branches()
        self.repository.git("switch", "--quiet", branches[number % len(branches)])

    def merge(self, number: int, _: int) -> None:
        self.repository.commit()
        branches = self.branches()
        self.repository.tick()
        other = branches[number % len(branches)]
        self.repository.git("merge", "--quiet", "--no-ff", "-m", "merge", other, check=False)
        if (self.repository.root / ".git/MERGE_HEAD").exists():
            self.repository.git("merge", "--abort")

    def forget(self, number: int, _: int) -> None:
        """Delete a branch that is not checked out."""
        current = self.repository.git("branch", "--show-current")
        others = [name for name in self.branches() if name != current]
        if others:
            self.repository.git("branch", "--quiet", "-D", others[number % len(others)])

    # --- the oracle ---

    def branches(self) -> list[str]:
        return self.repository.git("branch", "--format=%(refname:short)").split()

    def read(self, path: str) -> str:
        return (self.repository.root / path).read_text()

    def where(self, identity: int) -> str:
        """Return the path that a file has now: its first line never changes."""
        # git removes the folder with its last file.
        for path in sorted((self.repository.root / "src").glob("*")):
            if path.read_text().startswith(f"# file {identity}\n"):
                return f"src/{path.name}"
        return ""

    def expected(self, note: Note) -> tuple[str, int, str]:
        """Return the state, the changed lines and the new path of the file of a memory."""
        path = note.path
        moved = ""
        if not (self.repository.root / path).exists():
            path = moved = self.where(note.identity)
            if not path:
                return "missing", 0, ""
        pairs = zip(note.text.splitlines(), self.read(path).splitlines(), strict=True)
        changed = sum(before != after for before, after in pairs)
        if moved:
            return "moved", changed, moved
        return ("changed" if changed else "ok"), changed, ""

    def expected_branch(self, note: Note) -> tuple[bool, bool] | None:
        """Return whether the commit of a memory of another branch is merged, and the branch gone."""
        if self.repository.git("branch", "--show-current") == note.branch:
            return None
        base = self.repository.git("merge-base", note.commit, "HEAD", check=False)
        return base == note.commit, note.branch not in self.branches()

    def check(self) -> None:
        living = self.workspace.living
        for note in self.notes:
            document = self.repository.document(self.workspace, note.name)
            (state,) = living.drift.states(document)
            found = (state.state, state.added or 0, state.moved_to)
            assert found == self.expected(note), note
            assert (state.added or 0) == (state.removed or 0)
            other = living.branches.other([document]).get(document.id)
            branch = other and (other.merged, other.gone)
            assert branch == self.expected_branch(note), note


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("histories")
    return (base / str(number) for number in itertools.count())


@given(steps)
@example([("branch", 0, 1), ("rename", 0, 1), ("write", 0, 1), ("edit", 0, 3), ("switch", 0, 1)])
@example([("branch", 0, 1), ("edit", 0, 3), ("switch", 0, 1), ("rename", 0, 1), ("merge", 1, 1)])
@example([("edit", 0, 2), ("commit", 0, 1), ("verify", 0, 1), ("edit", 0, 2), ("lose", 0, 1)])
@RANDOM_HISTORIES
def test_states_are_right_after_every_step(
    roots: Iterator[Path], own_directories: Path, operations: list[Operation]
) -> None:
    story = Story(next(roots), own_directories)
    for name, number, line in operations:
        getattr(story, name)(number, line)
        story.check()
