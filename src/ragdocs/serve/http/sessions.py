"""The owner's browser: a one-time token becomes a session, which ends with the server."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# A browser opens the address at once.
INVITATION_SECONDS = 300.0
# A page that is left open over night still works in the morning.
SESSION_SECONDS = 86_400.0
MOST_SESSIONS = 100


@dataclass(frozen=True, slots=True)
class Session:
    """One browser; its forms carry `csrf`, which other sites cannot know."""

    id: str
    csrf: str
    role: str
    ends_at: float


class Sessions:
    """Invitations and sessions, in memory only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # When each invitation ends, and in which role it invites.
        self._invitations: dict[str, tuple[float, str]] = {}
        self._sessions: dict[str, Session] = {}

    def invite(self, role: str = "writer") -> str:
        """Return a token that opens one session."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_ended()
            self._invitations[token] = (self._clock() + INVITATION_SECONDS, role)
        return token

    @property
    def is_awaited(self) -> bool:
        """Whether somebody was invited who may still come."""
        with self._lock:
            self._drop_ended()
            return bool(self._invitations)

    def redeem(self, token: str) -> Session | None:
        """Open a session for a token that was never used before."""
        with self._lock:
            self._drop_ended()
            invitation = None
            for candidate in list(self._invitations):
                if hmac.compare_digest(candidate.encode(), token.encode()):
                    invitation = self._invitations.pop(candidate)
            if invitation is None:
                return None
            _, role = invitation
            # Always a new id: whatever cookie the browser had before means nothing.
            session = Session(
                id=secrets.token_urlsafe(32),
                csrf=secrets.token_urlsafe(32),
                role=role,
                ends_at=self._clock() + SESSION_SECONDS,
            )
            self._sessions[session.id] = session
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            return session

    def find(self, session_id: str) -> Session | None:
        """Return the session of a cookie, if it has not ended."""
        with self._lock:
            session = self._sessions.get(session_id)
        if session is None or session.ends_at < self._clock():
            return None
        return session

    def end(self, session_id: str) -> None:
        """Forget a session."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def _drop_ended(self) -> None:
        now = self._clock()
        for token, (ends_at, _) in list(self._invitations.items()):
            if ends_at < now:
                del self._invitations[token]
        for session in list(self._sessions.values()):
            if session.ends_at < now:
                del self._sessions[session.id]
