"""The arithmetic of scores: what several signals say of each passage becomes one number.

Pure functions over arrays with one row a signal and one column a passage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from ragdocs.lanes import Ranking
from ragdocs.protocols import Floats, Ints, SignalName
from ragdocs.types import Probe

Mask = npt.NDArray[np.bool_]

# Below this a score is the rounding of a cosine.
LEAST = 1e-6
# The sources that measure every passage by itself.
LEGS = ("keyword", "vector")
# Below any score.
NO_NEIGHBOUR = -1.0

# A question has about so many words. Of a long one even a good passage has a smaller share, which
# says more; the weight of words grows with this power of their number.
USUAL_WORDS = 6
LENGTH_POWER = 0.3
# Support for the only passage of a document: nearly all of its own score where most documents have
# one, and little where they have many, because there a document of one passage is rarely the
# answer.
LONE_MOST = 0.8
LONE_RATE = 1.5


@dataclass(frozen=True)
class Layout:
    """How passages form documents: those of one document follow one another."""

    # The column of each document's first passage.
    starts: Ints
    columns: int
    # Documents of a single passage among all that are indexed.
    lone_share: float = 0.0

    @cached_property
    def sizes(self) -> Ints:
        """The number of passages of each document."""
        ends = np.concatenate([self.starts[1:], [self.columns]])
        return ends - self.starts

    def per_passage(self, values: Floats) -> Floats:
        """Repeat the value of a document for each of its passages."""
        repeated: Floats = np.repeat(values, self.sizes, axis=-1)
        return repeated

    def best(self, values: Floats) -> Floats:
        """Return the highest value of each document."""
        highest: Floats = np.maximum.reduceat(values, self.starts, axis=-1)
        return highest

    def second_best(self, values: Floats) -> Floats:
        """Return the second-highest value of each document; two equal ones are both the highest."""
        best = self.best(values)
        is_best = values == self.per_passage(best)
        count = np.add.reduceat(is_best, self.starts, axis=-1, dtype=np.int64)
        others = self.best(np.where(is_best, 0.0, values))
        second: Floats = np.where(count > 1, best, others)
        return second

    def better_neighbour(self, values: Floats) -> Floats:
        """Return the higher value of the passages before and after each passage."""
        before = np.full(self.columns, NO_NEIGHBOUR)
        before[1:] = values[:-1]
        before[self.starts] = NO_NEIGHBOUR
        after = np.full(self.columns, NO_NEIGHBOUR)
        after[:-1] = values[1:]
        after[self.starts[1:] - 1] = NO_NEIGHBOUR
        better: Floats = np.maximum(before, after)
        return better


@dataclass(frozen=True, slots=True)
class Scores:
    """What each signal measured of each passage, and its share of the passage's score."""

    signals: tuple[SignalName, ...]
    raw: Floats
    shares: Floats

    @property
    def totals(self) -> Floats:
        """The score of each passage."""
        total: Floats = self.shares.sum(axis=0)
        return total

    def scaled(self, factors: Floats | float) -> Scores:
        """Multiply all shares of a passage by its factor."""
        return Scores(self.signals, self.raw, self.shares * factors)

    def with_signal(self, source: str, raw: Floats, share: Floats) -> Scores:
        """Add one signal."""
        signals = (*self.signals, (source, source))
        every_raw = np.concatenate([self.raw, raw[None]])
        return Scores(signals, every_raw, np.concatenate([self.shares, share[None]]))

    def at(self, columns: Ints) -> Scores:
        """Keep these passages only."""
        return Scores(self.signals, self.raw[:, columns], self.shares[:, columns])

    def padded(self, count: int) -> Scores:
        """Add so many passages that no signal says anything of."""
        blank = np.zeros((len(self.signals), count))
        raw = np.concatenate([self.raw, blank], axis=1)
        return replace(self, raw=raw, shares=np.concatenate([self.shares, blank], axis=1))


def weighed(
    raw: Mapping[SignalName, Floats],
    columns: int,
    probes: Sequence[Probe],
    term_counts: Mapping[str, int],
    ranking: Ranking,
    unread: Mask | None = None,
) -> Scores:
    """Weigh what the sources measured.

    A passage's score depends on the query and the passage only, never on other candidates. Of
    passages that are `unread` by the model, words alone are weighed.
    """
    signals = tuple(raw)
    measured = np.array([raw[signal] for signal in signals]).reshape(len(signals), columns)
    measured = np.maximum(measured, 0.0)
    weights = signal_weights(signals, probes, term_counts, ranking)
    shares = measured * weights[:, None]
    if unread is not None and unread.any():
        words_only = replace(ranking, vector_weight=0.0)
        word_weights = signal_weights(signals, probes, term_counts, words_only)
        shares[:, unread] = measured[:, unread] * word_weights[:, None]
    return Scores(signals, measured, shares)


def signal_weights(
    signals: Sequence[SignalName],
    probes: Sequence[Probe],
    term_counts: Mapping[str, int],
    ranking: Ranking,
) -> Floats:
    """Weigh probes, and sources within a probe.

    A source that could not be searched leaves its weight to the others.
    """
    weights = []
    of_probe: dict[str, float] = {}
    for probe, source in signals:
        weight = ranking.vector_weight
        if source == "keyword":
            length = max(1, term_counts.get(probe, USUAL_WORDS)) / USUAL_WORDS
            weight = ranking.keyword_weight * length**LENGTH_POWER
        weights.append(weight)
        of_probe[probe] = of_probe.get(probe, 0.0) + weight
    importance = {probe.name: probe.weight for probe in probes if probe.name in of_probe}
    whole = sum(importance.values()) or 1.0
    shares = []
    for (probe, _), weight in zip(signals, weights, strict=True):
        shares.append(weight / (of_probe[probe] or 1.0) * importance[probe] / whole)
    return np.array(shares, dtype=np.float64)


def with_context(scores: Scores, layout: Layout, ranking: Ranking) -> Scores:
    """Let the better neighbour of a passage count beside it.

    A passage without neighbours keeps its score. Lanes with `crowd_discount` lower passages of
    long documents, because more passages mean more chances.
    """
    neighbour = layout.better_neighbour(scores.totals)
    is_alone = neighbour < 0
    weight = np.where(is_alone, 0.0, _share(ranking.context_weight))
    discount = np.where(is_alone, 1.0, 1.0 - ranking.crowd_discount)
    own = scores.scaled((1.0 - weight) * discount)
    return own.with_signal("context", neighbour, neighbour * weight * discount)


def with_support(scores: Scores, layout: Layout, measured: Floats, ranking: Ranking) -> Scores:
    """Let the second-best passage of a document count beside each of its passages.

    `measured` has a row for each source. All passages of a document gain the same: so documents
    keep their order, and the right section of a good page is not far below its best passage.
    """
    weight = _share(ranking.support_weight)
    if not weight:
        nothing = np.zeros(layout.columns)
        return scores.with_signal("support", nothing, nothing)
    lone = min(LONE_MOST, LONE_RATE * layout.lone_share)
    second = np.where(layout.sizes == 1, lone * layout.best(measured), layout.second_best(measured))
    support = layout.per_passage(second.mean(axis=0))
    return scores.scaled(1.0 - weight).with_signal("support", support, support * weight)


def by_source(scores: Scores, probes: Sequence[Probe]) -> Floats:
    """Average what each source measured over the probes, by their weights."""
    importance = {probe.name: probe.weight for probe in probes}
    rows = []
    for leg in LEGS:
        weights = np.zeros(len(scores.signals))
        for row, (probe, source) in enumerate(scores.signals):
            if source == leg:
                weights[row] = importance[probe]
        if weights.any():
            rows.append(weights @ scores.raw / weights.sum())
    return np.array(rows)


def lifted(scores: Scores, source: str, strengths: Floats, weight: float) -> Scores:
    """Give each passage a part of what it lacks to 1.0, by the strength that it is lifted with."""
    share = np.maximum(weight * strengths * (1.0 - scores.totals), 0.0)
    return scores.with_signal(source, strengths, share)


def calibrated(
    scores: Scores, show: Callable[[str, Floats], Floats], probes: Sequence[Probe] = ()
) -> Scores:
    """Put scores on the scale that is shown; the shares of a passage keep their proportions.

    `show` is given the name of the probe and the scores of all passages.

    Each of several probes is put there by itself, so that a sure one does not make an unsure one
    look sure.
    """
    if len(probes) <= 1:
        name = ""
        if probes:
            name = probes[0].name
        return scores.scaled(_scale(scores.totals, partial(show, name)))
    shares = scores.shares.copy()
    whole = sum(probe.weight for probe in probes) or 1.0
    for probe in probes:
        rows = [row for row, (name, _) in enumerate(scores.signals) if name == probe.name]
        totals = shares[rows].sum(axis=0) * whole / probe.weight
        shares[rows] *= _scale(totals, partial(show, probe.name))
    return replace(scores, shares=shares)


def _scale(totals: Floats, show: Callable[[Floats], Floats]) -> Floats:
    blank = np.zeros_like(totals)
    scale: Floats = np.divide(show(totals), totals, out=blank, where=totals > LEAST)
    return scale


def _share(weight: float) -> float:
    """Return the part of the whole that a weight beside 1.0 is."""
    return weight / (1.0 + weight)
