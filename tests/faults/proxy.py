"""A network between a client and a server that is slow, stands still or breaks."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tests.postgres import free_port

CHUNK = 65_536


class Proxy:
    """Passes bytes on to a port, as badly as it is told to."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.delay = 0.0
        # Passing on waits while this is not set.
        self.flowing = threading.Event()
        self.flowing.set()
        # Cut the connection that sends this, once: before it arrives, or before its answer does.
        self.cut_before: bytes = b""
        self.cut_after: bytes = b""
        self.cuts = 0
        self._target = target
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.flowing.set()
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Cut every connection."""
        for one in self._sockets:
            _close(one)
        self._sockets.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answers = threading.Event()
                for work in (
                    (self._ask, client, server, answers),
                    (self._answer, server, client, answers),
                ):
                    threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, dropped: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                self._pass()
                if self.cut_before and self.cut_before in data:
                    self.cut_before = b""
                    self.cuts += 1
                    break
                if self.cut_after and self.cut_after in data:
                    self.cut_after = b""
                    self.cuts += 1
                    dropped.set()
                server.sendall(data)
        _close(client)
        _close(server)

    def _answer(
        self, server: socket.socket, client: socket.socket, dropped: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                self._pass()
                if dropped.is_set():
                    break
                client.sendall(data)
        _close(client)
        _close(server)

    def _pass(self) -> None:
        if self.delay:
            time.sleep(self.delay)
        self.flowing.wait()


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
