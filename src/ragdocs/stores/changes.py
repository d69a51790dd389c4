"""What a change to a text must meet, and what it becomes, wherever the text is stored."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import cast

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ParseError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.project.formats import format_of
from ragdocs.stores.files.globs import Rules
from ragdocs.stores.files.history import TRASH, VERBS, Step, version_of
from ragdocs.stores.files.spelling import composed, folded
from ragdocs.system.names import relative_name
from ragdocs.types import Change, Discard, Expect, Put, Verb

# Text has no NUL; git looks at as many bytes to tell binary files.
BINARY_PROBE = 8192
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Exact:
    """Write exactly these bytes at exactly this path, as they are elsewhere.

    `expect` is a version or an `Expect`.
    """

    path: str
    data: bytes
    expect: str | Expect
    modified_at: datetime


AnyChange = Change | Exact


def checked_verb(verb: str) -> Verb:
    """Return a kind of change that a history knows, or refuse it."""
    if verb not in VERBS:
        raise ValidationError(
            f"{verb!r} is not a kind of change", f"Use one of {', '.join(sorted(VERBS))}"
        )
    return cast("Verb", verb)


def checked_name(change: Change, rules: Rules, lane: Lane) -> str:
    """Return the path that a change means, or refuse one that the lane would never list."""
    path = relative_name(change.path)
    if not rules.lists(path):
        raise ValidationError(
            f"{path} would never be found: the {lane.name} lane leaves such paths out"
        )
    return path


def check_once(steps: Sequence[Step]) -> None:
    """Refuse a change set in which a path is named twice, in any case or Unicode form."""
    paths: set[str] = set()
    for step in steps:
        if folded(step.path) in paths:
            raise ValidationError(
                f"{step.path} is named twice in one change", "Name every file once"
            )
        paths.add(folded(step.path))


def spelled_path(change: AnyChange, path: str, spelled: str) -> str:
    """Return the path to change, where an existing one is `spelled` so.

    Two paths that differ only in upper and lower case are refused.
    """
    if composed(spelled) == path:
        return spelled
    if not isinstance(change, Discard) and change.expect in {Expect.ABSENT, Expect.ANY}:
        message = f"{path} differs only in upper and lower case from {spelled}, which exists"
        raise AlreadyExistsError(message, f"Use {spelled}, or another name")
    return path


def expects_text(change: AnyChange) -> bool:
    """Return whether a change cannot be made where there is no text."""
    return change.expect not in {Expect.ABSENT, Expect.ANY}


def check_expectation(change: AnyChange, path: str, current: bytes) -> None:
    """Refuse a change of a text that is another one than its writer expects."""
    if change.expect is Expect.ABSENT:
        raise AlreadyExistsError(
            f"{path} exists already", "Update or append to it, or use another name"
        )
    if isinstance(change.expect, str) and change.expect != version_of(current):
        raise ConflictError(
            f"{path} changed since version {change.expect[:16]} was read",
            "Merge your text with the current one and try again with its version",
            theirs=decoded(path, current, strict=False)[0],
            yours=change.text if isinstance(change, Put) else "",
            version=version_of(current),
        )


def not_found(path: str, existing: Iterable[str]) -> NotFoundError:
    """Return the error for a path that does not exist, with the nearest one that does."""
    import difflib

    near = difflib.get_close_matches(path, existing, n=1)
    hint = "<search memories> finds memories by their content"
    if near:
        hint = f"Did you mean {near[0]}?"
    return NotFoundError(f"{path} does not exist", hint)


def trash_names(path: str, now: datetime) -> Iterator[str]:
    """Yield paths in the trash with the time in them; two of the same second both stay."""
    original = PurePosixPath(path)
    folder = PurePosixPath(TRASH) / original.parent
    stem = f"{original.stem}_{now:%Y%m%d_%H%M%S}"
    yield str(folder / f"{stem}{original.suffix}")
    for number in itertools.count(2):
        yield str(folder / f"{stem}_{number}{original.suffix}")


def readable_text(path: str, data: bytes) -> tuple[str, tuple[str, ...]]:
    """Read a file as text, or as what a document of an office program says."""
    kind = format_of(path)
    if kind is None or not kind.extra:
        return decoded(path, data)
    from ragdocs.text.formats import office

    return office.convert(data, kind, path), ()


def decoded(name: str, data: bytes, *, strict: bool = True) -> tuple[str, tuple[str, ...]]:
    """Read bytes as text, with what had to be mended; line endings stay as they are."""
    if strict and b"\0" in data[:BINARY_PROBE]:
        raise ParseError(
            f"{name} is not text: it contains NUL bytes", "Save it as UTF-8, or exclude it"
        )
    data = data.removeprefix(BOM)
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"not valid UTF-8, first in line {line}: shown with replacements"
        return data.decode(errors="replace"), (problem,)


def encoded(change: Put, current: bytes | None, largest: int) -> bytes:
    """Turn a text into bytes, with the byte order mark and line ends of the file it replaces."""
    try:
        data = change.text.encode()
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"the text has an incomplete character at position {error.start}", "Send valid Unicode"
        ) from error
    if b"\0" in data:
        raise ValidationError("the text contains a NUL character", "Remove it")
    if len(data) > largest:
        raise ValidationError(
            f"the text is larger than {largest / 1e6:g} MB", "Split it into several files"
        )
    if current is None:
        return data
    if current.startswith(BOM) and not data.startswith(BOM):
        data = BOM + data
    lines = current.count(b"\n")
    if lines and lines == current.count(b"\r\n"):
        data = re.sub(rb"(?<!\r)\n", b"\r\n", data)
    return data
