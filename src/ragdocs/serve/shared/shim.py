"""`ragdocs mcp`: copies lines between a client and the project's shared server.

Started if there is none.

A second window must cost milliseconds and few megabytes, so this module imports little even of the
standard library. The first line to a server is the window's environment, of which the server keeps
what is personal for as long as the window is connected. The lines after it are the protocol's own;
they are read only to know what is unanswered when a server goes away.
"""

from __future__ import annotations

import json
import os
import select
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
# A server accepts a window at once, however long its calls take; one that does not is stopped or
# swapped out.
ACCEPT_SECONDS = 5.0
# When nothing has come for so long while an answer is due, the server is asked whether it is there.
QUIET_SECONDS = 2.0
# Between two tries of what somebody else is doing.
PAUSE_SECONDS = 0.01
# Answers to what was sent before the client closed its side.
DRAIN_SECONDS = 2.0
# The longest path that a Unix socket can have on every system.
LONGEST_ADDRESS = 100
READ_AT_ONCE = 64 * 1024
# A longer line is passed on in parts; the server refuses it.
LONGEST_LINE = 64 * 1024 * 1024
LOST = "the ragdocs server was lost before it answered"
READ_AGAIN = "call again"
# Only the server knows which tools write.
LOOK_FIRST = (
    "If this tool only reads, call again. If it writes, it is not known whether this was done: "
    "look before you repeat it"
)
GREETINGS = ("initialize", "notifications/initialized")
ANSWER = b'{"jsonrpc":"2.0","id":'
# The first line to a server is one of these, or what the window says about itself; the answer to it
# is the other.
PING = b'{"ragdocs":"ping"}\n'
READY = b"ready\n"


def run(arguments: list[str]) -> bool:
    """Serve standard input and output through the shared server; tell whether that was possible."""
    off = os.environ.get("RAGDOCS_SERVER_SHARED", "").casefold() in ("false", "no", "off", "0")
    if (
        off
        or not hasattr(socket, "AF_UNIX")
        or sys.stdin.isatty()
        or {"-h", "--help"} & {*arguments}
    ):
        return False
    place = address(arguments)
    if place is None:
        return False
    line = Line(place, arguments)
    try:
        line.connect()
    except SilentError as error:
        _say(f"{error}; this window serves itself")
        return False
    except OSError:
        # Serving alone says what is wrong, if it is the configuration.
        return False
    # A window has nothing to tidy up, so an interrupt ends it, also where whoever started it has
    # them ignored. Python's own handler would be heard only with the next line of input if it came
    # just before the wait for one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    line.serve()
    return True


def address(arguments: list[str]) -> str | None:
    """Return where the server for these arguments and settings listens.

    Or nothing where no folder is private.
    """
    settings = sorted(
        pair for pair in os.environ.items() if pair[0].startswith(("RAGDOCS_", "XDG_", "HOME"))
    )
    said = json.dumps(
        [__version__, sys.executable, os.getcwd(), arguments, settings, _config_states(arguments)]
    )
    name = blake2b(said.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    for folder in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"):  # noqa: S108 - made private below
        place = os.path.join(folder or "", f"ragdocs-{os.getuid()}")
        if folder and len(place) + len(name) + 6 < LONGEST_ADDRESS and _make_private(place):
            return os.path.join(place, name)
    return None


def _config_states(arguments: list[str]) -> list[tuple[str, int, int]]:
    """List the configuration files that may count, as they are now.

    Another text is another server.
    """
    start = next(
        (
            after
            for before, after in zip(arguments, arguments[1:], strict=False)
            if before == "--project"
        ),
        ".",
    )
    folder = os.path.realpath(
        next((a[10:] for a in arguments if a.startswith("--project=")), start)
    )
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
    return (
        stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    )


class SilentError(OSError):
    """A server is there, but it does not answer."""


class Line:
    """One client's line to the shared server, which it brings back when it breaks."""

    def __init__(self, place: str, arguments: list[str]) -> None:
        self._place = place
        self._arguments = arguments
        self._introduction = json.dumps({"environ": dict(os.environ)}).encode() + b"\n"
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._greeting: dict[str, bytes] = {}
        self._unanswered: dict[str, bytes] = {}
        # How often the server was lost since it last answered anything.
        self._losses = 0
        self._is_own = False
        self._closing = False

    def connect(self) -> None:
        """Connect to the server, and start it if nobody answers.

        Of several that try at once, one starts it.
        """
        if self._dial():
            return
        lock = os.open(f"{self._place}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(lock)
            if not self._dial():
                self._start()
        finally:
            os.close(lock)

    def serve(self) -> None:
        """Copy lines both ways until the client closes its side."""
        copier = threading.Thread(target=self._copy_answers, daemon=True)
        copier.start()
        is_whole = True
        while part := sys.stdin.buffer.readline(LONGEST_LINE):
            is_end = part.endswith(b"\n")
            self._send(part, _parsed(part) if is_whole and is_end else {})
            is_whole = is_end
        self._closing = True
        # Nobody waits for a server that is being brought back.
        if self._lock.acquire(timeout=DRAIN_SECONDS):
            try:
                if self._socket:
                    self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                # The server went away at the same moment; there is nobody left to tell.
                return
            finally:
                self._lock.release()
            copier.join(DRAIN_SECONDS)

    def _dial(self) -> bool:
        self._socket = _connected(self._place, self._introduction)
        self._is_own = False
        return self._socket is not None

    def _start(self) -> None:
        import subprocess

        log = os.open(
            f"{self._place}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        command = [
            *import_path.server_command("ragdocs.serve.shared.daemon"),
            self._place,
            *self._arguments,
        ]
        environ = import_path.server_environment()
        with open(log, "wb") as output:
            server = subprocess.Popen(  # noqa: S603 - our own module
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._dial():
            if server.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"it did not start; see {self._place}.log")
            time.sleep(PAUSE_SECONDS)

    def _start_own(self) -> None:
        """Start a server for this window alone, which ends with it."""
        import subprocess

        self._socket, theirs = socket.socketpair()
        self._is_own = True
        with theirs:
            subprocess.Popen(  # noqa: S603 - our own module
                [*import_path.server_command("ragdocs"), "mcp", *self._arguments],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env={**import_path.server_environment(), "RAGDOCS_SERVER_SHARED": "false"},
            )

    def _send(self, part: bytes, message: dict[str, object]) -> None:
        """Send a line or a part of one, and remember what is to be answered or repeated."""
        method, number = message.get("method"), message.get("id")
        # Held back while the server is brought back.
        with self._lock:
            if isinstance(method, str) and method in GREETINGS:
                self._greeting[method] = part
            if method is not None and isinstance(number, int | str):
                self._unanswered[json.dumps(number)] = part
            connection = self._socket
        try:
            if connection:
                connection.sendall(part)
        except OSError:
            # The side that listens notices a broken line too, and answers for what was lost.
            return

    def _copy_answers(self) -> None:
        while connection := self._socket:
            with connection:
                is_silent = not self._copy_until_broken(connection)
            with self._lock:
                if self._closing:
                    return
                try:
                    self._mend(is_silent=is_silent)
                except OSError as error:
                    _say(f"the server is gone: {error}")
                    os._exit(1)

    def _copy_until_broken(self, connection: socket.socket) -> bool:
        """Copy answers until the server is gone, or not there any more; tell whether it is gone."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        parts: list[bytes] = []
        while True:
            if not poll.poll(QUIET_SECONDS * 1000):
                if self._unanswered and not self._is_there():
                    _wake(connection)
                    return False
                continue
            try:
                data = connection.recv(READ_AT_ONCE)
            except OSError:
                return True
            if not data:
                return True
            before, end, rest = data.rpartition(b"\n")
            if end:
                self._pass_on(b"".join((*parts, before, end)))
                parts.clear()
            parts.append(rest)

    def _pass_on(self, answers: bytes) -> None:
        """Write whole lines, and cross off what they answer."""
        for answer in answers.splitlines(keepends=True):
            answered = _answers(answer)
            if answered is not None:
                with self._lock:
                    self._unanswered.pop(answered, None)
                    self._losses = 0
        _write(answers)

    def _is_there(self) -> bool:
        """Tell whether the server's event loop runs.

        An own one is a child that ends by itself if it must.
        """
        if self._is_own:
            return True
        try:
            connection = _connected(self._place, PING)
        except SilentError:
            return False
        if connection:
            connection.close()
        # If nobody listens, the server is ending, and the line to it breaks soon.
        return True

    def _mend(self, *, is_silent: bool) -> None:
        """Bring the server back, greet it as the client did.

        And answer for what the old one had not.
        """
        self._socket = None
        self._losses += 1
        greeted = self._answer_for_lost()
        reason = "it does not answer" if is_silent else "it ended again and again"
        while not is_silent and self._losses <= MOST_RESTARTS:
            try:
                self.connect()
                if self._greet(answered=greeted):
                    return
            except SilentError:
                is_silent = True
            except OSError as error:
                reason = str(error)
            self._losses += 1
        if self._losses > 2 * MOST_RESTARTS:
            raise OSError(reason)
        _say(f"the shared server was lost: {reason}; this window gets a server of its own")
        self._start_own()
        if not self._greet(answered=greeted):
            raise OSError(reason)

    def _answer_for_lost(self) -> bool:
        """Answer what the old server had not.

        Tell whether it had answered the client's greeting.
        """
        hello = json.dumps(_parsed(self._greeting.get("initialize", b"")).get("id"))
        for key in [key for key in self._unanswered if key != hello]:
            request = _parsed(self._unanswered.pop(key))
            message = (
                f"{LOST}. {LOOK_FIRST}"
                if request.get("method") == "tools/call"
                else f"{LOST}; {READ_AGAIN}"
            )
            error = {
                "jsonrpc": "2.0",
                "id": json.loads(key),
                "error": {"code": -32000, "message": message},
            }
            _write(json.dumps(error).encode() + b"\n")
        return hello not in self._unanswered

    def _greet(self, *, answered: bool) -> bool:
        """Repeat the client's greeting, keep back the answer it has had.

        And tell whether the server is alive.
        """
        if self._socket is None:
            return False
        hello = self._greeting.get("initialize", b"")
        try:
            self._socket.settimeout(START_SECONDS)
            self._socket.sendall(hello)
            while (
                hello
                and answered
                and "result" not in (message := _parsed(_read_line(self._socket)))
            ):
                if not message:
                    return False
            self._socket.sendall(self._greeting.get("notifications/initialized", b""))
            self._socket.settimeout(None)
        except OSError:
            return False
        return True


def _connected(place: str, introduction: bytes) -> socket.socket | None:
    """Return a connection that a server has accepted, or nothing if there is no server."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ACCEPT_SECONDS)
        _queue(connection, f"{place}.sock")
        connection.sendall(introduction)
        answer = _read_line(connection)
        connection.settimeout(None)
    except TimeoutError:
        connection.close()
        raise SilentError(
            f"the shared server has not answered for {ACCEPT_SECONDS:g} seconds"
        ) from None
    except OSError:
        connection.close()
        return None
    if answer == READY:
        return connection
    connection.close()
    if answer:
        raise OSError(answer.decode("utf-8", "replace").strip())
    return None


def _queue(connection: socket.socket, name: str) -> None:
    """Queue a connection up for being accepted."""
    deadline = time.monotonic() + ACCEPT_SECONDS
    while True:
        try:
            connection.connect(name)
        except BlockingIOError:
            # So many wait for the server that there is no room for another one.
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(PAUSE_SECONDS)
        else:
            return


def _wake(connection: socket.socket) -> None:
    """End the wait of the side that sends, if the server does not take what it sends."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _take(lock: int) -> None:
    """Wait for a lock; whoever has it may be stopped."""
    import fcntl

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise SilentError("another window has not started the shared server") from None
            time.sleep(PAUSE_SECONDS)
        else:
            return


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


def _write(lines: bytes) -> None:
    try:
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()
    except OSError:
        # Nobody reads the answers any more.
        os._exit(0)


def _say(words: str) -> None:
    sys.stderr.write(f"ragdocs: {words}\n")
    sys.stderr.flush()


def _parsed(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
