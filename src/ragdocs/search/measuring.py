"""Searches for what has nothing to do with a lane, to measure what chance scores in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from ragdocs.lanes import Ranking
from ragdocs.protocols import Index, IndexInfo, ProbeVector, Vectors
from ragdocs.search import calibration
from ragdocs.search.calibration import Gauge, Gauges
from ragdocs.search.query import Plan, score_candidates
from ragdocs.text import languages
from ragdocs.types import Filter, Probe, Query

# Returns the vector of a text, or nothing if there is no model.
Encode = Callable[[str], "Vectors | None"]

# For questions whose scores do not depend on the time.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# The share of passages that must have come or gone before unrelated questions are asked again: it
# takes 0.1 s.
REMEASURED = 0.1


def stored_gauges(info: IndexInfo, *, has_vectors: bool) -> Gauges:
    """Return the stored gauges, if they were made with or without vectors as it is now."""
    stored = _stored(info)
    if not stored or bool(stored["vectors"]) != has_vectors:
        return Gauges()
    return Gauges.from_stored(stored)


def measure_chance(index: Index, ranking: Ranking, encode: Encode | None) -> None:
    """Search for what has nothing to do with the lane and keep the scores.

    Unless that was done on about as many passages.
    """
    info = index.info()
    stored = _stored(info)
    vectors = 0 if encode is None else info.vectors
    difference = abs(info.passages - stored.get("chunks", 0))
    is_changed = difference > REMEASURED * info.passages
    has_same_sources = bool(vectors) == bool(stored.get("vectors"))
    if info.passages < calibration.FEWEST_PASSAGES or (not is_changed and has_same_sources):
        return
    gauges = measure_gauges(index, ranking, encode if vectors else None)
    index.calibrate(
        {
            **gauges.stored,
            "chunks": info.passages,
            "vectors": vectors,
            "scale": calibration.SCALE,
        }
    )


def _stored(info: IndexInfo) -> Mapping[str, float]:
    """Return the stored calibration, unless scores are made in another way since."""
    if info.calibration.get("scale") != calibration.SCALE:
        return {}
    return info.calibration


def measure_gauges(index: Index, ranking: Ranking, encode: Encode | None) -> Gauges:
    """Ask the unrelated questions by words alone and, with an encoder, by meaning as well."""
    both = words = _gauge(index, ranking, calibration.UNRELATED)
    if encode is not None:
        both = _gauge(index, ranking, calibration.UNRELATED, encode=encode)
    others = []
    for questions in calibration.UNRELATED_IN_OTHER_SCRIPTS:
        usual = calibration.USUAL_OTHER_FLOOR
        others.append(_gauge(index, ranking, questions, usual=usual))
    # A lane is mostly in one language: the one whose questions score highest.
    return Gauges(both, words, max(others, key=lambda gauge: gauge.floor))


def _gauge(
    index: Index,
    ranking: Ranking,
    questions: Sequence[str],
    *,
    encode: Encode | None = None,
    usual: float = calibration.USUAL_FLOOR,
) -> Gauge:
    best = []
    for question in questions:
        vector = None
        if encode is not None:
            vector = encode(question)
        best.append(best_score(index, ranking, question, vector))
    return calibration.measured(best, usual)


def best_score(index: Index, ranking: Ranking, question: str, vector: Vectors | None) -> float:
    """Return the highest score of a question before links and calibration."""
    probe = Probe(question)
    text = question if ranking.keyword_weight else ""
    ready = ProbeVector(probe.name, text, vector, query_languages(question, index.info()))
    plan = Plan(Query(probes=(probe,)), (ready,), ranking, NEVER)
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates(plan.probes, [Filter()], plan.pool)
    return float(score_candidates(plan, candidates).scores.totals.max(initial=0.0))


def query_languages(text: str, info: IndexInfo) -> tuple[str, ...]:
    """Return the languages by whose stems the words of a query are looked for in an index."""
    return languages.of_query(text, info.languages, info.passages)


def query_language(text: str, info: IndexInfo) -> str:
    """Return the language of a query; English, where nothing tells it."""
    return languages.detect(text) or query_languages(text, info)[0]
