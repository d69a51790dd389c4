"""The secret with which a user's indexes are signed."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path

from ragdocs.project.folders import Environ, state_dir

KEY_BYTES = 32

_log = logging.getLogger(__name__)


def signing_key(environ: Environ | None = None) -> bytes:
    """Return this user's secret for signing indexes, made on first use."""
    path = state_dir(environ) / "index.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _read_key(path) or _make_key(path)
    except OSError as error:
        # Without a lasting key nothing saved is trusted at the next start: slower, never wrong.
        _log.warning(
            "%s cannot be kept (%s): indexes will be built anew at every start", path, error
        )
        return secrets.token_bytes(KEY_BYTES)


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        return None
    return key


def _make_key(path: Path) -> bytes:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    key = _read_key(path)
    if key is None:
        raise OSError(0, "the key vanished while it was made", str(path))
    return key


def _publish(draft: Path, path: Path) -> None:
    """Give a whole draft its final name; of two processes that do so at once the first one wins."""
    try:
        os.link(draft, path)
    except FileExistsError:
        if _read_key(path) is None:  # a damaged key is in the way
            draft.replace(path)
    except OSError:  # a file system without hard links
        draft.replace(path)
