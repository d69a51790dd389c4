"""Items of a repository's knowledge as they stand in files, and as they stand in an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.lanes import Lane
from ragdocs.search import parse
from ragdocs.text import frontmatter
from ragdocs.types import AppendedSummary, Document, Source, StepSummary
from ragdocs.verbs import page
from ragdocs.verbs.context.scope import Scope
from ragdocs.verbs.context.shapes import (
    Appended,
    Convention,
    Decision,
    Note,
    RepoMemory,
    Summary,
)

# The kinds, and the folder of each.
FOLDERS = {"convention": "conventions", "decision": "decisions", "note": "notes"}
SUMMARIES = "summaries"
SOURCES = ("manual", "agent", "tool")
LONGEST_TITLE = 200
ID = re.compile(r"\w(?:[\w.-]{0,98}\w)?")
# What an item takes in an answer beside its text.
BESIDE_TEXT = 300
CUT_REMARK = "texts ending in … are cut; kind and id of one item bring the whole"
OMITTED_REMARK = "what is omitted is older; ask for one kind to see more"


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
        updated=_moment(fields.get("updated_at")) or created,
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


def view(
    scope: Scope,
    items: Mapping[str, Sequence[Item]],
    summaries: Sequence[StepSummary],
    budget: int,
) -> RepoMemory:
    """Fit items and summaries into an answer.

    Each kind has its share, and the room that one leaves goes to the next.
    """
    groups = [_Group(FOLDERS[kind], members, SHAPES[kind]) for kind, members in items.items()]
    groups.append(_Group(SUMMARIES, summaries, summary))
    waiting = [group for group in groups if group.members]
    results: dict[str, list[Any]] = {}
    omitted = {}
    room = budget - BESIDE_TEXT
    for position, group in enumerate(waiting):
        share = room // (len(waiting) - position)
        fitting = group.fitting(share)
        room -= sum(page.cost(result) + 2 for result in fitting)
        results[group.name] = fitting
        if len(fitting) < len(group.members):
            omitted[group.name] = len(group.members) - len(fitting)
    return RepoMemory(
        repoHash=scope.identity,
        branch=scope.branch,
        branchScope=scope.policy,
        conventions=results.get("conventions", []),
        decisions=results.get("decisions", []),
        notes=results.get("notes", []),
        summaries=results.get(SUMMARIES, []),
        omitted=omitted,
        remarks=_remarks(results, omitted),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """The items of one kind, and how one of them looks in a room of some size."""

    name: str
    members: Sequence[Any]
    shape: Callable[[Any, int], Any]

    def fitting(self, share: int) -> list[Any]:
        """Return the first items that fit, with texts of equal room."""
        each = max(page.LEAST_CONTENT, share // len(self.members) - BESIDE_TEXT)
        return page.within([self.shape(member, each) for member in self.members], share)


def _remarks(results: Mapping[str, Sequence[Any]], omitted: Mapping[str, int]) -> list[str]:
    remarks = []
    if any(map(_is_cut, chain.from_iterable(results.values()))):
        remarks.append(CUT_REMARK)
    if omitted:
        remarks.append(OMITTED_REMARK)
    return remarks


def _is_cut(result: Mapping[str, Any]) -> bool:
    return any(str(value).endswith(page.ELLIPSIS) for value in result.values())


def convention(item: Item, room: int) -> Convention:
    """Return a convention whose text takes so much room."""
    return Convention(
        id=item.id,
        title=page.cut(item.title, LONGEST_TITLE * 2),
        content=page.cut(item.body, room),
        tags=page.tags(item.document),
        createdAt=page.iso(item.created),
        updatedAt=page.iso(item.updated),
    )


def decision(item: Item, room: int) -> Decision:
    """Return a decision whose text takes so much room."""
    return Decision(
        id=item.id,
        summary=page.cut(item.title, LONGEST_TITLE * 2),
        rationale=page.cut(item.body, room),
        impactedPaths=page.within(item.paths, max(page.LEAST_CONTENT, room // 2)),
        createdAt=page.iso(item.created),
        updatedAt=page.iso(item.updated),
    )


def note(item: Item, room: int) -> Note:
    """Return a note whose text takes so much room."""
    source = item.document.source
    if source not in SOURCES:
        source = SOURCES[0]
    return Note(
        id=item.id,
        content=page.cut(item.body, room),
        source=source,
        createdAt=page.iso(item.created),
        updatedAt=page.iso(item.updated),
    )


SHAPES: dict[str, Callable[[Item, int], Any]] = {
    "convention": convention,
    "decision": decision,
    "note": note,
}


def summary(record: StepSummary, room: int) -> Summary:
    """Return a summary whose text takes so much room."""
    return Summary(
        runId=record.run_id,
        stepId=record.step_id,
        timestamp=record.timestamp,
        summary=page.cut(record.text, room),
        tags=list(record.tags[: page.MOST_TAGS]),
    )


def appended(written: AppendedSummary) -> Appended:
    """Return the answer to a summary that was written."""
    warnings = [f"a secret was replaced by a placeholder: {rule}" for rule in written.redacted]
    return Appended(
        runId=written.summary.run_id,
        stepId=written.summary.step_id,
        timestamp=written.summary.timestamp,
        kept=written.total,
        pruned=written.pruned,
        path=written.path,
        warnings=warnings,
    )


def _moment(value: object) -> datetime | None:
    """Read a time of a field; one without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(str(value))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
