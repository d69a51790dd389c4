"""Several rankings become one: a weighted sum of scores, spread along links, put on a scale where 1.0 is certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragdocs.lanes import Ranking
from ragdocs.types import Probe, Signal

# What a cosine of all-MiniLM-L6-v2 says about relevance: unrelated texts reach 0.2, clear answers 0.7.
UNRELATED_COSINE = 0.2
CERTAIN_COSINE = 0.7
# Even a passage with every word of the query may be about something else.
KEYWORD_TRUST = 0.9

Shares = dict[int, list[Signal]]


@dataclass(frozen=True, slots=True)
class Leg:
    """What one source found for one probe, best first."""

    probe: Probe
    source: str
    found: Sequence[tuple[int, float]]


def fuse(legs: Sequence[Leg], ranking: Ranking) -> Shares:
    """Add up what the legs say of each chunk; a source that could not be asked leaves its weight to the others."""
    weights = {"vector": ranking.vector_weight, "keyword": ranking.keyword_weight}
    asked = {leg.source for leg in legs}
    whole = sum(weight for source, weight in weights.items() if source in asked) or 1.0
    probes = sum(probe.weight for probe in {leg.probe for leg in legs}) or 1.0
    shares: Shares = {}
    for leg in legs:
        weight = weights[leg.source] / whole * leg.probe.weight / probes
        # A keyword score has no natural top, so the query's best is the measure; a cosine has one.
        best = max((raw for _, raw in leg.found), default=0.0) if leg.source == "keyword" else 1.0
        for rank, (key, raw) in enumerate(leg.found, start=1):
            if raw > 0 and best > 0:
                share = weight * min(1.0, raw / best)
                shares.setdefault(key, []).append(Signal(leg.probe.name, leg.source, rank, raw, share))
    return shares


def spread(shares: Shares, boosts: Iterable[tuple[int, float]], ranking: Ranking) -> Shares:
    """Give chunks of linked documents a part of what is missing to 1.0; `boosts` are (key, strength of the link)."""
    strongest: dict[int, float] = {}
    for key, strength in boosts:
        strongest[key] = max(strength, strongest.get(key, 0.0))
    result = {key: list(signals) for key, signals in shares.items()}
    for rank, (key, strength) in enumerate(sorted(strongest.items(), key=lambda pair: (-pair[1], pair[0])), start=1):
        share = ranking.graph_weight * strength * (1.0 - total(result.get(key, ())))
        if share > 0:
            result.setdefault(key, []).append(Signal("graph", "graph", rank, strength, share))
    return result


def evidence(legs: Sequence[Leg]) -> float:
    """Tell how sure the best finding is, 0..1: either source may convince, and two convince more than one."""
    doubt = 1.0
    for source, believe in (("vector", _believe_cosine), ("keyword", _believe_keywords)):
        raws = [raw for leg in legs if leg.source == source for _, raw in leg.found]
        doubt *= 1.0 - believe(max(raws, default=0.0))
    return 1.0 - doubt


def calibrate(shares: Shares, sureness: float) -> Shares:
    """Scale all shares alike so that the best chunk scores `sureness`; the order stays."""
    best = max(map(total, shares.values()), default=0.0)
    if best <= 0:
        return {}
    scale = sureness / best
    return {
        key: [Signal(s.probe, s.source, s.rank, s.raw, s.share * scale) for s in signals]
        for key, signals in shares.items()
    }


def total(signals: Iterable[Signal]) -> float:
    """Return the score that signals add up to."""
    return sum(signal.share for signal in signals)


def scores(shares: Mapping[int, Sequence[Signal]]) -> list[tuple[int, float]]:
    """List chunks by score, best first; equal scores go by key."""
    return sorted(((key, total(signals)) for key, signals in shares.items()), key=lambda pair: (-pair[1], pair[0]))


def _believe_cosine(cosine: float) -> float:
    return min(1.0, max(0.0, (cosine - UNRELATED_COSINE) / (CERTAIN_COSINE - UNRELATED_COSINE)))


def _believe_keywords(score: float) -> float:
    return KEYWORD_TRUST * min(1.0, max(0.0, score))
