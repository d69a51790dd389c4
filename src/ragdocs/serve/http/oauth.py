"""Tokens of a company's identity provider: OAuth 2.1, this server being the resource."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.serve.http.access import LONGEST_NAME, LOOPBACK, Principal, ScopeError

logger = logging.getLogger("ragdocs.http")

READ = "ragdocs:read"
WRITE = "ragdocs:write"
ADMIN = "ragdocs:admin"
# Signatures of a key pair only: a shared secret would let this server make tokens itself.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
DISCOVERY = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
FETCH_SECONDS = 5.0
LARGEST = 1_000_000
# How long the keys of a provider are believed.
KEY_SECONDS = 300.0
# A provider that did not answer is not asked again at once.
RETRY_SECONDS = 10.0
# Clocks of two machines differ a little.
LEEWAY_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Provider:
    """Who issues tokens, and for whom they must be meant."""

    issuer: str
    # A name that the provider was told, and the addresses of this server, which clients ask for.
    audiences: frozenset[str]

    def check(self) -> None:
        """Refuse an address that anybody on the way could answer."""
        parts = urllib.parse.urlsplit(self.issuer)
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
        if parts.scheme != "https" and not is_local:
            raise ConfigError(
                f"the issuer {self.issuer!r} is not an https address", "Give the provider's address"
            )


class ProviderTokens:
    """Checks signature, issuer, audience, time and scope of the provider's tokens."""

    def __init__(
        self,
        provider: Provider,
        *,
        clock: Callable[[], float] = time.monotonic,
        key_seconds: float = KEY_SECONDS,
    ) -> None:
        provider.check()
        self._key_seconds = key_seconds
        self._provider = provider
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: jwt.PyJWKClient | None = None
        # When the provider did not answer.
        self._failed_at = -math.inf

    def principal(self, token: str) -> Principal | None:
        """Return whoever a token stands for, if it is good; raise if that cannot be told now."""
        try:
            # A text that is no such token is not worth a question to the provider.
            jwt.get_unverified_header(token)
            key = self._key_client().get_signing_key_from_jwt(token).key
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._provider.audiences,
                issuer=self._provider.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise self._no_answer(error) from error
        except (jwt.PyJWTError, ValueError) as error:
            # The reason is for whoever runs the server, not for whoever tries tokens.
            logger.info("a token of the provider was refused: %s", type(error).__name__)
            return None
        return _principal(claims)

    def metadata(self, address: str) -> dict[str, object]:
        """Return where a client gets a token for an address of this server."""
        return {
            "resource": address,
            "authorization_servers": [self._provider.issuer],
            # Clients ask for all of these; who needs the scope of an admin asks for it by name.
            "scopes_supported": [READ, WRITE],
            "bearer_methods_supported": ["header"],
            "resource_name": "ragdocs",
        }

    def _key_client(self) -> jwt.PyJWKClient:
        with self._lock:
            if self._keys is None:
                if self._clock() - self._failed_at < RETRY_SECONDS:
                    raise UnavailableError("the identity provider did not answer a moment ago")
                try:
                    address = _key_address(self._provider.issuer)
                except (OSError, ValueError) as error:
                    raise self._no_answer(error) from error
                # Single keys are not kept beside their set: one that the provider has withdrawn
                # would stay good.
                self._keys = jwt.PyJWKClient(
                    address, lifespan=self._key_seconds, timeout=FETCH_SECONDS
                )
            return self._keys

    def _no_answer(self, error: Exception) -> UnavailableError:
        self._failed_at = self._clock()
        return UnavailableError(
            f"the identity provider {self._provider.issuer} did not answer: {type(error).__name__}"
        )


def _principal(claims: Mapping[str, Any]) -> Principal:
    scopes = _scopes(claims)
    if ADMIN in scopes:
        role: Any = "admin"
    elif WRITE in scopes:
        role = "writer"
    elif READ in scopes:
        role = "reader"
    else:
        raise ScopeError(READ)
    subject = str(claims["sub"])
    name = str(claims.get("preferred_username") or claims.get("email") or subject)
    # People may change their name at the provider, so grants know them by the subject.
    key = f"oauth:{subject[:LONGEST_NAME]}"
    return Principal(name=name[:LONGEST_NAME], role=role, key=key, member=key)


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """Return the scopes of a token: providers write them as a text or as a list."""
    scopes = claims.get("scope") or claims.get("scp") or ""
    if isinstance(scopes, str):
        return set(scopes.split())
    if isinstance(scopes, list):
        return set(map(str, scopes))
    return set()


def _key_address(issuer: str) -> str:
    """Ask the provider where its public keys are."""
    for path in DISCOVERY:
        try:
            document = _fetch(f"{issuer.rstrip('/')}{path}")
        except (OSError, ValueError):
            continue
        # Another issuer's document would bring another issuer's keys.
        if document.get("issuer") == issuer and isinstance(document.get("jwks_uri"), str):
            return str(document["jwks_uri"])
    raise ValueError("the provider does not say where its keys are")


def _fetch(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address, timeout=FETCH_SECONDS) as response:  # noqa: S310
        document = json.loads(response.read(LARGEST))
    if not isinstance(document, dict):
        raise ValueError(f"{address} is not an object")  # noqa: TRY004
    return document
