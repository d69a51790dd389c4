"""Finding memories that say nearly the same, and making one of several."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, product
from typing import NamedTuple

from ragdocs.errors import (
    AlreadyExistsError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.search.corpus import Corpus
from ragdocs.system.refs import Head
from ragdocs.text import frontmatter, statements
from ragdocs.text.checks import check_content
from ragdocs.text.merge import proposing
from ragdocs.text.tags import united
from ragdocs.types import Change, Discard, Document, Expect, Filter, Put, Source, Written
from ragdocs.verbs import page
from ragdocs.verbs.memories import record
from ragdocs.verbs.memories.draft import Drafts, MergeDraft
from ragdocs.verbs.memories.find import beginning
from ragdocs.verbs.memories.preview import Difference, changed_by
from ragdocs.verbs.memories.succession import Succession
from ragdocs.verbs.references import memory_path

# The members of a group whose beginnings are read; nobody looks at more.
MOST_MEMBERS = 50
# Memories that can be alike.
LEAST_GROUP = 2
# The most alike pairs are grouped; a thousand copies of one memory are half a million pairs.
MOST_PAIRS = 20_000
# Two memories that say the same have a share of their words in common that is at most so far below
# the similarity that is asked for (`bench merges`).
BELOW = 0.2
# Their sentences have a share of words in common that is at most so far below it.
SENTENCE_BELOW = 0.15
# One of them has a share of its words in such sentences that is at most so far below it.
REPEATED_BELOW = 0.05
# All passages of a memory.
WHOLE = 100_000_000

# The similarity of two documents, and their positions in a list; the first is the smaller one.
Pair = tuple[float, int, int]
# The mean similarity of a group's members, and their positions.
Group = tuple[float, list[int]]


@dataclass(frozen=True, slots=True)
class MergedMemory:
    """One memory made of several; `written` begins with its own change, the sources follow."""

    path: str
    location: str
    sources: Sequence[str]
    written: Sequence[Written]
    # What would change, where nothing was written.
    differences: Sequence[Difference] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A memory of a group, with its first passage on one line."""

    id: str
    location: str
    beginning: str


@dataclass(frozen=True, slots=True)
class SimilarMemories:
    """Memories that say nearly the same: their mean similarity, their number, the first of them.

    With a draft of one memory in their place, or the reason why there is none.
    """

    score: float
    count: int
    members: Sequence[Member]
    draft: MergeDraft | None = None
    undrafted: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Groups of similar memories, the tightest first."""

    groups: Sequence[SimilarMemories]
    threshold: float
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Merges:
    """Consolidation of the memory lane."""

    corpus: Corpus
    clock: Callable[[], datetime]
    # What is checked out where the memories are about.
    head: Callable[[], Head] = lambda: Head("", "")

    def merge(
        self,
        source_files: Sequence[str],
        target_file: str,
        summary_content: str,
        expected_version: str | None = None,
        source_versions: Sequence[str] = (),
        *,
        dry_run: bool = False,
    ) -> MergedMemory:
        """Write one memory and move its sources to the trash, or only say what would change.

        All of it happens, or nothing does; that is so too if a source is no longer at its version.
        """
        paths = self._paths(source_files)
        versions = self._versions(source_files, source_versions)
        target = memory_path(self.corpus, target_file)
        if not paths:
            raise ValidationError(
                "there are no source files", "Name the memories that the new one replaces"
            )
        check_content(summary_content, "summary_content")
        sources = {}
        for path in paths:
            sources[path] = self.corpus.store.read(path)
        expected_version = expected_version or versions.get(target)
        expect = self._expected(target, sources, expected_version)
        text = frontmatter.merge(summary_content, self._inherited(paths))
        changes: list[Change] = [Put(target, text, expect)]
        for path, source in sources.items():
            # The version that was read: a source that changes in between is not thrown away.
            if path != target:
                changes.append(Discard(path, versions.get(path) or source.version))
        if dry_run:
            differences = changed_by(self.corpus, changes, sources)
            return MergedMemory(target, self.corpus.store.locate(target), paths, (), differences)
        with proposing(self.corpus.versioned, expected_version):
            written = self.corpus.commit(changes, "merge")
        return MergedMemory(target, self.corpus.store.locate(target), paths, written)

    def suggest(
        self,
        threshold: float = 0.85,
        limit: int = 5,
        filter_type: str | None = "journal",
        *,
        drafts: bool = False,
    ) -> Suggestions:
        """Group active memories whose texts are alike, the tightest group first.

        With `drafts`, each group comes with a text in the place of its memories.
        """
        if not 0.0 <= threshold <= 1.0:
            raise ValidationError(f"threshold is {threshold}", "Give a similarity from 0.0 to 1.0")
        page.check_limit(limit)
        if self.corpus.embedding_unavailable:
            raise UnavailableError(
                f"similarity needs embeddings: {self.corpus.embedding_unavailable}"
            )
        now = self.clock()
        where = Filter(hidden=self.corpus.lane.hidden, alive_at=now)
        if filter_type:
            where = replace(where, kinds=(filter_type,))
        documents = self.corpus.documents(where)
        pairs = similar_pairs(self.corpus, documents, where, threshold, MOST_PAIRS)
        pairs = in_same_words(self.corpus, documents, pairs, threshold)
        pairs = self._without_superseded(documents, pairs)
        groups = []
        for score, positions in _groups(pairs)[:limit]:
            members = []
            for position in positions[:MOST_MEMBERS]:
                members.append(self._member(documents[position]))
            group = SimilarMemories(score, len(positions), members)
            if drafts:
                group = self._drafted(group)
            groups.append(group)
        notes = list(self.corpus.notes())
        if not groups:
            notes.insert(0, self._comparison(len(documents), where, threshold))
        if len(pairs) == MOST_PAIRS:
            notes.append(f"only the {MOST_PAIRS:,} most similar pairs of memories were grouped")
        return Suggestions(groups, threshold, notes)

    def _without_superseded(
        self, documents: Sequence[Document], pairs: Sequence[Pair]
    ) -> list[Pair]:
        """Keep the pairs of memories that both still hold."""
        positions: set[int] = set()
        for _, first, second in pairs:
            positions |= {first, second}
        compared = [documents[position] for position in sorted(positions)]
        superseded = Succession(self.corpus, self.clock()).successors(compared)
        current = []
        for pair in pairs:
            _, first, second = pair
            ids = {documents[first].id, documents[second].id}
            if ids.isdisjoint(superseded):
                current.append(pair)
        return current

    def _drafted(self, group: SimilarMemories) -> SimilarMemories:
        """Add the draft of a group, or the reason why there is none."""
        names = [member.id for member in group.members]
        try:
            return replace(group, draft=Drafts(self.corpus).draft(names))
        except RagdocsError as error:
            return replace(group, undrafted=error.message)

    def _comparison(self, count: int, where: Filter, threshold: float) -> str:
        """Say what was compared where nothing is suggested."""
        kinds = ""
        if where.kinds:
            kinds = f" of type {where.kinds[0]}"
        memories = "1 memory"
        if count != 1:
            memories = f"{count} memories"
        looked = f"compared {memories}{kinds} at threshold {threshold:g}"
        if where.kinds and not count:
            return f"{looked}; filter_type all compares every type"
        nearest = self.corpus.similar(where, 0.0, 1)
        if count < LEAST_GROUP or not nearest:
            return looked
        similarity, first, second = nearest[0]
        return f"{looked}; the nearest two, {first} and {second}, are {similarity:.2f} alike"

    def _paths(self, names: Sequence[str]) -> list[str]:
        """Return the paths of memories, each once."""
        paths = [memory_path(self.corpus, name) for name in names]
        return list(dict.fromkeys(paths))

    def _versions(self, names: Sequence[str], versions: Sequence[str]) -> dict[str, str]:
        """Return the version that each source must have, where the caller gave them."""
        if versions and len(versions) != len(names):
            raise ValidationError(
                f"there are {len(names)} source files and {len(versions)} versions of them",
                "Give the version of each source file, in the same order",
            )
        paths = [memory_path(self.corpus, name) for name in names]
        return dict(zip(paths, versions, strict=False))

    def _expected(
        self,
        target: str,
        sources: Mapping[str, Source],
        version: str | None,
    ) -> str | Expect:
        """Return what must be at the target, or refuse to overwrite another memory."""
        if target in sources:
            return version or sources[target].version
        if version:
            raise ValidationError(
                "expected_version is the version of a target that is replaced",
                "Leave it out, or name the target_file among the source_files",
            )
        if self._exists(target):
            raise AlreadyExistsError(
                f"{target} exists and is not one of the sources",
                "Choose another target_file, or name it among the source_files to replace it",
            )
        return Expect.ABSENT

    def _exists(self, path: str) -> bool:
        try:
            self.corpus.store.read(path)
        except NotFoundError:
            return False
        return True

    def _inherited(self, paths: Sequence[str]) -> dict[str, object]:
        """Return the fields of a merged memory that its text does not have itself."""
        chosen = set(paths)
        kinds: set[str] = set()
        tags: list[str] = []
        for document in self.corpus.documents():
            if document.path in chosen:
                kinds.add(document.kind)
                tags.extend(document.tags)
        kind = self.corpus.lane.default_kind
        if len(kinds) == 1:
            kind = kinds.pop()
        fields = record.fields(kind, united(tags), self.clock())
        return fields | record.at_head(self.head())

    def _member(self, document: Document) -> Member:
        location = self.corpus.store.locate(document.path)
        return Member(document.id, location, beginning(self.corpus, document))


# --- groups of similar memories ---


def _groups(pairs: Sequence[Pair]) -> list[Group]:
    """Join similar memories to groups, the tightest group first."""
    similarities = {(first, second): score for score, first, second in pairs}
    groups: list[Group] = []
    for members in _joined(pairs, similarities):
        scores = [similarities[pair] for pair in combinations(members, 2)]
        mean = sum(scores) / len(scores)
        groups.append((min(1.0, mean), members))
    return sorted(groups, key=lambda group: (-group[0], group[1]))


def _joined(pairs: Sequence[Pair], similarities: Container[tuple[int, int]]) -> list[list[int]]:
    """Join the most similar pairs first.

    A group grows only while every two of its members are a similar pair.
    """
    groups: dict[int, list[int]] = {}
    for _, first, second in pairs:
        left = groups.setdefault(first, [first])
        right = groups.setdefault(second, [second])
        if left is right or not _all_similar(left, right, similarities):
            continue
        left += right
        for member in right:
            groups[member] = left
    joined = []
    for first, members in groups.items():
        # Every member has its group, which is listed by the smallest of them.
        if len(members) > 1 and first == min(members):
            joined.append(sorted(members))
    return joined


def _all_similar(
    left: Sequence[int],
    right: Sequence[int],
    similarities: Container[tuple[int, int]],
) -> bool:
    for first, second in product(left, right):
        pair = (min(first, second), max(first, second))
        if pair not in similarities:
            return False
    return True


def similar_pairs(
    corpus: Corpus,
    documents: Sequence[Document],
    where: Filter,
    threshold: float,
    limit: int | None = None,
) -> list[Pair]:
    """Return every two of these documents that are at least so alike, the most alike first.

    `where` passes at least these documents; the limit counts pairs of all that it passes.
    """
    positions = {document.id: position for position, document in enumerate(documents)}
    pairs = []
    for similarity, first_id, second_id in corpus.similar(where, threshold, limit):
        if first_id in positions and second_id in positions:
            first, second = sorted((positions[first_id], positions[second_id]))
            pairs.append((similarity, first, second))

    def order(pair: Pair) -> Pair:
        similarity, first, second = pair
        return -similarity, first, second

    return sorted(pairs, key=order)


def in_same_words(
    corpus: Corpus, documents: Sequence[Document], pairs: Sequence[Pair], threshold: float
) -> list[Pair]:
    """Keep the pairs that say the same in much the same words.

    Texts on one matter are alike by meaning, and pages of one template in their words too.
    """
    positions: set[int] = set()
    for _, first, second in pairs:
        positions |= {first, second}
    ids = [documents[position].id for position in sorted(positions)]
    wordings = {}
    for document_id, passages in corpus.passages(ids, WHOLE).items():
        wordings[document_id] = _wording("\n".join(passage.text for passage in passages))
    unlike = []
    for pair in pairs:
        ours = wordings[documents[pair[1]].id]
        theirs = wordings[documents[pair[2]].id]
        if _says_same(ours, theirs, threshold):
            unlike.append(pair)
    return unlike


class _Wording(NamedTuple):
    """A text, its words, and the words of each of its sentences."""

    text: str
    words: frozenset[str]
    sentences: Sequence[frozenset[str]]


def _wording(text: str) -> _Wording:
    sentences = []
    for sentence in statements.all_sentences(text):
        words = statements.wording(sentence).content
        if words:
            sentences.append(words)
    return _Wording(text, statements.wording(text).content, sentences)


def _says_same(ours: _Wording, theirs: _Wording, threshold: float) -> bool:
    """Tell whether two texts share most words, and one most of its sentences with the other.

    Two that each name something that the other does not are about different things.
    """
    size = len(ours.words) + len(theirs.words)
    if 2 * len(ours.words & theirs.words) < (threshold - BELOW) * size:
        return False
    if ours.sentences and theirs.sentences:
        least = threshold - SENTENCE_BELOW
        shared = statements.repeated(ours.sentences, theirs.sentences, least)
        other = statements.repeated(theirs.sentences, ours.sentences, least)
        if max(shared, other) < threshold - REPEATED_BELOW:
            return False
    has_other_names = statements.other_names(ours.text, theirs.text)
    return not (has_other_names and statements.other_names(theirs.text, ours.text))
