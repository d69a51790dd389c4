"""Why a document answers a query, and why not: at which stage of the search it dropped out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ragdocs.errors import NotFoundError, UnavailableError, ValidationError
from ragdocs.protocols import Vectors
from ragdocs.search.calibration import FALSE_ALARMS, FLOOR
from ragdocs.search.corpus import Corpus
from ragdocs.search.query import LEAST_CANDIDATES
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page as answers
from ragdocs.verbs import references
from ragdocs.verbs.shapes import Explained


@dataclass(frozen=True, slots=True)
class Explain:
    """What can be asked about the search itself."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def explain(
        self, query: str, path: str, limit: int = 5, *, tags: Sequence[str] = (), kind: str = ""
    ) -> Explained:
        """Tell where a document stands for a query, by which signals.

        Or at which stage it dropped out.
        """
        answers.check_limit(limit)
        if not query.strip():
            raise ValidationError("the query is empty", "Give the words that were searched for")
        document = self._document(path)
        if document is None:
            return self._absent(query, path)
        now, where = self.clock(), Filter(tags=tuple(tags), kinds=(kind,) if kind else ())
        asked = Query(probes=(Probe(query),), limit=answers.MOST_RESULTS, where=where)
        found = self.corpus.search(asked, now).hits
        place = next(
            (at for at, hit in enumerate(found, start=1) if hit.document.id == document.id), 0
        )
        hit = found[place - 1] if place else None
        answer = self._measured(query, document, hit)
        answer["place"] = place
        filtered = self._filtered(document, where, now)
        answer["stage"], answer["why"] = (
            ("filtered", filtered) if filtered else self._verdict(hit, answer, limit)
        )
        return answer

    def _document(self, path: str) -> Document | None:
        return references.find(self.corpus, path.strip().removeprefix("./"))

    def _absent(self, query: str, path: str) -> Explained:
        """Tell why a path is not in the index."""
        name = path.strip().removeprefix("./")
        scan = self.corpus.store.scan([name])
        reason = self.corpus.skipped.get(name) or scan.unreadable.get(name)
        if reason:
            why = f"not indexed: {reason}"
        elif name in scan.stamps:
            why = "not indexed yet: the file is there and will be read with the next look at the files"
        else:
            known = [document.path for document in self.corpus.index.documents()]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            if not near and not known:
                raise NotFoundError(
                    f"the {self.corpus.lane.name} lane is empty",
                    "Add documents, or ask another lane",
                )
            meant = f"; did you mean {', '.join(near)}?" if near else ""
            why = f"not indexed: no file of that name belongs to this lane ({', '.join(self.corpus.lane.include)}){meant}"
        return _blank(query, name, "not indexed", why)

    def _filtered(self, document: Document, where: Filter, now: datetime) -> str:
        """Say why a search leaves a document out before looking at it."""
        if document.status.casefold() in {status.casefold() for status in self.corpus.lane.hidden}:
            return f"filtered: its status is {document.status}, which is left out unless asked for"
        if document.expires_at is not None and document.expires_at <= now:
            return f"filtered: it expired at {answers.moment(document.expires_at)}"
        for name, alone in (("tags", Filter(tags=where.tags)), ("type", Filter(kinds=where.kinds))):
            if all(document.id != one.id for one in self.corpus.index.documents(alone)):
                return f"filtered: it has not the {name} asked for"
        return ""

    def _measured(self, query: str, document: Document, hit: Hit | None) -> Explained:
        """Tell what the sources say of the document's best passage, whether it was found or not."""
        index, keys = self.corpus.index, self.corpus.index.chunks(document.id)
        vector = self._vector(query)
        words, nearness = index.weigh(query, vector, np.array(keys))
        ranking = self.corpus.lane.ranking
        totals = [
            ranking.keyword_weight * w + ranking.vector_weight * n
            for w, n in zip(words, nearness, strict=True)
        ]
        best = max(range(len(keys)), key=lambda place: totals[place])
        place = keys.index(hit.key) if hit is not None and hit.key in keys else best
        count = index.counts()["chunks"]
        by_words = [key for key, _ in index.match(query, count, Filter())]
        by_meaning = (
            [key for key, _ in index.nearest(vector, count, Filter())] if vector is not None else []
        )
        piece = index.load([keys[place]])[0][1]
        held = index.matched(query, [keys[place]])[0]
        return {
            **_blank(query, document.path, "", ""),
            "score": round(hit.score, 4) if hit else 0.0,
            "lines": f"{piece.start_line}-{piece.end_line}",
            "words": list(held),
            "missing": [
                word
                for word in dict.fromkeys(query.split())
                if word.strip(".,;:!?\"'()") not in held
            ],
            "keyword": round(float(words[place]), 4),
            "keyword_rank": _rank(by_words, keys),
            "meaning": round(float(nearness[place]), 4),
            "meaning_rank": _rank(by_meaning, keys),
            "signals": answers.signals(hit) if hit else [],
        }

    def _vector(self, query: str) -> Vectors | None:
        if self.corpus.encoder is None or self.corpus.silence:
            return None
        try:
            vector: Vectors = self.corpus.encoder.encode([query])[0]
        except UnavailableError:
            return None
        return vector

    def _verdict(self, hit: Hit | None, answer: Explained, limit: int) -> tuple[str, str]:
        """Name the first stage that keeps the document out, or say that nothing does."""
        if hit is None:
            return self._unfound(answer)
        place = answer["place"]
        if self.corpus.gauge().measured and hit.score < FLOOR:
            bar = f"{FLOOR} is what {FALSE_ALARMS:.0%} of unrelated questions reach"
            return "below the floor", f"below the floor: its score is {hit.score:.2f}, and {bar}"
        if place > limit:
            return "cut by limit", f"cut by limit: it is number {place}, and {limit} were asked for"
        return "shown", f"shown as number {place}: {answers.why(hit)}"

    def _unfound(self, answer: Explained) -> tuple[str, str]:
        k = max(LEAST_CANDIDATES, answers.MOST_RESULTS * 5)
        if not answer["words"] and not answer["keyword"]:
            ranked = answer["meaning_rank"]
            near = (
                f", and by meaning ({answer['meaning']:.2f}) its best passage is only number {ranked}"
                if ranked
                else ""
            )
            return "other words", f"other words: no word of the query stands in it{near}"
        ranks = f"number {answer['keyword_rank']} by words and {answer['meaning_rank'] or 'none'} by meaning"
        return (
            "not a candidate",
            f"not a candidate: its best passage is {ranks}; the first {k} of each are looked at",
        )


def _rank(ordered: Sequence[int], keys: Sequence[int]) -> int:
    wanted = set(keys)
    return next((place for place, key in enumerate(ordered, start=1) if key in wanted), 0)


def _blank(query: str, path: str, stage: str, why: str) -> Explained:
    return Explained(
        query=query,
        path=path,
        stage=stage,
        why=why,
        place=0,
        score=0.0,
        lines="",
        words=[],
        missing=[],
        keyword=0.0,
        keyword_rank=0,
        meaning=0.0,
        meaning_rank=0,
        signals=[],
    )
