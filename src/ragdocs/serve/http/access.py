"""Who asks: the host and origin of a request, its credentials, and the caller that they make."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import anyio
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ragdocs import caller
from ragdocs.caller import Caller, Role
from ragdocs.errors import RagdocsError
from ragdocs.project.folders import user_name
from ragdocs.project.tokens import EVERY_PROJECT, Tokens
from ragdocs.serve.http.sessions import Sessions
from ragdocs.serve.surface.clients import OWNER

logger = logging.getLogger("ragdocs.http")

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER = "x-ragdocs-csrf"
# By which MCP tells the sessions of one credential apart.
SESSION_HEADER = "mcp-session-id"
# The one that was silent for longest is forgotten first.
MOST_CALLERS = 10_000
# What a request without credentials may have: whether the server lives, how to ask for access, and
# the looks of the page that says so.
PUBLIC = ("/healthz", "/readyz", "/open", "/static/", "/.well-known/")
# Where the guard leaves who asks, for the applications behind it.
PRINCIPAL = "ragdocs.principal"
METADATA = "/.well-known/oauth-protected-resource"
# The address of MCP, which has metadata of its own.
MCP = "/mcp"
LONGEST_NAME = 100
MOST_ASKING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever stands behind a request, by the credential that was shown."""

    name: str
    role: Role
    # Names the credential in limits and sessions, and says nothing about its secret.
    key: str
    # The folder of the project it may ask about, or "*".
    project: str = EVERY_PROJECT
    # What a form of this browser must send with it; "" for a client that sends a token.
    csrf: str = ""
    # The name in the grants of a team database, where it is not `name`.
    member: str = ""

    def may_enter(self, root: Path) -> bool:
        """Tell whether it may ask about this project."""
        return self.project in (EVERY_PROJECT, str(root))

    def caller(self, session: str) -> Caller:
        """Return the caller that verbs see, the same one in all requests of a client's session."""
        return _caller(self, session)


class ScopeError(Exception):
    """A good token of somebody who may do nothing here; with the scope that it would need."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"the token has no scope {scope}")
        self.scope = scope


@lru_cache(maxsize=MOST_CALLERS)
def _caller(principal: Principal, _session: str) -> Caller:
    """Make a caller once: what a verb remembers of one belongs to the object.

    Clients that use one credential and no sessions are one caller.
    """
    return Caller(
        name=principal.name,
        member=principal.member,
        role=principal.role,
        confined=principal.project != EVERY_PROJECT,
        remote=principal.name != OWNER,
        session=principal.key,
    )


class Verifier(Protocol):
    """Something that knows tokens which are not ours, such as those of a company's provider."""

    def principal(self, token: str) -> Principal | None:
        """Return whoever a token stands for, if it is good."""

    def metadata(self, address: str) -> dict[str, object]:
        """Return where a client gets a token for an address of this server.

        As OAuth's protected-resource metadata.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the guard of one server knows: its names and its credentials."""

    # The hosts by which it may be called, with their ports.
    hosts: frozenset[str]
    scheme: str
    sessions: Sessions
    tokens: Tokens
    verifier: Verifier | None = None
    # Other sites whose pages may call it; none unless someone says so.
    origins: frozenset[str] = frozenset()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    # Threads that may wait for the provider: if it is slow, calls of others go on.
    asking_provider: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_ASKING)
    )

    @property
    def cookie(self) -> str:
        """The name of the session's cookie; browsers share cookies between ports."""
        digest = hashlib.sha256(" ".join(sorted(self.hosts)).encode()).hexdigest()
        return f"ragdocs_{digest[:8]}"

    def origin(self, connection: HTTPConnection) -> str:
        """Return the address of this server as a request calls it; the guard has checked that."""
        return f"{self.scheme}://{connection.headers['host']}"

    def allows_origin(self, origin: str) -> bool:
        """Tell whether a page of this origin may send requests."""
        scheme, _, host = origin.partition("://")
        return origin in self.origins or (scheme == self.scheme and host in self.hosts)

    async def principal(self, connection: HTTPConnection) -> Principal | None:
        """Return who shows a good credential; a token counts before a cookie."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.casefold() == "bearer":
            return await self._bearer(token.strip())
        session = self.sessions.find(connection.cookies.get(self.cookie, ""))
        if session is None:
            return None
        digest = hashlib.sha256(session.id.encode()).hexdigest()[:16]
        role: Role = "writer" if session.role == "writer" else "reader"
        return Principal(
            name=OWNER,
            role=role,
            key=f"session:{digest}",
            csrf=session.csrf,
            member=user_name(),
        )

    async def _bearer(self, text: str) -> Principal | None:
        token = self.tokens.find(text, self.clock())
        if token is not None:
            return Principal(
                name=token.name[:LONGEST_NAME],
                role=token.role,
                key=f"token:{token.id}",
                project=token.project,
            )
        if self.verifier is None:
            return None
        # It may have to ask the provider for its keys.
        return await anyio.to_thread.run_sync(
            self.verifier.principal, text, limiter=self.asking_provider
        )


class Guard:
    """Lets a request in if its host, its origin and its credentials are right."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with the reason."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is nothing here for other protocols.
            await send({"type": "websocket.close", "code": 1008})
            return
        connection = HTTPConnection(scope)
        refusal = self._objection(connection, scope["method"])
        if refusal is None:
            refusal = await self._enter(connection, scope)
        await (refusal or self._app)(scope, receive, send)

    def _objection(self, connection: HTTPConnection, method: str) -> Response | None:
        """Refuse a name that is not ours and pages of other sites."""
        headers = connection.headers
        if headers.get("host", "").casefold() not in self._gate.hosts:
            # A name that an attacker points at this machine is not ours.
            return _refused(421, "this server is not called that", "Use the address it printed")
        origin = headers.get("origin")
        if origin is not None and not self._gate.allows_origin(origin):
            return _refused(403, "pages of other sites may not call this server")
        if method not in SAFE_METHODS and headers.get("sec-fetch-site", "") == "cross-site":
            return _refused(403, "pages of other sites may not call this server")
        return None

    async def _enter(self, connection: HTTPConnection, scope: Scope) -> Response | None:
        """Note who asks, or return the refusal."""
        try:
            principal = await self._gate.principal(connection)
        except RagdocsError as error:
            logger.warning("credentials cannot be checked: %s", error)
            return _refused(503, "credentials cannot be checked now", "See the log of the server")
        except ScopeError as error:
            challenge = self._challenge(connection, "insufficient_scope")
            return _refused(
                403,
                str(error),
                "Ask whoever runs the provider for it",
                {"www-authenticate": f'{challenge}, scope="{error.scope}"'},
            )
        if principal is None:
            if is_public(scope["path"]):
                return None
            return self._unauthorized(connection)
        if not _has_csrf(principal, connection.headers, scope["method"]):
            return _refused(403, f"the header {CSRF_HEADER} is missing", "Reload the page")
        scope[PRINCIPAL] = principal
        # For the forms of the page, which knows no credentials.
        scope.setdefault("state", {})["csrf"] = principal.csrf
        session = connection.headers.get(SESSION_HEADER, "")
        caller.begin(principal.caller(session[:LONGEST_NAME]))
        return None

    def _unauthorized(self, connection: HTTPConnection) -> Response:
        hint = "Make one with `ragdocs token create`, or open the page with `ragdocs web`"
        problem = ""
        if "authorization" in connection.headers:
            problem = "invalid_token"
        headers = {"www-authenticate": self._challenge(connection, problem)}
        if "text/html" in connection.headers.get("accept", ""):
            return HTMLResponse(SIGN_IN, 401, headers)
        return _refused(401, "a token is needed", hint, headers)

    def _challenge(self, connection: HTTPConnection, problem: str) -> str:
        """Say what was wrong with a credential, and where a client gets one."""
        challenge = 'Bearer realm="ragdocs"'
        if problem:
            challenge += f', error="{problem}"'
        if self._gate.verifier is not None:
            path = METADATA
            if connection.url.path == MCP:
                path += MCP
            challenge += f', resource_metadata="{self._gate.origin(connection)}{path}"'
        return challenge


def is_public(path: str) -> bool:
    """Tell whether a path is for everybody who reaches the server."""
    for public in PUBLIC:
        is_folder = public.endswith("/")
        if path == public or (is_folder and path.startswith(public)):
            return True
    return False


def principal_of(scope: Scope) -> Principal | None:
    """Return who asks, as the guard noted it."""
    principal = scope.get(PRINCIPAL)
    assert principal is None or isinstance(principal, Principal)
    return principal


def host_names(hosts: Iterable[str], port: int, default_port: int) -> frozenset[str]:
    """Return the spellings of hosts in requests for a port."""
    names = set()
    for host in hosts:
        name = host.casefold()
        names.add(f"{name}:{port}")
        if port == default_port:
            names.add(name)
    return frozenset(names)


def _has_csrf(principal: Principal, headers: Headers, method: str) -> bool:
    if not principal.csrf or method in SAFE_METHODS:
        return True
    return hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), principal.csrf.encode())


def _refused(
    status: int, message: str, hint: str = "", headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": message, "hint": hint}, status, headers)


SIGN_IN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ragdocs</title>
<link rel="icon" href="/static/icon.svg">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/style.css"></head>
<body><main class="sign-in"><h1>ragdocs</h1>
<p>This page opens with a one-time address. Run <code>ragdocs web</code> in your project
and follow the address that it prints.</p></main></body></html>
"""


class SecurityHeaders:
    """Adds the headers that keep a browser from doing what the page did not ask for."""

    def __init__(self, app: ASGIApp, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._app = app
        self._headers = [*HEADERS, *extra]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and add to its answer."""

        async def add_headers(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))  # type: ignore[call-overload]
                names = {name for name, _ in given}
                given += [(name, value) for name, value in self._headers if name not in names]
                message["headers"] = given
            await send(message)

        await self._app(scope, receive, add_headers)  # type: ignore[arg-type]


CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
)
