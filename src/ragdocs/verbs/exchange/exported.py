"""A memory on its way to another tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragdocs.system.names import link_key, link_keys
from ragdocs.text import frontmatter
from ragdocs.types import Document
from ragdocs.verbs.exchange.note import EarlierText

# A wikilink: what it names, the heading there, and its label.
LINK = re.compile(r"\[\[([^\[\]|#\n]{1,600})((?:#[^\[\]|\n]*)?)(?:\|([^\[\]\n]*))?\]\]")


@dataclass(frozen=True, slots=True)
class Exported:
    """A memory: its card, and its text without secrets."""

    document: Document
    text: str
    # Its texts before this one, oldest first, for formats that have room for them.
    earlier: Sequence[EarlierText] = ()

    @property
    def body(self) -> str:
        """The text below the block."""
        return frontmatter.split(self.text)[1]


class Names:
    """What the names in links mean among the memories that are exported."""

    def __init__(self, memories: Iterable[Exported]) -> None:
        self._documents: dict[str, Document] = {}
        for memory in memories:
            for key in link_keys(memory.document):
                self._documents.setdefault(key, memory.document)

    def find(self, target: str) -> Document | None:
        """Return the memory that a name means."""
        return self._documents.get(link_key(target))

    def rewritten(self, text: str, name: Callable[[Document, str], str]) -> str:
        """Return a text in which links have the names that another tool knows memories by.

        `name` gives that name for a memory and the target that is written.
        """

        def link(match: re.Match[str]) -> str:
            target = match[1].strip()
            document = self.find(target)
            if document is None:
                return match[0]
            other = name(document, target)
            if other == target:
                return match[0]
            return f"[[{other}{match[2]}|{match[3] or target}]]"

        return LINK.sub(link, text)
