"""What differs between systems, each way of doing it: as this one can, and as every one can."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ragdocs.project import folders
from ragdocs.serve.install import clients, command
from ragdocs.system import (
    console,
    files,
    folder,
    held_file,
    local_socket,
    processes,
    signals,
)

# Far above what anything takes; only what hangs is waited for so long.
PATIENCE = 60.0
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.flush()"


# --- connections ---


def serve_once(secret: str, answers: list[bool]) -> int:
    """Take one connection on loopback as a server does, and return the port."""
    listener = local_socket.listen(local_socket.LOOPBACK, 0, 1)

    def accept() -> None:
        connection, _ = listener.accept()
        with listener, connection:
            response, is_right = local_socket.Proof(secret).respond(
                local_socket.read_line(connection)
            )
            connection.sendall(response)
            answers.append(is_right(local_socket.read_line(connection)))
            connection.sendall(b"ready\n")

    threading.Thread(target=accept, daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def test_both_sides_prove_that_they_know_the_secret(tmp_path: Path, portable: None) -> None:
    secret = local_socket.new_secret()
    answers: list[bool] = []
    path = str(tmp_path / "x.port")
    local_socket.publish(path, serve_once(secret, answers), secret)
    assert Path(path).stat().st_mode & 0o077 == 0
    with local_socket.connect(path, PATIENCE) as connection:
        assert local_socket.is_readable(connection, PATIENCE)
        assert local_socket.read_line(connection) == b"ready\n"
    assert answers == [True]


def test_a_program_that_has_the_port_now_learns_nothing(tmp_path: Path, portable: None) -> None:
    answers: list[bool] = []
    path = str(tmp_path / "x.port")
    port = serve_once(local_socket.new_secret(), answers)
    local_socket.publish(path, port, local_socket.new_secret())
    with pytest.raises(local_socket.StrangerError):
        local_socket.connect(path, PATIENCE)


def test_a_window_without_the_secret_is_not_served(tmp_path: Path, portable: None) -> None:
    answers: list[bool] = []
    port = serve_once(local_socket.new_secret(), answers)
    with socket.create_connection((local_socket.LOOPBACK, port), PATIENCE) as stranger:
        stranger.sendall(b"0123\n")
        assert local_socket.read_line(stranger)
        stranger.sendall(b"0123\n")
        local_socket.read_line(stranger)
    assert answers == [False]


@pytest.mark.parametrize("content", ["", "no port", "70000", "0 x", "\x00\xff"])
def test_a_damaged_file_of_a_server_is_no_server(
    tmp_path: Path, content: str, portable: None
) -> None:
    (tmp_path / "x.port").write_text(content, encoding="latin-1")
    with pytest.raises(OSError):  # noqa: PT011 - whatever the system says
        local_socket.connect(str(tmp_path / "x.port"), PATIENCE)


def test_the_path_of_a_socket_is_short_enough_for_every_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAGDOCS_PORTABLE", "0")
    # macOS has 104 bytes for it, with the one that ends it.
    assert not local_socket.is_short_enough("x" * 103)
    monkeypatch.setenv("RAGDOCS_PORTABLE", "1")
    assert local_socket.is_short_enough("x" * 103)


# --- processes ---


def test_a_file_is_held_by_one_process_and_free_when_that_is_gone(
    tmp_path: Path, system: str
) -> None:
    path = str(tmp_path / "x.lock")
    program = (
        "import sys; from ragdocs.system import held_file\n"
        "held = held_file.take(sys.argv[1])\n"
        "held_file.write(held, 'mine')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-P", "-c", program, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert held_file.take(path) is None
        assert Path(path).read_text() == "mine"
        holder.kill()
    own = held_file.take(path, PATIENCE)
    assert own is not None
    held_file.remove(path, own)
    assert not Path(path).exists()


def test_a_started_process_has_a_line_to_us(tmp_path: Path, system: str) -> None:
    line = processes.start_connected([sys.executable, "-c", ECHO], os.environ, str(tmp_path))
    with line:
        line.settimeout(PATIENCE)
        line.sendall("größe\r\n".encode())
        assert local_socket.read_line(line) == "größe\r\n".encode()
        local_socket.end_sending(line)
        assert line.recv(1) == b""


def test_a_process_that_is_gone_is_not_alive(system: str) -> None:
    assert processes.is_alive(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(PATIENCE)
    assert not processes.is_alive(ended.pid)
    assert bool(processes.born(os.getpid())) == (system == "as it is")


def test_a_process_in_the_background_that_was_killed_is_dead_for_others() -> None:
    command = [sys.executable, "-P", "-c", "import time; time.sleep(60)"]
    number = processes.start_in_background(command, os.environ).pid
    assert processes.is_alive(number)
    os.kill(number, signal.SIGKILL)
    deadline = time.monotonic() + 30
    # Nobody asks the object that stood for it: its starter takes note of its end by itself.
    while processes.is_alive(number):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_signal_calls_the_action_in_the_loop(system: str) -> None:
    async def wait() -> None:
        asked = asyncio.Event()
        with signals.called_at_end(asyncio.get_running_loop(), asked.set):
            signal.raise_signal(signal.SIGINT)
            await asyncio.wait_for(asked.wait(), PATIENCE)

    asyncio.run(wait())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# --- files ---


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced(
    tmp_path: Path, portable: None
) -> None:
    refusals = [PermissionError(13, "in use"), PermissionError(13, "in use")]

    def replace() -> None:
        if refusals:
            raise refusals.pop()
        (tmp_path / "done").touch()

    folder._patiently(replace)
    assert (tmp_path / "done").exists()


def test_a_file_that_stays_open_is_an_error(
    monkeypatch: pytest.MonkeyPatch, portable: None
) -> None:
    monkeypatch.setattr(folder, "OPEN_SECONDS", 0.0)
    with pytest.raises(PermissionError):
        folder._patiently(lambda: (_ for _ in ()).throw(PermissionError(13, "in use")))


def test_files_are_written_whole_read_and_removed(tmp_path: Path, system: str) -> None:
    path = tmp_path / "deep" / "a.md"
    files.make_directories(path.parent)
    assert files.create_whole(path, b"one\r\n", mode=0o600)
    assert not files.create_whole(path, b"two", mode=0o600)
    assert files.read_bytes(path) == b"one\r\n"
    files.write_atomic(path, b"three")
    files.append_line(path, b"four")
    assert files.read_bytes(path) == b"three\nfour\n"
    files.move(path, tmp_path / "b.md")
    files.remove(tmp_path / "b.md")
    assert list(tmp_path.rglob("*")) == [path.parent]


def test_a_path_that_is_too_long_for_windows_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    error = files.explain(FileNotFoundError(2, "not found"), "write", "x" * 300)
    assert "LongPathsEnabled" in error.hint
    assert not files.explain(FileNotFoundError(2, "not found"), "write", "x").hint


def test_a_process_that_watches_its_parent_asks_once_which_system_this_is() -> None:
    code = (
        "import sys, time; from ragdocs.system import processes; processes.end_with_parent(); "
        "sys.platform = 'win32'; time.sleep(1.5 * processes.POLL_SECONDS)"
    )
    watching = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert not watching.stderr


# --- folders and commands, as Windows and macOS have them ---


def test_the_folders_of_a_user_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    environ = {"APPDATA": "/profile/Roaming", "LOCALAPPDATA": "/profile/Local"}
    assert folders.config_dir(environ) == Path("/profile/Roaming/ragdocs")
    assert folders.cache_dir(environ) == Path("/profile/Local/ragdocs/cache")
    assert folders.home({"USERPROFILE": "/profile", "HOME": "/other"}) == Path("/profile")
    assert command.joined([r"C:\Program Files\Python\python.exe", "-P"]) == (
        r'"C:\Program Files\Python\python.exe" -P'
    )


@pytest.mark.parametrize(
    ("name", "applications"),
    [("darwin", "/home/u/Library/Application Support"), ("win32", "/home/u/AppData/Roaming")],
)
def test_clients_keep_their_settings_elsewhere(
    monkeypatch: pytest.MonkeyPatch, name: str, applications: str
) -> None:
    monkeypatch.setattr(sys, "platform", name)
    machine = clients.machine(None, {"HOME": "/home/u", "USERPROFILE": "/home/u"})
    assert machine.folders["applications"] == Path(applications)


# --- standard input and output ---


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_a_command_prints_any_text_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / ".memories").mkdir()
    (tmp_path / ".memories" / "größe.md").write_text("日本 → größe 🎉\n", encoding="utf-8")
    words = [
        "memory",
        "read",
        "größe",
        "--project",
        str(tmp_path),
        "--set",
        "embedding.model=none",
        "--set",
        "memory.enabled=true",
    ]
    result = subprocess.run(
        [sys.executable, "-P", "-m", "ragdocs", *words],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert result.returncode == 0, result.stderr
    expected = "日本 → größe 🎉".encode(encoding, "replace")
    assert expected in result.stdout


def test_what_a_host_writes_to_a_hook_is_read_though_the_pipe_stays_open(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin, os.fdopen(writing, "wb", 0) as host:
        monkeypatch.setattr(sys, "stdin", stdin)
        host.write('{"prompt": "größe"}'.encode())
        data = console.read_input(PATIENCE, 1000, lambda data: data.endswith(b"}"))
    assert data.decode() == '{"prompt": "größe"}'
