"""The projects of a team database, their scopes, and who may do what in them."""

from __future__ import annotations

from dataclasses import dataclass

from ragdocs.caller import Role
from ragdocs.errors import ForbiddenError, NotFoundError, ValidationError
from ragdocs.system.postgres.database import Database

ROLES: tuple[Role, ...] = ("reader", "writer", "admin")
# In place of a project, for all of them.
EVERY_PROJECT = 0
LONGEST_NAME = 200
HINT_JOIN = "Ask an admin of the project to grant you a role in it"


@dataclass(frozen=True, slots=True)
class TeamProject:
    """One project, which all clones of its repository share."""

    number: int
    identity: str
    name: str
    # The branch whose documentation is read where no other was pushed.
    default_branch: str


@dataclass(frozen=True, slots=True)
class Member:
    """What somebody may do in a project, or in all of them where it has no identity."""

    name: str
    role: Role
    identity: str


class Projects:
    """Finds and adds projects, and the scopes of their lanes, as far as the caller may."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, identity: str) -> TeamProject | None:
        """Return a project that the caller may read."""
        with self._database.reading() as session:
            row = session.execute(
                "SELECT project, identity, name, default_branch FROM projects WHERE identity = %s",
                [identity],
            ).fetchone()
        return TeamProject(*row) if row else None

    def all(self) -> list[TeamProject]:
        """Return the projects that the caller may read."""
        with self._database.reading() as session:
            rows = session.execute(
                "SELECT project, identity, name, default_branch FROM projects ORDER BY identity"
            ).fetchall()
        return [TeamProject(*row) for row in rows]

    def add(self, identity: str) -> TeamProject:
        """Return a project, which is added if the caller may write in all of them."""
        if len(identity) > LONGEST_NAME:
            raise ValidationError(f"the name of a project has at most {LONGEST_NAME} characters")
        try:
            with self._database.writing() as session:
                session.execute("SELECT add_project(%s, %s)", [identity, short_name(identity)])
        except ForbiddenError as error:
            raise ForbiddenError(
                f"{identity} is not in the team database yet",
                "Whoever may write in all projects adds it by pushing its documentation",
            ) from error
        existing = self.find(identity)
        if existing is None:
            raise ForbiddenError(f"you have no role in {identity}", HINT_JOIN)
        return existing

    def role(self, project: int) -> Role | None:
        """Return what the grants allow the caller to do in a project, if anything."""
        with self._database.reading() as session:
            rows = session.execute(
                "SELECT lowered(role) FROM grants"
                " WHERE caller = caller_name() AND project IN (%s, %s)",
                [project, EVERY_PROJECT],
            ).fetchall()
        roles = {row[0] for row in rows}
        strongest = None
        for role in ROLES:
            if role in roles:
                strongest = role
        return strongest

    def scope(self, project: int, lane: str, branch: str = "") -> int | None:
        """Return the number of a scope, if there is one that the caller may read."""
        with self._database.reading() as session:
            row = session.execute(
                "SELECT scope FROM scopes WHERE project = %s AND lane = %s AND branch = %s",
                [project, lane, branch],
            ).fetchone()
        return row[0] if row else None

    def add_scope(self, project: int, lane: str, branch: str = "") -> int:
        """Return the number of a scope, which is added if the caller may write there."""
        with self._database.writing() as session:
            row = session.execute(
                "SELECT add_scope(%s, %s, %s)", [project, lane, branch]
            ).fetchone()
        assert row is not None
        return int(row[0])

    def branches(self, project: int, lane: str) -> dict[str, int]:
        """Map the branches of a lane to their scopes."""
        with self._database.reading() as session:
            rows = session.execute(
                "SELECT branch, scope FROM scopes WHERE project = %s AND lane = %s ORDER BY branch",
                [project, lane],
            ).fetchall()
        return dict(rows)

    def set_default_branch(self, project: int, branch: str) -> None:
        """Note the branch whose documentation is read where no other was pushed."""
        with self._database.writing() as session:
            session.execute("SELECT set_default_branch(%s, %s)", [project, branch])


class Members:
    """Grants of roles to callers, by their names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Member]:
        """Return the grants that the caller may see: its own, and those of an admin's projects."""
        with self._database.reading() as session:
            rows = session.execute(
                "SELECT g.caller, g.role, coalesce(p.identity, '') FROM grants g"
                " LEFT JOIN projects p USING (project) ORDER BY 1, 3"
            ).fetchall()
        return [Member(*row) for row in rows]

    def grant(self, name: str, role: str, project: int) -> None:
        """Give a role in a project, or in all of them, in place of an earlier one."""
        _check(name, role)
        with self._database.writing() as session:
            session.execute(
                "INSERT INTO grants (caller, project, role) VALUES (%s, %s, %s)"
                " ON CONFLICT (caller, project) DO UPDATE SET role = excluded.role",
                [name, project, role],
            )

    def grant_everything(self, name: str) -> None:
        """Make somebody an admin of everything, with the rights of the owner of the tables."""
        _check(name, "admin")
        with self._database.maintaining() as session:
            session.execute(
                "INSERT INTO grants (caller, project, role) VALUES (%s, %s, 'admin')"
                " ON CONFLICT (caller, project) DO UPDATE SET role = excluded.role",
                [name, EVERY_PROJECT],
            )

    def revoke(self, name: str, project: int) -> None:
        """Take back the role in a project, or the one in all of them."""
        with self._database.writing() as session:
            count = session.execute(
                "DELETE FROM grants WHERE caller = %s AND project = %s", [name, project]
            ).rowcount
        if not count:
            raise NotFoundError(f"{name} has no role of its own there")


def short_name(identity: str) -> str:
    """Return what people call a project: the end of its address."""
    return identity.rstrip("/").rpartition("/")[2] or identity


def _check(name: str, role: str) -> None:
    if role not in ROLES:
        raise ValidationError(f"{role[:40]!r} is not a role", f"Use {', '.join(ROLES)}")
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValidationError(
            "a member needs a name", f"Give one of 1 to {LONGEST_NAME} printable characters"
        )
