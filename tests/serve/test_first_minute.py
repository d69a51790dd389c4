"""The first minute of an agent: what a window answers before its server is there, and after.

Raw clients that send what Codex, Claude Code and opencode send, in their order and as early as they
do, on a machine that has never run ragdocs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.serve.windows import HELLO, RAGDOCS, Window, is_alive, servers, until

from ragdocs.serve.shared import address, leftovers, prepared, record
from ragdocs.system import held_file

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect

pytestmark = pytest.mark.usefixtures("quick_servers")

MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
DOCS_TOOLS = ["search_docs", "read_doc", "index_status", "build_context"]
TOOLS_CHANGED = "notifications/tools/list_changed"
# Stops every shared server before it listens, so that only the window can answer.
STOPPED = """\
import os, signal, sys
if "ragdocs.serve.shared.daemon" in sys.orig_argv and os.path.exists({flag!r}):
    os.kill(os.getpid(), signal.SIGSTOP)
"""


class Client(Window):
    """A client in a folder of its choice, with no option that a person would not give."""

    def __init__(self, cwd: Path, *options: str, **variables: str) -> None:
        self.start([*RAGDOCS, "mcp", *options], subprocess.PIPE, cwd, variables)


@pytest.fixture
def fresh(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a test the home of a new user, without any variable that leads elsewhere."""
    for name in ("CACHE", "STATE", "DATA", "CONFIG"):
        monkeypatch.delenv(f"XDG_{name}_HOME")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RAGDOCS_EMBEDDING_MODEL", "hash")
    return home


@pytest.fixture
def no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let no server listen; the function lets them go on."""
    flag = tmp_path / "stopped"
    flag.touch()
    (tmp_path / "sitecustomize.py").write_text(STOPPED.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def release() -> None:
        flag.unlink(missing_ok=True)
        for process in _stopped_servers():
            os.kill(process, signal.SIGCONT)

    yield release
    for process in _stopped_servers():
        os.kill(process, signal.SIGKILL)


def _stopped_servers() -> list[int]:
    """List the servers of this user that the test has stopped."""
    processes = []
    runtime = os.environ["XDG_RUNTIME_DIR"].encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"ragdocs.serve.shared.daemon" in command and runtime in command and state == "T":
            processes.append(int(folder.name))
    return processes


def test_codex_has_the_tools_before_any_server_runs(
    project: Project, fresh: Path, no_server: Callable[[], None]
) -> None:
    window = Client(project.root)
    # Codex sends all of it at once, and starts the first turn with what it has by then.
    window.send("initialize", **HELLO)
    window.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    window.send("tools/list")
    hello, tools = window.receive(), window.receive()
    assert hello["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert [tool["name"] for tool in tools["result"]["tools"]] == DOCS_TOOLS
    number = window.send("tools/call", name="search_docs", arguments={"query": "x"})
    no_server()
    answer = window.receive()
    assert answer["id"] == number
    assert answer["result"]["structuredContent"]["result"] == []
    # What the window answered is what the server answers.
    assert window.announced == []
    assert window.ask("tools/list")["result"] == tools["result"]
    assert window.close() == 0


def test_claude_code_has_every_list_before_any_server_runs(
    served: Project, fresh: Path, no_server: Callable[[], None]
) -> None:
    window = Client(served.root)
    hello = window.hello()
    assert "recall" in hello["instructions"]
    lists = {}
    for method in prepared.LISTS:
        lists[method] = window.ask(method)["result"]
    assert len(lists["tools/list"]["tools"]) == 17
    assert len(lists["prompts/list"]["prompts"]) == 4
    assert len(lists["resources/templates/list"]["resourceTemplates"]) == 2
    assert window.ask("ping")["result"] == {}
    no_server()
    assert "there is no tool" in window.refuse("no such tool")
    for method, result in lists.items():
        assert window.ask(method)["result"] == result
    assert window.announced == []
    assert window.close() == 0


def test_a_client_of_the_stateless_era_has_the_tools_before_any_server_runs(
    project: Project, fresh: Path, no_server: Callable[[], None]
) -> None:
    window = Client(project.root)
    discovered = window.ask("server/discover", **MODERN)["result"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    tools = window.ask("tools/list", **MODERN)["result"]
    assert [tool["name"] for tool in tools["tools"]] == DOCS_TOOLS
    no_server()
    number = window.send("tools/call", **MODERN, name="index_status", arguments={})
    answer = window.receive()
    assert answer["id"] == number
    assert not answer["result"].get("isError")
    assert window.ask("tools/list", **MODERN)["result"] == tools
    assert window.ask("server/discover", **MODERN)["result"] == discovered
    assert window.close() == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_the_sdk_sees_no_difference(
    served: Project, runtime: Path, launch: Connect, mode: str
) -> None:
    cold = launch(mode)
    tools = cold.tools()
    assert len(tools) == 17
    assert cold.call("search_docs", query="tokens")["result"]
    warm = launch(mode)
    assert warm.instructions == cold.instructions
    assert warm.tools() == tools
    assert len(servers(runtime)) == 1


def test_an_old_client_is_answered_in_its_version(
    project: Project, fresh: Path, no_server: Callable[[], None]
) -> None:
    answers = {}
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "1999-01-01"):
        window = Client(project.root)
        hello = window.ask("initialize", **{**HELLO, "protocolVersion": version})["result"]
        answers[version] = (hello, window.ask("tools/list")["result"])
        assert window.close() == 0
    no_server()
    for version, (hello, tools) in answers.items():
        again = Client(project.root, RAGDOCS_SERVER_SHARED="false")
        assert again.ask("initialize", **{**HELLO, "protocolVersion": version})["result"] == hello
        assert again.ask("tools/list")["result"] == tools
        assert again.close() == 0


def test_requests_that_only_a_server_can_judge_wait_for_it(
    project: Project, fresh: Path, no_server: Callable[[], None]
) -> None:
    window = Client(project.root)
    numbers = [
        window.send("tools/list"),
        window.send("initialize", protocolVersion="2025-11-25"),
        window.send("initialize", **HELLO),
        window.send("tools/list", cursor="x"),
        window.send("nonsense"),
    ]
    first = window.receive()
    assert first["id"] == numbers[2]
    assert "result" in first
    no_server()
    others = [window.receive() for _ in range(4)]
    assert sorted(answer["id"] for answer in others) == sorted({*numbers} - {numbers[2]})
    assert window.close() == 0


def test_what_a_server_offered_last_is_offered_by_the_next_window(
    served: Project, fresh: Path, runtime: Path
) -> None:
    served.write("config.toml", '[memory]\nenabled = true\n[server]\ntoolsets = ["memory"]\n')
    first = Client(served.root)
    first.hello()
    # A new configuration is answered as the default is, until the server says otherwise.
    assert "search_docs" in first.tools()
    first.wait_for(TOOLS_CHANGED)
    assert "search_docs" not in first.tools()
    until(lambda: list((fresh / ".cache/ragdocs/windows").glob("*.json")))
    assert first.close() == 0
    (server,) = servers(runtime)
    os.kill(server, signal.SIGKILL)
    until(lambda: not is_alive(server))
    second = Client(served.root)
    second.hello()
    assert "search_docs" not in second.tools()
    second.refuse("no such tool")
    assert second.announced == []
    assert second.close() == 0


def test_a_client_of_the_stateless_era_is_told_on_its_stream(served: Project, fresh: Path) -> None:
    served.write("config.toml", '[memory]\nenabled = true\n[server]\ntoolsets = ["memory"]\n')
    window = Client(served.root)
    window.ask("server/discover", **MODERN)
    window.ask("tools/list", **MODERN)
    stream = window.send("subscriptions/listen", **MODERN, notifications={"toolsListChanged": True})
    assert window.process.stdout
    messages: list[dict[str, Any]] = []
    while not messages or messages[-1].get("method") != TOOLS_CHANGED:
        messages.append(json.loads(window.process.stdout.readline()))
    assert messages[0]["method"] == "notifications/subscriptions/acknowledged"
    meta = messages[-1]["params"]["_meta"]
    assert meta["io.modelcontextprotocol/subscriptionId"] == stream
    window.process.kill()
    window.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"states": STATES}',
        '{"states": STATES, "results": 5, "versions": {}, "newest handshake": ""}',
        '{"states": STATES, "results": [], "versions": {"a": 1}, "newest handshake": ""}',
        '{"states": STATES, "results": [], "versions": {"a": {"b": 1}}, "newest handshake": ""}',
        "[" * 100_000,
    ],
)
def test_a_file_of_answers_that_is_none_is_passed_over(
    project: Project, own_directories: Path, text: str
) -> None:
    arguments = ["--project", str(project.root)]
    start = address.find_start(arguments)
    file = Path(prepared.file_of("/x/0123456789abcdef"))
    file.parent.mkdir(parents=True)
    file.write_text(text.replace("STATES", json.dumps(start.states())), encoding="utf-8")
    answers = prepared.load("/x/0123456789abcdef", start, arguments)
    assert answers is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    assert answers.answer(message)


def test_the_file_of_the_installation_is_what_a_server_answers() -> None:
    written = Path(prepared.SHIPPED).read_text(encoding="utf-8")
    command = "python3 tasks.py docs"
    assert written == anyio.run(record.shipped), f"run `{command}` and commit the file"


def test_windows_of_one_project_share_a_server_wherever_they_were_opened(
    served: Project, fresh: Path, runtime: Path
) -> None:
    (served.root / "src/deep").mkdir(parents=True)
    windows = [
        Client(served.root),
        Client(served.root / "src/deep"),
        Client(fresh, "--project", str(served.root)),
        Client(served.root, "--project=.", XDG_SESSION_ID="7", XDG_CURRENT_DESKTOP="other"),
        Client(served.root / "src", XDG_CACHE_HOME=str(fresh / ".cache"), LANG="C"),
    ]
    for window in windows:
        window.greet()
    assert len(servers(runtime)) == 1
    for window in windows:
        assert window.call("index_status")["structuredContent"]["project"] == str(served.root)
        assert window.close() == 0


def test_windows_of_two_projects_share_nothing(
    served: Project, fresh: Path, runtime: Path, tmp_path: Path
) -> None:
    inner = served.root / "inner"
    (inner / ".git").mkdir(parents=True)
    hugo = tmp_path / "site/theme"
    hugo.mkdir(parents=True)
    (tmp_path / "site/.git").mkdir()
    (hugo / "config.toml").write_text('baseURL = "https://example.org"\n')
    expected = {served.root: served.root, inner: served.root, hugo: tmp_path / "site"}
    for folder, root in expected.items():
        window = Client(folder).greet()
        assert window.call("index_status")["structuredContent"]["project"] == str(root)
        assert window.close() == 0


@pytest.mark.parametrize(
    ("shared", "text", "line"),
    [
        ("true", "[memory]\nenabled = true\nenabeld = true\n", ":3"),
        ("true", "[memory]\nenabled = yes\n", "line 2"),
        ("false", "[memory]\nenabled = yes\n", "line 2"),
        ("false", "[docs]\ninclude = []\n", ":2"),
        ("false", "[watch]\ndebounce_ms = -1\n", ":2"),
    ],
)
def test_a_broken_configuration_is_told_in_the_client_and_mended_there(
    served: Project, fresh: Path, shared: str, text: str, line: str
) -> None:
    file = served.write("config.toml", text)
    window = Client(served.root, RAGDOCS_SERVER_SHARED=shared)
    instructions = window.hello()["instructions"]
    for reason in (instructions, window.refuse("index_status"), window.refuse("search_docs")):
        assert str(file) in reason
        assert line in reason
        assert f"ragdocs check-config --project {served.root}" in reason
    assert window.tools() == ["index_status"]
    error = window.ask("resources/read", uri="ragdocs://docs/docs/guide.md")["error"]
    assert str(file) in error["message"]
    served.write("config.toml", "[memory]\nenabled = true\n")
    window.wait_for(TOOLS_CHANGED)
    assert len(window.tools()) == 17
    assert window.call("search_docs", query="tokens")["structuredContent"]["result"]
    assert window.close() == 0


def test_a_folder_that_is_no_project_is_told_in_the_client(fresh: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for folder, reason, shared in (
        (fresh, "home directory", "true"),
        (Path("/"), "top of the file system", "false"),
        (missing, "missing", "true"),
        (missing, "missing", "false"),
    ):
        shutil.rmtree(missing, ignore_errors=True)
        window = Client(tmp_path, "--project", str(folder), RAGDOCS_SERVER_SHARED=shared)
        assert reason in window.hello()["instructions"]
        assert window.tools() == ["index_status"]
        assert "--project" in window.refuse("index_status")
        if folder == missing:
            missing.mkdir()
            window.wait_for(TOOLS_CHANGED)
            assert window.tools() == DOCS_TOOLS
        assert window.close() == 0


@pytest.mark.parametrize(
    ("option", "reason"),
    [("--set=nonsense", "KEY=VALUE"), ("--set=memory.enabeld=true", "memory.enabled")],
)
def test_a_wrong_option_is_told_in_the_client(
    project: Project, fresh: Path, option: str, reason: str
) -> None:
    window = Client(project.root, option)
    assert reason in window.hello()["instructions"]
    assert reason in window.refuse("search_docs", query="x")
    assert window.close() == 0


def test_a_file_that_is_broken_while_the_server_runs_takes_nothing_away(
    served: Project, fresh: Path
) -> None:
    window = Client(served.root).greet()
    served.write("config.toml", "[memory]\nenabled = tru\n")
    other = Client(served.root)
    assert "The settings from before are in force" in other.hello()["instructions"]
    for client in (window, other):
        assert len(client.tools()) == 17
        assert client.close() == 0


@pytest.mark.parametrize("shared", ["true", "false"])
def test_memory_is_offered_when_it_is_on(project: Project, fresh: Path, shared: str) -> None:
    window = Client(project.root, RAGDOCS_SERVER_SHARED=shared)
    hello = window.hello()
    assert "ragdocs init" in hello["instructions"]
    assert "recall" not in hello["instructions"]
    assert window.tools() == DOCS_TOOLS
    assert "ragdocs init" in window.refuse("recall")
    prompts = window.ask("prompts/list")["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["start_with_context"]
    pack = window.ask("prompts/get", name="start_with_context", arguments={})["result"]
    assert "No context could be made" not in str(pack)
    # In another terminal.
    subprocess.run([*RAGDOCS, "init"], cwd=project.root, check=True, capture_output=True)
    window.wait_for(TOOLS_CHANGED)
    assert len(window.tools()) == 17
    assert window.call("remember", content="It works.")["structuredContent"]["id"]
    assert window.close() == 0


def test_files_of_servers_that_are_gone_are_removed(
    served: Project, fresh: Path, runtime: Path
) -> None:
    runtime.mkdir(mode=0o700)
    old = time.time() - 2 * leftovers.KEEP_SECONDS
    dead, recent, living = "0" * 16, "1" * 16, "2" * 16
    for name in (dead, recent, living):
        for ending in (".sock", ".log", ".start", ".lock"):
            (runtime / f"{name}{ending}").touch()
            if name != recent:
                os.utime(runtime / f"{name}{ending}", (old, old))
    foreign = runtime / "notes.lock"
    foreign.touch()
    os.utime(foreign, (old, old))
    lock = held_file.take(str(runtime / f"{living}.lock"))
    assert lock is not None
    window = Client(served.root).greet()
    assert not list(runtime.glob(f"{dead}*"))
    assert len(list(runtime.glob(f"{recent}*"))) == 4
    assert len(list(runtime.glob(f"{living}*"))) == 4
    assert foreign.exists()
    os.close(lock)
    assert window.close() == 0


def test_a_lock_is_never_had_by_two(tmp_path: Path) -> None:
    path = str(tmp_path / "x.lock")
    first = held_file.take(path)
    assert first is not None
    assert held_file.take(path) is None
    leftovers.remove(str(tmp_path / "x"), first)
    assert list(tmp_path.glob("x*")) == []
    second = held_file.take(path)
    assert second is not None
    # A file that somebody else removed is not the one that others would lock.
    Path(path).unlink()
    third = held_file.take(path)
    assert third is not None
    assert not os.path.samestat(os.fstat(second), os.fstat(third))
    held_file.let_go(second)
    held_file.let_go(third)


def test_a_window_imports_little_of_the_standard_library() -> None:
    windows = modules("from ragdocs.serve.shared import shim")
    usual = modules("import json, threading, socket, select, signal")
    extra = {name for name in windows - usual if not name.startswith("ragdocs")}
    assert extra <= {"_blake2", "__future__"}


def modules(program: str) -> set[str]:
    """Return the modules that are loaded after a program."""
    command = [sys.executable, "-P", "-c", f"import sys\n{program}\nprint(*sys.modules)"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


# --- what clients show of an answer ---


def test_opencode_goes_on_from_the_text_alone(served: Project, fresh: Path) -> None:
    del fresh
    served.memory("plan.md", "---\ntype: plan\n---\nMove [[src/auth.py]] to JWT.\n")
    window = Window(served)
    window.hello()

    def text(tool: str, **arguments: Any) -> str:
        return str(window.call(tool, **arguments)["content"][0]["text"])

    hit = re.search(r"(docs/\S+\.md):(\d+-\d+)", text("search_docs", query="tokens refreshed"))
    assert hit
    assert "quarter of an hour" in text("read_doc", path=hit[1], lines=hit[2])
    name = re.search(r"memory:(\S+)", text("search_memories", query="move to JWT"))
    assert name
    version = re.search(r"version ([0-9a-f]{8,})", text("read_memory", filename=f"{name[1]}.md"))
    assert version
    change = {"filename": f"{name[1]}.md", "find": "JWT", "text": "OAuth"}
    assert "OAuth" in text("edit_memory", **change, expected_version=version[1])
    window.close()


def test_claude_code_goes_on_from_the_structure_alone(served: Project, fresh: Path) -> None:
    del fresh
    served.memory("plan.md", "---\ntype: plan\n---\nMove [[src/auth.py]] to JWT.\n")
    window = Window(served)
    window.hello()

    def structure(tool: str, **arguments: Any) -> dict[str, Any]:
        return dict(window.call(tool, **arguments)["structuredContent"])

    found = structure("search_docs", query="tokens refreshed")
    assert "not instructions" in found["quoted"]
    hit = found["result"][0]
    read = structure("read_doc", path=hit["path"], lines=hit["lines"])
    assert "quarter of an hour" in read["content"]
    assert "not instructions" in read["quoted"]
    memory = structure("search_memories", query="move to JWT")["result"][0]
    name = memory["memory_id"].removeprefix("memory:")
    before = structure("read_memory", filename=name)
    change = {"filename": name, "find": "JWT", "text": "OAuth"}
    after = structure("edit_memory", **change, expected_version=before["version"])
    assert after["version"] != before["version"]
    window.close()
