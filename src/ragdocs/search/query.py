"""One search, step by step: candidates, scores, lifts, calibration, ranking, hits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

import numpy as np

from ragdocs.lanes import Ranking
from ragdocs.protocols import Candidates, PassageKey, ProbeVector, SignalName, Snapshot
from ragdocs.search import calibration, rank, score
from ragdocs.search.calibration import Gauge
from ragdocs.search.score import Layout, Scores
from ragdocs.system.names import link_key
from ragdocs.text import times
from ragdocs.types import Chunk, Document, Filter, Findings, Hit, Link, Query, Signal

# Candidates of each source: enough that caps, boosts and links can change the order below the cut.
LEAST_CANDIDATES = 50
# The best documents, whose links are followed.
SEEDS = 10
# Documents that only a link brings in.
STRANGERS = 10
# Characters of a query whose words are looked for in the hits.
LONGEST_SHOWN = 2000
MARKS = ".,;:!?\"'()"


@dataclass(frozen=True, slots=True)
class Plan:
    """A query made ready: its vectors, how signals are weighed, and the time that it names."""

    query: Query
    probes: tuple[ProbeVector, ...]
    ranking: Ranking
    now: datetime
    period: times.Span | None = None

    @property
    def text(self) -> str:
        """The texts of all probes."""
        return " ".join(probe.text for probe in self.query.probes)

    @property
    def pool(self) -> int:
        """The number of candidates that each source gives."""
        return max(LEAST_CANDIDATES, self.query.limit * 5 // max(1, len(self.probes)))

    @property
    def filters(self) -> list[Filter]:
        """The query's filter, and narrower ones for what a boost may lift.

        Recent documents must not be lost among many other candidates.
        """
        where = self.query.where
        filters = [where]
        recent = rank.youngest(self.ranking, self.now)
        if recent is not None:
            filters.append(replace(where, since=max(recent, where.since or recent)))
        if self.period is not None:
            begin, end = self.period
            since = max(begin, where.since or begin)
            until = min(end, where.until or end)
            filters.append(replace(where, since=since, until=until))
        return filters


@dataclass(frozen=True, slots=True)
class Scored:
    """Passages in the running, one column each, and the ranks that sources gave them."""

    keys: Sequence[PassageKey]
    documents: Sequence[Document]
    # The position of each passage in its document.
    positions: Sequence[int]
    scores: Scores
    ranks: Mapping[SignalName, Mapping[int, int]]

    def best_first(self) -> list[int]:
        """Return the columns by score; equal ones go by path and position."""
        labels = []
        for column, total in enumerate(self.scores.totals.tolist()):
            labels.append((-total, self.documents[column].path, self.positions[column], column))
        labels.sort()
        return [column for _, _, _, column in labels]

    def strongest_first(self, strengths: Mapping[int, float]) -> list[int]:
        """Return these columns by strength; equal ones go by path and position."""
        return sorted(strengths, key=lambda column: (-strengths[column], *self._at(column)))

    def _at(self, column: int) -> tuple[str, int]:
        return self.documents[column].path, self.positions[column]

    def signals(self, column: int) -> tuple[Signal, ...]:
        """Return what each signal adds to the score of a passage."""
        raw = self.scores.raw[:, column].tolist()
        shares = self.scores.shares[:, column].tolist()
        signals = []
        for name, measured, share in zip(self.scores.signals, raw, shares, strict=True):
            if share > 0:
                place = self.ranks.get(name, {}).get(column, 0)
                signals.append(Signal(*name, place, measured, share))
        return tuple(signals)


def search(plan: Plan, snapshot: Snapshot, gauge: Gauge) -> Findings:
    """Find candidates, score, lift and rank them, and load those that are shown."""
    started = time.perf_counter()
    candidates = snapshot.candidates(plan.probes, plan.filters, plan.pool)
    scored = score_candidates(plan, candidates)
    if plan.period is not None:
        scored = _lift_period(scored, plan.period, plan.ranking.time_weight)
    if plan.ranking.graph_weight:
        scored = _lift_linked(scored, snapshot, plan)
    shown = score.calibrated(scored.scores, gauge.show, plan.query.probes)
    hits, omitted = _hits(plan, replace(scored, scores=shown), snapshot)
    elapsed = time.perf_counter() - started
    ranking = elapsed - sum(candidates.seconds.values())
    seconds = {**candidates.seconds, "ranking": ranking}
    return Findings(hits=hits, omitted=omitted, seconds=seconds)


def score_candidates(plan: Plan, candidates: Candidates) -> Scored:
    """Score all passages of the documents, and keep those that some source found itself."""
    columns = len(candidates.keys)
    probes = plan.query.probes
    scores = score.weighed(candidates.raw, columns, probes, candidates.term_counts, plan.ranking)
    layout = Layout(candidates.starts, columns, candidates.lone_share)
    if columns:
        measured = score.by_source(scores, probes)
        scores = score.with_context(scores, layout, plan.ranking)
        scores = score.with_support(scores, layout, measured, plan.ranking)
    ranks = _ranks(candidates)
    chosen = list(dict.fromkeys(column for found in ranks.values() for column in found))
    new_column = {column: number for number, column in enumerate(chosen)}
    owners = np.searchsorted(candidates.starts, chosen, side="right") - 1
    positions = np.array(chosen, dtype=np.int64) - candidates.starts[owners]
    return Scored(
        keys=[candidates.keys[column] for column in chosen],
        documents=[candidates.documents[owner] for owner in owners.tolist()],
        positions=positions.tolist(),
        scores=scores.at(chosen),
        ranks={signal: _renumbered(found, new_column) for signal, found in ranks.items()},
    )


def _ranks(candidates: Candidates) -> dict[SignalName, dict[int, int]]:
    """Return the rank of each column that a source found and says something for."""
    ranks: dict[SignalName, dict[int, int]] = {}
    for signal, found in candidates.found.items():
        # Elements of a list are read faster than those of an array.
        raw = candidates.raw[signal].tolist()
        ranks[signal] = {}
        for place, column in enumerate(found, start=1):
            if raw[column] > 0:
                ranks[signal][column] = place
    return ranks


def _renumbered(found: Mapping[int, int], new_column: Mapping[int, int]) -> dict[int, int]:
    return {new_column[column]: place for column, place in found.items()}


def _lift_period(scored: Scored, period: times.Span, weight: float) -> Scored:
    """Lift documents written in the time that the query names."""
    begin, end = period
    strengths: dict[int, float] = {}
    for column, document in enumerate(scored.documents):
        if document.created_at and begin <= document.created_at < end:
            strengths[column] = 1.0
    return _lift(scored, "time", strengths, weight)


def _lift_linked(scored: Scored, snapshot: Snapshot, plan: Plan) -> Scored:
    """Lift what the best documents link to; what was not in the running joins it."""
    best: dict[str, int] = {}
    for column in scored.best_first():
        best.setdefault(scored.documents[column].id, column)
    seeds = list(best)[:SEEDS]
    totals = scored.scores.totals.tolist()
    strength: dict[str, float] = {}
    targets: dict[str, tuple[Document, PassageKey]] = {}
    neighbours = snapshot.neighbours(seeds, plan.query.where)
    for seed in seeds:
        lent = min(1.0, totals[best[seed]])
        for document, key in neighbours.get(seed, ()):
            already = strength.get(document.id, 0.0)
            # Two that point at the same say more than one, but never more than all.
            strength[document.id] = already + (1.0 - already) * lent
            targets[document.id] = (document, key)
    strangers = [target for target in targets if target not in best]
    strangers.sort(key=lambda target: (-strength[target], targets[target][0].path))
    strangers = strangers[:STRANGERS]
    strengths = {best[target]: strength[target] for target in targets if target in best}
    for column, target in enumerate(strangers, start=len(scored.keys)):
        strengths[column] = strength[target]
    scored = _joined(scored, [targets[target] for target in strangers])
    return _lift(scored, "graph", strengths, plan.ranking.graph_weight)


def _joined(scored: Scored, strangers: Sequence[tuple[Document, PassageKey]]) -> Scored:
    """Add the first passages of documents that no source found."""
    if not strangers:
        return scored
    return replace(
        scored,
        keys=[*scored.keys, *(key for _, key in strangers)],
        documents=[*scored.documents, *(document for document, _ in strangers)],
        positions=[*scored.positions, *(0 for _ in strangers)],
        scores=scored.scores.padded(len(strangers)),
    )


def _lift(scored: Scored, source: str, strengths: Mapping[int, float], weight: float) -> Scored:
    every = np.zeros(len(scored.keys))
    for column, strength in strengths.items():
        every[column] = strength
    scores = score.lifted(scored.scores, source, every, weight)
    ordered = scored.strongest_first(strengths)
    places = {column: place for place, column in enumerate(ordered, start=1)}
    ranks = {**scored.ranks, (source, source): places}
    return Scored(scored.keys, scored.documents, scored.positions, scores, ranks)


def _hits(plan: Plan, scored: Scored, snapshot: Snapshot) -> tuple[tuple[Hit, ...], int]:
    """Rank and cut, and load what is shown; return also how many were cut off."""
    found = list(zip(scored.positions, scored.scores.totals.tolist(), strict=True))
    chosen, omitted = rank.rank(found, scored.documents, plan.query, plan.ranking, plan.now)
    keys = [scored.keys[choice.column] for choice in chosen]
    loaded = snapshot.load(keys, query_words(plan.text))
    names = {link_key(name) for name in plan.query.where.linked_to}
    hits = []
    for choice, key, (document, passage, words) in zip(chosen, keys, loaded, strict=True):
        hit = Hit(
            document,
            passage,
            choice.score,
            scored.signals(choice.column) + choice.signals,
            links=_links_to(document, names),
            key=cast("int", key),
            words=words,
        )
        hits.append(hit)
    return tuple(hits), omitted


@dataclass(frozen=True, slots=True)
class Measured:
    """What the sources say of one passage of a document, and the document's rank by each.

    A rank of 0 means that the source does not find the document at all.
    """

    passage: Chunk
    words: tuple[str, ...]
    keyword: float
    keyword_rank: int
    meaning: float
    meaning_rank: int


def measure(
    candidates: Candidates, snapshot: Snapshot, ranking: Ranking, text: str, target: tuple[str, str]
) -> Measured:
    """Measure a passage of a document; the ids of both are the target, "" for the best passage."""
    document_id, passage_id = target
    ids = [document.id for document in candidates.documents]
    number = ids.index(document_id)
    ends = [*candidates.starts.tolist()[1:], len(candidates.keys)]
    columns = range(int(candidates.starts[number]), ends[number])
    nothing = np.zeros(len(candidates.keys))
    keyword = candidates.raw.get(("query", "keyword"), nothing)
    meaning = candidates.raw.get(("query", "vector"), nothing)
    totals = ranking.keyword_weight * keyword + ranking.vector_weight * meaning
    loaded = snapshot.load([candidates.keys[column] for column in columns], query_words(text))
    position = int(np.argmax(totals[columns.start : columns.stop]))
    for other, (_, passage, _) in enumerate(loaded):
        if passage.id == passage_id:
            position = other
    _, passage, words = loaded[position]
    column = columns[position]
    return Measured(
        passage=passage,
        words=words,
        keyword=float(keyword[column]),
        keyword_rank=_first_rank(candidates.found.get(("query", "keyword"), ()), columns),
        meaning=float(meaning[column]),
        meaning_rank=_first_rank(candidates.found.get(("query", "vector"), ()), columns),
    )


def _first_rank(found: Sequence[int], columns: range) -> int:
    for place, column in enumerate(found, start=1):
        if column in columns:
            return place
    return 0


def _links_to(document: Document, names: set[str]) -> tuple[Link, ...]:
    if not names:
        return ()
    return tuple(link for link in document.links if link_key(link.target) in names)


def query_words(text: str) -> list[str]:
    """Return the different words of a query as it wrote them, without marks around them."""
    words: Iterable[str] = (word.strip(MARKS) for word in text[:LONGEST_SHOWN].split())
    return list(dict.fromkeys(words))


def with_floor(findings: Findings) -> Findings:
    """Leave everything out if not even the best scores more than unrelated questions do."""
    below = sum(hit.score < calibration.FLOOR for hit in findings.hits)
    if not below:
        return findings
    rate = f"{calibration.FALSE_ALARMS:.0%} of unrelated questions"
    if below < len(findings.hits):
        note = (
            f"{below} of these score below {calibration.FLOOR}, which {rate} reach: "
            "they may be about something else"
        )
        return replace(findings, notes=(*findings.notes, note))
    best = findings.hits[0]
    lines = f"{best.document.path}:{best.chunk.start_line}-{best.chunk.end_line}"
    count = findings.omitted + len(findings.hits)
    note = (
        f"nothing relevant: {count} passages share words or meaning with this, "
        f"but none scores {calibration.FLOOR}, which {rate} reach; "
        f"the best of them is {lines} with {best.score:.2f}"
    )
    return replace(findings, hits=(), omitted=0, notes=(*findings.notes, note))
