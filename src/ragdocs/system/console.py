"""Standard input and output, which are in another encoding on each system.

Commands and hooks use this before they import anything else, so little is imported.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from ragdocs.system import platform

_READ_AT_ONCE = 64 * 1024
_ENCODING_VARIABLES = ("PYTHONIOENCODING", "PYTHONUTF8")


def print_anything() -> None:
    """Have every text printed: what the encoding of the output lacks becomes a question mark.

    Pipes and files on Windows get UTF-8, which agents and editors read, unless the user says
    otherwise; a console there takes all characters anyway.
    """
    is_told = any(os.environ.get(variable) for variable in _ENCODING_VARIABLES)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:
            continue
        if platform.is_windows() and not is_told and not stream.isatty():
            reconfigure(encoding="utf-8")
        reconfigure(errors="replace")


def read_input(seconds: float, most: int, is_complete: Callable[[bytes], bool]) -> bytes:
    """Read standard input to its end, or until it is complete, too long or late."""
    deadline = time.monotonic() + seconds
    descriptor = sys.stdin.fileno()
    if platform.is_windows() or platform.is_portable():
        return _read_in_thread(descriptor, deadline, most, is_complete)
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while len(data) < most:
        patience = max(0.0, deadline - time.monotonic())
        if not poll.poll(patience * 1000):
            return data
        part = os.read(descriptor, _READ_AT_ONCE)
        data += part
        if not part or is_complete(data):
            return data
    return data


def _read_in_thread(
    descriptor: int, deadline: float, most: int, is_complete: Callable[[bytes], bool]
) -> bytes:
    """Do the same where a pipe cannot be waited for: the thread ends with the process."""
    data = bytearray()

    def read() -> None:
        while len(data) < most:
            part = os.read(descriptor, _READ_AT_ONCE)
            data.extend(part)
            if not part or is_complete(bytes(data)):
                return

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(max(0.0, deadline - time.monotonic()))
    return bytes(data)
