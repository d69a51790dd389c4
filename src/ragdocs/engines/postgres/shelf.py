"""Values that are kept in memory, and how many bytes they take."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Shelf(Generic[Key, Value]):
    """Values by key; other threads may add some at any time."""

    def __init__(self, measure: Callable[[Value], int]) -> None:
        self._measure = measure
        self._values: dict[Key, Value] = {}
        self.bytes = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __getitem__(self, key: Key) -> Value:
        return self._values[key]

    def __iter__(self) -> Iterator[Key]:
        keys = list(self._values)
        return iter(keys)

    def get(self, key: Key) -> Value | None:
        """Return a value if it is kept."""
        return self._values.get(key)

    def items(self) -> ItemsView[Key, Value]:
        """Return what is kept now."""
        values = dict(self._values)
        return values.items()

    def has_all(self, keys: Collection[Key]) -> bool:
        """Tell whether all of these are kept."""
        return self._values.keys() >= set(keys)

    def add(self, key: Key, value: Value) -> None:
        """Keep a value, instead of the one that was kept before."""
        before = self._values.get(key)
        if before is not None:
            self.bytes -= self._measure(before)
        self._values[key] = value
        self.bytes += self._measure(value)

    def without(self, keys: Iterable[Key]) -> Shelf[Key, Value]:
        """Return another shelf with everything but these."""
        other = Shelf[Key, Value](self._measure)
        other.bytes = self.bytes
        other._values = dict(self._values)
        for key in keys:
            value = other._values.pop(key, None)
            if value is not None:
                other.bytes -= self._measure(value)
        return other
