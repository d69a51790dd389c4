"""A page in several languages or versions is one result: which one is shown, and its siblings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ragdocs.lanes import Lane
from ragdocs.project.copies import language_of
from ragdocs.project.variants import Families
from ragdocs.types import Filter, Findings, Query, Variant


class PageVariants:
    """The pages of one lane that are there in several languages or versions."""

    def __init__(self, lane: Lane, paths: Callable[[], Collection[str]]) -> None:
        self._lane = lane
        # Lists the paths that are indexed.
        self._paths = paths
        self._families: Families | None = None

    @property
    def families(self) -> Families:
        """The families of the paths that are indexed, as they were looked for last."""
        self.prepare()
        return self._families or Families()

    def prepare(self) -> None:
        """Find the families, unless that was ever done."""
        if self._families is None:
            self.learn()

    def learn(self) -> None:
        """Find the families of the paths that are indexed now."""
        known = self._families or Families()
        if self._lane.has_variants:
            known = known.of(frozenset(self._paths()))
        self._families = known

    def chosen(self, query: Query) -> Query:
        """Return a query that leaves out all but one language and version of each page.

        Those of the question are shown, or else the configured version and the main language.
        """
        families = self.families
        if not families.languages:
            return query
        where = query.where
        only_placed = replace(where, prefix="", hidden=(), alive_at=None)
        # Another filter may leave out the very page that would be shown: then all are searched.
        if only_placed != Filter():
            return query
        text = " ".join(probe.text for probe in query.probes)
        from ragdocs.text.query_language import query_language

        language = language_of(query.language) or query_language(text, families.languages)
        version = query.version or families.named_version(text) or self._lane.version
        hidden = families.hidden(where.prefix, language, version)
        return replace(query, where=replace(where, without=hidden))

    def siblings(self, path: str) -> tuple[Variant, ...]:
        """Return the other languages and versions of a page."""
        return self.families.siblings(path)

    def grouped(self, findings: Findings) -> Findings:
        """Name the siblings of a page at its first hit, and drop those in the list itself."""
        families = self.families
        if not families.languages:
            return findings
        first: dict[str, str] = {}
        hits = []
        for hit in findings.hits:
            path = hit.document.path
            family = families.family(path)
            if family not in first:
                first[family] = path
                hits.append(replace(hit, siblings=families.siblings(path)))
            elif first[family] == path:
                hits.append(hit)
        return replace(findings, hits=tuple(hits))
