from __future__ import annotations

import json
from typing import Any

import pytest

from ragdocs.engines.local.portions import FirstList, written


@pytest.mark.parametrize("count", [0, 1, 64, 65, 200])
def test_a_list_is_read_one_by_one_and_then_what_stands_behind_it(count: int) -> None:
    cards: list[dict[str, Any]] = []
    for number in range(count):
        cards.append({"id": f"a\udce9, ]{number}", "rows": [number, number + 1]})
    others = {"headings": [["A", "]"], []], "gauge": None}
    stored = FirstList(written({"documents": iter(cards), **others}))
    assert list(stored) == cards
    assert json.loads(stored.rest) == others


def test_a_list_that_is_cut_short_cannot_be_read() -> None:
    data = written({"documents": [{"id": "a"}, {"id": "b"}], "headings": []})
    for size in range(len(data)):
        with pytest.raises((ValueError, LookupError)):
            read(data[:size])


def read(data: bytes) -> None:
    """Read a list and what stands behind it."""
    stored = FirstList(data)
    assert list(stored)
    json.loads(stored.rest)
