"""The application of an HTTP server: its projects, and what surrounds every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ragdocs import __version__
from ragdocs.errors import RagdocsError
from ragdocs.serve.http import api, openapi
from ragdocs.serve.http.access import MCP, METADATA, Gate, Guard, SecurityHeaders, principal_of
from ragdocs.serve.http.events import Feed
from ragdocs.serve.http.limits import Limiter, Limits, Turnstile
from ragdocs.serve.http.log import RequestLog
from ragdocs.serve.http.metrics import CONTENT_TYPE, Metrics
from ragdocs.serve.live import Live


class Running(Protocol):
    """An application that works for as long as its context is open, such as MCP over HTTP."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which requests are answered."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project as it is served: its index, its changes, and its ways in besides the API."""

    live: Live
    feed: Feed
    mcp: Running
    pages: Sequence[BaseRoute] = ()

    def routes(self, turnstile: Turnstile) -> list[BaseRoute]:
        """Return everything that is answered for this project."""

        async def events(request: Request) -> Response:
            return self.feed.response(request)

        async def description(request: Request) -> Response:
            server = request.scope.get("root_path") or "/"
            return JSONResponse(openapi.description(server))

        return [
            # Agents ask most, and routes are tried in turn.
            Route(MCP, _Forwarded(self.mcp), methods=["GET", "POST", "DELETE"]),
            *api.routes(self.live, turnstile),
            Route("/api/events", events),
            Route("/openapi.json", description),
            *self.pages,
        ]


class _Forwarded:
    """An application in the place of an endpoint, which starlette would call with a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@dataclass(slots=True)
class Host:
    """The projects that are open, and how to open one that is not."""

    # The folder of each project by the name in its address; "" for the only one of a server.
    roots: Callable[[], Mapping[str, Path]]
    # Opens a project, or what has taken its place.
    make: Callable[[str], Awaitable[Project]]
    # Whether a project is still the one to serve under its name.
    is_current: Callable[[str, Project], bool]
    # Saves what was opened.
    close: Callable[[], Awaitable[None]]
    # The projects that the caller may know of, besides what its credential allows.
    visible: Callable[[], Collection[str]]
    open: dict[str, Project] = field(default_factory=dict)


class Projects:
    """Leads requests to their projects: "/" for a server's only one, "/p/NAME/" for several."""

    def __init__(self, host: Host, turnstile: Turnstile) -> None:
        self._host = host
        self._turnstile = turnstile
        self._apps: dict[str, Starlette] = {}
        self._opening = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Return the context in which projects are open; they are saved when it ends."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()
        await self._host.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a project that the caller may ask about."""
        name = scope.get("path_params", {}).get("project", "")
        root = self._host.roots().get(name)
        principal = principal_of(scope)
        if root is None or principal is None or not principal.may_enter(root):
            # As if there were none: a token for one project tells nothing about others.
            await _missing()(scope, receive, send)
            return
        app: ASGIApp
        try:
            app = await self._find(name)
            refusal = await _refusal(self._host.open[name].live)
            if refusal is not None:
                app = _explained(refusal, 403)
        except RagdocsError as error:
            app = _explained(error, 503)
        await app(scope, receive, send)

    async def _find(self, name: str) -> Starlette:
        if self._is_open(name):
            return self._apps[name]
        async with self._opening:
            if self._is_open(name):
                return self._apps[name]
            before = self._host.open.get(name)
            project = await self._host.make(name)
            if before is None or before.mcp is not project.mcp:
                assert self._tasks is not None
                await self._tasks.start(_keep_running, project.mcp)
            app = Starlette(
                routes=project.routes(self._turnstile), exception_handlers={Exception: _failed}
            )
            self._host.open[name] = project
            self._apps[name] = app
            return app

    def _is_open(self, name: str) -> bool:
        project = self._host.open.get(name)
        return project is not None and self._host.is_current(name, project)


async def _keep_running(
    app: Running, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with app.run():
        task_status.started()
        await anyio.sleep_forever()


async def _failed(_: Request, error: Exception) -> Response:
    """Answer a request that met a mistake of ours; the log has the rest."""
    message = f"the call failed: {type(error).__name__}"
    return JSONResponse({"error": message, "hint": "See the log of the server"}, 500)


async def _refusal(live: Live) -> RagdocsError | None:
    """Return why the caller may not ask about a project of a team; others have no such rules."""
    if not live.is_shared:
        return None
    return await anyio.to_thread.run_sync(live.refusal)


def _explained(error: RagdocsError, status: int) -> JSONResponse:
    return JSONResponse({"error": error.message, "hint": error.hint}, status)


def _missing() -> JSONResponse:
    return JSONResponse({"error": "there is no such project", "hint": ""}, 404)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything that one HTTP server answers."""

    host: Host
    gate: Gate
    limits: Limits
    turnstile: Turnstile
    # Pages of the server itself, such as the list of its projects, and files for all pages.
    pages: Sequence[BaseRoute] = ()

    def app(self) -> tuple[ASGIApp, Metrics]:
        """Return the application, and the figures it counts."""
        projects = Projects(self.host, self.turnstile)
        metrics = Metrics(lambda: {name: each.live for name, each in self.host.open.items()})

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with projects.run():
                yield

        routes: list[BaseRoute] = [
            Route("/healthz", _health),
            Route("/readyz", self._ready),
            Route("/metrics", partial(self._figures, metrics)),
            Route("/open", self._open),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            Route(METADATA, self._metadata),
            Route(f"{METADATA}/{{path:path}}", self._metadata),
            *self.pages,
            Mount("/p/{project}", projects),
        ]
        if "" in self.host.roots():
            routes.append(_Everything(projects))
        else:
            routes.append(Route("/", self._list))
        app: ASGIApp = Starlette(routes=routes, lifespan=lifespan)
        app = Guard(Limiter(app, self.limits), self.gate)
        return RequestLog(SecurityHeaders(app), metrics), metrics

    async def _visible(self, request: Request) -> list[str]:
        """Return the projects that the caller may ask about."""
        principal = principal_of(request.scope)
        visible = await anyio.to_thread.run_sync(self.host.visible)
        names = []
        for name, root in sorted(self.host.roots().items()):
            if principal is not None and principal.may_enter(root) and name in visible:
                names.append(name)
        return names

    async def _list(self, request: Request) -> Response:
        """List the projects of a server that has several."""
        names = await self._visible(request)
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"projects": names})
        # The names are of letters, digits and hyphens only.
        links = [f'<li><a href="/p/{name}/">{name}</a></li>' for name in names]
        return HTMLResponse(LISTED.format("\n".join(links)))

    async def _figures(self, metrics: Metrics, request: Request) -> Response:
        if len(await self._visible(request)) < len(self.host.roots()):
            message = "the figures are of all projects of this server"
            hint = "Use a token that was made with --all-projects"
            return JSONResponse({"error": message, "hint": hint}, 403)
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    async def _ready(self, _: Request) -> Response:
        waiting = {}
        for name, project in self.host.open.items():
            if not project.live.settled:
                waiting[name] = project.live.progress
        status = 503 if waiting else 200
        return JSONResponse({"ready": not waiting, "waiting": waiting}, status)

    async def _open(self, request: Request) -> Response:
        """Exchange a one-time token for a session."""
        session = self.gate.sessions.redeem(request.query_params.get("token", ""))
        if session is None:
            return HTMLResponse(USED, 403)
        # Not a redirect: a browser that comes from elsewhere would not send the new cookie with it.
        response = HTMLResponse(OPENED)
        response.set_cookie(
            self.gate.cookie,
            session.id,
            path="/",
            secure=self.gate.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _sign_out(self, request: Request) -> Response:
        self.gate.sessions.end(request.cookies.get(self.gate.cookie, ""))
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.gate.cookie, path="/")
        return response

    async def _metadata(self, request: Request) -> Response:
        if self.gate.verifier is None:
            return JSONResponse({"error": "no provider is configured", "hint": ""}, 404)
        address = self.gate.origin(request)
        if request.url.path == f"{METADATA}{MCP}":
            address += MCP
        return JSONResponse(self.gate.verifier.metadata(address))


class _Everything(BaseRoute):
    """The route of a server's only project, which has every path that nothing else has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Take any request."""
        if scope["type"] != "http":
            return Match.NONE, {}
        return Match.FULL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        await self._app(scope, receive, send)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


OPENED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ragdocs</title>
<link rel="icon" href="/static/icon.svg">
<meta http-equiv="refresh" content="0; url=/"></head>
<body><p><a href="/">Open ragdocs</a></p></body></html>
"""
LISTED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Projects · ragdocs</title>
<link rel="icon" href="/static/icon.svg">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/style.css"></head>
<body><main class="sign-in"><h1>Projects</h1>
<ul>
{}
</ul></main></body></html>
"""
USED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ragdocs</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/style.css"></head>
<body><main class="sign-in"><h1>This address was used already</h1>
<p>An address opens the page once, within five minutes. Run <code>ragdocs web</code> again for a
new one.</p></main></body></html>
"""
