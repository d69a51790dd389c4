"""The index of one lane in one process.

Catalog, vectors, keywords and graph behind one lock, with snapshots.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragdocs.engines.local import portions, snapshot
from ragdocs.engines.local.catalog import Catalog
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.engines.local.sharing import SharedLock
from ragdocs.engines.local.snapshot import Pieces
from ragdocs.engines.local.vectors import VectorTable, build_graph
from ragdocs.engines.local.view import LocalSnapshot
from ragdocs.protocols import IndexInfo, Vectors
from ragdocs.search.fields import LANGUAGE_TERMS, FieldTerms, field_terms
from ragdocs.system import files
from ragdocs.system.heap import leave_alone, without_collection
from ragdocs.system.locks import lock
from ragdocs.text.terms import ANALYSER
from ragdocs.types import Chunk, Document, IndexedDocument

if TYPE_CHECKING:
    from ragdocs.engines.local.postings import KeywordTable

# The layout of a generation; a change here rebuilds every index.
FORMAT = "8"

DOCSTORE = "vector/docstore.json"
FAISS = "vector/faiss_index.bin"
NEIGHBOURS = "vector/neighbours.bin"
VECTOR_ROWS = "vector/rows.bin"
TABLE = "vector/table.bin"
PASSAGES = "vector/passages.txt"
GRAPH = "graph/graph.json"
KEYWORD = "keyword/"

# What `verify` says of a posting that Whoosh's files and the words that are searched do not share.
UNLIKE = "(in one of two forms only)"
NO_PASSAGE = "(no passage)"
# Passages of one document that are encoded before those of others get their turn; a file of 10 MB
# has 11,000.
PASSAGES_IN_TURN = 256
# Passages whose objects are worth keeping the garbage collector off.
MANY_PASSAGES = 1_000
# Rows that were ever given, for each that is alive, before they are numbered anew.
MOST_ROWS = 2
SPARE_ROWS = 1_000

# What engines say of bytes that we signed ourselves, with another version of them or on another
# kind of machine.
_UNREADABLE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ImportError,
    OSError,
    EOFError,
    RuntimeError,
)

logger = logging.getLogger("ragdocs")


class _Parts(NamedTuple):
    """What an index is made of, as it comes back from disk."""

    catalog: Catalog
    graph: LinkGraph
    keywords: Mapping[str, memoryview]
    vectors: VectorTable
    calibration: Mapping[str, float]
    languages: Mapping[str, int] | None


class LocalIndex:
    """Finds passages of one lane; every method may be called from any thread."""

    def __init__(
        self,
        directory: Path | None,
        *,
        recipe: str,
        encoder: str,
        dim: int,
        key: bytes = b"",
        private: Path | None = None,
    ) -> None:
        """Keep the index in a directory, or leave nothing on disk.

        `private` is a folder into which nobody else writes.
        """
        self._directory = directory
        self._private = private
        self._recipe = {"format": FORMAT, "analyser": ANALYSER, "chunker": recipe}
        self._encoder = encoder
        self._dim = dim
        self._key = key
        # Whoever changes something takes both, this one first; whoever searches shares the other.
        self._applying = threading.Lock()
        self._lock = SharedLock()
        self._opening = threading.Lock()
        self._opening_words = threading.Lock()
        self._dirty = False
        self._calibration: Mapping[str, float] = {}
        self._catalog = Catalog()
        self._graph = LinkGraph()
        # Opened when words are first needed, because Whoosh takes a while to import: the files as
        # they were stored, and the passages by language, which can be told without them.
        self._words: KeywordTable | None = None
        self._word_files: Mapping[str, memoryview] | None = None
        self._stored_languages: Mapping[str, int] | None = {}
        self._vectors = VectorTable(self._dim)
        # Rows without a vector, and their order by digest, made when it is needed.
        self._bare: set[int] = set()
        self._waiting: dict[str, list[int]] | None = None

    @property
    def dirty(self) -> bool:
        """Tell whether something changed since the last snapshot."""
        return self._dirty

    @contextmanager
    def snapshot(self) -> Iterator[LocalSnapshot]:
        """Read one state, beside others; changes wait until the end of it."""
        with self._lock.reading():
            yield self._view()

    def _view(self) -> LocalSnapshot:
        return LocalSnapshot(self._catalog, self._graph, self._keywords, self._table)

    def info(self) -> IndexInfo:
        """Return the counts and the calibration."""
        with self._lock.reading():
            return IndexInfo(
                documents=len(self._catalog),
                passages=int(np.count_nonzero(self._catalog.alive)),
                vectors=len(self._vectors),
                links=len(self._graph),
                vector_search=self._vectors.method,
                calibration=self._calibration,
                languages=self._languages(),
            )

    def _languages(self) -> dict[str, int]:
        """Count the passages in each language that has stems of its own, without English."""
        if self._words is None and self._stored_languages is not None:
            return dict(self._stored_languages)
        counts = {}
        for term, count in self._keywords().count(LANGUAGE_TERMS).items():
            if count:
                counts[LANGUAGE_TERMS[term]] = count
        return counts

    def calibrate(self, calibration: Mapping[str, float]) -> None:
        """Keep what scores are measured by."""
        self._calibration = dict(calibration)
        self._dirty = True

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""
        with self._lock.reading():
            stamps = self._catalog.stamps
            if paths is None:
                return dict(stamps)
            return {path: stamps[path] for path in paths if path in stamps}

    def apply(
        self,
        changed: Sequence[IndexedDocument],
        removed: Sequence[str] = (),
        restamped: Mapping[str, str] | None = None,
    ) -> None:
        """Add or replace documents, drop paths, and note new stamps, in one step."""
        with self._applying:
            self._apply(changed, removed, restamped or {})
        if self._words is not None and self._words.is_piled:
            self._merge_words()

    def _apply(
        self,
        changed: Sequence[IndexedDocument],
        removed: Sequence[str],
        restamped: Mapping[str, str],
    ) -> None:
        passages: list[FieldTerms] = []
        for entry in changed:
            passages += field_terms(entry)
        paths = [*removed, *(entry.document.path for entry in changed)]
        gone = self._catalog.rows_at(paths)
        has_words = bool(passages or gone)
        if has_words:
            # This takes long, and shows only when it is adopted. Words that cannot be read are made
            # anew from the catalog, before it changes.
            self._keywords().write(passages, gone)
        with self._lock.writing():
            self._remove(paths)
            added = self._add(changed)
            self._restamp(restamped)
            if not has_words:
                return
            self._keywords().adopt(added)
            self._table().remove(gone)
            self._bare.difference_update(gone)
            self._bare.update(added)
            self._waiting = None
            self._dirty = True
        if len(added) >= MANY_PASSAGES:
            leave_alone()

    def _remove(self, paths: Iterable[str]) -> None:
        """Drop documents from catalog and graph."""
        for path in paths:
            document_id = self._catalog.remove(path)
            if document_id:
                self._graph.remove(document_id)

    def _add(self, entries: Sequence[IndexedDocument]) -> list[int]:
        """Add documents to catalog and graph; return their rows."""
        added: list[int] = []
        for entry in entries:
            added.extend(self._catalog.add(entry))
            self._graph.add(entry.document)
        return added

    def _restamp(self, stamps: Mapping[str, str]) -> None:
        for path, stamp in stamps.items():
            self._catalog.restamp(path, stamp)
            self._dirty = True

    def claim_missing(
        self, limit: int, paths: Collection[str] = ()
    ) -> list[tuple[Document, Chunk]]:
        """List passages without a vector, one for each digest, the most recently changed first.

        Nothing is reserved: only this process encodes for this index.
        """
        claimed: list[tuple[Document, Chunk]] = []
        with self._applying, self._lock.reading():
            self._table()
            for rows in self._wanting().values():
                if len(claimed) == limit:
                    break
                passage = self._first_of(rows, paths)
                if passage:
                    claimed.append(passage)
        return claimed

    def _first_of(
        self, rows: Sequence[int], paths: Collection[str]
    ) -> tuple[Document, Chunk] | None:
        """Return the first of these passages, which have one text, that is in one of the paths."""
        for row in rows:
            if not paths or self._catalog.owner(row).path in paths:
                return self._catalog.chunk(row)
        return None

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the passages with these digests."""
        with self._applying:
            table = self._table()
            waiting = self._wanting()
            rows: list[int] = []
            row_vectors: list[Vectors] = []
            for digest, vector in vectors.items():
                for row in waiting.pop(digest, ()):
                    rows.append(row)
                    row_vectors.append(vector)
            if rows:
                with self._lock.writing():
                    table.add(rows, np.stack(row_vectors))
                self._bare.difference_update(rows)
                self._dirty = True

    def prepare(self) -> None:
        """Bring into memory what a search needs and opening left on disk."""
        with self._lock.reading():
            self._table()
            self._keywords()

    def close(self) -> None:
        """Let go of mapped files and memory; the index is empty until it is opened again."""
        with self._applying, self._lock.writing():
            self._catalog = Catalog()
            self._graph = LinkGraph()
            self._words = None
            self._word_files = None
            self._stored_languages = {}
            self._vectors = VectorTable(self._dim)
            self._bare = set()
            self._waiting = None
            self._dirty = False

    def contents(self) -> dict[str, list[Any]]:
        """List everything by document and passage, so that two indexes can be compared."""
        from ragdocs.engines.local.postings import ASTRAY

        with self._applying, self._lock.reading():
            passages: dict[int, Chunk] = {}
            for row in np.flatnonzero(self._catalog.alive).tolist():
                passages[row] = self._catalog.chunk(row)[1]
            ordered = sorted(passages, key=lambda row: passages[row].id)
            postings = []
            for field, term, row, weight in self._keywords().postings():
                postings.append((passages[row].id, field, term, weight))
            for field, term, row, weight in self._keywords().differences():
                # One of the two forms of the words is wrong, so this posting is not as any other.
                passage_id = NO_PASSAGE if row == ASTRAY else passages[row].id
                postings.append((passage_id, field, f"{term} {UNLIKE}", weight))
            documents = []
            for document in self._catalog.documents():
                documents.append(replace(document, modified_at=None))
            ids = [passages[row].id for row in ordered]
            return {
                "documents": documents,
                "chunks": [passages[row] for row in ordered],
                "postings": sorted(postings),
                "edges": self._graph.edges(),
                "vectors": list(zip(ids, self._table().get(ordered), strict=True)),
            }

    def open(self) -> bool:
        """Load the live generation from disk; tell whether there was one that could be used."""
        if self._directory is None:
            return False
        stored = snapshot.load(self._directory, self._key, self._private)
        if stored is None:
            return False
        recipe, files_by_path = stored
        encoder = recipe.pop("encoder", "")
        if recipe != self._recipe:
            return False
        try:
            with without_collection():
                parts = self._restore(files_by_path, with_vectors=encoder == self._encoder)
        except _UNREADABLE as error:
            logger.info("the stored index cannot be read and is built anew: %s", error)
            return False
        with self._applying, self._lock.writing():
            self._catalog = parts.catalog
            self._graph = parts.graph
            self._words = None
            self._word_files = parts.keywords
            self._stored_languages = parts.languages
            self._vectors = parts.vectors
            self._calibration = parts.calibration
            self._dirty = encoder != self._encoder
            self._count_bare()
        for part in files_by_path.values():
            # Only a little of what was mapped is needed again.
            files.release(part)
        return True

    def _restore(self, parts: Mapping[str, memoryview], *, with_vectors: bool) -> _Parts:
        cards = portions.FirstList(parts[DOCSTORE])
        graph = LinkGraph.restore(bytes(parts[GRAPH]))
        catalog = Catalog.restore(cards, parts[TABLE], parts[PASSAGES], graph.links)
        catalog.name_headings(cards.others["headings"])
        graph.expect(catalog.documents())
        keyword_files = {}
        for path, body in parts.items():
            if path.startswith(KEYWORD):
                keyword_files[path.removeprefix(KEYWORD)] = body
        languages = cards.others.get("languages")
        if not with_vectors:
            # Vectors of another model are worthless here: the passages wait for new ones.
            vectors = VectorTable(self._dim)
            return _Parts(catalog, graph, keyword_files, vectors, {}, languages)
        vectors = VectorTable.restore(
            parts[FAISS], parts.get(NEIGHBOURS, b""), parts[VECTOR_ROWS], self._dim
        )
        gauge = cards.others.get("gauge") or {}
        return _Parts(catalog, graph, keyword_files, vectors, gauge, languages)

    def _keywords(self) -> KeywordTable:
        """Return the words, opened; what cannot be opened is made anew from the passages."""
        # Several searches may be the first. Whoever calls this keeps the catalog as it is.
        with self._opening_words:
            if self._words is None:
                self._words = self._opened_words()
                self._word_files = None
            return self._words

    def _opened_words(self) -> KeywordTable:
        from ragdocs.engines.local.postings import KeywordTable

        try:
            return KeywordTable(self._word_files)
        except _UNREADABLE as error:
            logger.info("the stored words are made anew: %s", error)
        self._dirty = True
        rows: list[int] = []
        passages: list[FieldTerms] = []
        for document in self._catalog.documents():
            own_rows = self._catalog.rows(document.id)
            chunks = []
            for row in own_rows:
                chunks.append(self._catalog.chunk(row)[1])
            rows.extend(own_rows)
            passages += field_terms(IndexedDocument(document, tuple(chunks)))
        keywords = KeywordTable()
        keywords.write(passages)
        keywords.adopt(rows)
        return keywords

    def _table(self) -> VectorTable:
        """Return the vectors, opened; what cannot be opened is forgotten and computed anew."""
        # Several searches may be the first.
        with self._opening:
            try:
                self._vectors.open()
            except ValueError as error:
                logger.info("the stored vectors are made anew: %s", error)
                self._vectors = VectorTable(self._dim)
                self._vectors.open()
                self._count_bare()
            return self._vectors

    def _count_bare(self) -> None:
        rows = np.flatnonzero(self._catalog.alive)
        self._bare = set(rows[self._vectors.places(rows) < 0].tolist())
        self._waiting = None

    def save(self) -> str | None:
        """Write a generation if anything changed and nobody else is writing one.

        Return its name.
        """
        if self._directory is None or not self._dirty:
            return None
        self._improve()
        self._merge_words()
        with ExitStack() as undo:
            undo.callback(setattr, self, "_dirty", True)
            with self._applying:
                # Searches go on: nothing changes without this lock.
                self._compact()
                self._dirty = False
                documents, parts = self._dump()
            for path, members in documents.items():
                parts[path] = [portions.written(members)]
            files.make_directories(self._directory, 0o700)
            with lock(self._directory, timeout=0):
                recipe = {**self._recipe, "encoder": self._encoder}
                name = snapshot.save(self._directory, parts, recipe, self._key)
            undo.pop_all()
        for pieces in parts.values():
            for piece in pieces:
                # What was mapped has been read for its digest.
                files.release(piece)
        return name

    def _dump(self) -> tuple[dict[str, Mapping[str, Any]], dict[str, Pieces]]:
        """Return what takes long to write as JSON, and the other parts as bytes."""
        vectors, neighbours, rows = self._table().dump()
        cards, table, passages = self._catalog.dump()
        parts: dict[str, Pieces] = {
            FAISS: [vectors],
            VECTOR_ROWS: [rows],
            TABLE: [table],
            PASSAGES: passages,
        }
        if neighbours:
            parts[NEIGHBOURS] = [neighbours]
        for name, data in self._keywords().dump().items():
            parts[KEYWORD + name] = [data]
        others = {"gauge": self._calibration or None, "languages": self._languages()}
        return {DOCSTORE: {**cards, **others}, GRAPH: self._graph.dump()}, parts

    def _compact(self) -> None:
        """Give rows new numbers when most numbers belong to the dead.

        Every filter and score walks over them all.
        """
        alive = self._catalog.alive
        if len(alive) <= MOST_ROWS * np.count_nonzero(alive) + SPARE_ROWS:
            return
        keywords = self._keywords()
        catalog, moved = self._catalog.compacted()
        vectors = self._table().renumbered(moved)
        if vectors is None:
            return
        with self._lock.writing():
            self._catalog = catalog
            self._vectors = vectors
            keywords.renumber(moved)
            self._count_bare()

    def _merge_words(self) -> None:
        """Merge segments of words beside those that are searched, and put them in their place."""
        with self._applying:
            keywords = self._keywords()
        for merged in keywords.merge():
            with self._applying, self._lock.writing():
                keywords.replace(merged)

    def _improve(self) -> None:
        """Build the graph of a large table beside it.

        That takes long, and searches go on meanwhile.
        """
        with self._applying:
            wanted = self._table().ungraphed()
        if wanted:
            graph = build_graph(wanted[1])
            with self._applying, self._lock.writing():
                self._vectors.adopt(wanted[0], graph)

    def _wanting(self) -> dict[str, list[int]]:
        """Map the digests that need a vector to their rows.

        Kept until the next change of documents.
        """
        if self._waiting is None:
            self._waiting = {}
            rows = self._in_turn(sorted(self._bare, key=self._age))
            for row, digest in zip(rows, self._catalog.digests(rows), strict=True):
                self._waiting.setdefault(digest, []).append(row)
        return self._waiting

    def _in_turn(self, rows: Sequence[int]) -> list[int]:
        """Let the first passages of every document come before the rest of a long one."""
        before: Counter[str] = Counter()
        turns = {}
        for row in rows:
            document = self._catalog.owner(row).id
            turns[row] = before[document] // PASSAGES_IN_TURN
            before[document] += 1
        return sorted(rows, key=turns.__getitem__)

    def _age(self, row: int) -> tuple[float, int]:
        modified = self._catalog.owner(row).modified_at
        if modified is None:
            return 0.0, row
        return -modified.timestamp(), row
