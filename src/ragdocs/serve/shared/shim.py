"""`ragdocs mcp`: copies lines between a client and the project's shared server.

A second window must cost milliseconds and few megabytes, so this module imports little even of the
standard library. While the server starts, the window answers the client's first requests itself,
with what the last server answered, and announces what turns out to be different. The first line to
a server is the window's environment, of which the server keeps what is personal for as long as the
window is connected. The lines after it are the protocol's own; they are read only to know what is
unanswered when a server goes away.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from ragdocs import import_path
from ragdocs.serve.shared import prepared
from ragdocs.serve.shared.address import address, find_start, server_arguments
from ragdocs.serve.shared.early import Early
from ragdocs.system import held_file, local_socket, processes
from ragdocs.system.local_socket import Connection

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
# How long the first request may wait for a server that seems to be there.
GRACE_SECONDS = 0.3
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
# The exit code of a server whose configuration says that nothing is shared.
NOT_SHARED = 3


def run(arguments: list[str]) -> bool:
    """Serve standard input and output through the shared server; tell whether that was possible."""
    if not _may_share(arguments):
        return False
    server = address(arguments)
    if server is None:
        return False
    # A window has nothing to tidy up, so an interrupt ends it, even if its parent ignores them.
    # Python's own handler would run only with the next line of input if the signal came just
    # before the wait for one.
    processes.die_of_interrupts()
    Line(server, arguments).serve()
    return True


def _may_share(arguments: list[str]) -> bool:
    """Tell whether a shared server is wanted and possible here."""
    setting = os.environ.get("RAGDOCS_SERVER_SHARED", "").casefold()
    if setting in ("false", "no", "off", "0"):
        return False
    if "-h" in arguments or "--help" in arguments:
        return False
    return not sys.stdin.isatty()


class SilentError(OSError):
    """A server is there, but it does not answer."""


class UnsharedError(OSError):
    """The project's configuration does not want a shared server."""


class Line:
    """One client's line to the shared server, which it brings back when it breaks."""

    def __init__(self, server: str, arguments: list[str]) -> None:
        self._address = server
        self._start = find_start(arguments)
        self._arguments = server_arguments(self._start, arguments)
        self._early = Early(lambda: prepared.load(server, self._start, arguments))
        self._introduction = json.dumps({"environ": dict(os.environ)}).encode() + b"\n"
        self._socket: Connection | None = None
        self._lock = threading.Lock()
        self._greeting: dict[str, bytes] = {}
        self._unanswered: dict[str, bytes] = {}
        # How often the server was lost since it last answered anything.
        self._losses = 0
        self._is_own = False
        self._closing = False
        # Lines for a server that is not there yet; nothing once it is.
        self._waiting: list[bytes] | None = []
        # Set when the server is there, or when it is known that it has to be started.
        self._dialled = threading.Event()
        self._connected = threading.Event()

    def connect(self) -> None:
        """Connect to the server; if nobody answers, one of the windows that try starts it."""
        if self._dial():
            return
        self._dialled.set()
        # Whoever has it may be stopped.
        lock = held_file.take(f"{self._address}.start", START_SECONDS)
        if lock is None:
            raise SilentError("another window has not started the shared server")
        try:
            if not self._dial():
                self._start_shared()
        finally:
            held_file.let_go(lock)

    def serve(self) -> None:
        """Copy lines both ways until the client closes its side."""
        copier = threading.Thread(target=self._copy_answers, daemon=True)
        copier.start()
        is_start = True
        part = sys.stdin.buffer.readline(LONGEST_LINE)
        # A server that is there answers by itself, if it does so at once.
        self._dialled.wait(GRACE_SECONDS)
        while part:
            is_end = part.endswith(b"\n")
            message = {}
            if is_start and is_end:
                message = _parsed(part)
            self._send(part, message)
            is_start = is_end
            part = sys.stdin.buffer.readline(LONGEST_LINE)
        self._closing = True
        if not self._unanswered and not self._connected.is_set():
            return
        self._connected.wait(START_SECONDS)
        # Nobody waits for a server that is being brought back.
        if self._lock.acquire(timeout=DRAIN_SECONDS):
            try:
                if self._socket:
                    local_socket.end_sending(self._socket)
            except OSError:
                # The server went away at the same moment.
                return
            finally:
                self._lock.release()
            copier.join(DRAIN_SECONDS)

    def _open(self) -> None:
        """Connect for the first time, repeat what was answered early, and send what waits."""
        reason = "it ended again and again"
        try:
            for _ in range(MOST_RESTARTS):
                self.connect()
                if self._begin():
                    return
        except UnsharedError:
            reason = ""
        except OSError as error:
            reason = str(error)
        if reason:
            _log(
                f"the shared server cannot be used: {reason}; this window gets a server of its own"
            )
        self._start_own()
        if not self._begin():
            raise OSError(reason or "it ended")

    def _begin(self) -> bool:
        """Let the lines through to a server that is new; tell whether it is alive."""
        with self._lock:
            if self._early.is_used and not self._greet(answered=True):
                return False
            if self._socket is None:
                return False
            lines = b"".join(self._waiting or ())
            self._waiting = None
            self._early.end()
            # If this fails, the side that listens notices it and answers for what was lost.
            _send_all(self._socket, lines)
        self._dialled.set()
        self._connected.set()
        return True

    def _dial(self) -> bool:
        self._socket = _connected(self._address, self._introduction)
        self._is_own = False
        return self._socket is not None

    def _start_shared(self) -> None:
        log = f"{self._address}.log"
        command = [
            *import_path.server_command("ragdocs.serve.shared.daemon"),
            self._address,
            *self._arguments,
        ]
        environ = import_path.server_environment()
        server = processes.start_in_background(command, environ, self._folder(), log)
        deadline = time.monotonic() + START_SECONDS
        while not self._dial():
            if server.poll() == NOT_SHARED:
                raise UnsharedError
            if server.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"it did not start; see {log}")
            time.sleep(PAUSE_SECONDS)

    def _start_own(self) -> None:
        """Start a server for this window alone, which ends with it."""
        command = [*import_path.server_command("ragdocs"), "mcp", *self._arguments]
        environ = {**import_path.server_environment(), "RAGDOCS_SERVER_SHARED": "false"}
        self._socket = processes.start_connected(command, environ, self._folder())
        self._is_own = True

    def _folder(self) -> str:
        """Return the working directory for a server."""
        if os.path.isdir(self._start.folder):
            return self._start.folder
        return os.sep

    def _send(self, part: bytes, message: dict[str, object]) -> None:
        """Send a line or a part of one, and remember what is to be answered or repeated."""
        method = message.get("method")
        number = message.get("id")
        # Held back while the server is brought back.
        with self._lock:
            if isinstance(method, str) and method in GREETINGS:
                self._greeting[method] = part
            _write(self._early.notice(message))
            connection = self._socket
            if self._waiting is not None:
                connection = None
                answer = self._early.answer(message)
                if answer:
                    _write(answer)
                    return
                # The greeting of a client that has its answer is repeated to the server.
                if method not in GREETINGS or not self._early.has_greeted:
                    self._waiting.append(part)
            if method is not None and isinstance(number, int | str):
                self._unanswered[json.dumps(number)] = part
        # The side that listens notices a broken line too, and answers for what was lost.
        if connection:
            _send_all(connection, part)

    def _copy_answers(self) -> None:
        try:
            self._open()
        except OSError as error:
            _log(f"there is no server: {error}")
            os._exit(1)
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

    def _copy_until_broken(self, connection: Connection) -> bool:
        """Copy answers until the line breaks (True) or the server falls silent (False)."""
        parts: list[bytes] = []
        while True:
            if not local_socket.is_readable(connection, QUIET_SECONDS):
                if self._unanswered and not self._is_there():
                    # The side that sends may wait for a server that takes nothing.
                    local_socket.break_off(connection)
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
        lines = []
        for answer in answers.splitlines(keepends=True):
            answered = _answers(answer)
            with self._lock:
                if answered is not None:
                    self._unanswered.pop(answered, None)
                    self._losses = 0
                lines.append(self._early.passed_on(answer))
        _write(b"".join(lines))

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
            self._socket.sendall(self._early.checks())
            self._socket.settimeout(None)
        except OSError:
            return False
        return True


def _skip_answer(connection: Connection) -> bool:
    """Read up to the answer of a greeting; tell whether it came."""
    while True:
        message = _parsed(local_socket.read_line(connection))
        if "result" in message or "error" in message:
            return True
        if not message:
            return False


def _connected(server: str, introduction: bytes) -> Connection | None:
    """Return a connection that a server has accepted, or nothing if there is no server."""
    connection = None
    try:
        connection = local_socket.connect(f"{server}{local_socket.ending()}", ACCEPT_SECONDS)
        connection.sendall(introduction)
        answer = local_socket.read_line(connection)
        connection.settimeout(None)
    except TimeoutError:
        _close(connection)
        message = f"the shared server has not answered for {ACCEPT_SECONDS:g} seconds"
        raise SilentError(message) from None
    except OSError:
        _close(connection)
        return None
    if answer == READY:
        return connection
    connection.close()
    if answer:
        raise OSError(answer.decode("utf-8", "replace").strip())
    return None


def _close(connection: Connection | None) -> None:
    if connection is not None:
        connection.close()


def _send_all(connection: Connection, lines: bytes) -> None:
    """Send lines, unless the server is gone."""
    try:
        connection.sendall(lines)
    except OSError:
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


def _write(lines: bytes) -> None:
    if not lines:
        return
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
