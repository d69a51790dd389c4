"""Several rankings become one: a weighted sum of scores, spread along links, put on a scale where 1.0 is certain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ragdocs.lanes import Ranking
from ragdocs.types import Probe, Signal

# What a cosine of all-MiniLM-L6-v2 says about relevance: unrelated texts reach 0.2, clear answers 0.7.
UNRELATED_COSINE = 0.2
CERTAIN_COSINE = 0.7
# Even a passage with every word of the query may be about something else.
KEYWORD_TRUST = 0.9

Numbers = npt.NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class Leg:
    """What one source found for one probe, best first."""

    probe: Probe
    source: str
    found: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Board:
    """Candidates, and what each source says of each: a line for each (probe, source), a column for each candidate.

    A rank of 0 means that the source says nothing.
    """

    keys: tuple[int, ...]
    lines: tuple[tuple[str, str], ...]
    ranks: npt.NDArray[np.int64]
    raws: Numbers
    shares: Numbers

    @property
    def scores(self) -> Numbers:
        """What the shares of each candidate add up to."""
        total: Numbers = self.shares.sum(axis=0)
        return total

    def signals(self, column: int) -> tuple[Signal, ...]:
        """Return what the sources say of one candidate."""
        said = zip(
            self.lines,
            self.ranks[:, column].tolist(),
            self.raws[:, column].tolist(),
            self.shares[:, column].tolist(),
            strict=True,
        )
        return tuple(Signal(*line, rank, raw, share) for line, rank, raw, share in said if rank)


def complete(legs: Sequence[Leg], deep: Sequence[Leg]) -> list[Leg]:
    """Let each leg say more of what the others found, as far as a deeper look of its own tells."""
    known = {key for leg in legs for key, _ in leg.found}
    said = [
        {**{key: raw for key, raw in more.found if key in known}, **dict(leg.found)}
        for leg, more in zip(legs, deep, strict=True)
    ]
    ordered = (sorted(one.items(), key=lambda pair: (-pair[1], pair[0])) for one in said)
    return [replace(leg, found=found) for leg, found in zip(legs, ordered, strict=True)]


def fuse(legs: Sequence[Leg], ranking: Ranking) -> Board:
    """Add up what the legs say of each chunk; a source that could not be asked leaves its weight to the others."""
    weights = {"vector": ranking.vector_weight, "keyword": ranking.keyword_weight}
    whole = sum(weight for source, weight in weights.items() if source in {leg.source for leg in legs}) or 1.0
    probes = sum(probe.weight for probe in {leg.probe for leg in legs}) or 1.0
    keys = {key: None for leg in legs for key, raw in leg.found if raw > 0}
    column = {key: place for place, key in enumerate(keys)}
    shape = (len(legs), len(keys))
    board = Board(
        keys=tuple(keys),
        lines=tuple((leg.probe.name, leg.source) for leg in legs),
        ranks=np.zeros(shape, dtype=np.int64),
        raws=np.zeros(shape),
        shares=np.zeros(shape),
    )
    for line, leg in enumerate(legs):
        said = [(column[key], rank, raw) for rank, (key, raw) in enumerate(leg.found, start=1) if raw > 0]
        if not said:
            continue
        places, ranks, raws = (np.array(values) for values in zip(*said, strict=True))
        # A keyword score has no natural top, so the query's best is the measure; a cosine has one.
        best = raws.max() if leg.source == "keyword" else 1.0
        weight = weights[leg.source] / whole * leg.probe.weight / probes
        board.ranks[line, places] = ranks
        board.raws[line, places] = raws
        board.shares[line, places] = weight * np.minimum(1.0, raws / best)
    return board


def spread(board: Board, boosts: Iterable[tuple[int, float]], ranking: Ranking) -> Board:
    """Give chunks of linked documents a part of what is missing to 1.0; `boosts` are (key, strength of the link)."""
    strongest: dict[int, float] = {}
    for key, strength in boosts:
        strongest[key] = max(strength, strongest.get(key, 0.0))
    ordered = sorted(strongest.items(), key=lambda pair: (-pair[1], pair[0]))
    known = set(board.keys)
    keys = (*board.keys, *(key for key, _ in ordered if key not in known))
    column = {key: place for place, key in enumerate(keys)}
    ranks, raws, shares = _wider(board.ranks, len(keys)), _wider(board.raws, len(keys)), _wider(board.shares, len(keys))
    scores = shares.sum(axis=0)
    for rank, (key, strength) in enumerate(ordered, start=1):
        place = column[key]
        share = ranking.graph_weight * strength * (1.0 - scores[place])
        if share > 0:
            ranks[-1, place], raws[-1, place], shares[-1, place] = rank, strength, share
    return Board(keys, (*board.lines, ("graph", "graph")), ranks, raws, shares)


def evidence(legs: Sequence[Leg]) -> float:
    """Tell how sure the best finding is, 0..1: either source may convince, and two convince more than one."""
    doubt = 1.0
    for source, believe in (("vector", _believe_cosine), ("keyword", _believe_keywords)):
        raws = [raw for leg in legs if leg.source == source for _, raw in leg.found]
        doubt *= 1.0 - believe(max(raws, default=0.0))
    return 1.0 - doubt


def calibrate(board: Board, sureness: float) -> Board:
    """Scale all shares alike so that the best chunk scores `sureness`; the order stays."""
    best = float(board.scores.max(initial=0.0))
    return replace(board, shares=board.shares * (sureness / best if best > 0 else 0.0))


def calibrate_each(board: Board, legs: Sequence[Leg]) -> Board:
    """Scale what each probe says by its own evidence, so that each is on the same scale when they are added up."""
    probes = {leg.probe.name: leg.probe for leg in legs}
    if len(probes) < 2:  # noqa: PLR2004 - a single probe: links count as its own
        return calibrate(board, evidence(legs))
    whole = sum(probe.weight for probe in probes.values()) or 1.0
    shares = board.shares.copy()
    for name, probe in probes.items():
        lines = [place for place, line in enumerate(board.lines) if line[0] == name]
        best = float(shares[lines].sum(axis=0).max(initial=0.0))
        worth = evidence([leg for leg in legs if leg.probe.name == name]) * probe.weight / whole
        shares[lines] *= worth / best if best > 0 else 0.0
    return replace(board, shares=shares)


def order(board: Board) -> list[int]:
    """List the places of candidates by score, best first; equal scores go by key."""
    places: list[int] = np.lexsort((np.array(board.keys, dtype=np.int64), -board.scores)).tolist()
    return places


def _wider(values: npt.NDArray[Number], columns: int) -> npt.NDArray[Number]:
    """Return a copy with one more line and this many columns."""
    result = np.zeros((values.shape[0] + 1, columns), dtype=values.dtype)
    result[:-1, : values.shape[1]] = values
    return result


def _believe_cosine(cosine: float) -> float:
    return min(1.0, max(0.0, (cosine - UNRELATED_COSINE) / (CERTAIN_COSINE - UNRELATED_COSINE)))


def _believe_keywords(score: float) -> float:
    return KEYWORD_TRUST * min(1.0, max(0.0, score))
