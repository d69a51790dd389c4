"""The input of a hook: JSON from the agent's host, with the prompt that was typed.

A hook runs before every prompt, so this module imports only some of the standard library.
"""

from __future__ import annotations

import io
import json
import os
import sys

from ragdocs.system import console

# A host writes the input before or right after it starts a hook. Nobody writes any where a hook is
# tried by hand in a script whose input stays open.
INPUT_SECONDS = 1.0
LONGEST_INPUT = 4_000_000
# As long as a task may be; the beginning of a longer prompt says what it is about.
LONGEST_PROMPT = 20_000
# Gemini CLI puts what a hook said at the start of a session before the first prompt, and hands both
# to the next hook.
_CONTEXT_BEGIN = "<hook_context>"
_CONTEXT_END = "</hook_context>"


def read_input() -> str:
    """Return what the host wrote to standard input; nothing if it wrote nothing in time."""
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):
        # It was read before, or there is none.
        return sys.stdin.read() if sys.stdin else ""
    if os.isatty(descriptor):
        return ""
    data = console.read_input(INPUT_SECONDS, LONGEST_INPUT, _is_object)
    return data.decode("utf-8", "replace")


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
    words = _typed(event["prompt"])
    return words.strip()[:LONGEST_PROMPT]


def _typed(text: str) -> str:
    """Return a prompt without what hooks have put before it."""
    while text.lstrip().startswith(_CONTEXT_BEGIN) and _CONTEXT_END in text:
        text = text.partition(_CONTEXT_END)[2]
    return text
