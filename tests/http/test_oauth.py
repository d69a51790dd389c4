"""Tokens of an identity provider: authlib's authorization server, running on this machine."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from joserfc.jwk import RSAKey
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from tests.http.provider import SECRET, Provider, Registration, providing
from tests.http.site import Site, serving
from tests.serve.conftest import Session

from ragdocs.errors import UnavailableError
from ragdocs.serve.http.oauth import Provider as Trusted
from ragdocs.serve.http.oauth import ProviderTokens

if TYPE_CHECKING:
    from tests.conftest import Project

SEARCH = "/api/search_docs?query=tokens"
METADATA = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True)
class Company:
    """A server, the provider that it trusts, and one that claims to be that provider."""

    site: Site
    provider: Provider
    impostor: Provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as running:
        yield running


@pytest.fixture
def company(project: Project, provider: Provider) -> Iterator[Company]:
    project.write("config.toml", "[memory]\nenabled = true\n")
    with (
        providing(claimed=provider.issuer) as impostor,
        serving(project.root, "--oauth-issuer", provider.issuer) as site,
    ):
        clients = {
            "reader": Registration("reader"),
            "elsewhere": Registration("elsewhere", audience="https://other.example"),
            "prefix": Registration("prefix", audience=f"http://{site.host}.evil.example/mcp"),
            "stranger": Registration("stranger", issuer="https://evil.example"),
            "expired": Registration("expired", lifetime=-3600),
            "by-address": Registration("by-address", audience=f"http://{site.host}/mcp"),
        }
        provider.clients = clients
        impostor.clients = clients
        yield Company(site, provider, impostor)


def test_a_stranger_learns_where_tokens_come_from(company: Company) -> None:
    site = company.site
    for path, suffix in ((SEARCH, ""), ("/mcp", "/mcp")):
        refused = site.ask(path)
        assert refused.status == 401
        challenge = refused.headers["www-authenticate"]
        assert challenge == (
            f'Bearer realm="ragdocs", resource_metadata="http://{site.host}{METADATA}{suffix}"'
        )
        document = site.ask(f"{METADATA}{suffix}").json
        assert document["authorization_servers"] == [company.provider.issuer]
        # Clients compare it with the address that they were given.
        assert document["resource"] == f"http://{site.host}{suffix}"


def test_scopes_are_roles(company: Company) -> None:
    site = company.site
    body = {"filename": "o.md", "content": "x", "tags": []}
    reader = company.provider.token()
    assert site.ask(SEARCH, token=reader).status == 200
    assert site.ask("/api/create_memory", body, token=reader).status == 403
    writer = company.provider.token(scope="openid ragdocs:write")
    assert site.ask("/api/create_memory", body, token=writer).status == 200


def test_a_token_for_the_address_of_the_server_is_for_it(company: Company) -> None:
    token = company.provider.token("by-address")
    assert company.site.ask(SEARCH, token=token).status == 200


def test_tokens_that_are_not_for_us_are_refused(company: Company) -> None:
    provider = company.provider
    good = provider.token()
    assert company.site.ask(SEARCH, token=good).status == 200
    tokens = {
        "another audience": provider.token("elsewhere"),
        "an audience that begins like ours": provider.token("prefix"),
        "another issuer": provider.token("stranger"),
        "expired": provider.token("expired"),
        "another key": company.impostor.token(),
        "another signature": f"{good[:-8]}AAAAAAAA",
        "no signature": _unsigned(good),
        "no token": "a.b.c",
    }
    for why, token in tokens.items():
        refused = company.site.ask(SEARCH, token=token)
        assert refused.status == 401, why
        assert 'error="invalid_token"' in refused.headers["www-authenticate"], why
        assert "resource_metadata=" in refused.headers["www-authenticate"], why


def test_a_token_without_a_scope_of_ours_says_which_is_needed(company: Company) -> None:
    refused = company.site.ask(SEARCH, token=company.provider.token(scope="openid"))
    assert refused.status == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="ragdocs:read"' in challenge


def _unsigned(token: str) -> str:
    _, claims, _ = token.split(".")
    header = base64.urlsafe_b64encode(b'{"alg":"none","kid":"first"}').decode().rstrip("=")
    return f"{header}.{claims}."


class Storage:
    """Where a client keeps its token."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        del client_info


def test_an_mcp_client_finds_the_provider_and_gets_in_by_itself(company: Company) -> None:
    address = f"http://{company.site.host}/mcp"
    storage = Storage()
    credentials = ClientCredentialsOAuthProvider(
        address, storage, "reader", SECRET, issuer=company.provider.issuer
    )
    http = httpx2.AsyncClient(auth=credentials)
    client: Any = Client(streamable_http_client(address, http_client=http))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(http),
        portal.wrap_async_context_manager(client) as entered,
    ):
        session = Session(portal, entered)
        assert session.call("index_status")["lanes"]
    assert storage.tokens is not None


def test_a_key_that_the_provider_withdrew_is_good_no_longer_than_its_set(
    provider: Provider,
) -> None:
    provider.clients = {"reader": Registration("reader")}
    trusted = Trusted(provider.issuer, frozenset({"ragdocs"}))
    verifier = ProviderTokens(trusted, key_seconds=0.001)
    token = provider.token()
    assert verifier.principal(token) is not None
    before, provider.key = provider.key, RSAKey.generate_key(2048, {"kid": "second"})
    try:
        assert verifier.principal(token) is None
    finally:
        provider.key = before


def test_a_provider_that_is_down_is_not_asked_for_every_token(provider: Provider) -> None:
    provider.clients = {"reader": Registration("reader")}
    token = provider.token()
    seconds = [0.0]
    # Nobody listens on the port of a provider that has ended.
    with providing() as gone:
        issuer = gone.issuer
    trusted = Trusted(issuer, frozenset({"ragdocs"}))
    verifier = ProviderTokens(trusted, clock=lambda: seconds[0])
    with pytest.raises(UnavailableError, match="did not answer: "):
        verifier.principal(token)
    with pytest.raises(UnavailableError, match="a moment ago"):
        verifier.principal(token)
    # What is no token at all needs no provider.
    assert verifier.principal("nonsense") is None
    seconds[0] = 60.0
    with pytest.raises(UnavailableError, match="did not answer: "):
        verifier.principal(token)
