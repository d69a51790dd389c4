"""Everything about living links, put together for one project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path

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

# The record of this user, for all working copies.
RECORD = "links.sqlite"
# A search must not wait for it.
WAIT_SECONDS = 1.0


class Living:
    """The verbs about what became of what texts are about."""

    def __init__(
        self,
        root: Path,
        corpora: Callable[[], Mapping[str, Corpus]],
        clock: Callable[[], datetime],
        redactor: Redactor,
    ) -> None:
        self._root = root
        self._corpora = corpora
        self._clock = clock
        self._redactor = redactor

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
    def drift(self) -> Drift:
        """The verbs about what became of the files that memories link to."""
        targets = Targets(self._root, self._corpora, self.past)
        file = SideFile(
            folders.state_dir() / RECORD, TABLES, name="record of links", wait_seconds=WAIT_SECONDS
        )
        # Of this very working copy: another one has other files, and perhaps another branch.
        ledger = Ledger(file, folders.project_key(self._root))
        baselines = Baselines(targets, self.past, self.refs, ledger, self._clock)
        return Drift(self._corpora, targets, self.past, baselines, self._redactor)
