"""What every Store promises.

Subclass it with a `store` fixture that gives an empty, writable store.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.protocols import Store
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Discard, Expect, Put


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


class StoreContract:
    """Inherited by the tests of each implementation."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_what_is_put_is_read_back_and_listed(self, store: Store) -> None:
        written = store.commit([Put("2026-02-04/143052_a1b2.md", "# Größe\n", Expect.ABSENT)])
        source = store.read("2026-02-04/143052_a1b2.md")
        assert source.text == "# Größe\n"
        assert written[0].version == source.version
        assert list(store.scan().stamps) == ["2026-02-04/143052_a1b2.md"]

    def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        assert store.scan().stamps == {}
        assert store.history() == []

    def test_equal_texts_have_equal_versions_and_different_ones_do_not(self, store: Store) -> None:
        one, two, three = store.commit([Put("a.md", "x"), Put("b.md", "x"), Put("c.md", "y")])
        assert one.version == two.version != three.version

    def test_reading_what_is_not_there_names_the_nearest(self, store: Store) -> None:
        store.commit([Put("auth-decisions.md", "x")])
        with pytest.raises(NotFoundError, match=r"auth-decisions\.md"):
            store.read("auth-decision.md")

    def test_creating_what_exists_changes_nothing(self, store: Store) -> None:
        store.commit([Put("a.md", "first")])
        with pytest.raises(AlreadyExistsError):
            store.commit([Put("a.md", "second", Expect.ABSENT)])
        assert store.read("a.md").text == "first"
        assert store.history() == []

    def test_a_stale_version_is_told_both_texts(self, store: Store) -> None:
        version = store.commit([Put("a.md", "base")])[0].version
        store.commit([Put("a.md", "theirs", version)])
        with pytest.raises(ConflictError) as caught:
            store.commit([Put("a.md", "yours", version)])
        assert (caught.value.theirs, caught.value.yours) == ("theirs", "yours")
        assert caught.value.version == store.read("a.md").version
        assert store.read("a.md").text == "theirs"

    def test_a_stale_discard_is_refused(self, store: Store) -> None:
        version = store.commit([Put("a.md", "base")])[0].version
        store.commit([Put("a.md", "theirs")])
        with pytest.raises(ConflictError):
            store.commit([Discard("a.md", version)])
        assert store.read("a.md").text == "theirs"

    @pytest.mark.parametrize("expect", [Expect.PRESENT, "0123456789abcdef"])
    def test_updating_what_is_not_there_creates_nothing(
        self, store: Store, expect: Expect | str
    ) -> None:
        with pytest.raises(NotFoundError):
            store.commit([Put("a.md", "x", expect)])
        assert store.scan().stamps == {}

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

    def test_writing_the_same_text_again_leaves_no_trace(self, store: Store) -> None:
        store.commit([Put("a.md", "x")])
        before = store.scan().stamps
        store.commit([Put("a.md", "x")])
        assert store.scan().stamps == before
        assert store.history() == []

    def test_recovering_an_unknown_version_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            store.recover("0" * 16)
        with pytest.raises(ValidationError):
            store.recover("../../etc/passwd")

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

    def test_names_that_differ_only_in_case_collide(self, store: Store) -> None:
        store.commit([Put("Notes.md", "x")])
        for name in ("notes.md", "NOTES.MD"):
            with pytest.raises(AlreadyExistsError, match=r"Notes\.md"):
                store.commit([Put(name, "y", Expect.ABSENT)])
        assert list(store.scan().stamps) == ["Notes.md"]

    def test_a_scan_of_some_paths_agrees_with_the_whole(self, store: Store) -> None:
        store.commit(
            [Put("a.md", "x"), Put("f/b.md", "x"), Put("f/g/c.md", "x"), Put("h/d.md", "x")]
        )
        whole = store.scan().stamps
        part = store.scan(
            ["a.md", "f", "h/missing.md", "../a.md", "/a.md", "a.md/b.md", "nowhere"]
        ).stamps
        assert part == {
            path: stamp for path, stamp in whole.items() if path == "a.md" or path.startswith("f/")
        }

    def test_a_changed_text_changes_its_stamp(self, store: Store) -> None:
        store.commit([Put("a.md", "one")])
        before = store.scan().stamps["a.md"]
        store.commit([Put("a.md", "two")])
        assert store.scan().stamps["a.md"] != before

    def test_the_place_of_a_path_is_told(self, store: Store) -> None:
        store.commit([Put("f/a.md", "x")])
        assert store.locate("f/a.md").endswith("f/a.md")
