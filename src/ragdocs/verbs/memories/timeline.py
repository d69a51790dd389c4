"""What happened to memories and when: written, changed, merged, renamed, removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from ragdocs.errors import RagdocsError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.search.parse import parse
from ragdocs.text import times
from ragdocs.types import ChangeSet, Document, Revision, Source
from ragdocs.verbs import page

# Changes with less than this between them belong to one session of work.
SESSION_GAP = timedelta(hours=1)
# A memory that was written with an editor; nothing else is known about how.
WRITTEN = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change that was made at once; `others` are the paths that it took away besides."""

    at: datetime
    verb: str
    path: str
    others: Sequence[str] = ()
    # As the memory is now, or as it was before it was removed.
    document: Document | None = None
    exists: bool = True
    # The version that was replaced and the one that came instead, where there is one.
    before: str = ""
    after: str = ""
    # Whoever made the change, where it is known.
    author: str = ""


@dataclass(frozen=True, slots=True)
class Events:
    """Events, newest first, and how many more there are before them."""

    events: Sequence[Event]
    omitted: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The past of the memory lane by days."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def events(
        self, since: str = "", until: str = "", *, limit: int = 50, offset: int = 0
    ) -> Events:
        """Return what happened in a range of days, newest first."""
        page.check_limit(limit)
        if offset < 0:
            raise ValidationError(f"offset is {offset}", "Give 0 or more")
        now = self.clock()
        start = stop = None
        if since:
            start = times.start(since, now)
        if until:
            stop = _end_of_day(until, now)
        documents = {document.path: document for document in self.corpus.documents()}
        events = []
        for event in self._all(documents):
            is_early = start is not None and event.at < start
            is_late = stop is not None and event.at >= stop
            if not is_early and not is_late:
                events.append(event)
        events.sort(key=lambda event: event.at, reverse=True)
        chosen = events[offset : offset + limit]
        described = [self._described(event, documents) for event in chosen]
        return Events(described, max(0, len(events) - offset - len(chosen)))

    def _all(self, documents: dict[str, Document]) -> list[Event]:
        """Return all changes by ragdocs, and the memories that were written otherwise."""
        events = []
        created = set()
        for commit in self.corpus.versioned.commits():
            if commit.steps:
                events.append(_event(commit))
            for step in commit.steps:
                if not step.version:
                    created.add(step.path)
        for path, document in documents.items():
            moment = document.created_at or document.modified_at
            if path not in created and moment is not None:
                events.append(Event(at=moment, verb=WRITTEN, path=path))
        return events

    def _described(self, event: Event, documents: dict[str, Document]) -> Event:
        document = documents.get(event.path)
        exists = document is not None
        if document is None and event.before:
            document = self._earlier(event.path, event.before)
        return replace(event, document=document, exists=exists)

    def _earlier(self, path: str, version: str) -> Document | None:
        """Return a memory as it was at a version that is kept."""
        with suppress(RagdocsError):
            text = self.corpus.versioned.recover(version)
            source = Source(path=path, text=text, version=version, stamp="", size=len(text))
            return parse(source, self.corpus.lane).document
        return None


def _event(commit: ChangeSet) -> Event:
    main = _main_step(commit)
    # Files whose links were rewritten on the way are not what the change is about.
    others = [step.path for step in commit.steps if step is not main and not step.after]
    return Event(
        at=commit.at,
        verb=commit.verb,
        path=main.path,
        others=others,
        before=main.version,
        after=main.after,
        author=commit.author,
    )


def _main_step(commit: ChangeSet) -> Revision:
    """Return the step that a change is about: what a merge or a rename wrote, else the first."""
    for step in commit.steps:
        if step.after:
            return step
    return commit.steps[0]


def _end_of_day(text: str, now: datetime) -> datetime:
    """Return the end of the day that a text names."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        day = times.start(text, now).astimezone(now.tzinfo).date()
    return datetime.combine(day + timedelta(days=1), time(), now.tzinfo)
