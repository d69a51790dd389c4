"""Other processes: starting them, ending them, and telling whether they live.

`ragdocs mcp` uses this before it is connected, so little is imported.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Mapping, Sequence

from ragdocs.system import platform

# As type checkers take it; the module `typing` costs more than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import subprocess
    from typing import IO

# How often to check that a parent lives: another process may hold our input open after its death.
POLL_SECONDS = 0.5
_READ_AT_ONCE = 64 * 1024
# Of Windows: the right to ask a process for its state, and the exit code of one that runs.
_QUERY = 0x1000
_STILL_ACTIVE = 259
_STANDARD_ERROR = 2


def is_alive(pid: int) -> bool:
    """Tell whether a process of this machine runs."""
    if sys.platform == "win32":  # os.kill would end the process there
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except OSError as error:  # not ours to signal, but alive
        return error.errno != errno.ESRCH
    except OverflowError:
        return False
    return True


def _is_alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 - only Windows has it
    handle = kernel.OpenProcess(_QUERY, False, pid)
    if not handle:
        return False
    code = ctypes.c_ulong()
    # A process that ended stays known for as long as somebody has a handle of it.
    is_known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return not is_known or code.value == _STILL_ACTIVE


def born(pid: int) -> str:
    """Return when a process began, as the system counts it, or nothing where it does not tell.

    A process id may be given away again.
    """
    facts = _fact(pid, "stat")
    # The name of the process, in parentheses, may hold anything; the start time is the 20th field
    # after it.
    fields = facts.rpartition(")")[2].split()
    return "".join(fields[19:20])


def name(pid: int) -> str:
    """Return the name of a process, or nothing where the system does not tell."""
    return "".join(filter(str.isprintable, _fact(pid, "comm").strip()))


def _fact(pid: int, kind: str) -> str:
    if platform.is_portable():
        return ""
    try:
        with open(f"/proc/{pid}/{kind}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def end_with_parent() -> None:
    """End this process when the one that started it is gone."""
    watched = (os.getppid(), platform.is_windows())
    threading.Thread(target=_end_after, args=watched, daemon=True).start()


def _end_after(parent: int, is_windows: bool) -> None:
    import signal
    import time

    # Windows goes on naming a parent that is gone.
    while os.getppid() == parent and (not is_windows or is_alive(parent)):
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def die_of_interrupts() -> None:
    """Let an interrupt end this process at once, even if its parent ignores interrupts."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_in_background(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: str | None = None,
    log: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, with what it prints in a new file for this user."""
    import subprocess

    # Windows has no sessions: without these, closing a console would end the process.
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    flags |= getattr(subprocess, "CREATE_NO_WINDOW", 0)
    with open(log or os.devnull, "wb", opener=_private) as output:
        process = subprocess.Popen(  # noqa: S603 - the caller's own module
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            creationflags=flags,
        )
    _note_end(process)
    return process


def _note_end(process: subprocess.Popen[bytes]) -> None:
    """Take note when a process ends: others would take it for alive, and wait for its locks."""
    threading.Thread(target=process.wait, daemon=True).start()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def start_connected(
    command: Sequence[str], environ: Mapping[str, str], folder: str
) -> socket.socket:
    """Start a process with one end of a line as its input and output; return the other end."""
    import socket
    import subprocess

    ours, theirs = socket.socketpair()
    if platform.is_windows() or platform.is_portable():
        # Windows cannot give a socket to a program as its input.
        process = subprocess.Popen(  # noqa: S603 - the caller's own module
            command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin
        assert process.stdout
        threading.Thread(target=_feed, args=(theirs, process.stdin), daemon=True).start()
        threading.Thread(target=_drain, args=(process.stdout, theirs), daemon=True).start()
    else:
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - the caller's own module
                command, cwd=folder, env=environ, stdin=theirs.fileno(), stdout=theirs.fileno()
            )
    _note_end(process)
    return ours


def _feed(source: socket.socket, target: IO[bytes]) -> None:
    """Copy what comes from a socket to the input of a process."""
    try:
        with target:
            while data := source.recv(_READ_AT_ONCE):
                target.write(data)
                target.flush()
    except OSError:
        # The process is gone, which the other direction says too.
        return


def _drain(source: IO[bytes], target: socket.socket) -> None:
    """Copy what a process prints to a socket, and close that when the process has ended."""
    try:
        with source, target:
            while data := os.read(source.fileno(), _READ_AT_ONCE):
                target.sendall(data)
    except OSError:
        # Nobody reads it any more.
        return


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has a session of its own, with all that it has started there."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            import signal

            os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        # It has ended by itself.
        pass
    process.wait()


def limit(memory: int, seconds: int) -> None:
    """Bound the memory and the processor time of this process, where the system can."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        # Windows has no such limits, and macOS refuses that of memory.
        return


def take_output() -> IO[bytes]:
    """Return standard output for a protocol; what libraries print goes to standard error."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    try:
        os.dup2(_STANDARD_ERROR, sys.stdout.fileno())
    except OSError:  # there is none: nobody wants to read it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    return output
