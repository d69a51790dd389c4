"""Several rankings become one.

A weighted sum of scores, with a part of what stands beside, spread along links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ragdocs.lanes import Ranking
from ragdocs.protocols import Siblings
from ragdocs.types import Probe, Signal

# A score that is nothing but the rounding of a cosine.
LEAST = 1e-6

# A question has about so many words. Of a long one even a good passage has a smaller share, which
# tells the more; the weight of words grows with this power of their number.
USUAL_WORDS = 6
LENGTH_POWER = 0.3
# What the only passage of a document counts for beside itself: nearly all where most documents have
# one, and little where they have many, because there a document of one passage is rarely what is
# looked for.
LONE_MOST = 0.8
LONE_RATE = 1.5

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Leg:
    """What one source found for one probe, best first.

    `words` is how many words the probe asks for.
    """

    probe: Probe
    source: str
    found: Sequence[tuple[int, float]]
    words: int = USUAL_WORDS


@dataclass(frozen=True, slots=True)
class Board:
    """Candidates, and what each source says of each.

    A line for each (probe, source), a column for each candidate.

    `ranks` has for each line the places of those that the source found by itself.
    """

    keys: tuple[int, ...]
    lines: tuple[tuple[str, str], ...]
    ranks: tuple[Mapping[int, int], ...]
    raws: Numbers
    shares: Numbers

    @property
    def scores(self) -> Numbers:
        """What the shares of each candidate add up to."""
        total: Numbers = self.shares.sum(axis=0)
        return total

    def signals(self, column: int) -> tuple[Signal, ...]:
        """Return what the sources say of one candidate."""
        key = self.keys[column]
        said = zip(
            self.lines,
            self.ranks,
            self.raws[:, column].tolist(),
            self.shares[:, column].tolist(),
            strict=True,
        )
        return tuple(
            Signal(*line, ranks.get(key, 0), raw, share)
            for line, ranks, raw, share in said
            if share > 0
        )


def candidates(legs: Sequence[Leg]) -> list[int]:
    """Return the keys that any leg found, in order."""
    return list({key: None for leg in legs for key, raw in leg.found if raw > 0})


def fuse(legs: Sequence[Leg], keys: Sequence[int], raws: Numbers, ranking: Ranking) -> Board:
    """Add up what the legs say of each chunk.

    A source that could not be asked leaves its weight to the others.

    `raws` has a line for each leg: what it says of each key, also of those that it did not find
    itself. Two chunks that are looked at for the same query are told apart by their own scores
    alone, whatever else is looked at.
    """
    weights = [_weight(leg, ranking) for leg in legs]
    whole: dict[Probe, float] = {}
    for leg, weight in zip(legs, weights, strict=True):
        whole[leg.probe] = whole.get(leg.probe, 0.0) + weight
    probes = sum(probe.weight for probe in whole) or 1.0
    ranks = tuple(
        {key: rank for rank, (key, raw) in enumerate(leg.found, start=1) if raw > 0} for leg in legs
    )
    pairs = zip(legs, weights, strict=True)
    factors = np.array(
        [weight / (whole[leg.probe] or 1.0) * leg.probe.weight / probes for leg, weight in pairs]
    )
    raws = np.maximum(raws, 0.0)
    lines = tuple((leg.probe.name, leg.source) for leg in legs)
    return Board(tuple(keys), lines, ranks, raws, raws * factors[:, None])


def settle(
    board: Board,
    legs: Sequence[Leg],
    found: npt.NDArray[np.int64],
    family: Siblings,
    ranking: Ranking,
) -> Board:
    """Keep the chunks that were found.

    With a part of what stands beside them and elsewhere in their documents.

    A chunk that stands alone keeps its score, as if it were its own context: having neighbours is
    no merit by itself. Where it is even a chance more, because the best of several passages speaks
    for a document, some of it is taken.
    """
    sizes = family.sizes
    # One place more than there are, for neighbours that do not exist.
    scores = np.append(board.scores, -1.0)
    before, after = np.arange(-1, len(family.keys) - 1), np.arange(1, len(family.keys) + 1)
    before[family.starts] = after[family.starts + sizes - 1] = -1
    context = np.maximum(scores[before], scores[after])
    alone = context < 0
    part = np.where(alone, 0.0, ranking.context_weight / (1 + ranking.context_weight))
    kept = np.where(alone, 1.0, 1 - ranking.crowd_discount)
    shares = np.concatenate([board.shares * (1 - part), (context * part)[None]]) * kept
    weight = ranking.support_weight / (1 + ranking.support_weight)
    support = np.zeros(len(family.keys))
    if weight and len(found):
        totals = shares.sum(axis=0)
        # Given to the best passage alone: the others would crowd out other pages.
        leads = totals == np.repeat(np.maximum.reduceat(totals, family.starts), sizes)
        support[leads] = np.repeat(_support(board, legs, family), sizes)[leads]
    places = np.searchsorted(family.keys, found)
    return Board(
        tuple(found.tolist()),
        (*board.lines, ("context", "context"), ("support", "support")),
        (*board.ranks, {}, {}),
        np.concatenate([board.raws, context[None], support[None]])[:, places],
        np.concatenate([shares * (1 - weight), (support * weight)[None]])[:, places],
    )


def _support(board: Board, legs: Sequence[Leg], family: Siblings) -> Numbers:
    """Return what the second-best passage of each document says.

    The mean of what it says to each source.
    """
    sizes = family.sizes
    sources = {leg.source: None for leg in legs}
    weights = {
        source: np.array([leg.probe.weight * (leg.source == source) for leg in legs])
        for source in sources
    }
    raws = np.array([each @ board.raws / (each.sum() or 1.0) for each in weights.values()])
    best = np.maximum.reduceat(raws, family.starts, axis=1)
    is_best = raws == np.repeat(best, sizes, axis=1)
    others = np.maximum.reduceat(np.where(is_best, 0.0, raws), family.starts, axis=1)
    # Where two are equally good, the second is as good as the first.
    second = np.where(
        np.add.reduceat(is_best, family.starts, axis=1, dtype=np.int64) > 1, best, others
    )
    lone = min(LONE_MOST, LONE_RATE * family.lone)
    support: Numbers = np.where(sizes == 1, lone * best, second).mean(axis=0)
    return support


def lift(board: Board, source: str, boosts: Iterable[tuple[int, float]], weight: float) -> Board:
    """Give chunks a part of what is missing to 1.0.

    `boosts` are (key, strength), such as that of a link to it.
    """
    strongest: dict[int, float] = {}
    for key, strength in boosts:
        strongest[key] = max(strength, strongest.get(key, 0.0))
    ordered = sorted(strongest.items(), key=lambda pair: (-pair[1], pair[0]))
    known = set(board.keys)
    keys = (*board.keys, *(key for key, _ in ordered if key not in known))
    column = {key: place for place, key in enumerate(keys)}
    raws, shares = _wider(board.raws, len(keys)), _wider(board.shares, len(keys))
    if ordered:
        places = [column[key] for key, _ in ordered]
        strengths = np.array([strength for _, strength in ordered])
        raws[-1, places] = strengths
        shares[-1, places] = np.maximum(
            weight * strengths * (1.0 - shares.sum(axis=0)[places]), 0.0
        )
    ranks = {key: rank for rank, (key, _) in enumerate(ordered, start=1)}
    return Board(keys, (*board.lines, (source, source)), (*board.ranks, ranks), raws, shares)


def calibrate(
    board: Board, show: Callable[[Numbers], Numbers], probes: Sequence[Probe] = ()
) -> Board:
    """Put the score of each chunk on the scale that is shown; its shares keep their proportions.

    Of several probes each is put there by itself, so that a sure one does not make an unsure one
    look sure.
    """
    if len(probes) < 2:  # noqa: PLR2004 - a single probe: links and context count as its own
        return replace(board, shares=board.shares * _scales(board.scores, show))
    shares, whole = board.shares.copy(), sum(probe.weight for probe in probes) or 1.0
    for probe in probes:
        lines = [place for place, line in enumerate(board.lines) if line[0] == probe.name]
        shares[lines] *= _scales(shares[lines].sum(axis=0) * whole / probe.weight, show)
    return replace(board, shares=shares)


def _scales(scores: Numbers, show: Callable[[Numbers], Numbers]) -> Numbers:
    scales: Numbers = np.divide(
        show(scores), scores, out=np.zeros_like(scores), where=scores > LEAST
    )
    return scales


def _weight(leg: Leg, ranking: Ranking) -> float:
    if leg.source == "vector":
        return ranking.vector_weight
    return float(ranking.keyword_weight * (max(1, leg.words) / USUAL_WORDS) ** LENGTH_POWER)


def order(board: Board) -> list[int]:
    """List the places of candidates by score, best first; equal scores go by key."""
    places: list[int] = np.lexsort((np.array(board.keys, dtype=np.int64), -board.scores)).tolist()
    return places


def _wider(values: Numbers, columns: int) -> Numbers:
    """Return a copy with one more line and this many columns."""
    result = np.zeros((values.shape[0] + 1, columns))
    result[:-1, : values.shape[1]] = values
    return result
