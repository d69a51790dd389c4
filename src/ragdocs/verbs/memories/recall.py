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
from ragdocs.search.newest import age_order
from ragdocs.system import git
from ragdocs.system.names import own_id
from ragdocs.text import frontmatter, times
from ragdocs.text.checks import check_content, check_tags
from ragdocs.text.times import SKEW
from ragdocs.types import (
    Chunk,
    Document,
    Expect,
    Filter,
    Findings,
    GitContext,
    Hit,
    Probe,
    Put,
    Query,
    Written,
)
from ragdocs.verbs import page
from ragdocs.verbs.memories import record
from ragdocs.verbs.shapes import GitShape, Recalled, RecalledMemory, Remembered

SCOPES = ("project", "global")
# Four hexadecimal digits tell memories of one second apart; that many collisions in a row mean
# something else.
TRIES = 20
# About what a result takes beside its content.
BESIDE_CONTENT = 350
RECENT_DAYS = (1, 7, 30)
CUT = "contents that begin or end with … are parts; the file at the given path has the whole"


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


# What one bank found.
Answer = tuple[Bank, Findings]


@dataclass(frozen=True, slots=True)
class Layout:
    """How memories are shown: with their projects or without, and room for names of files."""

    with_project: bool
    files_room: int


@dataclass(frozen=True, slots=True)
class Recall:
    """What can be asked of memories by when and where they were written."""

    root: Path
    own: Callable[[], Corpus]
    # The banks of other projects, the last used first, and notes about them.
    others: Callable[[], tuple[list[Bank], list[str]]]
    clock: Callable[[], datetime]
    budget: int

    def remember(self, content: str, tags: Sequence[str] = ()) -> Remembered:
        """Write a memory under the present moment, with the state of the working tree."""
        corpus = self.own()
        check_content(content)
        new_id, written = self._write(corpus, content, check_tags(tags))
        warnings = page.removed(written)
        try:
            # Memories of the user's own bank belong to no project's folder.
            if corpus.lane.base:
                registry.register(self.root, self.clock().timestamp())
        except RagdocsError as error:
            warnings.append(
                f"the memory is written, but other projects cannot find this one: {error}"
            )
        path = _path(corpus, written.path, home=True)
        return Remembered(id=new_id, path=path, warnings=warnings)

    def recall(
        self,
        query: str = "",
        *,
        tags: Sequence[str] = (),
        since: str = "",
        limit: int = 10,
        scope: str = "project",
    ) -> Recalled:
        """Return memories: the newest, or the best for a query; of this project, or of all."""
        page.check_limit(limit)
        if scope not in SCOPES:
            raise ValidationError(f"{scope[:40]!r} is not a scope", f"Use {' or '.join(SCOPES)}")
        now = self.clock()
        where = _filter(tags, since, now)
        everywhere = scope == "global"
        banks, bank_notes = self._banks(everywhere=everywhere)
        answers: list[Answer] = []
        for bank in banks:
            answers.append((bank, _search(bank.corpus, query, where, limit, now)))
        is_search = bool(query.strip())
        bank_hits = _merge(answers, now, by_score=is_search)
        chosen = self._with_bodies(bank_hits[:limit], is_search=is_search)
        findings = Findings(
            hits=tuple(bank_hit.hit for bank_hit in chosen),
            omitted=max(len(bank_hits), _total(answers)) - len(chosen),
            notes=(*_index_notes(answers), *bank_notes),
        )
        return self._recalled(findings, chosen, now, with_project=everywhere)

    def _write(
        self,
        corpus: Corpus,
        content: str,
        tags: Sequence[str],
    ) -> tuple[str, Written]:
        """Write a memory under a new id and return both."""
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
            home = Bank(main.name, str(main), self.own(), home=True)
        except UnavailableError as error:
            if not everywhere:
                raise
            return _distinct_names(banks), [*notes, f"{main.name} was left out: {error}"]
        return _distinct_names([home, *banks]), notes

    def _with_bodies(self, bank_hits: Sequence[BankHit], *, is_search: bool) -> list[BankHit]:
        """Give each hit the body of its memory.

        Where that is too long, a search keeps the passage that it found.
        """
        room = self.budget // max(1, len(bank_hits)) - BESIDE_CONTENT
        results = []
        for bank_hit in bank_hits:
            bank, hit = bank_hit.bank, bank_hit.hit
            passage = hit.chunk.text
            text = _body(bank.corpus, hit.document, self.budget) or passage
            is_too_long = is_search and len(text) > room
            if is_too_long and not text.startswith(passage):
                text = f"…\n{passage}"
            chunk = replace(hit.chunk, text=text)
            results.append(BankHit(bank, replace(hit, chunk=chunk)))
        return results

    def _recalled(
        self,
        findings: Findings,
        bank_hits: Sequence[BankHit],
        now: datetime,
        *,
        with_project: bool,
    ) -> Recalled:
        files_room = self.budget // (2 * max(1, len(bank_hits)))
        layout = Layout(with_project=with_project, files_room=files_room)
        # A hit does not know its bank, so banks are handed over in the same order.
        banks = iter([bank_hit.bank for bank_hit in bank_hits])

        def shape(hit: Hit) -> RecalledMemory:
            return _memory(next(banks), hit.document, now, layout)

        memories, omitted, notes = page.fit(findings, shape, self.budget)
        if any(_is_part(memory["content"]) for memory in memories):
            notes = [note for note in notes if "are cut" not in note]
            notes.append(CUT)
        return Recalled(result=memories, omitted=omitted, notes=notes)


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


def _search(
    corpus: Corpus,
    query: str,
    where: Filter,
    limit: int,
    now: datetime,
) -> Findings:
    """Find the best for a query, or without one the newest."""
    if query.strip():
        search = Query(probes=(Probe(query),), limit=limit, where=where)
        return corpus.search(search, now)
    where = replace(where, hidden=corpus.lane.hidden, alive_at=now)
    total = corpus.count(where)
    newest = _newest(corpus, where, limit, now)
    beginnings = corpus.passages([document.id for document in newest])
    hits = []
    for document in newest:
        for passage in beginnings[document.id][:1]:
            hits.append(Hit(document, passage, 0.0, ()))
    return Findings(
        hits=tuple(hits),
        omitted=total - len(hits),
        notes=(),
    )


def _newest(corpus: Corpus, where: Filter, limit: int, now: datetime) -> list[Document]:
    """Return the newest memories, those of the last days if there are enough.

    Comparing thousands of dates takes long.
    """
    for days in RECENT_DAYS:
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
            return (-bank_hit.hit.score, *newest)
        return newest

    return sorted(unique.values(), key=order)


def _total(answers: Sequence[Answer]) -> int:
    """Count the matches in all banks; worktrees of one repository hold mostly the same ones."""
    totals: dict[str, int] = {}
    for bank, findings in answers:
        total = len(findings.hits) + findings.omitted
        totals[bank.key] = max(totals.get(bank.key, 0), total)
    return sum(totals.values())


def _index_notes(answers: Sequence[Answer]) -> list[str]:
    """Return the notes about the index of each bank; one that all have is given once."""
    notes: dict[str, str] = {}
    for bank, findings in answers:
        for note in findings.notes:
            named = f"{bank.name}: {note}"
            if bank.home:
                named = note
            notes.setdefault(note, named)
    return list(notes.values())


# --- the body of a memory ---


def _body(corpus: Corpus, document: Document, room: int) -> str:
    """Join the passages of a memory, up to a little more than fits into an answer."""
    room = max(room, page.LEAST_CONTENT)
    passages = corpus.passages([document.id], room)[document.id]
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


def _is_part(content: str) -> bool:
    return content.startswith("…") or content.endswith("…")


# --- what answers say of a memory ---


def _memory(
    bank: Bank,
    document: Document,
    now: datetime,
    layout: Layout,
) -> RecalledMemory:
    timestamp = 0
    written_at = document.created_at or document.modified_at
    if written_at is not None:
        timestamp = int(written_at.timestamp())
    memory = RecalledMemory(
        id=own_id(document),
        timestamp=timestamp,
        tags=page.tags(document),
        content="",
        git=_git(document.git, layout.files_room),
        age=page.age(document.created_at, now),
        path=_path(bank.corpus, document.path, home=bank.home),
    )
    if layout.with_project:
        project = _project(bank, document)
        memory["project"] = page.cut(project, page.LONGEST_TITLE)
    return memory


def _project(bank: Bank, document: Document) -> str:
    """Return the project of a memory: in the user's own bank each names its own."""
    if bank.corpus.lane.base:
        return bank.name
    named = document.extra.get("project") or ""
    return frontmatter.as_text(named) or bank.name


def _git(state: GitContext | None, room: int) -> GitShape | None:
    """Return the state of the working tree, with the changed files that fit and their number."""
    if state is None:
        return None
    changed = state.files_changed[: git.MOST_FILES]
    files = [page.cut(path, page.LONGEST_TITLE) for path in changed]
    shape = GitShape(
        branch=page.cut(state.branch, page.LONGEST_TITLE),
        commit=page.cut(state.commit, page.LONGEST_TITLE),
        dirty=state.dirty,
        files_changed=page.within(files, room),
    )
    total = max(state.files_total, len(state.files_changed))
    if total > len(shape["files_changed"]):
        shape["files_total"] = total
    return shape


def _path(corpus: Corpus, path: str, *, home: bool) -> str:
    if home and corpus.lane.base:
        return f"{corpus.lane.base}/{path}"
    return corpus.store.locate(path)
