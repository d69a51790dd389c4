"""Finding memories that say nearly the same, and making one of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

import numpy as np

from ragdocs.errors import AlreadyExistsError, NotFoundError, UnavailableError, ValidationError
from ragdocs.protocols import Vectors
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter as metadata
from ragdocs.text import times
from ragdocs.text.merge import proposing
from ragdocs.types import Change, Discard, Document, Expect, Filter, Put
from ragdocs.verbs import page as answers
from ragdocs.verbs.memories.write import check_content
from ragdocs.verbs.references import memory_path
from ragdocs.verbs.shapes import Cluster, ClusterMember, Clusters, Merged

PREVIEW = 160
# Of one cluster: more would never fit into an answer, fewer than two say nothing.
MOST_MEMBERS = 50
LEAST_MEMBERS = 2
# Similarities are compared in stripes, so that ten thousand memories need megabytes, not hundreds
# of them.
STRIPE = 1024


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
        sources = list(dict.fromkeys(memory_path(self.corpus, name) for name in source_files))
        target = memory_path(self.corpus, target_file)
        if not sources:
            raise ValidationError(
                "there are no source files", "Name the memories that the new one replaces"
            )
        check_content(summary_content, "summary_content")
        texts = {name: self.corpus.store.read(name) for name in sources}
        if expected_version and target not in texts:
            hint = "Leave it out, or name the target_file among the source_files"
            raise ValidationError(
                "expected_version is the version of a target that is replaced", hint
            )
        if target not in texts and self._exists(target):
            hint = "Choose another target_file, or name it among the source_files to replace it"
            raise AlreadyExistsError(f"{target} exists and is not one of the sources", hint)
        text = metadata.merge(summary_content, self._defaults(sources))
        expect = (expected_version or texts[target].version) if target in texts else Expect.ABSENT
        # The versions that were read: a source that changes in between is not thrown away unseen.
        discards = [Discard(name, texts[name].version) for name in sources if name != target]
        changes: list[Change] = [Put(target, text, expect), *discards]
        with proposing(self.corpus.versioned, expected_version):
            written = self.corpus.commit(changes, "merge")
        return Merged(
            status="merged",
            filename=target,
            path=self.corpus.store.locate(target),
            version=written[0].version,
            merged=sources,
            moved_to=[change.moved_to for change in written[1:]],
            warnings=answers.removed(written[0]),
        )

    def suggest(
        self, threshold: float = 0.85, limit: int = 5, filter_type: str | None = "journal"
    ) -> Clusters:
        """Group active memories whose texts are alike, the tightest group first."""
        if not 0.0 <= threshold <= 1.0:
            raise ValidationError(f"threshold is {threshold}", "Give a similarity from 0.0 to 1.0")
        answers.check_limit(limit)
        if self.corpus.silence:
            raise UnavailableError(f"similarity needs embeddings: {self.corpus.silence}")
        where = Filter(
            kinds=(filter_type,) if filter_type else (),
            hidden=self.corpus.lane.hidden,
            alive_at=self.clock(),
        )
        documents = self.corpus.index.documents(where)
        vectors = self.corpus.index.vectors([document.id for document in documents])
        result = [
            Cluster(
                cluster_id=number,
                score=round(score, 3),
                reason=f"High vector similarity (> {threshold:g})",
                memory_count=len(members),
                memories=[self._member(documents[member]) for member in members[:MOST_MEMBERS]],
            )
            for number, (score, members) in enumerate(_cluster(vectors, threshold)[:limit])
        ]
        return Clusters(result=result, notes=[*self.corpus.notes(), *_shrink(result, self.budget)])

    def _exists(self, name: str) -> bool:
        try:
            self.corpus.store.read(name)
        except NotFoundError:
            return False
        return True

    def _defaults(self, sources: Sequence[str]) -> dict[str, object]:
        """Return what a merged memory inherits where its text does not say otherwise."""
        chosen = set(sources)
        documents = [
            document for document in self.corpus.index.documents() if document.path in chosen
        ]
        kinds = {document.kind for document in documents}
        tags = dict.fromkeys(tag for document in documents for tag in document.tags)
        created = times.stamp(self.clock())
        kind = kinds.pop() if len(kinds) == 1 else self.corpus.lane.default_kind
        return {"type": kind, "status": "active", "tags": list(tags), "created_at": created}

    def _member(self, document: Document) -> ClusterMember:
        with self.corpus.index.held():
            loaded = self.corpus.index.load(self.corpus.index.chunks(document.id)[:1])
        preview = answers.cut(" ".join(loaded[0][1].text.split()), PREVIEW) if loaded else ""
        return ClusterMember(
            id=document.id, file_path=self.corpus.store.locate(document.path), preview=preview
        )


def _shrink(clusters: list[Cluster], budget: int) -> list[str]:
    """Drop members of the largest clusters, then clusters, until all fit.

    Return what to say about it.
    """
    size = answers.cost(clusters)
    found = len(clusters)
    while size > budget and clusters:
        largest = max(clusters, key=lambda cluster: len(cluster["memories"]))
        if len(largest["memories"]) <= LEAST_MEMBERS:
            size -= answers.cost(clusters.pop())
        else:
            size -= answers.cost(largest["memories"].pop())
    notes = (
        [f"{found - len(clusters)} more groups did not fit in {budget} characters"]
        if found > len(clusters)
        else []
    )
    for cluster in clusters:
        hidden = cluster["memory_count"] - len(cluster["memories"])
        if hidden:
            notes.append(f"{hidden} more memories of group {cluster['cluster_id']} are not listed")
    return notes


def _cluster(vectors: Vectors, threshold: float) -> list[tuple[float, list[int]]]:
    """Join the most similar pairs first.

    A group grows only while every two of its members are alike.
    """
    groups = {number: [number] for number in range(len(vectors))}
    home = list(range(len(vectors)))
    for _, one, other in similar_pairs(vectors, threshold):
        left, right = home[one], home[other]
        if left == right:
            continue
        between = vectors[groups[left]] @ vectors[groups[right]].T
        if float(between.min()) >= threshold:
            groups[left] += groups.pop(right)
            for member in groups[left]:
                home[member] = left
    clusters = []
    for members in groups.values():
        if len(members) > 1:
            alike = [float(vectors[a] @ vectors[b]) for a, b in combinations(members, 2)]
            clusters.append((min(1.0, sum(alike) / len(alike)), sorted(members)))
    return sorted(clusters, key=lambda cluster: (-cluster[0], cluster[1]))


def similar_pairs(vectors: Vectors, threshold: float) -> list[tuple[float, int, int]]:
    """Return (similarity, one, other) for every two rows that are alike, the most alike first."""
    pairs = []
    for start in range(0, len(vectors), STRIPE):
        similar = vectors[start : start + STRIPE] @ vectors.T
        rows, columns = np.nonzero(similar >= threshold)
        found = (
            (float(similar[r, c]), start + int(r), int(c))
            for r, c in zip(rows, columns, strict=True)
        )
        # A document that has no vector yet is like nothing, whatever the threshold.
        pairs += [(s, a, b) for s, a, b in found if a < b and vectors[a].any() and vectors[b].any()]
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))
