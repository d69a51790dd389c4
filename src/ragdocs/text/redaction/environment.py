"""The variables of an environment whose values are secrets, in every spelling a text may have."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from json import dumps
from urllib.parse import quote

from ragdocs.system.patterns import later
from ragdocs.text.redaction.names import kind_of

# Shorter values of environment variables stand in ordinary text by chance.
_LEAST_VALUE = 8
# Words, numbers, paths and addresses stand in texts without being meant.
_ORDINARY = later(r"(?s)[A-Za-z]{0,15}|[\d.,:_-]*|(?:~|\.{0,2}/|[A-Za-z]:\\).*|\w+://[^@]*")

# The spellings of secrets with the name of their rule, the longest first.
Spellings = tuple[tuple[str, str], ...]


def secret_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment whose values must not be kept."""
    secrets = {}
    for name, value in environ.items():
        if _is_secret_variable(name, value):
            secrets[name] = value
    return secrets


def spellings(environ: Mapping[str, str]) -> Spellings:
    """Return the secrets of an environment in every spelling."""
    rules: dict[str, str] = {}
    variables = secret_variables(environ)
    for name in sorted(variables):
        plain_name = re.sub(r"\W", "_", name)
        rule = f"env:{plain_name[:100]}"
        for spelling in _spellings_of(variables[name]):
            rules.setdefault(spelling, rule)
    return longest_first(rules)


def longest_first(rules: Mapping[str, str]) -> Spellings:
    """Return spellings with their rules so that none is hidden by a part of it."""
    ordered = sorted(rules.items(), key=_order)
    return tuple(ordered)


def _order(item: tuple[str, str]) -> tuple[int, str, str]:
    spelling, rule = item
    return -len(spelling), spelling, rule


def _spellings_of(value: str) -> tuple[str, ...]:
    in_address = quote(value, safe="")
    in_json = dumps(value)[1:-1]
    data = value.encode("utf-8", "surrogateescape")
    in_base64 = b64encode(data).decode().rstrip("=")
    return value, in_address, in_json, in_base64


def _is_secret_variable(name: str, value: str) -> bool:
    """Tell whether the value of a variable is a secret."""
    if kind_of(name) in {"", "service"}:
        return False
    return len(value) >= _LEAST_VALUE and not _ORDINARY.fullmatch(value)
