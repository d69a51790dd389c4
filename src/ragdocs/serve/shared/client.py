"""A command that asks the shared server of its project, if one runs.

It must cost little more than starting Python, so it imports only some of the standard library. It
sends the words of the command line as they are; the server reads them, and either answers with what
is to be printed, asks for a text that the command names, or declines. Whatever it declines runs in
the process of the command instead, which then says what is wrong with it.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Sequence

from ragdocs.serve.cli import hook, listed, output
from ragdocs.serve.shared import shim
from ragdocs.serve.shared.address import address as find_address
from ragdocs.system import local_socket, processes
from ragdocs.system.local_socket import Connection

# The private method of the server, beside those of the protocol.
METHOD = "ragdocs/command"
# Asks for an address that opens the page.
PAGE_METHOD = "ragdocs/page"
# A server accepts at once unless it is stopped or swapped out.
ACCEPT_SECONDS = 1.0
# One more than a text may have; the server refuses it.
MOST_CHARACTERS = 1_000_001
# How often the process that started a server asks whether its index is complete, and for how long.
ASK_SECONDS = 5.0
MOST_QUESTIONS = 720
READ_AT_ONCE = 64 * 1024
INTERRUPTED = 130
# Variables that a configuration depends on, by how their names begin.
CONFIGURING = ("RAGDOCS_", "XDG_", "HOME")
# Of JSON-RPC: the server does not know the method or the form of the request.
UNKNOWN = (-32601, -32602)
LOOK_FIRST = "If the command only reads, run it again. If it writes, look first whether it was done"


class DeclinedError(Exception):
    """The command is to be run in this process."""


class _LostError(Exception):
    """The server went away while it had the command."""


def run(words: Sequence[str]) -> int | None:
    """Run a command through the shared server; return its exit code, or nothing without one."""
    connection = _dial(words)
    if connection is None:
        return None
    try:
        with connection:
            answer = _ask(connection, words)
    except DeclinedError:
        return None
    except _LostError as error:
        sys.stderr.write(f"ragdocs: {error}\n  {LOOK_FIRST}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return _print_answer(answer)


def _dial(words: Sequence[str]) -> Connection | None:
    """Return a connection to the server that may answer these words, if it runs."""
    is_about_the_command = (
        "--help" in words or "--version" in words or listed.COMPLETION in os.environ
    )
    if not words or is_about_the_command or not _may_share():
        return None
    server = find_address(server_arguments(*_options(words)))
    if server is None:
        return None
    return _connected(server)


def server_arguments(project: str | None, settings: Sequence[str]) -> list[str]:
    """Return the arguments of the `ragdocs mcp` whose server has this project."""
    arguments = []
    if project is not None:
        arguments += ["--project", project]
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def start_in_background(arguments: list[str]) -> bool:
    """Start the server of these arguments without waiting; tell whether that is possible."""
    from ragdocs import import_path

    if not _may_share() or find_address(arguments) is None:
        return False
    command = [*import_path.server_command("ragdocs.serve.shared.client"), *arguments]
    processes.start_in_background(command, import_path.server_environment())
    return True


def _may_share() -> bool:
    setting = os.environ.get("RAGDOCS_SERVER_SHARED", "").casefold()
    return setting not in ("false", "no", "off", "0")


def _options(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the project and the settings that the words name.

    The server reads the words more exactly, and declines if it finds others.
    """
    project = None
    settings = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name not in ("--project", "--set"):
            continue
        if not equals:
            value = next(rest, "")
        if name == "--project":
            project = value
        else:
            settings.append(value)
    return project, settings


def _connected(server: str) -> Connection | None:
    """Return a connection to a server that has accepted this process as a caller."""
    introduction = json.dumps({"environ": dict(os.environ)}).encode() + b"\n"
    try:
        connection = local_socket.connect(f"{server}{local_socket.ending()}", ACCEPT_SECONDS)
    except OSError:
        # No server, or one that does not answer.
        return None
    try:
        connection.sendall(introduction)
        if _read_line(connection) == shim.READY:
            connection.settimeout(None)
            return connection
    except OSError:
        # It is ending.
        pass
    connection.close()
    return None


def _ask(connection: Connection, words: Sequence[str]) -> dict[str, object]:
    """Send the words, and the texts that the server asks for; return what is to be printed."""
    project, settings = _options(words)
    environ = {}
    for name, value in os.environ.items():
        if name.startswith(CONFIGURING):
            environ[name] = value
    params: dict[str, object] = {
        "words": list(words),
        "project": project,
        "settings": list(settings),
        "folder": os.getcwd(),
        "environ": environ,
    }
    texts: dict[str, str] = {}
    while True:
        answer = _request(connection, {**params, "texts": texts})
        if "declined" in answer:
            raise DeclinedError
        if "needs" not in answer:
            return answer
        name = str(answer["needs"])
        if name in texts:
            raise DeclinedError
        texts[name] = _text(name, is_hook=bool(answer.get("hook")))


def page_address(arguments: list[str]) -> str | None:
    """Return an address that opens the page of the shared server, which is started if need be."""
    server = find_address(arguments)
    if server is None or not _may_share():
        return None
    try:
        shim.Line(server, arguments).connect()
        connection = _connected(server)
        if connection is None:
            return None
        with connection:
            return str(_request(connection, {}, PAGE_METHOD)["address"])
    except (OSError, DeclinedError, _LostError):
        return None


def _request(
    connection: Connection, params: dict[str, object], method: str = METHOD
) -> dict[str, object]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        connection.sendall(json.dumps(request).encode() + b"\n")
        line = _read_line(connection)
    except OSError:
        raise _LostError(shim.LOST) from None
    if not line:
        raise _LostError(shim.LOST)
    message = json.loads(line)
    if "result" not in message:
        raise _failure(message.get("error", {}))
    result: dict[str, object] = message["result"]
    return result


def _failure(error: dict[str, object]) -> Exception:
    if error.get("code") in UNKNOWN:
        return DeclinedError()
    return _LostError(f"the ragdocs server failed: {error.get('message')}")


def _text(name: str, *, is_hook: bool) -> str:
    """Return the text of a file, or of standard input for no name."""
    try:
        if name:
            with open(name, encoding="utf-8") as file:
                return file.read(MOST_CHARACTERS)
        if is_hook:
            return _repeatable(hook.read_input())
        if sys.stdin.isatty():
            raise DeclinedError
        return _repeatable(sys.stdin.read(MOST_CHARACTERS))
    except (OSError, UnicodeDecodeError):
        # The command says what is wrong with it.
        raise DeclinedError from None


def _repeatable(text: str) -> str:
    """Put a text back, because the command reads it again if the server declines after all."""
    sys.stdin = io.StringIO(text)
    return text


def _print_answer(answer: dict[str, object]) -> int:
    """Print what the server answered; return the exit code."""
    out = str(answer.get("out", ""))
    error = str(answer.get("error", ""))
    try:
        if out:
            output.print_written(_written(out, answer))
        if error:
            output.print_error(error)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stderr.close()
        return 0
    code = answer.get("code")
    return code if isinstance(code, int) else 1


def _written(out: str, answer: dict[str, object]) -> output.Written:
    table = answer.get("table")
    if not isinstance(table, dict):
        table = None
    return output.Written(out, is_json=bool(answer.get("json")), table=table)


def _read_line(connection: Connection) -> bytes:
    parts = []
    while True:
        data = connection.recv(READ_AT_ONCE)
        parts.append(data)
        if not data or data.endswith(b"\n"):
            return b"".join(parts)


def main() -> None:
    """Start the server of these arguments, and stay connected until its index is complete.

    A server ends when nobody is connected.
    """
    arguments = sys.argv[1:]
    server = find_address(arguments)
    if server is None:
        return
    shim.Line(server, arguments).connect()
    connection = _connected(server)
    if connection is None:
        return
    with connection:
        for _ in range(MOST_QUESTIONS):
            answer = _request(connection, {"words": []})
            if answer.get("complete"):
                return
            time.sleep(ASK_SECONDS)


if __name__ == "__main__":
    main()
