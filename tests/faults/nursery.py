"""Servers by the thousand.

Forked from a process that has imported the program once, so that each costs little.

What is forked runs `ragdocs mcp` from its first line, on pipes of its own; only the import is not
repeated.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LONGEST_REQUEST = 1 << 20
# Set in the environment of a server that is forked: how soon it saves when it is quiet and when it
# is not, and where it counts the texts it encodes.
QUIET, SAVE, ENCODED = "FAULTS_QUIET_SECONDS", "FAULTS_SAVE_SECONDS", "FAULTS_ENCODED"


class Nursery:
    """A process that forks servers on request."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.nursery", str(theirs.fileno())],
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
        """Start a server on these three descriptors and return its process id."""
        request = json.dumps([list(arguments), dict(environment)]).encode()
        with self._lock:
            socket.send_fds(self._line, [request], descriptors)
            return int(self._line.recv(32))

    def close(self) -> None:
        self._line.close()
        self._process.wait()


def main() -> None:
    """Import what a server imports, then fork one for every request until the other side closes."""
    import ragdocs.__main__
    import ragdocs.serve.cli.app
    import ragdocs.serve.mcp.server
    import ragdocs.serve.watch
    import ragdocs.workspace  # noqa: F401 - the engines; a forked server finds them imported

    # Nobody waits for the servers: most are killed by somebody else.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    line = socket.socket(fileno=int(sys.argv[1]))
    while True:
        request, descriptors, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 3)
        if not request:
            return
        pid = os.fork()
        if not pid:
            _become(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(str(pid).encode())


def _become(request: Any, descriptors: Sequence[int]) -> None:
    """Be a server that was started with these arguments, environment and descriptors."""
    code = 1
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 1024)
        arguments, environment = request
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["ragdocs", *arguments]
        _arrange(environment)
        from ragdocs.__main__ import main as ragdocs

        code = ragdocs()
    os._exit(code)


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
