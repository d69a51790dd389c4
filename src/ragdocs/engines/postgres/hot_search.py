"""Searching by words in what is kept in memory, which the first turn brings up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ragdocs.engines.postgres import words
from ragdocs.engines.postgres.filters import Condition
from ragdocs.engines.postgres.hot import (
    MOST_TOUCHED,
    Behind,
    HotScope,
    HotState,
    Present,
    brought_up,
    word_score,
)
from ragdocs.engines.postgres.lengths import Floats
from ragdocs.engines.postgres.marked import Marked
from ragdocs.engines.postgres.pool import Columns, Fetched, Mask, Numbers, Payload, Pool, best
from ragdocs.engines.postgres.statistics import TOTALS
from ragdocs.search import bm25
from ragdocs.system.postgres.database import Rows, Statement

_BIG = np.dtype(">i8")
_SIZE = np.dtype(">i4")
_HEAD = np.dtype([("number", ">i8"), ("mark", ">i8"), ("passages", ">i4")])


NOT_BEHIND = Behind([], np.zeros(0, np.int64))
NO_DOCUMENTS = Marked(words.NOTHING_FETCHED, np.zeros(0, np.int64))


class HotLook(NamedTuple):
    """Documents that may be shown, and the scores of all their passages."""

    pool: Pool
    scores: dict[str, Floats]
    # The k best columns of each probe under each filter.
    best: dict[tuple[str, int], Columns]


class HotSearch:
    """One search by words in what is kept of a scope."""

    def __init__(
        self,
        ask: Callable[..., list[Rows]],
        scope: int,
        hot: HotScope,
        queries: Sequence[words.WordQuery],
        conditions: Sequence[Condition],
    ) -> None:
        self._ask = ask
        self._scope = scope
        self._hot = hot
        self._queries = queries
        self._conditions = conditions
        self.state: HotState | None = None
        self.weighed: dict[str, list[bm25.QueryTerm]] = {}
        # Of each filter, which documents pass; nothing where all do.
        self.passing: list[Mask | None] = []

    def bring_up(self, further: Sequence[Statement]) -> list[Rows]:
        """Read what is missing and what has changed; return the answers to further statements.

        Afterwards there is a state, unless it cannot be proven.
        """
        before = self._hot.state
        missing = self._forms
        behind = NOT_BEHIND
        statements = [_present(self._scope, before), *self._filters()]
        if before is None:
            statements.append(_documents(self._scope))
        else:
            missing = before.missing(self._forms)
            behind = before.behind(self._forms)
        if missing:
            statements.append(_postings(self._scope, missing))
        if behind.terms:
            statements.append(_postings_in(self._scope, behind))
        answers = self._ask(*statements, *further)
        own = iter(answers[: len(statements)])
        present = Present.of(next(own))
        filtered = [next(own) for _ in self._filters()]
        state = before
        if before is None:
            state = HotState(present.totals, present.since, _read_documents(next(own)))
        elif before.totals != present.totals:
            state = self._later(before, present)
        if state is not None and missing:
            state.add_postings(_read_postings(next(own)), missing)
        if state is not None and state is before and behind.terms:
            state.catch_up(behind, _read_postings(next(own)))
        self._take(state, filtered, is_new=state is not before)
        return answers[len(statements) :]

    def _take(self, state: HotState | None, filtered: Sequence[Rows], *, is_new: bool) -> None:
        """Search in a state and keep it, unless it cannot be proven."""
        if state is None or (is_new and not state.is_proven):
            self._hot.forget()
            return
        self.state = state
        self._read_late(state, self._forms)
        self._read_filters(state, filtered)
        self._weigh(state)
        self._hot.keep(state)

    @cached_property
    def _forms(self) -> list[str]:
        """The terms of all queries, and the stems of the same words in other languages."""
        forms: dict[str, None] = {}
        for query in self._queries:
            for term in query.terms:
                forms |= dict.fromkeys(query.forms(term))
        return list(forms)

    def _later(self, before: HotState, present: Present) -> HotState | None:
        """Return the state after other writes, or nothing after very many."""
        touched = present.touched
        if len(touched) > MOST_TOUCHED:
            return None
        if not touched:
            return brought_up(before, present, NO_DOCUMENTS, ())
        behind = before.behind_after(self._forms, touched)
        values = {
            "scope": self._scope,
            "touched": touched,
        }
        documents, names, postings = self._ask(
            (_DOCUMENTS.format(chosen=_TOUCHED), values),
            (_TOUCHED_NAMES, values),
            _postings_in(self._scope, behind),
        )
        named = [name for (name,) in names]
        later = brought_up(before, present, _read_documents(documents), named)
        later.catch_up(behind, _read_postings(postings))
        return later

    def _read_late(self, state: HotState, terms: Iterable[str]) -> None:
        """Read the postings of those terms that are not kept, or were behind too far."""
        late = [term for term in terms if not state.is_current(term)]
        if late:
            (postings,) = self._ask(_postings(self._scope, late))
            state.add_postings(_read_postings(postings), late)

    def _filters(self) -> list[Statement]:
        statements: list[Statement] = []
        for condition in self._conditions:
            if not condition.is_open:
                chosen = condition.excludes or condition.sql
                sql = _PASSING.format(condition=chosen)
                statements.append((sql, {"scope": self._scope, **condition.values}))
        return statements

    def _read_filters(self, state: HotState, answers: Sequence[Rows]) -> None:
        given = iter(answers)
        for condition in self._conditions:
            if condition.is_open:
                self.passing.append(None)
                continue
            ((sent,),) = next(given)
            if condition.excludes and not sent:
                self.passing.append(None)
                continue
            numbers = np.frombuffer(sent or b"", _BIG)
            is_chosen = np.isin(state.pool.numbers, numbers)
            if condition.excludes:
                is_chosen = ~is_chosen
            self.passing.append(is_chosen)

    def _weigh(self, state: HotState) -> None:
        """Weigh the terms of the queries, with other spellings of those that nothing has."""
        frequencies: dict[str, int] = {}
        unknown: dict[str, None] = {}
        for query in self._queries:
            nothing_has = 0
            for term in query.terms:
                for form, own in state.worth(query.forms(term)).items():
                    frequencies[form] = len(own.columns)
                if any(frequencies[form] for form in query.forms(term)):
                    continue
                nothing_has += 1
                if nothing_has <= bm25.MOST_TYPOS and bm25.may_be_typo(term):
                    unknown[term] = None
        not_looked_up = [term for term in unknown if term not in state.spellings]
        self._look_up_spellings(state, not_looked_up)
        for query in self._queries:
            self.weighed[query.name] = bm25.weigh(
                query.terms,
                frequencies,
                state.totals.passages,
                state.spellings.__getitem__,
                query.stems,
            )

    def _look_up_spellings(self, state: HotState, terms: Sequence[str]) -> None:
        if not terms:
            return
        (rows,) = self._ask(words.resembling(self._scope, terms))
        resembling: dict[str, list[str]] = {term: [] for term in terms}
        spellings = []
        for term, spelling in rows:
            resembling[term].append(spelling)
            spellings.append(spelling)
        self._read_late(state, spellings)
        for term, own in resembling.items():
            state.spellings[term] = tuple(own)

    def look(self, k: int, near: Sequence[Numbers]) -> HotLook:
        """Return the documents of the k best passages, and those that were found by vector."""
        assert self.state is not None
        pool = self.state.pool
        scores = {}
        best_columns = {}
        chosen = [pool.positions(numbers) for numbers in near]
        for name, query in self.weighed.items():
            scores[name] = word_score(self.state, query)
            for number, passing in enumerate(self.passing):
                allowed = scores[name] > 0
                if passing is not None:
                    allowed &= passing[pool.owners]
                best_columns[name, number] = best(scores[name], k, allowed)
                chosen.append(pool.owners[best_columns[name, number]])
        positions = np.unique(np.concatenate(chosen))
        part = _part(pool, positions, self.passing)
        # How far each document of the part stands from where it stood.
        shifts = pool.starts[positions] - part.starts
        columns = np.arange(part.columns) + shifts[part.owners]
        moved = {}
        for key, own in best_columns.items():
            owners = pool.owners[own]
            part_positions = np.searchsorted(positions, owners)
            moved[key] = own - shifts[part_positions]
        for name, values in scores.items():
            scores[name] = values[columns]
        return HotLook(part, scores, moved)


def _part(pool: Pool, positions: Numbers, passing: Sequence[Mask | None]) -> Pool:
    """Return a pool of some documents, with a bit for each filter that they pass."""
    passes = np.zeros(len(positions), dtype=np.int64)
    for number, is_passing in enumerate(passing):
        bit = 1 << number
        if is_passing is None:
            passes |= bit
        else:
            passes |= np.where(is_passing[positions], bit, 0)
    paths = [pool.paths[position] for position in positions.tolist()]
    return Pool(pool.numbers[positions], passes, pool.sizes[positions], paths)


def _present(scope: int, state: HotState | None) -> Statement:
    """Return the statement for the totals, and for the documents touched since a state."""
    since = None
    if state is not None:
        since = str(state.since)
    return _PRESENT, {"scope": scope, "since": since}


def _documents(scope: int) -> Statement:
    return _DOCUMENTS.format(chosen="true"), {"scope": scope}


def _postings(scope: int, terms: Sequence[str]) -> Statement:
    return _POSTINGS, {"scope": scope, "terms": list(terms)}


def _postings_in(scope: int, behind: Behind) -> Statement:
    numbers = words.array(behind.documents)
    values = {
        "scope": scope,
        "terms": behind.terms,
        "documents": numbers,
    }
    return _POSTINGS_IN, values


def _read_documents(rows: Rows) -> Marked:
    ((heads, lengths, paths),) = rows
    head = np.frombuffer(heads or b"", _HEAD)
    numbers = head["number"].astype(np.int64)
    passes = np.zeros(len(head), np.int64)
    sizes = head["passages"].astype(np.int64)
    marks = head["mark"].astype(np.int64)
    names = []
    if len(head):
        names = paths.split(b"\0")
    fetched = Fetched(numbers, passes, sizes, names, lengths or b"")
    return Marked(fetched, marks)


def _read_postings(rows: Rows) -> dict[str, Payload]:
    by_term = {}
    for term, documents, sizes, entries in rows:
        if documents is None:
            continue
        by_term[term] = Payload(
            np.frombuffer(documents, _BIG).astype(np.int64),
            np.frombuffer(sizes, _SIZE).astype(np.int32),
            entries,
        )
    return by_term


_PRESENT = f"""
SELECT ({TOTALS}), pg_snapshot_xmin(pg_current_snapshot())::text, (
    SELECT array_agg(number) FROM (
        SELECT DISTINCT number FROM touched, unnest(documents) AS u(number)
        WHERE scope = %(scope)s AND written >= %(since)s::text::xid8
        LIMIT {MOST_TOUCHED + 1}
    ) numbers
)
"""
_DOCUMENTS = """
SELECT string_agg(int8send(doc_id) || int8send(mark) || int4send(passages), ''),
    string_agg(lengths, ''), string_agg(convert_to(path, 'UTF8'), '\\x00')
FROM (
    SELECT doc_id, mark, passages, lengths, path FROM documents
    WHERE scope = %(scope)s AND {chosen} ORDER BY path
) ordered
"""
_TOUCHED = "doc_id = ANY (%(touched)s)"
_COLLECTED = """
string_agg(int8send(p.doc_id), ''), string_agg(int4send(octet_length(p.payload)), ''),
string_agg(p.payload, '')
"""
# Term by term: grouped after a join, thousands of postings would be sorted first.
_EACH_TERM = f"""
SELECT t.term, c.*
FROM unnest(%(terms)s::text[]) AS t(term) CROSS JOIN LATERAL (
    SELECT {_COLLECTED} FROM postings p
    WHERE p.scope = %(scope)s AND p.term = t.term AND {{among}}
) c
"""
_POSTINGS = _EACH_TERM.format(among="true")
_POSTINGS_IN = _EACH_TERM.format(among="p.doc_id = ANY (%(documents)s::bigint[])")
_TOUCHED_NAMES = """
SELECT DISTINCT name FROM names WHERE scope = %(scope)s AND doc_id = ANY (%(touched)s)
"""
_PASSING = """
SELECT string_agg(int8send(d.doc_id), '') FROM documents d
WHERE d.scope = %(scope)s AND ({condition})
"""
