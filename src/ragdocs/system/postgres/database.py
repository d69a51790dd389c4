"""A connection pool to one database, with the rights of whoever asks."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ragdocs import caller
from ragdocs.errors import (
    DisconnectedError,
    ForbiddenError,
    RagdocsError,
    StorageError,
    UnavailableError,
)
from ragdocs.system.postgres.listener import Listener

if TYPE_CHECKING:
    from psycopg import Cursor as _Cursor
    from psycopg_pool import ConnectionPool

    from ragdocs.system.postgres.connection import PatientConnection

    Session = PatientConnection
    Cursor = _Cursor[tuple[Any, ...]]

MEMBER = "ragdocs_member"
OLDEST_SERVER = 150000
CONNECT_SECONDS = 5.0
# So long a caller waits for a connection while others use all of them.
QUEUE_SECONDS = 20.0
STATEMENT_SECONDS = 30.0
LOCK_SECONDS = 5.0
HINT_EXTRA = 'Install it: pip install "ragdocs[team]"'
HINT_ADDRESS = "Check [team] database in your own configuration, or RAGDOCS_DATABASE"
HINT_AGAIN = "Try again in a moment"
HINT_RESTART = "Start it again with the version of ragdocs that made them"
HINT_STANDBY = "It may be a standby: name all servers and add target_session_attrs=read-write"
# How a server says that it ends a connection: a shutdown, a crash, a time-out of its own.
LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"})
# An address may hold a password, and drivers quote addresses in their messages.
_CREDENTIALS = re.compile(
    r"(?P<before>://[^/@\s]*?:)\S*(?=@)|(?P<key>password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|\S+)"
)

_REST_OF_PASSWORD = re.compile(r"'[^'\s]*@")

# A statement and its values by name.
Statement = tuple[str, Mapping[str, Any]]
Rows = list[tuple[Any, ...]]
_SET = "SELECT set_config(%s, %s, false)"
# Candidates that a search in a graph of vectors follows, and that it goes on in order until enough
# of them pass a filter. What is searched is mostly in memory, where places are equally near.
SEARCHING = {
    "hnsw.ef_search": "200",
    "hnsw.iterative_scan": "strict_order",
    "random_page_cost": "1.1",
    "jit": "off",
}
_BECOME_MEMBER = """
SELECT set_config('role', %s, true), set_config('ragdocs.caller', %s, true),
       set_config('ragdocs.role', %s, true)
"""
# Plans depend little on what is searched for or written, and take longer to make than to run.
_KEEP_PLANS = "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)"
_BECOME_MEMBER_OF_SCOPE = _BECOME_MEMBER + (
    ", set_config('ragdocs.scope', %s, true),"
    " set_config('plan_cache_mode', 'force_generic_plan', true)"
)
# The name of the role, of the caller, and what the caller's credential allows.
RIGHTS = 3
READ_ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LAST_STEP = "SELECT max(number) FROM migrations"

logger = logging.getLogger("ragdocs")


class Turns:
    """One state of the database, read in turns: the statements of a turn make one round trip.

    The transaction begins with the first turn, and ends with a turn that says it is the last.
    """

    def __init__(self, session: Session, rights: Sequence[str], scope: int | None = None) -> None:
        """Read with these rights; with a scope, only what belongs to it."""
        self._session = session
        self._rights = rights
        self._scope = str(scope or "")
        self.is_open = False
        self.count = 0

    def ask(self, *statements: Statement, is_last: bool = False) -> list[Rows]:
        """Return the rows of each statement."""
        session = self._session
        if self.is_open and not is_last and len(statements) == 1:
            self.count += 1
            # By itself it needs no pipeline, which costs more than the statement.
            ((sql, values),) = statements
            return [session.execute(sql, values, binary=True).fetchall()]
        cursors = []
        with session.pipeline():
            if not self.is_open:
                session.execute(READ_ONE_STATE)
                if self._rights:
                    session.execute(_BECOME_MEMBER_OF_SCOPE, [*self._rights, self._scope])
                else:
                    session.execute(_KEEP_PLANS)
                self.is_open = True
            for sql, values in statements:
                cursors.append(session.execute(sql, values, binary=True))
            if is_last:
                session.execute("COMMIT")
        self.is_open = not is_last
        self.count += 1
        return [cursor.fetchall() for cursor in cursors]

    def end(self) -> None:
        """End the transaction, if it is open."""
        if self.is_open:
            self._session.execute("COMMIT")
            self.is_open = False


class Database:
    """One PostgreSQL database; connections are opened when they are first needed."""

    def __init__(self, address: str, *, connections: int = 8, user: str = "") -> None:
        """Remember the address; `user` is who asks where a caller has no name."""
        self.address = address
        self._user = user
        self._connections = connections
        self._pool: ConnectionPool[Session] | None = None
        self._opening = threading.Lock()
        self._listeners: dict[str, Listener] = {}
        # The last step of the schema as it was checked; nothing is written after another one.
        self.last_step: int | None = None

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Read one state of the database, with the rights of the caller."""
        with self._transaction(READ_ONE_STATE, as_member=True) as session:
            yield session

    @contextmanager
    def turns(self, scope: int | None = None) -> Iterator[Turns]:
        """Read one state of the database in as few round trips as turns, as the caller may.

        Of tables that have a scope, only the rows of this one are seen.
        """
        with self.session() as session:
            turns = Turns(session, self._rights(), scope)
            try:
                yield turns
                turns.end()
            except BaseException:
                _roll_back(session)
                raise

    @contextmanager
    def writing(self, scope: int | None = None, *, in_pipeline: bool = False) -> Iterator[Session]:
        """Make all changes or none, with the rights of the caller; with a scope, only there.

        In a pipeline statements are sent together until somebody waits for an answer.
        """
        with self._transaction(
            "BEGIN", as_member=True, scope=scope, in_pipeline=in_pipeline
        ) as session:
            yield session

    @contextmanager
    def maintaining(self) -> Iterator[Session]:
        """Make all changes or none, with the rights of the owner of the tables."""
        with self._transaction("BEGIN", as_member=False) as session:
            yield session

    @contextmanager
    def migrating(self) -> Iterator[Session]:
        """Do the same with tables of any version."""
        self.last_step = None
        with self.maintaining() as session:
            yield session

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Lend a connection outside any transaction, with the rights of the owner."""
        with self._explained(), self._opened().connection() as session:
            yield session

    @contextmanager
    def building(self, kind: int, number: int) -> Iterator[Session | None]:
        """Lend a connection for long work outside transactions, or nothing.

        Only one at a time does work of one kind and number, and none on a standby.
        """
        with self.session() as session:
            row = session.execute(
                "SELECT NOT pg_is_in_recovery() AND pg_try_advisory_lock(%s, %s)", [kind, number]
            ).fetchone()
            if row is None or not row[0]:
                yield None
                return
            session.execute("SET statement_timeout = 0")
            session.is_building = True
            try:
                yield session
            finally:
                session.is_building = False
                # With a connection that is lost, the lock is gone as well.
                if not session.closed:
                    session.execute(_SET, ["statement_timeout", _milliseconds(STATEMENT_SECONDS)])
                    session.execute("SELECT pg_advisory_unlock(%s, %s)", [kind, number])

    def listener(self, channel: str) -> Listener:
        """Return the one that listens to a channel for everybody here."""
        with self._opening:
            if channel not in self._listeners:
                self._listeners[channel] = Listener(self.address, channel)
            return self._listeners[channel]

    def close(self) -> None:
        """Close all connections."""
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        with self._opening:
            if self._pool is not None:
                self._pool.close()
            self._pool = None

    @contextmanager
    def _transaction(
        self,
        begin: str,
        *,
        as_member: bool,
        scope: int | None = None,
        in_pipeline: bool = False,
    ) -> Iterator[Session]:
        rights: Sequence[str] = ()
        if as_member:
            rights = self._rights()
        if rights and scope is not None:
            rights = (*rights, str(scope))
        with self._explained(), ExitStack() as stack:
            session, last_step = self._begun(stack, begin, rights)
            try:
                self._refuse_other_tables(last_step)
                if not in_pipeline:
                    yield session
                else:
                    with session.pipeline():
                        yield session
                        # Passed over by the server if a statement before it has failed.
                        session.execute("COMMIT")
            except BaseException:
                _roll_back(session)
                raise
            if not in_pipeline:
                session.execute("COMMIT")

    def _refuse_other_tables(self, last_step: int | None) -> None:
        if last_step != self.last_step and None not in (last_step, self.last_step):
            raise UnavailableError(
                "the tables of the team database were made anew by another ragdocs since this "
                "process began; nothing was written",
                HINT_RESTART,
            )

    def _begun(
        self, stack: ExitStack, begin: str, rights: Sequence[str]
    ) -> tuple[Session, int | None]:
        """Begin a transaction, on another connection if the first one turns out to be lost.

        Return the last step of the schema, too, where it matters.
        """
        is_checked = self.last_step is not None and begin != READ_ONE_STATE
        pool = self._opened()
        import psycopg

        session = stack.enter_context(pool.connection())
        try:
            last_step = _begin(session, begin, rights, is_checked=is_checked)
        except psycopg.Error:
            if not session.closed:
                raise
            stack.close()
            self._forget(pool)
            session = stack.enter_context(self._opened().connection())
            last_step = _begin(session, begin, rights, is_checked=is_checked)
        return session, last_step

    @property
    def caller_name(self) -> str:
        """The name of the caller in the grants, or nothing for maintenance."""
        current = caller.current()
        if current is caller.MAINTENANCE:
            return ""
        return current.member or current.name or self._user

    def _rights(self) -> Sequence[str]:
        """Return what makes a session that of the caller; nothing for the owner of the tables."""
        current = caller.current()
        if current is caller.MAINTENANCE:
            return ()
        return MEMBER, self.caller_name, current.role

    def _forget(self, pool: ConnectionPool[Session] | None) -> None:
        """Connect anew next time: where one connection was lost, the others probably are."""
        with self._opening:
            if pool is None or pool is not self._pool:
                return
            self._pool = None
        pool.close(timeout=0)

    def _opened(self) -> ConnectionPool[Session]:
        with self._opening:
            if self._pool is None:
                self._pool = self._open()
            return self._pool

    def _open(self) -> ConnectionPool[Session]:
        try:
            import psycopg
            from psycopg_pool import ConnectionPool, PoolTimeout

            from ragdocs.system.postgres.connection import KEEPALIVE, PatientConnection
        except ImportError as error:
            raise UnavailableError(
                "a team database needs packages that are not installed", HINT_EXTRA
            ) from error
        # Lost connections are said in our own words, by whoever needed them.
        logging.getLogger("psycopg").setLevel(logging.ERROR)
        options: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": int(CONNECT_SECONDS),
            "application_name": "ragdocs",
            **KEEPALIVE,
        }
        try:
            # Said at once and in the words of the server, where a pool would only wait.
            PatientConnection.connect(self.address, **options).close()
        except psycopg.Error as error:
            raise UnavailableError(
                f"the team database cannot be reached: {_reason(error)}", HINT_ADDRESS
            ) from error
        pool: ConnectionPool[Session] = ConnectionPool(
            self.address,
            kwargs=options,
            connection_class=PatientConnection,
            min_size=1,
            max_size=self._connections,
            configure=_configure,
            timeout=QUEUE_SECONDS,
            open=False,
            name="ragdocs",
        )
        pool.open()
        try:
            pool.wait(timeout=CONNECT_SECONDS)
        except PoolTimeout as error:
            pool.close()
            raise UnavailableError(
                "the team database does not answer in time", HINT_ADDRESS
            ) from error
        return pool

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the driver raises into errors that say what happened."""
        pool = self._pool
        try:
            yield
        except RagdocsError:
            raise
        except Exception as error:
            explained = _explain(error)
            if explained is None:
                raise
            if isinstance(explained, DisconnectedError):
                self._forget(pool)
            raise explained from error


def _begin(session: Session, begin: str, rights: Sequence[str], *, is_checked: bool) -> int | None:
    steps = None
    # Sent together: each would otherwise cost a trip to the server.
    with session.pipeline():
        session.execute(begin)
        if is_checked:
            steps = session.execute(_LAST_STEP)
        if len(rights) > RIGHTS:
            session.execute(_BECOME_MEMBER_OF_SCOPE, rights)
        elif rights:
            session.execute(_BECOME_MEMBER, rights)
    row = steps.fetchone() if steps else None
    return int(row[0]) if row else None


def _configure(session: Session) -> None:
    from pgvector.psycopg import register_vector

    settings = {
        "statement_timeout": _milliseconds(STATEMENT_SECONDS),
        "lock_timeout": _milliseconds(LOCK_SECONDS),
        "idle_in_transaction_session_timeout": _milliseconds(STATEMENT_SECONDS),
        **SEARCHING,
    }
    for name, value in settings.items():
        session.execute(_SET, [name, value])
    installed = session.execute("SELECT FROM pg_type WHERE typname = 'halfvec'").fetchone()
    if installed is not None:
        register_vector(session)


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))


def half_vector(components: list[float]) -> object:
    """Return a vector as a statement takes it."""
    from pgvector import HalfVector

    return HalfVector(components)


def _explain(error: Exception) -> RagdocsError | None:
    """Return the error that a caller understands, or nothing for a mistake of ours."""
    import psycopg
    from psycopg_pool import PoolClosed, PoolTimeout

    if isinstance(error, PoolClosed):
        # Another call lost its connection while this one waited for one.
        return DisconnectedError(
            "the connection to the team database was lost while this call waited for it", HINT_AGAIN
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return ForbiddenError("you may not do this in this project", "Ask an admin of the project")
    busy = (PoolTimeout, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
    if isinstance(error, busy):
        return UnavailableError("the team database is busy; nothing was written", HINT_AGAIN)
    if isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
        return UnavailableError(
            f"the team database did not answer in time: {_reason(error)}", HINT_AGAIN
        )
    if isinstance(error, psycopg.errors.DiskFull):
        return StorageError("the disk of the team database is full; nothing was written")
    return _connection_error(error)


def _connection_error(error: Exception) -> RagdocsError | None:
    import psycopg

    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return UnavailableError("the team database can only be read now", HINT_STANDBY)
    if _is_lost(error):
        return DisconnectedError(
            f"the connection to the team database was lost: {_reason(error)}", HINT_AGAIN
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return UnavailableError(
            f"the connection to the team database failed: {_reason(error)}", HINT_ADDRESS
        )
    return None


def _is_lost(error: Exception) -> bool:
    """Return whether a connection is gone, and whatever it was doing with it."""
    import psycopg

    if isinstance(error, psycopg.Error) and error.sqlstate:
        return error.sqlstate.startswith("08") or error.sqlstate in LOST
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _roll_back(session: Session) -> None:
    """Undo a transaction; a connection on which a statement failed is not used again.

    The driver would take statements for prepared that came after the failed one.
    """
    import psycopg
    from psycopg.pq import TransactionStatus

    if session.info.transaction_status is not TransactionStatus.INTRANS:
        session.close()
        return
    try:
        session.execute("ROLLBACK")
    except psycopg.Error:
        # The connection is gone, and its transaction with it.
        logger.info("a connection to the team database was lost")


def _reason(error: Exception) -> str:
    """Return the first line of a message, without passwords."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # Of a password with an @ in it, the driver takes the rest for the name of a host.
    return without_password(_REST_OF_PASSWORD.sub("'***@", lines[0]))


def without_password(text: str) -> str:
    """Return a text in which no address has a password."""
    return _CREDENTIALS.sub(lambda match: f"{match['before'] or match['key']}***", text)
