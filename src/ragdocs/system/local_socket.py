"""Lines between processes of one user: Unix sockets, or loopback with a secret where there is none.

A port of the loopback interface is open to every user of the machine, and may belong to another
program by the time somebody connects. So the file of a server, which only its user can read, holds
a secret beside the port, and both sides prove that they know it before anything else is said. The
secret itself is never sent.

`ragdocs mcp` uses this before it is connected, so little is imported.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable

try:
    # By way of hashlib, OpenSSL would be loaded for one small hash: a quarter of a window's memory.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from ragdocs.system import platform

# What callers hold without importing more.
Connection = socket.socket
LOOPBACK = "127.0.0.1"
# The longest path that a Unix socket can have on every system.
LONGEST_PATH = 100
PAUSE_SECONDS = 0.01
_SECRET_BYTES = 32
_NONCE_BYTES = 16
# No line of the proof is longer.
_LONGEST_LINE = 200


class StrangerError(OSError):
    """The other side does not know the secret."""


def has_unix_sockets() -> bool:
    """Tell whether servers listen at a path."""
    return hasattr(socket, "AF_UNIX") and not platform.is_portable()


def ending() -> str:
    """Return the ending of the file by which a server is found."""
    if has_unix_sockets():
        return ".sock"
    return ".port"


def is_short_enough(path: str) -> bool:
    """Tell whether a server can listen at this path."""
    return not has_unix_sockets() or len(path) < LONGEST_PATH


def connect(path: str, seconds: float) -> Connection:
    """Return a connection to the server that is found at a path; each wait is at most so long."""
    if has_unix_sockets():
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        if has_unix_sockets():
            _queue(connection, path, seconds)
        else:
            _connect_to_port(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _queue(connection: Connection, path: str, seconds: float) -> None:
    """Queue a connection up for being accepted."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.connect(path)
        except BlockingIOError:
            # So many wait for the server that there is no room for another one.
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(PAUSE_SECONDS)
        else:
            return


def _connect_to_port(connection: Connection, path: str) -> None:
    with open(path, encoding="ascii", errors="replace") as file:
        port, _, secret = file.read(_LONGEST_LINE).strip().partition(" ")
    if not port.isdigit() or not secret:
        raise FileNotFoundError(path)
    connection.connect((LOOPBACK, int(port)))
    # Small lines are sent at once.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own = Proof(secret)
    connection.sendall(own.challenge())
    answer = read_line(connection, _LONGEST_LINE)
    connection.sendall(own.answer(answer))


class Proof:
    """One side of a proof that both know the secret; each speaks once, the window first and last.

    A line of the window is its number. The server answers with its own number and a hash of both,
    and the window with another hash of both.
    """

    def __init__(self, secret: str) -> None:
        self._key = secret.encode()
        self._nonce = os.urandom(_NONCE_BYTES).hex().encode()

    def challenge(self) -> bytes:
        """Return the first line of a window."""
        return self._nonce + b"\n"

    def answer(self, line: bytes) -> bytes:
        """Return the last line of a window, or raise if the server does not know the secret."""
        theirs, _, proof = line.strip().partition(b" ")
        if not _is_equal(proof, self._hash(b"server", self._nonce, theirs)):
            raise StrangerError("another program has the port of the shared server")
        return self._hash(b"window", self._nonce, theirs) + b"\n"

    def respond(self, line: bytes) -> tuple[bytes, Callable[[bytes], bool]]:
        """Return the server's line, and what tells whether the window's last one is right."""
        theirs = line.strip()
        response = self._nonce + b" " + self._hash(b"server", theirs, self._nonce) + b"\n"
        expected = self._hash(b"window", theirs, self._nonce)
        return response, lambda last: _is_equal(last.strip(), expected)

    def _hash(self, role: bytes, window: bytes, server: bytes) -> bytes:
        text = b" ".join((role, window, server))
        return blake2b(text, key=self._key, digest_size=_SECRET_BYTES).hexdigest().encode()


def _is_equal(first: bytes, second: bytes) -> bool:
    """Compare in a time that does not tell where they differ."""
    difference = len(first) ^ len(second)
    for mine, theirs in zip(first, second, strict=False):
        difference |= mine ^ theirs
    return not difference


def new_secret() -> str:
    """Return a secret for a server."""
    return os.urandom(_SECRET_BYTES).hex()


def publish(path: str, port: int, secret: str) -> None:
    """Leave the port and the secret of a server for whoever can read the user's own files."""
    draft = f"{path}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"{port} {secret}\n")
    os.replace(draft, path)


def listen(address: str, port: int, backlog: int) -> Connection:
    """Return a socket that listens at an address of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The loop sends small answers at once only on sockets that say they are TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if platform.is_windows():
        # There, the other option would let a second program take the port away.
        bound.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", 0), 1)
    else:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
        # From here on callers wait until the server is up.
        bound.listen(backlog)
    except OSError:
        bound.close()
        raise
    return bound


def is_readable(connection: Connection, seconds: float) -> bool:
    """Wait until something comes, or the line breaks; tell whether that was so in time."""
    # Windows has nothing but `select`, which elsewhere cannot look at high numbers.
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    return bool(select.select([connection], [], [], seconds)[0])


def read_line(connection: Connection, most: int | None = None) -> bytes:
    """Read one line and not a byte more; nothing if the line breaks or the text is too long."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(line) == most:
            return b""
        line += byte
    return line


def end_sending(connection: Connection) -> None:
    """Tell the other side that nothing more comes."""
    connection.shutdown(socket.SHUT_WR)


def break_off(connection: Connection) -> None:
    """End every wait on a connection, from any thread."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is broken already.
        return
