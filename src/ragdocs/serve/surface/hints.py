"""What to do next, in the words of whoever asks: a tool to an agent, a command to a person."""

from __future__ import annotations

import re
from typing import Any, Literal

from ragdocs.serve.surface import VERBS

Rim = Literal["tool", "command"]

# Verbs write the title of another verb between angle brackets: "See it with <read a memory>".
REFERENCE = re.compile(r"<([a-z][a-z' ]{2,60})>")


def addressed(text: str, rim: Rim) -> str:
    """Replace the titles of verbs in a text by the names that a rim has for them."""
    if "<" not in text:
        return text
    names = {}
    for verb in VERBS.values():
        command = f"`ragdocs {verb.command}`"
        names[verb.title.casefold()] = verb.name if rim == "tool" and verb.tool else command
    return REFERENCE.sub(lambda match: names.get(match[1], match[0]), text)


# Fields of answers that hold our own sentences; what others wrote is never changed.
OWN_FIELDS = frozenset(
    {"notes", "warnings", "omitted", "message", "reason", "hint", "instructions"}
)
LEFT_OUT = "\n## Left out"


def in_answer(answer: Any, rim: Rim) -> Any:
    """Return an answer whose own sentences speak to whoever asks."""
    if isinstance(answer, list):
        return [in_answer(item, rim) for item in answer]
    if not isinstance(answer, dict):
        return answer
    result = {}
    for name, value in answer.items():
        result[name] = _own(value, rim) if name in OWN_FIELDS else in_answer(value, rim)
    return result


def in_pack(text: str, rim: Rim, longest: int) -> str:
    """Return a context pack whose list of what was left out speaks to whoever asks, if it fits."""
    items, heading, rest = text.rpartition(LEFT_OUT)
    spoken = items + heading + addressed(rest, rim)
    return spoken if len(spoken) <= longest else text


def _own(value: Any, rim: Rim) -> Any:
    if isinstance(value, str):
        return addressed(value, rim)
    if isinstance(value, list):
        return [_own(item, rim) for item in value]
    return value
