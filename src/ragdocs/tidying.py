"""The verbs that keep texts true and small, put together for one project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ragdocs.config import Config
from ragdocs.lanes import DOCS, JOURNAL, MEMORY
from ragdocs.project import folders as project
from ragdocs.project import registry
from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.stores.questions import QuestionLog
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import Document, Question

# Each part is imported when it is first asked for: a run needs one or two of them.
if TYPE_CHECKING:
    from ragdocs.verbs.handover import Handovers
    from ragdocs.verbs.links import Links
    from ragdocs.verbs.living.living import Living
    from ragdocs.verbs.memories.draft import Drafts
    from ragdocs.verbs.memories.restating import Restating
    from ragdocs.verbs.memories.timeline import Timeline
    from ragdocs.verbs.quality.contradictions import Contradictions
    from ragdocs.verbs.quality.gaps import Gaps
    from ragdocs.verbs.quality.repairs import Repairs

# Files that a remark names.
MOST_CHANGED = 3


@dataclass
class Tidying:
    """What a person asks now and then about memories and documentation."""

    config: Config
    # The lanes that are open now.
    corpora: Callable[[], Mapping[str, Corpus]]
    # Returns a lane, or says why it is closed.
    corpus: Callable[[str], Corpus]
    clock: Callable[[], datetime]
    redactor: Redactor
    links: Callable[[], Links]
    access: Callable[[], AccessLog]
    living: Callable[[], Living]
    # Closes the files that are opened here.
    resources: ExitStack

    @property
    def drafts(self) -> Drafts:
        """Proposals for merges."""
        from ragdocs.verbs.memories.draft import Drafts

        return Drafts(self.corpus(MEMORY.name))

    @property
    def timeline(self) -> Timeline:
        """What happened to memories."""
        from ragdocs.verbs.memories.timeline import Timeline

        return Timeline(self.corpus(MEMORY.name), self.clock)

    @property
    def contradictions(self) -> Contradictions:
        """Memories that cannot all hold."""
        from ragdocs.verbs.quality.contradictions import Contradictions

        return Contradictions(self.corpus(MEMORY.name), self.clock(), self._compared)

    @cached_property
    def _compared(self) -> SideFile:
        """The statements of all projects of this user that are known to contradict each other."""
        from ragdocs.verbs.quality.contradictions import TABLES

        path = project.cache_dir() / "contradictions.sqlite"
        file = SideFile(path, TABLES, name="cache of contradictions", wait_seconds=0.5)
        return self.resources.enter_context(file)

    @property
    def restating(self) -> Restating:
        """Memories and documentation that say the same."""
        from ragdocs.verbs.memories.restating import Restating

        docs = self.corpus(DOCS.name)
        return Restating(self.corpus(MEMORY.name), docs, self.access(), self.clock)

    @property
    def repairs(self) -> Repairs:
        """Safe repairs of memories."""
        from ragdocs.verbs import file_history
        from ragdocs.verbs.quality.repairs import Repairs

        corpus = self.corpus(MEMORY.name)
        root = self.config.root
        committed = partial(file_history.first_commits, root, corpus.lane.base or MEMORY.base)
        renamed = partial(file_history.renamed, root)
        corpora = list(self.corpora().values())
        return Repairs(corpus, corpora, root, renamed, committed, self.living)

    @property
    def gaps(self) -> Gaps:
        """What the documentation lacks."""
        from ragdocs.verbs.quality.gaps import Gaps

        unanswered = None
        if self.questions is not None:
            unanswered = self.questions.unanswered
        return Gaps(self.links(), self.corpora().get(DOCS.name), unanswered)

    @property
    def handovers(self) -> Handovers:
        """What somebody who takes over should know."""
        from ragdocs.verbs import file_history
        from ragdocs.verbs.handover import Handovers

        corpora = self.corpora()
        unanswered: Callable[[], Sequence[Question]] = tuple
        if self.questions is not None:
            unanswered = self.questions.unanswered
        return Handovers(
            corpora.get(MEMORY.name),
            corpora.get(DOCS.name),
            corpora.get(JOURNAL.name),
            self.clock,
            partial(file_history.changed_files, self.config.root),
            unanswered,
            self._drift,
        )

    def _drift(self, documents: Sequence[Document]) -> dict[str, str]:
        """Map documents to what became of the files that they link to, if anything did."""
        from ragdocs.verbs.living.drift import STATES

        remarks = {}
        for document_id, states in self.living().drift.look(documents).items():
            changed = [f"{link.name} {link.state}" for link in states if link.state in STATES]
            if changed:
                remarks[document_id] = ", ".join(changed[:MOST_CHANGED])
        return remarks

    @cached_property
    def questions(self) -> QuestionLog | None:
        """What was asked and not found; None unless the user keeps it."""
        if not self.config.server.keep_questions:
            return None
        key = project.project_key(registry.main_worktree(self.config.root))
        path = project.state_dir() / "questions.sqlite"
        log = QuestionLog(path, key, lambda text: self.redactor.redact(text).text)
        return self.resources.enter_context(closing(log))
