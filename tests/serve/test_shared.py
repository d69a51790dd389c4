"""Several windows, one server.

Real processes, real sockets, and what happens when one of them is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.windows import PATIENCE, Window, servers, until

if TYPE_CHECKING:
    from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("quick_servers")


def test_windows_of_one_project_share_one_server(
    served: Project, runtime: Path, system: str
) -> None:
    windows = [Window(served) for _ in range(3)]
    for window in windows:
        window.greet()
    windows[0].call("create_memory", filename="a.md", content="the zebra decision", tags=[])
    found = windows[2].call("search_memories", query="zebra")["structuredContent"]["result"]
    assert [hit["memory_id"] for hit in found] == ["memory:a"]
    assert len(servers(runtime)) == 1
    assert len(list(runtime.glob("*.sock"))) == (system == "as it is")
    maps = Path(f"/proc/{windows[1].process.pid}/maps").read_text()
    heavy = ("numpy", "faiss", "onnxruntime", "pydantic")
    assert not any(name in maps for name in heavy), "only the server imports these"
    assert [window.close() for window in windows] == [0, 0, 0]


def test_a_killed_server_comes_back_and_the_windows_go_on(
    served: Project, runtime: Path, system: str
) -> None:
    windows = [Window(served).greet() for _ in range(4)]
    windows[0].call("create_memory", filename="kept.md", content="acknowledged", tags=[])
    (server,) = servers(runtime)
    os.kill(server, signal.SIGKILL)
    for window in windows:
        until(lambda window=window: "result" in window.ask("ping"))  # type: ignore[misc]
        text = window.call("read_memory", filename="kept.md")["structuredContent"]["content"]
        assert text.endswith("acknowledged")
    assert len(servers(runtime)) == 1
    assert server not in servers(runtime)
    assert [window.close() for window in windows] == [0, 0, 0, 0]


def test_other_settings_of_a_window_are_another_server(served: Project, runtime: Path) -> None:
    first = Window(served).greet()
    second = Window(served, RAGDOCS_MEMORY_ENABLED="false").greet()
    third = Window(served, "--set", "memory.enabled=false").greet()
    for window in (second, third):
        assert "switched off" in window.refuse("search_memories", query="x")
    assert "search_memories" in first.tools()
    assert len(servers(runtime)) == 3
    assert first.close() == second.close() == third.close() == 0


def test_a_changed_configuration_is_read_by_the_server_that_runs(
    served: Project, runtime: Path
) -> None:
    first = Window(served).greet()
    served.write("config.toml", "[memory]\nenabled = false\n")
    second = Window(served).greet()
    assert "switched off" in second.refuse("search_memories", query="x")
    first.wait_for("notifications/tools/list_changed")
    assert "search_memories" not in first.tools()
    assert len(servers(runtime)) == 1
    assert first.close() == second.close() == 0


def test_a_server_without_windows_ends(served: Project, runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    program = (
        "import ragdocs.serve.shared.daemon as shared; shared.IDLE_SECONDS = 0.5; shared.main()"
    )
    command = [sys.executable, "-c", program, str(runtime / "x"), "--project", str(served.root)]
    assert (
        subprocess.run(command, timeout=PATIENCE, check=False, stderr=subprocess.DEVNULL).returncode
        == 0
    )
    assert not (runtime / "x.sock").exists()


def test_a_project_that_shares_nothing_is_served_by_the_window_itself(
    served: Project, runtime: Path, system: str
) -> None:
    served.write("config.toml", "[server]\nshared = false\n")
    window = Window(served).greet()
    assert window.call("search_docs", query="tokens")["structuredContent"]["result"]
    assert servers(runtime) == []
    assert window.close() == 0


def test_a_folder_that_others_may_enter_is_not_used(served: Project, runtime: Path) -> None:
    runtime.mkdir(mode=0o755)
    window = Window(served).greet()
    assert list(runtime.iterdir()) == []
    assert window.close() == 0


def test_a_folder_too_deep_for_a_socket_is_passed_over(
    served: Project,
    runtime: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own_system: None,
) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(runtime.parent))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    window = Window(served).greet()
    assert len(servers(runtime)) == 1
    assert list(deep.iterdir()) == []
    assert window.close() == 0


def test_what_one_window_has_read_another_has_not(served: Project, runtime: Path) -> None:
    served.write("config.toml", "[journal]\nenabled = true\n")
    one, two = Window(served).greet(), Window(served).greet()
    assert not one.call("journal_read", id="a")["structuredContent"]["exists"]
    assert (
        one.call("journal_write", path="a", entry="first", overview="# A")["structuredContent"][
            "entry_count"
        ]
        == 1
    )
    refused = two.call("journal_write", path="a", entry="second")
    assert refused["isError"]
    assert "was not read in this session" in refused["content"][0]["text"]
    two.call("journal_read", id="a")
    assert (
        two.call("journal_write", path="a", entry="second", overview="# B")["structuredContent"][
            "entry_count"
        ]
        == 2
    )
    assert one.call("journal_write", path="a", entry="third", overview="# C")["isError"]
    assert one.call("journal_write", path="a", entry="third")["structuredContent"]["rebased"]
    assert len(servers(runtime)) == 1
    for window in (one, two):
        window.close()
