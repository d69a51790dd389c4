"""Who is asking: one caller for each connected client.

And what an answer takes from the caller's surroundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from secrets import token_hex
from typing import Literal


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Caller:
    """A connected client; what is remembered about it is gone when it is.

    And never written anywhere.

    The defaults are those of a client that is served by a process of its own: that process has the
    client's environment.
    """

    name: str = ""
    role: Literal["reader", "writer"] = "writer"
    session: str = field(default_factory=lambda: token_hex(8))
    # What MEMORY_BRANCH_SCOPE says; empty where it says nothing.
    branch_scope: str = ""
    # Nothing: the zone of this process.
    zone: tzinfo | None = None
    # Environment variables whose values must not be kept, by name.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def local(self, moment: datetime) -> datetime:
        """Return a moment on the caller's clock."""
        return moment.astimezone(self.zone)

    def universal(self, moment: datetime) -> datetime:
        """Return a moment in UTC; one without an offset is on the caller's clock."""
        if moment.tzinfo is None and self.zone is not None:
            moment = moment.replace(tzinfo=self.zone)
        return moment.astimezone(UTC)


_caller: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 - a caller is frozen


def begin(caller: Caller) -> None:
    """Let everything that is started from here on be done for a caller."""
    _caller.set(caller)


def current() -> Caller:
    """Return the caller that this is done for."""
    return _caller.get()
