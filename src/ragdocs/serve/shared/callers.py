"""The introduction of a window, which comes before the protocol, and the caller it makes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from datetime import UTC, tzinfo
from io import BytesIO
from pathlib import Path

from ragdocs.caller import GIT_INDEX, Caller
from ragdocs.config import KEYS
from ragdocs.errors import ValidationError

BRANCH_SCOPE = KEYS["memory.branch_scope"]
# Variables that the server must not take from the window that happened to start it.
PERSONAL = (BRANCH_SCOPE.shared_variable, "TZ")
LONGEST_NAME = 100
# A file of time zone data: no transitions, one type of local time, and a footer that has the rules.
_HEADER = struct.Struct(">4sc15x6l")
_TYPE = struct.pack(">lbb", 0, 0, 0) + b"-\0"


def read(line: bytes) -> Caller:
    """Return the caller of a window, or raise what is wrong with its introduction."""
    environ = _environ(line)
    if environ is None:
        raise ValidationError("this socket is for the windows of ragdocs", "Start `ragdocs mcp`")
    return from_environment(environ)


def _environ(line: bytes) -> dict[str, str] | None:
    """Return the environment that a window sent, or nothing if it sent something else."""
    try:
        introduction = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(introduction, dict):
        return None
    environ = introduction.get("environ")
    if not isinstance(environ, dict) or set(map(type, environ.values())) - {str}:
        return None
    return environ


def from_environment(environ: Mapping[str, str]) -> Caller:
    """Return a caller with this environment; of its values only those that count are kept."""
    from ragdocs.text.redaction.environment import secret_variables

    scope = environ.get(BRANCH_SCOPE.shared_variable, "").strip()
    if scope:
        BRANCH_SCOPE.check(scope, f"environment {BRANCH_SCOPE.shared_variable}")
    name = environ.get("USER") or environ.get("LOGNAME") or ""
    zone = None
    if "TZ" in environ:
        zone = find_zone(environ["TZ"])
    return Caller(
        name=name[:LONGEST_NAME],
        branch_scope=scope,
        git_index=environ.get(GIT_INDEX, ""),
        zone=zone,
        secrets=secret_variables(environ),
    )


def find_zone(text: str) -> tzinfo:
    """Return the zone of a value of TZ as the C library reads it; an unknown one is UTC."""
    from zoneinfo import ZoneInfo

    name = text.removeprefix(":")
    try:
        if name.startswith("/"):
            return _from_file(Path(name))
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # Not the name of a zone; it may be a rule as in "CET-1CEST,M3.5.0,M10.5.0/3".
        return _from_rule(name)


def _from_file(path: Path) -> tzinfo:
    from zoneinfo import ZoneInfo

    # Anything but a file could keep the server waiting.
    if not path.is_file():
        return UTC
    with path.open("rb") as data:
        return ZoneInfo.from_file(data)


def _from_rule(rule: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    block = _HEADER.pack(b"TZif", b"2", 0, 0, 0, 0, 1, 2) + _TYPE
    try:
        footer = f"\n{rule}\n".encode("ascii")
        return ZoneInfo.from_file(BytesIO(block + block + footer), key=rule)
    except ValueError:
        return UTC
