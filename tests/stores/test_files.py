from __future__ import annotations

import os
import time
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ParseError,
    ReadOnlyError,
    StorageError,
    UnavailableError,
    ValidationError,
)
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.stores.files.history import Step
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.files.walk import RACY_SECONDS, RECENT_SECONDS
from ragdocs.types import Change, Discard, Expect, Put

from .contract import (
    ChangeSetContract,
    Library,
    ReadableContract,
    VersionedContract,
    WatchedContract,
    plant,
)

pytestmark = pytest.mark.usefixtures("system")


NOON = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


class Files(Library):
    def open(self) -> FileStore:
        return FileStore(self.root, MEMORY)

    def add(self, name: str, text: str) -> None:
        path = self.root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class TestFileStore(ReadableContract, WatchedContract, VersionedContract, ChangeSetContract):
    @pytest.fixture
    def library(self, tmp_path: Path) -> Files:
        return Files(tmp_path / ".memories")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> FileStore:
    return FileStore(root, MEMORY)


# --- reading ---


def test_odd_bytes_are_read_as_far_as_possible_and_left_alone(root: Path, store: FileStore) -> None:
    root.mkdir()
    (root / "bom.md").write_bytes(b"\xef\xbb\xbf# Title\r\nx")
    (root / "bad.md").write_bytes(b"fine\nbro\xffken")
    (root / "empty.md").write_bytes(b"")
    (root / "binary.md").write_bytes(b"\x89PNG\0")
    (root / "huge.md").write_bytes(b"x" * 10_000_001)
    assert store.read("bom.md").text == "# Title\r\nx"
    bad = store.read("bad.md")
    assert bad.text == "fine\nbro\ufffdken"
    assert "line 2" in bad.problems[0]
    assert store.read("empty.md").text == ""
    with pytest.raises(ParseError):
        store.read("binary.md")
    with pytest.raises(StorageError, match="larger than 10 MB"):
        store.read("huge.md")
    assert (root / "bad.md").read_bytes() == b"fine\nbro\xffken"


def test_a_pipe_neither_hangs_nor_is_listed(root: Path, store: FileStore) -> None:
    root.mkdir()
    os.mkfifo(root / "pipe.md")
    assert store.scan().stamps == {}
    with pytest.raises(NotFoundError):
        store.read("pipe.md")
    with pytest.raises(StorageError):
        store.commit([Put("pipe.md", "x")])


def test_a_file_keeps_the_stamp_of_the_scan_unless_it_has_just_changed(
    root: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, "a.md")
    assert store.read("a.md").stamp != store.scan().stamps["a.md"]
    later = (root / "a.md").stat().st_ctime + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert store.read("a.md").stamp == store.scan().stamps["a.md"]


def test_a_text_that_changes_right_after_a_scan_is_read_as_it_is(root: Path) -> None:
    plant(root, "deep/down/note.md")
    time.sleep(2 * RACY_SECONDS)
    store = FileStore(root, MEMORY)
    stamp = store.scan().stamps["deep/down/note.md"]
    source = store.read("deep/down/note.md")
    assert (source.text, source.stamp) == ("deep/down/note.md", stamp)
    (root / "deep/down/note.md").write_text("new")
    assert store.read("deep/down/note.md").text == "new"
    (root / "deep/down/note.md").unlink()
    with pytest.raises(NotFoundError):
        store.read("deep/down/note.md")


def test_a_folder_that_is_swapped_for_a_link_after_a_scan_is_not_followed(
    tmp_path: Path, root: Path
) -> None:
    plant(root, "notes/plan.md")
    plant(tmp_path, "elsewhere/plan.md")
    time.sleep(2 * RACY_SECONDS)
    store = FileStore(root, MEMORY)
    store.scan()
    (root / "notes").rename(tmp_path / "notes")
    (root / "notes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotFoundError):
        store.read("notes/plan.md")


def test_an_ignore_file_counts_a_second_after_a_scan(root: Path) -> None:
    plant(root, "docs/secret.md")
    time.sleep(2 * RACY_SECONDS)
    store = FileStore(root, DOCS)
    store.scan()
    (root / ".gitignore").write_text("secret.md\n")
    time.sleep(1.1 * RECENT_SECONDS)
    with pytest.raises(NotFoundError):
        store.read("docs/secret.md")


def test_an_editor_that_saves_by_renaming_over_is_seen(root: Path, store: FileStore) -> None:
    plant(root, "a.md")
    before = store.scan().stamps["a.md"]
    times = (root / "a.md").stat()
    (root / "a.md~").write_text("A.MD")
    os.utime(root / "a.md~", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "a.md~").replace(root / "a.md")
    assert store.scan().stamps["a.md"] != before


# --- writing ---


def test_a_lane_that_is_not_writable_refuses(root: Path) -> None:
    with pytest.raises(ReadOnlyError):
        FileStore(root, DOCS).commit([Put("docs/a.md", "x")])
    assert not root.exists()


@pytest.mark.parametrize(
    "name", ["../a", "/a", ".trash/a", "indices/a", "node_modules/a", "a\0b", "CON", "a/../../b"]
)
def test_names_that_lead_elsewhere_write_nothing(root: Path, store: FileStore, name: str) -> None:
    for change in (Put(name, "x"), Discard(name, Expect.ANY)):
        with pytest.raises(ValidationError):
            store.commit([change])
    assert [path.name for path in root.parent.rglob("*")] == ["root"]


def test_writing_through_a_link_is_refused_and_names_the_file_itself(
    root: Path, store: FileStore
) -> None:
    plant(root, "real/a.md")
    plant(root.parent, "outside/o.md")
    (root / "alias.md").symlink_to("real/a.md")
    (root / "folder").symlink_to("real")
    (root / "out").symlink_to("../outside")
    (root / "out.md").symlink_to("../outside/o.md")
    for name in ("alias.md", "folder/a.md", "folder/new.md"):
        with pytest.raises(ValidationError, match="real"):
            store.commit([Put(name, "x")])
    changes: list[Change] = [Put(name, "x") for name in ("out/o.md", "out/new.md", "out.md")]
    changes += [Discard("out.md"), Discard("out/o.md")]
    for change in changes:
        with pytest.raises(ValidationError):
            store.commit([change])
    assert (root.parent / "outside/o.md").read_text() == "outside/o.md"
    assert sorted(path.name for path in (root.parent / "outside").iterdir()) == ["o.md"]


def refuses(store: FileStore) -> None:
    """See that a store neither lists, reads nor writes."""
    for attempt in (
        store.scan,
        lambda: store.read("a.md"),
        lambda: store.commit([Put("a.md", "x")]),
    ):
        with pytest.raises(UnavailableError):
            attempt()


def test_a_root_that_is_a_link_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "elsewhere/a.md", "clone/inside/b.md")
    linked, fine = tmp_path / "clone/.memories", tmp_path / "clone/fine"
    linked.symlink_to("../elsewhere")
    fine.symlink_to("inside")
    refuses(FileStore(linked, MEMORY))
    assert FileStore(linked, MEMORY, trusted_root=True).read("a.md").text == "elsewhere/a.md"
    assert FileStore(fine, MEMORY).read("b.md").text == "clone/inside/b.md"


def test_a_root_swapped_for_a_link_is_noticed(root: Path, store: FileStore) -> None:
    store.commit([Put("a.md", "x")])
    plant(root.parent, "elsewhere/a.md")
    root.rename(root.with_name("moved"))
    root.symlink_to("elsewhere")
    refuses(store)
    assert (root.parent / "elsewhere/a.md").read_text() == "elsewhere/a.md"


def test_deletes_in_the_same_second_all_survive(root: Path) -> None:
    store = FileStore(root, MEMORY, now=lambda: NOON)
    moved = []
    for text in ("one", "two", "three"):
        store.commit([Put("f/a.md", text)])
        moved.append(store.commit([Discard("f/a.md")])[0].moved_to)
    assert [Path(place).read_text() for place in moved] == ["one", "two", "three"]
    names = ["a_20260204_120000.md", "a_20260204_120000_2.md", "a_20260204_120000_3.md"]
    assert moved == [str(root / ".trash/f" / name) for name in names]


def test_folders_that_differ_only_in_case_collide(store: FileStore) -> None:
    store.commit([Put("Plans/a.md", "x")])
    with pytest.raises(AlreadyExistsError, match=r"Plans/b\.md"):
        store.commit([Put("plans/b.md", "y", Expect.ABSENT)])
    with pytest.raises(NotFoundError, match=r"Plans/a\.md"):
        store.commit([Put("plans/a.md", "y", Expect.PRESENT)])


def test_a_decomposed_name_on_disk_is_the_same_file(root: Path, store: FileStore) -> None:
    name = unicodedata.normalize("NFD", "café/größe.md")
    plant(root, name)
    composed = unicodedata.normalize("NFC", name)
    with pytest.raises(AlreadyExistsError):
        store.commit([Put(composed, "x", Expect.ABSENT)])
    version = store.read(composed).version
    store.commit([Put(composed, "new", version), Put("café/b.md", "beside")])
    assert (root / name).read_text() == "new"
    assert len(list(root.glob("c*"))) == 1


def test_a_file_in_place_of_a_folder_is_refused(store: FileStore) -> None:
    store.commit([Put("a.md", "x")])
    with pytest.raises(ValidationError, match="not a folder"):
        store.commit([Put("new.md", "x"), Put("a.md/b.md", "x")])
    with pytest.raises(NotFoundError):
        store.read("new.md")


def test_permissions_line_endings_and_byte_order_mark_stay(root: Path, store: FileStore) -> None:
    root.mkdir()
    (root / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (root / "a.md").chmod(0o640)
    source = store.read("a.md")
    written = store.commit([Put("a.md", source.text + "\n\nthree\n", source.version)])
    assert (root / "a.md").read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n\r\n\r\nthree\r\n"
    assert (root / "a.md").stat().st_mode & 0o777 == 0o640
    assert written[0].version == store.read("a.md").version


def test_mixed_line_endings_are_written_as_given(root: Path, store: FileStore) -> None:
    root.mkdir()
    (root / "a.md").write_bytes(b"one\r\ntwo\n")
    store.commit([Put("a.md", "x\ny\r\n")])
    assert (root / "a.md").read_bytes() == b"x\ny\r\n"


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 10_000_001])
def test_texts_that_could_not_be_read_again_are_refused(store: FileStore, text: str) -> None:
    with pytest.raises(ValidationError):
        store.commit([Put("a.md", text)])
    assert store.scan().stamps == {}


def test_leftovers_of_killed_writers_are_swept_when_old(root: Path, store: FileStore) -> None:
    plant(root, "a.md", "f/.old.ragdocs-tmp", "f/.new.ragdocs-tmp")
    os.utime(root / "f/.old.ragdocs-tmp", (0, 0))
    assert set(store.scan().stamps) == {"a.md"}
    assert [path.name for path in (root / "f").iterdir()] == [".new.ragdocs-tmp"]


def test_a_conflict_inside_a_merge_carries_the_current_text(store: FileStore) -> None:
    version = store.commit([Put("a.md", "old"), Put("b.md", "b")])[0].version
    store.commit([Put("a.md", "new")])
    with pytest.raises(ConflictError) as caught:
        store.commit([Put("all.md", "x"), Discard("b.md"), Discard("a.md", version)], "merge")
    assert caught.value.theirs == "new"
    assert set(store.scan().stamps) == {"a.md", "b.md"}


def test_new_files_of_a_killed_change_are_taken_back_and_others_stay(tmp_path: Path) -> None:
    store = FileStore(tmp_path, MEMORY)
    store.commit([Put("old.md", "old", Expect.ABSENT)])
    names = ("a.md", "b.md", "c.md")
    store._history.promise([Step(name, None, b"new") for name in names])
    (tmp_path / "a.md").write_bytes(b"new")
    # Somebody has written here since.
    (tmp_path / "b.md").write_bytes(b"by hand")
    again = FileStore(tmp_path, MEMORY)
    assert sorted(again.scan().stamps) == ["b.md", "old.md"]
    assert again.read("b.md").text == "by hand"
    assert not again._history.pending()
