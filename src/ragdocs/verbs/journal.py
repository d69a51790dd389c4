"""The journal: what is understood now, by section, and how it came to that, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from ragdocs.errors import ConflictError, NotFoundError, UnavailableError, ValidationError
from ragdocs.protocols import Versioned
from ragdocs.search.corpus import Corpus
from ragdocs.system import git
from ragdocs.system.files import relative_name
from ragdocs.text.formats.journal import MARK, SUFFIX, compose, summary_of
from ragdocs.text.merge import merge
from ragdocs.types import ChangeSet, Expect, Hit, Probe, Put, Query, Revision, Source, Written
from ragdocs.verbs import page as answers
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
AGAIN = "read the section again with journal_read and send it as overview with journal_write"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one session was last shown of a section; "" where it was shown that there is none."""

    version: str
    text: str


# What a session has read, by path.
Reads = MutableMapping[str, Seen]


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What is to be written about a section."""

    entry: str
    overview: str | None = None
    summary: str = ""
    work_context: str = ""


@dataclass(slots=True)
class _Node:
    """A place in the tree of sections."""

    count: int = 0
    last: datetime | None = None
    below: dict[str, _Node] = field(default_factory=dict)

    @property
    def all(self) -> int:
        """All entries here and below."""
        return self.count + sum(child.all for child in self.below.values())

    @property
    def latest(self) -> datetime | None:
        """The newest entry here or below."""
        every = (self.last, *(child.latest for child in self.below.values()))
        return max((moment for moment in every if moment), default=None)


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
        """Return what a section says now and note that this session has seen it.

        Or return one entry.
        """
        section, mark, prefix = entry_id.partition(MARK)
        if mark:
            return self._entry(section, prefix, lines)
        path = relative_name(section)
        source = self._current(path)
        if source is None and self.corpus.redactor.redact(path).findings:
            raise ValidationError("the name of the section holds a secret", "Choose another name")
        entries = self._history(path) if source else []
        if reads is not None:
            reads[path] = Seen(source.version, source.text) if source else Seen("", "")
        span = answers.parse_lines(lines)
        content, shown, omitted = answers.excerpt(
            source.text if source else "", 1, span, self.budget
        )
        notes = (
            list(source.problems)
            if source
            else ["there is no such section yet; journal_write makes it"]
        )
        return JournalText(
            id=(source.path if source else path).removesuffix(SUFFIX),
            type="overview",
            content=content,
            lines=shown,
            version=entries[0].version if entries else "",
            timestamp=answers.moment(source.modified_at) if source else None,
            entry_count=len(entries),
            exists=source is not None,
            omitted=omitted,
            notes=notes,
        )

    def write(self, section: str, new: NewEntry, reads: Reads) -> JournalWritten:
        """Commit an entry, and with it what is understood now.

        A session writes only where it has read.
        """
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
                f"{name} was not read in this session", f'Call journal_read with id "{name}" first'
            )
        message = compose(new.entry, new.summary, new.work_context)
        seen, before = reads[path], self._current(path)
        if new.overview is None:
            written, shown = self._append(path, message, before)
            # Whoever only adds an entry has not seen what others made of the overview meanwhile.
            known = shown == seen.text
        else:
            put = Put(path, new.overview, seen.version or Expect.ABSENT, message)
            with _proposing(self.corpus.versioned, seen.version):
                written, shown, known = self.corpus.commit([put], "append")[0], new.overview, True
        if known:
            reads[path] = Seen(written.version, shown)
        name, _, commit = written.path.removesuffix(SUFFIX).partition(MARK)
        return JournalWritten(
            id=f"{name}{MARK}{self.short(commit)}",
            path=self.corpus.store.locate(written.path),
            commit=commit,
            entry_count=len(self._history(path)),
            overview_changed=new.overview is not None,
            rebased=(before.version if before else "") != seen.version,
            warnings=answers.removed(written) + (list(before.problems) if before else []),
        )

    def contents(self, section: str = "", depth: int = 1) -> Contents:
        """Return the tree of sections.

        The whole journal shows its sections at depth 1, a section shows its at 2.
        """
        if not 1 <= depth <= DEEPEST:
            raise ValidationError(f"depth is {depth}", f"Give 1 to {DEEPEST}")
        root = _tree(self.corpus.versioned.commits())
        name = section.strip("/").removesuffix(SUFFIX)
        node = root
        for part in filter(None, name.split("/")):
            if part not in node.below or not node.below[part].all:
                raise NotFoundError(
                    f"there is no section {name[:200]!r}",
                    "journal_toc without an id lists them all",
                )
            node = node.below[part]
        shown = _shown(name, node, depth + (not name))
        below = shown.get("subsections", [])
        kept = answers.within(below, self.budget)
        notes = [f"{len(below) - len(kept)} more do not fit; ask for less depth or for one of them"]
        shown |= {"subsections": kept} if "subsections" in shown else {}
        return cast("Contents", {**shown, "notes": notes if len(kept) < len(below) else []})

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
        kept = answers.within(chosen, self.budget)
        notes = (
            [f"{len(chosen) - len(kept)} did not fit; ask for fewer"]
            if len(kept) < len(chosen)
            else []
        )
        return ListedEntries(result=kept, total=len(every), notes=notes)

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
        weights = {CONTEXT: self.context_weight, CONTENT: 1 - self.context_weight}
        texts = {CONTEXT: work_context, CONTENT: content}
        probes = tuple(
            Probe(texts[name], name, weights[name])
            for name in texts
            if weights[name] and texts[name].strip()
        )
        now = self.clock()
        findings = self.corpus.search(
            Query(probes=probes, limit=self.max_results, min_score=threshold), now
        )
        whole = sum(probe.weight for probe in probes)
        shares = {probe.name: probe.weight / whole for probe in probes}
        shaped, omitted, notes = answers.fit(
            findings, lambda hit: self._hit(hit, shares, now), self.budget
        )
        return JournalHits(result=shaped, omitted=omitted, notes=notes)

    def sync(self, remote: str = "", resolved: Mapping[str, str] | None = None) -> Exchanged:
        """Fetch from a remote that a person configured, merge, and push; then index what came."""
        redact = self.corpus.redactor.redact
        chosen = {relative_name(name): redact(text).text for name, text in (resolved or {}).items()}
        answer = self.exchange(remote, chosen)
        self.corpus.sync()
        self.corpus.embed()
        return answer

    def _append(self, path: str, message: str, current: Source | None) -> tuple[Written, str]:
        """Commit an entry on top of whatever the section says by now.

        Entries do not contradict each other.
        """
        for _ in range(ATTEMPTS):
            text, expect = (current.text, current.version) if current else ("", Expect.ABSENT)
            with suppress(ConflictError):
                return self.corpus.commit([Put(path, text, expect, message)], "append")[0], text
            current = self._current(path)
        raise UnavailableError("others change this section all the time", "Try again")

    def _entry(self, section: str, prefix: str, lines: str | None) -> JournalText:
        path = relative_name(section)
        name = path.removesuffix(SUFFIX)
        if not git.is_hash(prefix):
            raise ValidationError(
                f"{prefix[:80]!r} is not the name of a commit", "Give at least four of its digits"
            )
        found = sorted(self.corpus.store.scan([f"{name}{MARK}{prefix}"]).stamps)
        if not found:
            raise NotFoundError(
                f"{name} has no entry {prefix}", "journal_list_entries lists those it has"
            )
        if len(found) > 1:
            shown = ", ".join(one.removesuffix(SUFFIX) for one in found[:MOST_CANDIDATES])
            raise ValidationError(
                f"{prefix} is the beginning of {len(found)} entries", f"Give one of {shown}"
            )
        source = self.corpus.store.read(found[0])
        content, shown, omitted = answers.excerpt(
            source.text, 1, answers.parse_lines(lines), self.budget
        )
        return JournalText(
            id=f"{name}{MARK}{self.short(source.version)}",
            type="entry",
            content=content,
            lines=shown,
            version=source.version,
            timestamp=answers.moment(source.modified_at),
            entry_count=1,
            exists=True,
            omitted=omitted,
            notes=[],
        )

    def _current(self, path: str) -> Source | None:
        with suppress(NotFoundError):
            return self.corpus.store.read(path)
        return None

    def _history(self, path: str) -> list[Revision]:
        return self.corpus.versioned.history(path)

    def _listed(self, step: Revision) -> ListedEntry:
        name = f"{step.path.removesuffix(SUFFIX)}{MARK}{step.version}"
        card = self.corpus.index.document(f"{self.corpus.lane.name}:{name}")
        summary = card.extra.get("summary") if card else None
        if summary is None:
            summary = summary_of(self.corpus.store.read(f"{name}{SUFFIX}").text)
        short = f"{step.path.removesuffix(SUFFIX)}{MARK}{self.short(step.version)}"
        return ListedEntry(id=short, timestamp=answers.iso(step.at), summary=str(summary))

    def _hit(self, hit: Hit, shares: Mapping[str, float], now: datetime) -> JournalHit:
        name, _, commit = hit.document.path.removesuffix(SUFFIX).partition(MARK)
        said = {
            probe: sum(signal.share for signal in hit.signals if signal.probe == probe) / share
            for probe, share in shares.items()
        }
        return JournalHit(
            id=f"{name}{MARK}{self.short(commit)}",
            content="",
            work_context_score=round(min(1.0, said.get(CONTEXT, 0.0)), 3),
            content_score=round(min(1.0, said.get(CONTENT, 0.0)), 3),
            combined_score=round(hit.score, 3),
            timestamp=answers.moment(hit.document.created_at),
            age=answers.age(hit.document.created_at, now),
        )


@contextmanager
def _proposing(store: Versioned, version: str) -> Iterator[None]:
    """Let a conflict tell how both sides go together, and what to do then."""
    try:
        yield
    except ConflictError as error:
        error.again, error.reader = AGAIN, "journal_read"
        with suppress(NotFoundError):
            error.base = store.recover(version) if version else ""
        merged = merge(error.base, error.theirs, error.yours)
        error.merged, error.overlaps = merged.text, merged.overlaps
        raise


def _tree(commits: Iterable[ChangeSet]) -> _Node:
    """Count entries by section; what the newest entry of a section removed is left out."""
    root, gone = _Node(), set[str]()
    for commit in commits:
        for step in commit.steps:
            node = root
            for part in step.path.removesuffix(SUFFIX).split("/"):
                node = node.below.setdefault(part, _Node())
            if not step.after and not node.count:
                gone.add(step.path)
            if step.path not in gone:
                node.count += 1
                node.last = node.last or step.at
    return root


def _shown(name: str, node: _Node, depth: int) -> dict[str, Any]:
    children = (
        (f"{name}/{part}".lstrip("/"), child)
        for part, child in sorted(node.below.items())
        if child.all
    )
    below = [_shown(place, child, depth - 1) for place, child in children] if depth > 1 else []
    answer = {
        "id": name,
        "type": "section" if node.count else "folder" if name else "journal",
        "last_updated": answers.moment(node.last or node.latest),
        "entry_count": node.count or node.all,
    }
    return {**answer, "subsections": below} if depth > 1 else answer
