"""One search over several lanes: hits in one order, and a count for every value of a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from ragdocs.errors import ValidationError
from ragdocs.protocols import Vectors
from ragdocs.search.corpus import Corpus
from ragdocs.search.floor import FLOOR
from ragdocs.search.newest import age_order
from ragdocs.search.query import LEAST_CANDIDATES
from ragdocs.text import times
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page

# Hits of one lane that are ranked and counted, out of as many candidates as its own search has.
MOST_COUNTED = 50
# Folders are counted down to this depth.
FOLDER_DEPTH = 2
# The times since which documents are counted.
PERIODS = ("today", "7d", "30d")
# Kinds of documents whose tags are the names of people.
TAGGED_WITH_PEOPLE = ("commit",)
# The status that leaves nothing out.
ANY_STATUS = "all"
# No document has an empty status, so that this hides none.
HIDE_NOTHING = ("",)
# Which part of a score each signal belongs to.
PARTS = {
    "keyword": "words",
    "vector": "meaning",
    "context": "context",
    "support": "context",
    "graph": "links",
    "succession": "links",
    "recency": "recency",
    "time": "recency",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a hit must satisfy in whichever lane it is; an empty field asks for nothing."""

    lanes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    # A folder or a document, as seen from the root of the project.
    path: str = ""
    since: str = ""
    status: str = ""


# Each facet, and the filters without it: its values are counted for the others as they are set.
WITHOUT: Mapping[str, Mapping[str, object]] = {
    "type": {"kinds": ()},
    "tag": {"tags": ()},
    "path": {"path": ""},
    "since": {"since": ""},
    "status": {"status": ""},
}


@dataclass(frozen=True, slots=True)
class Row:
    """A document in the running; a listing has no hit for it until it is shown."""

    lane: str
    document: Document
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class LaneHit:
    """A hit and the lane it is in."""

    lane: str
    hit: Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One page of what several lanes found, best first."""

    hits: tuple[LaneHit, ...]
    # What the chosen lanes found, of which one page is shown; `is_cut` if they found even more.
    total: int
    is_cut: bool = False
    # The best passage that is not relevant enough, where nothing is.
    below: LaneHit | None = None
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Passages of the chosen lanes.
    passages: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Searched:
    """What one state of the filters lets through, lane by lane."""

    rows: Mapping[str, Sequence[Row]]
    is_cut: bool
    notes: tuple[str, ...]

    def of(self, lanes: Sequence[str]) -> list[Row]:
        """Return the rows of these lanes."""
        return list(chain.from_iterable(self.rows.get(lane, ()) for lane in lanes))


@dataclass(frozen=True, slots=True)
class Finding:
    """What can be asked of all lanes at once."""

    corpora: Mapping[str, Corpus]
    clock: Callable[[], datetime]

    def search(self, query: str, filters: Filters, limit: int = 5, offset: int = 0) -> Found:
        """Find passages of all lanes; without a query, list the newest documents."""
        page.check_limit(limit)
        if offset < 0:
            raise ValidationError(f"offset is {offset}", "Begin at 0, or where a page ended")
        now = self.clock()
        chosen = [lane for lane in self.corpora if lane in (filters.lanes or self.corpora)]
        question = _Question(query.strip(), self._encoded(query.strip()), now)
        # Lanes that are not chosen are searched too: their counts say what they would add.
        searched = self._searched(question, filters, list(self.corpora))
        rows = sorted(searched.of(chosen), key=question.order)
        page_rows = rows[offset : offset + limit]
        below = None
        if question.text and not rows:
            below = self._best(question, filters, chosen)
        passages = sum(self.corpora[lane].info().passages for lane in chosen)
        return Found(
            hits=tuple(map(self._lane_hit, page_rows)),
            total=len(rows),
            is_cut=searched.is_cut,
            below=below,
            facets=self._facets(question, filters, chosen, searched),
            passages=passages,
            notes=searched.notes,
        )

    def _encoded(self, query: str) -> Vectors | None:
        """Encode a query once for all lanes: they have the same encoder."""
        if not query:
            return None
        for corpus in self.corpora.values():
            vector = corpus.encoded(query)
            if vector is not None:
                return vector
        return None

    def _searched(self, question: _Question, filters: Filters, lanes: Sequence[str]) -> Searched:
        rows: dict[str, Sequence[Row]] = {}
        notes: list[str] = []
        is_cut = False
        for lane in lanes:
            corpus = self.corpora[lane]
            where = _where(corpus, filters, question.now)
            if where is None:
                rows[lane] = ()
                continue
            if question.text:
                rows[lane], omitted = _hits(corpus, question, where)
                is_cut = is_cut or omitted > 0
            else:
                documents = corpus.documents(_listed(corpus, where, question.now))
                rows[lane] = [Row(lane, document) for document in documents]
            notes += [f"{lane}: {note}" for note in corpus.notes()]
        return Searched(rows, is_cut, tuple(notes))

    def _facets(
        self, question: _Question, filters: Filters, chosen: Sequence[str], searched: Searched
    ) -> dict[str, dict[str, int]]:
        """Count the values of every filter, each for the other filters as they are set."""
        facets = {"lane": {lane: len(rows) for lane, rows in searched.rows.items()}}
        for name, without in WITHOUT.items():
            relaxed = replace(filters, **without)  # type: ignore[arg-type]
            rows = searched.of(chosen)
            if relaxed != filters:
                rows = self._searched(question, relaxed, chosen).of(chosen)
            if name == "status":
                rows += self._hidden(question, relaxed, chosen)
            facets[name] = self._counts(name, rows, question.now)
        return facets

    def _hidden(self, question: _Question, filters: Filters, lanes: Sequence[str]) -> list[Row]:
        """Return what would be found but for its status, such as archived memories."""
        rows: list[Row] = []
        for lane in lanes:
            corpus = self.corpora[lane]
            for status in corpus.lane.hidden:
                # Most projects have none, and to count costs less than to search.
                if corpus.count(Filter(statuses=(status,))):
                    only = replace(filters, status=status)
                    rows += self._searched(question, only, [lane]).of([lane])
        return rows

    def _counts(self, name: str, rows: Sequence[Row], now: datetime) -> dict[str, int]:
        if name == "since":
            return _by_period(rows, now)
        counts: Counter[str] = Counter()
        for row in rows:
            document = row.document
            if name == "type":
                # Only memories have types of their own; other lanes have one for all.
                if self.corpora[row.lane].lane.writable:
                    counts[document.kind] += 1
            elif name == "tag":
                if document.kind not in TAGGED_WITH_PEOPLE:
                    counts.update(document.tags)
            elif name == "path":
                counts[folder(self.location(row.lane, document.path))] += 1
            else:
                counts[document.status] += 1
        # Documents at the root of the project are in no folder.
        counts.pop("", None)
        return page.tally(list(counts.elements()))

    def _best(self, question: _Question, filters: Filters, lanes: Sequence[str]) -> LaneHit | None:
        """Return the best passage of these lanes, whatever its score."""
        best: list[Row] = []
        for lane in lanes:
            corpus = self.corpora[lane]
            where = _where(corpus, filters, question.now)
            if where is not None:
                query = Query(probes=(Probe(question.text),), limit=1, where=where)
                findings = corpus.search(query, question.now, question.vector)
                best += [Row(lane, hit.document, hit) for hit in findings.hits]
        if not best:
            return None
        return self._lane_hit(min(best, key=question.order))

    def _lane_hit(self, row: Row) -> LaneHit:
        if row.hit is not None:
            return LaneHit(row.lane, row.hit)
        document = row.document
        passages = self.corpora[row.lane].passages([document.id])[document.id]
        return LaneHit(row.lane, Hit(document, passages[0], 0.0, ()))

    def location(self, lane: str, path: str) -> str:
        """Return a path of a lane as seen from the root of the project."""
        base = self.corpora[lane].lane.base
        return f"{base}/{path}" if base else path


@dataclass(frozen=True, slots=True)
class _Question:
    """A query made ready for all lanes."""

    text: str
    vector: Vectors | None
    now: datetime

    def order(self, row: Row) -> tuple[object, ...]:
        """Return what rows are sorted by: score, then lane, path and position; or age.

        Of equal scores, that of a memory which others supersede comes after theirs.
        """
        document = row.document
        if row.hit is None:
            return (*age_order(document, self.now), row.lane)
        is_superseded = bool(row.hit.successors)
        position = row.hit.chunk.start_line
        return -row.hit.score, is_superseded, row.lane, document.path, position


def _hits(corpus: Corpus, question: _Question, where: Filter) -> tuple[list[Row], int]:
    """Return what a lane finds relevant, and how much more it had."""
    is_measured = corpus.gauge().measured
    query = Query(
        probes=(Probe(question.text),), limit=MOST_COUNTED, where=where, pool=LEAST_CANDIDATES
    )
    if is_measured:
        query = replace(query, min_score=FLOOR)
    if corpus.lane.writable:
        query = replace(query, superseded="below")
    findings = corpus.search(query, question.now, question.vector)
    rows = []
    for hit in findings.hits:
        # A lane of few passages has no floor of its own; there a word of the query is enough.
        if hit.score >= FLOOR or (hit.words and not is_measured):
            rows.append(Row(corpus.lane.name, hit.document, hit))
    return rows, findings.omitted


def _where(corpus: Corpus, filters: Filters, now: datetime) -> Filter | None:
    """Return the filter of a lane, or None if its documents are all elsewhere."""
    prefix = _prefix(corpus, filters.path)
    if prefix is None:
        return None
    where = Filter(kinds=filters.kinds, tags=filters.tags, prefix=prefix)
    if filters.since.strip():
        where = replace(where, since=times.start(filters.since, now))
    if filters.status == ANY_STATUS:
        return replace(where, hidden=HIDE_NOTHING)
    if filters.status:
        return replace(where, statuses=(filters.status,))
    return where


def _prefix(corpus: Corpus, path: str) -> str | None:
    """Return what the paths of a lane begin with below a folder of the project."""
    name = path.strip().removeprefix("./").strip("/")
    base = corpus.lane.base
    if not name or name == base:
        return ""
    if base:
        if not name.startswith(f"{base}/"):
            return None
        name = name.removeprefix(f"{base}/")
    if name in corpus.stamps([name]):
        return name
    return f"{name}/"


def _listed(corpus: Corpus, where: Filter, now: datetime) -> Filter:
    """Return the filter for a list, which leaves out what a search leaves out."""
    if where.statuses or where.hidden:
        return replace(where, alive_at=now)
    return replace(where, alive_at=now, hidden=corpus.lane.hidden)


def _by_period(rows: Sequence[Row], now: datetime) -> dict[str, int]:
    counts = {}
    for period in PERIODS:
        begin = times.start(period, now)
        count = 0
        for row in rows:
            created = row.document.created_at
            if created is not None and created >= begin:
                count += 1
        counts[period] = count
    return counts


def folder(location: str) -> str:
    """Return the folder that a path is counted under."""
    folders = location.split("/")[:-1]
    return "/".join(folders[:FOLDER_DEPTH])


def parts(hit: Hit) -> dict[str, float]:
    """Return what words, meaning, context, links and recency add to a score, in hundredths.

    Importance and confidence change all of them by the same factor. Rounded so that the parts add
    up to the rounded score.
    """
    shares = dict.fromkeys(PARTS.values(), 0.0)
    for signal in hit.signals:
        if signal.source in PARTS:
            shares[PARTS[signal.source]] += signal.share
    whole = sum(shares.values())
    if whole <= 0:
        return shares
    hundredths = {name: share / whole * hit.score * 100 for name, share in shares.items()}
    rounded = {name: int(share) for name, share in hundredths.items()}
    missing = round(hit.score * 100) - sum(rounded.values())
    by_remainder = sorted(rounded, key=lambda name: rounded[name] - hundredths[name])
    for name in by_remainder[:missing]:
        rounded[name] += 1
    return {name: count / 100 for name, count in rounded.items()}
