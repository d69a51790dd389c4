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
from bench._measure import Row, Sample, TreeClock, figure, table
from bench._report import replace_block
from tests import postgres
from tests.faults.processes import tree

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
# Passages from which on there are goals, and above which they are those of a large corpus.
SMALL, LARGE = 5_000, 50_000
# Milliseconds that a search in a large corpus may take at p95.
SLOWEST = 40
WORDS, BOTH = (0.0, 1.0), None
# How many times the local engine's time a search may take, in a small and in a large corpus.
MOST_TIMES = {"words": (3, 5), "hybrid": (4, 5)}
CLIENTS = (8, 64)
# Searches of all clients together, as a multiple of --repeats.
ROUNDS = 8
LEAST_SEARCHES = 100
CORES = 2
# Only one run at a time cleans up; the number means nothing else.
VACUUMING = 7421_0099
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
    report = table(rows)
    if growth := plot(rows):
        report += f"\n\nOne search, processor time of client and server:\n\n```text\n{growth}\n```"
    print(report)
    if options.write:
        named = f"`python3 tasks.py bench team --sizes {','.join(map(str, options.sizes))}`"
        replace_block(PAGE, "team", f"{named}\n\n{report}")


def measure(cluster: postgres.Cluster, work: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield every row, size by size, and at last how searches grow with the corpus."""
    costs: list[tuple[Team, dict[str, float]]] = []
    for size in options.sizes:
        local = _corpora.generate(work, "docs", size)
        team = _team(cluster, local)
        if team.index.info().passages:
            print(f"using the {size:,} passages that are there", file=sys.stderr)
            warm(team)
        else:
            yield from loading(team, cluster)
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
    encoder = local.open_lane.corpus.encoder
    index = _index(database, scope, encoder)
    corpus = Corpus(local.open_lane.corpus.lane, local.open_lane.corpus.store, index, encoder)
    return Team(local, corpus, index, database, scope)


def _index(database: Database, scope: int, encoder: Encoder | None) -> PostgresIndex:
    assert encoder is not None
    return PostgresIndex(database, scope, recipe="bench", encoder=encoder.identity, dim=encoder.dim)


def loading(team: Team, cluster: postgres.Cluster) -> Iterator[Row]:
    """Index all files and encode all passages."""
    clock = TreeClock(_pid(cluster))
    steps = Sample()
    both = _together(clock)
    steps.take(team.corpus.sync, both)
    steps.take(partial(team.corpus.embed, at_once=512), both)
    steps.take(team.index.save, both)
    # What autovacuum does within a minute.
    with team.database.building(VACUUMING, team.scope) as session:
        assert session is not None
        session.execute("VACUUM ANALYZE")
    info = team.local.open_lane.index.info()
    team.index.calibrate(info.calibration)
    parts = zip(("words", "vectors", "statistics and graph"), steps.cpu, steps.wall, strict=True)
    spent = [f"{name} {cpu:.0f} s, {wall:.0f} on the clock" for name, cpu, wall in parts]
    rate = team.chunks / sum(steps.cpu[:2])
    note = "; ".join(spent)
    yield figure("load", "passages a processor second", team, rate, "", note=note)


def warm(team: Team) -> None:
    """Let the server read its tables into memory, where a load leaves them."""
    with team.database.maintaining() as session:
        session.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        for table in ("documents", "vectors", "postings_term", "postings"):
            session.execute("SELECT pg_prewarm(%s)", [table])


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
    cost |= {f"{name}, local": again.local.cpu_ms(), f"{name}, database": again.both.cpu_ms()}
    most = slowest = None
    if team.chunks >= SMALL:
        most = MOST_TIMES[name][team.chunks > LARGE]
    if team.chunks > LARGE:
        slowest = SLOWEST
    title = f"{name}, database / local"
    yield figure("search", title, team, again.times, "x", most=most, note=again.note())
    p95 = again.both.cpu_ms(0.95)
    clock = (
        f"p50 {again.both.cpu_ms():.1f} ms; on the clock {again.rows.wall_ms():.1f} /"
        f" {again.rows.wall_ms(0.95):.1f}, local {again.local.wall_ms():.1f} /"
        f" {again.local.wall_ms(0.95):.1f} ms (p50 / p95)"
    )
    yield figure("search", f"{name}, p95", team, p95, "ms", most=slowest, note=clock)
    title = f"{name}, asked for the first time"
    yield figure("search", title, team, first.times, "x", note=first.note())
    p95 = first.both.cpu_ms(0.95)
    yield figure("search", f"{title}, p95", team, p95, "ms", most=slowest)


@dataclass(slots=True)
class Turns:
    """Searches in both engines by turns, and how many had the same ten hits."""

    local: Sample = field(default_factory=Sample)
    rows: Sample = field(default_factory=Sample)
    served: Sample = field(default_factory=Sample)
    same: int = 0

    def take(self, team: Team, query: Query, server: Callable[[], float]) -> None:
        ours = self.local.take(partial(team.local.open_lane.corpus.search, query, NOW))
        before = server()
        theirs = self.rows.take(partial(team.corpus.search, query, NOW))
        self.served.cpu.append(server() - before)
        self.same += [h.chunk.id for h in ours.hits] == [h.chunk.id for h in theirs.hits]

    @property
    def both(self) -> Sample:
        """The processor time of client and server together, search by search."""
        added = Sample()
        for client, server in zip(self.rows.cpu, self.served.cpu, strict=True):
            added.cpu.append(client + server)
        return added

    @property
    def times(self) -> float:
        """How many times the processor time of the local engine a search in the database took."""
        return self.both.cpu_ms() / self.local.cpu_ms()

    def note(self) -> str:
        return (
            f"local {self.local.cpu_ms():.1f} ms, client {self.rows.cpu_ms():.1f} + server"
            f" {self.served.cpu_ms():.1f} ms; same ten {self.same} of {len(self.rows.cpu)}"
        )


def filtered(team: Team, queries: Sequence[str], server: Callable[[], float]) -> Iterator[Row]:
    """Search by words and meaning in a fiftieth of the documents."""
    local, rows = Sample(), Sample()
    for number, text in enumerate(queries):
        where = Filter(prefix=_fiftieth(team, number))
        query = Query(probes=(Probe(text),), limit=10, where=where)
        local.take(partial(team.local.open_lane.corpus.search, query, NOW))
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
    least = None
    if SMALL <= team.chunks <= LARGE:
        least = LEAST_SEARCHES
    rate = len(asked) / seconds
    return figure(
        "crowd", f"hybrid, {clients} clients", team, rate, "searches/s", least=least, note=note
    )


def growing(costs: Sequence[tuple[Team, dict[str, float]]]) -> Iterator[Row]:
    """Compare searches of each corpus with those of the smallest."""
    if len(costs) < 2:
        return
    _, smallest = costs[0]
    for team, cost in costs:
        for name, milliseconds in cost.items():
            times = milliseconds / smallest[name]
            note = f"{milliseconds:.1f} ms"
            yield figure("growth", name, team, times, "x the smallest", note=note)


def plot(rows: Sequence[Row]) -> str:
    """Draw how processor time grows with the corpus, a line for each size and kind of search."""
    grown = [row for row in rows if row.part == "growth"]
    lines = []
    for row in sorted(grown, key=lambda row: (row.name, row.chunks)):
        milliseconds = float(row.note.split()[0])
        bar = "█" * max(1, round(milliseconds))
        lines.append(f"{row.name:18} {row.chunks:>9,}  {bar} {milliseconds:.1f} ms")
    return "\n".join(lines)


def _fiftieth(team: Team, number: int) -> str:
    """Return the beginning of the names of about one file in fifty."""
    documents = team.local.open_lane.corpus.counts()["documents"]
    # Files have five digits; all but the last two or three are the prefix.
    digits = 3 if documents >= 5_000 else 2
    groups = documents // 10**digits
    return f"docs/page-{number % max(1, groups):0{5 - digits}}"


def overlap(team: Team, queries: Sequence[str]) -> Iterator[Row]:
    """Compare the ten nearest found through the graph with the ten of an exact search."""
    if not team.index.info().vector_search.startswith("HNSW"):
        return
    encoder = team.local.open_lane.corpus.encoder
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
        edited = first._replace(text=longer, digest=f"{number:032x}")
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
    memory = sum(_private(pid) for pid in tree(_pid(cluster)))
    yield figure("size", "memory of the server beside its buffers", team, memory, "MB")


def _private(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    private = [line.split() for line in lines if line.startswith("Private")]
    return sum(int(words[1]) for words in private) / 1000


def _clock(cluster: postgres.Cluster) -> Callable[[], float]:
    return TreeClock(_pid(cluster)).steady()


def _pid(cluster: postgres.Cluster) -> int:
    assert cluster.process is not None
    return cluster.process.pid


def _progress(row: Row) -> str:
    value = f"{row.value:10.3f} {row.unit}"
    return f"{row.part:7} {row.name:36} {row.chunks:7,} {value:20} {row.note}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench team", description=__doc__)
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="passages; 100000 takes a quarter of an hour"
    )
    parser.add_argument("--quick", action="store_true", help="1,000 passages and few repeats")
    parser.add_argument("--repeats", type=int, default=60, help="queries and writes a row")
    parser.add_argument("--work", type=Path, help="keep corpora, indexes and rows here")
    parser.add_argument(
        "--write", action="store_true", help="put table and plot into performance.md"
    )
    options = parser.parse_args()
    options.sizes = sorted({int(size) for size in options.sizes.split(",")})
    if options.quick:
        options.sizes = [1000]
        options.repeats = 10
    return options


if __name__ == "__main__":
    main()
