"""The server as a real process.

What it imports, what it writes, how it ends, and who else may be at work.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.windows import HELLO, Window, is_alive, servers, until

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

HEAVY = {"numpy", "faiss", "whoosh", "networkx", "onnxruntime", "tokenizers", "torch"}
HEAVY |= {"sentence_transformers"}
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
# A stopping server waits at most 1.5 s for its background thread; the rest is for a busy machine,
# and still far less than the work that is under way takes.
EXIT_SECONDS = 15
PARENT = ("-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", sys.executable)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who is alive")


class Wire(Window):
    """A window with a log of what it imports."""

    def __init__(
        self, project: Project, *options: str, path: str = "", model: str = "hash"
    ) -> None:
        self.log = project.root.parent / f"log-{time.monotonic_ns()}"
        command = [sys.executable, "-P", *options, "-m", "ragdocs", "mcp"]
        command += ["--project", str(project.root), "--set", f"embedding.model={model}"]
        # PYTHONUNBUFFERED would hide prints that a buffer holds back until the end.
        variables = {"PYTHONPATH": path, "PYTHONUNBUFFERED": ""}
        with self.log.open("w") as stderr:
            self.start([*command, "--set", "memory.enabled=true"], stderr, None, variables)

    def answer(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask as a client of the modern protocol, which greets nobody."""
        return dict(self.ask(method, **{**MODERN, **params})["result"])

    def tool(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.answer("tools/call", name=tool, arguments=arguments)
        return dict(answer["structuredContent"])

    def imported(self) -> set[str]:
        """Return the packages that were imported so far."""
        return set(re.findall(r"^import time:.*\| *(\w+)$", self.log.read_text(), re.MULTILINE))

    def processes(self) -> list[int]:
        """Return the process and its children, without a shared server that it started."""
        number = self.process.pid
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        own_session = os.getsid(number)
        return [number, *(int(child) for child in children if os.getsid(int(child)) == own_session)]

    def end(self, how: int | str | None) -> None:
        """Close the input, send a signal, or kill a parent: all must end at once and cleanly."""
        processes = self.processes()
        started = time.monotonic()
        if how == "dead parent":
            self.process.kill()
        elif isinstance(how, int):
            self.process.send_signal(how)
        else:
            assert self.process.stdin
            self.process.stdin.close()
        code = self.process.wait(timeout=6 * EXIT_SECONDS)
        until(lambda: not any(map(is_alive, processes)))
        assert time.monotonic() - started < EXIT_SECONDS
        # A window has nothing to tidy up: a signal may simply end it.
        is_alone = os.environ.get("RAGDOCS_SERVER_SHARED") == "false"
        if is_alone and how != "dead parent":
            assert code == 0, self.log.read_text()
        elif isinstance(how, int):
            assert code in {0, -how}, self.log.read_text()
        assert self.process.stdout
        assert self.process.stdout.read() == b"", "nothing is written after the last answer"
        self.close()


@pytest.mark.parametrize("is_modern", [True, False], ids=["modern", "handshake"])
def test_a_client_is_answered_before_anything_heavy_is_imported(
    project: Project, is_modern: bool
) -> None:
    project.doc("a.md", "# A\n\nTokens expire.\n")
    wire = Wire(project, "-X", "importtime")
    if is_modern:
        greeting = wire.answer("server/discover")
    else:
        greeting = wire.ask("initialize", **HELLO)["result"]
        wire.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    assert "instructions" in greeting
    assert "mcp" in wire.imported()
    assert not wire.imported() & HEAVY
    meta = MODERN if is_modern else {}
    assert len(wire.ask("tools/list", **meta)["result"]["tools"]) == 17
    assert not wire.imported() & HEAVY
    search = {"name": "search_docs", "arguments": {"query": "tokens"}}
    found = wire.ask("tools/call", **meta, **search)["result"]["structuredContent"]
    assert found["result"][0]["path"] == "docs/a.md"
    assert {"numpy", "faiss", "whoosh"} <= wire.imported()
    assert not wire.imported() & {"torch", "sentence_transformers"}
    assert wire.close() == 0


NOISE = """
import os, sys
class Noise:
    def find_spec(self, name, *_):
        if name == 'faiss':
            print('printed noise', end='')
            print('printed line')
            os.write(1, b'written noise')
sys.meta_path.insert(0, Noise())
"""


def test_what_libraries_print_does_not_reach_the_client(project: Project) -> None:
    noise = project.write("noise/sitecustomize.py", NOISE)
    wire = Wire(project, path=str(noise.parent))
    wire.tool("get_memory_stats")
    wire.tool("create_memory", filename="a", content="x", tags=[])
    assert wire.process.stdin
    wire.process.stdin.close()
    assert wire.process.stdout
    assert wire.process.stdout.read() == b""
    assert wire.close() == 0
    assert "written noise" in wire.log.read_text(), "the noise was made"


def end_at_work_or_at_rest(project: Project, how: int | str | None, *, busy: bool) -> None:
    """Start a server or a window, let it be at work or at rest, and end it."""
    parent = PARENT if how == "dead parent" else ()
    wire = Wire(project, *parent, model="all-MiniLM-L6-v2" if busy else "hash")
    if busy:
        notes = wire.tool("search_docs", query="section")["notes"]
        assert any("still embedding" in note for note in notes)
    else:
        # A window answers the first requests by itself, but no call.
        wire.answer("tools/call", name="no_such_tool", arguments={})
    wire.end(how)


def write_many_documents(project: Project) -> None:
    """Write so much text that the real model is at work for half a minute."""
    for page in range(40):
        parts = [f"# Page {page}"]
        for part in range(8):
            parts.append(f"## Part {part}\n\n" + f"Words {page} {part} of a long section. " * 25)
        project.doc(f"{page}.md", "\n\n".join(parts))


ENDS = [None, signal.SIGTERM, signal.SIGINT, "dead parent"]
at_work_or_at_rest = pytest.mark.parametrize(
    "busy", [False, True], ids=["at rest", "in the middle of indexing"]
)


@on_linux
@at_work_or_at_rest
@pytest.mark.parametrize("how", ENDS)
def test_a_server_ends_at_once(project: Project, how: int | str | None, busy: bool) -> None:
    if busy:
        write_many_documents(project)
    end_at_work_or_at_rest(project, how, busy=busy)


@on_linux
@at_work_or_at_rest
def test_a_window_of_a_shared_server_ends_at_once(
    project: Project, runtime: Path, busy: bool
) -> None:
    if busy:
        write_many_documents(project)
    for how in ENDS:
        end_at_work_or_at_rest(project, how, busy=busy)
    assert len(servers(runtime)) == 1


@on_linux
def test_an_interrupt_of_a_window_is_left_to_the_system(project: Project, runtime: Path) -> None:
    wire = Wire(project)
    wire.answer("tools/call", name="no_such_tool", arguments={})
    status = Path(f"/proc/{wire.process.pid}/status").read_text()
    for mask in re.findall(r"^Sig(?:Cgt|Ign):\s*(\w+)$", status, re.MULTILINE):
        is_masked = int(mask, 16) & 1 << (signal.SIGINT - 1)
        assert not is_masked, "Python hears it only between two lines of input"
    wire.end(signal.SIGINT)


def test_half_an_emoji_is_answered_like_any_text(project: Project) -> None:
    project.doc("a.md", "# Zebras\n")
    wire = Wire(project)
    found = wire.tool("search_docs", query="zebras \ud83d")
    assert [hit["path"] for hit in found["result"]] == ["docs/a.md"]
    content = "whole \U0001f642, half \ud83d"
    wire.tool("create_memory", filename="a", content=content, tags=[])
    assert (project.root / ".memories" / "a.md").read_text().endswith("whole \U0001f642, half ?")
    assert wire.close() == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_whole_session(project: Project, launch: Connect, mode: str) -> None:
    project.doc("guide.md", "# Guide\n\n## Tokens\n\nTokens expire after an hour.\n")
    session = launch(mode)
    assert "search_docs" in session.instructions
    hits = session.call("search_docs", query="when do tokens expire")["result"]
    assert hits[0]["path"] == "docs/guide.md"
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
    version = text["version"]
    session.call("update_memory", filename="one", content="Rewritten.", expected_version=version)
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

    assert finds(other, "aardvark") == []
    one.call("create_memory", filename="shared", content="An aardvark was seen.", tags=[])
    assert finds(one, "aardvark") == ["memory:shared"]
    until(lambda: finds(other, "aardvark") == ["memory:shared"])
    other.call("append_memory", filename="shared", content="Then a bandicoot.")
    until(lambda: finds(one, "bandicoot") == ["memory:shared"])
    project.memory("by-hand.md", "A capybara, written with an editor.\n")
    until(lambda: finds(one, "capybara") == finds(other, "capybara") == ["memory:by-hand"])
    one.call("delete_memory", filename="shared")
    until(lambda: finds(other, "aardvark") == [])
    assert one.call("get_memory_stats")["count"] == other.call("get_memory_stats")["count"] == 1
