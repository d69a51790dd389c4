"""Who gets in: hosts, origins, tokens, sessions, roles, and what strangers see."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.http.site import make_token, serving
from tests.serve.windows import until

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.http.conftest import World
    from tests.tally import Tally

SEARCH = "/api/search_docs?query=tokens"
FORGED = "W3 requests forged by other sites"
CLOSED = ("/", SEARCH, "/openapi.json", "/metrics", "/mcp", "/api/events", "/p/project/")


@pytest.mark.parametrize("path", CLOSED)
def test_a_stranger_gets_nothing_but_the_way_in(world: World, path: str, tally: Tally) -> None:
    answer = world.site.ask(path)
    tally("W4 strangers, wrong and foreign tokens", tried=1, let_in=answer.status < 400)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "ragdocs token create" in answer.json["hint"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_monitor_needs_no_token(world: World, path: str) -> None:
    assert world.site.ask(path).status in (200, 503)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.nip.io", ""])
def test_a_name_that_is_not_ours_is_refused(world: World, host: str, tally: Tally) -> None:
    for path in (SEARCH, "/healthz", "/mcp", "/open?token=x"):
        status = world.site.ask(path, token=world.writer, host=host).status
        tally("W2 DNS rebinding", tried=1, answered=status < 400)
        assert status == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_site_is_refused(world: World, origin: str, tally: Tally) -> None:
    cookie = _session(world)
    for credential in ({"token": world.writer}, {"cookie": cookie}):
        for path, body in ((SEARCH, None), ("/api/search_docs", {"query": "tokens"})):
            status = world.site.ask(path, body, origin=origin, **credential).status
            tally(FORGED, tried=1, answered=status < 400)
            assert status == 403


def test_no_other_origin_may_read_answers(world: World) -> None:
    answer = world.site.ask(SEARCH, method="OPTIONS", token=world.writer)
    assert "access-control-allow-origin" not in answer.headers


def _session(world: World) -> str:
    """Return the cookie of the one session that the printed address opens."""
    if not world.cookies:
        world.cookies.append(world.site.sign_in())
    return world.cookies[0]


def test_an_address_opens_one_session_and_never_a_second(world: World) -> None:
    cookie = _session(world)
    path = world.site.invitation.partition(world.site.host)[2]
    assert world.site.ask(path).status == 403
    assert world.site.ask(SEARCH, cookie=cookie).status == 200


def test_a_cookie_that_somebody_planted_is_not_taken_over(project: Project) -> None:
    project.write("config.toml", "")
    with serving(project.root) as site:
        name = "ragdocs_planted"
        answer = site.ask(site.invitation.partition(site.host)[2], cookie=f"{name}=chosen")
        cookie = answer.headers["set-cookie"]
        assert "chosen" not in cookie
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))


def test_a_session_cannot_write_without_the_secret_of_its_page(world: World, tally: Tally) -> None:
    cookie = _session(world)
    body = {"filename": "forged.md", "content": "forged", "tags": []}
    for secret in ({}, {"x_ragdocs_csrf": "guess"}, {"x_ragdocs_csrf": ""}):
        refused = world.site.ask("/api/create_memory", body, cookie=cookie, **secret)
        tally(FORGED, tried=1, answered=refused.status < 400)
        assert refused.status == 403
    assert not (world.project.root / ".memories/forged.md").exists()


def test_a_reader_reads_and_cannot_write(world: World) -> None:
    assert world.site.ask(SEARCH, token=world.reader).status == 200
    body = {"filename": "no.md", "content": "no", "tags": []}
    refused = world.site.ask("/api/create_memory", body, token=world.reader)
    assert refused.status == 403
    assert "reader" in refused.json["error"]
    assert not (world.project.root / ".memories/no.md").exists()


@pytest.mark.parametrize(
    "token", ["", "x", "ragdocs_00000000_" + "A" * 43, "\x7f", "Bearer", "a" * 5000]
)
def test_a_wrong_token_is_refused(world: World, token: str, tally: Tally) -> None:
    answer = world.site.ask(SEARCH, authorization=f"Bearer {token}")
    tally("W4 strangers, wrong and foreign tokens", tried=1, let_in=answer.status < 400)
    assert answer.status == 401


def test_a_token_ends_when_it_is_revoked_or_expires(project: Project) -> None:
    from datetime import UTC, datetime, timedelta

    from ragdocs.project.tokens import Tokens

    project.write("config.toml", "")
    expired_yesterday = datetime.now(UTC) - timedelta(days=2)
    _, old = Tokens().create("old", "reader", "*", 1, expired_yesterday)
    token = make_token(project.root)
    with serving(project.root) as site:
        assert site.ask(SEARCH, token=token).status == 200
        assert site.ask(SEARCH, token=old).status == 401
        Tokens().revoke("test")
        assert site.ask(SEARCH, token=token).status == 401


def test_a_token_of_another_project_is_as_good_as_none(project: Project) -> None:
    project.write("config.toml", "")
    other = project.root.parent / "other"
    other.mkdir()
    (other / "config.toml").write_text("")
    token = make_token(other)
    everywhere = make_token(other, "--all-projects")
    with serving(project.root) as site:
        assert site.ask(SEARCH, token=token).status == 404
        assert site.ask(SEARCH, token=everywhere).status == 200


def test_tokens_are_stored_as_digests_for_their_owner_only(project: Project) -> None:
    from ragdocs.project.tokens import Tokens

    project.write("config.toml", "")
    token = make_token(project.root)
    path = Tokens().path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert token not in text
    assert token.split("_", 2)[2] not in text


def test_every_answer_tells_a_browser_to_be_careful(world: World) -> None:
    for path in ("/healthz", SEARCH, "/nothing"):
        headers = world.site.ask(path, token=world.reader).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_the_log_has_no_token_and_no_query(world: World) -> None:
    world.site.ask("/api/search_docs?query=verysecretquestion", token=world.writer)
    world.site.ask("/open?token=verysecrettoken")
    # The line of a request is written after its answer was sent.
    until(lambda: any('"path": "/open"' in line for line in world.site.log))
    log = "".join(world.site.log)
    for secret in ("verysecret", world.writer, world.site.invitation.rpartition("=")[2]):
        assert secret not in log


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py",
        "/static/%2e%2e/pages.py",
        "/static/..%2f..%2fconfig.py",
        "//evil.example/",
        "/p/..%2f..%2fetc/",
        "/p/%00/",
        "/static/",
    ],
)
def test_paths_lead_nowhere_else(world: World, path: str, tally: Tally) -> None:
    answer = world.site.ask(path, token=world.reader)
    tally("W5 traversal and open redirects", tried=1, led_elsewhere=answer.status < 400)
    assert answer.status in (400, 404)
    assert "location" not in answer.headers


def test_another_local_user_cannot_read_the_address_of_the_page(project: Project) -> None:
    from ragdocs.serve.cli.network import open_browser

    opened: list[str] = []
    command = project.root / "browser"
    command.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {project.root}/opened\n')
    command.chmod(0o700)
    os.environ["BROWSER"] = str(command)
    try:
        open_browser("http://127.0.0.1:1/open?token=secret")
    finally:
        del os.environ["BROWSER"]
    opened.append((project.root / "opened").read_text())
    assert "secret" not in opened[0]
    page = opened[0].removeprefix("file://")
    assert stat.S_IMODE(Path(page).parent.stat().st_mode) == 0o700
