"""The journal: an overview of what is understood now by section, and the entries behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ragdocs.errors import ConflictError, NotFoundError, UnavailableError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.system import git
from ragdocs.system.files import relative_name
from ragdocs.text.formats.journal import MARK, SUFFIX, compose, summary_of
from ragdocs.text.merge import propose
from ragdocs.types import (
    ChangeSet,
    Exchanged,
    Expect,
    Findings,
    Hit,
    Probe,
    Put,
    Query,
    Revision,
    Source,
    Written,
)

DEEPEST = 20
MOST_CANDIDATES = 20
MOST_LISTED = 100
# Others may write between a look and a write; so often in a row nobody does.
ATTEMPTS = 8
CONTEXT = "work_context"
CONTENT = "content"
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


@dataclass(frozen=True, slots=True)
class JournalReading:
    """What a section says now, or one entry; `version` is the commit that it was read at."""

    id: str
    kind: Literal["overview", "entry"]
    text: str
    version: str
    at: datetime | None
    entry_count: int
    exists: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """An entry that was committed."""

    id: str
    path: str
    commit: str
    entry_count: int
    overview_changed: bool
    # Whether others had written since the section was read.
    rebased: bool
    written: Written
    # What is wrong with the section that the entry was added to.
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SectionTree:
    """A section, a folder of sections or the whole journal, and what lies below it."""

    id: str
    kind: Literal["journal", "folder", "section"]
    last_updated: datetime | None
    entry_count: int
    # Nothing where no more levels were asked for.
    below: tuple[SectionTree, ...] | None = None


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One entry in a list."""

    id: str
    at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class EntryList:
    """Some entries of a section, newest first, and how many it has."""

    entries: tuple[EntryLine, ...]
    total: int


@dataclass(frozen=True, slots=True)
class EntryMatch:
    """The id of an entry that a search found, and the scores of the two dimensions, 0 to 1."""

    id: str
    context_score: float
    content_score: float


@dataclass(frozen=True, slots=True)
class JournalFindings:
    """The entries that a search found; `matches` are by the id of the passage."""

    findings: Findings
    matches: Mapping[str, EntryMatch]


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
    context_weight: float
    short: Callable[[str], str]
    exchange: Callable[[str, Mapping[str, str]], Exchanged]
    default_threshold: float = 0.5
    max_results: int = 20

    def read(self, entry_id: str, reads: Reads | None = None) -> JournalReading:
        """Return one entry, or the overview of a section and note that this session has read it."""
        section, mark, prefix = entry_id.partition(MARK)
        if mark:
            return self._entry(section, prefix)
        path = relative_name(section)
        source = self._current(path)
        if source is None:
            return self._no_overview(path, reads)
        entries = self._history(path)
        if reads is not None:
            reads[path] = Seen(source.version, source.text)
        version = ""
        if entries:
            version = entries[0].version
        return JournalReading(
            id=source.path.removesuffix(SUFFIX),
            kind="overview",
            text=source.text,
            version=version,
            at=source.modified_at,
            entry_count=len(entries),
            notes=source.problems,
        )

    def write(self, section: str, new: NewEntry, reads: Reads) -> WrittenEntry:
        """Commit an entry, and with it what is understood now.

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
        problems: tuple[str, ...] = ()
        if before is not None:
            version = before.version
            problems = before.problems
        return WrittenEntry(
            id=f"{name}{MARK}{self.short(commit)}",
            path=self.corpus.store.locate(written.path),
            commit=commit,
            entry_count=len(self._history(path)),
            overview_changed=new.overview is not None,
            rebased=version != seen.version,
            written=written,
            problems=problems,
        )

    def contents(self, section: str = "", depth: int = 1) -> SectionTree:
        """Return the tree of sections.

        The whole journal shows its sections at depth 1, a section shows its at 2.
        """
        if not 1 <= depth <= DEEPEST:
            raise ValidationError(f"depth is {depth}", f"Give 1 to {DEEPEST}")
        name = section.strip("/").removesuffix(SUFFIX)
        node = _node(_tree(self.corpus.versioned.commits()), name)
        if not name:
            depth += 1
        return _section_tree(name, node, depth)

    def entries(self, section: str, start: int = 0, length: int = 10) -> EntryList:
        """List the entries of a section, newest first."""
        if start < 0 or not 1 <= length <= MOST_LISTED:
            raise ValidationError(
                f"start is {start}, length {length}", f"Ask for 1 to {MOST_LISTED} from 0 on"
            )
        path = relative_name(section)
        steps = self._history(path)
        if not steps:
            self.corpus.store.read(path)
        chosen = [self._listed(step) for step in steps[start : start + length]]
        return EntryList(tuple(chosen), len(steps))

    def search(
        self, work_context: str, content: str, threshold: float | None = None
    ) -> JournalFindings:
        """Find entries by the work they came from and by what they say.

        Old ones must say more to be found.
        """
        if threshold is None:
            threshold = self.default_threshold
        if not 0 <= threshold <= 1:
            raise ValidationError(f"salience_threshold is {threshold}", "Give a number from 0 to 1")
        probes = self._probes(work_context, content)
        query = Query(probes=probes, limit=self.max_results, min_score=threshold)
        findings = self.corpus.search(query, self.clock())
        total = sum(probe.weight for probe in probes)
        shares = {probe.name: probe.weight / total for probe in probes}
        matches = {hit.chunk.id: self._match(hit, shares) for hit in findings.hits}
        return JournalFindings(findings, matches)

    def sync(self, remote: str = "", resolved: Mapping[str, str] | None = None) -> Exchanged:
        """Fetch from a remote that a person configured, merge, and push; then index what came."""
        texts = {}
        for name, text in (resolved or {}).items():
            texts[relative_name(name)] = self.corpus.redactor.redact(text).text
        exchanged = self.exchange(remote, texts)
        self.corpus.sync()
        self.corpus.embed()
        return exchanged

    def _probes(self, work_context: str, content: str) -> tuple[Probe, ...]:
        """Return the two dimensions of a search, without one that is empty or weighs nothing."""
        weights = {CONTEXT: self.context_weight, CONTENT: 1 - self.context_weight}
        texts = {CONTEXT: work_context, CONTENT: content}
        probes = []
        for name, text in texts.items():
            if weights[name] and text.strip():
                probes.append(Probe(text, name, weights[name]))
        return tuple(probes)

    def _no_overview(self, path: str, reads: Reads | None) -> JournalReading:
        """Return the text of a section that is not there yet, and note that this was read."""
        if self.corpus.redactor.redact(path).findings:
            raise ValidationError("the name of the section holds a secret", "Choose another name")
        if reads is not None:
            reads[path] = Seen("", "")
        return JournalReading(
            id=path.removesuffix(SUFFIX),
            kind="overview",
            text="",
            version="",
            at=None,
            entry_count=0,
            exists=False,
            notes=("there is no such section yet; <write to the journal> makes it",),
        )

    def _entry(self, section: str, prefix: str) -> JournalReading:
        """Return one entry by the beginning of its commit."""
        name = relative_name(section).removesuffix(SUFFIX)
        source = self.corpus.store.read(self._entry_path(name, prefix))
        return JournalReading(
            id=f"{name}{MARK}{self.short(source.version)}",
            kind="entry",
            text=source.text,
            version=source.version,
            at=source.modified_at,
            entry_count=1,
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
        """Commit an entry on top of whatever the section says by now.

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
        raise UnavailableError("others changed this section at every try", "Try again")

    def _replace(self, path: str, overview: str, seen: Seen, message: str) -> Written:
        """Commit an entry with a new overview in place of the one that was read."""
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

    def _listed(self, step: Revision) -> EntryLine:
        section = step.path.removesuffix(SUFFIX)
        name = f"{section}{MARK}{step.version}"
        document = self.corpus.get(f"{self.corpus.lane.name}:{name}")
        summary = None
        if document is not None:
            summary = document.extra.get("summary")
        if summary is None:
            summary = summary_of(self.corpus.store.read(f"{name}{SUFFIX}").text)
        return EntryLine(
            id=f"{section}{MARK}{self.short(step.version)}",
            at=step.at,
            summary=str(summary),
        )

    def _match(self, hit: Hit, shares: Mapping[str, float]) -> EntryMatch:
        name, _, commit = hit.document.path.removesuffix(SUFFIX).partition(MARK)
        return EntryMatch(
            id=f"{name}{MARK}{self.short(commit)}",
            context_score=_score(hit, CONTEXT, shares),
            content_score=_score(hit, CONTENT, shares),
        )


def _score(hit: Hit, dimension: str, shares: Mapping[str, float]) -> float:
    """Return the score of one dimension of a search, from 0 to 1."""
    if dimension not in shares:
        return 0.0
    total = sum(signal.share for signal in hit.signals if signal.probe == dimension)
    return min(1.0, total / shares[dimension])


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


def _section_tree(name: str, node: _Node, depth: int) -> SectionTree:
    """Return a node and what lies below it, as deep as asked for."""
    kind: Literal["journal", "folder", "section"] = "journal"
    if node.count:
        kind = "section"
    elif name:
        kind = "folder"
    below = None
    if depth > 1:
        below = tuple(_subsections(name, node, depth - 1))
    return SectionTree(
        id=name,
        kind=kind,
        last_updated=node.last or node.latest,
        entry_count=node.count or node.total,
        below=below,
    )


def _subsections(name: str, node: _Node, depth: int) -> Iterator[SectionTree]:
    """Yield what lies directly below a node, in alphabetical order."""
    for part, child in sorted(node.below.items()):
        if child.total:
            yield _section_tree(f"{name}/{part}".lstrip("/"), child, depth)
