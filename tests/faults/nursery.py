"""Servers by the thousand.

Forked from a process that has imported the program once, so that each costs little.

What is forked runs `ragdocs mcp` or `ragdocs serve` from its first line, on pipes of its own; only
the import is not repeated.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LONGEST_REQUEST = 1 << 20
STREAMS = 3
# Set in the environment of a server that is forked: how soon it saves when it is quiet and when it
# is not, and where it counts the texts it encodes.
QUIET, SAVE, ENCODED = "FAULTS_QUIET_SECONDS", "FAULTS_SAVE_SECONDS", "FAULTS_ENCODED"


# Put on the path of a window, this lets the nursery fork the server that the window starts, and ends
# as the server does.
STAND_IN = """\
import sys
if "ragdocs.serve.shared.daemon" in sys.orig_argv:
    import json, os, socket
    arguments = sys.orig_argv[sys.orig_argv.index("ragdocs.serve.shared.daemon") + 1:]
    ended, theirs = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect({address!r})
        request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(line, [request], [0, 1, 2, theirs])
        os.close(theirs)
        line.recv(32)
    code = os.read(ended, 32)
    os._exit(int(code or 1))
"""


class Nursery:
    """A process that forks servers on request."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(dir="/tmp")
        # For the servers that windows start.
        self._address = str(Path(self._folder.name, "nursery"))
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "tests.faults.nursery",
                str(theirs.fileno()),
                self._address,
            ],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._lock = threading.Lock()

    def fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]
    ) -> int:
        """Start a server on these descriptors and return its process id."""
        request = json.dumps([list(arguments), dict(environment)]).encode()
        with self._lock:
            socket.send_fds(self._line, [request], descriptors)
            return int(self._line.recv(32))

    def stand_in(self) -> str:
        """Return a folder that makes the nursery start shared servers when it is on PYTHONPATH."""
        place = Path(self._folder.name, "sitecustomize.py")
        if not place.exists():
            place.write_text(STAND_IN.format(address=self._address))
        return self._folder.name

    def close(self) -> None:
        self._line.close()
        self._process.wait()
        self._folder.cleanup()


@functools.cache
def shared_nursery() -> Nursery:
    """Return the nursery of all tests of this process."""
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


class Forked:
    """A program that a nursery was asked for, as far as tests need it."""

    def __init__(
        self,
        nursery: Nursery,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stderr: int,
    ) -> None:
        self._ended, theirs = os.pipe()
        with Path(os.devnull).open("r+b") as nothing:
            descriptors = (nothing.fileno(), nothing.fileno(), stderr, theirs)
            self.pid = nursery.fork(arguments, environment, descriptors)
        os.close(theirs)
        self._code: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known to have ended."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, _: float = 0) -> int:
        """Wait until it has ended; return its exit code, or that of a kill if it told none."""
        if self._code is None:
            with os.fdopen(self._ended) as ended:
                self._code = int(ended.read() or -signal.SIGKILL)
        return self._code


def main() -> None:
    """Import what a server imports, then fork one for every request until the other side closes."""
    import ragdocs.__main__
    import ragdocs.serve.cli.app
    import ragdocs.serve.http.app
    import ragdocs.serve.mcp.server
    import ragdocs.serve.shared.daemon
    import ragdocs.serve.watch
    import ragdocs.workspace  # noqa: F401 - the engines; a forked server finds them imported

    # Nobody waits for the servers: most are killed by somebody else.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The tests may have had thousands of files open; `select` takes low numbers only.
    line = socket.socket(fileno=os.dup(int(sys.argv[1])))
    os.close(int(sys.argv[1]))
    windows = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    windows.bind(sys.argv[2])
    windows.listen()
    while True:
        ready, _, _ = select.select([line, windows], [], [])
        if windows in ready:
            with windows.accept()[0] as asking:
                _fork(asking)
        elif not _fork(line):
            return


def _fork(line: socket.socket) -> bool:
    """Fork the server that is asked for; return whether one was."""
    request, descriptors, _, _ = socket.recv_fds(line, LONGEST_REQUEST, STREAMS + 1)
    if not request:
        return False
    pid = os.fork()
    if not pid:
        _become(json.loads(request), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    line.send(str(pid).encode())
    return True


def _become(request: Any, descriptors: Sequence[int]) -> None:
    """Be a server that was started with these arguments, environment and descriptors.

    A fourth one is told the exit code, and is closed however the server ends. With a folder, it is
    the shared server that a window starts there.
    """
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number, inheritable=number < STREAMS)
        os.closerange(len(descriptors), 1024)
        # These know whether what they were opened on can be sought in.
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
        arguments, environment, *folder = request
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["ragdocs", *arguments]
        _arrange(environment)
        code = _run(*folder)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
        sys.stderr.write("" if isinstance(ended.code, int) else f"{ended.code}\n")
    except BaseException:  # noqa: BLE001 - whoever reads its standard error is told
        traceback.print_exc()
    if len(descriptors) > STREAMS:
        os.write(STREAMS, str(code).encode())
    os._exit(code)


def _run(folder: str = "") -> int:
    if not folder:
        from ragdocs.__main__ import main as ragdocs

        return ragdocs()
    from ragdocs.serve.shared import daemon

    os.setsid()
    os.chdir(folder)
    daemon.main()
    return 0


def _arrange(environment: Mapping[str, str]) -> None:
    from ragdocs.serve import live

    live.QUIET_SECONDS = float(environment.get(QUIET, live.QUIET_SECONDS))
    live.SAVE_SECONDS = float(environment.get(SAVE, live.SAVE_SECONDS))
    if ENCODED in environment:
        _count_encoding(Path(environment[ENCODED]))


def _count_encoding(place: Path) -> None:
    """Cache vectors as the built-in model does, and note how many texts were encoded."""
    from ragdocs.protocols import Encoder, Vectors
    from ragdocs.search.calibration import UNRELATED
    from ragdocs.search.encoders import choose
    from ragdocs.search.encoders.cache import CachedEncoder
    from ragdocs.search.encoders.hashing import HashEncoder

    class Counting(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            with place.open("a") as counted:
                # The questions that set the floor are no texts of the project.
                counted.write(f"{sum(text not in UNRELATED for text in texts)}\n")
            return super().encode(texts)

    def open_encoder(model: str, cache: Path | None) -> Encoder:
        assert model == "hash"
        return CachedEncoder(Counting(), cache or place.with_suffix(".sqlite"))

    choose.open_encoder = open_encoder


if __name__ == "__main__":
    main()
