"""Measures the index of a team's database beside the local one, on the same corpus in one run.

Goals are compared with processor time, the client's and the server's together: on a machine that
does something else as well, two processes that wait for each other wait for their turns too.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import _corpora
from bench._measure import Row, Sample, figure, table
from bench._report import replace_block
from tests import postgres
from tests.faults.processes import process_seconds, tree

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.engines.postgres.index import PostgresIndex
from ragdocs.errors import RagdocsError
from ragdocs.protocols import Encoder
from ragdocs.search import chunk, parse
from ragdocs.search.corpus import Corpus
from ragdocs.system.postgres import migrations
from ragdocs.system.postgres.database import Database
from ragdocs.types import Filter, IndexedDocument, Probe, Query

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "work_mem": "64MB"}
# Passages above which the goals are those of a large corpus.
LARGE = 50_000
WORDS, BOTH = (0.0, 1.0), None
# How many times the local engine's time a search may take, in a small and in a large corpus.
MOST_TIMES = {"words": (3, 5), "hybrid": (4, 5)}
CLIENTS = (8, 64)
# Searches of all clients together, as a multiple of --repeats.
ROUNDS = 8
LEAST_SEARCHES = 100
CORES = 2
PAGE = Path(__file__).parent.parent / "docs" / "internals" / "performance.md"


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
        folder = options.work and work / "postgres"
        cluster = postgres.Cluster(None, folder=folder, **SETTINGS)
        cluster.start()
        try:
            rows = []
            for row in measure(cluster, work, options):
                rows.append(row)
                print(_progress(row), file=sys.stderr, flush=True)
        finally:
            if options.work:
                cluster.stop()
            else:
                cluster.remove()
            postgres.clean_up()
    print(table(rows))
    if options.write:
        named = f"`python3 tasks.py bench team --sizes {','.join(map(str, options.sizes))}`"
        replace_block(PAGE, "team", f"{named}\n\n{table(rows)}")


def measure(cluster: postgres.Cluster, work: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield every row, size by size, and at last how searches grow with the corpus."""
    costs: list[tuple[Team, dict[str, float]]] = []
    for size in options.sizes:
        local = _corpora.generate(work, "docs", size)
        team = _team(cluster, local)
        if team.index.info().passages:
            print(f"using the {size:,} passages that are there", file=sys.stderr)
        else:
            yield from loading(team)
        server = _clock(cluster)
        queries = local.queries(options.repeats, seed=8)
        cost: dict[str, float] = {}
        yield from searching(team, queries, "words", server, cost)
        yield from searching(team, queries, "hybrid", server, cost)
        yield from filtered(team, queries, server)
        yield from overlap(team, queries)
        for clients in CLIENTS:
            yield crowded(team, queries, clients, cluster)
        yield from writing(team, queries, server)
        yield from sizes(team, cluster)
        costs.append((team, cost))
        team.database.close()
    yield from growing(costs)


def _team(cluster: postgres.Cluster, local: _corpora.Corpus) -> Team:
    """Return the corpus in a database, which is made unless an earlier run has kept it."""
    name = local.root.name.replace("-", "_")
    if cluster.has(name):
        database = Database(cluster.address_of(name))
        migrations.migrate(database)
        with database.maintaining() as session:
            row = session.execute("SELECT scope FROM scopes").fetchone()
    else:
        database = Database(cluster.migrated(name=name))
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
    index = _index(database, scope, encoder)
    corpus = Corpus(local.place.corpus.lane, local.place.corpus.store, index, encoder)
    return Team(local, corpus, index, database, scope)


def _index(database: Database, scope: int, encoder: Encoder | None) -> PostgresIndex:
    assert encoder is not None
    return PostgresIndex(database, scope, recipe="bench", encoder=encoder.identity, dim=encoder.dim)


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
    server: Callable[[], float],
    cost: dict[str, float],
) -> Iterator[Row]:
    """Search in turns, so that what else the machine does hits both alike."""
    weights = WORDS if name == "words" else BOTH
    first, again = Turns(), Turns()
    for turns in (first, again):
        for text in queries:
            query = Query(probes=(Probe(text),), limit=10, weights=weights)
            turns.take(team, query, server)
    local, rows, served, same = again.local, again.rows, again.served, again.same
    both = _added(rows, served)
    cost |= {f"{name}, local": local.cpu_ms(), f"{name}, database": both.cpu_ms()}
    is_large = team.chunks > LARGE
    ratio = both.cpu_ms() / local.cpu_ms()
    note = (
        f"local {local.cpu_ms():.1f} ms, client {rows.cpu_ms():.1f} + server"
        f" {served.cpu_ms():.1f} ms; same ten {same} of {len(queries)}"
    )
    most = MOST_TIMES[name][is_large]
    yield figure("search", f"{name}, database / local", team, ratio, "x", most=most, note=note)
    note = (
        f"p50 {both.cpu_ms():.1f} ms; on the clock {rows.wall_ms():.1f} / {rows.wall_ms(0.95):.1f},"
        f" local {local.wall_ms():.1f} / {local.wall_ms(0.95):.1f} ms (p50 / p95)"
    )
    goal = 40 if is_large else None
    yield figure("search", f"{name}, p95", team, both.cpu_ms(0.95), "ms", most=goal, note=note)
    new = _added(first.rows, first.served)
    ratio = new.cpu_ms() / first.local.cpu_ms()
    note = f"local {first.local.cpu_ms():.1f} ms, database {new.cpu_ms():.1f} ms, p95"
    note += f" {new.cpu_ms(0.95):.1f}; same ten {first.same} of {len(queries)}"
    yield figure("search", f"{name}, asked for the first time", team, ratio, "x", note=note)


@dataclass(slots=True)
class Turns:
    """Searches in both engines by turns, and how many had the same ten hits."""

    local: Sample = field(default_factory=Sample)
    rows: Sample = field(default_factory=Sample)
    served: Sample = field(default_factory=Sample)
    same: int = 0

    def take(self, team: Team, query: Query, server: Callable[[], float]) -> None:
        ours = self.local.take(partial(team.local.place.corpus.search, query, NOW))
        before = server()
        theirs = self.rows.take(partial(team.corpus.search, query, NOW))
        self.served.cpu.append(server() - before)
        self.same += [h.chunk.id for h in ours.hits] == [h.chunk.id for h in theirs.hits]


def _added(client: Sample, server: Sample) -> Sample:
    """Return the processor time of both, search by search."""
    added = Sample()
    for ours, theirs in zip(client.cpu, server.cpu, strict=True):
        added.cpu.append(ours + theirs)
    return added


def filtered(team: Team, queries: Sequence[str], server: Callable[[], float]) -> Iterator[Row]:
    """Search by words and meaning in a fiftieth of the documents."""
    local, rows = Sample(), Sample()
    for number, text in enumerate(queries):
        where = Filter(prefix=_fiftieth(team, number))
        query = Query(probes=(Probe(text),), limit=10, where=where)
        local.take(partial(team.local.place.corpus.search, query, NOW))
        rows.take(partial(team.corpus.search, query, NOW), _together(server))
    note = f"local {local.cpu_ms():.1f} ms, database {rows.cpu_ms():.1f} ms"
    ratio = rows.cpu_ms() / local.cpu_ms()
    yield figure("search", "hybrid, one in fifty passes", team, ratio, "x", note=note)


def _together(server: Callable[[], float]) -> Callable[[], float]:
    """Return the processor time of this process and of the server."""
    return lambda: time.process_time() + server()


def crowded(team: Team, queries: Sequence[str], clients: int, cluster: postgres.Cluster) -> Row:
    """Search by words and meaning for many clients of one server, with vectors at hand."""
    encoder = team.corpus.encoder
    assert encoder is not None
    vectors = encoder.encode(list(queries))
    asked = list(zip(queries, vectors, strict=True)) * ROUNDS
    sample = Sample()
    errors: list[str] = []

    def search(number: int) -> None:
        caller.begin(dataclasses.replace(Caller(), name="bench"))
        for text, vector in asked[number::clients]:
            query = Query(probes=(Probe(text),), limit=10)
            try:
                sample.take(partial(team.corpus.search, query, NOW, vector))
            except RagdocsError as error:
                errors.append(error.message)

    spent = time.process_time() + _clock(cluster)()
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as crowd:
        list(crowd.map(search, range(clients)))
    seconds = time.perf_counter() - started
    spent = time.process_time() + _clock(cluster)() - spent
    each = spent / len(asked)
    note = (
        f"{len(errors)} errors; {each * 1000:.1f} ms of processor time a search, so"
        f" {CORES / each:.0f} a second on {CORES} idle cores; waited"
        f" {sample.wall_ms():.0f} / {sample.wall_ms(0.95):.0f} ms (p50 / p95)"
    )
    least = None if team.chunks > LARGE else LEAST_SEARCHES
    rate = len(asked) / seconds
    return figure(
        "crowd", f"hybrid, {clients} clients", team, rate, "searches/s", least=least, note=note
    )


def growing(costs: Sequence[tuple[Team, dict[str, float]]]) -> Iterator[Row]:
    """Compare searches of each corpus with those of the smallest, one picture in rows."""
    if len(costs) < 2:
        return
    _, smallest = costs[0]
    for team, cost in costs:
        for name, milliseconds in cost.items():
            times = milliseconds / smallest[name]
            note = f"{'▇' * max(1, round(milliseconds))} {milliseconds:.1f} ms"
            yield figure("growth", name, team, times, "x the smallest", note=note)


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


def writing(team: Team, queries: Sequence[str], server: Callable[[], float]) -> Iterator[Row]:
    """Edit one passage of a document, as a person does on another server, and search here."""
    written, searched = Sample(), Sample()
    another = _index(team.database, team.scope, team.corpus.encoder)
    paths = sorted((team.local.root / "docs").glob("*.md"))
    lane = team.corpus.lane
    for number, (text, path) in enumerate(zip(queries, paths, strict=False)):
        source = team.corpus.store.read(str(path.relative_to(team.local.root)))
        parsed = parse.parse(source, lane)
        first, *rest = chunk.chunk(parsed, lane.chunking)
        longer = f"{first.text} edited word{number}"
        edited = dataclasses.replace(first, text=longer, digest=f"{number:032x}")
        entry = IndexedDocument(parsed.document, (edited, *rest), source.stamp)
        written.take(partial(another.apply, [entry]), _together(server))
        query = Query(probes=(Probe(text),), limit=10, weights=WORDS)
        searched.take(partial(team.corpus.search, query, NOW), _together(server))
        # As it was, for the next run on the same rows.
        another.apply([IndexedDocument(parsed.document, (first, *rest), source.stamp)])
    note = written.note()
    yield figure("write", "an edited document", team, written.cpu_ms(), "ms", most=10, note=note)
    note = searched.note()
    yield figure("search", "words, after a write", team, searched.cpu_ms(), "ms", note=note)
    team.corpus.embed(at_once=512)
    team.index.save()


def sizes(team: Team, cluster: postgres.Cluster) -> Iterator[Row]:
    """Say how many bytes a passage takes in each table with its indexes, and the memory."""
    with team.database.maintaining() as session:
        rows = session.execute(
            "SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            " AND pg_total_relation_size(oid) > 1e5 ORDER BY 2 DESC"
        ).fetchall()
        whole = session.execute("SELECT pg_database_size(current_database())").fetchone()
    assert whole is not None
    each = float(whole[0]) / 1000 / team.chunks
    yield figure("size", "of the database, a passage", team, each, "kB")
    for name, size, of_indexes in rows:
        note = f"of which indexes {of_indexes / 1000 / team.chunks:.2f}"
        share = float(size) / 1000 / team.chunks
        yield figure("size", f"table {name}, a passage", team, share, "kB", note=note)
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
    parser.add_argument(
        "--sizes", default="10000,100000", help="passages; 100000 takes a quarter of an hour"
    )
    parser.add_argument("--quick", action="store_true", help="1,000 passages and few repeats")
    parser.add_argument("--repeats", type=int, default=60, help="queries and writes a row")
    parser.add_argument("--work", type=Path, help="keep corpora, indexes and rows here")
    parser.add_argument("--write", action="store_true", help="put the table into performance.md")
    options = parser.parse_args()
    options.sizes = sorted({int(size) for size in options.sizes.split(",")})
    if options.quick:
        options.sizes = [1000]
        options.repeats = 10
    return options


if __name__ == "__main__":
    main()
