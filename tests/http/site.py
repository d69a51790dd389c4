"""A real `ragdocs serve --http` process, and requests to it as programs and browsers send them."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.nursery import Forked, shared_nursery

from ragdocs.serve.cli import app as cli

RAGDOCS = (sys.executable, "-P", "-m", "ragdocs")
# Far above what anything takes; only what hangs is waited for so long.
PATIENCE = 120.0


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Site:
    """A server that runs, and the address it printed."""

    process: subprocess.Popen[str] | Forked
    port: int
    invitation: str
    log: list[str] = field(default_factory=list)
    # What a client trusts, where the server speaks TLS.
    tls: ssl.SSLContext | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "",
        token: str = "",
        **headers: str,
    ) -> Answer:
        """Send one request; a body is sent as JSON."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given.setdefault("host", self.host)
        if token:
            given["authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            given.setdefault("content-length", str(len(data)))
        connection = self.connection()
        with contextlib.closing(connection):
            connection.putrequest(
                method or ("GET" if data is None else "POST"),
                path,
                skip_host=True,
                skip_accept_encoding=True,
            )
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            names = {name.casefold(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read().decode())

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection, encrypted where the server speaks TLS."""
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=PATIENCE, context=self.tls
        )

    def sign_in(self) -> str:
        """Exchange the printed address for a session, and return the cookie."""
        path = self.invitation.partition(self.host)[2]
        answer = self.ask(path)
        assert answer.status == 200, answer.text
        return answer.headers["set-cookie"].partition(";")[0]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def serving(
    root: Path,
    *options: str,
    model: str = "hash",
    cold: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Site]:
    """Serve a project on a free port until the end of the block.

    The server is forked from a process that has imported the program, or started `cold` by Python.
    """
    arguments = ["serve", "--http", "--port", "0", "--project", str(root), *options]
    arguments += ["--set", f"embedding.model={model}"]
    environment = {**os.environ, **(variables or {})}
    back, theirs = os.pipe()
    output = os.fdopen(back, encoding="utf-8")
    process: subprocess.Popen[str] | Forked
    if cold:
        command = [*RAGDOCS, *arguments]
        process = subprocess.Popen(command, stderr=theirs, text=True, env=environment)
    else:
        process = Forked(shared_nursery(), arguments, environment, theirs)
    os.close(theirs)
    site = Site(process, 0, "")
    try:
        first = output.readline()
        match = re.search(r":(\d+)$", first.strip())
        assert match, first + output.read()
        site.port = int(match[1])
        if options[:1] != ("--host",):
            # Only the owner's own machine is given an address that opens the page.
            site.invitation = output.readline().rpartition(" ")[2].strip()
        reader = threading.Thread(target=lambda: site.log.extend(output), daemon=True)
        reader.start()
        yield site
        process.kill()
        reader.join()
    finally:
        process.kill()
        process.wait()
        output.close()


def make_token(root: Path, *options: str) -> str:
    """Make a token in this process: a command of its own takes as long as to start a server."""
    printed = io.StringIO()
    words = ["token", "create", "test", "--json", "--project", str(root), *options]
    with contextlib.redirect_stdout(printed):
        assert cli.main(words) == 0
    return str(json.loads(printed.getvalue())["token"])
