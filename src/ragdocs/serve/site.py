"""One HTTP server: the page, the API and MCP of one project or of all projects of a user."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from ragdocs import caller
from ragdocs.config import Config
from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.project import registry
from ragdocs.project.folders import data_dir
from ragdocs.project.tokens import Tokens
from ragdocs.serve.http.access import LOOPBACK, MCP, Gate, host_names
from ragdocs.serve.http.app import Host, Project, Site
from ragdocs.serve.http.events import Feed, News
from ragdocs.serve.http.limits import Limits, RefusedError, Turnstile
from ragdocs.serve.http.log import Formatter
from ragdocs.serve.http.metrics import Metrics
from ragdocs.serve.http.oauth import Provider, ProviderTokens
from ragdocs.serve.http.sessions import Sessions
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.http import Endpoint
from ragdocs.serve.mcp.reload import Follow, Follower, Reload, open_project
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.source import Source
from ragdocs.serve.surface import call
from ragdocs.system import files, local_socket, signals
from ragdocs.types import Document

__all__ = [
    "Limits",
    "Listening",
    "Opened",
    "Own",
    "Server",
    "SharedProjects",
    "log_as_json",
    "registered",
    "serve_http",
    "until_signalled",
]

DEFAULT_PORT = 7420
# Requests that are still being answered when the server is told to end.
GRACE_SECONDS = 5
# How long the list of a team's projects is good for.
PROJECTS_SECONDS = 5.0
# Callers that may wait to be let in.
BACKLOG = 512
LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a server listens and by which names it is called."""

    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    # Public names, where it stands behind a proxy or has a certificate.
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    # Proxies whose word about the caller's address and scheme is taken.
    proxies: str = ""
    plain: bool = False
    # The identity provider whose tokens are taken, and for whom they must be meant.
    issuer: str = ""
    audience: str = "ragdocs"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.address in LOOPBACK_ADDRESSES

    @property
    def scheme(self) -> str:
        """The scheme in the addresses that callers use."""
        return "https" if self.certificate or (self.proxies and not self.plain) else "http"

    def check(self, tokens: Tokens) -> None:
        """Refuse to be reachable from elsewhere without a lock on the door."""
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("TLS needs --tls-cert and --tls-key together")
        if self.certificate:
            _check_certificate(self.certificate, self.key)
        _check_proxies(self.proxies)
        if self.is_loopback:
            return
        if not self.issuer and not tokens.all():
            raise ConfigError(
                f"{self.address} can be reached from other machines, and there is no token",
                "Make one first: `ragdocs token create NAME`, or give --oauth-issuer",
            )
        if not (self.certificate or self.proxies or self.plain):
            raise ConfigError(
                "tokens would be sent unencrypted",
                "Give --tls-cert and --tls-key, or --forwarded-allow-ips for a proxy that does "
                "TLS; --plain-http if the network itself is private",
            )

    def gate(self, sessions: Sessions, tokens: Tokens) -> Gate:
        """Return what the guard of this server knows."""
        default_port = 443 if self.scheme == "https" else 80
        names = host_names((*LOOPBACK, self.address), self.port, default_port)
        public = frozenset(name.casefold() for name in self.names)
        verifier = None
        if self.issuer:
            audiences = {self.audience}
            for name in public or names:
                address = f"{self.scheme}://{name}"
                audiences |= {address, f"{address}/", f"{address}{MCP}"}
            verifier = ProviderTokens(Provider(self.issuer, frozenset(audiences)))
        return Gate(
            hosts=names | public,
            scheme=self.scheme,
            sessions=sessions,
            tokens=tokens,
            verifier=verifier,
            origins=frozenset(self.origins),
        )


@dataclass(frozen=True, slots=True)
class Own:
    """A project that this server opens itself: its folder, and where its configuration is."""

    root: Path
    source: Source


@asynccontextmanager
async def _turn(turnstile: Turnstile) -> AsyncIterator[None]:
    """Hold a turn during a call of a tool, which is not given up: a write would go on unseen."""
    try:
        async with turnstile.slot():
            yield
    except RefusedError as refused:
        raise UnavailableError(str(refused), "Try again in a second") from refused


class _Entrance:
    """What stays of a project when its configuration changes: its clients and open pages."""

    def __init__(self, live: Live, folder: Path, turnstile: Turnstile) -> None:
        self.server = ToolServer(live, folder, partial(_turn, turnstile))
        self.feed = Feed()
        self.follower: Follower
        self.endpoint: Endpoint

    async def begin(self) -> None:
        """Open the project that the server has now, and tell open pages what changes in it."""
        live = self.server.live
        assert live is not None
        live.listeners.append(_teller(self.feed))
        live.start()


class Opened:
    """The projects that a server may open, by their names in addresses."""

    def __init__(self, projects: Mapping[str, Own], limits: Limits) -> None:
        self._own = projects
        self._limits = limits
        # One for the API and MCP together.
        self.turnstile = Turnstile(limits)
        # Projects that somebody else keeps live, such as that of a shared server.
        self._lives: dict[str, Callable[[], Live | None]] = {}
        self._entrances: dict[str, _Entrance] = {}

    def follow(self, name: str, live: Callable[[], Live | None]) -> None:
        """Serve a project that is live already, and whatever takes its place."""
        self._lives[name] = live

    def host(self) -> Host:
        """Return the projects as the application opens them."""
        return Host(
            roots=self._roots,
            make=self._make,
            is_current=self._is_current,
            close=self._close,
            visible=self._visible,
        )

    def _roots(self) -> dict[str, Path]:
        roots = {name: own.root for name, own in self._own.items()}
        for name, find_live in self._lives.items():
            live = find_live()
            if live is not None:
                roots[name] = live.config.root
        return roots

    def _visible(self) -> Collection[str]:
        if isinstance(self._own, SharedProjects):
            return self._own.visible()
        return self._roots()

    def _is_current(self, name: str, project: Project) -> bool:
        if name in self._lives:
            return self._lives[name]() is project.live
        return self._entrances[name].server.live is project.live

    async def _make(self, name: str) -> Project:
        """Open a project, or return what has taken its place since its configuration changed."""
        entrance = self._entrances.get(name)
        if entrance is None:
            entrance = await self._enter(name)
            await entrance.begin()
            self._entrances[name] = entrance
        elif name in self._lives:
            await entrance.follower.look()
        from ragdocs.serve.web.pages import routes

        live = entrance.server.live
        assert live is not None
        return Project(live=live, feed=entrance.feed, mcp=entrance.endpoint, pages=routes(live))

    async def _enter(self, name: str) -> _Entrance:
        if name in self._lives:
            find_live = self._lives[name]
            live = find_live()
            if live is None:
                raise UnavailableError("the project cannot be served now")
            entrance = _Entrance(live, live.config.root, self.turnstile)
            entrance.follower = Follow(entrance.server, find_live, entrance.begin)
        else:
            source = self._own[name].source
            states = source.states()
            project = await anyio.to_thread.run_sync(open_project, source)
            if not isinstance(project, Live):
                raise project
            entrance = _Entrance(project, source.folder, self.turnstile)
            entrance.follower = Reload(entrance.server, source, states, entrance.begin)
        entrance.endpoint = Endpoint(entrance.server, entrance.follower, self._limits.body_bytes)
        return entrance

    async def _close(self) -> None:
        for name, entrance in self._entrances.items():
            if name in self._own and entrance.server.live is not None:
                await anyio.to_thread.run_sync(entrance.server.live.stop)


def registered(settings: Sequence[str]) -> dict[str, Own]:
    """Return the projects of this user by their names in addresses, to be opened when asked for."""
    own: dict[str, Own] = {}
    projects, _ = registry.projects()
    for project in projects:
        name = base = _address_name(project.name)
        number = 2
        while name in own:
            name = f"{base}-{number}"
            number += 1
        own[name] = Own(project.path, Source(str(project.path), settings))
    return own


class SharedProjects(Mapping[str, Own]):
    """The projects of a team database by their names in addresses, read anew every few seconds.

    A project needs no clone on the machine of the server: its folder is empty.
    """

    def __init__(self, config: Config, settings: Sequence[str]) -> None:
        from ragdocs.team import Team

        self._projects = Team(config).projects
        self._settings = settings
        self._read_at = -PROJECTS_SECONDS
        self._own: dict[str, Own] = {}
        self._identities: dict[str, str] = {}

    def __getitem__(self, name: str) -> Own:
        """Return a project by its name."""
        return self._current()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    def visible(self) -> set[str]:
        """Return the names of the projects that the caller may read."""
        readable = {project.identity for project in self._projects.all()}
        names = set()
        for name in self._current():
            if self._identities[name] in readable:
                names.add(name)
        return names

    def _current(self) -> dict[str, Own]:
        now = time.monotonic()
        if now - self._read_at >= PROJECTS_SECONDS:
            self._own = self._read()
            self._read_at = now
        return self._own

    def _read(self) -> dict[str, Own]:
        own: dict[str, Own] = {}
        with caller.maintaining():
            projects = self._projects.all()
        for project in projects:
            name = _address_name(project.name)
            if name in own:
                name = _address_name(project.identity)
            self._identities[name] = project.identity
            own[name] = self._shared(project.identity, name)
        return own

    def _shared(self, identity: str, name: str) -> Own:
        root = data_dir() / "team" / name
        files.make_directories(root)
        settings = {"team.projects": (f"{root}={identity}",), "memory.enabled": True}
        return Own(root, Source(str(root), self._settings, settings))


def _address_name(name: str) -> str:
    """Return a name that an address can hold as it is."""
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "project"


def _teller(feed: Feed) -> Callable[[str, Sequence[Document], Sequence[str]], None]:
    """Return a listener that turns what was indexed into news."""

    def tell(lane: str, documents: Sequence[Document], gone: Sequence[str]) -> None:
        news = []
        for document in documents:
            news.append(News(lane, document.path, document.title, document.kind, "written"))
        for path in gone:
            news.append(News(lane, path, "", "", "removed"))
        feed.add(news)

    return tell


class Server:
    """A site that listens; the shared server of a project runs one in its own loop."""

    def __init__(self, opened: Opened, listening: Listening, limits: Limits | None = None) -> None:
        self.sessions = Sessions()
        self._opened = opened
        self._limits = limits or Limits()
        tokens = Tokens()
        listening.check(tokens)
        self._socket = _bound(listening)
        port = self._socket.getsockname()[1]
        self.listening = replace(listening, port=port)
        self._tokens = tokens
        self._listener: Any = None
        self._metrics: Metrics | None = None

    @property
    def address(self) -> str:
        """The address that people and clients use: the public name, if it has one."""
        if self.listening.names:
            return f"{self.listening.scheme}://{self.listening.names[0]}"
        host = self.listening.address
        if host in ("0.0.0.0", "::"):  # noqa: S104
            host = "127.0.0.1"
        if ":" in host:
            host = f"[{host}]"
        # Where a proxy does TLS, this port itself has none.
        scheme = "https" if self.listening.certificate else "http"
        return f"{scheme}://{host}:{self.listening.port}"

    @property
    def is_used(self) -> bool:
        """Whether somebody is connected, or was invited and may still come."""
        return (self._metrics is not None and self._metrics.is_busy) or self.sessions.is_awaited

    def invitation(self, role: str = "writer") -> str:
        """Return an address that opens the page once."""
        return f"{self.address}/open?token={self.sessions.invite(role)}"

    async def run(self) -> None:
        """Serve until a signal, or until it is cancelled."""
        import uvicorn

        from ragdocs.serve.web.pages import server_routes

        site = Site(
            host=self._opened.host(),
            gate=self.listening.gate(self.sessions, self._tokens),
            limits=self._limits,
            turnstile=self._opened.turnstile,
            pages=server_routes(),
        )
        app, metrics = site.app()
        self._metrics = metrics
        call.OBSERVERS.append(metrics.observe)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(self.listening.proxies),
            forwarded_allow_ips=self.listening.proxies or None,
            ssl_certfile=self.listening.certificate or None,
            ssl_keyfile=self.listening.key or None,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ws="none",
        )
        # Signals are for whoever runs this: uvicorn would end the process with the signal itself.
        self._listener = uvicorn.Server(config)
        self._listener.capture_signals = nullcontext
        try:
            await self._listener.serve(sockets=[self._socket])
        finally:
            call.OBSERVERS.remove(metrics.observe)

    def stop(self) -> None:
        """End when the requests that are being answered are done."""
        if self._listener is not None:
            self._listener.should_exit = True


def _check_certificate(certificate: str, key: str) -> None:
    """Refuse a certificate that cannot be used, before anything is opened."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Nobody is there to type the password of a key.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"{certificate} and {key} cannot be used for TLS: {reason}",
            "Give a certificate and its key as PEM files, the key without a password",
        ) from error


def _check_proxies(proxies: str) -> None:
    """Refuse what is no address: nobody would be trusted, without a word."""
    for proxy in proxies.split(","):
        name = proxy.strip()
        if name in ("", "*"):
            continue
        try:
            ipaddress.ip_network(name)
        except ValueError as error:
            raise ConfigError(
                f"{name[:80]!r} is not the address of a proxy",
                "Give --forwarded-allow-ips addresses or networks, such as 10.0.0.2,10.1.0.0/16",
            ) from error


def _bound(listening: Listening) -> local_socket.Connection:
    """Return a socket at the address, before anything is opened."""
    try:
        return local_socket.listen(listening.address, listening.port, BACKLOG)
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on {listening.address}:{listening.port}: {error.strerror}",
            "Choose another port with --port, or 0 for any that is free",
        ) from error


def log_as_json() -> None:
    """Write the log of this process as lines of JSON."""
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[output], force=True)
    for noisy in ("uvicorn", "mcp", "faiss"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


async def until_signalled(server: Server) -> None:
    """Serve until a signal says that it is enough."""
    with signals.called_at_end(asyncio.get_running_loop(), server.stop):
        await server.run()


def serve_http(opened: Opened, listening: Listening, limits: Limits) -> None:
    """Serve until a signal."""
    server = Server(opened, listening, limits)
    listens_on = ""
    if listening.names:
        listens_on = f" on {server.listening.address}:{server.listening.port}"
    sys.stderr.write(f"ragdocs serves {server.address}{listens_on}\n")
    if listening.is_loopback:
        sys.stderr.write(f"open the page once with {server.invitation()}\n")
    sys.stderr.flush()
    anyio.run(until_signalled, server)
    sys.stderr.flush()
    # Threads that still wait for events or models do not keep the process.
    os._exit(0)
