"""The caller: one for each connected client, with its own clock, branch scope and secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal

Role = Literal["reader", "writer", "admin"]
GIT_INDEX = "GIT_INDEX_FILE"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Caller:
    """A connected client, which is forgotten when it disconnects.

    Of it, only the name of the author is written, into the history of what it changes.

    The defaults are those of a client that is served by a process of its own: that process has the
    client's environment.
    """

    name: str = ""
    # The name in the grants of a team database, where it is not `name`.
    member: str = ""
    # What the credential allows at most; the user who runs this process is not held back by one.
    role: Role = "admin"
    # Whether the credential is for one project only.
    confined: bool = False
    # Whether the caller came with a credential and may be somebody else than the user.
    remote: bool = False
    session: str = field(default_factory=lambda: os.urandom(8).hex())
    # The value of MEMORY_BRANCH_SCOPE.
    branch_scope: str = ""
    # The value of GIT_INDEX_FILE: what a hook of git is about to commit.
    git_index: str = ""
    # None for the zone of this process.
    zone: tzinfo | None = None
    # Environment variables whose values must not be written down, by name.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def may_write(self) -> bool:
        """Whether the credential allows to write."""
        return self.role != "reader"

    def local(self, moment: datetime) -> datetime:
        """Return a moment on the caller's clock."""
        return moment.astimezone(self.zone)

    def universal(self, moment: datetime) -> datetime:
        """Return a moment in UTC; one without an offset is on the caller's clock."""
        if moment.tzinfo is None and self.zone is not None:
            moment = moment.replace(tzinfo=self.zone)
        return moment.astimezone(UTC)


# Whoever asks in this process itself, such as a command that runs without a server.
NOBODY = Caller()
_caller: ContextVar[Caller] = ContextVar("caller", default=NOBODY)


# The name that is kept with a change; "" where nobody knows it.
author: ContextVar[str] = ContextVar("author", default="")
# Works for nobody in particular: statistics, vectors and repairs in the background of a server.
MAINTENANCE = Caller(name="maintenance")


def begin(caller: Caller) -> None:
    """Make this the caller of all that is done from here on in this task."""
    _caller.set(caller)


@contextmanager
def acting(caller: Caller) -> Iterator[None]:
    """Make this the caller of what is done inside, and nothing else."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def maintaining() -> AbstractContextManager[None]:
    """Do what nobody in particular asks for: bring an index up to its texts."""
    return acting(MAINTENANCE)


def git_index() -> str:
    """Return the index that git has given to the hook in which the caller runs, if there is one."""
    caller = current()
    if caller is NOBODY:
        return os.environ.get(GIT_INDEX, "")
    return caller.git_index


def current() -> Caller:
    """Return the caller of this task."""
    return _caller.get()
