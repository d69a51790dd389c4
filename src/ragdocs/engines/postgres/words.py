"""Searching by words: which documents may have the best passages, proven by bounds.

A posting says of a term what it is worth at most in any passage of a document. Their weighed sum
is a bound of every score in the document, so the documents are fetched in the order of their
bounds, and once the k-th score is above the next bound nothing better can follow. A document that
has none but common terms is not looked at: its bound is theirs, and if that is above the k-th
score, all documents are asked for once more without any cut.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.filters import Condition
from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.pool import Fetched, Payload
from ragdocs.engines.postgres.rows import ROUNDING
from ragdocs.engines.postgres.statistics import COUNTED, TOTALS, Totals
from ragdocs.protocols import ProbeVector
from ragdocs.search import bm25
from ragdocs.system.postgres.columns import append, columns, empty_columns
from ragdocs.system.postgres.database import Rows, Statement
from ragdocs.text.terms import is_compound

Numbers = npt.NDArray[np.int64]
Bounds = npt.NDArray[np.float64]

# Bounds down to this share of the last document's that is fetched first come along with it; where
# they do not suffice, the database is asked once more.
LISTED_SHARE = 0.5
# Documents fetched first, for each passage that is wanted and beyond that.
FETCHED_SHARE = 1.5
FETCHED_MORE = 50

# A term in more passages than this is cut: of its postings only those in titles and names are read,
# and all bounds grow by what it is worth at most. The commonest are cut first, up to this share of
# what all terms are worth, because loose bounds rule out little.
COMMON = 5_000
CUT_SHARE = 0.03

# Code points that are no characters by themselves.
HALF_CHARACTERS = range(0xD800, 0xE000)

_BIG = np.dtype(">i8")
_SIZE = np.dtype(">i4")
_BOUND = np.dtype(">f8")
_HEAD = np.dtype([("number", ">i8"), ("passes", ">i4"), ("lengths", ">i4"), ("card", ">i4")])
_PASSAGES = COUNTED.index("passages") + 1
_LENGTHS = COUNTED.index(FIELDS[0])


NOTHING_FETCHED = Fetched(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), [], b""
)


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The terms of one probe in its order, how often it has them, and their stems elsewhere."""

    name: str
    terms: Mapping[str, int]
    # The stems of the same words in other languages.
    stems: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def forms(self, term: str) -> tuple[str, ...]:
        """Return a term and the stems of the same word in other languages."""
        return term, *self.stems.get(term, ())


@dataclass(frozen=True, slots=True)
class Listing:
    """Documents and their bounds, all those whose bound is at least `edge`."""

    documents: Numbers
    bounds: Bounds
    edge: float

    def at_least(self, score: float) -> dict[int, float]:
        """Return the documents that may have a passage with this score, and their bounds."""
        may_have = self.bounds >= score
        documents = self.documents[may_have].tolist()
        return dict(zip(documents, self.bounds[may_have].tolist(), strict=True))

    def is_complete(self, score: float) -> bool:
        """Tell whether all documents that may have this score are listed or fetched."""
        return self.edge == 0 or self.edge <= score


@dataclass(slots=True)
class FirstLook:
    """What the first turn of a search by words returned."""

    totals: Totals
    queries: dict[str, list[bm25.QueryTerm]] = field(default_factory=dict)
    documents: Fetched = NOTHING_FETCHED
    # Cards by number of the document, if they were asked for.
    cards: dict[int, bytes] = field(default_factory=dict)
    payloads: dict[str, Payload] = field(default_factory=dict)
    listings: dict[tuple[int, int], Listing] = field(default_factory=dict)


def word_queries(
    probes: Sequence[ProbeVector], rarest: Callable[[WordQuery], dict[str, int]]
) -> list[WordQuery]:
    """Return the terms of the probes that have words; of very many, the rarest."""
    queries = []
    for probe in probes:
        if not probe.text:
            continue
        terms = bm25.query_terms(probe.text, probe.languages)
        query = WordQuery(probe.name, terms, bm25.other_stems(probe.text, probe.languages))
        if len(terms) > bm25.MOST_TERMS:
            query = replace(query, terms=rarest(query))
        queries.append(query)
    return queries


def rarest(query: WordQuery, frequencies: Mapping[str, int], count: int) -> dict[str, int]:
    """Choose the terms that a query is scored by, in the order in which it has them."""
    together = {}
    for term in query.terms:
        frequency = sum(max(0, frequencies[form]) for form in query.forms(term))
        together[term] = min(count, frequency)
    common = []
    unknown = []
    for term, frequency in together.items():
        if frequency:
            common.append(term)
        else:
            unknown.append(term)

    def weight(term: str) -> float:
        emphasis = bm25.emphasis(query.terms[term], len(query.terms))
        return bm25.rarity(count, together[term]) * _share(term) * emphasis

    chosen = sorted(common, key=weight, reverse=True)[: bm25.MOST_TERMS]
    chosen += unknown[: bm25.MOST_TERMS - len(chosen)]
    wanted = set(chosen)
    return {term: times for term, times in query.terms.items() if term in wanted}


def first_look(
    scope: int,
    queries: Sequence[WordQuery],
    conditions: Sequence[Condition],
    k: int,
    *,
    with_cards: bool,
) -> Statement:
    """Return the statement that weighs the terms, lists bounds and fetches the best documents."""
    values: dict[str, Any] = {"scope": scope, "first": int(k * FETCHED_SHARE) + FETCHED_MORE}
    values |= {"listed": LISTED_SHARE, "common": COMMON, "cut": CUT_SHARE * (bm25.K1 + 1)}
    values |= _query_columns(queries)
    for condition in conditions:
        values |= condition.values
    return _first_look(len(queries), tuple(conditions), with_cards), values


@lru_cache(maxsize=64)
def _first_look(probes: int, conditions: Sequence[Condition], with_cards: bool) -> str:
    parts = [_SCALE, _WEIGHED]
    tops = []
    for probe in range(probes):
        parts.append(_bounds(probe))
        for number, condition in enumerate(conditions):
            parts.append(_top(probe, number, condition))
            tops.append(f"top{probe}_{number}")
    taken = " UNION ".join(f"SELECT doc_id FROM {top}" for top in tops)
    parts.append(f"chosen AS MATERIALIZED ({taken})")
    card = "''::bytea"
    if with_cards:
        card = "d.card"
    selects = [_SELECT_TOTALS, _SELECT_TERMS, _SELECT_NEAR, _SELECT_PAYLOADS]
    selects.append(_SELECT_DOCUMENTS.format(flags=flags(conditions), card=card))
    for probe in range(probes):
        for number, condition in enumerate(conditions):
            selects.append(_list(probe, number, condition))
    return f"WITH {', '.join(parts)} {' UNION ALL '.join(selects)}"


def documents_above(
    scope: int, query: Sequence[tuple[str, float, float]], condition: Condition, score: float
) -> Statement:
    """Return the statement for all documents that may have a score, by terms and their factors."""
    values: dict[str, Any] = {"scope": scope, "score": score, **condition.values}
    values["terms"], values["factors"], values["shares"] = columns(query, 3)
    given = (
        "q AS MATERIALIZED (SELECT 0 AS probe, term, factor * s.body AS plain,"
        " factor * s.every AS other, share, false AS is_cut FROM scale s,"
        " unnest(%(terms)s::text[], %(factors)s::float8[], %(shares)s::float8[])"
        " AS u(term, factor, share))"
    )
    sql = (
        f"WITH {_SCALE}, {given}, {_bounds(0)} SELECT doc_id, bound FROM bounds0 b"
        f" WHERE bound >= %(score)s AND {passes(condition, 'b.doc_id')}"
    )
    return sql, values


def frequencies_of(scope: int, terms: Sequence[str]) -> Statement:
    """Return the statement for the number of passages that have each term."""
    sql = f"SELECT a.term, {_FREQUENCY} FROM unnest(%(terms)s::text[]) AS a(term)"
    return sql, {"scope": scope, "terms": list(terms)}


def resembling(scope: int, terms: Sequence[str]) -> Statement:
    """Return the statement for the spellings that resemble terms which no passage has."""
    values: dict[str, Any] = {"scope": scope, "terms": list(terms)}
    values["patterns"] = [_spellings(term) for term in terms]
    values["uppers"] = [_after(term[0]) for term in terms]
    sql = f"""
        SELECT u.term, n.term
        FROM unnest(%(terms)s::text[], %(patterns)s::text[], %(uppers)s::text[])
            AS u(term, pattern, upper)
        CROSS JOIN LATERAL ({_RESEMBLING}) n
        """
    return sql, values


def payloads(chosen: str) -> str:
    """Return the statement for the postings of terms in chosen documents."""
    return f"""
        WITH q AS (SELECT term FROM unnest(%(terms)s::text[]) AS u(term)),
        chosen AS MATERIALIZED ({chosen})
        {_SELECT_PAYLOADS}
        """


def read_payloads(rows: Rows) -> dict[str, Payload]:
    """Return postings by term."""
    by_term = {}
    for _, _, _, term, documents, sizes, entries, _ in rows:
        by_term[term] = Payload(
            np.frombuffer(documents, _BIG), np.frombuffer(sizes, _SIZE), entries
        )
    return by_term


def as_fetched(rows: Sequence[tuple[int, int, str, bytes]]) -> Fetched:
    """Return documents given as number, filters that they pass, path and lengths, by path."""
    numbers, passing, paths, lengths = columns(rows, 4)
    sizes = [len(codes) // len(FIELDS) for codes in lengths]
    return Fetched(
        np.array(numbers, dtype=np.int64),
        np.array(passing, dtype=np.int64),
        np.array(sizes, dtype=np.int64),
        [path.encode() for path in paths],
        b"".join(lengths),
    )


def array(numbers: Iterable[int]) -> str:
    """Return numbers as an array is written, which is quicker than a list of them."""
    return f"{{{','.join(map(str, numbers))}}}"


def _read_documents(row: tuple[Any, ...], look: FirstLook) -> None:
    _, _, _, _, heads, lengths, paths, cards = row
    head = np.frombuffer(heads, _HEAD)
    sizes = head["lengths"].astype(np.int64) // len(FIELDS)
    numbers = head["number"].astype(np.int64)
    passes = head["passes"].astype(np.int64)
    look.documents = Fetched(numbers, passes, sizes, paths.split(b"\0"), lengths)
    if cards:
        ends = np.cumsum(head["card"]).tolist()
        start = 0
        for number, end in zip(numbers.tolist(), ends, strict=True):
            look.cards[number] = cards[start:end]
            start = end


def read_first_look(rows: Rows, queries: Sequence[WordQuery]) -> FirstLook:
    """Take apart what the first statement returned."""
    by_kind: dict[int, Rows] = {kind: [] for kind in range(6)}
    for row in rows:
        by_kind[row[0]].append(row)
    totals = _read_totals(by_kind[TOTALS_ROW][0][3])
    look = FirstLook(totals)
    for row in by_kind[DOCUMENT_ROW]:
        if row[4]:
            _read_documents(row, look)
    look.payloads = read_payloads(by_kind[PAYLOAD_ROW])
    for _, probe, number, edge, documents, bounds, _, _ in by_kind[LIST_ROW]:
        look.listings[probe, number] = Listing(
            np.frombuffer(documents or b"", _BIG), np.frombuffer(bounds or b"", _BOUND), float(edge)
        )
    frequencies = {row[3]: row[2] for row in by_kind[TERM_ROW]}
    # Two probes may have the same misspelled word.
    near: dict[str, dict[str, None]] = {}
    for _, _, _, term, spelling, _, _, _ in by_kind[NEAR_ROW]:
        near.setdefault(term, {})[spelling.decode()] = None
    for query in queries:
        look.queries[query.name] = bm25.weigh(
            query.terms,
            frequencies,
            totals.passages,
            lambda term: list(near.get(term, ())),
            query.stems,
        )
    return look


def _read_totals(counts: str | None) -> Totals:
    if not counts:
        return Totals.of(None)
    return Totals.of([int(count) for count in counts.split(",")])


def _query_columns(queries: Sequence[WordQuery]) -> dict[str, list[Any]]:
    query_columns = empty_columns(
        ("probes", "terms", "shares", "emphases", "namings", "patterns", "uppers", "words")
    )
    form_number = 0
    for number, query in enumerate(queries):
        naming = bm25.naming(len(query.terms))
        for term, times in query.terms.items():
            emphasis = bm25.emphasis(times, len(query.terms))
            # The number of its first form stands for a word.
            word = form_number + 1
            for form in query.forms(term):
                form_number += 1
                pattern = None
                if form_number == word and bm25.may_be_typo(term):
                    pattern = _spellings(term)
                weights = (_share(term), emphasis, naming)
                append(query_columns, (number, form, *weights, pattern, _after(form[0]), word))
    return query_columns


def _share(term: str) -> float:
    """Return how much a term counts beside one that is no compound."""
    if is_compound(term):
        return bm25.COMPOUND_WEIGHT
    return 1.0


@lru_cache(maxsize=4096)
def _spellings(term: str) -> str:
    """Return a pattern of what is one edit or one swap away, with the same first letter."""
    ways = []
    for position in range(1, len(term) + 1):
        before = term[:position]
        ways.append(f"{before}.{term[position:]}")
        if position < len(term):
            ways.append(f"{before}.?{term[position + 1 :]}")
        if position < len(term) - 1:
            ways.append(f"{before}{term[position + 1]}{term[position]}{term[position + 2 :]}")
    return f"^(?:{'|'.join(ways)})$"


def _after(letter: str) -> str:
    """Return the next character, which is above all texts that begin with this one."""
    following = ord(letter) + 1
    if following in HALF_CHARACTERS:
        following = HALF_CHARACTERS.stop
    return chr(min(following, sys.maxunicode))


def _bounds(probe: int) -> str:
    return f"""
    cut{probe} AS MATERIALIZED (
        SELECT coalesce(sum(q.other), 0) * {ROUNDING} AS bound
        FROM q WHERE q.probe = {probe} AND q.is_cut
    ),
    bounds{probe} AS MATERIALIZED (
        SELECT doc_id, sum(bound) + (SELECT bound FROM cut{probe}) AS bound
        FROM (
            SELECT p.doc_id, CASE WHEN p.named > 0 THEN q.other ELSE q.plain END * p.best
                + q.share * p.named AS bound
            FROM q JOIN postings p ON p.scope = %(scope)s AND p.term = q.term
            WHERE q.probe = {probe} AND NOT q.is_cut
            UNION ALL
            SELECT p.doc_id, q.share * p.named
            FROM q JOIN postings p ON p.scope = %(scope)s AND p.term = q.term
                AND p.named > '1e-8'::real
            WHERE q.probe = {probe} AND q.is_cut
        ) parts
        GROUP BY doc_id
    )"""


def _top(probe: int, number: int, condition: Condition) -> str:
    return f"""
    top{probe}_{number} AS MATERIALIZED (
        SELECT b.doc_id, b.bound FROM bounds{probe} b WHERE {passes(condition, "b.doc_id")}
        ORDER BY b.bound DESC LIMIT %(first)s
    ),
    edge{probe}_{number} AS MATERIALIZED (
        SELECT greatest((SELECT bound FROM cut{probe}), CASE WHEN count(*) < %(first)s THEN 0
                    ELSE %(listed)s::float8 * min(bound) END) AS bound
        FROM top{probe}_{number}
    )"""


def _list(probe: int, number: int, condition: Condition) -> str:
    """Return the bounds of the documents that follow those that are fetched."""
    return f"""
    SELECT {LIST_ROW}, {probe}, {number}, max(e.bound)::text,
        string_agg(int8send(b.doc_id), ''), string_agg(float8send(b.bound), ''), NULL, NULL
    FROM edge{probe}_{number} e LEFT JOIN bounds{probe} b
        ON e.bound > 0 AND b.bound >= e.bound AND {passes(condition, "b.doc_id")}
    """


def passes(condition: Condition, column: str) -> str:
    """Return the condition on the number of a document."""
    if condition.is_open:
        return "true"
    documents = "SELECT d.doc_id FROM documents d WHERE d.scope = %(scope)s"
    if condition.excludes:
        excluded = f"{documents} AND ({condition.excludes})"
        # Mostly there are none, which is found out once and not for every row.
        return f"((SELECT NOT EXISTS ({excluded})) OR {column} NOT IN ({excluded}))"
    return f"{column} IN ({documents} AND {condition.sql})"


def flags(conditions: Sequence[Condition]) -> str:
    """Return an expression with one bit for each condition that a document passes."""
    bits = []
    for number, condition in enumerate(conditions):
        bits.append(f"((({condition.sql}) IS TRUE)::int << {number})")
    return " | ".join(bits)


DOCUMENT_ROW, PAYLOAD_ROW, LIST_ROW, TOTALS_ROW, TERM_ROW, NEAR_ROW = range(6)

# How much larger bounds must be because average lengths have grown: of terms in bodies alone, and
# of all others.
_SCALE = f"""
totals AS MATERIALIZED ({TOTALS}),
scale AS MATERIALIZED (
    SELECT coalesce(max(ratio) FILTER (WHERE place = 1), 1) AS body,
        coalesce(max(ratio), 1) AS every
    FROM (
        SELECT place, greatest(1,
            (greatest(1, t.counts[{_LENGTHS} + place]::float8 / greatest(1, t.counts[{_PASSAGES}]))
             + padding) / (reference + padding)) AS ratio
        FROM totals t(counts),
            (SELECT reference AS stored FROM indexes WHERE scope = %(scope)s) i,
            unnest(i.stored) WITH ORDINALITY AS r(reference, place),
            LATERAL (SELECT CASE WHEN place = 1 THEN {bm25.EQUAL_WORDS} ELSE 0 END) AS p(padding)
    ) ratios
)"""

_FREQUENCY = """(
    coalesce((SELECT t.passages FROM terms t WHERE t.scope = %(scope)s AND t.term = a.term), 0)
    + coalesce((SELECT sum(y.passages) FROM term_tallies y
                WHERE y.scope = %(scope)s AND y.term = a.term), 0)
)::bigint"""


def _alike(table: str) -> str:
    return f"""
    SELECT t.term, t.passages, t.bodies FROM {table} t
    WHERE t.scope = %(scope)s AND t.term >= left(u.term, 1) AND t.term < u.upper
        AND length(t.term) BETWEEN length(u.term) - 1 AND length(u.term) + 1
        AND t.term ~ u.pattern"""


_RESEMBLING = f"""
SELECT alike.term FROM ({_alike("terms")} UNION ALL {_alike("term_tallies")}) alike
GROUP BY alike.term HAVING sum(alike.passages) > 0 AND sum(alike.bodies) > 0
ORDER BY sum(alike.passages) DESC, alike.term LIMIT {bm25.MOST_SPELLINGS}
"""

# The same arithmetic as in search/bm25.py, which weighs the terms again; here it only bounds.
_WEIGHED = f"""
known AS MATERIALIZED (
    SELECT k.*, sum(greatest(frequency, 0)) OVER (PARTITION BY word)::bigint AS together
    FROM (
        SELECT a.*, {_FREQUENCY} AS frequency
        FROM unnest(%(probes)s::int[], %(terms)s::text[], %(shares)s::float8[],
                    %(emphases)s::float8[], %(namings)s::float8[], %(patterns)s::text[],
                    %(uppers)s::text[], %(words)s::int[]) WITH ORDINALITY
            AS a(probe, term, share, emphasis, naming, pattern, upper, word, place)
    ) k
),
near AS MATERIALIZED (
    SELECT u.probe, u.place, u.term, n.term AS spelling
    FROM (
        SELECT k.*, row_number() OVER (PARTITION BY k.probe ORDER BY k.place) AS nth
        FROM known k WHERE k.together <= 0 AND k.place = k.word
    ) u CROSS JOIN LATERAL ({_RESEMBLING}) n
    WHERE u.nth <= {bm25.MOST_TYPOS} AND u.pattern IS NOT NULL
),
weighed AS MATERIALIZED (
    SELECT k.*, emphasis * CASE WHEN together > 0
        THEN share * ln(1 + (passages - least(together, passages) + 0.5)
                        / (least(together, passages) + 0.5))
        ELSE ln(1 + (passages - 0.5) / 1.5) END AS weight
    FROM known k,
        (SELECT coalesce(max(t.counts[{_PASSAGES}]), 0)::float8 FROM totals t(counts)) c(passages)
),
whole AS MATERIALIZED (
    SELECT probe, {bm25.K1 + 1} / nullif(sum(weight), 0) AS unit
    FROM weighed WHERE place = word GROUP BY probe
),
worth AS MATERIALIZED (
    SELECT x.probe, x.term, x.frequency, x.weight * x.share * unit * s.body AS plain,
        x.weight * x.share * unit * s.every AS other, x.share * x.naming AS share
    FROM (
        SELECT probe, term, weight, naming, 1.0::float8 AS share, frequency
        FROM weighed WHERE frequency > 0
        UNION ALL
        SELECT n.probe, n.spelling, w.weight, w.naming, {bm25.TYPO_WEIGHT}, 0
        FROM near n JOIN weighed w ON w.place = n.place
    ) x JOIN whole USING (probe), scale s
),
q AS MATERIALIZED (
    SELECT probe, term, plain, other, share, frequency > %(common)s
        AND sum(other) OVER (PARTITION BY probe ORDER BY frequency DESC, term) <= %(cut)s::float8
        AS is_cut
    FROM worth
)"""

_SELECT_TOTALS = f"""
SELECT {TOTALS_ROW}, NULL::bigint, NULL::bigint, array_to_string(t.counts, ','),
    NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea
FROM totals t(counts)
"""
_SELECT_TERMS = f"""
SELECT {TERM_ROW}, NULL, frequency, term, NULL, NULL, NULL, NULL FROM known
"""
_SELECT_NEAR = f"""
SELECT {NEAR_ROW}, NULL, NULL, term, convert_to(spelling, 'UTF8'), NULL, NULL, NULL FROM near
"""
_SELECT_DOCUMENTS = """
SELECT 0, NULL, NULL, NULL,
    string_agg(int8send(doc_id) || int4send(passes) || int4send(octet_length(lengths))
        || int4send(octet_length(card)), ''),
    string_agg(lengths, ''), string_agg(convert_to(path, 'UTF8'), '\\x00'), string_agg(card, '')
FROM (
    SELECT d.doc_id, {flags} AS passes, d.lengths, d.path, {card} AS card
    FROM chosen c JOIN documents d ON d.doc_id = c.doc_id ORDER BY d.path
) ordered
"""
# The array and OFFSET 0 make it look up each document in the index of the term; joined otherwise,
# all postings of a common term would be read.
_SELECT_PAYLOADS = f"""
SELECT {PAYLOAD_ROW}, NULL::bigint, NULL::bigint, t.term, string_agg(int8send(p.doc_id), ''),
    string_agg(int4send(octet_length(p.payload)), ''), string_agg(p.payload, ''), NULL::bytea
FROM (SELECT DISTINCT term FROM q) t CROSS JOIN LATERAL (
    SELECT p.doc_id, p.payload FROM postings p
    WHERE p.scope = %(scope)s AND p.term = t.term
        AND p.doc_id = ANY ((SELECT array_agg(doc_id) FROM chosen)::bigint[])
    OFFSET 0
) p
GROUP BY t.term
"""
