"""Large values as JSON, written a few elements at a time and read one at a time.

Python's own writer lets no other thread run until it has written everything. Its reader makes
everything at once, and the room of values that are needed for a moment only is not given back when
others that stay lie between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ragdocs.system.turns import give_way

PORTION = 64


def written(value: Mapping[str, Any]) -> bytes:
    """Return an object as JSON; its lists, and what its iterators yield, in portions."""
    members = []
    for name, part in value.items():
        if isinstance(part, list | Iterator):
            body = _listed(part)
        else:
            body = _encoded(part)
        members.append(_encoded(name) + b": " + body)
    return b"{" + b", ".join(members) + b"}"


class FirstList:
    """The first list among the members of an object which `written` wrote, read as it is iterated.

    `rest` is an object of the members behind it, as text, known at the end of the list.
    """

    def __init__(self, data: bytes | memoryview | str) -> None:
        if not isinstance(data, str):
            data = str(data, "utf-8", "surrogatepass")
        self._text = data
        self.rest = "{}"

    def __iter__(self) -> Iterator[Any]:
        text = self._text
        decode = json.JSONDecoder().raw_decode
        position = text.index("[") + 1
        while text[position] != "]":
            element, position = decode(text, position)
            yield element
            if text[position] == ",":
                position += len(", ")
        self.rest = "{" + text[position + 1 :].removeprefix(", ")
        self._text = ""


def _listed(values: Iterable[Any]) -> bytes:
    rest = iter(values)
    portions = []
    # Values that are made one after the other are gone before the next: thousands of them at once
    # would make the garbage collector look at everything there is.
    while portion := list(islice(rest, PORTION)):
        portions.append(_encoded(portion)[1:-1])
        give_way()
    return b"[" + b", ".join(portions) + b"]"


def _encoded(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=str)
    # A file name need not be text: half characters stand for its other bytes, and json reads them
    # back.
    return text.encode("utf-8", "surrogatepass")
