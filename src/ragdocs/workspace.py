"""The composition root: a configuration becomes stores, indexes, an encoder, corpora and verbs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property, partial
from pathlib import Path

from ragdocs import __version__, caller
from ragdocs.config import Config
from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import UnavailableError
from ragdocs.lanes import COMMITS, DOCS, JOURNAL, MEMORY, Lane
from ragdocs.project import folders as project
from ragdocs.project import layout, registry
from ragdocs.protocols import Encoder
from ragdocs.search.chunk import CHUNKER
from ragdocs.search.corpus import Corpus, Progress
from ragdocs.search.encoders.minilm import open_encoder
from ragdocs.stores.access import AccessLog
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.git.commits import CommitStore
from ragdocs.stores.git.exchange import Exchange
from ragdocs.stores.git.journal import JournalStore
from ragdocs.stores.summaries import Limits, Summaries
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text import times
from ragdocs.text.merge import merge
from ragdocs.text.redaction.redact import CallersRedactor
from ragdocs.types import Report
from ragdocs.verbs.commits import Commits
from ragdocs.verbs.context.pack import Packs
from ragdocs.verbs.context.repo import Repository
from ragdocs.verbs.context.repomap import CODE, TABLES, RepoMap
from ragdocs.verbs.context.scope import Scope, find_scope
from ragdocs.verbs.docs import Documents
from ragdocs.verbs.journal import Journal
from ragdocs.verbs.journal_shapes import Exchanged
from ragdocs.verbs.memories.banks import Elsewhere
from ragdocs.verbs.memories.care import EntryCare
from ragdocs.verbs.memories.edit import Edits
from ragdocs.verbs.memories.entries import Entries
from ragdocs.verbs.memories.history import Versions
from ragdocs.verbs.memories.merge import Merges
from ragdocs.verbs.memories.recall import Recall
from ragdocs.verbs.memories.write import Memories
from ragdocs.verbs.quality.explain import Explain
from ragdocs.verbs.quality.status import lane_status
from ragdocs.verbs.shapes import Status


@dataclass(frozen=True, slots=True)
class Place:
    """A corpus together with the parts of it that live on this machine."""

    corpus: Corpus
    store: FileStore | CommitStore
    index: LocalIndex


class Workspace:
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

        `room` is how long an answer may be.

        Days begin at midnight in the zone of the caller, or else in `zone`.
        """
        self.config = config
        self.clock: Callable[[], datetime] = lambda: clock().astimezone(
            caller.current().zone or zone
        )
        self.room = room or config.server.answer_chars
        self._wanted = lanes
        self.encoder, self.identity, self.dim, self.silence = _encoder(config)
        origin = config.origin("redaction.patterns")
        self.redactor = CallersRedactor(os.environ, config.redaction.patterns, origin)
        self.places: dict[str, Place] = {}
        self.closed: dict[str, UnavailableError] = {}
        # The user's own bank may be a link; a project's folder that leads elsewhere may have come
        # with a clone.
        trusted = config.memory.storage_strategy == "user"
        if config.docs.enabled:
            self._open(
                docs := docs_lane(config),
                lambda: FileStore(config.root, docs, trusted_root=trusted),
            )
        if config.memory.enabled:
            memory = memory_lane(config)
            self._open(
                memory, lambda: FileStore(layout.memory_root(config), memory, trusted_root=trusted)
            )
        if config.journal.enabled:
            self._open(journal_lane(config), self._journal_store)
        if config.docs.commits:
            self._open(COMMITS, lambda: CommitStore(config.root))

    def corpus(self, lane: str) -> Corpus:
        """Return the pipeline of a lane, for those who look into it rather than ask it."""
        return self._corpus(lane, lane)

    def explain(self, lane: str) -> Explain:
        """Return the verb that tells why a search of a lane finds what it finds."""
        return Explain(self.corpus(lane), self.clock)

    @property
    def documents(self) -> Documents:
        """The verbs of the documentation lane."""
        return Documents(self._corpus(DOCS.name, "docs"), self.clock, self.room)

    @property
    def memories(self) -> Memories:
        """The verbs of the memory lane."""
        return Memories(self._corpus(MEMORY.name, "memory"), self.clock, self.room)

    @property
    def edits(self) -> Edits:
        """The verbs that change a part of a memory, or its name."""
        return Edits(self._corpus(MEMORY.name, "memory"), self.room)

    @property
    def versions(self) -> Versions:
        """The verbs about earlier texts of memories."""
        return Versions(self._corpus(MEMORY.name, "memory"), self.clock, self.room)

    @property
    def merges(self) -> Merges:
        """The verbs that consolidate memories."""
        return Merges(self._corpus(MEMORY.name, "memory"), self.clock, self.room)

    @cached_property
    def elsewhere(self) -> Elsewhere:
        """The memories of this user's other projects."""
        return Elsewhere(self.config, memory_lane(self.config), self._read_only)

    @property
    def recall(self) -> Recall:
        """The verbs that go by time and place; not only this project's."""
        own = partial(self._corpus, MEMORY.name, "memory")
        return Recall(self.config.root, own, self.elsewhere.banks, self.clock, self.room)

    @property
    def entries(self) -> Entries:
        """The verbs of memories that are known by ids."""
        corpus, memory = self._corpus(MEMORY.name, "memory"), self.config.memory
        return Entries(corpus, self.access, self.clock, self.room, memory.entries_vector_weight)

    @property
    def entry_care(self) -> EntryCare:
        """The verbs that look after entries in the course of time."""
        return EntryCare(self._corpus(MEMORY.name, "memory"), self.access, self.clock)

    @property
    def repository(self) -> Repository:
        """The verbs of what the repository knows about itself."""
        corpus, chars = self._corpus(MEMORY.name, "memory"), self.room
        return Repository(self.config.root, corpus, self.scope, self.summaries, self.clock, chars)

    @property
    def packs(self) -> Packs:
        """What can be known at the beginning of a run; of the lanes that are there."""
        places = {name: place.corpus for name, place in self.places.items()}
        files = RepoMap(
            FileStore(self.config.root, CODE),
            self.outlines,
            self.redactor,
            project.project_key(self.config.root),
        )
        own = places.get(MEMORY.name), places.get(DOCS.name)
        return Packs(self.config.root, *own, lambda: self.repository, files, self.clock)

    @cached_property
    def outlines(self) -> SideFile:
        """What is known about source files of all projects of this user."""
        return SideFile(
            project.cache_dir() / "outlines.sqlite",
            TABLES,
            name="cache of outlines",
            wait_seconds=1.0,
        )

    def scope(self, policy: str | None = None, branch: str | None = None) -> Scope:
        """Return whose knowledge is asked for.

        As configured, and of the branch that is checked out, unless said.
        """
        own_bank = self.config.memory.storage_strategy != "user"
        return find_scope(
            self.config.root, policy or self._branch_scope(), own_bank=own_bank, branch=branch
        )

    def summaries(self, where: Scope) -> Summaries:
        """Return the summaries of a scope."""
        memory = self.config.memory
        limits = Limits(
            memory.max_summaries_in_context,
            memory.summaries_max_entries,
            memory.summaries_max_bytes,
        )
        folder = os.path.realpath(project.data_dir() / "repos" / where.identity)
        return Summaries(Path(folder), limits, self.redactor)

    @property
    def commits(self) -> Commits:
        """The verbs of the project's own history."""
        hint = "Turn it on: write commits = true under [docs] in config.toml"
        return Commits(self._corpus(COMMITS.name, "commits", hint), self.clock, self.room)

    @property
    def journal(self) -> Journal:
        """The verbs of the journal."""
        corpus = self._corpus(JOURNAL.name, "journal")
        store = self.places[JOURNAL.name].store
        assert isinstance(store, JournalStore)

        def exchange(remote: str, resolved: Mapping[str, str]) -> Exchanged:
            outcome = Exchange(store, lambda *texts: astuple(merge(*texts))).run(remote, resolved)
            return Exchanged(
                remote=outcome.remote,
                branch=outcome.branch,
                received=outcome.received,
                sent=outcome.sent,
                merged=[path.removesuffix(".md") for path in outcome.merged],
                notes=[],
            )

        settings = self.config.journal
        return Journal(
            corpus,
            self.clock,
            self.room,
            settings.context_weight,
            store.short,
            exchange,
            settings.default_salience_threshold,
            settings.max_results,
        )

    @cached_property
    def access(self) -> AccessLog:
        """What is known about the use of memories.

        Of the user's bank, or of this project in all its worktrees.
        """
        own = self.config.memory.storage_strategy != "user"
        key = project.project_key(registry.main_worktree(self.config.root)) if own else "user"
        return AccessLog(project.state_dir() / "access.sqlite", key)

    def load(self) -> None:
        """Open the snapshot of each index, where there is one that can be trusted."""
        for place in self.places.values():
            place.index.open()

    def sync(self, progress: Progress | None = None) -> dict[str, Report]:
        """Bring every index up to its files."""
        return {name: place.corpus.sync(progress=progress) for name, place in self.places.items()}

    def embed(
        self, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Encode what has no vector yet, in every lane."""
        return sum(place.corpus.embed(progress, stop) for place in self.places.values())

    def save(self) -> None:
        """Write a snapshot of each index that changed."""
        for place in self.places.values():
            place.index.save()

    def status(self) -> Status:
        """Tell how each index stands against its files."""
        lanes = [lane_status(place.corpus, self.identity) for place in self.places.values()]
        root = str(self.config.root)
        return Status(
            project=root,
            version=__version__,
            ready=True,
            watcher="off",
            heartbeat=None,
            lanes=lanes,
        )

    def rebuilt(self, lane: str, progress: Progress | None = None) -> LocalIndex:
        """Build an index of a lane from its files alone, beside the live one.

        And leave nothing on disk.
        """
        place = self.places[lane]
        scratch = self._index(place.corpus.lane, None)
        corpus = Corpus(place.corpus.lane, place.store, scratch, self.encoder)
        corpus.silence = place.corpus.silence
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

    def _journal_store(self) -> JournalStore:
        journal = self.config.journal
        root = layout.journal_root(self.config)
        return JournalStore(
            root, author=journal.author, auto_gc=journal.auto_gc, ignored_by=self.config.root
        )

    def _open(self, lane: Lane, make: Callable[[], FileStore | CommitStore]) -> None:
        """Open a lane; one that must not be opened stays closed, says why when asked.

        And leaves the others alone.
        """
        if self._wanted is not None and lane.name not in self._wanted:
            return
        try:
            store = make()
            index = self._index(lane, layout.index_root(self.config, lane))
        except UnavailableError as error:
            self.closed[lane.name] = error
            return
        corpus = Corpus(lane, store, index, self.encoder, self.redactor)
        corpus.silence = self.silence or corpus.silence
        self.places[lane.name] = Place(corpus, store, index)

    def _read_only(self, lane: Lane, root: Path, directory: Path) -> Corpus | None:
        """Open the snapshot of another project, or nothing if it cannot be trusted."""
        index = self._index(lane, directory)
        if not index.open():
            return None
        corpus = Corpus(lane, FileStore(root, lane), index, self.encoder)
        corpus.silence = self.silence or corpus.silence
        return corpus

    def _index(self, lane: Lane, directory: Path | None) -> LocalIndex:
        recipe = f"{CHUNKER}/{lane.chunking.target}/{lane.chunking.limit}"
        key = project.signing_key() if directory else b""
        cache = os.path.realpath(project.cache_dir())
        private = directory is not None and directory.is_relative_to(cache)
        return LocalIndex(
            directory, recipe=recipe, encoder=self.identity, dim=self.dim, key=key, mapped=private
        )

    def _corpus(self, lane: str, section: str, hint: str = "") -> Corpus:
        if lane in self.closed:
            raise self.closed[lane]
        if lane not in self.places:
            hint = (
                hint
                or f"Turn it on: write enabled = true under [{section}] in config.toml, or run `ragdocs init`"
            )
            raise UnavailableError(f"the {section} lane is switched off for this project", hint)
        return self.places[lane].corpus


def docs_lane(config: Config) -> Lane:
    """Return the documentation lane as configured."""
    docs = config.docs
    include, exclude, largest = (
        tuple(docs.include),
        tuple(docs.exclude),
        config.watch.largest_kb * 1000,
    )
    return replace(
        DOCS, include=include, exclude=exclude, gitignore=docs.gitignore, largest=largest
    )


def memory_lane(config: Config) -> Lane:
    """Return the memory lane as configured."""
    memory = config.memory
    ranking = replace(
        MEMORY.ranking,
        recency_days=memory.recency_boost_days,
        recency_factor=memory.recency_boost_factor,
    )
    # The user's bank lies in no project, so nothing can be reached from it by a relative link.
    base = "" if memory.storage_strategy == "user" else MEMORY.base
    return replace(MEMORY, ranking=ranking, base=base, largest=config.watch.largest_kb * 1000)


def journal_lane(config: Config) -> Lane:
    """Return the lane of the journal as configured."""
    journal = config.journal
    ranking = replace(
        JOURNAL.ranking,
        half_life_days=journal.half_life_days,
        easiest=journal.minimum_salience,
        # Fresh entries need so little that they must not be lost among older candidates; their
        # score stays as it is.
        recency_days=math.ceil(2 * journal.half_life_days),
    )
    return replace(JOURNAL, ranking=ranking)


def _encoder(config: Config) -> tuple[Encoder | None, str, int, str]:
    """Return the encoder, its identity and dimension, and why there is none."""
    if config.embedding.model == "none":
        return None, "none", 1, ""
    try:
        encoder = open_encoder(config.embedding.model, project.cache_dir() / "vectors.sqlite")
        identity, dim = encoder.identity, encoder.dim
    except UnavailableError as error:
        return None, "none", 1, str(error)
    return encoder, identity, dim, ""
