"""Notes of basic-memory: markdown with permalinks, observations and relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdocs.text import frontmatter
from ragdocs.types import ENTRY_KINDS, ITEM_KINDS, MEMORY_KINDS
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, moment
from ragdocs.verbs.exchange.server_memory import relation_word

# Texts that are looked at before a folder is taken for another format.
LOOKED_AT = 20
_KINDS = frozenset((*MEMORY_KINDS, *ENTRY_KINDS)) - frozenset(ITEM_KINDS)
# A relation of several words before a link that stands alone.
_RELATION = re.compile(
    r"^(?P<item>[ \t]*[-*+][ \t]+)(?P<kind>[A-Za-z][\w-]*(?:[ \t]+[\w-]+){0,5})"
    r"[ \t]+(?P<link>\[\[[^\[\]\n]+\]\])(?=[ \t]*(?:\([^()\n]*\))?[ \t]*$)",
    re.MULTILINE,
)


def is_one(path: Path) -> bool:
    """Tell whether notes of a folder have permalinks."""
    for _, file in source.texts(path)[:LOOKED_AT]:
        block = frontmatter.split(source.read_text(file)[0])[0]
        if block is not None and "permalink" in frontmatter.load(block)[0]:
            return True
    return False


def read(path: Path) -> Iterator[Note]:
    """Read each note; its relations become links of that kind."""
    for name, file in source.texts(path):
        text, problem = source.read_text(file)
        block, body, _ = frontmatter.split(text)
        fields: dict[str, Any] = {}
        if block is not None:
            fields, problems = frontmatter.load(block)
            problem = problem or "; ".join(problems)
        kind = fields.get("type")
        if kind not in _KINDS:
            fields.pop("type", None)
            if kind:
                fields["original_type"] = kind
            kind = "fact"
        permalink = fields.get("permalink")
        if permalink and "aliases" not in fields:
            fields["aliases"] = [str(permalink)]
        yield Note(
            name=name,
            text=_RELATION.sub(_link, body),
            kind=str(kind),
            tags=source.words(fields.pop("tags", [])),
            fields=fields,
            created=moment(fields.get("created")) or moment(file.stat().st_mtime),
            key=str(permalink or name),
            problem=problem,
        )


def _link(match: re.Match[str]) -> str:
    return f"{match['item']}{relation_word(match['kind'])} {match['link']}"
