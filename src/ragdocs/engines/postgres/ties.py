"""Documents that links of some kinds join to others, found step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragdocs.engines.postgres.filters import link_targets
from ragdocs.protocols import Ties
from ragdocs.system.names import link_key, link_keys
from ragdocs.system.postgres.database import Statement
from ragdocs.types import Document

_TIED = """
SELECT d.card FROM documents d
WHERE d.scope = %(scope)s AND d.doc_id IN (
    SELECT l.doc_id FROM links l
    WHERE l.scope = %(scope)s AND l.target = ANY (%(targets)s)
    UNION ALL
    SELECT n.doc_id FROM names n WHERE n.scope = %(scope)s AND n.name = ANY (%(names)s)
)
"""


class Tying:
    """Which documents ties join to others, one step after the other."""

    def __init__(self, scope: int, documents: Sequence[Document], ties: Ties) -> None:
        self.ties = ties
        self._scope = scope
        self._first = {document.id for document in documents}
        self._known = {document.id: document for document in documents}
        # Those that were found last.
        self.outermost = list(documents)

    @property
    def statement(self) -> Statement:
        """The question for documents that the outermost ones name, or that name these."""
        names: set[str] = set()
        for document in self.outermost:
            names.update(link_keys(document))
        values = {
            "scope": self._scope,
            "targets": link_targets(sorted(names)),
            "names": link_targets(sorted(self._named(self.outermost))),
        }
        return _TIED, values

    @property
    def others(self) -> Mapping[str, Document]:
        """What was found, without the first ones."""
        others = {}
        for document_id, document in self._known.items():
            if document_id not in self._first:
                others[document_id] = document
        return others

    def take(self, documents: Sequence[Document]) -> None:
        """Take those of the found documents that are tied to the outermost ones."""
        own_names: set[str] = set()
        for document in self.outermost:
            own_names.update(link_keys(document))
        named = self._named(self.outermost)
        outermost = []
        for document in documents:
            is_named = not named.isdisjoint(link_keys(document))
            is_tied = is_named or not own_names.isdisjoint(self._named([document]))
            if is_tied and document.id not in self._known:
                self._known[document.id] = document
                outermost.append(document)
        self.outermost = outermost

    def _named(self, documents: Sequence[Document]) -> set[str]:
        """Return what documents name in links of these kinds."""
        named = set()
        for document in documents:
            for link in document.links:
                if link.kind in self.ties.kinds:
                    named.add(link_key(link.target))
        return named
