"""Remembering without thinking of a name.

And recalling by time, tag or words, here or in all projects.
"""

from __future__ import annotations

import heapq
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

from ragdocs.errors import AlreadyExistsError, RagdocsError, UnavailableError, ValidationError
from ragdocs.project import registry
from ragdocs.protocols import Index
from ragdocs.search.corpus import Corpus
from ragdocs.search.newest import age_order
from ragdocs.system import git
from ragdocs.system.names import own_id
from ragdocs.text import frontmatter as metadata
from ragdocs.text import times
from ragdocs.text.checks import check_content, check_tags
from ragdocs.text.times import SKEW
from ragdocs.types import Document, Expect, Filter, Findings, GitContext, Hit, Probe, Put, Query
from ragdocs.verbs import page as answers
from ragdocs.verbs.memories.record import add_tags as tagged
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

    `key` is what the worktrees of a repository share, and one bank is at home.
    """

    name: str
    key: str
    corpus: Corpus
    home: bool = False


@dataclass(frozen=True, slots=True)
class Shares:
    """How memories are shown.

    Whether with their projects, and with how much room for the names of files.
    """

    everywhere: bool
    files: int


@dataclass(frozen=True, slots=True)
class Recall:
    """What can be asked of memories by when and where they were written."""

    root: Path
    own: Callable[[], Corpus]
    # The banks of other projects, the last used first, and what is to be said about them.
    others: Callable[[], tuple[list[Bank], list[str]]]
    clock: Callable[[], datetime]
    budget: int

    def remember(self, content: str, tags: Sequence[str] = ()) -> Remembered:
        """Write a memory under the present moment, with the state of the working tree."""
        corpus = self.own()
        check_content(content)
        words = check_tags(tags)
        state = git.context(self.root)
        for attempt in range(TRIES):
            now = self.clock()
            new_id = f"mem_{secrets.token_hex(6)}"
            name = f"{now:%Y-%m-%d/%H%M%S}_{new_id[4:8]}.md"
            text = tagged(_stamped(content, self._fields(corpus, now, new_id, state)), words)
            try:
                written = corpus.commit([Put(name, text, Expect.ABSENT)])[0]
                break
            except AlreadyExistsError:
                if attempt == TRIES - 1:
                    raise
        warnings = answers.removed(written)
        try:
            # Memories of the user's own bank belong to no project's folder.
            if corpus.lane.base:
                registry.register(self.root, now.timestamp())
        except RagdocsError as error:
            warnings.append(
                f"the memory is written, but other projects cannot find this one: {error}"
            )
        return Remembered(id=new_id, path=_path(corpus, name, home=True), warnings=warnings)

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
        answers.check_limit(limit)
        if scope not in SCOPES:
            raise ValidationError(f"{scope[:40]!r} is not a scope", f"Use {' or '.join(SCOPES)}")
        now, everywhere = self.clock(), scope == "global"
        begin = times.start(since, now) if since.strip() else None
        where = Filter(
            tags=tuple(check_tags(tags)), since=begin, until=now + SKEW if begin else None
        )
        banks, notes = self._banks(everywhere=everywhere)
        asked = [(bank, _ask(bank.corpus, query, where, limit, now)) for bank in banks]
        found, total = _joined(asked, now, searched=bool(query.strip()))
        chosen = found[:limit]
        room = self.budget // max(1, len(chosen)) - BESIDE_CONTENT
        hits = tuple(
            _whole(bank.corpus.index, hit, room, searched=bool(query.strip()))
            for bank, hit in chosen
        )
        # A hit does not know its bank, so they are shaped here and handed over in the same order.
        shares = Shares(everywhere=everywhere, files=self.budget // (2 * max(1, len(chosen))))
        shapes = iter([_shape(bank, hit.document, now, shares) for bank, hit in chosen])
        findings = Findings(hits=hits, omitted=total - len(hits), notes=(*_notes(asked), *notes))
        shaped, omitted, told = answers.fit(findings, lambda _: next(shapes), self.budget)
        if any("…" in one["content"][:1] + one["content"][-1:] for one in shaped):
            told = [*(note for note in told if "are cut" not in note), CUT]
        return Recalled(result=shaped, omitted=omitted, notes=told)

    def _fields(
        self, corpus: Corpus, now: datetime, new_id: str, state: GitContext | None
    ) -> dict[str, object]:
        fields: dict[str, object] = {"created_at": now.isoformat()}
        fields |= {"id": new_id, "timestamp": int(now.timestamp())}
        if not corpus.lane.base:
            fields["project"] = registry.main_worktree(self.root).name
        if state:
            noted: dict[str, object] = {
                "branch": state.branch,
                "commit": state.commit,
                "dirty": state.dirty,
                "files_changed": list(state.files_changed),
            }
            if state.files_total > len(state.files_changed):
                noted["files_total"] = state.files_total
            fields["git"] = noted
        return fields

    def _banks(self, *, everywhere: bool) -> tuple[list[Bank], list[str]]:
        """Return the bank of this project and, if wanted, those of all others.

        One that is closed stops nobody.
        """
        banks, notes = self.others() if everywhere else ([], [])
        main = registry.main_worktree(self.root)
        try:
            banks = [Bank(main.name, str(main), self.own(), home=True), *banks]
        except UnavailableError as error:
            if not everywhere:
                raise
            notes = [*notes, f"{main.name} was left out: {error}"]
        # Two projects with one name are told apart by their places.
        keys = {
            name: {bank.key for bank in banks if bank.name == name}
            for name in {bank.name for bank in banks}
        }
        return [
            bank if len(keys[bank.name]) == 1 else replace(bank, name=bank.key) for bank in banks
        ], notes


def _stamped(content: str, fields: Mapping[str, object]) -> str:
    """Write what is noted by itself into the text's block.

    Over whatever a copied block said about another memory.
    """
    end = metadata.newline(content)
    return metadata.merge(f"{content.rstrip()}{end}", {"tags": []}, fields)


def _ask(corpus: Corpus, query: str, where: Filter, limit: int, now: datetime) -> Findings:
    if query.strip():
        return corpus.search(Query(probes=(Probe(query),), limit=limit, where=where), now)
    index = corpus.index
    with index.held():
        where = replace(where, hidden=corpus.lane.hidden, alive_at=now)
        every = index.documents(where)
        newest = heapq.nsmallest(
            limit, _recent(index, where, limit, now) or every, key=partial(age_order, now=now)
        )
        pieces = index.load([index.chunks(document.id)[0] for document in newest])
    hits = tuple(Hit(document, piece, 0.0, ()) for document, piece in pieces)
    return Findings(hits=hits, omitted=len(every) - len(hits), notes=())


def _recent(index: Index, where: Filter, limit: int, now: datetime) -> list[Document]:
    """Return the memories of the last days, if there are enough.

    Comparing thousands of dates takes long.
    """
    for days in RECENT_DAYS:
        since = now - timedelta(days=days)
        young = replace(where, since=max(since, where.since or since), until=now + SKEW)
        if len(found := index.documents(young)) >= limit:
            return found
    return []


def _joined(
    asked: Sequence[tuple[Bank, Findings]], now: datetime, *, searched: bool
) -> tuple[list[tuple[Bank, Hit]], int]:
    """Put the findings of all banks in one order, each memory once.

    And count what there is in all.
    """
    totals: dict[str, int] = {}
    found: dict[tuple[str, str], tuple[Bank, Hit]] = {}
    for bank, findings in asked:
        # Worktrees of one repository hold mostly the same memories.
        totals[bank.key] = max(totals.get(bank.key, 0), len(findings.hits) + findings.omitted)
        for hit in findings.hits:
            found.setdefault((bank.key, own_id(hit.document)), (bank, hit))

    def order(pair: tuple[Bank, Hit]) -> tuple[object, ...]:
        newest = age_order(pair[1].document, now)
        return (-pair[1].score, *newest) if searched else newest

    return sorted(found.values(), key=order), max(len(found), sum(totals.values()))


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def _whole(index: Index, hit: Hit, room: int, *, searched: bool) -> Hit:
    """Give a hit the body of its memory.

    Where that is too long, a search keeps the passage that it found.
    """
    with index.held():
        pieces = [
            piece for _, piece in index.load(index.chunks(hit.document.id)[: room // 100 + 2])
        ]
    text = pieces[0].text if pieces else hit.chunk.text
    for before, piece in pairwise(pieces):
        # Passages that share a line were cut between two words, or where a script needs no space.
        between = "" if unicodedata.east_asian_width(text[-1]) in "WF" else " "
        text += ("\n" * (piece.start_line - before.end_line) or between) + piece.text
    if searched and len(text) > room and not text.startswith(hit.chunk.text):
        text = f"…\n{hit.chunk.text}"
    return replace(hit, chunk=replace(hit.chunk, text=text))


def _notes(asked: Sequence[tuple[Bank, Findings]]) -> list[str]:
    """Return what each bank says about its index; what all say is said once."""
    said: dict[str, str] = {}
    for bank, findings in asked:
        for note in findings.notes:
            said.setdefault(note, note if bank.home else f"{bank.name}: {note}")
    return list(said.values())


def _shape(bank: Bank, document: Document, now: datetime, shares: Shares) -> RecalledMemory:
    shaped = RecalledMemory(
        id=own_id(document),
        timestamp=int(_seconds(document.created_at or document.modified_at)),
        tags=answers.tags(document),
        content="",
        git=_git(document.git, shares.files),
        age=answers.age(document.created_at, now),
        path=_path(bank.corpus, document.path, home=bank.home),
    )
    if shares.everywhere:
        named = (
            "" if bank.corpus.lane.base else metadata.as_text(document.extra.get("project") or "")
        )
        shaped["project"] = answers.cut(named or bank.name, answers.LONGEST_TITLE)
    return shaped


def _git(state: GitContext | None, room: int) -> GitShape | None:
    """Return the state of the working tree with the changed files that fit into the room.

    And how many there were.
    """
    if state is None:
        return None
    files = [
        answers.cut(path, answers.LONGEST_TITLE) for path in state.files_changed[: git.MOST_FILES]
    ]
    shape = GitShape(
        branch=answers.cut(state.branch, answers.LONGEST_TITLE),
        commit=answers.cut(state.commit, answers.LONGEST_TITLE),
        dirty=state.dirty,
        files_changed=answers.within(files, room),
    )
    total = max(state.files_total, len(state.files_changed))
    if total > len(shape["files_changed"]):
        shape["files_total"] = total
    return shape


def _path(corpus: Corpus, path: str, *, home: bool) -> str:
    return f"{corpus.lane.base}/{path}" if home and corpus.lane.base else corpus.store.locate(path)
