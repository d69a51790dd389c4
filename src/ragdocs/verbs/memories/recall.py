"""Remembering without thinking of a name, and recalling by time, tag or words.

Memories are recalled from this project or from all of them.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from ragdocs.errors import AlreadyExistsError, RagdocsError, UnavailableError, ValidationError
from ragdocs.project import registry
from ragdocs.search.corpus import Corpus
from ragdocs.search.floor import FLOOR, NOTHING_RELEVANT, WEAK_MATCHES
from ragdocs.search.newest import age_order
from ragdocs.search.succession import current
from ragdocs.system.names import own_id
from ragdocs.text import times
from ragdocs.text.checks import check_content, check_tags
from ragdocs.text.times import SKEW
from ragdocs.types import (
    Chunk,
    Document,
    Expect,
    Filter,
    Findings,
    Hit,
    Probe,
    Put,
    Query,
    Written,
)
from ragdocs.verbs import filters, page
from ragdocs.verbs.memories.succession import Succession

SCOPES = ("project", "global")
# Four hexadecimal digits tell memories of one second apart; that many collisions in a row mean
# something else.
TRIES = 20
RECENT_DAYS: tuple[int, ...] = (1, 7, 30)
# Memories whose dates are all compared: asking the index again costs more.
FEW = 1000


@dataclass(frozen=True, slots=True)
class Bank:
    """The memories of one project.

    Worktrees of a repository share the `key`; `home` is the bank of the project itself.
    """

    name: str
    key: str
    corpus: Corpus
    home: bool = False


@dataclass(frozen=True, slots=True)
class BankHit:
    """A hit, and the bank it comes from."""

    bank: Bank
    hit: Hit

    @property
    def path(self) -> str:
        """The path of the memory, below the project's folder if it is this project's."""
        return _path(self.bank.corpus, self.hit.document.path, home=self.bank.home)

    @property
    def project(self) -> str:
        """The project of the memory: in the user's own bank each names its own."""
        if self.bank.corpus.lane.base:
            return self.bank.name
        from ragdocs.text import frontmatter

        named = self.hit.document.extra.get("project") or ""
        return frontmatter.as_text(named) or self.bank.name


# What one bank found.
Answer = tuple[Bank, Findings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """Memories, newest first or best first, and how many more matched.

    `is_search` says whether a query found them, `everywhere` whether all projects were asked.
    """

    memories: Sequence[BankHit]
    omitted: int
    notes: Sequence[str]
    is_search: bool
    everywhere: bool

    def texts(self, length: int) -> list[str]:
        """Return of each memory the first passages that are at least so long together, or all."""
        ids: dict[Corpus, list[str]] = defaultdict(list)
        for memory in self.memories:
            ids[memory.bank.corpus].append(memory.hit.document.id)
        beginnings = {}
        for corpus, own in ids.items():
            beginnings[corpus] = corpus.passages(own, length)
        texts = []
        for memory in self.memories:
            passages = beginnings[memory.bank.corpus][memory.hit.document.id]
            texts.append(_joined(passages) or memory.hit.chunk.text)
        return texts


@dataclass(frozen=True, slots=True)
class RememberedMemory:
    """A memory that was written under the moment it was made."""

    id: str
    path: str
    written: Written
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class Recall:
    """What can be asked of memories by when and where they were written."""

    root: Path
    own: Callable[[], Corpus]
    # The banks of other projects, the last used first, and notes about them.
    others: Callable[[], tuple[list[Bank], list[str]]]
    clock: Callable[[], datetime]
    # What others call this project, where that is not the name of its folder.
    name: str = ""

    def remember(self, content: str, tags: Sequence[str] = ()) -> RememberedMemory:
        """Write a memory under the present moment, with the state of the working tree."""
        corpus = self.own()
        check_content(content)
        new_id, written = self._write(corpus, content, check_tags(tags))
        warnings = []
        try:
            # Memories of the user's own bank belong to no project's folder.
            if corpus.lane.base:
                registry.register(self.root, self.clock().timestamp())
        except RagdocsError as error:
            warnings.append(
                f"the memory is written, but other projects cannot find this one: {error}"
            )
        path = _path(corpus, written.path, home=True)
        return RememberedMemory(new_id, path, written, warnings)

    def recall(
        self,
        query: str = "",
        *,
        tags: Sequence[str] = (),
        since: str = "",
        limit: int = 10,
        scope: str = "project",
        superseded: bool = False,
    ) -> Recollection:
        """Return memories: the newest, or the best for a query; of this project, or of all.

        Those that others supersede are left out unless they are asked for.
        """
        page.check_limit(limit)
        if scope not in SCOPES:
            raise ValidationError(f"{scope[:40]!r} is not a scope", f"Use {' or '.join(SCOPES)}")
        now = self.clock()
        where = _filter(tags, since, now)
        everywhere = scope == "global"
        banks, bank_notes = self._banks(everywhere=everywhere)
        answers: list[Answer] = []
        for bank in banks:
            search = _Search(query, where, limit, now, superseded=superseded)
            answers.append((bank, search.of(bank.corpus)))
        is_search = bool(query.strip())
        bank_hits = _merge(answers, now, by_score=is_search)
        chosen = bank_hits[:limit]
        return Recollection(
            memories=chosen,
            omitted=max(len(bank_hits), _total(answers)) - len(chosen),
            notes=(*_unknown_tags(banks, tags), *_index_notes(answers), *bank_notes),
            is_search=is_search,
            everywhere=everywhere,
        )

    def _write(
        self,
        corpus: Corpus,
        content: str,
        tags: Sequence[str],
    ) -> tuple[str, Written]:
        """Write a memory under a new id and return both."""
        from ragdocs.system import git
        from ragdocs.text import frontmatter
        from ragdocs.verbs.memories import record

        state = git.context(self.root)
        project = ""
        if not corpus.lane.base:
            project = registry.main_worktree(self.root).name
        # A block that was copied from another memory must not keep its id and time.
        content = f"{content.rstrip()}{frontmatter.newline(content)}"
        for attempt in range(TRIES):
            now = self.clock()
            new_id = record.random_id()
            fields = record.moment_fields(new_id, now, state, project)
            text = frontmatter.merge(content, {"tags": []}, fields)
            text = record.add_tags(text, tags)
            path = f"{now:%Y-%m-%d/%H%M%S}_{new_id[4:8]}.md"
            put = Put(path, text, Expect.ABSENT)
            try:
                return new_id, corpus.commit([put])[0]
            except AlreadyExistsError:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError  # the loop returns or raises

    def _banks(self, *, everywhere: bool) -> tuple[list[Bank], list[str]]:
        """Return the bank of this project and, if wanted, those of all others, with notes.

        A closed lane of this project does not keep others from being asked.
        """
        banks: list[Bank] = []
        notes: list[str] = []
        if everywhere:
            banks, notes = self.others()
        main = registry.main_worktree(self.root)
        try:
            home = Bank(self.name or main.name, str(main), self.own(), home=True)
        except UnavailableError as error:
            if not everywhere:
                raise
            return _distinct_names(banks), [*notes, f"{main.name} was left out: {error}"]
        return _distinct_names([home, *banks]), notes


# --- banks ---


def _distinct_names(banks: Sequence[Bank]) -> list[Bank]:
    """Name projects by their folders where several have the same name."""
    keys: dict[str, set[str]] = defaultdict(set)
    for bank in banks:
        keys[bank.name].add(bank.key)
    distinct = []
    for bank in banks:
        name = bank.name
        if len(keys[bank.name]) > 1:
            name = bank.key
        distinct.append(replace(bank, name=name))
    return distinct


def _filter(tags: Sequence[str], since: str, now: datetime) -> Filter:
    where = Filter(tags=tuple(check_tags(tags)))
    if not since.strip():
        return where
    return replace(where, since=times.start(since, now), until=now + SKEW)


@dataclass(frozen=True, slots=True)
class _Search:
    """What is asked of each bank."""

    query: str
    where: Filter
    limit: int
    now: datetime
    superseded: bool

    def of(self, corpus: Corpus) -> Findings:
        """Find the best for a query, or without one the newest."""
        if self.query.strip():
            return self._best(corpus)
        findings = self._newest(corpus)
        if self.superseded:
            return findings
        return current(findings, self.limit)

    def _best(self, corpus: Corpus) -> Findings:
        """Find the best for the query, successors before what they supersede or in its place."""
        query = Query(
            probes=(Probe(self.query),),
            limit=self.limit,
            where=self.where,
            floored=True,
            superseded="left out",
        )
        if self.superseded:
            query = replace(query, superseded="below")
        return corpus.search(query, self.now)

    def _newest(self, corpus: Corpus) -> Findings:
        """Return the newest, and more where some of them are left out for others."""
        where = replace(self.where, hidden=corpus.lane.hidden, alive_at=self.now)
        total = corpus.count(where)
        newest = _newest(corpus, where, 2 * self.limit, self.now, total)
        successors = Succession(corpus, self.now).successors(newest)
        first = newest[: self.limit]
        if self.superseded or not any(document.id in successors for document in first):
            newest = first
        beginnings = corpus.passages([document.id for document in newest])
        hits = []
        for document in newest:
            for passage in beginnings[document.id][:1]:
                later = successors.get(document.id, ())
                hits.append(Hit(document, passage, 0.0, (), successors=later))
        return Findings(
            hits=tuple(hits),
            omitted=max(0, total - len(hits)),
            notes=corpus.unread_notes(),
        )


def _unknown_tags(banks: Sequence[Bank], tags: Sequence[str]) -> list[str]:
    """Say which tags no memory has; of several banks, each may have tags of its own."""
    if len(banks) != 1:
        return []
    return filters.unknown(banks[0].corpus, check_tags(tags))


def _newest(corpus: Corpus, where: Filter, limit: int, now: datetime, total: int) -> list[Document]:
    """Return the newest of so many memories; of thousands those of the last days, if enough.

    Comparing thousands of dates takes long.
    """
    windows = RECENT_DAYS
    if total <= FEW:
        windows = ()
    for days in windows:
        since = now - timedelta(days=days)
        if where.since is not None:
            since = max(since, where.since)
        recent = replace(where, since=since, until=now + SKEW)
        documents = corpus.documents(recent, "newest", limit, now)
        if len(documents) >= limit:
            return documents
    return corpus.documents(where, "newest", limit, now)


def _merge(answers: Sequence[Answer], now: datetime, *, by_score: bool) -> list[BankHit]:
    """Put the findings of all banks in one order, each memory once."""
    unique: dict[tuple[str, str], BankHit] = {}
    for bank, findings in answers:
        for hit in findings.hits:
            key = (bank.key, own_id(hit.document))
            unique.setdefault(key, BankHit(bank, hit))

    def order(bank_hit: BankHit) -> tuple[object, ...]:
        newest = age_order(bank_hit.hit.document, now)
        if by_score:
            # A successor has at least the score of what it supersedes.
            return (-bank_hit.hit.score, bool(bank_hit.hit.successors), *newest)
        return newest

    return sorted(unique.values(), key=order)


def _total(answers: Sequence[Answer]) -> int:
    """Count the matches in all banks; worktrees of one repository hold mostly the same ones."""
    totals: dict[str, int] = {}
    for bank, findings in answers:
        total = len(findings.hits) + findings.omitted
        totals[bank.key] = max(totals.get(bank.key, 0), total)
    return sum(totals.values())


def _poor_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return how the notes begin that are not true of all banks together."""
    scores: list[float] = []
    for _, findings in answers:
        scores += [hit.score for hit in findings.hits]
    if not scores:
        return ()
    if max(scores) < FLOOR:
        return (NOTHING_RELEVANT,)
    return (NOTHING_RELEVANT, WEAK_MATCHES)


def _index_notes(answers: Sequence[Answer]) -> list[str]:
    """Return the notes about the index of each bank; one that all have is given once.

    That a bank has nothing relevant, or only weak matches, is no news where another has more.
    """
    notes: dict[str, str] = {}
    poor = _poor_notes(answers)
    for bank, findings in answers:
        for note in findings.notes:
            if note.startswith(poor):
                continue
            named = f"{bank.name}: {note}"
            if bank.home:
                named = note
            notes.setdefault(note, named)
    return list(notes.values())


# --- the body of a memory ---


def _joined(passages: Sequence[Chunk]) -> str:
    """Join passages of a memory as they are in its text."""
    if not passages:
        return ""
    text = passages[0].text
    for before, passage in pairwise(passages):
        text += _separator(before, passage) + passage.text
    return text


def _separator(before: Chunk, passage: Chunk) -> str:
    lines = passage.start_line - before.end_line
    if lines > 0:
        return "\n" * lines
    # Passages that share a line were cut between two words, or where a script needs no space.
    if unicodedata.east_asian_width(before.text[-1]) in "WF":
        return ""
    return " "


def _path(corpus: Corpus, path: str, *, home: bool) -> str:
    if home and corpus.lane.base:
        return f"{corpus.lane.base}/{path}"
    return corpus.store.locate(path)
