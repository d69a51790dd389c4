"""Who is asking: one session for each connected client, whatever protocol it speaks."""

from __future__ import annotations

from contextvars import ContextVar


class Session:
    """A connected client; what is remembered about one goes when it does."""


# For a client in the same process as its server, of which there is one.
_ALONE = Session()
_session: ContextVar[Session] = ContextVar("session", default=_ALONE)


def begin() -> Session:
    """Begin a session for everything that is started from here on; it lasts as long as somebody keeps it."""
    session = Session()
    _session.set(session)
    return session


def current() -> Session:
    """Return the session that this call belongs to."""
    return _session.get()
