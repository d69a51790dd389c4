"""Requests that must not be served: hostile hosts, origins and credentials on every route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from starlette.routing import Mount, Route
from tests.conftest import Project
from tests.http.site import Site, make_token, serving

from ragdocs.project.tokens import Tokens
from ragdocs.serve.http.api import verbs
from ragdocs.serve.live import Live
from ragdocs.serve.web.pages import routes as page_routes

if TYPE_CHECKING:
    from tests.tally import Tally

# Besides verbs and pages; the last three are for everybody.
OTHERS = (
    ("GET", "/openapi.json"),
    ("GET", "/api/events"),
    ("GET", "/metrics"),
    ("GET", "/mcp"),
    ("POST", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/sign-out"),
    ("GET", "/p/project/"),
    ("GET", "/nothing"),
)
PUBLIC = (
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/open?token=x"),
    ("GET", "/static/app.js"),
    ("GET", "/.well-known/oauth-protected-resource"),
)
# Answers that stream for as long as somebody listens.
STREAMS = ("/api/events", "/mcp")
REFUSED_HOST = 421
FORBIDDEN = 403
UNAUTHORIZED = 401
MISSING = 404


@dataclass(frozen=True)
class Target:
    """A server with a memory, everything that it answers, and good credentials for it."""

    site: Site
    project: Project
    closed: list[tuple[str, str]]
    writer: str
    cookie: str
    # A token of another project of the same user, and where all tokens are.
    other: str
    tokens: Tokens

    def status(self, method: str, path: str, **headers: str) -> int:
        """Send a request; every one that changes something has a body."""
        body = b"{}" if method == "POST" else None
        return self.site.ask(path, body, method=method, **headers).status

    def unchanged(self) -> bool:
        folder = self.project.root / ".memories"
        return [path.name for path in folder.glob("*.md")] == ["kept.md"]


def every_route(project: Project) -> list[tuple[str, str]]:
    """Return method and path of everything that needs a credential, read off the application."""
    found = list(OTHERS)
    for verb in verbs():
        if verb.effect == "read":
            found.append(("GET", f"/api/{verb.name}"))
        found.append(("POST", f"/api/{verb.name}"))
    for route in page_routes(Live(project.config())):
        assert isinstance(route, Route | Mount)
        path = re.sub(r"\{[^}]*\}", "kept.md", route.path)
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            found.append((method, path or "/"))
    return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("http")
    for name in ("project", "other"):
        (folder / name).mkdir()
        (folder / name / "config.toml").write_text("[memory]\nenabled = true\n")
    project = Project(folder / "project")
    project.memory("kept.md", "---\ntype: fact\n---\nStays.\n")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("CACHE", "STATE", "DATA", "CONFIG"):
            patch.setenv(f"XDG_{variable}_HOME", str(folder / variable.casefold()))
        writer = make_token(project.root, "--role", "writer")
        other = make_token(folder / "other", "--role", "writer")
        tokens = Tokens()
        closed = every_route(project)
        with serving(project.root, "--requests-a-second", "100000") as site:
            # The server has its own copy by now, and the tests have theirs.
            patch.undo()
            yield Target(site, project, closed, writer, site.sign_in(), other, tokens)


HOSTS = (
    "evil.example",
    "evil.example:80",
    "127.0.0.1.nip.io",
    "localhost.evil.example",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:1",
    "0.0.0.0",
    "",
)
ORIGINS = (
    "https://evil.example",
    "http://evil.example",
    "null",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "file://",
    "chrome-extension://abcdef",
)


def test_no_route_is_served_under_a_name_that_is_not_ours(target: Target, tally: Tally) -> None:
    served = []
    for method, path in (*target.closed, *PUBLIC):
        for host in HOSTS:
            status = target.status(method, path, host=host, token=target.writer)
            is_served = status != REFUSED_HOST
            if is_served:
                served.append((method, path, host, status))
            tally("S8 hostile Host × every route", requests=1, wrongly_served=is_served)
    assert not served
    assert target.unchanged()


def test_no_route_is_served_to_a_page_of_another_site(target: Target, tally: Tally) -> None:
    served = []
    for method, path in (*target.closed, *PUBLIC):
        for origin in ORIGINS:
            for credential in ({"token": target.writer}, {"cookie": target.cookie}):
                status = target.status(method, path, origin=origin, **credential)
                is_served = status != FORBIDDEN
                if is_served:
                    served.append((method, path, origin, status))
                tally("S8 hostile Origin × every route", requests=1, wrongly_served=is_served)
    assert not served
    assert target.unchanged()


def bad_credentials(target: Target) -> dict[str, dict[str, str]]:
    """Return the headers of callers who must not get in."""
    now = datetime.now(UTC)
    root = str(target.project.root)
    _, expired = target.tokens.create("old", "writer", root, 1, now - timedelta(days=2))
    _, revoked = target.tokens.create("gone", "writer", root, 1, now)
    target.tokens.revoke("gone")
    good = target.writer
    name, _, session = target.cookie.partition("=")
    return {
        "none": {},
        "an empty one": {"authorization": "Bearer "},
        "another scheme": {"authorization": f"Basic {good}"},
        "no scheme": {"authorization": good},
        "a part": {"token": good[:-1]},
        "more": {"token": f"{good}A"},
        "other letters": {"token": good.swapcase()},
        "only its number": {"token": good.rpartition("_")[0]},
        "expired": {"token": expired},
        "revoked": {"token": revoked},
        "unsigned": {"token": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."},
        "as a cookie": {"cookie": f"{name}={good}"},
        "a session as a token": {"token": session},
        "a part of a session": {"cookie": f"{name}={session[:-1]}"},
        "a session of another server": {"cookie": f"ragdocs_00000000={session}"},
        "not of this alphabet": {"authorization": "Bearer \xff\xfe"},
    }


def test_no_route_is_served_for_a_bad_credential(target: Target, tally: Tally) -> None:
    served = []
    for why, headers in bad_credentials(target).items():
        for method, path in target.closed:
            status = target.status(method, path, **headers)
            is_served = status != UNAUTHORIZED
            if is_served:
                served.append((method, path, why, status))
            tally("S8 bad credentials × every route", requests=1, wrongly_served=is_served)
    assert not served
    assert target.unchanged()


def test_nothing_of_a_project_is_served_for_a_token_of_another(
    target: Target, tally: Tally
) -> None:
    served = []
    for method, path in target.closed:
        status = target.status(method, path, token=target.other)
        # Signing out ends the session of the caller, and a token has none.
        is_served = status not in (MISSING, FORBIDDEN) and path != "/sign-out"
        if is_served:
            served.append((method, path, status))
        tally("S8 token of another project × every route", requests=1, wrongly_served=is_served)
    assert not served
    assert target.unchanged()


def test_nothing_is_changed_by_a_session_without_the_secret_of_its_page(
    target: Target, tally: Tally
) -> None:
    served = []
    for method, path in target.closed:
        if method in ("GET", "HEAD"):
            continue
        for guess in ("", "guess", target.cookie.partition("=")[2]):
            status = target.status(method, path, cookie=target.cookie, x_ragdocs_csrf=guess)
            is_served = status != FORBIDDEN
            if is_served:
                served.append((method, path, guess, status))
            tally("S8 forged form × every writing route", requests=1, wrongly_served=is_served)
    assert not served
    assert target.unchanged()


def test_the_same_routes_answer_whoever_may_ask(target: Target) -> None:
    refused = []
    for method, path in (*target.closed, *PUBLIC):
        if method != "GET" or path in STREAMS:
            continue
        status = target.status(method, path, token=target.writer)
        if status in (UNAUTHORIZED, REFUSED_HOST) or status >= 500:
            refused.append((path, status))
    # A verb whose lane is off says so with 503.
    assert {path for path, status in refused if status != 503} == set()
    assert len(refused) < len(target.closed) / 4
