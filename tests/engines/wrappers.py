"""Indexes around an index: one counts the calls, one gives passages other keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from ragdocs.protocols import Candidates, Index, Loaded, PassageKey, Snapshot, Ties
from ragdocs.types import Document, Filter


class Counting:
    """Passes calls on and counts those of an index and of its snapshots by name."""

    def __init__(self, inner: object, calls: Counter[str] | None = None) -> None:
        self._inner: Any = inner
        self.calls: Counter[str] = Counter() if calls is None else calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return method(*arguments, **named)

        return counted

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self._inner.snapshot() as snapshot:
            yield cast("Snapshot", Counting(snapshot, self.calls))


class Opaque:
    """An index whose keys are strings in no order at all."""

    def __init__(self, inner: Index) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self._inner.snapshot() as snapshot:
            yield cast("Snapshot", _OpaqueSnapshot(snapshot))


class _OpaqueSnapshot:
    def __init__(self, inner: Snapshot) -> None:
        self._inner = inner
        self._keys: dict[str, PassageKey] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _hidden(self, key: PassageKey) -> PassageKey:
        name = hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
        self._keys[name] = key
        return PassageKey(name)

    def candidates(self, *arguments: Any, **named: Any) -> Candidates:
        candidates = self._inner.candidates(*arguments, **named)
        return replace(candidates, keys=[self._hidden(key) for key in candidates.keys])

    def neighbours(
        self, document_ids: Sequence[str], where: Filter
    ) -> Mapping[str, list[tuple[Document, PassageKey]]]:
        neighbours = self._inner.neighbours(document_ids, where)
        hidden = {}
        for document_id, linked in neighbours.items():
            hidden[document_id] = [(document, self._hidden(key)) for document, key in linked]
        return hidden

    def load(
        self,
        keys: Sequence[PassageKey],
        words: Sequence[str] = (),
        languages: Sequence[str] = ("en",),
        ties: Ties | None = None,
    ) -> Loaded:
        inner = [self._keys[cast("str", key)] for key in keys]
        return self._inner.load(inner, words, languages, ties)
