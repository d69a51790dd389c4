"""The input of a hook: JSON from the agent's host, with the prompt that was typed.

A hook runs before every prompt, so this module imports only some of the standard library.
"""

from __future__ import annotations

import io
import json
import os
import select
import sys
import time

# A host writes the input before or right after it starts a hook. Nobody writes any where a hook is
# tried by hand in a script whose input stays open.
INPUT_SECONDS = 1.0
READ_AT_ONCE = 64 * 1024
LONGEST_INPUT = 4_000_000
# As long as a task may be; the beginning of a longer prompt says what it is about.
LONGEST_PROMPT = 20_000


def read_input() -> str:
    """Return what the host wrote to standard input; nothing if it wrote nothing in time."""
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):
        # It was read before, or there is none.
        return sys.stdin.read() if sys.stdin else ""
    if os.isatty(descriptor):
        return ""
    if sys.platform == "win32":  # only sockets can be waited for there
        return sys.stdin.read(LONGEST_INPUT)
    return _read_until_complete(descriptor).decode("utf-8", "replace")


def _read_until_complete(descriptor: int) -> bytes:
    """Read to the end of the input, or of the first JSON object in it, or until time is up."""
    deadline = time.monotonic() + INPUT_SECONDS
    data = b""
    while len(data) < LONGEST_INPUT:
        seconds = deadline - time.monotonic()
        is_readable, _, _ = select.select([descriptor], [], [], max(0.0, seconds))
        if not is_readable:
            return data
        part = os.read(descriptor, READ_AT_ONCE)
        data += part
        if not part or _is_object(data):
            return data
    return data


def _is_object(data: bytes) -> bool:
    if not data.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


def prompt(text: str) -> str:
    """Return the prompt in the input of a hook; nothing if there is none in it."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(event, dict) or not isinstance(event.get("prompt"), str):
        return ""
    words: str = event["prompt"]
    return words.strip()[:LONGEST_PROMPT]
