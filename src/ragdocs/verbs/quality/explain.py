"""Why a document answers a query, or at which stage of the search it dropped out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.calibration import FALSE_ALARMS, FLOOR
from ragdocs.search.corpus import Corpus
from ragdocs.search.query import LEAST_CANDIDATES
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page, references
from ragdocs.verbs.shapes import Explained

PUNCTUATION = ".,;:!?\"'()"


@dataclass(frozen=True, slots=True)
class Explain:
    """What can be asked about the search itself."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def explain(
        self, query: str, path: str, limit: int = 5, *, tags: Sequence[str] = (), kind: str = ""
    ) -> Explained:
        """Tell where a document stands for a query, or at which stage it dropped out."""
        page.check_limit(limit)
        if not query.strip():
            raise ValidationError("the query is empty", "Give the words that were searched for")
        document = references.find(self.corpus, path.strip().removeprefix("./"))
        if document is None:
            return self._absent(query, path)
        kinds = (kind,) if kind else ()
        where = Filter(tags=tuple(tags), kinds=kinds)
        now = self.clock()
        search = Query(probes=(Probe(query),), limit=page.MOST_RESULTS, where=where)
        position, hit = _position(self.corpus.search(search, now).hits, document)
        answer = self._answer(query, document, hit)
        answer["place"] = position
        objection = self._objection(document, where, now)
        if objection:
            answer["stage"], answer["why"] = "filtered", objection
        else:
            answer["stage"], answer["why"] = self._verdict(hit, answer, limit)
        return answer

    def _absent(self, query: str, path: str) -> Explained:
        """Tell why a path is not in the index."""
        name = path.strip().removeprefix("./")
        scan = self.corpus.store.scan([name])
        reason = self.corpus.skipped.get(name) or scan.unreadable.get(name)
        if reason:
            why = f"not indexed: {reason}"
        elif name in scan.stamps:
            why = (
                "not indexed yet: the file is there"
                " and will be read with the next look at the files"
            )
        else:
            why = self._unknown(name)
        return _blank(query, name, "not indexed", why)

    def _unknown(self, name: str) -> str:
        """Say that no file of a lane has this name, and which names are like it."""
        lane = self.corpus.lane
        paths = [document.path for document in self.corpus.documents()]
        if not paths:
            raise NotFoundError(
                f"the {lane.name} lane is empty", "Add documents, or ask another lane"
            )
        included = ", ".join(lane.include)
        why = f"not indexed: no file of that name belongs to this lane ({included})"
        similar = difflib.get_close_matches(name, paths, n=3, cutoff=0.5)
        if similar:
            why += f"; did you mean {', '.join(similar)}?"
        return why

    def _objection(self, document: Document, where: Filter, now: datetime) -> str:
        """Say why a search leaves a document out before looking at it, if it does."""
        hidden = {status.casefold() for status in self.corpus.lane.hidden}
        if document.status.casefold() in hidden:
            return f"filtered: its status is {document.status}, which is left out unless asked for"
        if document.expires_at is not None and document.expires_at <= now:
            return f"filtered: it expired at {page.moment(document.expires_at)}"
        if not self._passes(document, Filter(tags=where.tags)):
            return "filtered: it has not the tags asked for"
        if not self._passes(document, Filter(kinds=where.kinds)):
            return "filtered: it has not the type asked for"
        return ""

    def _passes(self, document: Document, where: Filter) -> bool:
        return any(document.id == other.id for other in self.corpus.documents(where))

    def _answer(self, query: str, document: Document, hit: Hit | None) -> Explained:
        """Return what the sources say of the document's passage, whether it was found or not."""
        passage_id = hit.chunk.id if hit else ""
        measured = self.corpus.measure(query, document.id, passage_id)
        answer = _blank(query, document.path, "", "")
        passage = measured.passage
        answer["lines"] = f"{passage.start_line}-{passage.end_line}"
        answer["words"] = list(measured.words)
        for word in dict.fromkeys(query.split()):
            if word.strip(PUNCTUATION) not in measured.words:
                answer["missing"].append(word)
        answer["keyword"] = round(measured.keyword, 4)
        answer["keyword_rank"] = measured.keyword_rank
        answer["meaning"] = round(measured.meaning, 4)
        answer["meaning_rank"] = measured.meaning_rank
        if hit is not None:
            answer["score"] = round(hit.score, 4)
            answer["signals"] = page.signals(hit)
        return answer

    def _verdict(self, hit: Hit | None, answer: Explained, limit: int) -> tuple[str, str]:
        """Name the first stage that keeps the document out, or say that nothing does."""
        if hit is None:
            return _no_candidate(answer)
        position = answer["place"]
        if self.corpus.gauge().measured and hit.score < FLOOR:
            bar = f"{FLOOR} is what {FALSE_ALARMS:.0%} of unrelated questions reach"
            return "below the floor", f"below the floor: its score is {hit.score:.2f}, and {bar}"
        if position > limit:
            why = f"cut by limit: it is number {position}, and {limit} were asked for"
            return "cut by limit", why
        return "shown", f"shown as number {position}: {page.why(hit)}"


def _position(hits: Sequence[Hit], document: Document) -> tuple[int, Hit | None]:
    """Return the first hit in a document and its number, or 0 if there is none."""
    for position, hit in enumerate(hits, start=1):
        if hit.document.id == document.id:
            return position, hit
    return 0, None


def _no_candidate(answer: Explained) -> tuple[str, str]:
    """Say why neither words nor meaning made a document a candidate."""
    by_words = answer["keyword_rank"]
    by_meaning = answer["meaning_rank"]
    if not answer["words"] and not answer["keyword"]:
        why = "other words: no word of the query stands in it"
        if by_meaning:
            why += f", and by meaning ({answer['meaning']:.2f})"
            why += f" its best passage is only number {by_meaning}"
        return "other words", why
    ranks = f"number {by_words} by words and {by_meaning or 'none'} by meaning"
    candidates = max(LEAST_CANDIDATES, page.MOST_RESULTS * 5)
    bound = f"the first {candidates} of each are looked at"
    return "not a candidate", f"not a candidate: its best passage is {ranks}; {bound}"


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
