"""`ragdocs mcp`: copies lines between a client and the project's shared server, started if there is none.

A second window must cost milliseconds and few megabytes, so this module imports little even of the standard library.
The lines are the protocol's own; they are read only to know what is unanswered when a server goes away.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import threading
import time

try:
    # By way of hashlib, OpenSSL would be loaded for one small hash: a quarter of a window's memory.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from ragdocs import __version__, import_path

# A server imports the SDK before it listens: about a second, more on a busy machine.
START_SECONDS = 20.0
# A server that dies this often in a row does not come back by being asked again.
MOST_RESTARTS = 3
# Answers to what was sent before the client closed its side.
DRAIN_SECONDS = 2.0
# The longest path that a Unix socket can have on every system.
LONGEST_ADDRESS = 100
LOST = "the ragdocs server ended while it worked on this and was started again; nothing is lost, call again"
GREETINGS = ("initialize", "notifications/initialized")
ANSWER = b'{"jsonrpc":"2.0","id":'


def run(arguments: list[str]) -> bool:
    """Serve standard input and output through the shared server; tell whether that was possible."""
    off = os.environ.get("RAGDOCS_SERVER_SHARED", "").casefold() in ("false", "no", "off", "0")
    if off or not hasattr(socket, "AF_UNIX") or sys.stdin.isatty() or {"-h", "--help"} & {*arguments}:
        return False
    place = address(arguments)
    if place is None:
        return False
    line = Line(place, arguments)
    try:
        line.connect()
    except OSError:
        # Serving alone says what is wrong, if it is the configuration.
        return False
    # A window has nothing to tidy up, so an interrupt ends it, also where whoever started it has them ignored. Python's
    # own handler would be heard only with the next line of input if it came just before the wait for one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    line.serve()
    return True


def address(arguments: list[str]) -> str | None:
    """Return where the server for these arguments and settings listens, or nothing where no folder is private."""
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith(("RAGDOCS_", "XDG_", "HOME")))
    said = json.dumps([__version__, sys.executable, os.getcwd(), arguments, settings, _config_states(arguments)])
    name = blake2b(said.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"):  # noqa: S108 - made private below
        place = os.path.join(folder or "", f"ragdocs-{os.getuid()}")
        if folder and len(place) + len(name) + 6 < LONGEST_ADDRESS and _make_private(place):
            return os.path.join(place, name)
    return None


def _config_states(arguments: list[str]) -> list[tuple[str, int, int]]:
    """List the configuration files that may count, as they are now: another text is another server."""
    start = next((after for before, after in zip(arguments, arguments[1:], strict=False) if before == "--project"), ".")
    folder = os.path.realpath(next((a[10:] for a in arguments if a.startswith("--project=")), start))
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files = [os.path.join(home, "ragdocs", "config.toml")]
    while folder not in (os.path.dirname(folder), *files):
        files.append(os.path.join(folder, "config.toml"))
        folder = os.path.dirname(folder)
    states = []
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        states.append((file, status.st_mtime_ns, status.st_size))
    return states


def _make_private(folder: str) -> bool:
    """Make a folder for this user alone; tell whether it is one."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


class Line:
    """One client's line to the shared server, which it brings back when it breaks."""

    def __init__(self, place: str, arguments: list[str]) -> None:
        self._place = place
        self._arguments = arguments
        self._socket: socket.socket | None = None
        self._lock = threading.RLock()
        self._greeting: list[bytes] = []
        self._unanswered: dict[str, bytes] = {}
        self._closing = False

    def connect(self) -> None:
        """Connect to the server, and start it if nobody answers; of several that try at once, one starts it."""
        import fcntl

        if self._dial():
            return
        lock = os.open(f"{self._place}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._dial():
                self._start()
        finally:
            os.close(lock)

    def serve(self) -> None:
        """Copy lines both ways until the client closes its side."""
        copier = threading.Thread(target=self._copy_answers, daemon=True)
        copier.start()
        for request in sys.stdin.buffer:
            self._send(request)
        with self._lock:
            self._closing = True
            try:
                if self._socket:
                    self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                # The server went away at the same moment; there is nobody left to tell.
                return
        copier.join(DRAIN_SECONDS)

    def _dial(self) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(f"{self._place}.sock")
        except OSError:
            connection.close()
            return False
        self._socket = connection
        return True

    def _start(self) -> None:
        import subprocess

        log = os.open(f"{self._place}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        command = [*import_path.server_command("ragdocs.serve.shared"), self._place, *self._arguments]
        environ = import_path.server_environment()
        with open(log, "wb") as output:
            server = subprocess.Popen(  # noqa: S603 - our own module
                command, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._dial():
            if server.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"it did not start; see {self._place}.log")
            time.sleep(0.01)

    def _send(self, request: bytes) -> None:
        message = _parsed(request)
        with self._lock:
            if message.get("method") in GREETINGS:
                self._greeting.append(request)
            if "method" in message and "id" in message:
                self._unanswered[json.dumps(message["id"])] = request
            try:
                if self._socket:
                    self._socket.sendall(request)
            except OSError:
                # The side that listens notices a broken line too, and answers for what was lost.
                return

    def _copy_answers(self) -> None:
        while self._socket:
            self._copy_until_broken(self._socket)
            with self._lock:
                if self._closing:
                    return
                try:
                    self._mend()
                except OSError as error:
                    sys.stderr.write(f"ragdocs: the server is gone: {error}\n")
                    os._exit(1)

    def _copy_until_broken(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as answers:
                for answer in answers:
                    answered = _answers(answer)
                    if answered is not None:
                        with self._lock:
                            self._unanswered.pop(answered, None)
                    _write(answer)
        except OSError:
            return

    def _mend(self) -> None:
        """Bring the server back, greet it as the client did, and answer for what the old one had not."""
        self._socket = None
        hello = json.dumps(_parsed(self._greeting[0]).get("id")) if self._greeting else ""
        greeted = hello not in self._unanswered
        for key in [key for key in self._unanswered if key != hello]:
            del self._unanswered[key]
            error = {"jsonrpc": "2.0", "id": json.loads(key), "error": {"code": -32000, "message": LOST}}
            _write(json.dumps(error).encode() + b"\n")
        for _ in range(MOST_RESTARTS):
            self.connect()
            if self._greet(answered=greeted):
                return
        raise OSError("it ended again and again")

    def _greet(self, *, answered: bool) -> bool:
        """Repeat the client's greeting, keep back the answer it has had, and tell whether the server is alive.

        A process that is being killed still accepts a connection; only an answer shows that somebody is there.
        """
        if self._socket is None or not self._greeting:
            return self._socket is not None
        first, *rest = self._greeting
        try:
            self._socket.sendall(first)
            while answered and "result" not in (message := _parsed(_read_line(self._socket))):
                if not message:
                    return False
            self._socket.sendall(b"".join(rest))
        except OSError:
            return False
        return True


def _answers(line: bytes) -> str | None:
    """Return the id, as JSON, of the request that a line answers, if it does."""
    # The SDK's order of fields; reading the rest of a long answer would double what a window costs.
    start = line[: len(ANSWER) + 40]
    if start.startswith(ANSWER):
        key, found, after = start[len(ANSWER) :].partition(b',"')
        if found and key.isdigit() and after.startswith((b'result"', b'error"')):
            return key.decode()
    message = _parsed(line)
    return None if "method" in message else json.dumps(message.get("id"))


def _read_line(connection: socket.socket) -> bytes:
    """Read one line and not a byte more, because the rest belongs to whoever copies the answers."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            return b""
        line += byte
    return line


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _parsed(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
