"""Generations of an index on disk.

Written whole, signed, published by one pointer, and never half believed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from ragdocs.errors import LockAcquisitionError, RagdocsError
from ragdocs.system import files as fsio
from ragdocs.system.locks import lock
from ragdocs.system.patterns import later

POINTER = "current"
MANIFEST = "manifest.json"
# The live generation and the one before it; an older one stays as long as somebody is reading it.
KEPT = 2
# The time of its making and a random part; nothing else in the folder is ever removed.
GENERATION = later(r"\d{20}-[0-9a-f]{8}")
# What a manifest that is missing, damaged or foreign may lead to.
UNTRUSTED = (RagdocsError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
# Far beyond any index; only a bound for what a hostile manifest may make us read.
LARGEST = 1 << 34
# Bytes of an index that one thread hashes in less time than it takes to import others: 10 ms.
WORTH_THREADS = 1 << 24
# Bytes of a file that are in memory while it is checked.
READ_AT_ONCE = 1 << 25


# A file in pieces, each of which is written by itself: joining them would hold up other threads.
Pieces = Sequence[bytes | memoryview]


def save(
    directory: Path,
    parts: Mapping[str, Pieces],
    recipe: Mapping[str, str],
    key: bytes,
) -> str:
    """Write a generation and publish it; the caller holds the lock of the directory."""
    name = f"{time.time_ns():020d}-{os.urandom(4).hex()}"
    place = directory / name
    manifest: dict[str, object] = {
        "recipe": dict(recipe),
        "files": {path: _digest(pieces) for path, pieces in sorted(parts.items())},
    }
    manifest["signature"] = _sign(manifest, key)
    with fsio.explained("write", directory):
        if not (directory / ".gitignore").exists():
            fsio.write_atomic(directory / ".gitignore", b"*\n")
        with ExitStack() as undo:
            # On a full disk every attempt would leave another half.
            undo.callback(_remove, directory, name)
            # First, because only a signed generation is ever removed: also what a killed process
            # leaves must be one.
            head = [json.dumps(manifest, indent=1).encode()]
            for path, pieces in {MANIFEST: head, **parts}.items():
                fsio.make_directories((place / path).parent, 0o700)
                fsio.write_atomic(place / path, *pieces)
            undo.pop_all()
        fsio.write_atomic(directory / POINTER, name.encode())
    # What is published is published, whatever becomes of the old ones.
    with suppress(OSError, RagdocsError):
        _prune(directory, name, key)
    return name


def load(
    directory: Path, key: bytes, private: Path | None = None
) -> tuple[dict[str, str], dict[str, memoryview]] | None:
    """Return recipe and parts of the live generation, or nothing if any byte of it is missing.

    Changed or foreign.

    Nothing is opened a second time after the check. We never write to a file of a generation again,
    so files in the `private` folder, which is this user's alone, are mapped. Those of a project may
    be changed by whatever works there: they are copied into the private folder and mapped there, or
    read where there is none. The bytes that were checked are the bytes that are returned.
    """
    # A home or cache folder may well be reached through a link; what the signature covers is the
    # same there.
    directory = Path(os.path.realpath(directory))
    try:
        name = fsio.read_bytes(directory / POINTER, limit=200).decode()
        if not name or Path(name).name != name or name.startswith("."):
            return None
        place = fsio.contained(directory, name)
        with ExitStack() as stack:
            # It keeps the generation from being removed meanwhile. Without it, what is missing then
            # is noticed below.
            with suppress(LockAcquisitionError):
                stack.enter_context(lock(place, timeout=0, shared=True))
            manifest = _signed_manifest(fsio.read_bytes(place / MANIFEST), key)
            if manifest is None:
                return None
            parts = {}
            for path in manifest["files"]:
                parts[path] = _opened(fsio.contained(place, path), private)
    except UNTRUSTED:
        return None
    if _digests(parts) != manifest["files"]:
        return None
    return manifest["recipe"], parts


def report(message: str, error: Exception) -> None:
    """Log what becomes of stored files that cannot be used."""
    import logging

    logging.getLogger("ragdocs").info("%s: %s", message, error)


def _digests(parts: Mapping[str, memoryview]) -> dict[str, str]:
    """Return the digest of each file; those of a large index are made by several threads."""
    if sum(map(len, parts.values())) < WORTH_THREADS:
        return {path: _mapped_digest(part) for path, part in parts.items()}
    from concurrent.futures import ThreadPoolExecutor

    # Hashing lets other threads run: the largest first, so that no thread is left with it at the
    # end.
    largest_first = sorted(parts, key=lambda path: len(parts[path]), reverse=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = pool.map(_mapped_digest, [parts[path] for path in largest_first])
        return dict(zip(largest_first, digests, strict=True))


def _opened(path: Path, private: Path | None) -> memoryview:
    if private is None:
        return memoryview(fsio.read_bytes(path, LARGEST))
    if path.is_relative_to(private):
        return fsio.map_file(path, LARGEST)
    return fsio.map_copy(path, private, LARGEST)


def _mapped_digest(part: memoryview) -> str:
    """Return the digest of a file that may be mapped, and let go of what was read of it."""
    return _digest(_released(part))


def _released(part: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(part), READ_AT_ONCE):
        end = start + READ_AT_ONCE
        yield part[start:end]
        fsio.release(part)


def _digest(pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    size = 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return f"{size}:{digest.hexdigest()}"


def _sign(manifest: Mapping[str, object], key: bytes) -> str:
    return hmac.new(key, json.dumps(manifest, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _signed_manifest(data: bytes, key: bytes) -> dict[str, Any] | None:
    """Return a manifest without its signature, or nothing if that was not made with this key."""
    manifest: dict[str, Any] = json.loads(data)
    signature = manifest.pop("signature")
    genuine = hmac.compare_digest(signature.encode(), _sign(manifest, key).encode())
    if not genuine:
        return None
    return manifest


def _prune(directory: Path, live: str, key: bytes) -> None:
    """Remove the generations that this user made before the last ones.

    Whatever else is here belongs to others.
    """
    with fsio.Folder(directory) as folder:
        names = list(reversed(folder.names()))
    earlier = []
    for name in names:
        if name != live and GENERATION.fullmatch(name) and _is_own(directory / name, key):
            earlier.append(name)
    for name in earlier[KEPT - 1 :]:
        with suppress(OSError, RagdocsError), lock(directory / name, timeout=0):
            _remove(directory, name)


def _is_own(place: Path, key: bytes) -> bool:
    try:
        with fsio.Folder(place) as folder:
            return _signed_manifest(fsio.read_from(folder, MANIFEST)[0], key) is not None
    except UNTRUSTED:
        return False


def _remove(directory: Path, name: str) -> None:
    """Remove a generation, its manifest last.

    What is left by a process killed here can still be told as ours.
    """
    with suppress(OSError), fsio.Folder(directory) as parent:
        with fsio.Folder(directory / name) as folder:
            for entry in folder.names():
                if entry != MANIFEST:
                    folder.remove_tree(entry)
        parent.remove_tree(name)
