"""A company's identity provider: authlib's authorization server, on a port of this machine."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, OAuth2Request
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc.jwk import KeySet, RSAKey

SECRET = "hush"
SCOPES = ("ragdocs:read", "ragdocs:write", "openid")


@dataclass(frozen=True)
class Registration(ClientMixin):  # type: ignore[misc]
    """A client that the provider knows, and what is odd about the tokens it gets."""

    name: str
    audience: str = "ragdocs"
    lifetime: int = 60
    # Claimed instead of the provider's own.
    issuer: str = ""

    def get_client_id(self) -> str:
        return self.name

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic" and endpoint == "token"

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_grant_type(self, grant_type: str) -> bool:
        return bool(grant_type == ClientCredentialsGrant.GRANT_TYPE)


class Tokens(JWTBearerTokenGenerator):  # type: ignore[misc]
    """Signs access tokens as the profile for JWTs says."""

    def __init__(self, issuer: str, keys: KeySet) -> None:
        super().__init__(issuer, expires_generator=lambda client, _: client.lifetime)
        self._keys = keys

    def get_jwks(self) -> KeySet:
        return self._keys

    def get_audiences(self, client: Registration, user: object, scope: str) -> str:
        del user, scope
        return client.audience

    def get_extra_claims(self, client: Registration, *_: object) -> dict[str, str]:
        return {"iss": client.issuer} if client.issuer else {}


class Provider(AuthorizationServer):  # type: ignore[misc]
    """Issues tokens for the credentials of clients, and publishes its metadata and keys."""

    def __init__(self, issuer: str) -> None:
        super().__init__(scopes_supported=SCOPES)
        self.issuer = issuer
        self.clients: dict[str, Registration] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.register_grant(ClientCredentialsGrant)
        self.register_token_generator("default", Tokens(issuer, KeySet([self.key])))

    def documents(self) -> dict[str, Any]:
        metadata = AuthorizationServerMetadata(
            issuer=self.issuer,
            authorization_endpoint=f"{self.issuer}/authorize",
            token_endpoint=f"{self.issuer}/token",
            jwks_uri=f"{self.issuer}/keys",
            response_types_supported=["code"],
            grant_types_supported=[ClientCredentialsGrant.GRANT_TYPE],
            token_endpoint_auth_methods_supported=["client_secret_basic"],
            scopes_supported=list(SCOPES),
        )
        keys = {"keys": [self.key.as_dict(private=False)]}
        return {"/.well-known/oauth-authorization-server": metadata, "/keys": keys}

    def query_client(self, client_id: str) -> Registration | None:
        return self.clients.get(client_id)

    def save_token(self, token: object, request: object) -> None:
        """Keep nothing: a token says everything itself."""

    def send_signal(self, name: str, *_: object, **__: object) -> None:
        """Tell nobody."""

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def handle_response(self, status: int, body: object, headers: object) -> tuple[int, object]:
        del headers
        return status, body

    def token(self, client: str = "reader", scope: str = "ragdocs:read") -> str:
        """Get a token as a client does: with its credentials, from the token endpoint."""
        form = {"grant_type": ClientCredentialsGrant.GRANT_TYPE, "scope": scope}
        request = urllib.request.Request(
            f"{self.issuer}/token", urllib.parse.urlencode(form).encode()
        )
        credentials = base64.b64encode(f"{client}:{SECRET}".encode()).decode()
        request.add_header("authorization", f"Basic {credentials}")
        with urllib.request.urlopen(request, timeout=30) as response:
            return str(json.load(response)["access_token"])


@contextlib.contextmanager
def providing(claimed: str = "") -> Iterator[Provider]:
    """Run a provider; one that claims to be another one says so in its tokens."""

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = provider.documents().get(self.path)
            self._answer(200 if document else 404, document or {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = dict(urllib.parse.parse_qsl(body))
            request = OAuth2Request("POST", f"https://127.0.0.1{self.path}", headers=self.headers)
            request.payload = BasicOAuth2Payload(form)
            status, answer = provider.create_token_response(request)
            self._answer(status, answer)

        def _answer(self, status: int, document: object) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}")
        if claimed:
            provider.register_token_generator("default", Tokens(claimed, KeySet([provider.key])))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield provider
        finally:
            server.shutdown()
