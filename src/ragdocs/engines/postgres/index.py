"""The index of one lane of one project in a team's database."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from secrets import randbelow, token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragdocs.engines.postgres import bounds, contents, graphs, statistics, waiting, words
from ragdocs.engines.postgres.candidates import SearchedScope
from ragdocs.engines.postgres.cards import Cards, as_bytes, restored, stored
from ragdocs.engines.postgres.hot import HotScope
from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.rows import AnalysedDocument, Averages, analysed, average_lengths
from ragdocs.engines.postgres.snapshot import PostgresSnapshot
from ragdocs.engines.postgres.statistics import NOTHING, TOTALS, Totals
from ragdocs.engines.postgres.writing import EMPTYING, DocumentWriter, lock_documents
from ragdocs.errors import UnavailableError
from ragdocs.protocols import IndexInfo, Vectors
from ragdocs.search.fields import LANGUAGE_TERMS
from ragdocs.system.postgres.database import Database
from ragdocs.text.recipe import ANALYSER
from ragdocs.types import Chunk, Document, IndexedDocument

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

# What rows mean; a change here rebuilds every index.
FORMAT = "1"
# Counts are asked for before every search; those of this caller are believed for so long.
INFO_SECONDS = 1.0
# Documents whose rows are made before they are sent; a server ends transactions that stand still.
WRITTEN_AT_ONCE = 100
# Passages of a change set that is compared with the rows before it is analysed, while others wait;
# a larger one is analysed first.
MOST_EDITED = 500
# Changed counts of terms that may wait before they are added up.
MOST_TALLIES = 20_000
# Writes after which their differences are added up: every search reads those that are not.
MOST_WRITES = 64
# The name of the encoder of a machine that has no model: it searches by words, and what it writes
# is encoded by others.
NO_ENCODER = "none"
HINT_ENCODER = "Set [embedding] model as the team has it, or let an administrator index anew"
HINT_RECIPE = "Restart this server; if it says so again, upgrade it"


class State(NamedTuple):
    """What is stored about an index besides its counts."""

    recipe: str
    encoder: str
    dim: int
    reference: Averages
    calibration: Mapping[str, float]
    graph: int


class PostgresIndex:
    """Finds passages of one scope; every method may be called from any thread."""

    def __init__(
        self,
        database: Database,
        scope: int,
        *,
        recipe: str,
        encoder: str,
        dim: int,
        exact: bool = False,
    ) -> None:
        self._database = database
        self._scope = scope
        self._recipe = f"{FORMAT}/{ANALYSER}/{recipe}"
        self._encoder = encoder
        self._dim = dim
        self._claimant = token_hex(8)
        self._cards = Cards()
        self._hot = HotScope()
        self._lock = threading.Lock()
        # Counts as a caller saw them, and when.
        self._infos: dict[str, tuple[float, IndexInfo]] = {}
        # Whether to compare all vectors even where there is a graph of neighbours.
        self._exact = exact
        self._has_graph = False
        self._tallied = 0
        # Of processes that write once, one in so many has its turn to add up.
        self._writes = randbelow(MOST_WRITES)
        # What scores by words alone are measured by, on a machine without a model.
        self._own_calibration: Mapping[str, float] | None = None

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Read one state; changes made meanwhile are not seen."""
        graph_dim = self._dim if self._has_graph else 0
        with self._database.turns(self._scope) as turns:
            scope = SearchedScope(self._scope, graph_dim, self._hot)
            yield PostgresSnapshot(turns, scope, self._cards)

    def info(self) -> IndexInfo:
        """Return the counts and the calibration, at most a second old."""
        name = self._database.caller_name
        now = time.monotonic()
        at, info = self._infos.get(name, (0.0, None))
        if info is not None and now - at < INFO_SECONDS:
            return info
        with self._database.turns(self._scope) as turns:
            values = {"scope": self._scope}
            totals, states, languages = turns.ask(
                (TOTALS, values),
                (_STATE, values),
                words.frequencies_of(self._scope, list(LANGUAGE_TERMS)),
                is_last=True,
            )
        counts = Totals.of(totals[0][0]).counts
        calibration: Mapping[str, float] = {}
        graph = 0
        if states:
            state = _state(states[0])
            calibration = state.calibration
            graph = state.graph
        if self._own_calibration is not None:
            calibration = self._own_calibration
        self._has_graph = graph > 0 and not self._exact
        info = IndexInfo(
            documents=counts["documents"],
            passages=counts["passages"],
            vectors=counts["vectors"],
            links=counts["links"],
            vector_search="HNSW" if self._has_graph else "exact",
            calibration=calibration,
            languages={LANGUAGE_TERMS[term]: count for term, count in languages if count > 0},
        )
        self._infos[name] = (now, info)
        return info

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""
        values: dict[str, Any] = {"scope": self._scope}
        among = ""
        if paths is not None:
            values["paths"] = [stored(path) for path in paths]
            among = "AND path = ANY (%(paths)s)"
        sql = f"SELECT path, stamp, version FROM documents WHERE scope = %(scope)s {among}"
        with self._database.turns(self._scope) as turns:
            (rows,) = turns.ask((sql, values), is_last=True)
        stamps: dict[str, tuple[str, str]] = {}
        for path, stamp, version in rows:
            stamps[restored(path)] = (restored(stamp), restored(version))
        return stamps

    def apply(
        self,
        changed: Sequence[IndexedDocument],
        removed: Sequence[str] = (),
        restamped: Mapping[str, str] | None = None,
    ) -> None:
        """Add or replace documents, drop paths, and note new stamps, in one step."""
        if not changed and not removed and not restamped:
            return
        entries = {entry.document.path: entry for entry in changed}
        gone = [path for path in removed if path not in entries]
        ready: dict[str, AnalysedDocument] = {}
        if sum(len(entry.chunks) for entry in changed) > MOST_EDITED:
            ready = {path: analysed(entry) for path, entry in entries.items()}
        documents = list(entries.values())
        with self._database.writing(self._scope, in_pipeline=True) as session:
            lock_documents(session, self._scope, [*entries, *gone])
            writer = DocumentWriter(session, self._scope)
            # Asked for before the state is waited for, so that both come in one turn.
            rows = writer.look(documents[:WRITTEN_AT_ONCE])
            state = self._writable(session, documents)
            for start in range(0, len(documents), WRITTEN_AT_ONCE):
                part = documents[start : start + WRITTEN_AT_ONCE]
                if start:
                    rows = writer.look(part)
                writer.write(part, rows, state.reference, ready)
            writer.remove(gone)
            if restamped:
                writer.restamp(restamped)
            tallied = writer.finish()
        self._written(tallied)

    def claim_missing(
        self, limit: int, paths: Collection[str] = ()
    ) -> list[tuple[Document, Chunk]]:
        """Take passages to encode, one for each digest, the most recently changed first.

        A claim keeps other servers off for two minutes.
        """
        if self._encoder == NO_ENCODER:
            return []
        with self._database.maintaining() as session:
            state = self._state(session)
            if state is None:
                return []
            self._check_encoder(session, state)
            claimed = waiting.claim(session, self._scope, self._claimant, limit, paths)
            return contents.first_of_slots(session, self._scope, claimed, self._cards)

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the passages with these digests."""
        if not vectors:
            return
        with self._database.maintaining() as session:
            session.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [EMPTYING, self._scope])
            state = self._state(session)
            if state is None:
                return
            self._check_encoder(session, state)
            waiting.fill(session, self._scope, vectors)
        self._written(0)

    def calibrate(self, calibration: Mapping[str, float]) -> None:
        """Keep what scores are measured by."""
        if self._encoder == NO_ENCODER:
            # The team measures by words and meaning.
            self._own_calibration = dict(calibration)
            self._infos.clear()
            return
        with self._database.maintaining() as session:
            session.execute(
                "UPDATE indexes SET calibration = %s WHERE scope = %s",
                [as_bytes(dict(calibration)), self._scope],
            )
        self._infos.clear()

    def refresh(self) -> None:
        """Add up what writers have noted; answers stay the same, and searches get quicker.

        For whoever has time: after a bulk load, and every few minutes where others write.
        """
        with self._database.maintaining() as session:
            if not statistics.fold(session, self._scope):
                return
            with self._lock:
                self._tallied = 0
                self._writes = 0
            self._renew_bounds(session)

    def _renew_bounds(self, session: Session) -> None:
        """Make the bounds of a young index anew if they are loose and nobody is writing."""
        state = self._state(session)
        counted = session.execute(TOTALS, {"scope": self._scope}, binary=True).fetchone()
        totals = Totals.of(counted[0] if counted else None)
        if state is None or not 0 < totals.passages <= bounds.MOST_PASSAGES:
            return
        if not bounds.have_drifted(totals.averages, state.reference):
            return
        row = session.execute(
            "SELECT pg_try_advisory_xact_lock(%s, %s)", [EMPTYING, self._scope]
        ).fetchone()
        if row is not None and row[0]:
            bounds.renew(session, self._scope, totals.averages)

    def open(self) -> bool:
        """Tell whether there is anything to use; an index of another recipe is emptied.

        An index with vectors of another encoder is refused and left alone. Without an encoder it
        is searched by words.
        """
        with self._database.maintaining() as session:
            state = self._state(session)
            if state is None:
                return False
            self._check_encoder(session, state)
            if state.recipe == self._recipe:
                return True
            session.execute("SELECT pg_advisory_xact_lock(%s, %s)", [EMPTYING, self._scope])
            session.execute("SELECT forget_scope(%s)", [self._scope])
        self._infos.clear()
        return False

    def prepare(self) -> None:
        """Connect to the database."""
        self.info()

    def save(self) -> str | None:
        """Add up what writers have noted and build what searches a large index needs.

        Everything else is saved already.
        """
        self.refresh()
        info = self.info()
        can_build = not self._exact and self._encoder != NO_ENCODER
        if info.vector_search == "exact" and can_build:
            graphs.build(self._database, self._scope, self._dim, info.vectors)
            self._infos.clear()
        return None

    def contents(self) -> dict[str, list[Any]]:
        """List everything by document and passage, so that two indexes can be compared."""
        with self._database.reading() as session:
            listed = contents.everything(session, self._scope, self._dim, self._cards)
        if self._encoder == NO_ENCODER:
            # It cannot tell whether the vectors of others are right.
            blank = np.zeros(self._dim, dtype=np.float32)
            listed["vectors"] = [(name, blank) for name, _ in listed["vectors"]]
        return listed

    def close(self) -> None:
        """Forget what is in memory; connections belong to the database."""
        self._hot.forget()

    def _written(self, tallied: int) -> None:
        """Forget what is known of the counts, and add up the tallies when there are many."""
        self._infos.clear()
        with self._lock:
            self._tallied += tallied
            self._writes += 1
            is_many = self._tallied > MOST_TALLIES or self._writes >= MOST_WRITES
        if is_many:
            # What is written stays written if this has to wait.
            with suppress(UnavailableError):
                self.refresh()

    def _state(self, session: Session) -> State | None:
        row = session.execute(_STATE, {"scope": self._scope}, binary=True).fetchone()
        if row is None:
            return None
        return _state(row)

    def _writable(self, session: Session, documents: Sequence[IndexedDocument]) -> State:
        """Return the state of an index that this one may write to; make it if there is none."""
        state = self._state(session)
        if state is None:
            self._create(session, documents)
            state = self._state(session)
            assert state is not None
        self._check_encoder(session, state)
        if state.recipe != self._recipe:
            raise UnavailableError("another version of ragdocs has made this index", HINT_RECIPE)
        return state

    def _create(self, session: Session, documents: Sequence[IndexedDocument]) -> None:
        sums = np.zeros(len(FIELDS), dtype=np.int64)
        passages = 0
        for document in documents[:WRITTEN_AT_ONCE]:
            sums += np.array(analysed(document).sums, dtype=np.int64)
            passages += len(document.chunks)
        session.execute(
            """
            INSERT INTO indexes (scope, recipe, encoder, dim, counts, reference)
            VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (scope) DO NOTHING
            """,
            [
                self._scope,
                self._recipe,
                self._encoder,
                self._dim,
                list(NOTHING),
                average_lengths(sums.tolist(), passages).tolist(),
            ],
        )

    def _check_encoder(self, session: Session, state: State) -> None:
        """Refuse vectors of another encoder; where nobody had one yet, this one is the team's."""
        ours = (self._encoder, self._dim)
        if self._encoder == NO_ENCODER or ours == (state.encoder, state.dim):
            return
        made_by = state.encoder
        if made_by == NO_ENCODER:
            session.execute(
                "UPDATE indexes SET encoder = %s, dim = %s WHERE scope = %s AND encoder = %s",
                [self._encoder, self._dim, self._scope, NO_ENCODER],
            )
            # Another server may have been quicker.
            present = self._state(session)
            if present is None or ours == (present.encoder, present.dim):
                return
            made_by = present.encoder
        raise UnavailableError(
            f"the vectors of this project were made with {made_by}, "
            f"and this machine encodes with {self._encoder}",
            HINT_ENCODER,
        )


_STATE = """
SELECT recipe, encoder, dim, reference, calibration, graph FROM indexes WHERE scope = %(scope)s
"""


def _state(row: tuple[Any, ...]) -> State:
    recipe, encoder, dim, reference, calibration, graph = row
    averages = np.array(reference, dtype=np.float64)
    return State(recipe, encoder, dim, averages, json.loads(calibration), graph)
