"""Measures how texts should be cut.

Size, overlap, and the line of headings above a passage that is embedded.

Each way of cutting goes through the product's pipeline (files, chunks, index, search) on a part of
three labelled sets with long texts. Differences to the default are paired, question by question.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
from bench import _baselines, _corpora, _labelled, _projects, _report
from bench._labelled import Labelled
from bench._measure import grid

from ragdocs.lanes import Chunking
from ragdocs.search import chunk
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.types import Chunk, Parsed
from ragdocs.verbs.quality.measures import DEEP, Difference, compare, ndcg

ROOT = Path(__file__).resolve().parent.parent
SETS = ("aws-qa", "k8s-links", "longmemeval-a")
OURS, WORDS, MEANING = WAYS = ("ours", "words alone", "meaning alone")
USUAL = Chunking()
# Characters of a set that are cut and encoded for each variant, and of the longest text among them.
CHARACTERS, LONGEST = 500_000, 30_000
# Passages whose encoding is timed.
TIMED = 40


@dataclass(frozen=True, slots=True)
class Variant:
    """A way of cutting: characters aimed at, characters repeated from the passage before.

    And what is said above.
    """

    target: int = USUAL.target
    overlap: int = 0
    prefix: str = "headings"

    @property
    def chunking(self) -> Chunking:
        """The sizes; the limit keeps its proportion to the target."""
        return Chunking(self.target, USUAL.limit * self.target // USUAL.target)

    def __str__(self) -> str:
        return f"{self.target}, {self.overlap}, {self.prefix}"


VARIANTS = (
    Variant(),
    Variant(target=450),
    Variant(target=1350),
    Variant(prefix="none"),
    Variant(overlap=150),
    Variant(target=1800),
    Variant(prefix="title"),
    Variant(target=450, overlap=150),
    Variant(overlap=300),
    Variant(target=450, prefix="none"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a variant made of a set.

    Passages and characters to encode, processor seconds of that, nDCG@10 by way.
    """

    documents: int
    chunks: int
    seconds: float
    scores: dict[str, list[float]]


def main() -> None:
    options = _options()
    folders = [
        folder
        for folder in _labelled.folders(options.data)
        if folder.name in options.sets.split(",")
    ]
    chosen = [crowded(_labelled.read(folder), options.characters) for folder in folders]
    outcomes: dict[Variant, list[Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        for variant in VARIANTS[: options.variants]:
            outcomes[variant] = [
                _outcome(variant, one, work / "chunking" / one.name) for one in chosen
            ]
            _labelled.say(_means(outcomes))
    printed = "\n\n".join(
        [
            _about(chosen),
            _means(outcomes),
            *(_table(outcomes, i, one) for i, one in enumerate(chosen)),
        ]
    )
    print(printed)
    _labelled.say(f"{time.process_time() / 60:.1f} processor minutes")
    if options.write:
        _report.replace_block(ROOT / "docs" / "quality.md", "chunking", printed)


def crowded(chosen: Labelled, characters: int) -> Labelled:
    """Return the documents that answer most questions, two thirds at most of so many characters.

    And other ones.
    """
    sizes = {item.id: len(item.text) for item in chosen.documents}
    asked = Counter(id_ for question in chosen.questions for id_ in chosen.grades[question.id])
    others = [item.id for item in chosen.documents if item.id not in asked]
    kept: set[str] = set()
    room = characters
    # Every seventh, then every seventh after those: neighbours in the file are often parts of one
    # guide.
    for ids, least in (
        ([id_ for id_, _ in asked.most_common()], characters // 3),
        ([id_ for start in range(7) for id_ in others[start::7]], 0),
    ):
        for id_ in ids:
            if sizes[id_] <= LONGEST and room - sizes[id_] >= least:
                kept.add(id_)
                room -= sizes[id_]
    questions = [
        question for question in chosen.questions if kept.issuperset(chosen.grades[question.id])
    ]
    return replace(
        chosen,
        documents=[item for item in chosen.documents if item.id in kept],
        questions=questions,
    )


@contextlib.contextmanager
def cutting(variant: Variant) -> Iterator[None]:
    """Let the pipeline cut as a variant does, in what the product has no setting for."""
    plain, passage = chunk.chunk, chunk.passage

    def prefixed(title: str, headings: Sequence[str], text: str) -> str:
        if variant.prefix == "none":
            return text
        return passage(title, () if variant.prefix == "title" else headings, text)

    def overlapped(parsed: Parsed, chunking: Chunking) -> tuple[Chunk, ...]:
        pieces = plain(parsed, chunking)
        return (
            *pieces[:1],
            *(_with_end(one, piece, parsed, variant) for one, piece in pairwise(pieces)),
        )

    with mock.patch.multiple(
        chunk, passage=prefixed, chunk=overlapped if variant.overlap else plain
    ):
        yield


def _with_end(before: Chunk, piece: Chunk, parsed: Parsed, variant: Variant) -> Chunk:
    """Put the end of the passage before in front of one, unless another section begins there."""
    if before.headings != piece.headings:
        return piece
    end = before.text[-variant.overlap :].partition(" ")[2]
    text = f"{end}\n{piece.text}"
    embedded = chunk.passage(parsed.document.title, piece.headings, text)
    digest = blake2b(embedded.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return replace(piece, text=text, digest=digest)


def _outcome(variant: Variant, chosen: Labelled, root: Path) -> Outcome:
    shutil.rmtree(root, ignore_errors=True)
    started = time.monotonic()
    with cutting(variant):
        project = _projects.write(chosen, root)
        corpus = project.corpus
        corpus.lane = replace(corpus.lane, chunking=variant.chunking)
        corpus.sync()
        seconds = _seconds(project)
        corpus.embed()
    scores: dict[str, list[float]] = {way: [] for way in WAYS}
    for question in chosen.questions:
        found = [project.found(question)[0]]
        found += [
            list(_baselines.pooled(project, leg)) for leg in _baselines.legs(project, question)
        ]
        for way, ranked in zip(WAYS, found, strict=True):
            scores[way].append(ndcg(ranked[:DEEP], chosen.grades[question.id]))
    counts = corpus.index.counts()
    _labelled.say(
        f"{variant!s:20} {chosen.name:14} {counts['chunks']:,} chunks after {time.monotonic() - started:.0f} s"
    )
    return Outcome(len(chosen.documents), counts["chunks"], seconds * counts["chunks"], scores)


def _seconds(project: _projects.Project) -> float:
    """Return the processor seconds that encoding a passage takes.

    Of some from all over the set and not remembered.
    """
    index = project.corpus.index
    keys = [key for document in index.documents() for key in index.chunks(document.id)]
    loaded = index.load([keys[i * len(keys) // TIMED] for i in range(TIMED)])
    texts = [chunk.passage(card.title, piece.headings, piece.text) for card, piece in loaded]
    encoder = OnnxEncoder()
    encoder.prepare()
    started = time.process_time()
    encoder.encode(texts)
    return (time.process_time() - started) / len(texts)


def _about(chosen: Sequence[Labelled]) -> str:
    parts = (
        f"{len(one.documents):,} texts and {len(one.questions):,} questions of {one.name}"
        for one in chosen
    )
    return (
        f"Measured on {', '.join(parts)}: texts that answer most questions, and others, none above {LONGEST:,} "
        "characters. A variant is the characters aimed at, those repeated from the passage before in the same section, "
        "and what is embedded above the passage; words are always looked up in title and headings. nDCG@10, and "
        "differences to the first line in points, paired by question, ± the standard error; cost is the processor time "
        "of encoding."
    )


def _means(outcomes: dict[Variant, list[Outcome]]) -> str:
    """Compare variants on the mean of the sets."""
    first = outcomes[VARIANTS[0]]
    head = (
        "mean of the sets",
        "passages",
        "cost",
        *(cell for way in WAYS for cell in (way, "points")),
    )
    lines = []
    for variant, made in outcomes.items():
        passages = sum(one.chunks for one in made) / sum(one.chunks for one in first)
        cost = sum(one.seconds for one in made) / sum(one.seconds for one in first)
        line = [str(variant), f"{passages:.2f} x", f"{cost:.2f} x"]
        for way in WAYS:
            gains = [
                compare(mine.scores[way], base.scores[way])
                for mine, base in zip(made, first, strict=True)
            ]
            error = float(np.sqrt(sum(gain.error**2 for gain in gains)) / len(gains))
            points = Difference(float(np.mean([gain.points for gain in gains])), error, 1.0)
            line += [
                f"{np.mean([np.mean(one.scores[way]) for one in made]):.4f}",
                _signed(variant, points),
            ]
        lines.append(line)
    return grid(head, lines)


def _table(outcomes: dict[Variant, list[Outcome]], place: int, chosen: Labelled) -> str:
    head = (
        chosen.name,
        "passages a text",
        "cpu ms a text",
        *(cell for way in WAYS for cell in (way, "points")),
    )
    first = outcomes[VARIANTS[0]][place]
    lines = []
    for variant, made in outcomes.items():
        one = made[place]
        line = [
            str(variant),
            f"{one.chunks / one.documents:.1f}",
            f"{one.seconds / one.documents * 1000:.0f}",
        ]
        for way in WAYS:
            points = compare(one.scores[way], first.scores[way])
            line += [f"{np.mean(one.scores[way]):.4f}", _signed(variant, points)]
        lines.append(line)
    return grid(head, lines)


def _signed(variant: Variant, points: Difference) -> str:
    return "" if variant == VARIANTS[0] else str(points)


def _options() -> argparse.Namespace:
    parser = _labelled.parser("chunking", __doc__, "quality.md")
    parser.add_argument("--sets", default=",".join(SETS), help="the sets, by commas")
    parser.add_argument("--characters", type=int, default=CHARACTERS, help="characters of a set")
    parser.add_argument(
        "--variants", type=int, default=len(VARIANTS), help="only the first so many ways of cutting"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
