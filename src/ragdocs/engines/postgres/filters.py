"""Filters as conditions on the rows of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ragdocs.engines.postgres.cards import stored
from ragdocs.system.names import link_key
from ragdocs.types import Filter

# After every other character in the order of bytes.
LAST = "\U0010ffff"
UNFILTERED = Filter()
_POINTING = "SELECT l.doc_id FROM links l WHERE l.scope = %(scope)s AND l.target = ANY (?)"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the row `d` of a document, and the values in it.

    `excludes` is the condition of documents that do not pass, if they are few and all others do.
    Two that differ in their values only make the same statement, so they are equal.
    """

    sql: str
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)
    excludes: str = ""

    @property
    def is_open(self) -> bool:
        """Whether every document passes."""
        return self.sql == "true"


def condition(where: Filter, name: str) -> Condition:
    """Return the condition of a filter, whose values have names that begin with `name`."""
    values: dict[str, Any] = {}
    excludes: list[str] = []
    if where.hidden:
        values[f"{name}_hidden"] = _keys(where.hidden)
        excludes.append(f"d.status_key = ANY (%({name}_hidden)s)")
    if where.alive_at:
        values[f"{name}_alive"] = where.alive_at
        excludes.append(f"d.expires_at <= %({name}_alive)s")
    parts = _required(where, name, values)
    for excluded in excludes:
        parts.append(f"({excluded}) IS NOT TRUE")
    exclusion = ""
    if excludes and replace(where, hidden=(), alive_at=None) == UNFILTERED:
        exclusion = " OR ".join(excludes)
    return Condition(" AND ".join(parts) or "true", values, exclusion)


def _required(where: Filter, name: str, values: dict[str, Any]) -> list[str]:
    """Return what a document must have to pass, and note the values."""
    parts = []

    def need(sql: str, key: str, value: object) -> None:
        values[f"{name}_{key}"] = value
        parts.append(sql.replace("?", f"%({name}_{key})s"))

    for key, sql, words in (
        ("kinds", "d.kind_key = ANY (?)", _keys(where.kinds)),
        ("statuses", "d.status_key = ANY (?)", _keys(where.statuses)),
        ("tags", "d.tag_keys && ?::text[]", _keys(where.tags)),
        ("without", "d.path <> ALL (?)", list(map(stored, sorted(where.without)))),
        ("links", f"d.doc_id IN ({_POINTING})", link_targets(where.linked_to)),
    ):
        if words:
            need(sql, key, words)
    for key, sql, least in (
        ("since", "d.created_at >= ?", where.since),
        ("until", "d.created_at <= ?", where.until),
        ("importance", "d.importance >= ?", where.min_importance),
        ("confidence", "d.confidence >= ?", where.min_confidence),
        ("prefix", "d.path >= ?", stored(where.prefix)),
        ("beyond", "d.path < ?", where.prefix and stored(where.prefix) + LAST),
    ):
        if least:
            need(sql, key, least)
    return parts


def link_targets(names: Iterable[str]) -> list[str]:
    """Return names as links to them are stored."""
    return [stored(link_key(name)) for name in names]


def _keys(words: Iterable[str]) -> list[str]:
    return [stored(word.casefold()) for word in words]
