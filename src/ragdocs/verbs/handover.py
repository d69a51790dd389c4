"""What somebody who takes over should know: plans, decisions, changed pages, questions, next steps.

The same texts and the same day give the same page, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ragdocs.search.corpus import Corpus
from ragdocs.text import times
from ragdocs.types import Document, Filter, Question
from ragdocs.verbs.file_history import FileChange
from ragdocs.verbs.memories.succession import Succession

USUAL_SINCE = "1w"
# Characters of a text in which steps and questions are looked for.
MOST_CHARACTERS = 50_000
PLAN = "plan"
DECISION = "decision"
# Statuses of plans that nobody works on any more.
CLOSED = frozenset(("done", "completed", "closed", "cancelled", "rejected", "archived"))
_STEP = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[(?P<mark>[ xX])\]\s+(?P<text>\S.*)")
_NEXT = re.compile(
    r"\s*(?:[-*+]\s+)?\**(?:next(?: steps?)?|todo)\**\s*:\**\s*(?P<text>\S.*)", re.IGNORECASE
)
_NEXT_HEADING = re.compile(r"#{1,6}\s+(?:next(?: steps?)?|to-?do|to do)\W*$", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+(?P<text>\S.*)")
_QUESTION = re.compile(
    r"\s*(?:[-*+]\s+)?\**(?:open )?questions?\**\s*:\**\s*(?P<text>\S.*)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a page: what is said, where it stands, of which day, and what is off about it."""

    text: str
    # The path in the project and the line; 0 for the whole text, no path for what has none.
    path: str
    line: int
    at: datetime | None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Handover:
    """The chapters of a page, by name, each with its lines in the order of their worth."""

    since: datetime
    chapters: Mapping[str, Sequence[Entry]]


@dataclass(frozen=True, slots=True)
class Handovers:
    """Gathers what a hand-over says; a lane that is closed is left out."""

    memory: Corpus | None
    docs: Corpus | None
    journal: Corpus | None
    clock: Callable[[], datetime]
    # The pages that were changed since a moment, where a repository knows.
    changed: Callable[[datetime], Sequence[FileChange] | None]
    # Questions that found nothing; nothing where they are not kept.
    questions: Callable[[], Sequence[Question]]
    # Maps the ids of documents to what changed in what they link to.
    drift: Callable[[Sequence[Document]], Mapping[str, str]]

    def write(self, since: str = "") -> Handover:
        """Gather what happened since a day, and what is open."""
        begin = times.start(since or USUAL_SINCE, self.clock())
        documents = self._memories()
        recent = [document for document in documents if _moment(document) >= begin]
        plans = list(filter(_is_open, documents))
        lines = self._lines(self.memory, [*recent, *plans])
        journal = self._journal(begin)
        chapters = {
            "plans": self._plans(plans, lines),
            "decisions": self._decisions(recent),
            "docs": self._docs(begin),
            "questions": [*_matching(_QUESTION, lines + journal), *self._questions(begin)],
            "steps": _steps(lines + journal),
        }
        return Handover(begin, chapters)

    def _memories(self) -> list[Document]:
        """Return the memories that hold, the newest first."""
        if self.memory is None:
            return []
        now = self.clock()
        where = Filter(hidden=self.memory.lane.hidden, alive_at=now)
        documents = self.memory.documents(where)
        superseded = Succession(self.memory, now).successors(documents)
        current = [document for document in documents if document.id not in superseded]
        return sorted(current, key=_newest_first)

    def _lines(
        self, corpus: Corpus | None, documents: Sequence[Document]
    ) -> list[tuple[Document, str, Entry]]:
        """Return the lines of texts with where they stand."""
        if corpus is None:
            return []
        unique = list({document.id: document for document in documents}.values())
        passages = corpus.passages([document.id for document in unique], MOST_CHARACTERS)
        lines = []
        for document in unique:
            path = _location(corpus, document.path)
            seen: set[int] = set()
            for passage in passages[document.id]:
                for offset, text in enumerate(passage.text.split("\n")):
                    number = passage.start_line + offset
                    if number not in seen:
                        seen.add(number)
                        entry = Entry(text.strip(), path, number, _moment(document))
                        lines.append((document, text, entry))
        return lines

    def _journal(self, begin: datetime) -> list[tuple[Document, str, Entry]]:
        if self.journal is None:
            return []
        documents = self.journal.documents(Filter(since=begin))
        return self._lines(self.journal, sorted(documents, key=_newest_first))

    def _plans(
        self, plans: Sequence[Document], lines: Sequence[tuple[Document, str, Entry]]
    ) -> list[Entry]:
        """Return the plans that are open, with how many of their steps are."""
        entries = []
        for plan in plans:
            marks = []
            for document, text, _ in lines:
                step = _STEP.match(text)
                if document.id == plan.id and step:
                    marks.append(step["mark"])
            left = marks.count(" ")
            if marks and not left:
                continue
            remark = ""
            if marks:
                remark = f"{left} of {len(marks)} steps open"
            path = self._path(plan)
            entries.append(Entry(plan.title, path, 0, _moment(plan), remark))
        return entries

    def _decisions(self, recent: Sequence[Document]) -> list[Entry]:
        """Return the decisions of the time, with what changed since in what they are about."""
        decisions = [document for document in recent if document.kind == DECISION]
        drift = self.drift(decisions)
        entries = []
        for decision in decisions:
            remark = drift.get(decision.id, "")
            path = self._path(decision)
            entries.append(Entry(decision.title, path, 0, _moment(decision), remark))
        return entries

    def _docs(self, begin: datetime) -> list[Entry]:
        """Return the pages that changed, by the repository or by the dates of their files."""
        if self.docs is None:
            return []
        changes = self.changed(begin)
        entries = []
        if changes is None:
            for document in sorted(self.docs.documents(), key=_newest_first):
                if document.modified_at is not None and document.modified_at >= begin:
                    entries.append(Entry(document.title, document.path, 0, document.modified_at))
            return entries
        titles = {document.path: document.title for document in self.docs.documents()}
        for change in changes:
            if change.path not in titles:
                continue
            remark = f"{change.commit[:10]} {change.subject}"
            if change.count > 1:
                remark += f", and {change.count - 1} more"
            entries.append(Entry(titles[change.path], change.path, 0, change.at, remark))
        return entries

    def _questions(self, begin: datetime) -> list[Entry]:
        """Return what was asked and not found."""
        entries = []
        for question in self.questions():
            if question.last_at >= begin:
                often = "once" if question.count == 1 else f"{question.count} times"
                remark = f"asked {often}, nothing found"
                entries.append(Entry(question.text, "", 0, question.last_at, remark))
        return entries

    def _path(self, document: Document) -> str:
        assert self.memory is not None
        return _location(self.memory, document.path)


def _steps(lines: Sequence[tuple[Document, str, Entry]]) -> list[Entry]:
    """Return the steps that nobody has marked as done, and what is said to come next.

    That is in lines that begin so, and in lists under a heading that says so.
    """
    entries = []
    section = ""
    for document, text, entry in lines:
        if _NEXT_HEADING.match(text):
            section = document.id
        elif section != document.id or _HEADING.match(text):
            section = ""
        step = _STEP.match(text)
        following = _NEXT.match(text)
        if following is None and section:
            following = _ITEM.match(text)
        if step:
            if step["mark"] == " ":
                entries.append(_worded(entry, step["text"]))
        elif following:
            entries.append(_worded(entry, following["text"]))
    return entries


def _matching(
    pattern: re.Pattern[str], lines: Sequence[tuple[Document, str, Entry]]
) -> Iterator[Entry]:
    for _, text, entry in lines:
        match = pattern.match(text)
        if match:
            yield _worded(entry, match["text"])


def _worded(entry: Entry, text: str) -> Entry:
    return Entry(text.strip(), entry.path, entry.line, entry.at)


def _is_open(document: Document) -> bool:
    return document.kind == PLAN and document.status.casefold() not in CLOSED


def _location(corpus: Corpus, path: str) -> str:
    if corpus.lane.base:
        return f"{corpus.lane.base}/{path}"
    return path


def _moment(document: Document) -> datetime:
    return document.created_at or document.modified_at or datetime.fromtimestamp(0, UTC)


def _newest_first(document: Document) -> tuple[float, str]:
    return -_moment(document).timestamp(), document.path
