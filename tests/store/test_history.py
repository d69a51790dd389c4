from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragdocs.errors import NotFoundError, RagdocsError, StorageError, ValidationError
from ragdocs.lanes import MEMORY
from ragdocs.store import history
from ragdocs.store.files import FileStore
from ragdocs.store.history import History, Step, version_of
from ragdocs.types import Change, Discard, Put

from .contract import fork, plant

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


def kept(store: History, path: str, text: str, at: datetime = NOW) -> str:
    store.keep(Step(path, text.encode(), b"after"), "update", at)
    return version_of(text.encode())


def test_kept_bytes_come_back_exactly(tmp_path: Path) -> None:
    data = bytes(range(256))
    History(tmp_path).keep(Step("a.md", data, None), "delete", NOW)
    assert History(tmp_path).recover(version_of(data)) == data


def test_equal_texts_are_kept_once_and_logged_twice(tmp_path: Path) -> None:
    store = History(tmp_path)
    kept(store, "a.md", "same")
    kept(store, "b.md", "same")
    assert [revision.path for revision in store.revisions()] == ["b.md", "a.md"]
    assert len(list((tmp_path / ".history").glob("??/*"))) == 1


def test_what_is_internal_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    kept(History(tmp_path), "a.md", "x")
    places = [tmp_path / ".history", *(tmp_path / ".history").rglob("*")]
    modes = {stat.S_IMODE(place.stat().st_mode) for place in places}
    assert modes == {0o700, 0o600}
    assert (tmp_path / ".history/.gitignore").read_text() == "*\n"


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    store = History(tmp_path)
    kept(store, "a.md", "one")
    log = tmp_path / ".history/log.jsonl"
    foreign = [
        *('{"at": "2026-02-04T12:0', "null", "[]", "7", "\xff", '{"path": "a.md"}', "[" * 5000),
        '{"at": 5, "path": "a.md", "version": "0123456789abcdef", "verb": "update", "size": 1}',
        '{"at": "2026-02-04T12:00:00", "path": "a.md", "version": "0123456789abcdef", "verb": "update", "size": 1}',
        '{"at": "2026-02-04T12:00:00Z", "path": "a.md", "version": "../../x", "verb": "update", "size": 1}',
        '{"at": "2026-02-04T12:00:00Z", "path": "a.md", "version": "0123456789abcdef", "verb": "run", "size": 1}',
        '{"at": "2026-02-04T12:00:00Z", "path": "a", "version": "0123456789abcdef", "verb": "update", "size": 1e999}',
        "torn at the e",
    ]
    log.write_bytes(log.read_bytes() + "\n".join(foreign).encode("latin-1"))
    kept(store, "a.md", "two")
    assert [store.recover(revision.version) for revision in store.revisions("a.md")] == [b"two", b"one"]


def test_a_damaged_text_is_never_handed_out(tmp_path: Path) -> None:
    store = History(tmp_path)
    version = kept(store, "a.md", "precious")
    next((tmp_path / ".history").glob("??/*")).write_bytes(b"precioux")
    with pytest.raises(StorageError, match="damaged"):
        store.recover(version)
    kept(store, "a.md", "precious")
    assert store.recover(version) == b"precious"


def test_the_oldest_go_first_when_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_BYTES", 100_000)
    store = History(tmp_path)
    versions = []
    for index in range(30):
        versions.append(kept(store, "a.md", f"{index:05}" * 2000))
        store.prune(NOW)
    left = [revision.version for revision in store.revisions()]
    assert left == versions[: -len(left) - 1 : -1]
    assert 8 <= len(left) <= 12
    assert len(list((tmp_path / ".history").glob("??/*"))) == len(left)
    with pytest.raises(NotFoundError):
        store.recover(versions[0])


def test_the_last_text_stays_however_large_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEEP_BYTES", 1000)
    store = History(tmp_path)
    version = kept(store, "a.md", "x" * 5000)
    store.prune(NOW)
    assert store.recover(version) == b"x" * 5000


def test_old_texts_go_but_a_wrong_clock_does_not_empty_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEEP_ALWAYS", 3)
    store = History(tmp_path)
    for index in range(5):
        kept(store, "a.md", f"old {index}", NOW - timedelta(days=400))
    store.prune(NOW)
    assert len(store.revisions()) == 3


def test_staged_texts_of_a_change_are_dropped_with_the_rest(tmp_path: Path) -> None:
    store = History(tmp_path)
    version = version_of(store.load(store.store(b"never logged")))
    kept(store, "a.md", "x")
    store.prune(NOW)
    with pytest.raises(NotFoundError):
        store.recover(version)


def test_pruning_never_reaches_through_a_link(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / ("a" * 62)).write_text("precious")
    store = History(root)
    kept(store, "a.md", "x")
    (root / ".history/aa").symlink_to("../../outside")
    with pytest.raises(ValidationError):
        store.prune(NOW)
    assert (outside / ("a" * 62)).read_text() == "precious"


def test_a_promise_is_read_back_and_can_be_turned(tmp_path: Path) -> None:
    store = History(tmp_path)
    steps = [
        Step("a.md", b"a", b"b"),
        Step("c.md", b"c", None, ".trash/c_20260204_120000.md"),
        Step("n.md", None, b"n"),
    ]
    assert not store.pending()
    store.promise(steps)
    assert store.pending()
    assert store.promised() == (steps, True)
    store.turn_back()
    assert store.promised() == (steps, False)
    store.fulfil()
    assert store.promised() is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> FileStore:
    return FileStore(root, MEMORY)


# --- several processes ---

APPEND = """
import sys
from pathlib import Path
from ragdocs.errors import ConflictError
from ragdocs.lanes import MEMORY
from ragdocs.store.files import FileStore
from ragdocs.types import Put
store = FileStore(Path(sys.argv[1]), MEMORY)
for number in range(50):
    while True:
        source = store.read("log.md")
        try:
            store.commit([Put("log.md", source.text + f"{sys.argv[2]}-{number}\\n", source.version)])
            break
        except ConflictError:
            pass
"""


def test_two_processes_append_and_nothing_is_lost(root: Path, store: FileStore) -> None:
    store.commit([Put("log.md", "")])
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, str(root), name]) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = store.read("log.md").text.split()
    assert sorted(lines) == sorted(f"{name}-{number}" for name in ("a", "b") for number in range(50))
    assert len(store.history("log.md")) == 100


# --- faults ---

CALLS = ("open", "write", "fsync", "replace", "rename", "unlink", "mkdir", "fchmod")

WALKS: dict[str, list[Change]] = {
    "create": [Put("new/n.md", "new")],
    "update": [Put("a.md", "changed")],
    "delete": [Discard("a.md")],
    "merge": [Put("all.md", "a b c"), Discard("a.md"), Discard("b.md"), Discard("f/c.md")],
    "merge into a source": [Put("a.md", "a b"), Discard("b.md")],
    "rewrite": [Put("a.md", "A"), Put("b.md", "B"), Put("new.md", "N")],
}
BEFORE = {"a.md": "a", "b.md": "b", "f/c.md": "c"}


def after(changes: list[Change]) -> dict[str, str]:
    texts = dict(BEFORE)
    for change in changes:
        if isinstance(change, Put):
            texts[change.path] = change.text
        else:
            del texts[change.path]
    return texts


def prepared(root: Path) -> None:
    for path, text in BEFORE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def texts_of(store: FileStore) -> dict[str, str]:
    return {path: store.read(path).text for path in store.scan().stamps}


def unsynced(descriptor: int) -> None:
    """Stand in for fsync: a killed process loses nothing that the kernel has, so it need not take its time."""


def strike(
    monkeypatch: pytest.MonkeyPatch, number: int, blow: Callable[[], None], *, lasting: bool = False
) -> list[int]:
    """Let the numbered file call fail; return a list whose only item counts the calls."""
    count = [0]

    def struck(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            count[0] += 1
            if count[0] == number or (lasting and count[0] > number):
                blow()
            return original(*arguments, **options)

        return call

    monkeypatch.setattr(os, "fsync", unsynced)
    for name in CALLS:
        monkeypatch.setattr(os, name, struck(getattr(os, name)))
    return count


@pytest.mark.parametrize("walk", WALKS)
def test_a_kill_at_any_call_leaves_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str) -> None:
    changes = WALKS[walk]
    outcomes = set()
    for number in range(1, 500):
        root = tmp_path / str(number)
        prepared(root)
        child = fork()
        if child == 0:
            strike(pytest.MonkeyPatch(), number, lambda: os._exit(9))
            FileStore(root, MEMORY).commit(changes)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        store = FileStore(root, MEMORY)
        texts = texts_of(store)
        assert texts in (BEFORE, after(changes)), (number, texts)
        outcomes.add(texts == BEFORE)
        assert not list((root / ".history").glob("*.json"))
        monkeypatch.setattr(os, "fsync", unsynced)
        store.commit([Put("z.md", "the store still works")])
        for path, text in BEFORE.items():
            kept = [store.recover(revision.version) for revision in store.history(path)]
            assert texts.get(path) == text or text in kept
        if code == 0:
            break
    assert code == 0
    assert number > 8
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    ("code", "lasting"),
    [(errno.ENOSPC, False), (errno.EIO, False), (errno.EROFS, True)],
    ids=["full once", "broken once", "read-only for good"],
)
@pytest.mark.parametrize("walk", WALKS)
def test_a_fault_at_any_call_is_told_and_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str, code: int, lasting: bool
) -> None:
    changes = WALKS[walk]

    def blow() -> None:
        raise OSError(code, os.strerror(code))

    undone = done = 0
    for number in range(1, 500):
        root = tmp_path / str(number)
        prepared(root)
        error: RagdocsError | None = None
        with monkeypatch.context() as patched:
            calls = strike(patched, number, blow, lasting=lasting)
            try:
                FileStore(root, MEMORY).commit(changes)
            except RagdocsError as caught:
                error = caught
        texts = texts_of(FileStore(root, MEMORY))
        assert texts in ([after(changes)] if error is None else [BEFORE, after(changes)]), (number, texts, error)
        undone += error is not None and texts == BEFORE
        done += error is not None and texts != BEFORE
        if calls[0] < number:
            break
    assert calls[0] < number
    assert undone > 8
    # Only what fails after the last rename, or for good, may leave the new texts behind an error.
    assert lasting or done <= 5


def test_a_short_write_is_continued(root: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:3]))
        store.commit([Put("a.md", "longer than three bytes")])
    assert store.read("a.md").text == "longer than three bytes"


def killed_in_merge(root: Path, at: int) -> None:
    prepared(root)
    child = fork()
    if child == 0:
        strike(pytest.MonkeyPatch(), 10_000, lambda: None)
        rename = os.rename
        seen = [0]

        def stop(*arguments: str) -> None:
            seen[0] += 1
            if seen[0] == at:
                os._exit(9)
            rename(*arguments)

        os.rename = stop  # type: ignore[assignment]
        FileStore(root, MEMORY).commit(WALKS["merge"])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_an_edit_after_a_crash_is_kept_and_the_rest_undone(root: Path) -> None:
    killed_in_merge(root, 2)
    assert not (root / "a.md").exists()
    (root / "b.md").write_text("edited by hand")
    assert texts_of(FileStore(root, MEMORY)) == {"a.md": "a", "b.md": "edited by hand", "f/c.md": "c"}


def test_a_reader_in_another_process_finishes_a_killed_merge(root: Path) -> None:
    reader = FileStore(root, MEMORY)
    killed_in_merge(root, 2)
    assert texts_of(reader) == {"all.md": "a b c"}


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'[{"path": "../../x.md", "before": null, "after": null, "trash": ""}]',
        b'[{"path": "a.md", "before": null, "after": null, "trash": "../../x"}]',
        b'[{"path": "a.md", "before": "../../../etc/passwd", "after": null, "trash": ".trash/a.md"}]',
        b'[{"path": "a.md", "before": 1, "after": null, "trash": 5}]',
        b'{"path": 1}',
    ],
)
def test_a_foreign_record_of_a_change_is_set_aside(root: Path, record: bytes) -> None:
    plant(root, "a.md")
    (root / ".history").mkdir()
    (root / ".history/forward.json").write_bytes(record)
    store = FileStore(root, MEMORY)
    assert texts_of(store) == {"a.md": "a.md"}
    store.commit([Put("b.md", "x")])
    assert (root / ".history/forward.unreadable").read_bytes() == record
