from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path

import pytest

from ragdocs.errors import NotFoundError, ReadOnlyError, RenameError, StorageError, ValidationError
from ragdocs.system import files as fsio

pytestmark = pytest.mark.usefixtures("system")


def failing(code: int) -> object:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def names(folder: Path) -> list[str]:
    return [place.name for place in folder.iterdir()]


# --- atomic writes ---


def test_a_write_replaces_the_whole_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    place = tmp_path / "a.md"
    place.write_bytes(b"a much longer text than the new one")
    place.chmod(0o604)
    fsio.write_atomic(place, b"new")
    assert place.read_bytes() == b"new"
    assert stat.S_IMODE(place.stat().st_mode) == 0o604
    assert names(tmp_path) == ["a.md"]


def test_a_new_file_follows_the_umask_or_the_mode_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        fsio.write_atomic(tmp_path / "a", b"")
        fsio.write_atomic(tmp_path / "b", b"", mode=0o600)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o640, 0o600]


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser writes files of others")
def test_a_file_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    place = tmp_path / "a.md"
    place.write_bytes(b"old")
    os.chown(place, 65534, 65534)
    fsio.write_atomic(place, b"new")
    assert place.stat().st_uid == 65534


@pytest.mark.parametrize(
    ("call", "code", "kind"),
    [
        ("open", errno.EACCES, ReadOnlyError),
        ("open", errno.EROFS, ReadOnlyError),
        ("write", errno.ENOSPC, StorageError),
        ("fsync", errno.EIO, StorageError),
        ("replace", errno.EXDEV, RenameError),
        ("replace", errno.EBUSY, RenameError),
        ("replace", errno.EROFS, ReadOnlyError),
    ],
)
def test_a_failed_write_keeps_the_old_bytes_and_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, kind: type[StorageError]
) -> None:
    place = tmp_path / "a.md"
    place.write_bytes(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, call, failing(code))
        with pytest.raises(kind) as caught:
            fsio.write_atomic(place, b"new")
    assert caught.value.hint
    assert place.read_bytes() == b"old"
    assert names(tmp_path) == ["a.md"]


def test_a_folder_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    with pytest.raises(RenameError):
        fsio.write_atomic(tmp_path / "a.md", b"new")
    assert names(tmp_path) == ["a.md"]


def test_a_link_is_replaced_and_what_it_names_is_untouched(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    fsio.write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"old"


def test_a_move_between_file_systems_copies_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"text")
    source.chmod(0o640)
    monkeypatch.setattr(os, "rename", failing(errno.EXDEV))
    fsio.move(source, target)
    assert target.read_bytes() == b"text"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert not source.exists()


def test_an_appended_line_stands_alone_even_after_a_torn_one(tmp_path: Path) -> None:
    place = tmp_path / "log"
    fsio.append_line(place, b"one")
    with place.open("ab") as torn:
        torn.write(b'{"to')
    fsio.append_line(place, b"two")
    assert place.read_bytes() == b'one\n{"to\ntwo\n'


def test_a_line_that_does_not_fit_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    with pytest.raises(StorageError, match="space"):
        fsio.append_line(tmp_path / "log", b"one")


# --- reading ---


def test_what_is_not_a_plain_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    for name in ("pipe", "folder", "link"):
        with pytest.raises(StorageError):
            fsio.read_bytes(tmp_path / name)
    with pytest.raises(StorageError):
        fsio.read_bytes(Path("/dev/zero"))
    with pytest.raises(NotFoundError):
        fsio.read_bytes(tmp_path / "missing")


def test_the_size_limit_is_exact(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert fsio.read_bytes(tmp_path / "a", limit=5) == b"12345"
    with pytest.raises(StorageError, match="larger than"):
        fsio.read_bytes(tmp_path / "a", limit=4)


# --- mapped copies ---

LARGE = b"0123456789abcdef" * 40_000


def test_a_mapped_copy_stays_what_it_was_and_leaves_no_name(tmp_path: Path) -> None:
    place, copies = tmp_path / "large", tmp_path / "copies"
    place.write_bytes(LARGE)
    view = fsio.map_copy(place, copies)
    assert isinstance(view.obj, mmap.mmap)
    place.write_bytes(b"shorter")
    fsio.release(view)
    assert view == LARGE
    assert names(copies) == []


def test_without_room_for_a_copy_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "large"
    place.write_bytes(LARGE)
    monkeypatch.setattr(fsio, "_nameless_file", failing(errno.ENOSPC))
    view = fsio.map_copy(place, tmp_path / "copies")
    assert view == LARGE
    assert isinstance(view.obj, bytes)


def test_where_no_file_is_without_a_name_a_copy_is_mapped_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "large"
    place.write_bytes(LARGE)
    # As where the system or the disk has no such files: opening one fails.
    monkeypatch.setattr(os, "O_TMPFILE", os.O_CREAT | os.O_EXCL, raising=False)
    view = fsio.map_copy(place, tmp_path / "copies")
    assert view == LARGE
    assert not list((tmp_path / "copies").iterdir())


# --- containment ---


def test_paths_are_contained_on_boundaries(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (tmp_path / "root-twin").mkdir()
    links = {"up": "..", "twin": "../root-twin", "abs": "/etc", "dangling": "../nowhere"}
    links |= {"chain": "up", "fine": "in"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    assert fsio.contained(root, "a/b.md") == root / "a/b.md"
    assert fsio.contained(root, "fine/b.md") == root / "in/b.md"
    with pytest.raises(ValidationError, match=r"in/b\.md"):
        fsio.contained(root, "fine/b.md", follow=False)
    outside = ["..", "../root-twin/a", "/etc/passwd", "", ".", "a\0b", "in/../../x"]
    outside += ["up/a", "twin/a", "abs/passwd", "dangling", "dangling/a", "chain/root-twin/a"]
    for name in outside:
        with pytest.raises(ValidationError):
            fsio.contained(root, name)
