"""The composition root: a configuration becomes stores, indexes, an encoder, corpora and verbs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs import __version__, caller
from ragdocs.caller import Role
from ragdocs.config import NO_DATABASE, Config
from ragdocs.engines.local.opening import current_generation, open_index
from ragdocs.errors import UnavailableError
from ragdocs.lanes import COMMITS, DOCS, JOURNAL, MEMORY, SOURCES, Lane
from ragdocs.open_lanes import OpenLane, corpora
from ragdocs.project import folders as project
from ragdocs.project import layout, registry
from ragdocs.project.identity import repository_id
from ragdocs.protocols import AccessLog, Index, Readable, Summaries
from ragdocs.search.corpus import Corpus, Progress
from ragdocs.search.encoders.choose import configured_encoder
from ragdocs.stores.files.store import FileStore
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text import times
from ragdocs.text.recipe import CHUNKER
from ragdocs.text.redaction.redact import CallersRedactor
from ragdocs.types import Report

# Each part of the verbs is imported when it is first called: most runs need few of them.
if TYPE_CHECKING:
    from ragdocs.stores.git.commits import CommitStore
    from ragdocs.stores.git.journal import JournalStore
    from ragdocs.stores.sources.shelf import Shelf, SourceState
    from ragdocs.team import Team
    from ragdocs.tidying import Tidying
    from ragdocs.verbs.commits import Commits
    from ragdocs.verbs.context.pack import Packs
    from ragdocs.verbs.context.repo import Repository
    from ragdocs.verbs.context.scope import Scope
    from ragdocs.verbs.docs import Documents
    from ragdocs.verbs.finding import Finding
    from ragdocs.verbs.journal import Journal
    from ragdocs.verbs.links import Links
    from ragdocs.verbs.living.living import Living
    from ragdocs.verbs.memories.banks import Elsewhere
    from ragdocs.verbs.memories.care import EntryCare
    from ragdocs.verbs.memories.edit import Edits
    from ragdocs.verbs.memories.entries import Entries
    from ragdocs.verbs.memories.history import Versions
    from ragdocs.verbs.memories.merge import Merges
    from ragdocs.verbs.memories.recall import Bank, Recall
    from ragdocs.verbs.memories.write import Memories
    from ragdocs.verbs.quality.explain import Explain
    from ragdocs.verbs.quality.health import ProjectState
    from ragdocs.verbs.texts import Texts


class Workspace(AbstractContextManager["Workspace"]):
    """Everything that serves one project in one process."""

    def __init__(
        self,
        config: Config,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: tzinfo = times.LOCAL,
        *,
        lanes: Collection[str] | None = None,
        room: int | None = None,
    ) -> None:
        """Open these lanes of those that are configured, or all.

        `room` is how long an answer may be. Days begin at midnight of the caller's zone, or `zone`.
        """
        self.config = config
        self.clock: Callable[[], datetime] = lambda: clock().astimezone(
            caller.current().zone or zone
        )
        self.room = room or config.server.answer_chars
        self._wanted = lanes
        self._resources = ExitStack()
        encoder = configured_encoder(config)
        self.encoder, self.identity, self.dim, self.embedding_unavailable = encoder
        origin = config.origin("redaction.patterns")
        self.redactor = CallersRedactor(os.environ, config.redaction.patterns, origin)
        self.open_lanes: dict[str, OpenLane] = {}
        self.closed: dict[str, UnavailableError] = {}
        # The lanes whose texts and indexes are in the team database.
        self._shared: dict[str, Lane] = {}
        self._open_configured()

    def _open_configured(self) -> None:
        """Open the lanes that are configured, and those of the documentation if wanted."""
        config = self.config
        # The user's own bank may be a link; a link in a project may have come with a clone.
        trusted = config.memory.storage_strategy == "user"
        # Which documents there are is a question to git: it is asked only where they are searched.
        is_wanted = self._wanted is None or DOCS.name in self._wanted
        is_shared = config.team.database != NO_DATABASE
        if config.docs.enabled and is_wanted:
            docs = layout.docs_lane(config)
            if is_shared:
                self._open_shared(docs)
            else:
                self._open(docs, lambda: FileStore(config.root, docs, trusted_root=trusted))
        if config.docs.sources:
            # Always of this machine: a team shares what a project has.
            self._open(layout.sources_lane(config), self._shelf)
        if config.memory.enabled:
            memory = layout.memory_lane(config)
            # The user's own bank is nobody else's.
            if is_shared and not trusted:
                self._open_shared(memory)
            else:
                root = partial(layout.memory_root, config)
                self._open(memory, lambda: FileStore(root(), memory, trusted_root=trusted))
        if config.journal.enabled:
            self._open(layout.journal_lane(config), self._journal_store)
        if config.docs.commits:
            self._open(COMMITS, self._commit_store)

    def __exit__(self, *_: object) -> None:
        self.close()

    def corpus(self, lane: str) -> Corpus:
        """Return the pipeline of a lane, for those who look into it rather than ask it."""
        if lane in self.open_lanes and lane not in corpora(self.open_lanes):
            raise UnavailableError(f"the {lane} lane is for the user of this machine only")
        return self._corpus(lane, lane, layout.SWITCHES.get(lane, ""))

    def explain(self, lane: str) -> Explain:
        """Return the verb that tells why a search of a lane finds what it finds."""
        from ragdocs.verbs.quality.explain import Explain

        return Explain(self.corpus(lane), self.clock)

    @property
    def finding(self) -> Finding:
        """The search over all lanes that are open."""
        from ragdocs.verbs.finding import Finding

        return Finding(corpora(self.open_lanes), self.clock)

    @property
    def documents(self) -> Documents:
        """The verbs of the documentation lane."""
        from ragdocs.verbs.docs import Documents

        opened = corpora(self.open_lanes, DOCS, SOURCES)
        if not opened or DOCS.name in self.closed:
            opened = {DOCS.name: self._corpus(DOCS.name, "docs")}
        return Documents(opened.get(DOCS.name), self.clock, opened.get(SOURCES.name))

    def sources(self) -> list[SourceState]:
        """Tell how each source beyond the project stands."""
        from ragdocs.stores.sources.shelf import Shelf

        if not corpora(self.open_lanes, SOURCES):
            return []
        store = self.open_lanes[SOURCES.name].store
        assert isinstance(store, Shelf)
        return store.states()

    @property
    def memories(self) -> Memories:
        """The verbs of the memory lane."""
        from ragdocs.verbs.memories.write import Memories

        return Memories(self._corpus(MEMORY.name, "memory"), self.clock, self.living.refs.head)

    @property
    def edits(self) -> Edits:
        """The verbs that change a part of a memory, or its name."""
        from ragdocs.verbs.memories.edit import Edits

        return Edits(self._corpus(MEMORY.name, "memory"))

    @property
    def versions(self) -> Versions:
        """The verbs about earlier texts of memories."""
        from ragdocs.verbs.memories.history import Versions

        return Versions(self._corpus(MEMORY.name, "memory"))

    @property
    def texts(self) -> Texts:
        """The verbs of one memory or document as a person reads it."""
        from ragdocs.verbs.texts import Texts

        lanes = (DOCS, SOURCES, MEMORY)
        return Texts(corpora(self.open_lanes, *lanes), self.config.root, self.clock)

    @property
    def merges(self) -> Merges:
        """The verbs that consolidate memories."""
        from ragdocs.verbs.memories.merge import Merges

        return Merges(self._corpus(MEMORY.name, "memory"), self.clock, self.living.refs.head)

    @cached_property
    def tidying(self) -> Tidying:
        """The verbs that keep texts true and small."""
        from ragdocs.tidying import Tidying

        return Tidying(
            self.config,
            partial(corpora, self.open_lanes),
            self.corpus,
            self.clock,
            self.redactor,
            lambda: self.links,
            lambda: self.access,
            lambda: self.living,
            self._resources,
        )

    @cached_property
    def links(self) -> Links:
        """The verbs about the links between memories and documents."""
        from ragdocs.verbs.links import Links

        return Links(corpora(self.open_lanes, MEMORY, DOCS), self.config.root, self.clock)

    @cached_property
    def living(self) -> Living:
        """The verbs about what became of what memories and documents are about."""
        from ragdocs.verbs.living.living import Living

        opened = partial(corpora, self.open_lanes)
        return Living(self.config.root, opened, self.clock, self.redactor, self._resources)

    @cached_property
    def elsewhere(self) -> Elsewhere:
        """The memories of this user's other projects."""
        from ragdocs.verbs.memories.banks import Elsewhere, Snapshots

        snapshots = Snapshots(current_generation, self._read_only)
        return Elsewhere(self.config, layout.memory_lane(self.config), snapshots)

    @property
    def recall(self) -> Recall:
        """The verbs that go by time and place; not only this project's."""
        from ragdocs.verbs.memories.recall import Recall

        own = partial(self._corpus, MEMORY.name, "memory")
        name = self.team.project.name if MEMORY.name in self._shared else ""
        return Recall(self.config.root, own, self._other_banks, self.clock, name)

    def _other_banks(self) -> tuple[list[Bank], list[str]]:
        """Return the banks of other projects, and notes about those that are left out."""
        if caller.current().confined:
            return [], ["your token is for this project only"]
        if MEMORY.name in self._shared:
            lane = replace(self._shared[MEMORY.name], writable=False)
            return self.team.banks(lane, lambda scope: self._shared_lane(lane, scope).corpus)
        return self.elsewhere.banks()

    @property
    def entries(self) -> Entries:
        """The verbs of memories that are known by ids."""
        from ragdocs.verbs.memories.entries import Entries

        corpus = self._corpus(MEMORY.name, "memory")
        weight = self.config.memory.entries_vector_weight
        folder = None
        if MEMORY.name not in self._shared:
            folder = Path(corpus.store.locate(""))
        return Entries(corpus, self.access, self.clock, weight, folder)

    @property
    def entry_care(self) -> EntryCare:
        """The verbs that look after entries in the course of time."""
        from ragdocs.verbs.memories.care import EntryCare

        return EntryCare(self._corpus(MEMORY.name, "memory"), self.access, self.clock)

    @property
    def repository(self) -> Repository:
        """The verbs of what the repository knows about itself."""
        from ragdocs.verbs.context.repo import Repository

        corpus = self._corpus(MEMORY.name, "memory")
        return Repository(self.config.root, corpus, self.scope, self.summaries, self.clock)

    @property
    def packs(self) -> Packs:
        """What can be known at the beginning of a run; of the lanes that are there."""
        from ragdocs.verbs.context.pack import Packs
        from ragdocs.verbs.context.repomap import CODE, RepoMap

        opened = corpora(self.open_lanes)
        files = RepoMap(
            FileStore(self.config.root, CODE),
            self.outlines,
            self.redactor,
            project.project_key(self.config.root),
        )
        own = opened.get(MEMORY.name), opened.get(DOCS.name), opened.get(SOURCES.name)
        drift = self.living.drift
        return Packs(self.config.root, *own, lambda: self.repository, files, self.clock, drift)

    @cached_property
    def outlines(self) -> SideFile:
        """What is known about source files of all projects of this user."""
        from ragdocs.verbs.context.repomap import open_cache

        return self._resources.enter_context(open_cache())

    def scope(self, policy: str | None = None, branch: str | None = None) -> Scope:
        """Return whose knowledge is asked for.

        As configured, and of the branch that is checked out, unless said.
        """
        from ragdocs.verbs.context.scope import find_scope

        own_bank = self.config.memory.storage_strategy != "user"
        identify: Callable[[str], str] = partial(repository_id, self.config.root)
        if MEMORY.name in self._shared:
            identify = self.team.repository_id
            # A server without a clone has no branch of its own.
            branch = self.team.branch if branch is None else branch
        return find_scope(
            self.config.root,
            policy or self._branch_scope(),
            identify,
            own_bank=own_bank,
            branch=branch,
        )

    def summaries(self, where: Scope) -> Summaries:
        """Return the summaries of a scope."""
        from ragdocs.stores.summaries import Limits, SummaryFile

        memory = self.config.memory
        limits = Limits(
            memory.max_summaries_in_context,
            memory.summaries_max_entries,
            memory.summaries_max_bytes,
        )
        if MEMORY.name in self._shared:
            return self.team.summaries(where.branch, limits, self.redactor)
        folder = os.path.realpath(project.data_dir() / "repos" / where.identity)
        return SummaryFile(Path(folder), limits, self.redactor)

    @property
    def commits(self) -> Commits:
        """The verbs of the project's own history."""
        from ragdocs.verbs.commits import Commits

        return Commits(self.corpus(COMMITS.name), self.clock)

    @property
    def journal(self) -> Journal:
        """The verbs of the journal."""
        from ragdocs.stores.git.exchange import Exchange
        from ragdocs.stores.git.journal import JournalStore
        from ragdocs.verbs.journal import Journal

        corpus = self._corpus(JOURNAL.name, "journal")
        store = self.open_lanes[JOURNAL.name].store
        assert isinstance(store, JournalStore)
        settings = self.config.journal
        return Journal(
            corpus,
            self.clock,
            settings.context_weight,
            store.short,
            Exchange(store).run,
            settings.default_salience_threshold,
            settings.max_results,
        )

    @cached_property
    def access(self) -> AccessLog:
        """What is known about the use of memories.

        Of the user's bank, or of this project in all its worktrees.
        """
        from ragdocs.stores.access import SqliteAccessLog

        if MEMORY.name in self._shared:
            return self.team.access(self._shared[MEMORY.name])
        own = self.config.memory.storage_strategy != "user"
        key = project.project_key(registry.main_worktree(self.config.root)) if own else "user"
        log = SqliteAccessLog(project.state_dir() / "access.sqlite", key)
        return self._resources.enter_context(closing(log))

    @cached_property
    def team(self) -> Team:
        """The team database, and this project in it."""
        from ragdocs.team import Team

        return Team(self.config)

    def role(self) -> Role:
        """Return what the caller may do in this project."""
        if not self._shared:
            return caller.current().role
        return self.team.role()

    @property
    def shared_lanes(self) -> tuple[str, ...]:
        """The lanes whose texts and indexes are in the team database."""
        return tuple(self._shared)

    def follow_branch(self) -> None:
        """Read the documentation of the branch that is worked on now, as soon as it is pushed."""
        docs = self._shared.get(DOCS.name)
        if docs is None:
            return
        open_lane = self.open_lanes.get(DOCS.name)
        try:
            scope = self.team.scope(docs)
        except UnavailableError:
            return
        if open_lane is None or open_lane.store.scope != scope:  # type: ignore[union-attr]
            self._open_shared(docs)

    def load(self) -> None:
        """Open the snapshot of each index, where there is one that can be trusted."""
        for open_lane in self.open_lanes.values():
            if open_lane.feed is None:
                open_lane.index.open()

    def sync(self, progress: Progress | None = None) -> dict[str, Report]:
        """Bring every index up to its files."""
        return {name: lane.corpus.sync(progress=progress) for name, lane in self.open_lanes.items()}

    def embed(
        self, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Encode what has no vector yet, in every lane."""
        return sum(lane.corpus.embed(progress, stop) for lane in self.open_lanes.values())

    def save(self) -> None:
        """Write a snapshot of each index that changed."""
        for open_lane in self.open_lanes.values():
            open_lane.index.save()

    def close(self) -> None:
        """Let go of files and memory without saving; connections belong to the team database."""
        for open_lane in self.open_lanes.values():
            open_lane.index.close()
        if self.encoder is not None:
            self.encoder.close()
        self._resources.close()

    def status(self) -> ProjectState:
        """Tell how each index stands against its files."""
        from ragdocs.verbs.quality.health import ProjectState, closed_state, lane_state

        opened = corpora(self.open_lanes).values()
        lanes = [lane_state(corpus, self.identity) for corpus in opened]
        for name in self._shared:
            if name in self.closed:
                lanes.append(closed_state(name, self.identity, str(self.closed[name])))
        return ProjectState(str(self.config.root), __version__, tuple(lanes))

    def rebuilt(self, lane: str, progress: Progress | None = None) -> Index:
        """Build an index of a lane from its files alone, in memory, beside the live one."""
        open_lane = self.open_lanes[lane]
        scratch = self._index(open_lane.corpus.lane, None)
        corpus = Corpus(open_lane.corpus.lane, open_lane.store, scratch, self.encoder)
        corpus.embedding_unavailable = open_lane.corpus.embedding_unavailable
        corpus.sync(progress=progress)
        corpus.embed(progress)
        return scratch

    def _branch_scope(self) -> str:
        """Return the branch scope of the current caller's environment.

        Unless something stronger is configured.
        """
        origin = self.config.origin("memory.branch_scope")
        is_stronger = origin == "flag" or origin.startswith("environment RAGDOCS_")
        configured = self.config.memory.branch_scope
        return configured if is_stronger else caller.current().branch_scope or configured

    def _shelf(self) -> Shelf:
        from ragdocs.stores.sources.open import open_shelf

        return open_shelf(self.config, self.redactor)

    def _commit_store(self) -> CommitStore:
        from ragdocs.stores.git.commits import CommitStore

        return CommitStore(self.config.root)

    def _journal_store(self) -> JournalStore:
        from ragdocs.stores.git.journal import JournalStore

        journal = self.config.journal
        root = layout.journal_root(self.config)
        return JournalStore(
            root, author=journal.author, auto_gc=journal.auto_gc, ignored_by=self.config.root
        )

    def _open(
        self, lane: Lane, make: Callable[[], FileStore | CommitStore | JournalStore | Shelf]
    ) -> None:
        """Open a lane; one that must not be opened stays closed and says why when asked."""
        if self._wanted is not None and lane.name not in self._wanted:
            return
        try:
            store = make()
            index = self._index(lane, layout.index_root(self.config, lane))
        except UnavailableError as error:
            self.closed[lane.name] = error
            return
        self.open_lanes[lane.name] = OpenLane(self._made_corpus(lane, store, index), store, index)

    def _open_shared(self, lane: Lane) -> None:
        """Open a lane in the team database; one that cannot be opened says why when asked."""
        if self._wanted is not None and lane.name not in self._wanted:
            return
        self._shared[lane.name] = lane
        self.closed.pop(lane.name, None)
        try:
            open_lane = self._shared_lane(lane, self.team.scope(lane))
            # Vectors of another model are refused here, before anything is read or written.
            open_lane.index.open()
            self.open_lanes[lane.name] = open_lane
        except UnavailableError as error:
            self.closed[lane.name] = error

    def pushed(self, branch: str, *, is_trial: bool) -> OpenLane:
        """Return the documentation of a branch, to be written to."""
        lane = layout.docs_lane(self.config)
        scope = self.team.pushed_scope(branch, is_trial=is_trial)
        open_lane = self._shared_lane(lane, scope, writable=True)
        open_lane.index.open()
        return open_lane

    def _shared_lane(self, lane: Lane, scope: int, *, writable: bool = False) -> OpenLane:
        from ragdocs.engines.postgres.index import PostgresIndex
        from ragdocs.stores.postgres.feed import Feed
        from ragdocs.stores.postgres.texts import RowStore

        database = self.team.database
        store = RowStore(database, scope, lane, writable=writable or lane.writable)
        index = PostgresIndex(
            database, scope, recipe=_recipe(lane), encoder=self._vectors_of(), dim=self.dim
        )
        corpus = self._made_corpus(lane, store, index)
        corpus.behind = partial(self.team.behind, scope)
        return OpenLane(corpus, store, index, Feed(database, scope))

    def _made_corpus(self, lane: Lane, store: Readable, index: Index) -> Corpus:
        corpus = Corpus(lane, store, index, self.encoder, self.redactor)
        corpus.embedding_unavailable = self.embedding_unavailable or corpus.embedding_unavailable
        if lane.writable:
            # Weak, or a workspace would keep its indexes in memory and its files open for longer.
            corpus.recorder = partial(_note_written, weakref.ref(self))
        return corpus

    def _read_only(self, lane: Lane, root: Path, directory: Path) -> Corpus | None:
        """Open the snapshot of another project, or nothing if it cannot be trusted."""
        index = self._index(lane, directory)
        self._resources.callback(index.close)
        if not index.open():
            return None
        corpus = Corpus(lane, FileStore(root, lane), index, self.encoder)
        corpus.embedding_unavailable = self.embedding_unavailable or corpus.embedding_unavailable
        return corpus

    def _index(self, lane: Lane, directory: Path | None) -> Index:
        return open_index(directory, recipe=_recipe(lane), encoder=self._vectors_of(), dim=self.dim)

    def _vectors_of(self) -> str:
        """Return what the vectors of this workspace are made by."""
        if self.encoder is not None and self.encoder.latin_only:
            # Which texts have a vector is a part of what the vectors are.
            return f"{self.identity}/latin"
        return self.identity

    def _corpus(self, lane: str, section: str, hint: str = "") -> Corpus:
        if lane in self.closed and lane in self._shared:
            # The database may be back, or the documentation may have been pushed meanwhile.
            self._open_shared(self._shared[lane])
        if lane in self.closed:
            raise self.closed[lane]
        if lane not in self.open_lanes:
            hint = hint or f"Turn it on: write enabled = true under [{section}] in config.toml"
            raise UnavailableError(f"the {section} lane is switched off for this project", hint)
        return self.open_lanes[lane].corpus


def _note_written(workspace: weakref.ref[Workspace], *news: Any) -> None:
    opened = workspace()
    if opened is not None:
        opened.living.drift.note_written(*news)


def _recipe(lane: Lane) -> str:
    return f"{CHUNKER}/{lane.chunking.target}/{lane.chunking.limit}"
