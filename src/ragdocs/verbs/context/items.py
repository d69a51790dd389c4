"""Conventions, decisions and notes of a repository as they stand in files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.lanes import Lane
from ragdocs.search import parse
from ragdocs.text import frontmatter, times
from ragdocs.types import Document, Source

# The kinds, and the folder of each.
FOLDERS = {"convention": "conventions", "decision": "decisions", "note": "notes"}
SOURCES = ("manual", "agent", "tool")
LONGEST_TITLE = 200
ID = re.compile(r"\w(?:[\w.-]{0,98}\w)?")


@dataclass(frozen=True, slots=True)
class Item:
    """One convention, decision or note as it stands in its file."""

    kind: str
    id: str
    path: str
    version: str
    text: str
    document: Document
    fields: Mapping[str, Any]
    body: str
    created: datetime
    updated: datetime

    @property
    def title(self) -> str:
        """The title on one line."""
        title = self.fields.get("title")
        if isinstance(title, str) and title.strip():
            return " ".join(title.split())
        return self.document.title

    @property
    def paths(self) -> list[str]:
        """The files and folders that it is about."""
        value = self.fields.get("impacted_paths") or []
        if not isinstance(value, list):
            value = frontmatter.as_text(value).split(",")
        paths = []
        for path in value:
            if path and not isinstance(path, list | dict):
                paths.append(" ".join(frontmatter.as_text(path).split()))
        return paths

    @property
    def source(self) -> str:
        """Who wrote it: a person, an agent or a tool."""
        if self.document.source in SOURCES:
            return self.document.source
        return SOURCES[0]

    @property
    def file_id(self) -> str:
        """The id that the file's name gives."""
        return PurePosixPath(self.path).name.removesuffix(".md")

    def expired(self, now: datetime) -> bool:
        """Tell whether its time is over."""
        return self.document.expires_at is not None and self.document.expires_at <= now

    def concerns(self, path: str) -> bool:
        """Tell whether it is about this path, or about a folder that it is in."""
        wanted = PurePosixPath(path)
        covering = {wanted, *wanted.parents}
        return any(PurePosixPath(own) in covering for own in self.paths)


def read(kind: str, source: Source, lane: Lane, location: str) -> Item:
    """Return the item in a file; one that is malformed is an error and stays untouched."""
    block, body, _ = frontmatter.split(source.text)
    fields: dict[str, Any] = {}
    problems = list(source.problems)
    if block is not None:
        fields, complaints = frontmatter.load(block)
        if not fields:
            problems += complaints
    if problems:
        raise ParseError(
            f"{location}: {'; '.join(problems)}", "Mend it with an editor; the file is untouched"
        )
    document = parse.parse(source, lane).document
    created = document.created_at or source.modified_at or datetime.fromtimestamp(0, UTC)
    return Item(
        kind=kind,
        id=_item_id(fields, source.path),
        path=source.path,
        version=source.version,
        text=source.text,
        document=document,
        fields=fields,
        body=bare(body),
        created=created,
        updated=times.written(fields.get("updated_at")) or created,
    )


def _item_id(fields: Mapping[str, Any], path: str) -> str:
    """Return the id in the front matter, or the one that the file's name gives."""
    own_id = fields.get("id")
    # An id that an editor made unusable must not make the item unreachable.
    if isinstance(own_id, str) and ID.fullmatch(own_id):
        return own_id
    return PurePosixPath(path).name.removesuffix(".md")


def with_own_ids(items: Sequence[Item]) -> list[Item]:
    """Give every item an id of its own: a copy is named by its file, the original keeps the id."""
    owners: dict[str, Item] = {}
    for item in items:
        owner = owners.setdefault(item.id, item)
        if owner.file_id != item.id and item.file_id == item.id:
            owners[item.id] = item
    distinct = []
    for item in items:
        is_owner = owners[item.id] is item
        distinct.append(item if is_owner else replace(item, id=item.file_id))
    return distinct


def bare(text: str) -> str:
    """Return a text as it is compared: line ends alike, nothing empty around it."""
    return text.replace("\r\n", "\n").strip("\n").rstrip()
