"""Which memories, decisions and documentation speak about what a diff changes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ragdocs.search.corpus import Corpus
from ragdocs.system.names import link_key
from ragdocs.text.headings import STEP
from ragdocs.text.link_kinds import IMPACTS, TOUCHES
from ragdocs.types import Chunk, Document, Link
from ragdocs.verbs.living.changes import Diff, Diffs, FileChange
from ragdocs.verbs.living.companions import Companions
from ragdocs.verbs.living.mentions import WHOLE, Key, Mentions, is_telling, spellings
from ragdocs.verbs.text_position import TOP, TextPosition, position_in

# How sure each reason is that a text speaks about a change, from 0 to 1.
GONE_PART = 1.0
CHANGED_PART = 0.9
LINKED = 0.8
IMPACTED = 0.8
RENAMED_NAME = 0.7
GONE_NAME = 0.6
NAMED_PATH = 0.5
FOLDER = 0.4
# Where a whole file is meant: the part of the weight that counts if hardly a line of it changed,
# and the share of changed lines from which on all of it counts. A link is always listed.
LEAST_PART = 0.5
MOST_SHARE = 0.25
# Less sure texts are counted, not listed: precision falls below (see `bench links`).
LEAST_WEIGHT = 0.4
# Words of a change that say little about a text, added to those that are known.
UNSAID = 3.0
# Shared words and companions that are looked into.
LEAST_SHARED = 0.1
# A name that more documents mention is a word like any other.
MOST_MENTIONING = 12
# Reasons that are given for one text, and the words that one names.
MOST_REASONS = 5
MOST_WORDS = 4
# Passages of one document that have words of the change.
MOST_PASSAGES = 2
# Kinds of reasons, each of which says something of its own.
LINK = "link"
NAME = "name"
PATH = "path"
WORDS = "words"
COMPANION = "companion"


Corpora = Mapping[str, Corpus]
Headings = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a text is affected: what of it changed, how that is known, and how sure it is."""

    words: str
    path: str
    weight: float
    kind: str = LINK


@dataclass(frozen=True, slots=True)
class AffectedText:
    """A text that speaks about what changed, at the passage where it does so."""

    document: Document
    headings: Headings
    line: int
    reasons: Sequence[Reason]
    # How sure it is that somebody should look at it.
    weight: float
    # Whether the same diff changes it, too.
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class Affected:
    """Texts that speak about a change, the surest first, and what was compared.

    `weak` counts texts that are less sure, and are not listed.
    """

    texts: Sequence[AffectedText]
    files: int
    weak: int = 0


class _Listed(NamedTuple):
    """A document and its corpus."""

    corpus: Corpus
    document: Document


@dataclass
class _Found:
    """The passages of one document that speak about a change, with the reasons."""

    document: Document
    reasons: dict[Headings, list[Reason]] = field(default_factory=dict)
    lines: dict[Headings, int] = field(default_factory=dict)

    def add(self, position: TextPosition, reason: Reason) -> None:
        reasons = self.reasons.setdefault(position.headings, [])
        reasons.append(reason)
        self.lines.setdefault(position.headings, position.line)

    def positions(self) -> list[TextPosition]:
        """Return where it is known to speak about the change."""
        return [TextPosition(headings, line) for headings, line in self.lines.items()]


class _FoundTexts:
    """What was found so far, by the lane and the path of each document."""

    def __init__(self) -> None:
        self.by_key: dict[Key, _Found] = {}

    def of(self, document: Document) -> _Found:
        """Return what was found of a document; nothing at first."""
        key = (document.lane, document.path)
        return self.by_key.setdefault(key, _Found(document))


class AffectedTexts:
    """What can be asked about the texts that a change concerns."""

    def __init__(
        self, corpora: Callable[[], Corpora], diffs: Diffs, companions: Companions
    ) -> None:
        self._corpora = corpora
        self.diffs = diffs
        self._companions = companions
        self._mentions = Mentions()

    def by(self, diff: Diff) -> Affected:
        """Return the texts that speak about what a diff changes."""
        corpora = self._corpora()
        self._mentions.refresh(corpora.values())
        candidates = _FoundTexts()
        changes = _without_memories(diff.files, corpora.values())
        listed = _listed(corpora.values())
        documents = _by_location(listed)
        self._follow_links(listed, changes, candidates)
        self._add_mentions(corpora, changes, candidates)
        # What is said about texts is said by their links and headings.
        code = _without_texts(changes, documents)
        self._add_words(corpora, code, candidates)
        code_diff = Diff(code, diff.base)
        self._add_companions(documents, code_diff, candidates)
        changed = frozenset(change.path for change in diff.files)
        texts = self._texts(corpora, changed, candidates)
        sure = [text for text in texts if text.weight >= LEAST_WEIGHT]
        weak = len(texts) - len(sure)
        return Affected(sure, len(changes), weak)

    def _follow_links(
        self,
        listed: Sequence[_Listed],
        changes: Sequence[FileChange],
        texts: _FoundTexts,
    ) -> None:
        """Note the links of all documents that lead to something that changed."""
        by_name = _by_name(changes)
        for corpus, document in listed:
            for link in document.links:
                self._follow(corpus, document, link, by_name, texts)

    def _follow(
        self,
        corpus: Corpus,
        document: Document,
        link: Link,
        by_name: Mapping[str, Sequence[FileChange]],
        texts: _FoundTexts,
    ) -> None:
        """Note a link that leads to something that changed."""
        if link.kind == TOUCHES:
            return
        key = link_key(link.target)
        for change in by_name.get(key, ()):
            reason = _link_reason(link, change)
            if reason is not None:
                position = self._link_position(corpus, document, link)
                entry = texts.of(document)
                entry.add(position, reason)

    def _link_position(self, corpus: Corpus, document: Document, link: Link) -> TextPosition:
        """Return where a link stands in a document."""
        if link.kind == IMPACTS:
            return TOP
        words = link.context.strip()
        target = link.target
        passages = corpus.passages([document.id], WHOLE)
        for passage in passages[document.id]:
            flat = " ".join(passage.text.split())
            if words in flat or (target in flat and link.heading in flat):
                return position_in(passage, target)
        return TOP

    def _add_mentions(
        self,
        corpora: Corpora,
        changes: Sequence[FileChange],
        texts: _FoundTexts,
    ) -> None:
        """Note passages that name a changed file or a definition that is not there any more."""
        for word, reason in _names(changes):
            mentions = self._mentions.of(word)
            paths = {path for _, path, _ in mentions}
            if len(paths) > MOST_MENTIONING:
                continue
            weight = reason.weight * self._mentions.rarity(word)
            rare = replace(reason, weight=weight)
            for lane, _, passage in mentions:
                document = _document(corpora, lane, passage)
                if document is None or document.path == reason.path:
                    continue
                position = position_in(passage, word)
                entry = texts.of(document)
                entry.add(position, rare)

    def _add_words(
        self,
        corpora: Corpora,
        changes: Sequence[FileChange],
        texts: _FoundTexts,
    ) -> None:
        """Note the passages that have most words of a change, rare ones counting more."""
        for key, (share, change) in self._most_shared(changes).items():
            lane, _ = key
            # Names that are gone have a reason of their own.
            gone = {_last_step(name) for name in change.gone}
            passages = self._mentions.passages(key, change.words - gone)
            for passage, own in passages[:MOST_PASSAGES]:
                document = _document(corpora, lane, passage)
                if document is None:
                    continue
                listed = ", ".join(own[:MOST_WORDS])
                words = f"mentions {listed}, changed in {change.path}"
                reason = Reason(words, change.path, share, WORDS)
                position = position_in(passage, own[0])
                entry = texts.of(document)
                entry.add(position, reason)

    def _most_shared(self, changes: Sequence[FileChange]) -> dict[Key, tuple[float, FileChange]]:
        """Return for each document the change of which it mentions most, and the share."""
        most: dict[Key, tuple[float, FileChange]] = {}
        for change in changes:
            least = (LEAST_SHARED, change)
            for key, share in self._shared(change).items():
                strongest, _ = most.get(key, least)
                if share > strongest:
                    most[key] = share, change
        return most

    def _shared(self, change: FileChange) -> dict[Key, float]:
        """Return for each document the share of the words of a change that it mentions."""
        shared: dict[Key, float] = defaultdict(float)
        total = UNSAID
        for word in change.words:
            weight = self._mentions.rarity(word) ** 2
            total += weight
            if weight > LEAST_SHARED:
                for key in self._mentions.documents(word):
                    shared[key] += weight
        return {key: weight / total for key, weight in shared.items()}

    def _add_companions(
        self, documents: Mapping[str, Document], diff: Diff, texts: _FoundTexts
    ) -> None:
        """Note the texts that were edited with the changed files before."""
        most: dict[str, Reason] = {}
        for change in diff.files:
            companions = self._companions.of(change.before, documents.keys(), diff.base)
            for companion in companions:
                times = f"{companion.together} of {companion.commits} commits"
                words = f"edited with {change.before} in {times}"
                reason = Reason(words, change.path, companion.weight, COMPANION)
                strongest = most.get(companion.path)
                is_surer = not strongest or strongest.weight < reason.weight
                if reason.weight > LEAST_SHARED and is_surer:
                    most[companion.path] = reason
        for path, reason in most.items():
            entry = texts.of(documents[path])
            positions = entry.positions() or [TOP]
            for position in positions:
                entry.add(position, reason)

    def _texts(
        self,
        corpora: Corpora,
        changed: frozenset[str],
        collected: _FoundTexts,
    ) -> list[AffectedText]:
        texts = []
        for (lane, path), entry in collected.by_key.items():
            corpus = corpora[lane]
            if entry.document.status in corpus.lane.hidden:
                continue
            is_changed = _location(corpus, path) in changed
            for headings, reasons in entry.reasons.items():
                line = entry.lines[headings]
                weight = round(_weight(reasons), 3)
                surest = _surest(reasons)
                texts.append(
                    AffectedText(entry.document, headings, line, surest, weight, is_changed)
                )
        texts.sort(key=lambda text: (-text.weight, text.document.path, text.line))
        return texts


def _listed(corpora: Iterable[Corpus]) -> list[_Listed]:
    """Return all documents, each with its corpus."""
    listed = []
    for corpus in corpora:
        for document in corpus.documents():
            listed.append(_Listed(corpus, document))
    return listed


def _by_location(listed: Iterable[_Listed]) -> dict[str, Document]:
    """Map paths, as seen from the root of the project, to documents."""
    documents = {}
    for corpus, document in listed:
        location = _location(corpus, document.path)
        documents[location] = document
    return documents


def _document(corpora: Corpora, lane: str, passage: Chunk) -> Document | None:
    """Return the document of a passage, if its lane still has it."""
    corpus = corpora.get(lane)
    if corpus is None:
        return None
    return corpus.get(passage.doc_id)


def _location(corpus: Corpus, path: str) -> str:
    """Return a path of a lane as seen from the root of the project."""
    if corpus.lane.base:
        return f"{corpus.lane.base}/{path}"
    return path


def _weight(reasons: Sequence[Reason]) -> float:
    """Return how sure reasons are together: each kind counts once, by its surest one."""
    doubt: dict[str, float] = {}
    for reason in reasons:
        least = doubt.get(reason.kind, 1.0)
        doubt[reason.kind] = min(least, 1 - reason.weight)
    return 1 - math.prod(doubt.values())


def _without_memories(changes: Sequence[FileChange], corpora: Iterable[Corpus]) -> list[FileChange]:
    """Leave out memories, which are no part of the work that they are about."""
    folders = []
    for corpus in corpora:
        if corpus.lane.writable and corpus.lane.base:
            folders.append(f"{corpus.lane.base}/")
    beginnings = tuple(folders)
    return [change for change in changes if not change.path.startswith(beginnings)]


def _without_texts(
    changes: Sequence[FileChange], documents: Mapping[str, Document]
) -> list[FileChange]:
    """Leave out changes of files that are documents themselves."""
    paths = documents.keys()
    return [change for change in changes if paths.isdisjoint(change.paths)]


def _by_name(changes: Sequence[FileChange]) -> dict[str, list[FileChange]]:
    """Map the names of changed files and of their folders in links to the changes."""
    by_name: dict[str, list[FileChange]] = defaultdict(list)
    for change in changes:
        names: dict[str, None] = {}
        for path in change.paths:
            page = path.removesuffix(".md")
            names[link_key(path)] = None
            names[link_key(page)] = None
            folder, _, _ = path.rpartition("/")
            while folder:
                whole_folder = link_key(f"{folder}/*")
                names[whole_folder] = None
                folder, _, _ = folder.rpartition("/")
        for name in names:
            by_name[name].append(change)
    return by_name


def _link_reason(link: Link, change: FileChange) -> Reason | None:
    """Say what a link has to do with a change, or None if it leads to another part of the file."""
    path = change.path
    if link.target.endswith("/*"):
        return Reason(f"impacts {link.target}", path, FOLDER)
    if change.before != path and link_key(link.target) != link_key(path):
        return Reason(_moved_words(link, change), path, GONE_PART)
    if not _leads_to_a_part(link, change):
        if link.kind == IMPACTS:
            return Reason(f"impacts {path}", path, IMPACTED)
        return Reason(f"links to {path}", path, LINKED * _part(change))
    return _part_reason(link.heading, change)


def _leads_to_a_part(link: Link, change: FileChange) -> bool:
    """Tell whether a link's heading is a part of the file; any other stands for the whole file."""
    if not link.heading or change.is_whole:
        return False
    parts = change.changed | change.gone | change.kept
    return any(_means(link.heading, name) for name in parts)


def _moved_words(link: Link, change: FileChange) -> str:
    """Say where a link leads whose file moved; a part of it may have another name too."""
    for old, new in change.renamed:
        if link.heading and _means(link.heading, old):
            return f"links to {change.before}#{old}, now {change.path}#{new}"
    return f"links to {change.before}, now {change.path}"


def _part(change: FileChange) -> float:
    """Tell how much of its weight a reason keeps that is about a whole file."""
    share = min(1.0, change.share / MOST_SHARE)
    return LEAST_PART + (1 - LEAST_PART) * share


def _part_reason(heading: str, change: FileChange) -> Reason | None:
    """Say what became of the section or definition that a link leads to, if anything did."""
    path = change.path
    for old, new in change.renamed:
        if _means(heading, old):
            return Reason(f"links to {path}#{old}, now {new}", path, GONE_PART)
    for name in change.gone:
        if _means(heading, name):
            return Reason(f"links to {path}#{name}, which is gone", path, GONE_PART)
    for name in change.changed:
        if _means(heading, name):
            return Reason(f"links to {path}#{name}", path, CHANGED_PART)
    return None


def _means(heading: str, name: str) -> bool:
    """Tell whether a link's heading may name a part: the whole path of it, or its end."""
    wanted = _folded(heading.removesuffix("()"))
    end = _last_step(name.replace(STEP, "."))
    return wanted in (_folded(name), _folded(end))


def _last_step(name: str) -> str:
    """Return the last part of a name with dots."""
    return name.rpartition(".")[2]


def _folded(name: str) -> str:
    letters = [sign for sign in name.casefold() if sign.isalnum()]
    return "".join(letters)


def _names(changes: Sequence[FileChange]) -> Iterator[tuple[str, Reason]]:
    """Yield the names that mention what changed, each with the reason that it is one."""
    fresh: set[str] = set()
    for change in changes:
        fresh |= change.fresh
    for change in changes:
        weight = NAMED_PATH * _part(change)
        for path in change.paths:
            for word in spellings(path):
                yield word, Reason(f"mentions {path}", change.path, weight, PATH)
        if change.is_code:
            yield from _gone_names(change, fresh)


def _gone_names(change: FileChange, fresh: AbstractSet[str]) -> Iterator[tuple[str, Reason]]:
    """Yield the names of definitions that were renamed or removed, not only moved."""
    renamed = dict(change.renamed)
    for name in sorted(change.gone):
        word = _last_step(name)
        new_name = renamed.get(name, "")
        if not is_telling(word) or _last_step(new_name) == word:
            continue
        if new_name:
            words = f"mentions {word}, now {new_name} in {change.path}"
            yield word, Reason(words, change.path, RENAMED_NAME, NAME)
        elif name not in fresh:
            words = f"mentions {word}, which is gone from {change.path}"
            yield word, Reason(words, change.path, GONE_NAME, NAME)


def _surest(reasons: Sequence[Reason]) -> list[Reason]:
    """Return the reasons of a passage, each once, the surest first."""
    distinct = {reason.words: reason for reason in reasons}
    ordered = sorted(distinct.values(), key=lambda reason: (-reason.weight, reason.words))
    # A link has the path in it.
    linked = {reason.path for reason in ordered if reason.kind == LINK}
    surest = []
    for reason in ordered:
        if reason.kind != PATH or reason.path not in linked:
            surest.append(reason)
    return surest[:MOST_REASONS]
