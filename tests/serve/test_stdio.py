"""The server as a real process.

What it imports, what it writes, how it ends, and who else may be at work.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.serve.shared import shim

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

HEAVY = {
    "numpy", "faiss", "whoosh", "networkx", "onnxruntime", "tokenizers", "torch",
    "sentence_transformers",
}  # fmt: skip
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
BROKEN = [
    b"\n", b"not json\n", b"[]\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\n",
    b'{"a": ' + b"[" * 100_000 + b"\n",
]  # fmt: skip
ANSWER_SECONDS = 30
# A stopping server waits at most 1.5 s for its background thread; the rest is for a busy machine.
EXIT_SECONDS = 5


class Wire:
    """A server process and the bytes that go in and out of it."""

    def __init__(self, command: list[str], log: Path, path: str = "") -> None:
        # PYTHONUNBUFFERED would hide prints that a buffer holds back until the end.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | {
            "PYTHONPATH": path
        }
        self.log = log
        # Whether it serves by itself, and not through the shared server of its project.
        self.alone = os.environ.get("RAGDOCS_SERVER_SHARED") == "false"
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                start_new_session=True,
            )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._count = 0

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        assert self.process.stdin
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result.

        Every line on the way must be a message of the protocol.
        """
        self._count += 1
        self.send(method, params, id=self._count)
        while True:
            line = self._lines.get(timeout=ANSWER_SECONDS)
            assert line, self.log.read_text()
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == self._count:
                return dict(message["result"])

    def imported(self) -> set[str]:
        """Return the packages that were imported so far."""
        return set(re.findall(r"^import time:.*\| *(\w+)$", self.log.read_text(), re.MULTILINE))

    def end(self, number: int | None = None) -> None:
        """Close the input or send a signal.

        The process must end at once, cleanly, with nothing left behind.
        """
        assert self.process.stdin
        started = time.monotonic()
        if number is None:
            self.process.stdin.close()
        else:
            self.process.send_signal(number)
        code = self.process.wait(timeout=ANSWER_SECONDS)
        # A window has nothing to tidy up: a signal may simply end it.
        assert code in ({0} if self.alone else {0, -(number or 0)}), self.log.read_text()
        assert time.monotonic() - started < EXIT_SECONDS
        assert self._lines.get(timeout=ANSWER_SECONDS) == b"", (
            "nothing is written after the last answer"
        )
        with pytest.raises(ProcessLookupError):
            os.killpg(self.process.pid, 0)

    def orphan(self) -> None:
        """Kill the parent between us and the server, whose input stays open.

        The server must end as well.
        """
        parent, self.alone = self.process, False
        server = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
        parent.kill()
        deadline = time.monotonic() + EXIT_SECONDS
        while is_alive(server):
            assert time.monotonic() < deadline
            threading.Event().wait(0.02)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream and not stream.closed:
                stream.close()


@pytest.fixture
def wires() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(
    wires: ExitStack, project: Project, *options: str, path: str = "", model: str = "hash"
) -> Wire:
    settings = ["--set", f"embedding.model={model}", "--set", "memory.enabled=true"]
    command = [
        sys.executable, "-P", *options, "-m", "ragdocs", "mcp", "--project", str(project.root),
        *settings,
    ]  # fmt: skip
    wire = Wire(command, project.root.parent / f"log-{time.monotonic_ns()}", path)
    wires.callback(wire.close)
    return wire


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {**MODERN, "name": tool, "arguments": arguments}


@pytest.mark.parametrize(
    ("hello", "params"), [("initialize", HANDSHAKE), ("server/discover", MODERN)]
)
def test_a_client_is_answered_before_anything_heavy_is_imported(
    project: Project, wires: ExitStack, hello: str, params: dict[str, Any]
) -> None:
    project.doc("a.md", "# A\n\nTokens expire.\n")
    wire = start(wires, project, "-X", "importtime")
    assert "instructions" in wire.ask(hello, params)
    assert "mcp" in wire.imported()
    assert not wire.imported() & HEAVY
    meta = {} if hello == "initialize" else params
    assert len(wire.ask("tools/list", meta)["tools"]) == 16
    assert not wire.imported() & HEAVY
    if hello == "initialize":
        wire.send("notifications/initialized")
    request = {**meta, "name": "search_docs", "arguments": {"query": "tokens"}}
    assert wire.ask("tools/call", request)["structuredContent"]["result"][0]["path"] == "docs/a.md"
    assert {"numpy", "faiss", "whoosh"} <= wire.imported()
    linked = {"query": "tokens", "target_document": "src/auth.py"}
    wire.ask("tools/call", {**meta, "name": "search_linked_memories", "arguments": linked})
    assert "networkx" in wire.imported()
    assert not wire.imported() & {"torch", "sentence_transformers"}
    wire.end()


def test_what_libraries_print_does_not_reach_the_client(
    project: Project, wires: ExitStack, tmp_path: Path
) -> None:
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Noise:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'faiss':\n"
        "            print('printed noise', end='')\n"
        "            print('printed line')\n"
        "            os.write(1, b'written noise')\n"
        "sys.meta_path.insert(0, Noise())\n",
        encoding="utf-8",
    )
    wire = start(wires, project, path=str(noise))
    wire.ask("tools/call", call("get_memory_stats"))
    wire.ask("tools/call", call("create_memory", filename="a", content="x", tags=[]))
    wire.end()
    assert "written noise" in wire.log.read_text(), "the noise was made"


def many_documents(project: Project) -> None:
    """Enough text that the real model is at work for half a minute."""
    for number in range(40):
        sections = "\n\n".join(
            f"## Part {n}\n\n{f'Words {number} {n} of a long section. ' * 25}" for n in range(8)
        )
        project.doc(f"{number}.md", f"# Page {number}\n\n{sections}\n")


ENDS = [None, signal.SIGTERM, signal.SIGINT, "dead parent"]
PARENT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


def is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def end(wires: ExitStack, project: Project, how: int | str | None, *, busy: bool) -> None:
    """Start a server or a window, let it be at work or at rest, and end it."""
    parent = ("-c", PARENT, sys.executable) if how == "dead parent" else ()
    wire = start(wires, project, *parent, model="all-MiniLM-L6-v2" if busy else "hash")
    if busy:
        found = wire.ask("tools/call", call("search_docs", query="section"))["structuredContent"]
        assert any("still embedding" in note for note in found["notes"])
    else:
        wire.ask("server/discover", MODERN)
    if isinstance(how, str):
        wire.orphan()
    else:
        wire.end(how)


@pytest.fixture
def shared(sockets: Path) -> Iterator[None]:
    """Let the windows of a test share a server, and end it with the test."""
    yield
    servers = [int(lock.read_text()) for lock in sockets.glob("ragdocs-*/*.lock")]
    for server in servers:
        os.kill(server, signal.SIGKILL)
    assert len(servers) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who is alive")
@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "in the middle of indexing"])
@pytest.mark.parametrize("how", ENDS)
def test_a_server_ends_at_once(
    project: Project, wires: ExitStack, how: int | str | None, busy: bool
) -> None:
    if busy:
        many_documents(project)
    end(wires, project, how, busy=busy)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who is alive")
@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "in the middle of indexing"])
def test_a_window_of_a_shared_server_ends_at_once(
    project: Project, wires: ExitStack, shared: None, busy: bool
) -> None:
    if busy:
        many_documents(project)
    for how in ENDS:
        end(wires, project, how, busy=busy)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for handlers")
def test_an_interrupt_of_a_window_is_left_to_the_system(
    project: Project, wires: ExitStack, shared: None
) -> None:
    wire = start(wires, project)
    wire.ask("server/discover", MODERN)
    status = Path(f"/proc/{wire.process.pid}/status").read_text()
    caught, ignored = (
        int(mask, 16) for mask in re.findall(r"^Sig(?:Cgt|Ign):\s*(\w+)$", status, re.MULTILINE)
    )
    assert not (caught | ignored) & 1 << (signal.SIGINT - 1), (
        "Python hears it only between two lines of input"
    )
    wire.end(signal.SIGINT)


def test_broken_input_does_not_end_the_session(project: Project, wires: ExitStack) -> None:
    wire = start(wires, project)
    assert wire.process.stdin
    for line in BROKEN:
        wire.process.stdin.write(line)
        assert shim._parsed(line).keys() <= {"jsonrpc"}, (
            "the way through a shared server takes it too"
        )
    wire.process.stdin.flush()
    answer = wire.ask(
        "tools/call", call("create_memory", filename="smile", content="Still here 🙂.", tags=[])
    )
    assert answer["structuredContent"]["status"] == "created"
    wire.end()


def test_half_an_emoji_is_answered_like_any_text(project: Project, wires: ExitStack) -> None:
    project.doc("a.md", "# Zebras\n")
    wire = start(wires, project)
    found = wire.ask("tools/call", call("search_docs", query="zebras \ud83d"))
    assert [hit["path"] for hit in found["structuredContent"]["result"]] == ["docs/a.md"]
    wire.ask(
        "tools/call",
        call("create_memory", filename="a", content="whole \U0001f642, half \ud83d", tags=[]),
    )
    assert (project.root / ".memories" / "a.md").read_text().endswith("whole \U0001f642, half ?")
    wire.end()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_whole_session(project: Project, launch: Connect, mode: str) -> None:
    project.doc("guide.md", "# Guide\n\n## Tokens\n\nTokens expire after an hour.\n")
    session = launch(mode)
    assert "search_docs" in session.instructions
    assert (
        session.call("search_docs", query="when do tokens expire")["result"][0]["path"]
        == "docs/guide.md"
    )
    assert session.call("read_doc", path="docs/guide.md#tokens")["lines"] == "3-5"
    for name in ("one", "two"):
        content = f"The expiry of tokens was looked into, part {name}, in [[src/auth.py]]."
        session.call("create_memory", filename=name, content=content, tags=["auth"])
    assert len(session.call("search_memories", query="expiry", filter_tags=["AUTH"])["result"]) == 2
    linked = session.call("search_linked_memories", query="expiry", target_document="src/auth.py")
    assert {hit["edge_type"] for hit in linked["result"]} == {"mentions"}
    assert len(session.settle().call("suggest_memory_merges", threshold=0.5)["result"]) == 1
    session.call("append_memory", filename="one", content="Fixed.")
    text = session.call("read_memory", filename="one")
    assert text["content"].endswith("\n\nFixed.")
    session.call(
        "update_memory", filename="one", content="Rewritten.", expected_version=text["version"]
    )
    merged = session.call(
        "merge_memories", source_files=["one", "two"], target_file="all", summary_content="Expiry."
    )
    assert all(Path(path).is_file() for path in merged["moved_to"])
    assert session.call("get_memory_stats")["count"] == 1
    assert session.call("delete_memory", filename="all")["status"] == "deleted"
    assert session.call("search_memories", query="expiry")["result"] == []
    assert session.call("index_status")["lanes"][1]["documents"] == 0
    assert "exists" not in session.error("read_memory", filename="../../etc/passwd")


def test_what_one_process_writes_another_finds(project: Project, launch: Connect) -> None:
    one, other = launch(**{"watch.debounce_ms": 50}), launch(**{"watch.debounce_ms": 50})

    def finds(session: Session, query: str) -> list[str]:
        hits = session.call("search_memories", query=query)["result"]
        return [hit["memory_id"] for hit in hits if hit["why"].startswith("words")]

    def eventually(session: Session, query: str, expected: list[str]) -> None:
        deadline = time.monotonic() + 15
        while finds(session, query) != expected:
            assert time.monotonic() < deadline, (query, expected, finds(session, query))
            threading.Event().wait(0.05)

    assert finds(other, "aardvark") == []
    one.call("create_memory", filename="shared", content="An aardvark was seen.", tags=[])
    assert finds(one, "aardvark") == ["memory:shared"]
    eventually(other, "aardvark", ["memory:shared"])
    other.call("append_memory", filename="shared", content="Then a bandicoot.")
    eventually(one, "bandicoot", ["memory:shared"])
    project.memory("by-hand.md", "A capybara, written with an editor.\n")
    eventually(one, "capybara", ["memory:by-hand"])
    eventually(other, "capybara", ["memory:by-hand"])
    one.call("delete_memory", filename="shared")
    eventually(other, "aardvark", [])
    assert one.call("get_memory_stats")["count"] == other.call("get_memory_stats")["count"] == 1
