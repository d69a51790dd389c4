"""How people call a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragdocs.errors import ForbiddenError

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

_PROJECT = "SELECT name, branch FROM projects JOIN scopes USING (project) WHERE scope = %s"


def address(session: Session, scope: int) -> str:
    """Return the project and branch of a scope, such as team:shop or team:shop@main."""
    row = session.execute(_PROJECT, [scope]).fetchone()
    if row is None:
        raise ForbiddenError("you may not read this project", "Ask an admin of the project")
    name, branch = row
    if branch:
        name = f"{name}@{branch}"
    return f"team:{name}"
