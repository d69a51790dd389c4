"""Large values as JSON, written a few elements at a time.

Python's own writer lets no other thread run until it has written everything.
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
