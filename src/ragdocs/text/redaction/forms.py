"""Secrets that their own form shows: tokens of issuers, logins, private keys."""

from __future__ import annotations

from collections.abc import Iterator

from ragdocs.system.patterns import later
from ragdocs.text.redaction.look import (
    SIGHT,
    is_chosen,
    is_fake,
    is_random,
    is_reference,
    is_secret,
    is_token,
)
from ragdocs.text.redaction.rules import any_format, format_name
from ragdocs.text.redaction.spans import ISSUED, LOGIN, Span

_ADDRESS = later(
    r"://[^\s/@:\"'`<>\\]{0,200}+:(?P<value>[^\s/\"'`<>\\]{3,200})@(?P<host>[\w.-]{0,80}+)"
)
_ADDRESS_TOKEN = later(r"://(?P<value>[\w.~%-]{16,300}+)(?::x-oauth-basic)?@")
# How commands and programs take a user and a password.
_LOGINS = (
    later(
        r"-(?<![\w-]-)(?:u|-(?:proxy-)?user)[ =]{0,2}[\"']?[^\s\"':/]{0,100}+[\"']?"
        r":[\"']?(?P<value>[^\s\"'`]{3,200}+)"
    ),
    later(r"login[ \t]{1,9}\S{1,80}+\s{1,9}password[ \t]{1,9}(?P<value>\S{3,200}+)"),
    later(
        r"[Ii](?:dentified|DENTIFIED)[ \t]{1,4}"
        r"(?:(?i:with)[ \t]{1,4}\w{1,40}+[ \t]{1,4})?(?i:by)[ \t]{1,4}"
        r"\\?[\"']?(?P<value>[^\s\"'`;)\\]{3,200}+)"
    ),
    later(
        r"ConvertTo-SecureString[ \t]{1,4}(?:-[A-Za-z]{1,20}[ \t]{1,4}){0,3}"
        r"\\?[\"']?(?P<value>[^\s\"'`\\]{3,200}+)"
    ),
    later(r"(?:mysql|mariadb|sshpass)[^\n|]{0,80}? -p ?[\"']?(?P<value>[^\s\"'`]{3,200}+)"),
)
# What a system keeps of a password: enough to guess a weak one.
_HASHES = later(
    r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}(?![\w./])"
    r"|\$[1568]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,20}\$[./A-Za-z0-9]{20,}+"
    r"|\$argon2(?:id|i|d)\$[\w=,$]{8,60}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{20,}+"
    r"|\$krb5asrep\$\d\d\$[^\s$]{8,200}\$[0-9a-f]{32,}+"
)

_KEY = later(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:")
_KEY_END = later(
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC:[ \t]*+[0-9a-fA-F]*+"
)
# The longest key in use, RSA of 16,384 bits, has 12,700 characters.
_KEY_LIMIT = 20_000
# What is left of a key whose end was cut off.
_KEY_LINES = later(r"(?:[\s>#*|\"']|\\[nr])*+(?:[A-Za-z0-9+/=]{20,}+(?:[\s>#*|\"',]|\\[nr])*+)++")
_MATERIAL = later(r"[A-Za-z0-9+/=]{20,}+")
# The shortest private key, of Ed25519, has 64 characters; less is an example that somebody cut
# short.
_LEAST_MATERIAL = 60


def tokens(text: str) -> Iterator[Span]:
    """Yield tokens whose form tells their issuer."""
    for match in any_format().finditer(text):
        # A mask goes on where the form ends.
        if is_token(match[0][:SIGHT]) and not text.startswith("####", match.end()):
            yield Span(*match.span(), ISSUED, format_name(text, match.start()))


def logins(text: str) -> Iterator[Span]:
    """Yield passwords that stand beside a user, in an address or in a command."""
    for match in _ADDRESS.finditer(text):
        if _is_login(match["value"], match["host"]):
            yield Span(*match.span("value"), LOGIN, "url-password")
    for match in _HASHES.finditer(text):
        yield Span(*match.span(), ISSUED, "password-hash")
    for match in _ADDRESS_TOKEN.finditer(text):
        if is_secret("token", match["value"]):
            yield Span(*match.span("value"), LOGIN, "url-token")
    for pattern in _LOGINS:
        for match in pattern.finditer(text):
            if is_secret("spoken", match["value"]):
                yield Span(*match.span("value"), LOGIN, "password")


def private_keys(text: str) -> Iterator[Span]:
    """Yield private keys, whole or cut off."""
    beginnings = list(_KEY.finditer(text))
    following = [beginning.start() for beginning in beginnings[1:]]
    following.append(len(text))
    for beginning, next_start in zip(beginnings, following, strict=False):
        start = beginning.end()
        limit = min(next_start, start + _KEY_LIMIT)
        rest = _KEY_END.search(text, start, limit) or _KEY_LINES.match(text, start, limit)
        if rest and _material_length(text, start, rest.end()) >= _LEAST_MATERIAL:
            yield Span(beginning.start(), rest.end(), ISSUED, "private-key")


def _is_login(value: str, host: str) -> bool:
    """Tell whether the word before a host is a password."""
    if is_fake(value) or is_reference(value) or host.startswith("example."):
        return False
    return is_random(value) or is_chosen(value)


def _material_length(text: str, start: int, stop: int) -> int:
    """Count the characters of a key that are no example."""
    length = 0
    for run in _MATERIAL.findall(text, start, stop):
        if not is_fake(run):
            length += len(run)
    return length
