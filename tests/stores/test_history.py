from __future__ import annotations

import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragdocs.errors import NotFoundError, StorageError, ValidationError
from ragdocs.lanes import MEMORY
from ragdocs.stores.files import history
from ragdocs.stores.files.history import History, Step, version_of
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Expect, Put

from .contract import plant

pytestmark = pytest.mark.usefixtures("system")


NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


def kept(store: History, path: str, text: str, at: datetime = NOW) -> str:
    store.keep([Step(path, text.encode(), b"after")], "update", at)
    return version_of(text.encode())


def test_equal_texts_are_kept_once_and_logged_twice(tmp_path: Path) -> None:
    store = History(tmp_path)
    kept(store, "a.md", "same")
    kept(store, "b.md", "same")
    assert [revision.path for revision in store.revisions()] == ["b.md", "a.md"]
    assert len(list((tmp_path / ".history").glob("??/*"))) == 1


def test_an_author_is_kept_where_it_is_known(tmp_path: Path) -> None:
    store = History(tmp_path)
    kept(store, "a.md", "one")
    store.keep([Step("a.md", b"two", b"three")], "update", NOW, "claude-code")
    store.keep([Step("a.md", b"three", b"four")], "update", NOW, "x" * 1000)
    log = tmp_path / ".history/log.jsonl"
    assert b"author" not in log.read_bytes().split(b"\n")[0]
    authors = [revision.author for revision in store.revisions()]
    assert authors == ["x" * 80, "claude-code", ""]
    log.write_text(log.read_text().replace('"claude-code"', '["odd", 7]'))
    assert [change.author for change in store.commits()] == ["x" * 80, "['odd', 7]", ""]


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
    step = '{"path": "a.md", "version": "0123456789abcdef", "size": 1, "after": ""}'
    line = f'{{"at": "2026-02-04T12:00:00Z", "verb": "update", "steps": [{step}]}}'
    foreign = [
        *('{"at": "2026-02-04T12:0', "null", "[]", "7", "\xff", '{"path": "a.md"}', "[" * 5000),
        line.replace('"2026-02-04T12:00:00Z"', "5"),
        line.replace("00Z", "00"),
        line.replace("0123456789abcdef", "../../x"),
        line.replace('"after": ""', '"after": "../../x"'),
        line.replace('"update"', '"run"'),
        line.replace('"update"', "[]"),
        line.replace('"size": 1', '"size": 1e999'),
        line.replace(step, ""),
        "torn at the e",
    ]
    log.write_bytes(log.read_bytes() + "\n".join(foreign).encode("latin-1"))
    kept(store, "a.md", "two")
    assert len(store.commits()) == 2
    assert [store.recover(revision.version) for revision in store.revisions("a.md")] == [
        b"two",
        b"one",
    ]


def test_a_damaged_text_is_never_handed_out(tmp_path: Path) -> None:
    store = History(tmp_path)
    version = kept(store, "a.md", "precious")
    next((tmp_path / ".history").glob("??/*")).write_bytes(b"precioux")
    with pytest.raises(StorageError, match="damaged"):
        store.recover(version)
    kept(store, "a.md", "precious")
    assert store.recover(version) == b"precious"


def test_the_oldest_go_first_when_there_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    # The last one stays, however large it is.
    version = kept(store, "a.md", "x" * 500_000)
    store.prune(NOW)
    assert store.recover(version) == b"x" * 500_000


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


def test_a_log_beyond_its_limit_is_read_from_its_end_and_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOG_LIMIT", 20_000)
    store = History(tmp_path)
    versions = [kept(store, "a.md", f"text {number}") for number in range(200)]
    log = tmp_path / ".history/log.jsonl"
    assert log.stat().st_size > 30_000
    left = [revision.version for revision in store.revisions()]
    assert left == versions[: -len(left) - 1 : -1]
    assert 50 < len(left) < 200
    assert store.prune(NOW)
    assert log.stat().st_size <= 20_000
    assert [revision.version for revision in store.revisions()] == left
    assert store.recover(left[-1])
    # Once in a while is not every time.
    assert not store.prune(NOW)


def test_a_log_of_one_endless_line_loses_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOG_LIMIT", 20_000)
    store = History(tmp_path)
    version = kept(store, "a.md", "precious")
    (tmp_path / ".history/log.jsonl").write_bytes(b"x" * 30_000)
    assert store.revisions() == []
    with pytest.raises(StorageError, match="no line that can be read"):
        store.prune(NOW)
    assert store.recover(version) == b"precious"
    # What comes next is on a line of its own.
    newer = kept(store, "a.md", "next")
    assert [revision.version for revision in store.revisions()] == [newer]


def test_a_write_succeeds_whatever_the_size_of_the_history_and_a_failed_pruning_is_told(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    store = FileStore(root, MEMORY)
    store.commit([Put("a.md", "one", Expect.ABSENT)])
    log = root / ".history/log.jsonl"
    with log.open("ab") as opened:
        opened.truncate(60_000_000)
    store = FileStore(root, MEMORY)
    written = store.commit([Put("a.md", "two", Expect.PRESENT)])[0]
    assert written.notes == ()
    assert [store.recover(revision.version) for revision in store.history("a.md")] == ["one"]
    assert log.stat().st_size < 1_000
    # A link in the place of a folder keeps the old texts from being dropped.
    shutil.rmtree(root / ".history/aa", ignore_errors=True)
    (root / ".history/aa").symlink_to(tmp_path)
    store = FileStore(root, MEMORY)
    written = store.commit([Put("a.md", "three", Expect.PRESENT)])[0]
    assert "cannot be pruned" in written.notes[0]
    assert "cannot be pruned" in store.scan().unreadable[".history"]
    assert store.read("a.md").text == "three"
    (root / ".history/aa").unlink()
    store = FileStore(root, MEMORY)
    assert store.commit([Put("a.md", "four", Expect.PRESENT)])[0].notes == ()
    assert store.scan().unreadable == {}


def test_a_promise_larger_than_any_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "LOG_LIMIT", 20_000)
    root = tmp_path / "root"
    store = FileStore(root, MEMORY)
    store.commit([Put("a.md", "one", Expect.ABSENT)])
    (root / ".history/forward.json").write_bytes(b"[" + b" " * 30_000 + b"]")
    store.commit([Put("a.md", "two", Expect.PRESENT)])
    assert store.read("a.md").text == "two"
    assert (root / ".history/forward.unreadable").exists()


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


# --- foreign records ---


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
def test_a_foreign_record_of_a_change_is_set_aside(tmp_path: Path, record: bytes) -> None:
    root = tmp_path / "root"
    plant(root, "a.md")
    (root / ".history").mkdir()
    (root / ".history/forward.json").write_bytes(record)
    store = FileStore(root, MEMORY)
    assert list(store.scan().stamps) == ["a.md"]
    store.commit([Put("b.md", "x")])
    assert (root / ".history/forward.unreadable").read_bytes() == record
