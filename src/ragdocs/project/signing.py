"""The secret with which a user's indexes are signed."""

from __future__ import annotations

import os
from pathlib import Path

from ragdocs.errors import RagdocsError
from ragdocs.project.folders import Environ, resolved, state_dir
from ragdocs.system import files

KEY_BYTES = 32


def signing_key(environ: Environ | None = None) -> bytes:
    """Return this user's secret for signing indexes, made on first use."""
    path = resolved(state_dir(environ)) / "index.key"
    try:
        files.make_directories(path.parent, 0o700)
        return _read_key(path) or _make_key(path)
    except (OSError, RagdocsError) as error:
        import logging

        # Without a lasting key nothing saved is trusted at the next start: slower, never wrong.
        logging.getLogger(__name__).warning(
            "%s cannot be kept (%s): indexes will be built anew at every start", path, error
        )
        return os.urandom(KEY_BYTES)


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        return None
    return key


def _make_key(path: Path) -> bytes:
    """Make the key; of two processes that do so at once the first one wins."""
    made = os.urandom(KEY_BYTES)
    if not files.create_whole(path, made, mode=0o600) and _read_key(path) is None:
        # A damaged key is in the way.
        files.write_atomic(path, made, mode=0o600)
    key = _read_key(path)
    if key is None:
        raise OSError(0, "the key vanished while it was made", str(path))
    return key
