"""Finding memories that say nearly the same, and making one of several."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, product

from ragdocs.errors import AlreadyExistsError, NotFoundError, UnavailableError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter
from ragdocs.text.checks import check_content
from ragdocs.text.merge import proposing
from ragdocs.types import Change, Discard, Document, Expect, Filter, Put, Source
from ragdocs.verbs import page
from ragdocs.verbs.memories import record
from ragdocs.verbs.memories.find import preview
from ragdocs.verbs.references import memory_path
from ragdocs.verbs.shapes import Cluster, ClusterMember, Clusters, Merged

# Of one cluster: more would never fit into an answer, fewer than two say nothing.
MOST_MEMBERS = 50
LEAST_MEMBERS = 2
# Similarities are compared in stripes, so that ten thousand memories need megabytes, not hundreds
# of them.
STRIPE = 1024

# The similarity of two documents, and their positions in a list; the first is the smaller one.
Pair = tuple[float, int, int]
# The mean similarity of a group's members, and their positions.
Group = tuple[float, list[int]]


@dataclass(frozen=True, slots=True)
class Merges:
    """Consolidation of the memory lane."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def merge(
        self,
        source_files: Sequence[str],
        target_file: str,
        summary_content: str,
        expected_version: str | None = None,
    ) -> Merged:
        """Write one memory and move its sources to the trash.

        All of it happens, or nothing does.
        """
        paths = self._paths(source_files)
        target = memory_path(self.corpus, target_file)
        if not paths:
            raise ValidationError(
                "there are no source files", "Name the memories that the new one replaces"
            )
        check_content(summary_content, "summary_content")
        sources = {}
        for path in paths:
            sources[path] = self.corpus.store.read(path)
        expect = self._expected(target, sources, expected_version)
        text = frontmatter.merge(summary_content, self._inherited(paths))
        changes: list[Change] = [Put(target, text, expect)]
        for path, source in sources.items():
            # The version that was read: a source that changes in between is not thrown away.
            if path != target:
                changes.append(Discard(path, source.version))
        with proposing(self.corpus.versioned, expected_version):
            written = self.corpus.commit(changes, "merge")
        return Merged(
            status="merged",
            filename=target,
            path=self.corpus.store.locate(target),
            version=written[0].version,
            merged=paths,
            moved_to=[change.moved_to for change in written[1:]],
            warnings=page.removed(written[0]),
        )

    def suggest(
        self,
        threshold: float = 0.85,
        limit: int = 5,
        filter_type: str | None = "journal",
    ) -> Clusters:
        """Group active memories whose texts are alike, the tightest group first."""
        if not 0.0 <= threshold <= 1.0:
            raise ValidationError(f"threshold is {threshold}", "Give a similarity from 0.0 to 1.0")
        page.check_limit(limit)
        if self.corpus.silence:
            raise UnavailableError(f"similarity needs embeddings: {self.corpus.silence}")
        now = self.clock()
        where = Filter(hidden=self.corpus.lane.hidden, alive_at=now)
        if filter_type:
            where = replace(where, kinds=(filter_type,))
        documents = self.corpus.documents(where)
        pairs = similar_pairs(self.corpus, documents, where, threshold)
        result = []
        for number, (score, members) in enumerate(_groups(pairs)[:limit]):
            listed = []
            for member in members[:MOST_MEMBERS]:
                listed.append(self._member(documents[member]))
            cluster = Cluster(
                cluster_id=number,
                score=round(score, 3),
                reason=f"High vector similarity (> {threshold:g})",
                memory_count=len(members),
                memories=listed,
            )
            result.append(cluster)
        notes = list(self.corpus.notes())
        notes += _shrink(result, self.budget)
        return Clusters(result=result, notes=notes)

    def _paths(self, names: Sequence[str]) -> list[str]:
        """Return the paths of memories, each once."""
        paths = [memory_path(self.corpus, name) for name in names]
        return list(dict.fromkeys(paths))

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
        tags: dict[str, None] = {}
        for document in self.corpus.documents():
            if document.path in chosen:
                kinds.add(document.kind)
                tags.update(dict.fromkeys(document.tags))
        kind = self.corpus.lane.default_kind
        if len(kinds) == 1:
            kind = kinds.pop()
        return record.fields(kind, list(tags), self.clock())

    def _member(self, document: Document) -> ClusterMember:
        return ClusterMember(
            id=document.id,
            file_path=self.corpus.store.locate(document.path),
            preview=preview(self.corpus, document),
        )


def _shrink(clusters: list[Cluster], budget: int) -> list[str]:
    """Drop members of the largest clusters, then clusters, until all fit.

    Return notes about what was dropped.
    """
    size = page.cost(clusters)
    count = len(clusters)
    while size > budget and clusters:
        largest = max(clusters, key=lambda cluster: len(cluster["memories"]))
        if len(largest["memories"]) <= LEAST_MEMBERS:
            size -= page.cost(clusters.pop())
        else:
            size -= page.cost(largest["memories"].pop())
    notes = []
    if len(clusters) < count:
        notes.append(f"{count - len(clusters)} more groups did not fit in {budget} characters")
    for cluster in clusters:
        hidden = cluster["memory_count"] - len(cluster["memories"])
        if hidden:
            notes.append(f"{hidden} more memories of group {cluster['cluster_id']} are not listed")
    return notes


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
    corpus: Corpus, documents: Sequence[Document], where: Filter, threshold: float
) -> list[Pair]:
    """Return every two of these documents that are at least so alike, the most alike first.

    `where` passes at least these documents.
    """
    positions = {document.id: position for position, document in enumerate(documents)}
    pairs = []
    for similarity, first_id, second_id in corpus.similar(where, threshold):
        if first_id in positions and second_id in positions:
            first, second = sorted((positions[first_id], positions[second_id]))
            pairs.append((similarity, first, second))

    def order(pair: Pair) -> Pair:
        similarity, first, second = pair
        return -similarity, first, second

    return sorted(pairs, key=order)
