"""Items of a repository's knowledge as they stand in files, and as they stand in an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.lanes import Lane
from ragdocs.search import parse
from ragdocs.text import frontmatter as metadata
from ragdocs.types import AppendedSummary, Document, Source, StepSummary
from ragdocs.verbs import page as answers
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
SOURCES = ("manual", "agent", "tool")
LONGEST_TITLE = 200
ID = re.compile(r"\w(?:[\w.-]{0,98}\w)?")
# What an item takes in an answer beside its text.
BESIDE_TEXT = 300


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
        """What it is called, on one line."""
        named = self.fields.get("title")
        return (
            " ".join(str(named).split())
            if isinstance(named, str) and named.strip()
            else self.document.title
        )

    @property
    def paths(self) -> list[str]:
        """The files and folders that it is about."""
        found = self.fields.get("impacted_paths") or []
        listed = found if isinstance(found, list) else metadata.as_text(found).split(",")
        return [
            " ".join(metadata.as_text(path).split())
            for path in listed
            if path and not isinstance(path, list | dict)
        ]

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
        return any(PurePosixPath(own) in (wanted, *wanted.parents) for own in self.paths)


def read(kind: str, source: Source, lane: Lane, place: str) -> Item:
    """Return what a file says; one that is malformed is an error and stays untouched."""
    block, body, _ = metadata.split(source.text)
    fields, problems = metadata.load(block) if block is not None else ({}, [])
    broken = [*source.problems, *([] if fields else problems)]
    if broken:
        raise ParseError(
            f"{place}: {'; '.join(broken)}", "Mend it with an editor; the file is untouched"
        )
    document = parse.parse(source, lane).document
    created = document.created_at or source.modified_at or datetime.fromtimestamp(0, UTC)
    updated = _moment(fields.get("updated_at")) or created
    file_name = PurePosixPath(source.path).name.removesuffix(".md")
    own_id = fields.get("id")
    # An id that an editor made unusable must not make the item unreachable.
    valid = isinstance(own_id, str) and ID.fullmatch(own_id)
    name = str(own_id) if valid else file_name
    return Item(
        kind,
        name,
        source.path,
        source.version,
        source.text,
        document,
        fields,
        bare(body),
        created,
        updated,
    )


def with_own_ids(items: Sequence[Item]) -> list[Item]:
    """Give every item an id of its own.

    A copied file is known by its name, the original keeps the id.
    """
    owners: dict[str, Item] = {}
    for item in items:
        owner = owners.setdefault(item.id, item)
        if owner.file_id != item.id and item.file_id == item.id:
            owners[item.id] = item
    return [item if owners[item.id] is item else replace(item, id=item.file_id) for item in items]


def bare(text: str) -> str:
    """Return a text as it is compared: line ends alike, nothing empty around it."""
    return text.replace("\r\n", "\n").strip("\n").rstrip()


def view(
    scope: Scope, found: Mapping[str, Sequence[Item]], told: Sequence[Any], budget: int
) -> RepoMemory:
    """Fit items and summaries into an answer.

    Each kind has its share, and what one leaves goes to the next.
    """
    shapes: dict[str, Callable[[Item, int], Any]] = {
        "convention": convention,
        "decision": decision,
        "note": note,
    }
    waiting = [name for name, items in (*found.items(), ("summary", told)) if items]
    shown: dict[str, list[Any]] = {}
    omitted, cut, room = {}, False, budget - BESIDE_TEXT
    for position, name in enumerate(waiting):
        every: Sequence[Any] = told if name == "summary" else found[name]
        share = room // (len(waiting) - position)
        each = max(answers.LEAST_CONTENT, share // len(every) - BESIDE_TEXT)
        shaped = [
            summary(one, each) if name == "summary" else shapes[name](one, each) for one in every
        ]
        shown[name] = answers.within(shaped, share)
        room -= sum(answers.cost(one) + 2 for one in shown[name])
        cut = cut or any("…" in str(value)[-1:] for one in shown[name] for value in one.values())
        if len(shown[name]) < len(every):
            omitted[FOLDERS.get(name, "summaries")] = len(every) - len(shown[name])
    remarks = ["texts ending in … are cut; kind and id of one item bring the whole"] if cut else []
    remarks += ["what is omitted is older; ask for one kind to see more"] if omitted else []
    return RepoMemory(
        repoHash=scope.identity,
        branch=scope.branch,
        branchScope=scope.policy,
        conventions=shown.get("convention", []),
        decisions=shown.get("decision", []),
        notes=shown.get("note", []),
        summaries=shown.get("summary", []),
        omitted=omitted,
        remarks=remarks,
    )


def convention(item: Item, room: int) -> Convention:
    """Return a convention whose text takes so much room."""
    return Convention(
        id=item.id,
        title=answers.cut(item.title, LONGEST_TITLE * 2),
        content=answers.cut(item.body, room),
        tags=answers.tags(item.document),
        createdAt=iso(item.created),
        updatedAt=iso(item.updated),
    )


def decision(item: Item, room: int) -> Decision:
    """Return a decision whose text takes so much room."""
    return Decision(
        id=item.id,
        summary=answers.cut(item.title, LONGEST_TITLE * 2),
        rationale=answers.cut(item.body, room),
        impactedPaths=answers.within(item.paths, max(answers.LEAST_CONTENT, room // 2)),
        createdAt=iso(item.created),
        updatedAt=iso(item.updated),
    )


def note(item: Item, room: int) -> Note:
    """Return a note whose text takes so much room."""
    return Note(
        id=item.id,
        content=answers.cut(item.body, room),
        source=item.document.source if item.document.source in SOURCES else SOURCES[0],
        createdAt=iso(item.created),
        updatedAt=iso(item.updated),
    )


def summary(record: StepSummary, room: int) -> Summary:
    """Return a summary whose text takes so much room."""
    return Summary(
        runId=record.run_id,
        stepId=record.step_id,
        timestamp=record.timestamp,
        summary=answers.cut(record.text, room),
        tags=list(record.tags[: answers.MOST_TAGS]),
    )


def appended(written: AppendedSummary) -> Appended:
    """Return the answer to a summary that was written."""
    return Appended(
        runId=written.summary.run_id,
        stepId=written.summary.step_id,
        timestamp=written.summary.timestamp,
        kept=written.total,
        pruned=written.pruned,
        path=written.path,
        warnings=[f"a secret was replaced by a placeholder: {rule}" for rule in written.redacted],
    )


def iso(moment: datetime) -> str:
    """Write a moment as the fields have it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
