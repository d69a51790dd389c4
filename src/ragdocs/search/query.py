"""One search, step by step: candidates, scores, lifts, calibration, ranking, hits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain

import numpy as np

from ragdocs.lanes import Ranking
from ragdocs.protocols import (
    Candidates,
    Floats,
    Ints,
    PassageKey,
    ProbeVector,
    SignalName,
    Snapshot,
    Tied,
    Ties,
)
from ragdocs.search import rank, score, succession
from ragdocs.search.calibration import Gauges
from ragdocs.search.score import Layout, Mask, Scores
from ragdocs.system.names import link_key
from ragdocs.text import times
from ragdocs.types import Chunk, Document, Filter, Findings, Hit, Link, Query, Signal

# Candidates of each source: enough that caps, boosts and links can change the order below the cut.
LEAST_CANDIDATES = 50
# The best documents, whose links are followed.
SEEDS = 10
# Documents that only a link brings in.
STRANGERS = 10
# A filter that leaves no more documents than this has said what is meant: all of them can be looked
# at, and the best are shown even if they are weak.
FEW_DOCUMENTS = 20
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
    # The statuses of documents that the lane does not show by itself.
    hidden: tuple[str, ...] = ()
    # The names of probes that the model cannot read: words alone judge for them.
    unread_probes: frozenset[str] = frozenset()
    # Whether passages without a vector are those that the model cannot read.
    has_unread: bool = False

    @property
    def text(self) -> str:
        """The texts of all probes."""
        return " ".join(probe.text for probe in self.query.probes)

    @property
    def languages(self) -> list[str]:
        """The languages that the words of any probe are looked for in."""
        return list(dict.fromkeys(chain.from_iterable(probe.languages for probe in self.probes)))

    @property
    def pool(self) -> int:
        """The number of candidates that each source gives."""
        if self.query.pool:
            return self.query.pool
        return max(LEAST_CANDIDATES, self.query.limit * 5 // max(1, len(self.probes)))

    @property
    def room(self) -> int:
        """The number of hits that are loaded: some may have to make room for their successors."""
        if self.query.superseded == "left out":
            return 2 * self.query.limit
        return self.query.limit

    @property
    def count_up_to(self) -> int:
        """The number up to which documents are counted that pass the filter.

        A filter that leaves few has said what is meant, so that weak hits are shown.
        """
        if self.query.floored and narrows(self.query.where):
            return FEW_DOCUMENTS + 1
        return 0

    @property
    def ties(self) -> Ties | None:
        """The links by which documents supersede others, if the query wants to know."""
        if self.query.superseded == "listed":
            return None
        return Ties(succession.KINDS, self.query.where)

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
    """Passages in the running, one column each, and the ranks that sources gave them.

    The passages of one document are in the order of its text.
    """

    keys: Sequence[PassageKey]
    documents: Sequence[Document]
    scores: Scores
    # The rank of every column, 0 where the source did not find it.
    ranks: Mapping[SignalName, Ints]
    # Passages that the model cannot read, which are scored by words alone.
    unread: Mask

    def signals(self, column: int) -> tuple[Signal, ...]:
        """Return what each signal adds to the score of a passage."""
        raw = self.scores.raw[:, column].tolist()
        shares = self.scores.shares[:, column].tolist()
        signals = []
        for name, measured, share in zip(self.scores.signals, raw, shares, strict=True):
            if share <= 0:
                continue
            ranks = self.ranks.get(name)
            place = 0
            if ranks is not None:
                place = int(ranks[column])
            probe, source = name
            signals.append(Signal(probe, source, place, measured, share))
        return tuple(signals)


def search(plan: Plan, snapshot: Snapshot, gauges: Gauges) -> Findings:
    """Find candidates, score, lift and rank them, and load those that are shown."""
    started = time.perf_counter()
    candidates = snapshot.candidates(
        plan.probes, plan.filters, plan.pool, count_up_to=plan.count_up_to
    )
    scored = score_candidates(plan, candidates)
    if plan.period is not None:
        scored = _lift_period(scored, plan.period, plan.ranking.time_weight)
    if plan.ranking.graph_weight:
        scored = _lift_linked(scored, snapshot, plan)
    show = partial(_shown, plan, gauges, scored.unread)
    shown = score.calibrated(scored.scores, show, plan.query.probes)
    calibrated = replace(scored, scores=shown)
    findings = _findings(plan, calibrated, snapshot)
    elapsed = time.perf_counter() - started
    ranking = elapsed - sum(candidates.seconds.values())
    seconds = {**candidates.seconds, "ranking": ranking}
    lead = rank.lead(scored.scores.totals, scored.documents)
    return replace(findings, seconds=seconds, lead=lead, passing=candidates.passing)


def _shown(plan: Plan, gauges: Gauges, unread: Mask, name: str, totals: Floats) -> Floats:
    """Put the scores of a probe on the scale that is shown.

    What words alone have judged is measured by words alone.
    """
    if name in plan.unread_probes:
        return gauges.other_script.show(totals)
    shown = gauges.both.show(totals)
    if unread.any():
        shown = np.where(unread, gauges.words.show(totals), shown)
    return shown


def score_candidates(plan: Plan, candidates: Candidates) -> Scored:
    """Score all passages of the documents, and keep those that some source found itself."""
    columns = len(candidates.keys)
    probes = plan.query.probes
    unread = _unread(plan, candidates)
    scores = score.weighed(
        candidates.raw, columns, probes, candidates.term_counts, plan.ranking, unread
    )
    layout = Layout(candidates.starts, columns, candidates.lone_share)
    if columns:
        measured = score.by_source(scores, probes)
        scores = score.with_context(scores, layout, plan.ranking)
        scores = score.with_support(scores, layout, measured, plan.ranking)
    ranks = _ranks(candidates)
    is_found = np.zeros(columns, dtype=np.bool_)
    for places in ranks.values():
        is_found |= places > 0
    chosen = np.flatnonzero(is_found)
    owners = np.searchsorted(candidates.starts, chosen, side="right") - 1
    chosen_ranks = {}
    for signal, places in ranks.items():
        chosen_ranks[signal] = places[chosen]
    return Scored(
        keys=[candidates.keys[column] for column in chosen.tolist()],
        documents=[candidates.documents[owner] for owner in owners.tolist()],
        scores=scores.at(chosen),
        ranks=chosen_ranks,
        unread=unread[chosen],
    )


def _unread(plan: Plan, candidates: Candidates) -> Mask:
    """Tell which passages have no vector, because the model cannot read them."""
    unread = np.zeros(len(candidates.keys), dtype=np.bool_)
    if not plan.has_unread:
        return unread
    for (_, source), measured in candidates.raw.items():
        if source == "vector":
            # The vector of an unread passage is zero, and no other product is exactly that.
            unread |= measured == 0.0
    return unread


def _ranks(candidates: Candidates) -> dict[SignalName, Ints]:
    """Return the rank of each column; what a source found but says nothing for has none."""
    ranks: dict[SignalName, Ints] = {}
    for signal, found in candidates.found.items():
        columns = np.array(found, dtype=np.int64)
        places = np.arange(1, len(columns) + 1)
        is_positive = candidates.raw[signal][columns] > 0
        ranks[signal] = np.zeros(len(candidates.keys), dtype=np.int64)
        ranks[signal][columns] = np.where(is_positive, places, 0)
    return ranks


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
    scores = scored.scores.totals
    best: dict[str, int] = {}
    for column in rank.best_first(scores, scored.documents):
        best.setdefault(scored.documents[column].id, column)
    seeds = list(best)[:SEEDS]
    strength: dict[str, float] = {}
    targets: dict[str, tuple[Document, PassageKey]] = {}
    neighbours = snapshot.neighbours(seeds, plan.query.where)
    for seed in seeds:
        lent = min(1.0, float(scores[best[seed]]))
        for document, key in neighbours.get(seed, ()):
            already = strength.get(document.id, 0.0)
            # Two that point at the same say more than one, but never more than all.
            strength[document.id] = already + (1.0 - already) * lent
            targets[document.id] = (document, key)
    strengths: dict[int, float] = {}
    strangers = []
    for target in targets:
        if target in best:
            strengths[best[target]] = strength[target]
        else:
            strangers.append(target)
    strangers.sort(key=lambda target: (-strength[target], targets[target][0].path))
    del strangers[STRANGERS:]
    for column, target in enumerate(strangers, start=len(scored.keys)):
        strengths[column] = strength[target]
    scored = _joined(scored, [targets[target] for target in strangers])
    return _lift(scored, "graph", strengths, plan.ranking.graph_weight)


def _joined(scored: Scored, strangers: Sequence[tuple[Document, PassageKey]]) -> Scored:
    """Add the first passages of documents that no source found."""
    if not strangers:
        return scored
    keys = list(scored.keys)
    documents = list(scored.documents)
    for document, key in strangers:
        keys.append(key)
        documents.append(document)
    no_ranks = np.zeros(len(strangers), dtype=np.int64)
    ranks = {}
    for signal, places in scored.ranks.items():
        ranks[signal] = np.concatenate([places, no_ranks])
    unread = np.concatenate([scored.unread, no_ranks > 0])
    return Scored(keys, documents, scored.scores.padded(len(strangers)), ranks, unread)


def _lift(scored: Scored, source: str, strengths: Mapping[int, float], weight: float) -> Scored:
    """Lift columns by their strengths; of equal ones the first path and passage comes first."""

    def strongest_first(column: int) -> tuple[float, str]:
        return -strengths[column], scored.documents[column].path

    every = np.zeros(len(scored.keys))
    places = np.zeros(len(scored.keys), dtype=np.int64)
    in_text_order = sorted(strengths)
    for place, column in enumerate(sorted(in_text_order, key=strongest_first), start=1):
        every[column] = strengths[column]
        places[column] = place
    scores = score.lifted(scored.scores, source, every, weight)
    ranks = {**scored.ranks, (source, source): places}
    return replace(scored, scores=scores, ranks=ranks)


def _findings(plan: Plan, scored: Scored, snapshot: Snapshot) -> Findings:
    """Rank and cut, and load what is shown."""
    measured = None
    if plan.ranking.recency_days:
        measured = score.by_source(scored.scores, plan.query.probes)
    query = plan.query
    if plan.room != query.limit:
        query = replace(query, limit=plan.room)
    chosen, omitted = rank.rank(
        scored.scores.totals,
        scored.documents,
        query,
        plan.ranking,
        plan.now,
        measured,
    )
    count = len(chosen)
    if plan.ties is not None:
        chosen = [*chosen, *_superseding(scored, chosen)]
    keys = [scored.keys[choice.column] for choice in chosen]
    loaded = snapshot.load(keys, query_words(plan.text), plan.languages, plan.ties)
    names = {link_key(name) for name in plan.query.where.linked_to}
    hits = []
    for choice, (document, passage, words) in zip(chosen, loaded.passages, strict=True):
        hit = Hit(
            document,
            passage,
            choice.score,
            scored.signals(choice.column) + choice.signals,
            links=_links_to(document, names),
            words=words,
        )
        hits.append(hit)
    findings = Findings(hits=tuple(hits[:count]), omitted=omitted)
    if plan.ties is None:
        return findings
    return _with_successors(plan, findings, hits[count:], loaded.tied)


def _superseding(scored: Scored, chosen: Sequence[rank.Chosen]) -> list[rank.Chosen]:
    """Return the best passages of further candidates that say that they supersede something.

    Should that be a hit, its successor is shown by what the query found in it.
    """
    taken = {scored.documents[choice.column].id for choice in chosen}
    best: dict[str, rank.Chosen] = {}
    totals = scored.scores.totals
    for column, document in enumerate(scored.documents):
        if document.id in taken or not succession.is_tied(document):
            continue
        total = float(totals[column])
        if document.id not in best or total > best[document.id].score:
            best[document.id] = rank.Chosen(column, total)
    return list(best.values())


def _with_successors(
    plan: Plan, findings: Findings, further: Sequence[Hit], tied: Tied
) -> Findings:
    """Name the successors of hits, and add those that are no hits and may be shown."""
    documents = []
    for hit in findings.hits:
        documents.append(hit.document)
    others = []
    for hit in further:
        others.append(hit.document)
    for document, _ in tied.values():
        others.append(document)
    present = succession.Present(plan.now, plan.hidden)
    superseded = succession.successors(documents, others, present)
    if plan.query.superseded == "left out":
        findings = _trimmed(findings, superseded, plan.query.limit)
    if not superseded:
        return findings
    more = {}
    for document, passage in tied.values():
        if passage is not None:
            more[document.id] = Hit(document, passage, 0.0, ())
    for hit in further:
        more[hit.document.id] = hit
    hits = []
    for hit in findings.hits:
        hits.append(replace(hit, successors=superseded.get(hit.document.id, ())))
    return replace(findings, hits=tuple(hits), successors=more)


def _trimmed(findings: Findings, superseded: Mapping[str, object], limit: int) -> Findings:
    """Cut to the limit where nothing has to make room."""
    hits = findings.hits[:limit]
    if any(hit.document.id in superseded for hit in hits):
        return findings
    omitted = findings.omitted + len(findings.hits) - len(hits)
    return replace(findings, hits=hits, omitted=omitted)


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
    candidates: Candidates,
    snapshot: Snapshot,
    ranking: Ranking,
    probe: ProbeVector,
    target: tuple[str, str],
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
    keys = [candidates.keys[column] for column in columns]
    loaded = snapshot.load(keys, query_words(probe.text), probe.languages)
    position = int(np.argmax(totals[columns.start : columns.stop]))
    for other, (_, passage, _) in enumerate(loaded.passages):
        if passage.id == passage_id:
            position = other
    _, passage, words = loaded.passages[position]
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
    words: dict[str, None] = {}
    for word in text[:LONGEST_SHOWN].split():
        words[word.strip(MARKS)] = None
    return list(words)


def narrows(where: Filter) -> bool:
    """Tell whether whoever searches has asked for a part of the lane."""
    # What a lane hides, and pages that others stand for, are asked for by nobody. Copying a filter
    # without them, to compare it with an empty one, takes longer than this.
    words = (where.kinds, where.tags, where.statuses, where.prefix, where.linked_to)
    bounds = (where.since, where.until, where.min_importance, where.min_confidence)
    return any(words) or any(bounds)
