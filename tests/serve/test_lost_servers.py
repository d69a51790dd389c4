"""Servers that are stopped, killed, or die before they listen: their windows go on."""

from __future__ import annotations

import itertools
import operator
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.windows import PATIENCE, Window, is_alive, servers, thread_states, until

from ragdocs.serve.shared import shim
from ragdocs.system import held_file
from ragdocs.system.locks import lock

if TYPE_CHECKING:
    from tests.conftest import Project

# Ends every shared server before it listens, while a file is there.
DEADLY = """\
import os, sys
if "ragdocs.serve.shared.daemon" in sys.orig_argv and os.path.exists({flag!r}):
    os._exit(3)
"""


def stderr_of(window: Window) -> str:
    """Close a window and return what it said."""
    assert window.process.stdin
    assert window.process.stderr
    window.process.stdin.close()
    said = window.process.stderr.read().decode()
    window.close()
    return said


def test_windows_of_a_stopped_server_go_on(served: Project, runtime: Path) -> None:
    windows = [Window(served).greet() for _ in range(2)]
    windows[0].call("create_memory", filename="kept", content="acknowledged", tags=[])
    (server,) = servers(runtime)
    os.kill(server, signal.SIGSTOP)
    # More than the socket takes; the other window asks for something short.
    arguments = {"filename": "new", "content": "x" * 5_000_000, "tags": []}
    number = windows[0].send("tools/call", name="create_memory", arguments=arguments)
    answer = windows[0].receive()
    assert answer["id"] == number
    assert "it is not known whether this was done" in answer["error"]["message"]
    late = Window(served).greet()
    for window in (*windows, late):
        if window is windows[1]:
            # It has not noticed yet.
            assert (
                "not known"
                in window.ask("tools/call", name="index_status", arguments={})["error"]["message"]
            )
        assert window.call("read_memory", filename="kept")["structuredContent"]["content"].endswith(
            "acknowledged"
        )
    assert is_alive(server)
    os.kill(server, signal.SIGCONT)
    assert "a server of its own" in stderr_of(windows[0])
    assert "a server of its own" in stderr_of(late)
    assert windows[1].close() == 0


def test_a_busy_server_is_not_taken_for_a_stopped_one(served: Project, runtime: Path) -> None:
    window = Window(served).greet()
    window.call("create_memory", filename="a", content="first", tags=[])
    (server,) = servers(runtime)
    with lock(served.root / ".memories"):
        number = window.send(
            "tools/call", name="append_memory", arguments={"filename": "a", "content": "second"}
        )
        time.sleep(shim.QUIET_SECONDS + 1)
    answer = window.receive()
    assert answer["id"] == number
    assert "error" not in answer
    assert servers(runtime) == [server]
    assert stderr_of(window) == ""


def test_a_window_outlives_servers_that_die_before_they_listen(
    served: Project, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "deadly"
    (tmp_path / "sitecustomize.py").write_text(DEADLY.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    windows = [Window(served).greet() for _ in range(2)]
    (server,) = servers(runtime)
    flag.touch()
    os.kill(server, signal.SIGKILL)
    for window in windows:
        until(lambda window=window: "result" in window.ask("ping"))  # type: ignore[misc]
        assert window.call("search_docs", query="tokens")["structuredContent"]["result"]
    assert servers(runtime) == []
    late = Window(served).greet()
    flag.unlink()
    assert Window(served).greet().close() == 0
    assert len(servers(runtime)) == 1
    for window in windows:
        assert "a server of its own" in stderr_of(window)
    assert late.close() == 0


def test_a_server_of_one_window_ends_with_it(served: Project, runtime: Path) -> None:
    window = Window(served).greet()
    (server,) = servers(runtime)
    os.kill(server, signal.SIGSTOP)
    assert "error" in window.ask("ping")
    window.call("index_status")
    children = Path(f"/proc/{window.process.pid}/task")
    own = [
        int(child)
        for task in children.iterdir()
        for child in (task / "children").read_text().split()
    ]
    own = [child for child in own if child != server and is_alive(child)]
    assert len(own) == 1
    window.process.kill()
    window.close()
    until(lambda: not is_alive(own[0]))


def test_every_call_is_answered_while_servers_are_killed(
    served: Project, runtime: Path, quick_servers: None, system: str
) -> None:
    rng = random.Random(7)
    windows = [Window(served).greet() for _ in range(3)]
    is_over = False
    written: list[list[str]] = [[] for _ in windows]

    def write(place: int) -> None:
        calls = 0
        while not is_over:
            calls += 1
            name = f"w{place}-{calls}"
            arguments = {"filename": name, "content": f"text of {name}", "tags": []}
            answer = windows[place].ask("tools/call", name="create_memory", arguments=arguments)
            if "result" in answer and not answer["result"].get("isError"):
                written[place].append(name)

    with ThreadPoolExecutor(len(windows)) as pool:
        writers = [pool.submit(write, place) for place in range(len(windows))]
        for _ in range(3):
            time.sleep(rng.uniform(0.1, 1))
            for server in servers(runtime):
                os.kill(server, signal.SIGKILL)
        before = list(map(len, written))
        try:
            # Every window goes on after the last server was killed.
            until(lambda: all(map(operator.lt, before, map(len, written))))
        finally:
            is_over = True
        for writer in writers:
            writer.result(timeout=PATIENCE)
    for name in itertools.chain(*written):
        assert (served.root / f".memories/{name}.md").read_text().endswith(f"text of {name}")
    assert [window.close() for window in windows] == [0] * len(windows)


def test_a_window_that_is_stopped_while_it_starts_a_server_does_not_keep_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "START_SECONDS", 0.2)
    other = held_file.take(str(tmp_path / "x.start"))
    assert other is not None
    window = shim.Line(str(tmp_path / "x"), ["--project", str(tmp_path)])
    with pytest.raises(shim.SilentError):
        window.connect()
    held_file.let_go(other)


def test_only_what_may_have_been_done_is_in_doubt(
    served: Project, runtime: Path, quick_servers: None
) -> None:
    window = Window(served).greet()
    (server,) = servers(runtime)
    os.kill(server, signal.SIGSTOP)
    # The signal takes a moment, in which a call could still be answered.
    until(lambda: all(state == "T" for state in thread_states(server)))
    arguments = {"filename": "new", "content": "text", "tags": []}
    write = window.send("tools/call", name="create_memory", arguments=arguments)
    search = window.send("tools/call", name="search_docs", arguments={"query": "tokens"})
    listing = window.send("tools/list")
    os.kill(server, signal.SIGKILL)
    messages = {}
    for _ in (write, search, listing):
        answer = window.receive()
        messages[answer["id"]] = answer["error"]["message"]
    assert "it is not known whether this was done: look before you repeat it" in messages[write]
    for number in (search, listing):
        assert "call again" in messages[number]
    assert "not known" not in messages[listing]
    assert window.call("search_docs", query="tokens")["structuredContent"]["result"]
    assert window.close() == 0
