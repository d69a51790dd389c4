"""The index of one lane in one process.

Catalog, vectors, keywords and graph behind one lock, with snapshots.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ragdocs.engines.local import snapshot
from ragdocs.engines.local.catalog import Catalog, Mask
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.engines.local.postings import KeywordTable
from ragdocs.engines.local.vectors import VectorTable, build_graph
from ragdocs.protocols import Keys, Scored, Siblings, Vectors
from ragdocs.search.fields import fields, meant, objection
from ragdocs.system import files as fsio
from ragdocs.system.heap import without_collection
from ragdocs.system.locks import lock
from ragdocs.text.terms import ANALYSER
from ragdocs.types import Chunk, Document, Entry, Filter, Link

# The layout of a generation; a change here rebuilds every index.
FORMAT = "6"

DOCSTORE = "vector/docstore.json"
FAISS = "vector/faiss_index.bin"
NEIGHBOURS = "vector/neighbours.bin"
TABLE = "vector/table.bin"
PASSAGES = "vector/passages.txt"
GRAPH = "graph/graph.json"
KEYWORD = "keyword/"

# Chunks whose words are written while searches wait; more are written before, which takes
# milliseconds for each.
MOST_AT_ONCE = 50
# Passages of one document that are encoded before those of others get their turn; a file of 10 MB
# has 11,000.
PASSAGES_IN_TURN = 256
# Rows that were ever given, for each that is alive, before they are numbered anew.
MOST_ROWS, SPARE_ROWS = 2, 1_000

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


class LocalIndex:
    """Finds chunks of one lane; every method may be called from any thread."""

    def __init__(
        self,
        directory: Path | None,
        *,
        recipe: str,
        encoder: str,
        dim: int,
        key: bytes = b"",
        mapped: bool = False,
    ) -> None:
        self._directory = directory
        self._mapped = mapped
        self._recipe = {"format": FORMAT, "analyser": ANALYSER, "chunker": recipe}
        self._encoder = encoder
        self._dim = dim
        self._key = key
        # Whoever changes something takes both, this one first; whoever searches takes the other.
        self._applying = threading.Lock()
        self._lock = threading.RLock()
        self._dirty = False
        self._clear()

    @property
    def dirty(self) -> bool:
        """Tell whether something changed since the last snapshot."""
        return self._dirty

    def _clear(self) -> None:
        self._gauge: Mapping[str, float] | None = None
        self._catalog = Catalog()
        self._graph = LinkGraph()
        self._keywords = KeywordTable()
        self._vectors = VectorTable(self._dim)
        # Rows without a vector, and their order by digest, made when it is asked for.
        self._bare: set[int] = set()
        self._waiting: dict[str, list[int]] | None = None

    @property
    def gauge(self) -> Mapping[str, float] | None:
        """What scores are measured by, if that is known; kept with the index."""
        return self._gauge

    @gauge.setter
    def gauge(self, gauge: Mapping[str, float] | None) -> None:
        self._gauge = gauge
        self._dirty = True

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed.

        To the stamp and version it had.
        """
        with self._lock:
            known = self._catalog.stamps
            return (
                dict(known)
                if paths is None
                else {path: known[path] for path in paths if path in known}
            )

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Remember new stamps of paths whose text did not change."""
        with self._lock:
            for path, stamp in stamps.items():
                self._catalog.restamp(path, stamp)
            self._dirty = self._dirty or bool(stamps)

    def apply(self, changed: Sequence[Entry], removed: Sequence[str] = ()) -> None:
        """Add or replace documents and drop the paths in `removed`, in one step."""
        with self._applying:
            texts = [text for entry in changed for text in fields(entry)]
            if is_long := len(texts) > MOST_AT_ONCE:
                self._keywords.write(texts)
            with self._lock:
                paths = [*removed, *(entry.document.path for entry in changed)]
                dropped = [one for path in paths if (one := self._catalog.remove(path))]
                gone = [row for _, rows in dropped for row in rows]
                for doc_id, _ in dropped:
                    self._graph.remove(doc_id)
                added = [row for entry in changed for row in self._catalog.add(entry)]
                for entry in changed:
                    self._graph.add(entry.document)
                if added or gone:
                    if gone or not is_long:
                        self._keywords.write(() if is_long else texts, gone)
                    self._keywords.adopt(added)
                    self._table().remove(gone)
                    self._bare = (self._bare - set(gone)) | set(added)
                    self._waiting = None
                    self._dirty = True

    def objection(self, entry: Entry, seconds: float) -> str:
        """Say why a document would hold up all others, for so much processor time at most.

        Or nothing.
        """
        return objection(entry, seconds)

    def documents(self, where: Filter | None = None) -> list[Document]:
        """List document cards, in the order of their paths."""
        with self._lock:
            return self._catalog.documents(None if where is None else self._slots(where))

    def document(self, doc_id: str) -> Document | None:
        """Return one card, if there is such a document."""
        with self._lock:
            return self._catalog.document(doc_id)

    def missing(self, limit: int, paths: Collection[str] = ()) -> list[tuple[Document, Chunk]]:
        """List chunks without a vector, one for each digest, most recently changed first.

        Or those of these paths.
        """
        with self._lock:
            # A digest may wait in several documents, and any of the paths asked for may be one of
            # them.
            pairs = (map(self._catalog.chunk, rows) for rows in self._wanting().values())
            wanted = (
                next((pair for pair in same if not paths or pair[0].path in paths), None)
                for same in pairs
            )
            return list(islice(filter(None, wanted), limit))

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the chunks with these digests."""
        with self._lock:
            table = self._table()
            waiting = self._wanting()
            wanted = [
                (row, vector)
                for digest, vector in vectors.items()
                for row in waiting.pop(digest, ())
            ]
            if wanted:
                table.add([row for row, _ in wanted], np.stack([vector for _, vector in wanted]))
                self._bare.difference_update(row for row, _ in wanted)
                self._dirty = True

    def nearest(self, vector: Vectors, k: int, *wheres: Filter) -> Scored:
        """Return the k chunks with the largest inner product among those that pass each of the filters."""
        with self._lock:
            table = self._table()
            found = dict(
                pair for where in wheres for pair in table.nearest(vector, k, self._mask(where))
            )
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))

    def match(self, text: str, k: int, *wheres: Filter) -> Scored:
        """Return the k best chunks by keyword score among those that pass each of the filters.

        1.0 is every term once in a passage of average length.
        """
        with self._lock:
            return self._keywords.match(
                text, k, [self._mask(where) for where in wheres], self._catalog.alive
            )

    def weigh(self, text: str, vector: Vectors | None, keys: Keys) -> tuple[Vectors, Vectors]:
        """Return the keyword score and the inner product of each of these chunks, found or not."""
        with self._lock:
            words = (
                self._keywords.scores(text, self._catalog.alive)[keys]
                if text
                else np.zeros(len(keys), np.float32)
            )
            if vector is None:
                return words, np.zeros(len(keys), dtype=np.float32)
            return words, self._table().products(vector, keys)

    def siblings(self, keys: Keys) -> Siblings:
        """Return all chunks of the documents that have these chunks."""
        with self._lock:
            return self._catalog.siblings(keys)

    def asked(self, text: str) -> int:
        """Count the different words that a query asks for."""
        with self._lock:
            return self._keywords.asked(text, self._catalog.alive)

    def matched(self, text: str, keys: Sequence[int]) -> list[tuple[str, ...]]:
        """Return for each chunk the words of a query that stand in it, as the query wrote them."""
        words = dict.fromkeys(word.strip(".,;:!?\"'()") for word in text[:2000].split())
        with self._lock:
            held = {word: self._keywords.holding(keys, meant(word)) for word in words}
        return [
            tuple(word for word, mask in held.items() if mask[place]) for place in range(len(keys))
        ]

    def linked(self, doc_ids: Sequence[str], where: Filter) -> list[Collection[str]]:
        """Return, for each of these, the documents it links to that pass the filter."""
        with self._lock:
            slots = self._slots(where)
            every = [self._graph.linked(doc_id) for doc_id in doc_ids]
            return [
                [target for target in one if self._catalog.passes(target, slots)] for one in every
            ]

    def links_to(
        self, names: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""
        with self._lock:
            return self._graph.links_to(names, among) if names else {}

    def owners(self, keys: Sequence[int]) -> list[Document]:
        """Return the documents that have the chunks with these keys."""
        with self._lock:
            return self._catalog.owners(keys)

    def load(self, keys: Sequence[int]) -> list[tuple[Document, Chunk]]:
        """Return the chunks with these keys and their documents."""
        with self._lock:
            loaded = [self._catalog.chunk(key) for key in keys]
            self._catalog.rest()
            return loaded

    def chunks(self, doc_id: str) -> list[int]:
        """Return the keys of one document's chunks, in order."""
        with self._lock:
            return list(self._catalog.rows(doc_id))

    def vectors(self, doc_ids: Sequence[str]) -> Vectors:
        """Return one unit vector for each document, the mean of its chunks.

        Zero where it has none yet.
        """
        with self._lock:
            return self._table().means([self._catalog.rows(doc_id) for doc_id in doc_ids])

    @property
    def vector_search(self) -> str:
        """Say how vectors are searched."""
        return self._vectors.method

    def held(self) -> AbstractContextManager[object]:
        """Keep the index as it is while several things are asked of it."""
        return self._lock

    def prepare(self) -> None:
        """Bring into memory what a search needs and opening left on disk."""
        with self._lock:
            self._table()

    def counts(self) -> dict[str, int]:
        """Count documents, chunks, vectors and links."""
        with self._lock:
            return {
                "documents": len(self._catalog),
                "chunks": int(np.count_nonzero(self._catalog.alive)),
                "vectors": len(self._vectors),
                "links": len(self._graph),
            }

    def contents(self) -> dict[str, list[Any]]:
        """List everything an index holds, by document and chunk rather than by row.

        So that two can be compared.
        """
        with self._lock:
            rows = {
                row: self._catalog.chunk(row)[1]
                for row in np.flatnonzero(self._catalog.alive).tolist()
            }
            ordered = sorted(rows, key=lambda row: rows[row].id)
            vectors = zip(ordered, self._table().get(ordered), strict=True)
            return {
                "documents": [
                    replace(document, modified_at=None) for document in self._catalog.documents()
                ],
                "chunks": [rows[row] for row in ordered],
                "postings": sorted(
                    (rows[r].id, field, term, w) for field, term, r, w in self._keywords.postings()
                ),
                "edges": list(self._graph.edges()),
                "vectors": [(rows[row].id, vector) for row, vector in vectors],
            }

    def open(self) -> bool:
        """Load the live generation from disk; tell whether there was one that could be used."""
        stored = (
            snapshot.load(self._directory, self._key, mapped=self._mapped)
            if self._directory
            else None
        )
        if stored is None:
            return False
        recipe, parts = stored
        encoder = recipe.pop("encoder", "")
        if recipe != self._recipe:
            return False
        try:
            with without_collection():
                restored = self._restore(parts, with_vectors=encoder == self._encoder)
        except _UNREADABLE as error:
            logger.info("the stored index cannot be read and is built anew: %s", error)
            return False
        with self._lock:
            self._catalog, self._graph, self._keywords, self._vectors, self._gauge = restored
            self._dirty = encoder != self._encoder
            self._count_bare()
        for part in parts.values():
            # Only a little of what was mapped is needed again.
            fsio.release(part)
        return True

    def _restore(
        self, parts: Mapping[str, memoryview], *, with_vectors: bool
    ) -> tuple[Catalog, LinkGraph, KeywordTable, VectorTable, Mapping[str, float] | None]:
        cards = json.loads(bytes(parts[DOCSTORE]))
        graph = LinkGraph.restore(bytes(parts[GRAPH]))
        catalog = Catalog.restore(cards, parts[TABLE], parts[PASSAGES], graph.links)
        for document in catalog.documents():
            graph.name(document)
        files = {
            path.removeprefix(KEYWORD): body
            for path, body in parts.items()
            if path.startswith(KEYWORD)
        }
        # Vectors of another model are worthless here: the chunks wait for new ones.
        vectors = VectorTable(self._dim)
        if with_vectors:
            vectors = VectorTable.restore(
                parts[FAISS], parts.get(NEIGHBOURS, b""), cards["vector_rows"], self._dim
            )
        return (
            catalog,
            graph,
            KeywordTable(files),
            vectors,
            cards.get("gauge") if with_vectors else None,
        )

    def _table(self) -> VectorTable:
        """Return the vectors, opened; what cannot be opened is forgotten and computed anew."""
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
        """Write a snapshot if anything changed and nobody else is writing one.

        Return the generation's name.
        """
        if self._directory is None or not self._dirty:
            return None
        self._improve()
        with self._applying, self._lock:
            self._compact()
            self._keywords.consolidate()
            faiss_index, neighbours, rows = self._table().dump()
            cards, table, passages = self._catalog.dump()
            parts = {
                GRAPH: self._graph.dump(),
                FAISS: faiss_index,
                TABLE: table,
                PASSAGES: passages,
            }
            if neighbours:
                parts[NEIGHBOURS] = neighbours
            parts |= {KEYWORD + name: data for name, data in self._keywords.dump().items()}
            self._dirty = False
        with ExitStack() as undo:
            undo.callback(setattr, self, "_dirty", True)
            # A file name need not be text: half characters stand for its other bytes, and json
            # reads them back.
            docstore = {**cards, "vector_rows": rows, "gauge": self._gauge}
            parts[DOCSTORE] = json.dumps(docstore, ensure_ascii=False, default=str).encode(
                "utf-8", "surrogatepass"
            )
            fsio.make_directories(self._directory, 0o700)
            with lock(self._directory, timeout=0):
                recipe = {**self._recipe, "encoder": self._encoder}
                name = snapshot.save(self._directory, parts, recipe, self._key)
            undo.pop_all()
        return name

    def _compact(self) -> None:
        """Give rows new numbers when most numbers belong to the dead.

        Every filter and score walks over them all.
        """
        alive = self._catalog.alive
        if len(alive) <= MOST_ROWS * np.count_nonzero(alive) + SPARE_ROWS:
            return
        catalog, moved = self._catalog.compacted()
        if self._table().renumber(moved):
            self._catalog = catalog
            self._keywords.renumber(moved)
            self._count_bare()

    def _improve(self) -> None:
        """Build the graph of a large table beside it.

        That takes long, and searches go on meanwhile.
        """
        with self._lock:
            wanted = self._table().ungraphed()
        if wanted:
            graph = build_graph(wanted[1])
            with self._lock:
                self._vectors.adopt(wanted[0], graph)

    def _slots(self, where: Filter) -> Mask:
        linked = self._graph.pointing(where.linked_to) if where.linked_to else None
        return self._catalog.slots(where, linked)

    def _mask(self, where: Filter) -> Mask:
        return self._catalog.mask(self._slots(where))

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
        return (-modified.timestamp() if modified else 0.0, row)
