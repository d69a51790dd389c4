"""The exact bytes of texts, each stored once in its scope under its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from ragdocs.errors import NotFoundError, StorageError, ValidationError
from ragdocs.stores.files.history import VERSION, version_of
from ragdocs.system.postgres.columns import columns, first_column

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

_KEEP = """
INSERT INTO bodies (scope, digest, data) SELECT %s, * FROM unnest(%s::bytea[], %s::bytea[])
ON CONFLICT DO NOTHING
"""
_RECOVER = "SELECT data FROM bodies WHERE scope = %s AND digest BETWEEN %s AND %s LIMIT 1"
_DIGEST_BYTES = 32


@overload
def digest_of(data: bytes) -> bytes: ...


@overload
def digest_of(data: bytes | None) -> bytes | None: ...


def digest_of(data: bytes | None) -> bytes | None:
    """Return the name of a content in the database; no text has none."""
    if data is None:
        return None
    return hashlib.sha256(data).digest()


def version(digest: bytes | None) -> str:
    """Return the version that a digest belongs to, or "" for no text."""
    if digest is None:
        return ""
    return digest.hex()[:16]


def keep(session: Session, scope: int, contents: Sequence[bytes | None]) -> None:
    """Keep contents that may be there already."""
    # In one order, so that two writers of the same contents do not wait for each other.
    by_digest: dict[bytes, bytes] = {}
    for data in contents:
        if data is not None:
            by_digest[digest_of(data)] = data
    if by_digest:
        session.execute(_KEEP, [scope, *columns(sorted(by_digest.items()), 2)])


def recover(session: Session, scope: int, wanted: str) -> bytes:
    """Return the bytes that are kept under a version, checked."""
    if not VERSION.match(wanted):
        raise ValidationError(
            f"{wanted[:80]!r} is not a version", "A version is 16 hexadecimal digits"
        )
    prefix = bytes.fromhex(wanted)
    last = prefix.ljust(_DIGEST_BYTES, b"\xff")
    row = session.execute(_RECOVER, [scope, prefix, last], binary=True).fetchone()
    if row is None:
        raise NotFoundError(
            f"no text is kept under version {wanted}", "List the history to see which are"
        )
    data = bytes(row[0])
    if version_of(data) != wanted:
        raise StorageError(
            f"the kept text {wanted} is damaged", "An earlier or later version may be whole"
        )
    return data


def paths(session: Session, scope: int) -> list[str]:
    """List the paths of all texts of a scope."""
    rows = session.execute("SELECT path FROM texts WHERE scope = %s ORDER BY path", [scope])
    return first_column(rows.fetchall())
