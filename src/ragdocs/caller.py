"""The caller: one for each connected client, with its own clock, branch scope and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from secrets import token_hex
from typing import Literal


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Caller:
    """A connected client, which is forgotten when it disconnects and never written anywhere.

    The defaults are those of a client that is served by a process of its own: that process has the
    client's environment.
    """

    name: str = ""
    role: Literal["reader", "writer"] = "writer"
    session: str = field(default_factory=lambda: token_hex(8))
    # The value of MEMORY_BRANCH_SCOPE.
    branch_scope: str = ""
    # None for the zone of this process.
    zone: tzinfo | None = None
    # Environment variables whose values must not be written down, by name.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def local(self, moment: datetime) -> datetime:
        """Return a moment on the caller's clock."""
        return moment.astimezone(self.zone)

    def universal(self, moment: datetime) -> datetime:
        """Return a moment in UTC; one without an offset is on the caller's clock."""
        if moment.tzinfo is None and self.zone is not None:
            moment = moment.replace(tzinfo=self.zone)
        return moment.astimezone(UTC)


# A caller is frozen, so it may be a default.
_caller: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039


def begin(caller: Caller) -> None:
    """Make this the caller of all that is done from here on in this task."""
    _caller.set(caller)


def current() -> Caller:
    """Return the caller of this task."""
    return _caller.get()
