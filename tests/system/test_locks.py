from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import LockAcquisitionError, NotFoundError, RagdocsError
from ragdocs.stores.summaries import SummaryFile
from ragdocs.system import locks, platform

if TYPE_CHECKING:
    from tests.conftest import Project


def names(folder: Path) -> list[str]:
    return [place.name for place in folder.iterdir()]


def is_free(folder: Path, timeout: float = 0.02, shared: bool = False) -> bool:
    """Tell whether somebody else could lock a folder now."""
    try:
        with locks.lock(folder, timeout, shared):
            return True
    except LockAcquisitionError:
        return False


@pytest.fixture(params=["flock", "lock file"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RAGDOCS_PORTABLE", str(int(request.param == "lock file")))
    return str(request.param)


def test_a_held_lock_times_out_for_others_and_is_free_again_after(
    tmp_path: Path, kind: str
) -> None:
    with locks.lock(tmp_path):
        assert not is_free(tmp_path)
        assert (names(tmp_path) == [locks.LOCK_FILE]) == (kind == "lock file")
    # A waiter that gave up may still be in the kernel's queue, and lets go at its turn.
    assert is_free(tmp_path, 5)
    assert names(tmp_path) == []


def test_threads_exclude_each_other(tmp_path: Path, kind: str) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    directory = tmp_path / "locked"
    directory.mkdir()

    def count(_: int) -> None:
        for _ in range(25):
            with locks.lock(directory, timeout=60):
                counter.write_text(str(int(counter.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert counter.read_text() == "100"


def test_readers_share_a_lock_and_keep_writers_out(tmp_path: Path, own_system: None) -> None:
    with locks.lock(tmp_path, shared=True):
        assert is_free(tmp_path, 5, shared=True)
        assert not is_free(tmp_path)
    with locks.lock(tmp_path):
        assert not is_free(tmp_path, shared=True)


HOLD = """
import sys
from pathlib import Path
from ragdocs.system import locks, platform
with locks.lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_holder_frees_the_lock(tmp_path: Path, kind: str) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not is_free(tmp_path)
        holder.kill()
    assert is_free(tmp_path, 5)


def test_a_forked_child_does_not_hold_its_parents_lock(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with locks.lock(tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    try:
        assert is_free(tmp_path, 5)
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_lock_on_a_folder_made_anew_is_a_lock_on_the_new_one(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with locks.lock(folder):
        shutil.rmtree(folder)
        folder.mkdir()
        with locks.lock(folder, timeout=5):
            assert not is_free(folder)


HERE = platform.host_name()
DEAD = 2**22 + 1


@pytest.mark.parametrize(
    ("record", "age", "stale"),
    [
        ({"pid": os.getpid(), "host": HERE}, 0, False),
        ({"pid": DEAD, "host": HERE}, 0, True),
        ({"pid": os.getpid(), "host": HERE}, 3600, True),
        ({"pid": DEAD, "host": "another"}, 0, False),
        ({"pid": DEAD, "host": "another"}, 3600, True),
        (None, 0, False),
        (None, 3600, True),
    ],
)
def test_a_lock_file_is_broken_only_when_its_holder_is_gone(
    tmp_path: Path, portable: None, record: dict[str, object] | None, age: float, stale: bool
) -> None:
    place = tmp_path / locks.LOCK_FILE
    place.write_text(json.dumps(record) if record else "")
    os.utime(place, (time.time() - age,) * 2)
    patience = 5 if stale else 0.05
    assert is_free(tmp_path, patience) is stale
    assert place.exists() is not stale


def test_a_file_system_without_flock_gets_a_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr("fcntl.flock", refuse)
    with locks.lock(tmp_path):
        assert names(tmp_path) == [locks.LOCK_FILE]
    assert names(tmp_path) == []


def test_a_full_disk_leaves_no_lock_file_behind(
    tmp_path: Path, portable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        with pytest.raises(RagdocsError, match="space"), locks.lock(tmp_path):
            pass
    assert names(tmp_path) == []
    assert is_free(tmp_path)


def test_a_lock_needs_its_folder(tmp_path: Path, kind: str) -> None:
    with pytest.raises(NotFoundError), locks.lock(tmp_path / "missing"):
        pass


def waiting(folder: Path) -> int:
    """Count who waits for the lock of a folder in the kernel's own queue."""
    inode = f":{folder.stat().st_ino} "
    queue = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and inode in line for line in queue)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux shows who waits")
def test_whoever_waits_is_served_in_turn(tmp_path: Path, own_system: None) -> None:
    served: list[int] = []

    def wait(number: int) -> None:
        with locks.lock(tmp_path, timeout=60):
            served.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    with locks.lock(tmp_path):
        for count, thread in enumerate(threads, start=1):
            thread.start()
            while waiting(tmp_path) < count:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert served == list(range(8))


def test_a_lock_that_comes_too_late_is_let_go(tmp_path: Path) -> None:
    with locks.lock(tmp_path):
        assert not is_free(tmp_path, 0.05)
    for waiter in threading.enumerate():
        if waiter.name == "ragdocs-lock":
            waiter.join(5)
    assert is_free(tmp_path, 0)


# --- a lock of another program ---

FOREIGN = """
import fcntl, os, sys, time
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def foreign_lock(folder: Path) -> Iterator[int]:
    """Let another program, which knows nothing of ours, lock a folder."""
    command = [sys.executable, "-c", FOREIGN, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        try:
            yield holder.pid
        finally:
            holder.kill()


def test_the_error_names_who_holds_the_lock_and_what_to_do(
    tmp_path: Path, own_system: None
) -> None:
    with (
        foreign_lock(tmp_path) as pid,
        pytest.raises(LockAcquisitionError) as refused,
        locks.lock(tmp_path, timeout=0.05),
    ):
        pass
    message = str(refused.value)
    if Path("/proc/locks").exists():
        assert f"locked by process {pid} (" in message
    assert "Nothing was written" in message
    assert "end it, and try again" in message
    assert "0.05 seconds" in message


def test_the_error_names_the_holder_of_a_lock_file(tmp_path: Path, portable: None) -> None:
    expected = pytest.raises(LockAcquisitionError, match=f"process {os.getpid()} on ")
    with locks.lock(tmp_path), expected, locks.lock(tmp_path, timeout=0.05):
        pass


def test_nobody_who_reads_waits_for_a_lock(project: Project, own_system: None) -> None:
    project.memory("a.md", "A note about the harbour.")
    workspace = project.open()
    workspace.repository.append_summary("run", "step", "what happened")
    workspace.save()
    # A promise, which only somebody with the lock may keep.
    (project.root / ".memories/.history").mkdir(exist_ok=True)
    (project.root / ".memories/.history/forward.json").write_text("[]")
    kept = workspace.summaries(workspace.scope())
    assert isinstance(kept, SummaryFile)
    summaries = kept.folder
    with contextlib.ExitStack() as stack:
        generations = [
            place.parent for place in (project.root / ".memories").rglob("manifest.json")
        ]
        assert generations
        for folder in (project.root / ".memories", summaries, *generations):
            stack.enter_context(foreign_lock(folder))
        started = time.monotonic()
        fresh = project.open()
        assert fresh.memories.read("a.md").source.text
        assert fresh.memories.search("harbour").hits
        assert fresh.repository.get().summaries
        assert fresh.versions.history("", 10).total == 0
        assert time.monotonic() - started < 4
        with pytest.raises(LockAcquisitionError, match="5 seconds"):
            fresh.memories.create("b.md", "x", [])
    fresh.memories.create("b.md", "x", [])
