"""One state of an index in a database, as a search reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, cast

import numpy as np

from ragdocs.engines.local.vectors import similar_pairs
from ragdocs.engines.postgres.candidates import CandidateSearch, Key, SearchedScope
from ragdocs.engines.postgres.cards import Cards, all_stored, decoded, restored, stored
from ragdocs.engines.postgres.filters import Condition, condition, link_targets
from ragdocs.engines.postgres.hot import HotState
from ragdocs.engines.postgres.pool import Mask
from ragdocs.engines.postgres.rows import DOCUMENT, ENTRY
from ragdocs.engines.postgres.statistics import TOTALS, Totals
from ragdocs.engines.postgres.ties import Tying
from ragdocs.errors import UnavailableError
from ragdocs.protocols import (
    Candidates,
    Documents,
    Facet,
    Loaded,
    Order,
    PassageKey,
    ProbeVector,
    Tied,
    Ties,
)
from ragdocs.search.fields import meant
from ragdocs.system.names import link_key
from ragdocs.system.postgres.columns import columns
from ragdocs.system.postgres.database import Rows, Statement, Turns
from ragdocs.text.languages import ENGLISH
from ragdocs.text.times import SKEW
from ragdocs.types import Chunk, Document, Filter, Link

HINT_AGAIN = "Try again"
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
PASSAGE = "p.ord, p.start_line, p.end_line, p.digest, p.headings, p.text"

# `list` is a method below.
Answers = list[Rows]


class PostgresSnapshot:
    """Reads in one transaction; keys are numbers of documents and positions in them."""

    def __init__(self, turns: Turns, scope: SearchedScope, cards: Cards) -> None:
        self._turns = turns
        self._searched = scope
        self._scope = scope.number
        self._cards = cards
        # Documents that were found, whose links are known, by id and by number.
        self._documents: dict[str, Document] = {}
        self._numbered: dict[int, Document] = {}
        # What is kept in memory of this state, and of the filter of the search who passes.
        self._state: HotState | None = None
        self._where = Filter()
        self._passing: Mask | None = None
        # A number for all writes before this state, if it is known.
        self._writes: int | None = None
        self._is_ended = False

    def candidates(
        self,
        probes: Sequence[ProbeVector],
        filters: Sequence[Filter],
        k: int,
        also: Collection[str] = (),
        count_up_to: int = 0,
    ) -> Candidates:
        """Find the k best passages by words and by vector under each of the filters."""
        conditions = []
        for number, where in enumerate(filters):
            conditions.append(condition(where, f"f{number}"))
        counting = _Counting(self._ask, self._scope, conditions[0], count_up_to)
        search = CandidateSearch(counting.ask, self._searched, probes, conditions, k)
        candidates = search.run(also, self._cards)
        if count_up_to:
            candidates = replace(candidates, passing=counting.result)
        self._state = search.state
        if search.state is not None:
            self._where = filters[0]
            self._passing = search.passing[0]
        for start, document in zip(candidates.starts.tolist(), candidates.documents, strict=True):
            self._documents[document.id] = document
            key = cast("Key", candidates.keys[start])
            self._numbered[key.document] = document
        self._writes = search.writes
        return candidates

    def neighbours(
        self, document_ids: Sequence[str], where: Filter
    ) -> dict[str, list[tuple[Document, PassageKey]]]:
        """Map each document to those it links to that pass the filter, with their first passage."""
        targets = self._targets(document_ids)
        names = sorted(set().union(*targets.values()))
        by_name: dict[str, list[tuple[Document, PassageKey]]] = {}
        for name, number, card in self._named(names, where):
            target = (self._cards.document(card), PassageKey(Key(number, 0)))
            by_name.setdefault(name, []).append(target)
        neighbours = {}
        for document_id in document_ids:
            linked = {}
            for name in targets[document_id]:
                for document, key in by_name.get(name, ()):
                    linked[document.id] = (document, key)
            linked.pop(document_id, None)
            neighbours[document_id] = [linked[name] for name in sorted(linked)]
        return neighbours

    def _named(self, names: Sequence[str], where: Filter) -> Iterator[tuple[str, int, bytes]]:
        """Yield names with the documents that go by them and pass, by number and card."""
        state = self._state
        if state is None or where != self._where:
            passing = condition(where, "f")
            sql = _NAMED.format(condition=passing.sql)
            yield from self._read(sql, passing, names=names)
            return
        missing = [name for name in names if name not in state.targets]
        if missing:
            by_name: dict[str, list[tuple[int, bytes]]] = {name: [] for name in missing}
            for name, number, card in self._read(_NAMED.format(condition="true"), names=missing):
                by_name[name].append((number, card))
            for name, documents in by_name.items():
                state.targets.add(name, documents)
        for name in names:
            for number, card in state.targets[name]:
                if self._passing is None or self._passing[state.pool.position(number)]:
                    yield name, number, card

    def _targets(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the names that each document links to, as they are stored."""
        unknown = [name for name in document_ids if name not in self._documents]
        if unknown:
            sql = "SELECT card FROM documents WHERE scope = %(scope)s AND id = ANY (%(ids)s)"
            for (card,) in self._read(sql, ids=all_stored(unknown)):
                document = self._cards.document(card)
                self._documents[document.id] = document
        targets: dict[str, list[str]] = {}
        for document_id in document_ids:
            targets[document_id] = []
            if document_id in self._documents:
                links = self._documents[document_id].links
                targets[document_id] = link_targets(link.target for link in links)
        return targets

    def load(
        self,
        keys: Sequence[PassageKey],
        words: Sequence[str] = (),
        languages: Sequence[str] = (ENGLISH,),
        ties: Ties | None = None,
    ) -> Loaded:
        """Return passages with their documents, and which of these words stand in each."""
        wanted = cast("list[Key]", list(keys))
        if not wanted:
            return Loaded([], {})
        terms: set[str] = set()
        for word in words:
            for language in languages:
                terms.update(meant(word, language))
        tying = self._tying(wanted, ties)
        in_memory = self._from_memory(wanted, terms)
        if in_memory is not None:
            rows, present = in_memory
            asked: Answers = []
            if tying is not None:
                asked = self._ask(tying.statement, is_last=self._writes is not None)
        else:
            rows, present, asked = self._fetched(wanted, terms, tying, is_last=bool(words))
        passages = []
        for key, (card, *passage) in zip(wanted, rows, strict=True):
            document = self._cards.document(card)
            passages.append((document, chunk(document, passage), present.of(words, languages, key)))
        tied: Tied = {}
        if tying is not None:
            tied = self._followed(tying, asked[-1])
        elif ties is not None:
            tied = self.tied(list(map(itemgetter(0), passages)), ties)
        return Loaded(passages, tied)

    def _tying(self, keys: Sequence[Key], ties: Ties | None) -> Tying | None:
        """Return how to ask what passages' documents are tied to, if these are known by now."""
        if ties is None:
            return None
        numbers = set(map(attrgetter("document"), keys))
        if not numbers <= self._numbered.keys():
            return None
        return Tying(self._scope, [self._numbered[number] for number in numbers], ties)

    def tied(self, documents: Sequence[Document], ties: Ties) -> Tied:
        """Return the other documents that ties join to these, directly or by way of others."""
        if not documents:
            return {}
        tying = Tying(self._scope, documents, ties)
        return self._followed(tying, self._ask(tying.statement)[0])

    def _followed(self, tying: Tying, rows: Rows) -> Tied:
        """Follow ties from what the first step has found, and read the first passages."""
        for _ in range(tying.ties.steps):
            tying.take(list(map(self._cards.document, map(itemgetter(0), rows))))
            if not tying.outermost:
                break
            (rows,) = self._ask(tying.statement)
        others = tying.others
        if not others:
            return {}
        passing = condition(tying.ties.where, "f")
        sql = _FIRST.format(condition=passing.sql)
        beginnings = {}
        for card, *values in self._read(sql, passing, ids=all_stored(others)):
            document = self._cards.document(card)
            beginnings[document.id] = chunk(document, values)
        tied = {}
        for document_id in sorted(others):
            tied[document_id] = (others[document_id], beginnings.get(document_id))
        return tied

    def _from_memory(
        self, keys: Sequence[Key], terms: Collection[str]
    ) -> tuple[Rows, _Standing] | None:
        """Return the rows of passages, and where terms stand, if all of it is in memory."""
        state = self._state
        if state is None or not state.knows(terms):
            return None
        rows = [state.passages.get(key) for key in keys]
        if None in rows:
            return None
        documents, positions = columns(keys, 2)
        in_pool = state.pool.positions(np.array(documents, dtype=np.int64))
        of_keys = state.pool.starts[in_pool] + np.array(positions)
        present = _Standing()
        for term in terms:
            for number in np.flatnonzero(state.having(term, of_keys)).tolist():
                present.note(term, keys[number])
        return cast("Rows", rows), present

    def _fetched(
        self, keys: Sequence[Key], terms: Collection[str], tying: Tying | None, *, is_last: bool
    ) -> tuple[Rows, _Standing, Answers]:
        """Read the rows of passages, where terms stand, and what their documents are tied to."""
        documents, positions = columns(keys, 2)
        values: dict[str, Any] = {
            "scope": self._scope,
            "documents": documents,
            "positions": positions,
        }
        statements: list[Statement] = [(_LOAD, values)]
        if terms:
            numbers = sorted(set(documents))
            statements.append(
                (_STANDING, {"scope": self._scope, "terms": sorted(terms), "documents": numbers})
            )
        if tying is not None:
            statements.append(tying.statement)
        # A search asks for words last: the end of the transaction then takes no turn of its own.
        is_last = is_last and self._writes is not None
        loaded, *others = self._ask(*statements, is_last=is_last)
        present = _Standing()
        if terms:
            present.add(others[0])
        if self._state is not None:
            for key, row in zip(keys, loaded, strict=True):
                self._state.passages.add(key, row)
        return loaded, present, others

    def get(self, names: Sequence[str]) -> Mapping[str, Document]:
        """Return documents by their ids or paths; where one name is both, the id counts."""
        sql = """
            SELECT path AS name, card, false AS is_id FROM documents
            WHERE scope = %(scope)s AND path = ANY(%(names)s)
            UNION ALL
            SELECT id, card, true FROM documents WHERE scope = %(scope)s AND id = ANY(%(names)s)
            ORDER BY is_id
            """
        name_of = {}
        for name in names:
            name_of[stored(name)] = name
        documents = {}
        for key, card, _ in self._read(sql, names=list(name_of)):
            name = name_of[key]
            documents[name] = self._cards.document(card)
        return documents

    def list(
        self,
        where: Filter,
        order: Order = "path",
        limit: int | None = None,
        offset: int = 0,
        now: datetime | None = None,
    ) -> Documents:
        """List documents; by age as seen from `now`, where those without a date come last."""
        passing = condition(where, "f")
        values: dict[str, Any] = {"limit": limit, "offset": offset}
        ordered = "d.path"
        if order != "path":
            if now is None:
                raise TypeError("an order by age needs the present moment")
            values |= {"latest": now + SKEW, "beginning": BEGINNING}
            direction = "DESC"
            if order == "oldest":
                direction = "ASC"
            ordered = _BY_AGE.format(direction=direction)
        sql = f"""
            SELECT d.card FROM documents d WHERE d.scope = %(scope)s AND {passing.sql}
            ORDER BY {ordered} LIMIT %(limit)s OFFSET %(offset)s
            """
        return [self._cards.document(card) for (card,) in self._read(sql, passing, **values)]

    def count(self, where: Filter) -> int:
        """Count documents."""
        passing = condition(where, "f")
        sql = f"SELECT count(*) FROM documents d WHERE d.scope = %(scope)s AND {passing.sql}"
        ((count,),) = self._read(sql, passing)
        return int(count)

    def facets(self, field: Facet, where: Filter) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        passing = condition(where, "f")
        value = f"d.{field}"
        if field == "tags":
            value = "unnest(d.tags)"
        sql = f"""
            SELECT value, count(*) FROM (
                SELECT {value} AS value FROM documents d
                WHERE d.scope = %(scope)s AND {passing.sql}
            ) v GROUP BY value ORDER BY count(*) DESC, value COLLATE "C"
            """
        return {restored(name): count for name, count in self._read(sql, passing)}

    def first_passages(
        self, document_ids: Sequence[str], room: int = 0
    ) -> dict[str, Sequence[Chunk]]:
        """Return the first passage of each document, and more up to so many characters."""
        sql = f"""
            SELECT a.place, d.card, {PASSAGE}
            FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS a(id, place)
            JOIN documents d ON d.scope = %(scope)s AND d.id = a.id
            CROSS JOIN LATERAL (
                SELECT b.*, coalesce(sum(octet_length(b.text)) OVER (
                    ORDER BY b.ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
                FROM passages b WHERE b.doc_id = d.doc_id AND b.scope = %(scope)s
            ) p
            WHERE p.ord = 0 OR (%(room)s > 0 AND p.before <= 4 * %(room)s::bigint)
            ORDER BY a.place, p.ord
            """
        beginnings: dict[str, list[Chunk]] = {document_id: [] for document_id in document_ids}
        sizes = dict.fromkeys(document_ids, 0)
        for position, card, *values in self._read(sql, ids=all_stored(document_ids), room=room):
            document_id = document_ids[position - 1]
            # Bytes are at most four times the characters, which are what counts.
            if beginnings[document_id] and sizes[document_id] > room:
                continue
            passage = chunk(self._cards.document(card), values)
            beginnings[document_id].append(passage)
            sizes[document_id] += len(passage.text)
        return dict(beginnings)

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map documents, or those among these, to their links to any of these names."""
        if not to:
            return {}
        sql = """
            SELECT d.card FROM documents d
            WHERE d.scope = %(scope)s AND d.doc_id IN (
                SELECT l.doc_id FROM links l
                WHERE l.scope = %(scope)s AND l.target = ANY (%(targets)s)
            ) AND (%(among)s::text[] IS NULL OR d.id = ANY (%(among)s::text[]))
            ORDER BY d.id
            """
        chosen = None
        if among is not None:
            chosen = all_stored(among)
        targets = {link_key(name) for name in to}
        pointing: dict[str, tuple[Link, ...]] = {}
        for (card,) in self._read(sql, targets=link_targets(to), among=chosen):
            document = self._cards.document(card)
            own = [link for link in document.links if link_key(link.target) in targets]
            pointing[document.id] = tuple(own)
        if among is None:
            return pointing
        return {name: pointing[name] for name in among if name in pointing}

    def similar(
        self, where: Filter, threshold: float, limit: int | None = None
    ) -> Sequence[tuple[float, str, str]]:
        """Return pairs of document ids whose mean vectors are this alike, the most alike first."""
        passing = condition(where, "f")
        sql = f"""
            SELECT d.card, vector_send(s.total)
            FROM documents d CROSS JOIN LATERAL (
                SELECT sum(v.emb::vector) AS total FROM passages p
                JOIN vectors v ON v.doc_id = p.doc_id AND v.slot = p.slot
                WHERE p.doc_id = d.doc_id AND p.scope = %(scope)s AND v.scope = %(scope)s
            ) s
            WHERE d.scope = %(scope)s AND {passing.sql} AND s.total IS NOT NULL
            ORDER BY d.path
            """
        ids = []
        sums = []
        for card, total in self._read(sql, passing):
            ids.append(self._cards.document(card).id)
            sums.append(np.frombuffer(total, dtype=">f4", offset=4).astype(np.float32))
        if not ids:
            return []
        matrix = np.stack(sums)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        means = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        pairs = similar_pairs(means.astype(np.float32), threshold)[:limit]
        return [(similarity, ids[first], ids[second]) for similarity, first, second in pairs]

    def _read(self, sql: str, passing: Condition | None = None, **values: object) -> Rows:
        given: dict[str, Any] = {"scope": self._scope, **values}
        if passing is not None:
            given |= passing.values
        return self._ask((sql, given))[0]

    def _ask(self, *statements: Statement, is_last: bool = False) -> Answers:
        """Ask in the same state as before, also after what was thought to be the last turn."""
        if self._is_ended:
            ((row,),) = self._turns.ask((TOTALS, {"scope": self._scope}))
            if Totals.of(row[0]).counts["writes"] != self._writes:
                raise UnavailableError("the index has changed while it was read", HINT_AGAIN)
            self._is_ended = False
        answers = self._turns.ask(*statements, is_last=is_last)
        self._is_ended = is_last
        return answers


class _Counting:
    """Asks how many documents pass a filter, in the same turn as the first other question."""

    def __init__(
        self, ask: Callable[..., Answers], scope: int, passing: Condition, most: int
    ) -> None:
        self._ask = ask
        self._statement: Statement = (
            _PASSING.format(condition=passing.sql),
            {"scope": scope, "most": most, **passing.values},
        )
        self._is_asked = not most
        self._count = 0

    def ask(self, *statements: Statement) -> Answers:
        """Ask statements, and for the count where it is not known yet."""
        if self._is_asked:
            return self._ask(*statements)
        self._is_asked = True
        *answers, ((count,),) = self._ask(*statements, self._statement)
        self._count = int(count)
        return answers

    @property
    def result(self) -> int:
        """The count; a search that had nothing to ask has not asked for it either."""
        if not self._is_asked:
            self.ask()
        return self._count


class _Standing:
    """Tells which terms stand in which passages."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, int], set[int]] = {}

    def add(self, rows: Rows) -> None:
        """Note the postings of rows."""
        for term, document, payload in rows:
            positions = np.frombuffer(payload, dtype=ENTRY)["ord"].tolist()
            self._positions[term, document] = set(positions)

    def note(self, term: str, key: Key) -> None:
        """Note that a term stands in a passage."""
        self._positions.setdefault((term, key.document), set()).add(key.ord)

    def of(self, words: Sequence[str], languages: Sequence[str], key: Key) -> tuple[str, ...]:
        """Return those of the words that stand in a passage, in any of the languages."""
        standing = []
        for word in words:
            if any(self._has_all(key, meant(word, language)) for language in languages):
                standing.append(word)
        return tuple(standing)

    def _has_all(self, key: Key, terms: Collection[str]) -> bool:
        """Tell whether a passage has every one of these terms, and there are any."""
        for term in terms:
            positions = self._positions.get((term, key.document), ())
            if key.ord not in positions and DOCUMENT not in positions:
                return False
        return bool(terms)


def chunk(document: Document, values: Sequence[Any]) -> Chunk:
    """Return the passage of a row."""
    position, start, end, digest, headings, text = values
    return Chunk(
        f"{document.id}#{position}",
        document.id,
        tuple(json.loads(headings)),
        decoded(text),
        start,
        end,
        digest,
    )


_LOAD = f"""
SELECT d.card, {PASSAGE}
FROM unnest(%(documents)s::bigint[], %(positions)s::int[])
    WITH ORDINALITY AS a(document, position, place)
JOIN passages p ON p.doc_id = a.document AND p.ord = a.position AND p.scope = %(scope)s
JOIN documents d ON d.doc_id = a.document AND d.scope = %(scope)s
ORDER BY a.place
"""
_NAMED = """
SELECT n.name, d.doc_id, d.card
FROM names n JOIN documents d ON d.doc_id = n.doc_id
WHERE n.scope = %(scope)s AND n.name = ANY (%(names)s)
    AND d.scope = %(scope)s AND d.passages > 0 AND {condition}
"""
_FIRST = f"""
SELECT d.card, {PASSAGE}
FROM documents d JOIN passages p ON p.doc_id = d.doc_id AND p.ord = 0 AND p.scope = %(scope)s
WHERE d.scope = %(scope)s AND d.id = ANY (%(ids)s) AND {{condition}}
"""
_PASSING = """
SELECT count(*) FROM (
    SELECT 1 FROM documents d WHERE d.scope = %(scope)s AND {condition} LIMIT %(most)s
) few
"""
_STANDING = """
SELECT p.term, p.doc_id, p.payload FROM postings p
WHERE p.scope = %(scope)s AND p.term = ANY (%(terms)s::text[])
    AND p.doc_id = ANY (%(documents)s::bigint[])
"""
# As in search/newest.py: a date in the future says nothing.
_BY_AGE = """
(d.created_at IS NOT NULL AND d.created_at <= %(latest)s) DESC,
coalesce(CASE WHEN d.created_at <= %(latest)s THEN d.created_at ELSE d.modified_at END,
    %(beginning)s) {direction},
coalesce(d.modified_at, %(beginning)s) {direction},
d.path
"""
