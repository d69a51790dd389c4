"""Rows and columns: a statement takes many rows at once as one array for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def columns(rows: Iterable[Sequence[object]], count: int) -> list[list[Any]]:
    """Turn rows into so many columns."""
    arrays: list[list[Any]] = []
    for _ in range(count):
        arrays.append([])
    for row in rows:
        for array, value in zip(arrays, row, strict=True):
            array.append(value)
    return arrays


def first_column(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the first value of each row."""
    values = []
    for row in rows:
        values.append(row[0])
    return values


def empty_columns(names: Iterable[str]) -> dict[str, list[Any]]:
    """Return columns by name, in this order, without a row."""
    by_name: dict[str, list[Any]] = {}
    for name in names:
        by_name[name] = []
    return by_name


def append(by_name: Mapping[str, list[Any]], row: Sequence[Any]) -> None:
    """Add a row, whose values are in the order of the columns."""
    for column, value in zip(by_name.values(), row, strict=True):
        column.append(value)
