"""The journal: an overview of what is understood now by section, and the entries behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ragdocs.errors import ConflictError, NotFoundError, UnavailableError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.system import git
from ragdocs.system.files import relative_name
from ragdocs.text.formats.journal import MARK, SUFFIX, compose, summary_of
from ragdocs.text.merge import propose
from ragdocs.types import ChangeSet, Expect, Hit, Probe, Put, Query, Revision, Source, Written
from ragdocs.verbs import page
from ragdocs.verbs.journal_shapes import (
    Contents,
    Exchanged,
    JournalHit,
    JournalHits,
    JournalText,
    JournalWritten,
    ListedEntries,
    ListedEntry,
)

DEEPEST = 20
MOST_CANDIDATES = 20
MOST_LISTED = 100
# Others may write between a look and a write; so often in a row nobody does.
ATTEMPTS = 8
CONTEXT, CONTENT = "work_context", "content"
READER = "<read the journal>"
AGAIN = f"read the section again with {READER} and send it as overview with <write to the journal>"


@dataclass(frozen=True, slots=True)
class Seen:
    """The version and text of a section that a session read; both "" where there was none."""

    version: str
    text: str


# The sections that a session has read, by path.
Reads = MutableMapping[str, Seen]


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to write about a section."""

    entry: str
    overview: str | None = None
    summary: str = ""
    work_context: str = ""


@dataclass(slots=True)
class _Node:
    """A section or a folder in the tree of sections."""

    count: int = 0
    last: datetime | None = None
    below: dict[str, _Node] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of entries here and below."""
        total = self.count
        for child in self.below.values():
            total += child.total
        return total

    @property
    def latest(self) -> datetime | None:
        """The newest entry here or below."""
        latest = self.last
        for child in self.below.values():
            moment = child.latest
            if latest is None or (moment is not None and moment > latest):
                latest = moment
        return latest


@dataclass(frozen=True, slots=True)
class Journal:
    """What can be asked of a journal; `short` abbreviates a commit, `exchange` meets a remote."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int
    context_weight: float
    short: Callable[[str], str]
    exchange: Callable[[str, Mapping[str, str]], Exchanged]
    default_threshold: float = 0.5
    max_results: int = 20

    def read(
        self, entry_id: str, lines: str | None = None, reads: Reads | None = None
    ) -> JournalText:
        """Return one entry, or the overview of a section and note that this session has read it."""
        section, mark, prefix = entry_id.partition(MARK)
        if mark:
            return self._entry(section, prefix, lines)
        path = relative_name(section)
        source = self._current(path)
        if source is None:
            return self._no_overview(path, lines, reads)
        entries = self._history(path)
        if reads is not None:
            reads[path] = Seen(source.version, source.text)
        content, shown, omitted = page.excerpt(source.text, 1, page.parse_lines(lines), self.budget)
        return JournalText(
            id=source.path.removesuffix(SUFFIX),
            type="overview",
            content=content,
            lines=shown,
            version=entries[0].version if entries else "",
            timestamp=page.moment(source.modified_at),
            entry_count=len(entries),
            exists=True,
            omitted=omitted,
            notes=list(source.problems),
        )

    def write(self, section: str, new: NewEntry, reads: Reads) -> JournalWritten:
        """ChangeSet an entry, and with it what is understood now.

        A session writes only where it has read.
        """
        path = _writable(section, new, reads)
        message = compose(new.entry, new.summary, new.work_context)
        seen = reads[path]
        before = self._current(path)
        if new.overview is None:
            written, text = self._append(path, message, before)
        else:
            text = new.overview
            written = self._replace(path, text, seen, message)
        # Whoever only adds an entry has not seen what others made of the overview meanwhile.
        if new.overview is not None or text == seen.text:
            reads[path] = Seen(written.version, text)
        name, _, commit = written.path.removesuffix(SUFFIX).partition(MARK)
        version = ""
        warnings = page.removed(written)
        if before is not None:
            version = before.version
            warnings += before.problems
        return JournalWritten(
            id=f"{name}{MARK}{self.short(commit)}",
            path=self.corpus.store.locate(written.path),
            commit=commit,
            entry_count=len(self._history(path)),
            overview_changed=new.overview is not None,
            rebased=version != seen.version,
            warnings=warnings,
        )

    def contents(self, section: str = "", depth: int = 1) -> Contents:
        """Return the tree of sections.

        The whole journal shows its sections at depth 1, a section shows its at 2.
        """
        if not 1 <= depth <= DEEPEST:
            raise ValidationError(f"depth is {depth}", f"Give 1 to {DEEPEST}")
        name = section.strip("/").removesuffix(SUFFIX)
        node = _node(_tree(self.corpus.versioned.commits()), name)
        if not name:
            depth += 1
        contents = _contents(name, node, depth)
        contents["notes"] = []
        if "subsections" in contents:
            below = contents["subsections"]
            fitting = page.within(below, self.budget)
            contents["subsections"] = fitting
            unfit = len(below) - len(fitting)
            if unfit:
                note = f"{unfit} more do not fit; ask for less depth or for one of them"
                contents["notes"].append(note)
        return contents

    def entries(self, section: str, start: int = 0, length: int = 10) -> ListedEntries:
        """List the entries of a section, newest first."""
        if start < 0 or not 1 <= length <= MOST_LISTED:
            raise ValidationError(
                f"start is {start}, length {length}", f"Ask for 1 to {MOST_LISTED} from 0 on"
            )
        path = relative_name(section)
        every = self._history(path)
        if not every:
            self.corpus.store.read(path)
        chosen = [self._listed(step) for step in every[start : start + length]]
        fitting = page.within(chosen, self.budget)
        notes = []
        if len(fitting) < len(chosen):
            notes.append(f"{len(chosen) - len(fitting)} did not fit; ask for fewer")
        return ListedEntries(result=fitting, total=len(every), notes=notes)

    def search(
        self, work_context: str, content: str, threshold: float | None = None
    ) -> JournalHits:
        """Find entries by the work they came from and by what they say.

        Old ones must say more to be found.
        """
        if threshold is None:
            threshold = self.default_threshold
        if not 0 <= threshold <= 1:
            raise ValidationError(f"salience_threshold is {threshold}", "Give a number from 0 to 1")
        probes = self._probes(work_context, content)
        total = sum(probe.weight for probe in probes)
        shares = {probe.name: probe.weight / total for probe in probes}
        now = self.clock()
        results, omitted, notes = page.search(
            self.corpus,
            Query(probes=probes, limit=self.max_results, min_score=threshold),
            lambda hit: self._hit(hit, shares, now),
            now,
            self.budget,
        )
        return JournalHits(result=results, omitted=omitted, notes=notes)

    def sync(self, remote: str = "", resolved: Mapping[str, str] | None = None) -> Exchanged:
        """Fetch from a remote that a person configured, merge, and push; then index what came."""
        texts = {}
        for name, text in (resolved or {}).items():
            texts[relative_name(name)] = self.corpus.redactor.redact(text).text
        answer = self.exchange(remote, texts)
        self.corpus.sync()
        self.corpus.embed()
        return answer

    def _probes(self, work_context: str, content: str) -> tuple[Probe, ...]:
        """Return the two dimensions of a search, without one that is empty or weighs nothing."""
        weights = {CONTEXT: self.context_weight, CONTENT: 1 - self.context_weight}
        texts = {CONTEXT: work_context, CONTENT: content}
        probes = []
        for name, text in texts.items():
            if weights[name] and text.strip():
                probes.append(Probe(text, name, weights[name]))
        return tuple(probes)

    def _no_overview(self, path: str, lines: str | None, reads: Reads | None) -> JournalText:
        """Return the text of a section that is not there yet, and note that this was read."""
        if self.corpus.redactor.redact(path).findings:
            raise ValidationError("the name of the section holds a secret", "Choose another name")
        if reads is not None:
            reads[path] = Seen("", "")
        content, shown, omitted = page.excerpt("", 1, page.parse_lines(lines), self.budget)
        return JournalText(
            id=path.removesuffix(SUFFIX),
            type="overview",
            content=content,
            lines=shown,
            version="",
            timestamp=None,
            entry_count=0,
            exists=False,
            omitted=omitted,
            notes=["there is no such section yet; <write to the journal> makes it"],
        )

    def _entry(self, section: str, prefix: str, lines: str | None) -> JournalText:
        """Return one entry by the beginning of its commit."""
        name = relative_name(section).removesuffix(SUFFIX)
        source = self.corpus.store.read(self._entry_path(name, prefix))
        content, shown, omitted = page.excerpt(source.text, 1, page.parse_lines(lines), self.budget)
        return JournalText(
            id=f"{name}{MARK}{self.short(source.version)}",
            type="entry",
            content=content,
            lines=shown,
            version=source.version,
            timestamp=page.moment(source.modified_at),
            entry_count=1,
            exists=True,
            omitted=omitted,
            notes=[],
        )

    def _entry_path(self, name: str, prefix: str) -> str:
        """Return the path of the one entry of a section whose commit begins like this."""
        if not git.is_hash(prefix):
            raise ValidationError(
                f"{prefix[:80]!r} is not the name of a commit", "Give at least four of its digits"
            )
        paths = sorted(self.corpus.store.scan([f"{name}{MARK}{prefix}"]).stamps)
        if not paths:
            hint = "<list journal entries> lists those it has"
            raise NotFoundError(f"{name} has no entry {prefix}", hint)
        if len(paths) > 1:
            candidates = ", ".join(path.removesuffix(SUFFIX) for path in paths[:MOST_CANDIDATES])
            raise ValidationError(
                f"{prefix} is the beginning of {len(paths)} entries", f"Give one of {candidates}"
            )
        return paths[0]

    def _append(self, path: str, message: str, current: Source | None) -> tuple[Written, str]:
        """ChangeSet an entry on top of whatever the section says by now.

        Entries do not contradict each other.
        """
        for _ in range(ATTEMPTS):
            text = ""
            expect: str | Expect = Expect.ABSENT
            if current is not None:
                text = current.text
                expect = current.version
            with suppress(ConflictError):
                written = self.corpus.commit([Put(path, text, expect, message)], "append")[0]
                return written, text
            current = self._current(path)
        raise UnavailableError("others change this section all the time", "Try again")

    def _replace(self, path: str, overview: str, seen: Seen, message: str) -> Written:
        """ChangeSet an entry with a new overview in place of the one that was read."""
        put = Put(path, overview, seen.version or Expect.ABSENT, message)
        try:
            return self.corpus.commit([put], "append")[0]
        except ConflictError as error:
            error.again = AGAIN
            error.reader = READER
            propose(error, self._base(seen.version))
            raise

    def _base(self, version: str) -> str:
        """Return the text of a version, or nothing where there was none or it is lost."""
        with suppress(NotFoundError):
            if version:
                return self.corpus.versioned.recover(version)
        return ""

    def _current(self, path: str) -> Source | None:
        with suppress(NotFoundError):
            return self.corpus.store.read(path)
        return None

    def _history(self, path: str) -> list[Revision]:
        return self.corpus.versioned.history(path)

    def _listed(self, step: Revision) -> ListedEntry:
        section = step.path.removesuffix(SUFFIX)
        name = f"{section}{MARK}{step.version}"
        document = self.corpus.get(f"{self.corpus.lane.name}:{name}")
        summary = None
        if document is not None:
            summary = document.extra.get("summary")
        if summary is None:
            summary = summary_of(self.corpus.store.read(f"{name}{SUFFIX}").text)
        return ListedEntry(
            id=f"{section}{MARK}{self.short(step.version)}",
            timestamp=page.iso(step.at),
            summary=str(summary),
        )

    def _hit(self, hit: Hit, shares: Mapping[str, float], now: datetime) -> JournalHit:
        name, _, commit = hit.document.path.removesuffix(SUFFIX).partition(MARK)
        return JournalHit(
            id=f"{name}{MARK}{self.short(commit)}",
            content="",
            work_context_score=_score(hit, CONTEXT, shares),
            content_score=_score(hit, CONTENT, shares),
            combined_score=round(hit.score, 3),
            timestamp=page.moment(hit.document.created_at),
            age=page.age(hit.document.created_at, now),
        )


def _score(hit: Hit, dimension: str, shares: Mapping[str, float]) -> float:
    """Return the score of one dimension of a search, from 0 to 1."""
    if dimension not in shares:
        return 0.0
    total = sum(signal.share for signal in hit.signals if signal.probe == dimension)
    return round(min(1.0, total / shares[dimension]), 3)


def _writable(section: str, new: NewEntry, reads: Reads) -> str:
    """Return the path of a section to write to; refuse one that was not read."""
    if MARK in section:
        raise ValidationError(
            f"{section[:80]!r} names an entry", "Give the section alone, without #"
        )
    path = relative_name(section)
    if not new.entry.strip():
        raise ValidationError("the entry is empty", "Say what changed or was learned")
    if path not in reads:
        name = path.removesuffix(SUFFIX)
        raise ValidationError(
            f"{name} was not read in this session", f'Call {READER} with id "{name}" first'
        )
    return path


def _tree(commits: Iterable[ChangeSet]) -> _Node:
    """Count entries by section; a section that its newest entry removed is left out."""
    root = _Node()
    removed: set[str] = set()
    for commit in commits:
        for step in commit.steps:
            node = root
            for part in step.path.removesuffix(SUFFIX).split("/"):
                node = node.below.setdefault(part, _Node())
            if not step.after and not node.count:
                removed.add(step.path)
            if step.path not in removed:
                node.count += 1
                node.last = node.last or step.at
    return root


def _node(root: _Node, name: str) -> _Node:
    """Return the node of a section or a folder, the root for no name."""
    node = root
    for part in filter(None, name.split("/")):
        if part not in node.below or not node.below[part].total:
            raise NotFoundError(
                f"there is no section {name[:200]!r}",
                "<contents of the journal> without an id lists them all",
            )
        node = node.below[part]
    return node


def _contents(name: str, node: _Node, depth: int) -> Contents:
    """Return a node and what lies below it, as deep as asked for."""
    kind = "journal"
    if node.count:
        kind = "section"
    elif name:
        kind = "folder"
    contents: dict[str, Any] = {
        "id": name,
        "type": kind,
        "last_updated": page.moment(node.last or node.latest),
        "entry_count": node.count or node.total,
    }
    if depth > 1:
        below = []
        for part, child in sorted(node.below.items()):
            if child.total:
                below.append(_contents(f"{name}/{part}".lstrip("/"), child, depth - 1))
        contents["subsections"] = below
    # Only the outermost has notes, and whoever asked for it adds them.
    return cast("Contents", contents)
