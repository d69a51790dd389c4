"""The one pipeline: a lane, its store, its index and an encoder, brought to life."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Literal

import numpy as np

from ragdocs import errors
from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError, ValidationError
from ragdocs.lanes import Lane, Ranking
from ragdocs.protocols import Encoder, Index, Readable, Vectors, Versioned
from ragdocs.search import calibration as gauge
from ragdocs.search import chunk, parse, rank
from ragdocs.search import score as fuse
from ragdocs.search.calibration import Gauge
from ragdocs.search.newest import age_order
from ragdocs.search.query import passages_of_time, query_filters, with_floor
from ragdocs.text import frontmatter as metadata
from ragdocs.text import times
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import (
    Change,
    Chunk,
    Document,
    Entry,
    Filter,
    Findings,
    Hit,
    Link,
    Probe,
    Put,
    Query,
    Report,
    Scan,
    Written,
)

Progress = Callable[[str, int, int], None]
Order = Literal["path", "newest"]
Facet = Literal["tags", "kind", "status", "source"]

# Chunks applied in the first step; each further step takes twice as many. Few steps make few
# segments; a step of two milliseconds a chunk is what a write that comes between may have to wait
# for.
FIRST_BATCH = 100
LARGEST_BATCH = 1600
# Passages encoded in one step.
ENCODED_AT_ONCE = 64
# Passages a writer waits for; a longer text is found by its words at once and by the rest of its
# meaning soon after.
ENCODED_IN_A_WRITE = 16
# Candidates asked of each source: enough that caps, boosts and links can change the order below the
# cut.
LEAST_CANDIDATES = 50
# Documents at the top whose neighbours in the graph are looked at.
SEEDS = 10
# Documents that only a link brings in.
STRANGERS = 10
# A scan that would drop this many documents and this share of them all is repeated after a pause
# before it is believed: a folder in the middle of being moved or mounted looks empty.
MASS_REMOVAL = 20
MASS_SHARE = 0.5
SECOND_LOOK_SECONDS = 0.5
# Processor time that one file may take before it is written to the index; ordinary text of 10 MB
# takes a quarter of it.
FILE_SECONDS = 20.0
# The share of passages that must have come or gone before unrelated questions are asked again: it
# takes 0.1 s.
REMEASURED = 0.1


class Corpus:
    """The search orchestrator of one lane."""

    def __init__(
        self,
        lane: Lane,
        store: Readable,
        index: Index,
        encoder: Encoder | None,
        redactor: Redactor | None = None,
    ) -> None:
        self.lane = lane
        self.store = store
        self.index = index
        self.encoder = encoder
        self.redactor = redactor or Redactor({})
        self.silence = (
            "" if encoder else 'semantic search is switched off ([embedding] model = "none")'
        )
        self.skipped: dict[str, str] = {}
        # Files that a look at all of them found new or changed and has not read yet.
        self.unread = 0
        # Stamp and reason of files that would hold up all others, so that not every scan tries them
        # again.
        self._refused: dict[str, tuple[str, str]] = {}
        self._writing = threading.Lock()

    @property
    def versioned(self) -> Versioned:
        """The store, if its texts can be changed; a store that is only read is refused."""
        if isinstance(self.store, Versioned):
            return self.store
        raise errors.ReadOnlyError(f"the {self.lane.name} lane is read-only")

    def sync(self, paths: Iterable[str] | None = None, progress: Progress | None = None) -> Report:
        """Bring the index up to the store, reading only what changed.

        With `paths`, look at these only.
        """
        started = time.monotonic()
        only = None if paths is None else sorted(set(paths))
        with self._writing:
            scan, gone = self._look(only)
            self.index.apply([], gone)
            known = self.index.stamps(scan.stamps)
            refused = self.refused(scan)
            changed = [
                path
                for path, stamp in scan.stamps.items()
                if known.get(path, ("", ""))[0] != stamp and path not in refused
            ]
        looked_at = {""} if only is None else set(only)
        self.skipped = {
            path: why for path, why in self.skipped.items() if not _below(path, looked_at)
        }
        self.skipped.update({**scan.unreadable, **refused})
        report = Report(removed=len(gone), unchanged=len(scan.stamps) - len(changed))
        done, most = 0, FIRST_BATCH
        self.unread = len(changed) if only is None else self.unread
        while done < len(changed):
            added, replaced, same, looked = self._read(changed[done : done + most], most)
            done += looked
            self.unread -= looked if only is None else 0
            most = min(2 * most, LARGEST_BATCH)
            report = replace(
                report,
                added=report.added + added,
                changed=report.changed + replaced,
                unchanged=report.unchanged + same,
            )
            if progress:
                progress("indexing", done, len(changed))
        return replace(report, skipped=dict(self.skipped), seconds=time.monotonic() - started)

    def refused(self, scan: Scan) -> dict[str, str]:
        """Return which files of a scan would hold up all others, and why.

        They are not indexed until they change.
        """
        known = self._refused.items()
        return {path: reason for path, (stamp, reason) in known if scan.stamps.get(path) == stamp}

    def embed(
        self, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Encode passages that have no vector yet until none is left.

        Return how many were encoded.
        """
        done = 0
        while not stop() and (count := self._encode(self.index.missing(ENCODED_AT_ONCE))):
            done += count
            if progress:
                counts = self.index.counts()
                progress("embedding", counts["vectors"], counts["chunks"])
        if self.silence or not self.index.missing(1):
            self._measure()
        return done

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Write to the store, without secrets, and see to it that the next search knows."""
        cleaned = [self._clean(change) for change in changes]
        written = self.versioned.commit([change for change, _ in cleaned], verb)
        written = [
            replace(one, removed=removed)
            for one, (_, removed) in zip(written, cleaned, strict=True)
        ]
        # As the store spells them: a name may be written otherwise on disk.
        paths = {one.path for one in written}
        self.sync(paths)
        self._encode(self.index.missing(ENCODED_IN_A_WRITE, paths))
        return written

    def search(self, query: Query, now: datetime) -> Findings:
        """Ask every source for every probe, fuse, rank, and explain."""
        where = replace(query.where, alive_at=query.where.alive_at or now)
        if not where.statuses:
            where = replace(where, hidden=where.hidden or self.lane.hidden)
        query = replace(
            query, where=where, probes=tuple(probe for probe in query.probes if probe.text.strip())
        )
        started = time.perf_counter()
        # Encoding takes longer than all the rest, and needs nothing of the index.
        vectors = [
            self._vector(probe) if self._ranking(query).vector_weight else None
            for probe in query.probes
        ]
        encoded = time.perf_counter()
        with self.index.held():
            found = self._find(query, vectors, now)
        return replace(found, seconds={"encode": encoded - started, **found.seconds})

    def _find(self, query: Query, vectors: Sequence[Vectors | None], now: datetime) -> Findings:
        where, ranking = query.where, self._ranking(query)
        asked = " ".join(probe.text for probe in query.probes)
        meant = times.span(asked, now) if ranking.time_weight else None
        wheres = query_filters(where, rank.youngest(ranking, now), meant)
        k = max(LEAST_CANDIDATES, query.limit * 5 // max(1, len(query.probes)))
        legs, clock = self._ask(query.probes, vectors, ranking, k, *wheres)
        board = self._board(legs, dict(zip(query.probes, vectors, strict=True)), ranking)
        owners = self.index.owners(board.keys)
        if meant:
            board = fuse.lift(
                board, "time", passages_of_time(board.keys, owners, meant), ranking.time_weight
            )
        neighbours = self._neighbours(board, owners, where) if ranking.graph_weight else []
        measure = self.gauge()
        board = fuse.lift(board, "graph", neighbours, ranking.graph_weight)
        board = fuse.calibrate(board, measure.show, query.probes)
        owners += self.index.owners(board.keys[len(owners) :])
        scored = list(zip(board.keys, board.scores.tolist(), strict=True))
        chosen, omitted = rank.rank(scored, owners, query, ranking, now)
        keys = [board.keys[one.place] for one in chosen]
        links = self.index.links_to(where.linked_to, {owners[one.place].id for one in chosen})
        words = self.index.matched(asked, keys)
        hits = tuple(
            Hit(
                card,
                piece,
                one.score,
                board.signals(one.place) + one.signals,
                links.get(card.id, ()),
                key,
                held,
            )
            for one, key, (card, piece), held in zip(
                chosen, keys, self.index.load(keys), words, strict=True
            )
        )
        clock.append(time.perf_counter())
        seconds = dict(
            zip(("words", "meaning", "ranking"), (b - a for a, b in pairwise(clock)), strict=True)
        )
        found = Findings(hits=hits, omitted=omitted, notes=self.notes(), seconds=seconds)
        return with_floor(found) if query.floored and measure.measured else found

    def get(self, name: str) -> Document | None:
        """Return a document by its id or its path."""
        document = self.index.document(name)
        if document is None:
            document = self.index.document(f"{self.lane.name}:{name.removesuffix('.md')}")
        return document

    def documents(
        self,
        where: Filter | None = None,
        order: Order = "path",
        limit: int | None = None,
        now: datetime | None = None,
    ) -> list[Document]:
        """List documents by path, or the newest first as seen from `now`."""
        documents = self.index.documents(where)
        if order == "newest":
            assert now is not None
            moment = now
            documents = sorted(documents, key=lambda document: age_order(document, moment))
        return documents[:limit]

    def count(self, where: Filter | None = None) -> int:
        """Count documents."""
        return len(self.index.documents(where))

    def facets(self, field: Facet, where: Filter | None = None) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        counts: Counter[str] = Counter()
        for document in self.index.documents(where):
            value = getattr(document, field)
            counts.update(value if isinstance(value, tuple) else (value,))
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""
        return self.index.links_to(to, among)

    def passages(self, document_ids: Sequence[str], room: int = 0) -> dict[str, list[Chunk]]:
        """Return the beginning of each document: its first passage, and more up to `room` characters."""
        beginnings: dict[str, list[Chunk]] = {}
        with self.index.held():
            for document_id in document_ids:
                beginnings[document_id] = []
                size = 0
                for key in self.index.chunks(document_id):
                    if size > room or (beginnings[document_id] and not room):
                        break
                    passage = self.index.load([key])[0][1]
                    beginnings[document_id].append(passage)
                    size += len(passage.text)
        return beginnings

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""
        return self.index.stamps(paths)

    def counts(self) -> dict[str, int]:
        """Count documents, passages, vectors and links."""
        return self.index.counts()

    def gauge(self) -> Gauge:
        """Return what scores are measured by.

        As long as the same sources are asked as when it was made.
        """
        stored, counts = self._measured(), self.index.counts()
        if not stored or bool(stored["vectors"]) != bool(counts["vectors"] and not self.silence):
            return Gauge()
        return Gauge(stored["middle"], stored["spread"], measured=True)

    def _measured(self) -> Mapping[str, float]:
        stored = self.index.gauge or {}
        return stored if stored.get("scale") == gauge.SCALE else {}

    def _measure(self) -> None:
        """Ask what has nothing to do with the lane.

        And remember the scores, unless that was done on about as much.
        """
        counts, stored = self.index.counts(), self._measured()
        count, vectors = counts["chunks"], counts["vectors"] if not self.silence else 0
        changed = abs(count - stored.get("chunks", 0)) > REMEASURED * count
        if count < gauge.FEWEST_PASSAGES or (
            not changed and bool(vectors) == bool(stored.get("vectors"))
        ):
            return
        best = []
        for probe in map(Probe, gauge.UNRELATED):
            vector = self._vector(probe)
            with self.index.held():
                legs, _ = self._ask(
                    [probe], [vector], self.lane.ranking, LEAST_CANDIDATES, Filter()
                )
                best.append(
                    float(
                        self._board(legs, {probe: vector}, self.lane.ranking).scores.max(
                            initial=0.0
                        )
                    )
                )
        found = gauge.measured(best)
        measured_on = {"chunks": count, "vectors": vectors, "scale": gauge.SCALE}
        self.index.gauge = {"middle": found.middle, "spread": found.spread, **measured_on}

    def _ask(
        self,
        probes: Sequence[Probe],
        vectors: Sequence[Vectors | None],
        ranking: Ranking,
        k: int,
        *wheres: Filter,
    ) -> tuple[list[fuse.Leg], list[float]]:
        """Ask each source for its best, and note when that was done."""
        clock = [time.perf_counter()]
        index, worded = self.index, probes if ranking.keyword_weight else ()
        # Words are counted right after the match: the index remembers the last query only.
        legs = [
            fuse.Leg(p, "keyword", index.match(p.text, k, *wheres), index.asked(p.text))
            for p in worded
        ]
        clock.append(time.perf_counter())
        pairs = zip(probes, vectors, strict=True)
        legs += [
            fuse.Leg(p, "vector", self.index.nearest(v, k, *wheres))
            for p, v in pairs
            if v is not None
        ]
        return legs, [*clock, time.perf_counter()]

    def _board(
        self, legs: Sequence[fuse.Leg], vectors: Mapping[Probe, Vectors | None], ranking: Ranking
    ) -> fuse.Board:
        """Ask every source about whatever any of them found.

        And about the rest of the same documents.
        """
        found = np.array(fuse.candidates(legs), dtype=np.int64)
        family = self.index.siblings(found)
        sources = {leg.source for leg in legs}
        said = {}
        for probe, vector in vectors.items():
            text = probe.text if "keyword" in sources else ""
            said[probe, "keyword"], said[probe, "vector"] = self.index.weigh(
                text, vector, family.keys
            )
        lines = [said[leg.probe, leg.source] for leg in legs]
        raws = np.array(lines, dtype=np.float64).reshape(len(legs), len(family.keys))
        board = fuse.fuse(legs, family.keys.tolist(), raws, ranking)
        return fuse.settle(board, legs, found, family, ranking)

    def notes(self) -> tuple[str, ...]:
        """Say what a reader of an answer should know about the state of the index."""
        counts = self.index.counts()
        notes = []
        if self.unread:
            notes.append(
                f"still indexing: {self.unread} files are new or changed and not searched yet"
            )
        if self.silence:
            notes.append(f"keyword and graph search only: {self.silence}")
        elif counts["vectors"] < counts["chunks"]:
            notes.append(
                f"still embedding: {counts['vectors']} of {counts['chunks']} passages can be found by meaning"
            )
        return tuple(notes)

    def _clean(self, change: Change) -> tuple[Change, tuple[str, ...]]:
        """Take secrets out of what is to be written; tell what was taken and from which line."""
        if not isinstance(change, Put):
            return change, ()
        if findings := self.redactor.redact(change.path).findings:
            source = self.redactor.source(findings[0])
            raise ValidationError(
                f"the name of the file holds a secret, says {source}", "Choose another name"
            )
        text, note = self.redactor.redact(change.text), self.redactor.redact(change.note)
        if text.findings:
            self._refuse_swallowed(metadata.split(change.text)[1])
        if note.findings:
            self._refuse_swallowed(change.note)
        removed = tuple(f"{finding.rule} in line {finding.line}" for finding in text.findings)
        removed += tuple(
            f"{finding.rule} in line {finding.line} of the entry" for finding in note.findings
        )
        return replace(change, text=text.text, note=note.text), removed

    def _refuse_swallowed(self, text: str) -> None:
        """Refuse a text of which a pattern of the configuration would leave nothing."""
        if source := self.redactor.swallowed_by(text, self.redactor.redact(text)):
            hint = "Nothing was written. Make the pattern match the secret alone"
            raise ValidationError(
                f"nothing would be left of the text: {source} matches all of it", hint
            )

    def _encode(self, batch: Sequence[tuple[Document, Chunk]]) -> int:
        if not batch or self.encoder is None or self.silence:
            return 0
        try:
            vectors = self.encoder.encode(
                [chunk.passage(d.title, piece.headings, piece.text) for d, piece in batch]
            )
        except UnavailableError as error:
            self.silence = str(error)
            return 0
        self.index.fill(
            {piece.digest: vector for (_, piece), vector in zip(batch, vectors, strict=True)}
        )
        return len(batch)

    def _ranking(self, query: Query) -> Ranking:
        if query.weights is None:
            return self.lane.ranking
        vector, keyword = query.weights
        return replace(self.lane.ranking, vector_weight=vector, keyword_weight=keyword)

    def _vector(self, probe: Probe) -> Vectors | None:
        if self.encoder is None or self.silence or not self.index.counts()["vectors"]:
            return None
        try:
            vector: Vectors = self.encoder.encode([probe.text])[0]
        except UnavailableError as error:
            self.silence = str(error)
            return None
        return vector

    def _neighbours(
        self, board: fuse.Board, owners: Sequence[Document], where: Filter
    ) -> list[tuple[int, float]]:
        """Return (chunk, strength) for what the best documents link to.

        The best chunk of each, else its first.
        """
        best: dict[str, int] = {}
        for place in fuse.order(board):
            best.setdefault(owners[place].id, place)
        scores, seeds = board.scores.tolist(), list(best)[:SEEDS]
        strength: dict[str, float] = {}
        for source, targets in zip(seeds, self.index.linked(seeds, where), strict=True):
            score = min(1.0, scores[best[source]])
            for target in targets:
                # Two that point at the same say more than one, but never more than all.
                lent = strength.get(target, 0.0)
                strength[target] = lent + (1 - lent) * score
        known = [
            (board.keys[best[target]], lent) for target, lent in strength.items() if target in best
        ]
        others = {target: lent for target, lent in strength.items() if target not in best}
        if len(others) > STRANGERS:
            least = sorted(others.values())[-STRANGERS]
            others = {target: lent for target, lent in others.items() if lent >= least}
        strangers = sorted(others, key=lambda target: (-others[target], target))[:STRANGERS]
        return known + [
            (key, others[target]) for target in strangers for key in self.index.chunks(target)[:1]
        ]

    def _look(self, only: Sequence[str] | None) -> tuple[Scan, list[str]]:
        """Scan the store and tell which indexed paths are gone.

        What could not be looked at is not gone.
        """
        scan = self.store.scan(only)
        gone = self._gone(scan, only)
        if len(gone) > MASS_REMOVAL and len(gone) > MASS_SHARE * len(self.index.stamps()):
            time.sleep(SECOND_LOOK_SECONDS)
            scan = self.store.scan(only)
            gone = sorted(set(gone) & set(self._gone(scan, only)))
        return scan, gone

    def _gone(self, scan: Scan, only: Sequence[str] | None) -> list[str]:
        known = self.index.stamps(only)
        if only is None or (
            unknown := [path for path in only if path not in known and path not in scan.stamps]
        ):
            # What is neither a document nor a file may be a folder that went away with everything
            # in it.
            every = self.index.stamps()
            known = (
                every
                if only is None
                else {p: every[p] for p in every if _below(p, {*known, *unknown})}
            )
        return [
            path
            for path in known
            if path not in scan.stamps and not _below(path, scan.unreadable.keys())
        ]

    def _read(self, paths: Sequence[str], most: int) -> tuple[int, int, int, int]:
        """Read, parse, chunk and apply paths until there are so many chunks.

        Count the new, changed, same, and all.
        """
        with self._writing:
            known = self.index.stamps(paths)
            entries: list[Entry] = []
            same: dict[str, str] = {}
            gone: list[str] = []
            looked = chunks = 0
            for path in paths:
                if chunks >= most:
                    break
                looked += 1
                started = time.thread_time()
                self.skipped.pop(path, None)
                self._refused.pop(path, None)
                try:
                    source = self.store.read(path)
                except NotFoundError:
                    gone.append(path)
                    continue
                except RagdocsError as error:
                    self.skipped[path] = str(error)
                    continue
                if known.get(path, ("", ""))[1] == source.version:
                    same[path] = source.stamp
                    continue
                parsed = parse.parse(source, self.lane)
                entry = Entry(
                    parsed.document, chunk.chunk(parsed, self.lane.chunking), source.stamp
                )
                if reason := self.index.objection(
                    entry, FILE_SECONDS - (time.thread_time() - started)
                ):
                    self.skipped[path] = reason
                    self._refused[path] = (source.stamp, reason)
                    gone.append(path)
                    continue
                entries.append(entry)
                chunks += len(entry.chunks)
            self.index.apply(entries, gone)
            self.index.restamp(same)
            new = sum(entry.document.path not in known for entry in entries)
            return new, len(entries) - new, len(same), looked


def _below(path: str, folders: AbstractSet[str]) -> bool:
    """Tell whether a path is one of these or below one; costs its depth, not their number."""
    parts = path.split("/")
    return not folders.isdisjoint(
        ["", ".", *("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))]
    )
