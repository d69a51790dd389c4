"""Measures the index of a team's database beside the local one, on the same corpus in one run."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import _corpora
from bench._measure import Row, Sample, figure, table
from tests import postgres
from tests.faults.processes import process_seconds, tree

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.engines.postgres.index import PostgresIndex
from ragdocs.search import chunk, parse
from ragdocs.search.corpus import Corpus
from ragdocs.system.postgres.database import Database
from ragdocs.types import Filter, IndexedDocument, Probe, Query

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "work_mem": "64MB"}
# Passages above which the goals are those of a large corpus.
LARGE = 50_000
WORDS, BOTH = (0.0, 1.0), None


@dataclass(frozen=True, slots=True)
class Team:
    """A corpus in a database, beside the local one that it was made from."""

    local: _corpora.Corpus
    corpus: Corpus
    index: PostgresIndex
    database: Database
    scope: int

    @property
    def name(self) -> str:
        return self.local.name

    @property
    def chunks(self) -> int:
        return self.local.chunks


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        caller.begin(dataclasses.replace(Caller(), name="bench"))
        cluster = postgres.Cluster(None, **SETTINGS)
        cluster.start()
        try:
            rows = []
            for row in measure(cluster, work, options):
                rows.append(row)
                print(_progress(row), file=sys.stderr, flush=True)
        finally:
            cluster.remove()
            postgres.clean_up()
    print(table(rows))


def measure(cluster: postgres.Cluster, work: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield every row, size by size."""
    for size in sorted({int(size) for size in options.sizes.split(",")}):
        local = _corpora.generate(work, "docs", size)
        database = Database(cluster.migrated())
        team = _team(database, local)
        yield from loading(team)
        server = _clock(cluster)
        queries = local.queries(options.repeats, seed=8)
        yield from searching(team, queries, "words", WORDS, server)
        yield from searching(team, queries, "hybrid", BOTH, server)
        yield from filtered(team, queries)
        yield from overlap(team, queries)
        yield from upserting(team, options.repeats)
        yield from sizes(team, cluster)
        database.close()


def _team(database: Database, local: _corpora.Corpus) -> Team:
    with database.maintaining() as session:
        session.execute("INSERT INTO projects (identity, name) VALUES ('bench', 'bench')")
        session.execute("INSERT INTO grants SELECT 'bench', project, 'writer' FROM projects")
        row = session.execute(
            "INSERT INTO scopes (project, lane) SELECT project, 'docs' FROM projects"
            " RETURNING scope"
        ).fetchone()
    assert row is not None
    (scope,) = row
    encoder = local.place.corpus.encoder
    assert encoder is not None
    index = PostgresIndex(
        database, scope, recipe="bench", encoder=encoder.identity, dim=encoder.dim
    )
    corpus = Corpus(local.place.corpus.lane, local.place.corpus.store, index, encoder)
    return Team(local, corpus, index, database, scope)


def loading(team: Team) -> Iterator[Row]:
    """Index all files and encode all passages."""
    started = time.perf_counter()
    team.corpus.sync()
    indexed = time.perf_counter() - started
    started = time.perf_counter()
    team.corpus.embed(at_once=512)
    filled = time.perf_counter() - started
    started = time.perf_counter()
    team.index.save()
    saved = time.perf_counter() - started
    # What autovacuum does within a minute.
    with team.database.session() as session:
        session.execute("VACUUM ANALYZE")
    info = team.local.place.index.info()
    team.index.calibrate(info.calibration)
    note = f"words {indexed:.1f} s, vectors {filled:.1f} s, statistics and graph {saved:.1f} s"
    rate = team.chunks / (indexed + filled)
    yield figure("load", "files into the database", team, rate, "passages/s", note=note)


def searching(
    team: Team,
    queries: Sequence[str],
    name: str,
    weights: tuple[float, float] | None,
    server: Callable[[], float],
) -> Iterator[Row]:
    """Search in turns, so that what else the machine does hits both alike."""
    local, rows, served = Sample(), Sample(), Sample()
    same = 0
    for warm in (True, False):
        for text in queries:
            query = Query(probes=(Probe(text),), limit=10, weights=weights)
            here = partial(team.local.place.corpus.search, query, NOW)
            there = partial(team.corpus.search, query, NOW)
            if warm:
                here()
                there()
                continue
            ours = local.take(here)
            before = server()
            theirs = rows.take(there)
            served.cpu.append(server() - before)
            same += [h.chunk.id for h in ours.hits] == [h.chunk.id for h in theirs.hits]
    is_large = team.chunks > LARGE
    most = {"words": (3, 5), "hybrid": (4, 5)}[name][is_large]
    note = (
        f"local {local.wall_ms():.1f} / {local.wall_ms(0.95):.1f} ms, database {rows.wall_ms():.1f}"
        f" / {rows.wall_ms(0.95):.1f} ms (p50 / p95); same ten {same} of {len(queries)}"
    )
    ratio = rows.wall_ms() / local.wall_ms()
    yield figure("search", f"{name}, database / local", team, ratio, "x", most=most, note=note)
    note = f"client cpu {rows.cpu_ms():.1f}, server cpu {served.cpu_ms():.1f} ms"
    goal = 40 if is_large else None
    yield figure("search", f"{name}, p95", team, rows.wall_ms(0.95), "ms", most=goal, note=note)


def filtered(team: Team, queries: Sequence[str]) -> Iterator[Row]:
    """Search by words and meaning in a fiftieth of the documents."""
    local, rows = Sample(), Sample()
    for number, text in enumerate(queries):
        where = Filter(prefix=_fiftieth(team, number))
        query = Query(probes=(Probe(text),), limit=10, where=where)
        local.take(partial(team.local.place.corpus.search, query, NOW))
        rows.take(partial(team.corpus.search, query, NOW))
    note = f"local {local.wall_ms():.1f} ms, database {rows.wall_ms():.1f} ms"
    ratio = rows.wall_ms() / local.wall_ms()
    yield figure("search", "hybrid, one in fifty passes", team, ratio, "x", note=note)


def _fiftieth(team: Team, number: int) -> str:
    """Return the beginning of the names of about one file in fifty."""
    documents = team.local.place.corpus.counts()["documents"]
    # Files have five digits; all but the last two or three are the prefix.
    digits = 3 if documents >= 5_000 else 2
    groups = documents // 10**digits
    return f"docs/page-{number % max(1, groups):0{5 - digits}}"


def overlap(team: Team, queries: Sequence[str]) -> Iterator[Row]:
    """Compare the ten nearest found through the graph with the ten of an exact search."""
    if not team.index.info().vector_search.startswith("HNSW"):
        return
    encoder = team.local.place.corpus.encoder
    assert encoder is not None
    index = PostgresIndex(
        team.database,
        team.scope,
        recipe="bench",
        encoder=encoder.identity,
        dim=encoder.dim,
        exact=True,
    )
    exactly = Corpus(team.corpus.lane, team.corpus.store, index, team.corpus.encoder)
    shares = []
    for text in queries:
        query = Query(probes=(Probe(text),), limit=10)
        graph = {hit.chunk.id for hit in team.corpus.search(query, NOW).hits}
        exact = {hit.chunk.id for hit in exactly.search(query, NOW).hits}
        shares.append(len(graph & exact) / max(1, len(exact)))
    mean = sum(shares) / len(shares)
    yield figure("search", "overlap of ten, graph and exact", team, mean, "", least=0.995)


def upserting(team: Team, repeats: int) -> Iterator[Row]:
    """Edit one passage of a document, as a person does, and index it."""
    sample = Sample()
    store = team.local.root / "docs"
    paths = sorted(store.glob("*.md"))[:repeats]
    lane = team.corpus.lane
    for number, path in enumerate(paths):
        source = team.corpus.store.read(str(path.relative_to(team.local.root)))
        parsed = parse.parse(source, lane)
        first, *rest = chunk.chunk(parsed, lane.chunking)
        text = f"{first.text} edited word{number}"
        edited = dataclasses.replace(first, text=text, digest=f"{number:032x}")
        entry = IndexedDocument(parsed.document, (edited, *rest), source.stamp)
        sample.take(partial(team.index.apply, [entry]))
    yield figure(
        "write", "an edited document", team, sample.wall_ms(), "ms", most=10, note=sample.note()
    )


def sizes(team: Team, cluster: postgres.Cluster) -> Iterator[Row]:
    """Say how large tables and their indexes are, and the server's memory."""
    with team.database.maintaining() as session:
        rows = session.execute(
            "SELECT relname, pg_total_relation_size(oid) / 1e6 FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC LIMIT 4"
        ).fetchall()
        whole = session.execute("SELECT pg_database_size(current_database()) / 1e3").fetchone()
    assert whole is not None
    note = ", ".join(f"{name} {size:.0f} MB" for name, size in rows)
    each = float(whole[0]) / team.chunks
    yield figure("size", "of the database, a passage", team, each, "kB", note=note)
    assert cluster.process is not None
    memory = sum(_private(pid) for pid in tree(cluster.process.pid))
    yield figure("size", "memory of the server beside its buffers", team, memory, "MB")


def _private(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    private = [line.split() for line in lines if line.startswith("Private")]
    return sum(int(words[1]) for words in private) / 1000


def _clock(cluster: postgres.Cluster) -> Callable[[], float]:
    assert cluster.process is not None
    pids = tree(cluster.process.pid)
    return lambda: sum(map(process_seconds, pids))


def _progress(row: Row) -> str:
    value = f"{row.value:10.3f} {row.unit}"
    return f"{row.part:7} {row.name:36} {row.chunks:7,} {value:20} {row.note}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench team", description=__doc__)
    parser.add_argument("--sizes", default="10000", help="passages (100000 takes minutes)")
    parser.add_argument("--repeats", type=int, default=60, help="queries and writes a row")
    parser.add_argument("--work", type=Path, help="keep corpora and local indexes here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
