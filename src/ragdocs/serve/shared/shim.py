"""`ragdocs mcp`: copies lines between a client and the project's shared server.

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
# After so many losses in a row, the shared server is not started again.
MOST_RESTARTS = 3
# A server accepts a window at once, however long its calls take, unless it is stopped or swapped
# out.
ACCEPT_SECONDS = 5.0
# When nothing has come for so long while an answer is due, the server is asked whether it is there.
QUIET_SECONDS = 2.0
# The pause between two tries while another process is at work.
PAUSE_SECONDS = 0.01
# How long to wait for answers after the client has closed its side.
DRAIN_SECONDS = 2.0
# The longest path that a Unix socket can have on every system.
LONGEST_ADDRESS = 100
# As in /.sock or /.lock.
LONGEST_ENDING = 6
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
# The first line to a server is a ping or the introduction of a window; the server answers either
# when it is ready.
PING = b'{"ragdocs":"ping"}\n'
READY = b"ready\n"


def run(arguments: list[str]) -> bool:
    """Serve standard input and output through the shared server; tell whether that was possible."""
    if not _may_share(arguments):
        return False
    server = address(arguments)
    if server is None:
        return False
    line = Line(server, arguments)
    try:
        line.connect()
    except SilentError as error:
        _log(f"{error}; this window serves itself")
        return False
    except OSError:
        # Serving alone says what is wrong, if it is the configuration.
        return False
    # A window has nothing to tidy up, so an interrupt ends it, even if its parent ignores them.
    # Python's own handler would run only with the next line of input if the signal came just
    # before the wait for one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    line.serve()
    return True


def _may_share(arguments: list[str]) -> bool:
    """Tell whether a shared server is wanted and possible here."""
    setting = os.environ.get("RAGDOCS_SERVER_SHARED", "").casefold()
    if setting in ("false", "no", "off", "0"):
        return False
    if "-h" in arguments or "--help" in arguments:
        return False
    return hasattr(socket, "AF_UNIX") and not sys.stdin.isatty()


def address(arguments: list[str]) -> str | None:
    """Return the path of the server for these arguments, or nothing without a private folder."""
    settings = []
    for name, value in sorted(os.environ.items()):
        if name.startswith(("RAGDOCS_", "XDG_", "HOME")):
            settings.append((name, value))
    # Windows share a server only if all of this is the same.
    identity = json.dumps(
        [__version__, sys.executable, os.getcwd(), arguments, settings, _config_states(arguments)]
    )
    digest = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    shared = "/tmp"  # noqa: S108 - a folder in it is made private below
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), shared):
        if not parent:
            continue
        folder = os.path.join(parent, f"ragdocs-{os.getuid()}")
        is_short = len(folder) + len(digest) + LONGEST_ENDING < LONGEST_ADDRESS
        if is_short and _make_private(folder):
            return os.path.join(folder, digest)
    return None


def _project_folder(arguments: list[str]) -> str:
    """Return the folder of the option --project, or the working directory."""
    next_argument = ""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name != "--project":
            continue
        if equals:
            return value
        next_argument = next_argument or "".join(arguments[position + 1 : position + 2])
    return next_argument or "."


def _config_states(arguments: list[str]) -> list[tuple[str, int, int]]:
    """List the configuration files that may count; a changed file means another server."""
    folder = os.path.realpath(_project_folder(arguments))
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
    is_own_folder = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return is_own_folder and not status.st_mode & 0o077


class SilentError(OSError):
    """A server is there, but it does not answer."""


class Line:
    """One client's line to the shared server, which it brings back when it breaks."""

    def __init__(self, server: str, arguments: list[str]) -> None:
        self._address = server
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
        """Connect to the server; if nobody answers, one of the windows that try starts it."""
        if self._dial():
            return
        lock = os.open(f"{self._address}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        is_start = True
        part = sys.stdin.buffer.readline(LONGEST_LINE)
        while part:
            is_end = part.endswith(b"\n")
            message = {}
            if is_start and is_end:
                message = _parsed(part)
            self._send(part, message)
            is_start = is_end
            part = sys.stdin.buffer.readline(LONGEST_LINE)
        self._closing = True
        # Nobody waits for a server that is being brought back.
        if self._lock.acquire(timeout=DRAIN_SECONDS):
            try:
                if self._socket:
                    self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                # The server went away at the same moment.
                return
            finally:
                self._lock.release()
            copier.join(DRAIN_SECONDS)

    def _dial(self) -> bool:
        self._socket = _connected(self._address, self._introduction)
        self._is_own = False
        return self._socket is not None

    def _start(self) -> None:
        import subprocess

        log = os.open(
            f"{self._address}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        command = [
            *import_path.server_command("ragdocs.serve.shared.daemon"),
            self._address,
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
                raise OSError(f"it did not start; see {self._address}.log")
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
        method = message.get("method")
        number = message.get("id")
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
        while self._socket:
            connection = self._socket
            with connection:
                is_silent = not self._copy_until_broken(connection)
            with self._lock:
                if self._closing:
                    return
                try:
                    self._bring_back(is_silent=is_silent)
                except OSError as error:
                    _log(f"the server is gone: {error}")
                    os._exit(1)

    def _copy_until_broken(self, connection: socket.socket) -> bool:
        """Copy answers until the line breaks (True) or the server falls silent (False)."""
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
        """Tell whether the server's event loop runs."""
        # An own server is a child, whose line breaks when it ends.
        if self._is_own:
            return True
        try:
            connection = _connected(self._address, PING)
        except SilentError:
            return False
        if connection:
            connection.close()
        # If nobody listens, the server is ending, and the line to it breaks soon.
        return True

    def _bring_back(self, *, is_silent: bool) -> None:
        """Bring the server back, repeat the greeting, and answer for lost requests."""
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
        _log(f"the shared server was lost: {reason}; this window gets a server of its own")
        self._start_own()
        if not self._greet(answered=greeted):
            raise OSError(reason)

    def _answer_for_lost(self) -> bool:
        """Answer lost requests with an error; tell whether the greeting had been answered."""
        hello = _parsed(self._greeting.get("initialize", b""))
        hello_id = json.dumps(hello.get("id"))
        for request_id in list(self._unanswered):
            if request_id == hello_id:
                continue
            request = _parsed(self._unanswered.pop(request_id))
            message = f"{LOST}; {READ_AGAIN}"
            if request.get("method") == "tools/call":
                message = f"{LOST}. {LOOK_FIRST}"
            answer = {
                "jsonrpc": "2.0",
                "id": json.loads(request_id),
                "error": {"code": -32000, "message": message},
            }
            _write(json.dumps(answer).encode() + b"\n")
        return hello_id not in self._unanswered

    def _greet(self, *, answered: bool) -> bool:
        """Repeat the client's greeting and tell whether the server is alive.

        An answer that the client has had already is not passed on.
        """
        if self._socket is None:
            return False
        hello = self._greeting.get("initialize", b"")
        try:
            self._socket.settimeout(START_SECONDS)
            self._socket.sendall(hello)
            if hello and answered and not _skip_answer(self._socket):
                return False
            self._socket.sendall(self._greeting.get("notifications/initialized", b""))
            self._socket.settimeout(None)
        except OSError:
            return False
        return True


def _skip_answer(connection: socket.socket) -> bool:
    """Read up to the answer of a greeting; tell whether it came."""
    while True:
        message = _parsed(_read_line(connection))
        if "result" in message:
            return True
        if not message:
            return False


def _connected(server: str, introduction: bytes) -> socket.socket | None:
    """Return a connection that a server has accepted, or nothing if there is no server."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ACCEPT_SECONDS)
        _queue(connection, f"{server}.sock")
        connection.sendall(introduction)
        answer = _read_line(connection)
        connection.settimeout(None)
    except TimeoutError:
        connection.close()
        message = f"the shared server has not answered for {ACCEPT_SECONDS:g} seconds"
        raise SilentError(message) from None
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
        number, mark, after = start[len(ANSWER) :].partition(b',"')
        if mark and number.isdigit() and after.startswith((b'result"', b'error"')):
            return number.decode()
    message = _parsed(line)
    if "method" in message:
        return None
    return json.dumps(message.get("id"))


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


def _log(message: str) -> None:
    sys.stderr.write(f"ragdocs: {message}\n")
    sys.stderr.flush()


def _parsed(line: bytes) -> dict[str, object]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if isinstance(message, dict):
        return message
    return {}
