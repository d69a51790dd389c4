"""Everything about living links, put together for one project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.lanes import DOCS, MEMORY
from ragdocs.project import folders
from ragdocs.search.corpus import Corpus
from ragdocs.system.refs import Refs
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text.redaction.redact import Redactor
from ragdocs.verbs.living.baselines import Baselines
from ragdocs.verbs.living.branches import Branches
from ragdocs.verbs.living.drift import Drift
from ragdocs.verbs.living.ledger import TABLES, Ledger
from ragdocs.verbs.living.past import Past
from ragdocs.verbs.living.targets import Targets

if TYPE_CHECKING:
    from ragdocs.verbs.living.affected import AffectedTexts
    from ragdocs.verbs.living.relink import Relinks

# The record of this user, for all working copies.
RECORD = "links.sqlite"
# A search must not wait for it.
WAIT_SECONDS = 1.0
# Entries of the journal and commits are about what was, and nobody corrects them.
LANES = (DOCS.name, MEMORY.name)


class Living:
    """The verbs about what became of what texts are about."""

    def __init__(
        self,
        root: Path,
        corpora: Callable[[], Mapping[str, Corpus]],
        clock: Callable[[], datetime],
        redactor: Redactor,
        resources: ExitStack,
    ) -> None:
        """Take the project, and what closes the files that are opened here."""
        self._root = root
        self._corpora = corpora
        self._clock = clock
        self._redactor = redactor
        self._resources = resources

    @cached_property
    def refs(self) -> Refs:
        """The branches of the project's repository."""
        return Refs(self._root)

    @cached_property
    def past(self) -> Past:
        """The history of the project's repository."""
        return Past(self._root, self.refs)

    @cached_property
    def branches(self) -> Branches:
        """The verbs about the branches that memories were written on."""
        return Branches(self._root, self.refs)

    @cached_property
    def targets(self) -> Targets:
        """The files that links lead to."""
        return Targets(self._root, self._corpora, self.past)

    @cached_property
    def affected(self) -> AffectedTexts:
        """The verbs about the texts that a change concerns."""
        from ragdocs.verbs.living.affected import AffectedTexts
        from ragdocs.verbs.living.changes import Diffs
        from ragdocs.verbs.living.companions import Companions

        diffs = Diffs(self._root, self.past, self.targets)
        companions = Companions(self._root, self.refs)
        return AffectedTexts(partial(_of_files, self._corpora), diffs, companions)

    @cached_property
    def drift(self) -> Drift:
        """The verbs about what became of the files that memories link to."""
        file = SideFile(
            folders.state_dir() / RECORD, TABLES, name="record of links", wait_seconds=WAIT_SECONDS
        )
        self._resources.callback(file.close)
        # Of this very working copy: another one has other files, and perhaps another branch.
        ledger = Ledger(file, folders.project_key(self._root))
        baselines = Baselines(self.targets, self.past, self.refs, ledger, self._clock)
        return Drift(self._corpora, self.targets, self.past, baselines, self._redactor)

    @cached_property
    def relinks(self) -> Relinks:
        """The verbs that let links lead to where their targets are now."""
        from ragdocs.verbs.living.relink import Relinks

        return Relinks(self._corpora, self.drift)


def _of_files(corpora: Callable[[], Mapping[str, Corpus]]) -> dict[str, Corpus]:
    """Return the lanes that speak about the project: its documents and its memories."""
    return {name: corpus for name, corpus in corpora().items() if name in LANES}
