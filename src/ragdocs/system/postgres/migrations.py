"""The schema of a team database, in numbered steps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from ragdocs.errors import UnavailableError
from ragdocs.system.postgres.database import OLDEST_SERVER, Database

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

# Whoever migrates holds this lock; the number means nothing.
MIGRATION_LOCK = 7420_0001
OLDEST_VECTOR = (0, 8)
HINT_UPGRADE = "Upgrade ragdocs on this machine"
HINT_INIT = "An administrator of the database makes it: ragdocs team init"
HINT_VECTOR = "Install pgvector 0.8 or newer on the server: package postgresql-NN-pgvector"
HINT_ROLE = "Let a role that may create roles and extensions run it once"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """A name for exactly this text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def all_migrations() -> list[Migration]:
    """Return the steps that this version of ragdocs has, in order."""
    folder = resources.files(__package__) / "migrations"
    steps = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if number.isdigit():
            steps.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(steps, key=lambda step: step.number)


def migrate(database: Database) -> list[Migration]:
    """Bring the schema up to this version and return the steps that were made."""
    with database.migrating() as session:
        import psycopg

        _check_server(session)
        session.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
        try:
            session.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.InsufficientPrivilege as error:
            raise UnavailableError("this role may not install pgvector", HINT_ROLE) from error
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
            raise UnavailableError("the server has no pgvector", HINT_VECTOR) from error
        _check_vector(session)
        session.execute(
            "CREATE TABLE IF NOT EXISTS migrations (number int PRIMARY KEY, name text NOT NULL,"
            " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        applied = _applied(session)
        _refuse_strange(applied)
        made = []
        for step in all_migrations():
            if step.number not in applied:
                _apply(session, step)
                made.append(step)
        return made


def check(database: Database) -> None:
    """Raise unless the database has exactly the schema of this version."""
    with database.migrating() as session:
        _check_server(session)
        row = session.execute("SELECT to_regclass('migrations')").fetchone()
        if row is None or row[0] is None:
            raise UnavailableError("the team database has no tables of ragdocs yet", HINT_INIT)
        applied = _applied(session)
        _refuse_strange(applied)
        missing = [step.name for step in all_migrations() if step.number not in applied]
        if missing:
            raise UnavailableError(
                f"the team database is older than this ragdocs: {', '.join(missing)} missing",
                HINT_INIT,
            )
        _check_vector(session)
    database.last_step = max(applied)


def _apply(session: Session, step: Migration) -> None:
    import psycopg

    try:
        session.execute(step.sql)
    except psycopg.errors.InsufficientPrivilege as error:
        raise UnavailableError(
            f"this role may not make the tables: {str(error).splitlines()[0]}", HINT_ROLE
        ) from error
    session.execute(
        "INSERT INTO migrations (number, name, digest) VALUES (%s, %s, %s)",
        [step.number, step.name, step.digest],
    )


def _applied(session: Session) -> dict[int, tuple[str, str]]:
    rows = session.execute("SELECT number, name, digest FROM migrations").fetchall()
    return {number: (name, digest) for number, name, digest in rows}


def _refuse_strange(applied: dict[int, tuple[str, str]]) -> None:
    """Refuse a schema that a newer ragdocs has made, or another one of the same number."""
    own = {step.number: step for step in all_migrations()}
    for number, (name, digest) in sorted(applied.items()):
        if number not in own:
            raise UnavailableError(
                f"the team database was made by a newer ragdocs (step {number}, {name})",
                HINT_UPGRADE,
            )
        if digest != own[number].digest:
            raise UnavailableError(
                f"step {number} ({name}) of the team database is not the one of this ragdocs",
                HINT_UPGRADE,
            )


def _check_server(session: Session) -> None:
    version = session.info.server_version
    if version < OLDEST_SERVER:
        raise UnavailableError(
            f"the team database is PostgreSQL {version // 10000}; 15 or newer is needed"
        )


def _check_vector(session: Session) -> None:
    row = session.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        raise UnavailableError("the team database has no pgvector", HINT_VECTOR)
    version = tuple(int(part) for part in row[0].split(".")[:2])
    if version < OLDEST_VECTOR:
        raise UnavailableError(f"pgvector {row[0]} is too old", HINT_VECTOR)
