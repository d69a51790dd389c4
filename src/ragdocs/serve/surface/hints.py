"""What to do next, in the words of whoever asks: a tool to an agent, a command to a person."""

from __future__ import annotations

import re
from typing import Any, Literal

from ragdocs.serve.surface import VERBS

Rim = Literal["tool", "command"]

# Verbs write the title of another verb between angle brackets: "See it with <read a memory>".
REFERENCE = re.compile(r"<([a-z][a-z' ]{2,60})>")


# Fields of answers that hold our own sentences; what others wrote is never changed.
OWN_FIELDS = frozenset(
    {"notes", "warnings", "omitted", "message", "reason", "hint", "instructions"}
)
LEFT_OUT = "\n## Left out"


def addressed(text: str, rim: Rim) -> str:
    """Replace the titles of verbs in a text by the names that a rim has for them."""
    if "<" not in text:
        return text
    names = _names(rim)

    def name(match: re.Match[str]) -> str:
        return names.get(match[1], match[0])

    return REFERENCE.sub(name, text)


def _names(rim: Rim) -> dict[str, str]:
    """Map the titles of all verbs to their names; one without a tool has only its command."""
    names = {}
    for verb in VERBS.values():
        name = f"`ragdocs {verb.command}`"
        if rim == "tool" and verb.tool:
            name = verb.name
        names[verb.title.casefold()] = name
    return names


def in_answer(answer: Any, rim: Rim) -> Any:
    """Return an answer whose own sentences speak to whoever asks."""
    if isinstance(answer, list):
        return [in_answer(item, rim) for item in answer]
    if not isinstance(answer, dict):
        return answer
    result = {}
    for name, value in answer.items():
        if name in OWN_FIELDS:
            result[name] = _own(value, rim)
        else:
            result[name] = in_answer(value, rim)
    return result


def in_pack(text: str, rim: Rim, longest: int) -> str:
    """Return a context pack whose list of what was left out speaks to whoever asks, if it fits."""
    items, heading, rest = text.rpartition(LEFT_OUT)
    spoken = items + heading + addressed(rest, rim)
    if len(spoken) > longest:
        return text
    return spoken


def _own(value: Any, rim: Rim) -> Any:
    if isinstance(value, str):
        return addressed(value, rim)
    if isinstance(value, list):
        return [_own(item, rim) for item in value]
    return value
