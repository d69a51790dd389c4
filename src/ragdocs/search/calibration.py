"""What a score is worth.

Measured against the scores that questions about something else reach in the same lane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

# Named in what is stored: after a change of how scores are made they are measured anew, and nothing
# else is.
SCALE = 3
# The share of unrelated questions whose best answer may pass for one.
FALSE_ALARMS = 0.05
# Standard deviations above the middle that a normal distribution passes as often as that.
_DEVIATIONS = 1.645
# Of a normal distribution, what a standard deviation is of the median distance from the middle.
_FROM_MEDIAN = 1.4826
# A third of the query's words, a cosine as high, and what links lend: ordinary words of questions
# in a lane of prose reach that by chance, where questions about rare things do not.
USUAL_FLOOR = 0.36
# In technical documentation ordinary questions reach at most this much more than those below. Where
# even that is less than the usual floor, the floor is lower, down to the least.
ORDINARY_WORDS = 0.1
LEAST_FLOOR = 0.3
# Words alone, of scripts that the model cannot read: on 124 pages each of one handbook in Chinese,
# Japanese and Russian, unrelated questions reached 0.36, most of them 0.25. True ones reached 0.25
# or more, most of them 0.45.
USUAL_OTHER_FLOOR = 0.2
# A lane that has something to say about everything answers some of the questions below, and its
# floor would hide true answers. docs/internals/decisions.md says what the floor lets through
# and hides.
MOST_FLOOR = 0.45
# What a score must gain above the floor to be shown e times as sure. How far chance scatters says
# nothing about how sure a hit is: on that scale nearly every answer was shown as 1, where the next
# boost outweighed any difference.
SURENESS = 0.15
# Below this a best hit is marked as weak where there are too few documents to compare it with.
WEAK = 0.65
# Otherwise what a best hit has above the floor, and this part of its lead over the tenth document,
# must come to this: a question that nothing answers finds many texts that are equally near. That is
# counted from the usual floor where the floor is lower. bench/silence.py prints how often true
# questions and such ones are marked.
LEAD_WEIGHT = 0.6
SURE = 0.3
# Below this many passages the best of a few chance matches says little about the next question.
FEWEST_PASSAGES = 100
# Scores of questions nobody would ask of a project of any kind; some may still meet it, so the
# middle is a median.
UNRELATED = (
    "how do glass blowers keep a vase from cracking while it cools",
    "which moves are forbidden in sumo wrestling",
    "when did the Hanseatic League lose its trade with Bergen",
    "how deep does a nile crocodile lay its eggs",
    "who composed the opera about the flying Dutchman",
    "what makes a soufflé collapse in the oven",
    "how are violin strings made from sheep gut",
    "which moons of Saturn have geysers",
    "why did the Aral Sea dry up",
    "how do falconers train a young goshawk",
    "what is the offside rule in water polo",
    "which grapes go into a Tokaji wine",
    "how was the dome of Florence cathedral built without scaffolding",
    "why do flamingos stand on one leg",
    "what did Roman legionaries carry on the march",
    "how to prune an old apple tree in winter",
    "which beetle larvae glow in the caves of New Zealand",
    "how many strokes does the character for dragon have",
    "what causes the colours of the northern lights",
    "who painted the ceiling of the Sistine chapel",
    "how long does a pour of bronze take to harden in a bell mould",
    "which knot do climbers use to tie two ropes together",
    "what were the terms of the peace of Westphalia",
    "how do honey ants store nectar for the dry season",
    "when is the best time to plant saffron crocus",
    "why does a boomerang come back",
    "which vaccine ended smallpox in the Horn of Africa",
    "how is parmesan tested with a small hammer",
    "what is the longest river of Madagascar",
    "how did the Polynesians find Easter Island",
    "which tango steps come from milonga",
    "what do the bars on a heraldic shield mean",
    "how are pearls graded by lustre and nacre",
    "why did the zeppelin over Lakehurst burn",
    "which dialects are spoken in the valleys of Wallis",
    "how do sled dogs keep their paws from freezing",
    "what is the recipe for medieval iron gall ink",
    "how high can a peregrine soar before it stoops",
    "which emperor moved the capital to Kyoto",
    "how does yeast make champagne sparkle in the bottle",
)
# Such questions in other scripts, by language: how much chance comes to depends on how a language
# is written, and most lanes have one of these languages or none.
UNRELATED_IN_OTHER_SCRIPTS = (
    (
        "为什么火烈鸟喜欢单腿站立",
        "哪个皇帝把首都迁到了洛阳",
        "如何酿造一瓶好的葡萄酒",
        "土星有多少颗卫星",
        "极光的颜色是怎么形成的",
        "怎样训练一只小猎鹰",
        "番红花什么时候种最好",
        "飞去来器为什么会飞回来",
        "马达加斯加最长的河流是哪条",
        "中世纪的墨水是用什么做的",
        "登山者用什么结连接两根绳子",
        "苹果树冬天应该怎样修剪",
    ),
    (
        "フラミンゴはなぜ片足で立つのですか",
        "都を京都に移した天皇は誰ですか",
        "瓶の中で泡ができるのはなぜですか",
        "土星には衛星がいくつありますか",
        "オーロラの色はどうして生まれるのですか",
        "若い鷹をどうやって訓練しますか",
        "サフランはいつ植えるのが一番よいですか",
        "ブーメランはなぜ戻ってくるのですか",
        "マダガスカルで一番長い川は何ですか",
        "中世のインクは何から作られましたか",
        "二本のロープをつなぐ結び方は何ですか",
        "冬に古いりんごの木をどう剪定しますか",
    ),
    (
        "почему фламинго стоят на одной ноге",
        "какой император перенёс столицу в Киото",
        "откуда в шампанском берутся пузырьки",
        "сколько спутников имеет Сатурн",
        "отчего бывает северное сияние",
        "как дрессируют молодого ястреба",
        "когда лучше сажать шафран",
        "почему бумеранг возвращается",
        "какая река на Мадагаскаре самая длинная",
        "из чего делали чернила в средние века",
        "каким узлом альпинисты связывают две верёвки",
        "как обрезать старую яблоню зимой",
    ),
)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The middle and the spread of the best scores of unrelated questions.

    Unmeasured until there is enough.
    """

    # What all-MiniLM-L6-v2 and a few shared words come to by chance where nothing was measured,
    # twice as wide as usual.
    middle: float = 0.2
    spread: float = 0.1
    measured: bool = False
    usual: float = USUAL_FLOOR

    @property
    def floor(self) -> float:
        """The score that one unrelated question in twenty passes.

        Within what weak and true signals add up to.
        """
        passed = self.middle + _DEVIATIONS * self.spread
        by_ordinary_words = max(LEAST_FLOOR, passed + ORDINARY_WORDS)
        return min(MOST_FLOOR, max(passed, min(self.usual, by_ordinary_words)))

    def weak_below(self, lead: float | None) -> float:
        """Return the score below which a best hit with this lead is weak."""
        if lead is None:
            return WEAK
        needed = SURE + max(0.0, self.usual - self.floor) - LEAD_WEIGHT * lead
        return 1 / (1 + math.exp(-needed / SURENESS))

    def show(self, scores: Numbers) -> Numbers:
        """Put scores on a scale from 0 to 1 where the floor is one half.

        A higher score is always shown higher.
        """
        above = scores - self.floor
        # Logistic curves: they never end, so that the order of very good and very bad scores stays.
        on_scale: Numbers = 1 / (1 + np.exp(-above / np.where(above > 0, SURENESS, self.spread)))
        return on_scale


@dataclass(frozen=True, slots=True)
class Gauges:
    """What scores are measured by, depending on which sources made them."""

    # Words and meaning, or what there is of both.
    both: Gauge = Gauge()
    # Words alone: of a query in Latin letters for a passage in another script, and of a query in
    # another script.
    words: Gauge = Gauge()
    other_script: Gauge = Gauge(usual=USUAL_OTHER_FLOOR)

    @classmethod
    def from_stored(cls, stored: Mapping[str, float]) -> Gauges:
        """Return the gauges that `stored` has written down."""
        return cls(
            Gauge(stored["middle"], stored["spread"], measured=True),
            Gauge(stored["words_middle"], stored["words_spread"], measured=True),
            Gauge(
                stored["other_middle"],
                stored["other_spread"],
                measured=True,
                usual=USUAL_OTHER_FLOOR,
            ),
        )

    @property
    def stored(self) -> dict[str, float]:
        """The numbers that are kept with an index."""
        return {
            "middle": self.both.middle,
            "spread": self.both.spread,
            "words_middle": self.words.middle,
            "words_spread": self.words.spread,
            "other_middle": self.other_script.middle,
            "other_spread": self.other_script.spread,
        }


def measured(best: Sequence[float], usual: float = USUAL_FLOOR) -> Gauge:
    """Return the gauge for the best scores of the unrelated questions."""
    ordered = sorted(best)
    middle = ordered[len(ordered) // 2]
    # Only upwards: low scores tell nothing about how high chance can reach.
    above = sorted(score - middle for score in ordered if score >= middle)
    spread = _FROM_MEDIAN * above[len(above) // 2]
    return Gauge(middle, max(spread, 0.02), measured=True, usual=usual)
