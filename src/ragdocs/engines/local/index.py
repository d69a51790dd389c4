"""The index of one lane in one process.

Catalog, vectors, keywords and graph behind one lock, with snapshots.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragdocs.engines.local import portions, snapshot
from ragdocs.engines.local.catalog import Catalog
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.engines.local.passages import Buffer
from ragdocs.engines.local.sharing import SharedLock
from ragdocs.engines.local.snapshot import Pieces
from ragdocs.engines.local.view import LocalSnapshot
from ragdocs.engines.local.waiting import Waiting
from ragdocs.protocols import IndexInfo, Vectors
from ragdocs.system import files
from ragdocs.system.heap import leave_alone, without_collection
from ragdocs.system.locks import lock
from ragdocs.text.recipe import ANALYSER
from ragdocs.types import Chunk, Document, IndexedDocument

if TYPE_CHECKING:
    from ragdocs.engines.local.postings import KeywordTable
    from ragdocs.engines.local.vectors import VectorTable
    from ragdocs.search.fields import FieldTerms

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


class _StoredVectors(NamedTuple):
    """The files of a vector table, as they were stored."""

    data: Buffer = b""
    graph: Buffer = b""
    rows: Buffer = b""


class _Parts(NamedTuple):
    """What an index is made of, as it comes back from disk."""

    catalog: Catalog
    graph: LinkGraph
    keywords: Mapping[str, memoryview]
    vectors: _StoredVectors
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
        # Read when vectors are first needed or counted, because numpy takes a while to import.
        self._vectors: VectorTable | None = None
        self._stored_vectors = _StoredVectors()
        self._waiting = Waiting()

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
            vectors = self._read_vectors()
            return IndexInfo(
                documents=len(self._catalog),
                passages=self._catalog.passage_count,
                vectors=len(vectors),
                links=len(self._graph),
                vector_search=vectors.method,
                calibration=self._calibration,
                languages=self._languages(),
            )

    def _languages(self) -> dict[str, int]:
        """Count the passages in each language that has stems of its own, without English."""
        if self._words is None and self._stored_languages is not None:
            return dict(self._stored_languages)
        from ragdocs.search.fields import LANGUAGE_TERMS

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
        passages = _terms_of(changed)
        paths = [*removed, *(entry.document.path for entry in changed)]
        gone = self._catalog.rows_at(paths)
        has_words = bool(passages or gone)
        if has_words:
            self._read_vectors()
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
            if len(self._read_vectors()):
                # A first index, which has none, does not wait for FAISS.
                self._table().remove(gone)
            self._waiting.change(gone, added)
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
        with self._applying, self._lock.reading():
            self._table()
            return self._waiting.first(limit, paths, self._catalog)

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the passages with these digests."""
        with self._applying:
            table = self._table()
            rows: list[int] = []
            row_vectors: list[Vectors] = []
            for digest, vector in vectors.items():
                waiting = self._waiting.take(digest, self._catalog)
                rows += waiting
                row_vectors += [vector] * len(waiting)
            if rows:
                with self._lock.writing():
                    table.add(rows, row_vectors)
                self._waiting.end(rows)
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
            self._vectors = None
            self._stored_vectors = _StoredVectors()
            self._waiting = Waiting()
            self._dirty = False

    def contents(self) -> dict[str, list[Any]]:
        """List everything by document and passage, so that two indexes can be compared."""
        from ragdocs.engines.local.postings import ASTRAY

        with self._applying, self._lock.reading():
            passages: dict[int, Chunk] = {}
            for row in self._catalog.every_row():
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
            snapshot.report("the stored index cannot be read and is built anew", error)
            return False
        with self._applying, self._lock.writing():
            self._catalog = parts.catalog
            self._graph = parts.graph
            self._words = None
            self._word_files = parts.keywords
            self._stored_languages = parts.languages
            self._vectors = None
            self._stored_vectors = parts.vectors
            self._calibration = parts.calibration
            self._dirty = encoder != self._encoder
        for part in files_by_path.values():
            # Only a little of what was mapped is needed again.
            files.release(part)
        return True

    def _restore(self, parts: Mapping[str, memoryview], *, with_vectors: bool) -> _Parts:
        cards = portions.FirstList(parts[DOCSTORE])
        graph = LinkGraph.restore(parts[GRAPH])
        catalog = Catalog.restore(cards, parts[TABLE], parts[PASSAGES], graph.links)
        others = json.loads(cards.rest)
        catalog.passages.name_headings(others["headings"])
        graph.expect(catalog.documents())
        keyword_files = {}
        for path, body in parts.items():
            if path.startswith(KEYWORD):
                keyword_files[path.removeprefix(KEYWORD)] = body
        languages = others.get("languages")
        if not with_vectors:
            # Vectors of another model are worthless here: the passages wait for new ones.
            return _Parts(catalog, graph, keyword_files, _StoredVectors(), {}, languages)
        vectors = _StoredVectors(parts[FAISS], parts.get(NEIGHBOURS, b""), parts[VECTOR_ROWS])
        gauge = others.get("gauge") or {}
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
        from ragdocs.search.fields import field_terms

        try:
            return KeywordTable(self._word_files)
        except _UNREADABLE as error:
            snapshot.report("the stored words are made anew", error)
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
            vectors = self._known_vectors()
            try:
                vectors.open()
            except ValueError as error:
                vectors = self._without_vectors(error)
                vectors.open()
            return vectors

    def _read_vectors(self) -> VectorTable:
        """Return the vectors, of which those that have one can be told; FAISS may not be there."""
        with self._opening:
            return self._known_vectors()

    def _known_vectors(self) -> VectorTable:
        from ragdocs.engines.local.vectors import VectorTable

        if self._vectors is not None:
            return self._vectors
        try:
            self._vectors = VectorTable.restore(*self._stored_vectors, self._dim)
        except _UNREADABLE as error:
            return self._without_vectors(error)
        self._stored_vectors = _StoredVectors()
        self._waiting = self._without_vector(self._vectors)
        return self._vectors

    def _without_vectors(self, error: Exception) -> VectorTable:
        from ragdocs.engines.local.vectors import VectorTable

        snapshot.report("the stored vectors are made anew", error)
        self._vectors = VectorTable(self._dim)
        self._stored_vectors = _StoredVectors()
        self._waiting = self._without_vector(self._vectors)
        return self._vectors

    def _without_vector(self, vectors: VectorTable) -> Waiting:
        every_row = self._catalog.every_row()
        return Waiting(vectors.missing(every_row))

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
        from ragdocs.engines.local import packing

        vectors, neighbours, rows = self._table().dump()
        cards, table, passages = packing.dump(self._catalog)
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
        from ragdocs.engines.local import packing

        most = MOST_ROWS * self._catalog.passage_count + SPARE_ROWS
        if len(self._catalog.passages) <= most:
            return
        keywords = self._keywords()
        catalog, moved = packing.compacted(self._catalog)
        vectors = self._table().renumbered(moved)
        if vectors is None:
            return
        with self._lock.writing():
            self._catalog = catalog
            self._vectors = vectors
            keywords.renumber(moved)
            self._waiting = self._without_vector(vectors)

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
            from ragdocs.engines.local.vectors import build_graph

            graph = build_graph(wanted[1])
            with self._applying, self._lock.writing():
                self._table().adopt(wanted[0], graph)


def _terms_of(entries: Sequence[IndexedDocument]) -> list[FieldTerms]:
    """Return the terms of all passages; where there are none, nothing is imported for it."""
    if not entries:
        return []
    from ragdocs.search.fields import field_terms

    passages: list[FieldTerms] = []
    for entry in entries:
        passages += field_terms(entry)
    return passages
