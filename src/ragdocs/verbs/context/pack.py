"""What an agent should know when a run or a step begins, in the order of its worth."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from pathlib import Path, PurePosixPath

from ragdocs.errors import RagdocsError, ValidationError
from ragdocs.project import registry
from ragdocs.protocols import Summaries
from ragdocs.search.corpus import Corpus
from ragdocs.search.succession import Successors, current
from ragdocs.text import outline
from ragdocs.text.checks import check_content
from ragdocs.types import Document, Filter, Findings, Hit, Probe, Query
from ragdocs.verbs import page
from ragdocs.verbs.context import repomap
from ragdocs.verbs.context.budget import Piece, Section
from ragdocs.verbs.context.items import FOLDERS, Item
from ragdocs.verbs.context.repo import Repository
from ragdocs.verbs.context.repomap import Map, RepoMap
from ragdocs.verbs.context.scope import FOLDER, Scope
from ragdocs.verbs.living.drift import Drift, LinkState
from ragdocs.verbs.memories.find import spellings
from ragdocs.verbs.memories.succession import Succession

LEAST_CHARS = 500
MOST_CHARS = 100_000
LONGEST_TASK = 4_000
MOST_FILES = 50
# Conventions hold in every step, and the last summaries are where the next step begins: both get
# most. The rest is about the task, and can be asked for again by name. What a section does not need
# goes to those that want more.
SHARES = {
    "conventions": 0.2,
    "decisions": 0.15,
    "summaries": 0.2,
    "memories": 0.15,
    "docs": 0.15,
    "sources": 0.1,
    "outline": 0.15,
}
# Memories and passages that are worth a look, and what the weakest must have of the best one's
# score. Half of all questions about something else reach 0.16, one in twenty 0.5; weaker ones are
# counted, and a search brings them.
MOST_HITS = 8
MOST_NEWEST = 4 * MOST_HITS
WORTH = 0.5
LEAST_SCORE = 0.3
# Decisions are few and were made on purpose: one too many costs less than one that is not heeded.
LEAST_OF_ITEMS = 0.05
# Definitions of one file; more are one look at the file away.
MOST_DEFINITIONS = 10
# A link from what was found for the task counts as so many from anywhere.
FOUND = 4.0
# How to get the results of a search that a pack leaves out.
SEARCHES = {
    "memories": "<search memories>",
    "docs": "<search documentation>",
    "sources": "<search documentation>",
}


@dataclass(frozen=True, slots=True)
class Task:
    """What a pack is for: words, files, or neither."""

    text: str
    files: tuple[str, ...]
    # Whether texts that others supersede may be in it.
    superseded: bool = False

    @property
    def probe(self) -> str:
        """The words to search for: those of the task, or of the paths."""
        if self.text:
            return self.text
        names: list[str] = []
        for path in self.files:
            names += PurePosixPath(path).with_suffix("").parts[-2:]
        return " ".join(names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which links may point at the files."""
        names: list[str] = []
        for path in self.files:
            names += spellings(path)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The passages of a lane that a pack may show, and how many others there are."""

    hits: Sequence[Hit] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a pack may show, section by section, and of which project and branch it is."""

    project: str
    branch: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Packs:
    """Gathers what packs are made of; a lane or a store that is closed is left out and named."""

    root: Path
    memory: Corpus | None
    docs: Corpus | None
    # Documentation beyond the project, where the caller may read it.
    sources: Corpus | None
    # Raises where memory is switched off.
    repository: Callable[[], Repository]
    files: RepoMap
    clock: Callable[[], datetime]
    drift: Drift

    def gather(
        self,
        max_chars: int = 8000,
        task: str = "",
        files: Sequence[str] = (),
        branch_scope: str | None = None,
        *,
        superseded: bool = False,
    ) -> Candidates:
        """Return what a pack of so many characters chooses from.

        Memories and items that others supersede are left out, unless they are asked for.
        """
        if not LEAST_CHARS <= max_chars <= MOST_CHARS:
            raise ValidationError(
                f"max_chars is {max_chars}", f"Ask for {LEAST_CHARS} to {MOST_CHARS} characters"
            )
        goal = Task(_words(task), self._paths(files), superseded)
        now = self.clock()
        scope, sections = self._knowledge(goal, now, branch_scope)
        memories = self._hits(self.memory, goal, now, scope)
        passages = Chosen()
        if goal.probe:
            passages = self._hits(self.docs, goal, now, None)
        heading = "Memories" if goal.probe else "Latest memories"
        documents = [hit.document for hit in (*memories.hits, *passages.hits)]
        states = self.drift.look(documents)
        sections += [
            _remembered("memories", heading, memories, self.memory, states),
            _remembered("docs", "Documentation", passages, self.docs, states),
            *self._beyond(goal, now),
            self._outlined(goal, documents, max_chars),
        ]
        branch = ""
        if scope is not None:
            branch = scope.branch
        return Candidates(self.root.name, branch, tuple(sections))

    def _beyond(self, goal: Task, now: datetime) -> list[Section]:
        """Return what documentation beyond the project says about the task, if there is any."""
        if self.sources is None or not goal.text:
            return []
        # The files are those of the project: nothing beyond it links to them.
        passages = self._hits(self.sources, replace(goal, files=()), now, None)
        heading = "Documentation beyond the project, by name and version"
        return [_remembered("sources", heading, passages, self.sources, {})]

    def _knowledge(
        self, goal: Task, now: datetime, branch_scope: str | None
    ) -> tuple[Scope | None, list[Section]]:
        """Return what the repository knows: conventions, decisions, summaries."""
        try:
            repository = self.repository()
            scope = repository.scope(branch_scope, None)
        except ValidationError:
            raise
        except RagdocsError as error:
            name = "conventions, decisions, summaries"
            return None, [Section(name, "", 0.0, trouble=error.message)]

        def conventions() -> Section:
            items = repository.current(repository.items(scope, "convention"))
            items, superseded = self._shown_items(items, goal, now)
            matching = self._matching("convention", goal, scope, now)
            return self._conventions(items, superseded, matching)

        def decisions() -> Section:
            items = repository.current(repository.items(scope, "decision"))
            items, superseded = self._shown_items(items, goal, now)
            matching = self._matching("decision", goal, scope, now)
            return self._decisions(items, superseded, goal, matching)

        def summaries() -> Section:
            return _summaries(repository.summaries(scope))

        return scope, [
            _section_or_trouble("conventions", conventions),
            _section_or_trouble("decisions", decisions),
            _section_or_trouble("summaries", summaries),
        ]

    def _shown_items(
        self, items: Sequence[Item], goal: Task, now: datetime
    ) -> tuple[list[Item], Successors]:
        """Return the items that others do not supersede, or all of them with their successors."""
        if self.memory is None:
            return list(items), {}
        documents = list(map(attrgetter("document"), items))
        superseded = Succession(self.memory, now).successors(documents)
        if goal.superseded:
            return list(items), superseded
        holding = []
        for item in items:
            if item.document.id not in superseded:
                holding.append(item)
        return holding, {}

    def _conventions(
        self, items: Sequence[Item], superseded: Successors, matching: Sequence[str]
    ) -> Section:
        """Return all conventions, those that fit the task first."""
        ranks: dict[str, int] = {}
        for path in matching:
            ranks.setdefault(path, len(ranks))
        ordered = sorted(items, key=lambda item: ranks.get(item.path, len(ranks)))
        return Section(
            "conventions",
            "Conventions",
            SHARES["conventions"],
            [self._piece(item, superseded) for item in ordered],
            _how("convention"),
        )

    def _decisions(
        self, items: Sequence[Item], superseded: Successors, goal: Task, matching: Sequence[str]
    ) -> Section:
        """Return the decisions about the files, then those that fit the task.

        All of them where there is neither.
        """
        chosen = list(items)
        if goal.probe:
            chosen = _about(items, goal, matching)
        return Section(
            "decisions",
            "Decisions",
            SHARES["decisions"],
            [self._piece(item, superseded) for item in chosen],
            _how("decision"),
            len(items) - len(chosen),
        )

    def _matching(self, kind: str, goal: Task, scope: Scope, now: datetime) -> list[str]:
        """Return the paths of items that fit the task, best first."""
        if not goal.probe or self.memory is None:
            return []
        where = Filter(prefix=f"{scope.folder}/{FOLDERS[kind]}/")
        query = Query(probes=(Probe(goal.probe),), limit=page.MOST_RESULTS, where=where)
        hits = self.memory.search(query, now).hits
        return [hit.document.path for hit in hits if hit.score >= LEAST_OF_ITEMS]

    def _piece(self, item: Item, superseded: Successors) -> Piece:
        successors = superseded.get(item.document.id, ())
        return Piece(
            title=item.title,
            text=item.body,
            path=_location(self.memory, item.path),
            at=item.updated,
            impacts=tuple(item.paths),
            links=tuple(self.drift.states(item.document)),
            superseded_by=tuple(document.id for document in successors),
        )

    def _hits(
        self, corpus: Corpus | None, goal: Task, now: datetime, scope: Scope | None
    ) -> Chosen:
        """Return what links to the files, then what fits the task, or the newest."""
        if corpus is None:
            return Chosen()
        where = Filter(hidden=corpus.lane.hidden, alive_at=now)
        visible = partial(_visible, Succession(corpus, now), goal)
        linked: list[Hit] = []
        if goal.files:
            about = replace(where, linked_to=goal.names)
            newest = page.newest(corpus, about, MOST_NEWEST, now)
            linked = self._own(corpus, visible(newest, MOST_NEWEST), scope)
        if goal.probe:
            probes = (Probe(goal.probe),)
            query = Query(probes=probes, limit=page.MOST_RESULTS, superseded="below")
            findings = corpus.search(query, now)
            if not goal.superseded:
                findings = current(findings, query.limit)
            others = self._own(corpus, findings, scope)
            chosen = [*linked, *_worth(others)]
        else:
            newest = page.newest(corpus, where, MOST_NEWEST, now)
            others = self._own(corpus, visible(newest, MOST_NEWEST), scope)
            chosen = [*linked, *others]
        best = list(_by_passage(chosen).values())[:MOST_HITS]
        total = len(_by_passage([*linked, *others]))
        return Chosen(best, total - len(best))

    def _own(self, corpus: Corpus, findings: Findings, scope: Scope | None) -> list[Hit]:
        """Leave out texts of other branches, and in a bank for all projects those of others."""
        if not corpus.lane.writable:
            return list(findings.hits)
        # Items of this branch have sections of their own, and those of others are not this branch's
        # business.
        notes = f"{FOLDER}/"
        if scope is not None:
            notes = f"{scope.folder}/{FOLDERS['note']}/"
        own = []
        for hit in findings.hits:
            path = hit.document.path
            is_item = path.startswith(f"{FOLDER}/") and not path.startswith(notes)
            if not is_item and self._is_of_project(corpus, hit.document):
                own.append(hit)
        return own

    def _is_of_project(self, corpus: Corpus, document: Document) -> bool:
        """Tell whether a memory is of this project; a bank in a project has no others."""
        if corpus.lane.base:
            return True
        owner = document.extra.get("project")
        return owner is None or owner == registry.main_worktree(self.root).name

    def _outlined(self, goal: Task, documents: Sequence[Document], max_chars: int) -> Section:
        """Return the source files that the task and the graph point at, with what they define."""
        mapped = self.files.read()
        linked = self._linked(documents, mapped.files)
        order = repomap.ranked(mapped.files, goal.text, goal.files, linked)
        # A file that defines nothing takes a line and tells nothing, unless no file can be looked
        # into.
        telling = [path for path in order if mapped.files[path] or path in goal.files]
        order = telling or order
        pieces: list[Piece] = []
        room = max_chars
        for path in order:
            text = "\n".join(repomap.chosen_definitions(mapped.files[path], MOST_DEFINITIONS))
            pieces.append(Piece(path, text))
            room -= len(path) + len(text)
            # No pack shows more, whatever the other sections leave.
            if room < 0:
                break
        title = f"Outline of {len(order)} source files, as they are now"
        if len(order) == 1:
            title = "Outline of 1 source file, as it is now"
        return Section(
            "outline",
            title,
            SHARES["outline"],
            pieces,
            _more_files(mapped, has_files=bool(order)),
            len(order) - len(pieces),
            others="more",
        )

    def _linked(
        self, documents: Sequence[Document], files: Mapping[str, object]
    ) -> dict[str, float]:
        """Count the links to each file, those of documents found for the task several times."""
        counts: Counter[str] = Counter()
        for corpus in (self.memory, self.docs):
            if corpus is not None:
                for document in corpus.documents():
                    counts.update(link.target for link in document.links)
        linked: dict[str, float] = {}
        for path in files:
            if path in counts:
                linked[path] = counts[path]
        for document in documents:
            for target in {link.target for link in document.links} & files.keys():
                linked[target] = linked.get(target, 0.0) + FOUND
        return linked

    def _paths(self, files: Sequence[str]) -> tuple[str, ...]:
        """Return the files of a task as paths of the project, or refuse them."""
        if len(files) > MOST_FILES:
            raise ValidationError(
                f"files has more than {MOST_FILES} entries", "Name folders, such as src/auth"
            )
        paths = []
        for path in files:
            relative = path
            # Hooks name files by absolute paths.
            if Path(path).is_absolute():
                relative = os.path.relpath(path, self.root)
            clean = posixpath.normpath(relative.replace("\\", "/"))
            leads_out = clean in {"", ".", ".."} or clean.startswith(("../", "/", "~"))
            has_drive = clean[1:2] == ":"
            if leads_out or has_drive or not clean.isprintable():
                raise ValidationError(
                    f"{path[:80]!r} is not a file of this project", "Give it as src/auth.py"
                )
            paths.append(clean)
        return tuple(dict.fromkeys(paths))


def _by_passage(hits: Sequence[Hit]) -> dict[str, Hit]:
    return {hit.chunk.id: hit for hit in hits}


def _words(task: str) -> str:
    if not task.strip():
        return ""
    check_content(task, "task")
    return " ".join(task.split())[:LONGEST_TASK]


def _section_or_trouble(name: str, make: Callable[[], Section]) -> Section:
    """Return a section, or one that says why it cannot be had."""
    try:
        return make()
    except RagdocsError as error:
        return Section(name, "", 0.0, trouble=f"{type(error).__name__}: {error}")


def _about(items: Sequence[Item], goal: Task, matching: Sequence[str]) -> list[Item]:
    """Return the items about the files, about paths that the task names, and that fit it."""
    task_words = set(repomap.words(goal.text))
    by_path = {item.path: item for item in items}
    chosen = [item for item in items if any(map(item.concerns, goal.files))]
    for item in items:
        if not task_words.isdisjoint(_steps(item.paths)):
            chosen.append(item)
    for path in matching:
        if path in by_path:
            chosen.append(by_path[path])
    return list({item.path: item for item in chosen}.values())


def _summaries(summaries: Summaries) -> Section:
    """Return the latest summaries, newest first."""
    records = summaries.newest()
    pieces = []
    for record in records[: summaries.shown]:
        at = datetime.fromisoformat(record.timestamp)
        title = f"run {record.run_id}, step {record.step_id}, {at:%H:%M}"
        pieces.append(Piece(title, record.text, summaries.name, at))
    return Section(
        "summaries",
        "What happened last, newest first",
        SHARES["summaries"],
        pieces,
        _how("summary"),
        len(records) - len(pieces),
        others="older",
    )


def _remembered(
    name: str,
    heading: str,
    chosen: Chosen,
    corpus: Corpus | None,
    states: Mapping[str, Sequence[LinkState]],
) -> Section:
    """Return the passages of a lane."""
    pieces = []
    for hit in chosen.hits:
        document = hit.document
        passage = hit.chunk
        piece = Piece(
            title=document.title,
            text=_without_heading(passage.text, (document.title, *passage.headings)),
            path=_location(corpus, document.path),
            at=document.created_at or document.modified_at,
            headings=passage.headings,
            lines=(passage.start_line, passage.end_line),
            links=tuple(states.get(document.id, ())),
            superseded_by=tuple(successor.id for successor in hit.successors),
        )
        pieces.append(piece)
    return Section(
        name,
        heading,
        SHARES[name],
        pieces,
        SEARCHES[name],
        chosen.others,
        others="weaker or older",
    )


def _location(corpus: Corpus | None, path: str) -> str:
    """Return the path of a text in the project, where its lane is a folder of it."""
    if corpus is not None and corpus.lane.base:
        return f"{corpus.lane.base}/{path}"
    return path


def _more_files(mapped: Map, *, has_files: bool) -> str:
    """Say how to see more of the source files, and which were skipped."""
    more = "read the files themselves"
    if has_files:
        missing = outline.missing()
        if missing:
            more += f"; for definitions install {', '.join(missing[:3])}"
    for reason, count in sorted(mapped.skipped.items()):
        more += f"; {count} files {reason}"
    return more


def _without_heading(text: str, names: Sequence[str]) -> str:
    """Return a passage without the heading it begins with, if that is among its names."""
    first, _, rest = text.partition("\n")
    heading = first.lstrip("#").strip().strip("`")
    is_repeated = first.startswith("#") and any(heading in name for name in names)
    if is_repeated and rest.strip():
        return rest.strip("\n")
    return text


def _visible(succession: Succession, goal: Task, findings: Findings, limit: int) -> Findings:
    """Leave out what others supersede, unless it is asked for: then their successors are named."""
    named = succession.named(findings)
    if goal.superseded:
        return named
    return current(named, limit)


def _worth(hits: Sequence[Hit]) -> list[Hit]:
    """Keep what is near the best; what is barely like the task would only take room."""
    best = max((hit.score for hit in hits), default=0.0)
    least = max(LEAST_SCORE, WORTH * best)
    return [hit for hit in hits if hit.score >= least]


def _steps(paths: Sequence[str]) -> set[str]:
    """Return the names in paths, without endings."""
    steps = set()
    for path in paths:
        for step in filter(None, path.split("/")):
            steps.add(step.partition(".")[0].casefold())
    return steps


def _how(kind: str) -> str:
    return f'<read the repository\'s memory> with kind "{kind}"'
