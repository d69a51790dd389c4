"""What is done to a team database, and whether it keeps what it acknowledged."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from tests.faults.ledger import Toll
from tests.faults.proxy import Proxy
from tests.faults.team_writer import BEGUN, MADE, served, text_of
from tests.postgres import Cluster, give, project_scope

from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import DisconnectedError, RagdocsError, StorageError, UnavailableError
from ragdocs.lanes import MEMORY
from ragdocs.search.corpus import Corpus
from ragdocs.stores.postgres.feed import Feed
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system.postgres import connection
from ragdocs.system.postgres import database as team_database
from ragdocs.system.postgres.database import Database
from ragdocs.types import Expect, Probe, Put, Query
from ragdocs.verbs.quality.health import compare

# How long a part may take before it counts as hanging.
LONG = 120.0
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ROOT = Path(__file__).parent.parent.parent
_SAME_SLOT = "w.doc_id = p.doc_id AND w.slot = p.slot AND w.scope = p.scope"
_WITHOUT_VECTOR = f"""
SELECT d.path, p.ord FROM passages p JOIN documents d USING (doc_id)
WHERE p.scope = %s AND NOT EXISTS (SELECT FROM vectors w WHERE {_SAME_SLOT})
"""


@dataclass
class Ledger:
    """What was acknowledged, by many threads."""

    made: dict[str, str] = field(default_factory=dict)
    # Texts of writes that ended with an error, and how many of them never began.
    doubtful: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    errors: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def acknowledge(self, group: str, text: str) -> None:
        with self._changed:
            self.made[group] = text
            self._changed.notify_all()

    def doubt(self, group: str, text: str, error: RagdocsError) -> None:
        with self._changed:
            self.doubtful[group] = text
            self.refused += not isinstance(error, DisconnectedError)
            if not isinstance(error, UnavailableError):
                self.errors.append(f"{type(error).__name__}: {error}")

    def wait_for(self, count: int) -> None:
        """Wait until so many more writes are acknowledged."""
        with self._changed:
            wanted = len(self.made) + count
            assert self._changed.wait_for(lambda: len(self.made) >= wanted, LONG), "writers hang"


@contextmanager
def writers(address: str, scope: int, count: int) -> Iterator[Ledger]:
    """Write groups of three texts from several servers until the end of the block."""
    ledger = Ledger()
    stopping = threading.Event()

    def write(writer: int) -> None:
        database = Database(address, connections=2)
        store = RowStore(database, scope, MEMORY, writable=True)
        number = 0
        while not stopping.is_set():
            number += 1
            group = f"{writer}-{number}"
            text = f"group {group} " * random.randint(1, 200)
            try:
                # What is made twice is refused.
                paths = [f"{group}-{part}.md" for part in "abc"]
                store.commit([Put(path, text, Expect.ABSENT) for path in paths])
                ledger.acknowledge(group, text)
            except RagdocsError as error:
                ledger.doubt(group, text, error)
                # A server that is not there is not asked all the time.
                stopping.wait(0.05)
        database.close()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield ledger
    finally:
        stopping.set()
        for thread in threads:
            thread.join(LONG)


def check(store: RowStore, ledger: Ledger, toll: Toll) -> None:
    """Compare what is there with what was acknowledged, and see that nothing was made twice."""
    toll.counts["acknowledged"] += len(ledger.made)
    toll.counts["refused"] += ledger.refused
    toll.counts["in doubt"] += len(ledger.doubtful) - ledger.refused
    for error in ledger.errors:
        toll.complain("errors", error)
    existing = store.versions()
    for group, text in (ledger.made | ledger.doubtful).items():
        parts = [f"{group}-{part}.md" for part in "abc"]
        there = [path for path in parts if path in existing]
        whole = [path for path in there if store.read(path).text == text]
        if len(there) not in (0, 3) or whole != there:
            toll.complain("torn", f"{group}: {there}")
        if group in ledger.made and len(whole) < 3:
            toll.complain("lost", group)
    made = Counter(step.path for change in store.commits() for step in change.steps)
    for path, count in made.items():
        if count > 1:
            toll.complain("written twice", f"{path}: {count} times")
    with store.database.maintaining() as session:
        # As an index finds the rows, and as they lie there.
        for setting in ("enable_seqscan", "enable_indexscan"):
            session.execute(f"SET LOCAL {setting} = off")
            statement = "SELECT count(*), count(DISTINCT folded) FROM texts WHERE scope = %s"
            if session.execute(statement, [store.scope]).fetchone() != (len(existing),) * 2:
                toll.complain("index differences", setting)
            session.execute(f"SET LOCAL {setting} = on")


def kill_database(cluster: Cluster, count: int, crowd: int, between: int) -> Toll:
    """Kill -9 every process of PostgreSQL while several write, and start it again."""
    toll = Toll()
    database, scope = _project(cluster)
    with writers(database.address, scope, crowd) as ledger:
        for _ in range(count):
            ledger.wait_for(between)
            cluster.kill()
            cluster.start()
            toll.counts["kills"] += 1
        ledger.wait_for(between)
    check(_store(database, scope), ledger, toll)
    _leave(cluster, database)
    return toll


def kill_servers(cluster: Cluster, count: int, crowd: int, between: int) -> Toll:
    """Kill -9 our own servers while they write, index and encode; others finish what they began."""
    toll = Toll()
    database, scope = _project(cluster)
    ledger = Ledger()
    servers: list[subprocess.Popen[str]] = []
    readers: list[threading.Thread] = []

    def start() -> None:
        words = [sys.executable, "-P", "-m", "tests.faults.team_writer", database.address]
        name = f"s{len(readers)}"
        server = subprocess.Popen(
            [*words, str(scope), name],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        servers.append(server)
        readers.append(threading.Thread(target=_listen, args=[server, ledger]))
        readers[-1].start()

    try:
        for _ in range(crowd):
            start()
        for _ in range(count):
            ledger.wait_for(between)
            victim = servers.pop(0)
            victim.kill()
            victim.wait()
            toll.counts["kills"] += 1
            check_promises(database, scope, toll)
            start()
        ledger.wait_for(between)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        for reader in readers:
            reader.join(LONG)
    check(_store(database, scope), ledger, toll)
    _check_index(database, scope, ledger, toll)
    _leave(cluster, database)
    return toll


def _listen(server: subprocess.Popen[str], ledger: Ledger) -> None:
    """Note what a server says until it is killed."""
    assert server.stdout is not None
    for line in server.stdout:
        said, _, group = line.strip().partition(" ")
        if said == MADE:
            ledger.doubtful.pop(group, None)
            ledger.acknowledge(group, text_of(group))
        elif said == BEGUN:
            ledger.doubtful[group] = text_of(group)
    server.stdout.close()


def _check_index(database: Database, scope: int, ledger: Ledger, toll: Toll) -> None:
    """Let another server finish, and compare its index with one that is built from the texts."""
    corpus = served(database, scope)
    with database.maintaining() as session:
        # As if the two minutes were over that the killed ones had promised vectors for.
        session.execute("UPDATE waiting SET claimed_until = NULL")
    corpus.sync()
    corpus.embed()
    check_vectors(database, scope, toll)
    encoder = corpus.encoder
    assert encoder is not None
    local = LocalIndex(None, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    rebuilt = Corpus(corpus.lane, corpus.store, local, encoder)
    rebuilt.sync()
    rebuilt.embed()
    if difference := compare(corpus.index.contents(), local.contents()).difference:
        toll.complain("index differences", difference)
    for group, text in ledger.made.items():
        word = text.split()[1]
        by_words = Query(probes=(Probe(word),), limit=3, weights=(0.0, 1.0))
        found = {hit.document.path for hit in corpus.search(by_words, NOW).hits}
        if found != {f"{group}-{part}.md" for part in "abc"}:
            toll.complain("not found", f"{group}: {found}")
        # Vectors of so small an encoder are not those of one text alone: what matters is that they
        # are found as in an index that nobody has killed.
        by_vectors = dataclasses.replace(by_words, weights=(1.0, 0.0))
        near = [hit.document.path for hit in corpus.search(by_vectors, NOW).hits]
        expected = [hit.document.path for hit in rebuilt.search(by_vectors, NOW).hits]
        if near != expected:
            toll.complain("not found", f"{group} by vectors: {near} instead of {expected}")
        toll.counts["searched for"] += 1


def check_promises(database: Database, scope: int, toll: Toll) -> None:
    """See that every passage has a vector or waits for one, at any time and whoever was killed."""
    statement = f"{_WITHOUT_VECTOR} AND NOT EXISTS (SELECT FROM waiting w WHERE {_SAME_SLOT})"
    with database.maintaining() as session:
        for path, position in session.execute(statement, [scope]).fetchall():
            toll.complain("without a vector", f"{path} {position} does not even wait for one")


def check_vectors(database: Database, scope: int, toll: Toll) -> None:
    """See that every passage has a vector and nothing waits for one."""
    with database.maintaining() as session:
        for path, position in session.execute(_WITHOUT_VECTOR, [scope]).fetchall():
            toll.complain("without a vector", f"{path} {position}")
        statement = "SELECT digest FROM waiting WHERE scope = %s"
        for (digest,) in session.execute(statement, [scope]).fetchall():
            toll.complain("without a vector", f"{digest} still waits")
        statement = "SELECT count(*) FROM passages WHERE scope = %s"
        ((passages,),) = session.execute(statement, [scope]).fetchall()
    info = served(database, scope).index.info()
    if not info.passages == info.vectors == passages:
        toll.complain("index differences", f"{passages} passages, counted as {info}")
    toll.counts["vectors"] += passages


def cut_connections(cluster: Cluster, count: int, crowd: int) -> Toll:
    """End connections of writers wherever they are."""
    toll = Toll()
    database, scope = _project(cluster)
    rng = random.Random(5)
    with writers(database.address, scope, crowd) as ledger:
        while toll.counts["cuts"] < count:
            ledger.wait_for(1)
            with psycopg.connect(database.address, autocommit=True) as session:
                rows = session.execute(
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                    " AND application_name = 'ragdocs' AND state <> 'idle'"
                ).fetchall()
                if rows:
                    session.execute("SELECT pg_terminate_backend(%s)", rng.choice(rows))
                    toll.counts["cuts"] += 1
        ledger.wait_for(1)
    check(_store(database, scope), ledger, toll)
    _leave(cluster, database)
    return toll


def lose_answers(cluster: Cluster, count: int) -> Toll:
    """Cut the network at the end of a change: before it arrives, and before its answer does."""
    toll = Toll()
    database, scope = _project(cluster)
    store = _store(database, scope)
    proxy = Proxy(cluster.port)
    for number in range(2 * count):
        # A new connection each time: a statement that is sent often is only named later.
        remote = Database(_through(proxy, database), connections=1)
        with remote.session():
            pass
        if number % 2:
            proxy.cut_before = b"COMMIT"
        else:
            proxy.cut_after = b"COMMIT"
        try:
            _store(remote, scope).commit([Put(f"{number}.md", "x", Expect.ABSENT)])
            toll.counts["acknowledged"] += 1
        except RagdocsError as error:
            toll.complain("errors", f"{number}: {error}")
        remote.close()
    toll.counts["cuts"] = proxy.cuts
    for change in store.commits()[2 * count :]:
        toll.complain("written twice", change.steps[0].path)
    if len(store.versions()) != 2 * count:
        toll.complain("lost", f"{len(store.versions())} of {2 * count}")
    proxy.close()
    _leave(cluster, database)
    return toll


def slow_network(cluster: Cluster, count: int, patience: float = 0.5) -> Toll:
    """Write over a network that is slow, and over one that stands still for a while."""
    toll = Toll()
    database, scope = _project(cluster)
    local = _store(database, scope)
    proxy = Proxy(cluster.port)
    store = _store(Database(_through(proxy, database)), scope)
    before = connection.ANSWER_SECONDS, team_database.CONNECT_SECONDS
    for number in range(count):
        proxy.delay = 0.02
        store.commit([Put(f"slow {number}.md", "x")])
        toll.counts["slow writes"] += 1
        proxy.delay = 0.0
        connection.ANSWER_SECONDS, team_database.CONNECT_SECONDS = patience, 2.0
        proxy.flowing.clear()
        try:
            store.commit([Put(f"still {number}.md", "x")])
            toll.complain("silent", "a write was acknowledged by nobody")
        except UnavailableError as error:
            toll.counts["time-outs told"] += 1
            if not _is_clear(error):
                toll.complain("silent", str(error))
        finally:
            connection.ANSWER_SECONDS, team_database.CONNECT_SECONDS = before
            proxy.cut()
            proxy.flowing.set()
        # Whoever tries again is not refused, and makes it once.
        store.commit([Put(f"still {number}.md", "x")])
        toll.counts["written afterwards"] += 1
    if len(local.commits()) != 2 * count:
        toll.complain("written twice", f"{len(local.commits())} change sets")
    store.database.close()
    proxy.close()
    _leave(cluster, database)
    return toll


def fail_over(cluster: Cluster, crowd: int) -> Toll:
    """Kill a server and let its standby take over, under writers that know both."""
    toll = Toll()
    database, scope = _project(cluster)
    standby = Cluster(standby_of=cluster)
    standby.start()
    try:
        with psycopg.connect(cluster.address, autocommit=True) as session:
            session.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            session.execute("SELECT pg_reload_conf()")
        _until(lambda: _replicates(cluster), "the standby follows")
        name = database.address.rpartition("/")[2]
        address = (
            f"postgresql://postgres@127.0.0.1:{cluster.port},127.0.0.1:{standby.port}/{name}"
            "?target_session_attrs=read-write"
        )
        both = Database(address)
        feed = Feed(both, scope)
        cursor = feed.now()
        with writers(address, scope, crowd) as ledger:
            ledger.wait_for(20)
            cluster.kill()
            with psycopg.connect(standby.address, autocommit=True) as session:
                session.execute("SELECT pg_promote()")
            toll.counts["failovers"] += 1
            ledger.wait_for(20)
        store = _store(both, scope)
        check(store, ledger, toll)
        if feed.changes(cursor)[1] != [""]:
            toll.complain("lost", "the feed goes on as if nothing had happened")
        both.close()
    finally:
        standby.remove()
        cluster.start()
        with psycopg.connect(cluster.address, autocommit=True) as session:
            session.execute("ALTER SYSTEM RESET synchronous_standby_names")
            session.execute("SELECT pg_reload_conf()")
        _leave(cluster, database)
    return toll


def full_disk(cluster: Cluster, rounds: int) -> Toll | None:
    """Fill the disk that a database lies on; give it more room again. None if none can be made."""
    folder = cluster.folder / "small"
    folder.mkdir()
    if not _mounted(folder, "24m"):
        return None
    toll = Toll()
    try:
        give(folder)
        with psycopg.connect(cluster.address, autocommit=True) as session:
            session.execute(f"CREATE TABLESPACE small LOCATION '{folder}'".encode())
        address = cluster.migrated("small")
        database = Database(address)
        store = _store(database, project_scope(database, "disk"))
        for turn in range(rounds):
            _fill(store, turn, toll)
            room = f"remount,size={24 + 8 * (turn + 1)}m"
            subprocess.run(["mount", "-o", room, str(folder)], check=True)
            store.commit([Put(f"after {turn}.md", "x")])
            toll.counts["written afterwards"] += 1
        database.close()
        cluster.drop(address)
        with psycopg.connect(cluster.address, autocommit=True) as session:
            session.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    return toll


def _fill(store: RowStore, turn: int, toll: Toll) -> None:
    for number in range(1000):
        path = f"{turn} {number}.md"
        text = os.urandom(250_000).hex()
        try:
            store.commit([Put(path, text)])
            toll.counts["acknowledged"] += 1
        except StorageError as error:
            toll.counts["disk full"] += 1
            if "full" not in str(error) or path in store.versions():
                toll.complain("silent", str(error))
            break
    for path in store.versions():
        if not store.read(path).text:
            toll.complain("lost", path)
    if len(store.commits()) != len(store.versions()):
        toll.complain("torn", "the history has another number of texts")


def _is_clear(error: UnavailableError) -> bool:
    is_said = "no answer within" in str(error) or "cannot be reached" in str(error)
    return is_said or isinstance(error, DisconnectedError)


def _project(cluster: Cluster) -> tuple[Database, int]:
    database = Database(cluster.migrated())
    return database, project_scope(database, "shop")


def _store(database: Database, scope: int) -> RowStore:
    return RowStore(database, scope, MEMORY, writable=True)


def _leave(cluster: Cluster, database: Database) -> None:
    database.close()
    cluster.drop(database.address)


def _through(proxy: Proxy, database: Database) -> str:
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{database.address.rpartition('/')[2]}"


def _replicates(cluster: Cluster) -> bool:
    with psycopg.connect(cluster.address, autocommit=True) as session:
        statement = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
        return session.execute(statement).fetchone() is not None


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def _mounted(folder: Path, size: str) -> bool:
    with suppress(OSError):
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    return False
