"""What stands above the text of a memory: its kind, its tags, its id and when it was written."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from ragdocs.errors import ValidationError
from ragdocs.system.git import SHORT_HASH
from ragdocs.system.names import ENTRIES
from ragdocs.system.patterns import later
from ragdocs.system.refs import Head
from ragdocs.text import frontmatter, times
from ragdocs.text.checks import check_tags
from ragdocs.types import ENTRY_KINDS, MEMORY_KINDS, GitContext

ACTIVE = "active"
# Hexadecimal digits of an id.
ID_DIGITS = 12
_KIND = later(r"[^\W\d_][\w-]{0,39}")


def fields(kind: str, tags: Sequence[str], now: datetime) -> dict[str, object]:
    """Return the fields that every new memory has."""
    return {
        "type": kind,
        "status": ACTIVE,
        "tags": list(tags),
        "created_at": times.stamp(now),
    }


def at_head(head: Head) -> dict[str, object]:
    """Return the branch and the commit that are checked out as a field, if there are any."""
    state: dict[str, object] = {}
    if head.branch:
        state["branch"] = head.branch
    if head.commit:
        state["commit"] = head.commit[:SHORT_HASH]
    if not state:
        return {}
    return {"git": state}


def moment_fields(
    new_id: str, now: datetime, state: GitContext | None, project: str = ""
) -> dict[str, object]:
    """Return the fields of a memory that is named by its moment, with the working tree's state.

    `project` is given where memories of several projects lie in one folder.
    """
    described: dict[str, object] = {
        "created_at": now.isoformat(),
        "id": new_id,
        "timestamp": int(now.timestamp()),
    }
    if project:
        described["project"] = project
    if state is not None:
        described["git"] = _git_fields(state)
    return described


def _git_fields(state: GitContext) -> dict[str, object]:
    described: dict[str, object] = {
        "branch": state.branch,
        "commit": state.commit,
        "dirty": state.dirty,
        "files_changed": list(state.files_changed),
    }
    if state.files_total > len(state.files_changed):
        described["files_total"] = state.files_total
    return described


# --- kinds ---


def check_kind(kind: str) -> None:
    """Refuse a type that is not one word."""
    if not _KIND.fullmatch(kind):
        raise ValidationError(
            f"{kind[:60]!r} is not a memory type", f"Use one of {', '.join(MEMORY_KINDS)}"
        )


def kind_warnings(kind: str) -> list[str]:
    """Say that a type is not one of the usual ones."""
    if kind in MEMORY_KINDS:
        return []
    return [f"{kind!r} is not one of the usual types: {', '.join(MEMORY_KINDS)}"]


def check_entry_kind(kind: str) -> None:
    """Refuse a type that no entry has."""
    if kind not in ENTRY_KINDS:
        raise ValidationError(
            f"{kind[:40]!r} is not a type of entry", f"Use one of {', '.join(ENTRY_KINDS)}"
        )


# --- ids ---


def random_id() -> str:
    """Return a new id for a memory."""
    return f"mem_{secrets.token_hex(ID_DIGITS // 2)}"


def content_ids(content: str) -> list[str]:
    """Return the ids of a content, in the order in which they are tried.

    The first one belongs to another text only by chance, or when that text was edited.
    """
    digest = sha256(content.strip().encode()).hexdigest()
    ids = []
    for start in range(0, len(digest) - ID_DIGITS + 1, ID_DIGITS):
        ids.append(f"mem_{digest[start : start + ID_DIGITS]}")
    return ids


def entry_path(entry_id: str) -> str:
    """Return the path at which an entry is written first."""
    return f"{ENTRIES}/{entry_id}.md"


# --- tags ---


def field_tags(value: Any) -> list[str]:
    """Return the tags of a field: a list, or words with commas between them."""
    words = value
    if not isinstance(value, list):
        words = frontmatter.as_text(value).split(",")
    return check_tags([frontmatter.as_text(word) for word in words])


def add_tags(text: str, tags: Sequence[str]) -> str:
    """Add tags to those of the text's own block; the block's other lines stay as they are."""
    block, body, _ = frontmatter.split(text)
    present = field_tags(own_fields(text).get("tags") or [])
    wanted = check_tags([*present, *tags])
    if wanted == present and block is not None:
        return text
    return frontmatter.set_fields(text, {"tags": wanted}) + body


def own_fields(text: str) -> Mapping[str, Any]:
    """Return the fields of a text's own block."""
    block = frontmatter.split(text)[0]
    if block is None:
        return {}
    return frontmatter.load(block)[0]
