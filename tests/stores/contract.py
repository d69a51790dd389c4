"""What every store promises, one class for each protocol.

A test of a store subclasses the classes of the protocols that it fulfils, with a `library` fixture
that gives an empty store and a way to add a text to it.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, cast

import pytest

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.protocols import Readable, Store, Versioned, Watched
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Discard, Expect, Put, Written


def plant(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def listed(root: Path, lane: Lane) -> set[str]:
    return set(FileStore(root, lane).scan().stamps)


def lane(*include: str, exclude: tuple[str, ...] = (), gitignore: bool = False) -> Lane:
    return Lane(name="test", include=include, exclude=exclude, gitignore=gitignore)


def fork() -> int:
    with warnings.catch_warnings():
        # Newer Pythons warn when another test has left threads; the child only writes files and
        # exits.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class Library(ABC):
    """A store that is empty at first, and the way in which texts come into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = self.open()

    @abstractmethod
    def open(self) -> Any:
        """Open the store once more, as another process would."""

    @abstractmethod
    def add(self, name: str, text: str) -> None:
        """Bring one more text into the store."""

    def added(self, name: str, text: str) -> str:
        """Bring one more text into the store and return the path that it is listed under."""
        before = self.store.scan().stamps.keys()
        self.add(name, text)
        (path,) = self.store.scan().stamps.keys() - before
        return str(path)


class LibraryContract:
    """The fixtures of each contract."""

    @pytest.fixture
    def library(self, tmp_path: Path) -> Library:
        raise NotImplementedError


class ReadableContract(LibraryContract):
    """What a store promises to those who read it."""

    @pytest.fixture
    def readable(self, library: Library) -> Readable:
        return cast("Readable", library.store)

    def test_an_empty_store_lists_nothing(self, readable: Readable) -> None:
        assert readable.scan().stamps == {}
        assert readable.scan().unreadable == {}

    def test_each_listed_text_is_read_under_its_path(
        self, library: Library, readable: Readable
    ) -> None:
        texts = {library.added(name, f"About {name}: Größe"): name for name in ("lamp", "f/mill")}
        assert readable.scan().stamps.keys() == texts.keys()
        for path, name in texts.items():
            source = readable.read(path)
            assert source.path == path
            assert f"About {name}: Größe" in source.text
            assert source.version
            assert source.size >= len(f"About {name}: Größe".encode())

    def test_different_texts_have_different_versions(
        self, library: Library, readable: Readable
    ) -> None:
        paths = [library.added(name, f"About {name}") for name in ("lamp", "mill")]
        assert len({readable.read(path).version for path in paths}) == 2

    def test_a_new_text_leaves_the_stamps_of_others_alone(
        self, library: Library, readable: Readable
    ) -> None:
        library.added("lamp", "About the lamp")
        before = readable.scan().stamps
        path = library.added("mill", "About the mill")
        after = readable.scan().stamps
        assert {**before, path: after[path]} == after

    def test_a_scan_of_listed_paths_agrees_with_the_whole(
        self, library: Library, readable: Readable
    ) -> None:
        paths = [library.added(name, f"About {name}") for name in ("lamp", "mill", "f/pump")]
        whole = readable.scan().stamps
        assert readable.scan(paths[1:]).stamps == {path: whole[path] for path in paths[1:]}
        assert readable.scan([""]).stamps == whole
        assert readable.scan([]).stamps == {}

    def test_a_path_that_is_not_there_is_neither_listed_nor_read(
        self, library: Library, readable: Readable
    ) -> None:
        library.added("lamp", "About the lamp")
        for path in ("nothing.md", "f/nothing.md", f"{'0' * 40}.md"):
            assert readable.scan([path]).stamps == {}
            with pytest.raises(NotFoundError):
                readable.read(path)

    def test_another_process_sees_the_same(self, library: Library, readable: Readable) -> None:
        path = library.added("lamp", "About the lamp")
        other = library.open()
        assert other.scan().stamps == readable.scan().stamps
        assert other.read(path).version == readable.read(path).version
        assert other.read(path).text == readable.read(path).text

    def test_every_path_is_located_in_the_store(self, library: Library, readable: Readable) -> None:
        path = library.added("lamp", "About the lamp")
        assert readable.locate("").startswith(str(library.root))
        assert readable.locate(path).startswith(readable.locate(""))
        assert readable.locate(path) != readable.locate("")


class WatchedContract(LibraryContract):
    """What a store promises to a watcher."""

    @pytest.fixture
    def watched(self, library: Library) -> Watched:
        return cast("Watched", library.store)

    def test_the_folders_to_watch_exist(self, library: Library, watched: Watched) -> None:
        for name in ("lamp", "mill"):
            assert all(folder.is_dir() for folder, _ in watched.watched())
            library.added(name, f"About {name}")
        assert watched.watched()

    def test_a_new_text_is_found_by_the_files_that_changed_where_it_watches(
        self, library: Library, watched: Watched
    ) -> None:
        library.added("f/lamp", "About the lamp")
        before = watched_files(watched)
        path = library.added("f/mill", "About the mill")
        changed = {
            file for file, state in watched_files(watched).items() if before.get(file) != state
        }
        concerned = {watched.relative(file) for file in changed} - {None}
        assert path in library.store.scan(concerned).stamps

    def test_files_elsewhere_do_not_concern_it(self, library: Library, watched: Watched) -> None:
        library.added("lamp", "About the lamp")
        for path in ("/elsewhere/a.md", f"{library.root}-other/lamp.md", "/"):
            assert watched.relative(path) is None


def watched_files(store: Watched) -> dict[str, tuple[int, int]]:
    """Map the files that a watcher gets events of to their present state."""
    states = {}
    for folder, is_deep in store.watched():
        paths = folder.rglob("*") if is_deep else folder.iterdir()
        for path in paths:
            status = path.lstat()
            states[str(path)] = (status.st_mtime_ns, status.st_ino)
    return states


class VersionedContract(LibraryContract):
    """What a store promises to those who change its texts, one at a time."""

    @pytest.fixture
    def versioned(self, library: Library) -> Versioned:
        return cast("Versioned", library.store)

    def test_a_written_text_is_read_back_under_its_version(
        self, library: Library, versioned: Versioned
    ) -> None:
        written = write(versioned, "f/a.md", "# Größe")
        source = library.store.read("f/a.md")
        assert (source.text, source.version) == ("# Größe", written.version)

    def test_an_overwritten_text_is_recovered_by_its_version(self, versioned: Versioned) -> None:
        first = write(versioned, "a.md", "first")
        second = write(versioned, "a.md", "second", first.version)
        assert versioned.recover(first.version) == "first"
        write(versioned, "a.md", "third", second.version)
        assert [versioned.recover(one.version) for one in (first, second)] == ["first", "second"]

    def test_a_stale_version_is_refused_with_both_texts(
        self, library: Library, versioned: Versioned
    ) -> None:
        version = write(versioned, "a.md", "base").version
        write(versioned, "a.md", "theirs", version)
        before = library.store.scan().stamps
        with pytest.raises(ConflictError) as caught:
            write(versioned, "a.md", "yours", version)
        assert (caught.value.theirs, caught.value.yours) == ("theirs", "yours")
        assert caught.value.version == library.store.read("a.md").version
        assert library.store.scan().stamps == before

    @pytest.mark.parametrize(
        ("path", "expect"),
        [
            ("a.md", Expect.ABSENT),
            ("b.md", Expect.PRESENT),
            ("b.md", "0" * 16),
            ("b.md", "0" * 40),
            ("../b.md", Expect.ANY),
            ("/b.md", Expect.ANY),
            ("A.md", Expect.ANY),
        ],
    )
    def test_a_refused_change_changes_nothing(
        self, library: Library, versioned: Versioned, path: str, expect: str | Expect
    ) -> None:
        write(versioned, "a.md", "first")
        before = (library.store.scan().stamps, versioned.commits(), versioned.history())
        with pytest.raises(RagdocsError):
            write(versioned, path, "second", expect)
        assert (library.store.scan().stamps, versioned.commits(), versioned.history()) == before
        assert library.store.read("a.md").text == "first"

    def test_change_sets_are_listed_newest_first(self, versioned: Versioned) -> None:
        assert versioned.commits() == []
        assert versioned.history() == []
        for path in ("a.md", "b.md", "a.md"):
            write(versioned, path, f"text {len(versioned.commits())}")
        change_sets = versioned.commits()
        paths = [[revision.path for revision in change_set.steps] for change_set in change_sets]
        assert paths == [["a.md"], ["b.md"], ["a.md"]]
        assert all(change_set.at.tzinfo for change_set in change_sets)

    def test_the_history_of_a_path_has_nothing_of_others(self, versioned: Versioned) -> None:
        for path in ("a.md", "b.md", "a.md", "b.md"):
            write(versioned, path, f"text {len(versioned.commits())}")
        assert {revision.path for revision in versioned.history("a.md")} == {"a.md"}
        assert {revision.path for revision in versioned.history()} == {"a.md", "b.md"}
        assert versioned.history("c.md") == []

    def test_what_is_no_version_is_not_recovered(self, versioned: Versioned) -> None:
        write(versioned, "a.md", "first")
        with pytest.raises(ValidationError):
            versioned.recover("../../etc/passwd")
        for version in ("0" * 16, "0" * 40):
            with pytest.raises((NotFoundError, ValidationError)):
                versioned.recover(version)

    def test_another_process_goes_on_from_the_same_version(
        self, library: Library, versioned: Versioned
    ) -> None:
        first = write(versioned, "a.md", "first")
        second = write(library.open(), "a.md", "second", first.version)
        assert library.store.read("a.md").version == second.version
        assert len(versioned.commits()) == 2


def write(store: Versioned, path: str, text: str, expect: str | Expect = Expect.ANY) -> Written:
    """Write one text, with a note for stores that keep one."""
    return store.commit([Put(path, text, expect, note=f"now it says {text}")])[0]


class ChangeSetContract(LibraryContract):
    """What a store promises that changes several texts at once and can discard them."""

    @pytest.fixture
    def store(self, library: Library) -> Store:
        return cast("Store", library.store)

    def test_equal_texts_have_equal_versions_and_different_ones_do_not(self, store: Store) -> None:
        one, two, three = store.commit([Put("a.md", "x"), Put("b.md", "x"), Put("c.md", "y")])
        assert one.version == two.version != three.version

    def test_reading_what_is_not_there_names_the_nearest(self, store: Store) -> None:
        store.commit([Put("auth-decisions.md", "x")])
        with pytest.raises(NotFoundError, match=r"auth-decisions\.md"):
            store.read("auth-decision.md")

    def test_a_stale_discard_is_refused(self, store: Store) -> None:
        version = store.commit([Put("a.md", "base")])[0].version
        store.commit([Put("a.md", "theirs")])
        with pytest.raises(ConflictError):
            store.commit([Discard("a.md", version)])
        assert store.read("a.md").text == "theirs"

    def test_a_discarded_text_is_gone_but_recoverable(self, store: Store) -> None:
        version = store.commit([Put("a.md", "precious")])[0].version
        written = store.commit([Discard("a.md")])[0]
        assert written.moved_to
        assert store.scan().stamps == {}
        assert store.recover(version) == "precious"
        assert [(revision.path, revision.verb) for revision in store.history("a.md")] == [
            ("a.md", "delete")
        ]

    def test_discarding_nothing_is_an_error_unless_anything_goes(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            store.commit([Discard("a.md")])
        assert store.commit([Discard("a.md", Expect.ANY)])[0].moved_to == ""

    def test_history_lists_overwritten_texts_newest_first(self, store: Store) -> None:
        for text in ("one", "two", "three"):
            store.commit([Put("a.md", text)])
        store.commit([Put("b.md", "other")])
        texts = [store.recover(revision.version) for revision in store.history("a.md")]
        assert texts == ["two", "one"]
        assert all(revision.at.tzinfo for revision in store.history())

    def test_writing_the_same_text_again_leaves_no_trace_and_another_one_does(
        self, store: Store
    ) -> None:
        store.commit([Put("a.md", "x")])
        before = store.scan().stamps
        store.commit([Put("a.md", "x")])
        assert store.scan().stamps == before
        assert store.history() == []
        store.commit([Put("a.md", "y")])
        assert store.scan().stamps["a.md"] != before["a.md"]

    def test_a_merge_writes_the_target_and_discards_the_sources(self, store: Store) -> None:
        store.commit([Put("a.md", "a"), Put("b.md", "b")])
        written = store.commit(
            [Discard("a.md"), Put("all.md", "a b", Expect.ABSENT), Discard("b.md")], "merge"
        )
        assert list(store.scan().stamps) == ["all.md"]
        assert [bool(change.moved_to) for change in written] == [True, False, True]
        assert {revision.verb for revision in store.history()} == {"merge"}

    @pytest.mark.parametrize(
        "last",
        [
            Discard("missing.md"),
            Put("b.md", "x", Expect.ABSENT),
            Put("b.md", "x", "0" * 16),
            Put("../b.md", "x"),
        ],
    )
    def test_one_impossible_change_stops_them_all(self, store: Store, last: Put | Discard) -> None:
        store.commit([Put("a.md", "a"), Put("b.md", "b")])
        before = store.scan().stamps
        with pytest.raises(RagdocsError):
            store.commit([Put("new.md", "x"), Discard("a.md"), last], "merge")
        assert store.scan().stamps == before
        assert store.history() == []

    def test_a_file_named_twice_in_one_change_is_refused(self, store: Store) -> None:
        store.commit([Put("a.md", "a")])
        with pytest.raises(ValidationError):
            store.commit([Put("a.md", "b"), Discard("a.md")])
        assert store.read("a.md").text == "a"

    @pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 10_000_001])
    def test_texts_that_could_not_be_read_again_are_refused(self, store: Store, text: str) -> None:
        with pytest.raises(ValidationError):
            store.commit([Put("a.md", text)])
        assert store.scan().stamps == {}

    def test_folders_that_differ_only_in_case_collide(self, store: Store) -> None:
        store.commit([Put("Plans/a.md", "x")])
        with pytest.raises(AlreadyExistsError, match=r"Plans/b\.md"):
            store.commit([Put("plans/b.md", "y", Expect.ABSENT)])
        with pytest.raises(NotFoundError, match=r"Plans/a\.md"):
            store.commit([Put("plans/a.md", "y", Expect.PRESENT)])

    def test_names_that_differ_only_in_case_collide(self, store: Store) -> None:
        store.commit([Put("Notes.md", "x")])
        for name in ("notes.md", "NOTES.MD"):
            with pytest.raises(AlreadyExistsError, match=r"Notes\.md"):
                store.commit([Put(name, "y", Expect.ABSENT)])
        assert list(store.scan().stamps) == ["Notes.md"]

    def test_a_scan_of_some_paths_agrees_with_the_whole(self, store: Store) -> None:
        store.commit([Put(path, "x") for path in ("a.md", "f/b.md", "f/g/c.md", "h/d.md")])
        paths = ["a.md", "f", "h/missing.md", "../a.md", "/a.md", "a.md/b.md", "nowhere"]
        whole = dict(store.scan().stamps)
        del whole["h/d.md"]
        assert store.scan(paths).stamps == whole
