"""Reads of an index by its protocol, in the words of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragdocs.protocols import Index, ProbeVector, SignalName, Ties, Vectors
from ragdocs.types import Chunk, Document, Filter, Link

ANYTHING = Filter()


def found(
    index: Index, probe: ProbeVector, filters: Sequence[Filter] = (ANYTHING,), k: int = 10
) -> dict[SignalName, list[tuple[str, float]]]:
    """Return (path, score) of what each source finds, best first."""
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates([probe], filters, k)
        loaded = snapshot.load(candidates.keys).passages
    result = {}
    for signal, columns in candidates.found.items():
        raw = candidates.raw[signal]
        result[signal] = [(loaded[c][0].path, float(raw[c])) for c in columns]
    return result


def matches(
    index: Index, text: str, where: Filter = ANYTHING, k: int = 10
) -> list[tuple[str, float]]:
    return found(index, ProbeVector("q", text), [where], k).get(("q", "keyword"), [])


def matching(index: Index, text: str, where: Filter = ANYTHING, k: int = 10) -> list[str]:
    return [path for path, _ in matches(index, text, where, k)]


def nearest(
    index: Index, vector: Vectors, where: Filter = ANYTHING, k: int = 10
) -> list[tuple[str, float]]:
    return found(index, ProbeVector("q", "", vector), [where], k)["q", "vector"]


def near(index: Index, vector: Vectors, where: Filter = ANYTHING, k: int = 10) -> list[str]:
    return [path for path, _ in nearest(index, vector, where, k)]


def listed(index: Index, **where: Any) -> list[str]:
    with index.snapshot() as snapshot:
        return [document.path for document in snapshot.list(Filter(**where))]


def get(index: Index, name: str) -> Document | None:
    with index.snapshot() as snapshot:
        return snapshot.get([name]).get(name)


def passages(index: Index, doc_id: str) -> list[Chunk]:
    with index.snapshot() as snapshot:
        return list(snapshot.first_passages([doc_id], 1_000_000)[doc_id])


def links_to(index: Index, *names: str) -> Mapping[str, tuple[Link, ...]]:
    with index.snapshot() as snapshot:
        return snapshot.links(names)


def neighbours(index: Index, *doc_ids: str, where: Filter = ANYTHING) -> list[list[str]]:
    with index.snapshot() as snapshot:
        linked = snapshot.neighbours(doc_ids, where)
    return [[document.id for document, _ in linked[doc_id]] for doc_id in doc_ids]


def tied(
    index: Index, *paths: str, where: Filter = ANYTHING, steps: int = 10
) -> dict[str, str | None]:
    """Return the names of what replaces these, and the first passage of each that passes."""
    with index.snapshot() as snapshot:
        documents = list(snapshot.get(paths).values())
        others = snapshot.tied(documents, Ties({"replaces"}, where, steps))
    texts = {}
    for document, passage in others.values():
        texts[document.path.removesuffix(".md")] = passage and passage.text
    return texts


def counts(index: Index) -> tuple[int, int, int, int]:
    info = index.info()
    return info.documents, info.passages, info.vectors, info.links
