"""The part of a workspace that a team shares: a database, and this project in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ragdocs import caller
from ragdocs.caller import Role
from ragdocs.config import CHECKED_OUT, NO_DATABASE, Config
from ragdocs.errors import ForbiddenError, UnavailableError
from ragdocs.keys import USER_FILE
from ragdocs.lanes import DOCS, Lane
from ragdocs.project.folders import user_name
from ragdocs.project.identity import shared_name
from ragdocs.stores.postgres.access import RowAccessLog
from ragdocs.stores.postgres.projects import HINT_JOIN, Members, Projects, TeamProject
from ragdocs.stores.postgres.summaries import RowSummaries
from ragdocs.system import git
from ragdocs.system.postgres import migrations
from ragdocs.system.postgres.database import Database
from ragdocs.system.postgres.migrations import Migration

if TYPE_CHECKING:
    from ragdocs.search.corpus import Corpus
    from ragdocs.stores.summaries import Limits
    from ragdocs.text.redaction.redact import Redactor
    from ragdocs.verbs.memories.recall import Bank

# The lane of summaries, which has a scope for each branch.
SUMMARIES = "summaries"
# Has no rows, and nobody can write any.
NO_SCOPE = 0
# Texts whose row in the index is another one, or that have none, and rows without a text.
_BEHIND = """
SELECT path FROM (SELECT * FROM texts WHERE scope = %(scope)s) t
FULL JOIN (SELECT * FROM documents WHERE scope = %(scope)s) d USING (path)
WHERE d.stamp IS DISTINCT FROM concat(t.change_set, '-', left(encode(t.digest, 'hex'), 16))
ORDER BY path
"""
# The other projects of a caller, the last changed first.
_OTHERS = """
SELECT identity, name, scope FROM projects JOIN scopes USING (project)
WHERE lane = %s AND branch = '' AND project <> %s
ORDER BY (SELECT max(change_set) FROM change_sets c WHERE c.scope = scopes.scope)
DESC NULLS LAST, identity LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class OtherProject:
    """Another project of the team, and the scope of one of its lanes."""

    identity: str
    name: str
    scope: int


def is_shared(config: Config) -> bool:
    """Tell whether a configuration names a team database."""
    return config.team.database != NO_DATABASE


def connect(config: Config) -> Database:
    """Return the database of a team, whether it has tables or not."""
    if not is_shared(config):
        raise UnavailableError(
            "no team database is configured",
            f'Write database = "postgresql://…" under [team] in {USER_FILE}, '
            "or set RAGDOCS_DATABASE",
        )
    return _database(config.team.database)


# All projects of a process share their connections.
_DATABASES: dict[str, Database] = {}


def _database(address: str) -> Database:
    if address not in _DATABASES:
        _DATABASES[address] = Database(address, user=user_name())
    return _DATABASES[address]


def disconnect() -> None:
    """Close all connections of this process; the next who asks connects again."""
    while _DATABASES:
        _DATABASES.popitem()[1].close()


def initialise(config: Config) -> tuple[list[Migration], str]:
    """Make the tables and make whoever runs this an admin; return the steps made and the name."""
    database = connect(config)
    made = migrations.migrate(database)
    # Connections learn the types of vectors when they are opened.
    database.close()
    name = user_name()
    Members(database).grant_everything(name)
    return made, name


class Team:
    """A team database with the tables of this version, and one project in it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.database = connect(config)
        migrations.check(self.database)
        self.projects = Projects(self.database)
        self.members = Members(self.database)

    @cached_property
    def identity(self) -> str:
        """The name by which all clones know this project."""
        return shared_name(self.config.root, self.config.team.projects)

    @cached_property
    def project(self) -> TeamProject:
        """The project of the workspace, which is added if the caller may do that."""
        with caller.maintaining():
            project = self.projects.find(self.identity)
        return project or self.projects.add(self.identity)

    def role(self) -> Role:
        """Return what the caller may do here, or raise that it may nothing."""
        role = self.projects.role(self.project.number)
        if role is None:
            raise ForbiddenError(f"you have no role in {self.identity}", HINT_JOIN)
        return role

    # --- scopes ---

    def scope(self, lane: Lane) -> int:
        """Return the scope of a lane: of the documentation, that of a branch."""
        if lane.writable:
            return self._ensured_scope(lane.name, "")
        branch = self.docs_branch()
        if branch is None:
            raise UnavailableError(
                f"no documentation of {self.identity} was pushed yet",
                "Push it from where its files are",
            )
        return self._ensured_scope(lane.name, branch)

    def pushed_scope(self, branch: str, *, is_trial: bool) -> int:
        """Return the scope to push to, which is added unless this is only a trial."""
        if not is_trial:
            return self.projects.add_scope(self.project.number, DOCS.name, branch)
        project = self.projects.find(self.identity)
        if project is None:
            return NO_SCOPE
        return self.projects.scope(project.number, DOCS.name, branch) or NO_SCOPE

    def docs_branch(self) -> str | None:
        """Return the branch whose documentation is read, if any was pushed."""
        project = self.project
        with caller.maintaining():
            pushed = self.projects.branches(project.number, DOCS.name)
            # A push may have set another default branch meanwhile.
            project = self.projects.find(self.identity) or project
        for branch in (self.branch, project.default_branch):
            if branch in pushed:
                return branch
        return next(iter(pushed), None)

    @property
    def branch(self) -> str:
        """The branch that is worked on: as configured, or as checked out, or the default one."""
        if self.config.team.branch != CHECKED_OUT:
            return self.config.team.branch
        return git.branch(self.config.root) or self.project.default_branch

    def _ensured_scope(self, lane: str, branch: str) -> int:
        number = self.project.number
        with caller.maintaining():
            scope = self.projects.scope(number, lane, branch)
        if scope is None:
            scope = self.projects.add_scope(number, lane, branch)
        return scope

    # --- what belongs to the memories ---

    def access(self, lane: Lane) -> RowAccessLog:
        """Return the accesses to the memories, by anybody."""
        return RowAccessLog(self.database, self.scope(lane))

    def summaries(self, branch: str, limits: Limits, redactor: Redactor) -> RowSummaries:
        """Return the summaries of a branch; a reader sees none where there are none yet."""
        try:
            scope = self._ensured_scope(SUMMARIES, branch)
        except ForbiddenError:
            scope = NO_SCOPE
        return RowSummaries(self.database, scope, limits, redactor)

    # --- the index and other projects ---

    def behind(self, scope: int) -> list[str]:
        """List the paths of a scope whose rows in the index are not those of their texts."""
        with self.database.reading() as session:
            rows = session.execute(_BEHIND, {"scope": scope}).fetchall()
        return [path for (path,) in rows]

    def forget_indexes(self) -> None:
        """Drop all rows of the index of this project, which come back from its texts."""
        if self.role() != "admin":
            raise ForbiddenError("only an admin of the project indexes it anew", HINT_JOIN)
        with self.database.maintaining() as session:
            session.execute(
                "SELECT forget_scope(scope) FROM scopes WHERE project = %s", [self.project.number]
            )

    def others(self, lane: Lane, most: int) -> list[OtherProject]:
        """Return other projects that the caller may read, the last changed first."""
        with self.database.reading() as session:
            values = [lane.name, self.project.number, most]
            rows = session.execute(_OTHERS, values).fetchall()
        return [OtherProject(*row) for row in rows]

    def banks(self, lane: Lane, corpus_of: Callable[[int], Corpus]) -> tuple[list[Bank], list[str]]:
        """Return the memories of other projects, and notes about those that are left out."""
        from ragdocs.verbs.memories.banks import MOST_BANKS
        from ragdocs.verbs.memories.recall import Bank

        others = self.others(lane, MOST_BANKS + 1)
        banks = []
        for other in others[:MOST_BANKS]:
            banks.append(Bank(other.name, other.identity, corpus_of(other.scope)))
        notes = []
        if len(others) > MOST_BANKS:
            notes.append(f"only the {MOST_BANKS} projects that changed last were asked")
        return banks, notes

    def repository_id(self, branch: str) -> str:
        """Return a name for the repository and a branch, which all clones share."""
        parts = json.dumps([self.identity, branch])
        return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()
