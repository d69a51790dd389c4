"""How often suggestions to tidy up are right: `python3 tasks.py bench merges`.

Labels come from a program: a text of a labelled set is told again (every fourth sentence dropped,
the order turned, small words left out), so which text says the same as which is known. Everything
else is another text, and half of the texts are hard: of each set those pairs are taken that have
most rare words in common. A statement is turned into its opposite by another number or a negation. Own
pairs of statements are in `bench/_merge_examples.py`. Of the suggestions that are made at the
thresholds in the code, precision is the share that is right, recall the share of pairs that are
found. Figures of the merges need the built-in model.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from random import Random

import numpy as np
from bench._labelled import DATA, Item, read
from bench._measure import grid
from bench._merge_examples import (
    DIFFERENT,
    DIFFERENT_MEMORIES,
    OPPOSITE,
    SAME,
    SAME_MEMORIES,
)

from ragdocs.config import load
from ragdocs.text import statements
from ragdocs.types import Filter
from ragdocs.verbs.memories.merge import in_same_words, similar_pairs
from ragdocs.verbs.memories.restating import Passages
from ragdocs.workspace import Workspace

SETS = ("k8s-links", "aws-qa", "cranfield", "scifact-train", "longmemeval-a")
THRESHOLDS = (0.75, 0.8, 0.85, 0.9, 0.95)
SHORTEST, LONGEST = 400, 4_000
# Texts of a set among which near ones are looked for, and from which likeness on they are copies.
POOL, COPY = 1_200, 0.9
# Two texts with this share of runs of so many words in common are copies too.
RUN, COPIED = 5, 0.7
SMALL = frozenset(("the", "a", "an", "of", "that", "very", "also", "just"))
_NUMBER = re.compile(r"(?<![\w./-])(?P<number>\d+)(?![\w.-])")
_VERB = re.compile(r"\b(?P<verb>is|are|was|were|can|must|should|will|does)\b(?! not|n't)")

# Pairs that were suggested, those of them that are right, and all that are right.
Counts = tuple[int, int, int]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench merges", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the labelled sets")
    parser.add_argument("--texts", type=int, default=120, help="of each set (default: 120)")
    parser.add_argument("--no-model", action="store_true", help="leave out what needs the model")
    options = parser.parse_args()
    sets = {}
    for name in SETS:
        if (options.data / name).is_dir():
            sets[name] = _texts(read(options.data / name).documents, options.texts)
    if not sets:
        print(f"no labelled sets in {options.data}: only the own examples are measured")
    if sets and not options.no_model:
        _print("memories that say the same, by threshold (0.85 is used)", _merges(sets))
    if sets:
        _print("memories that restate a passage", _restated(sets))
    rows = [_row("own examples", *_opposites(*_own_pairs()))]
    for name, texts in sets.items():
        rows.append(_row(name, *_opposites(*_turned(texts))))
    _print("statements that say the opposite", rows)
    same = [(left, right) for left, right in SAME]
    rows = [_row("own examples", *_judged(_is_same, same, [*OPPOSITE, *DIFFERENT]))]
    _print("statements that say the same", rows)


def _print(title: str, rows: Sequence[Sequence[str]]) -> None:
    print(title)
    print(grid(("set", "suggested", "right", "of", "precision", "recall"), rows))
    print()


def _row(name: str, suggested: int, right: int, total: int) -> tuple[str, ...]:
    precision = right / suggested if suggested else 1.0
    recall = right / total if total else 1.0
    figures = (f"{precision:.3f}", f"{recall:.3f}")
    return (name, str(suggested), str(right), str(total), *figures)


def _texts(documents: Sequence[Item], count: int) -> list[str]:
    """Return texts of the length of a memory: pairs that are near each other, one after the other."""
    fitting = [item.text for item in documents if SHORTEST <= len(item.text) <= LONGEST]
    unique = list(dict.fromkeys(fitting))
    pool = Random(1).sample(unique, min(POOL, len(unique)))
    texts: list[str] = []
    for first, second in _nearest(pool):
        if len(texts) >= count:
            break
        if first not in texts and second not in texts:
            texts += [first, second]
    return texts


def _nearest(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of different texts, those with most rare words in common first.

    Two that share nearly all words may be copies of each other, and nobody labelled them.
    """
    bags = [frozenset(re.findall(r"\w{3,}", text.casefold())) for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    column = {word: position for position, word in enumerate(counts)}
    table = np.zeros((len(texts), len(column)), dtype=np.float32)
    for row, bag in enumerate(bags):
        for word in bag:
            table[row, column[word]] = math.log(len(texts) / counts[word])
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    alike = np.triu(table @ table.T, 1)
    alike[alike > COPY] = 0.0
    order = np.argsort(-alike, axis=None)[: 20 * len(texts)]
    pairs = []
    for row, other in zip(*np.unravel_index(order, alike.shape), strict=True):
        pairs.append((texts[row], texts[other]))
    return pairs


def told_again(text: str, random: Random) -> str:
    """Say the same in other words, as far as a program can."""
    told = []
    for number, sentence in enumerate(statements.all_sentences(text)):
        if number % 4 == 3:
            continue
        words = []
        for word in sentence.split():
            is_small = word.casefold() in SMALL
            if not is_small or random.random() < 0.5:
                words.append(word)
        told.append(" ".join(words))
    half = len(told) // 2
    return "\n\n".join([*told[half:], *told[:half]])


# --- merges ---


def _merges(sets: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Every second text is told again; its neighbour, and everything else, is another text."""
    rows = []
    for name, texts in sets.items():
        random = Random(2)
        again = [(text, told_again(text, random)) for text in texts[::2]]
        rows += _merged(name, again, texts[1::2])
    others = [second for _, second in DIFFERENT_MEMORIES]
    return [*rows, *_merged("own memories", SAME_MEMORIES, others)]


def _merged(
    name: str, same: Sequence[tuple[str, str]], others: Sequence[str]
) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        memories = Path(folder) / ".memories"
        memories.mkdir()
        for number, (text, again) in enumerate(same):
            (memories / f"{number}.md").write_text(text)
            (memories / f"{number}-again.md").write_text(again)
        for number, text in enumerate(others):
            (memories / f"other-{number}.md").write_text(text)
        texts = {path.stem: path.read_text() for path in memories.iterdir()}
        originals = {name: text for name, text in texts.items() if not name.endswith("-again")}
        unlabelled = _unlabelled(originals)
        corpus = _open(Path(folder), lane="memory", model="").corpus("memory")
        documents = corpus.documents()
        rows = []
        for threshold in THRESHOLDS:
            pairs = similar_pairs(corpus, documents, Filter(), threshold)
            pairs = in_same_words(corpus, documents, pairs, threshold)
            right = judged = 0
            for _, first, second in pairs:
                names = (_original(documents[first].id), _original(documents[second].id))
                if frozenset(names) in unlabelled:
                    continue
                judged += 1
                right += names[0] == names[1]
            rows.append(_row(f"{name} {threshold:g}", judged, right, len(same)))
    return rows


def _original(document_id: str) -> str:
    """Return the name of a text without the lane, also of one that is told again."""
    return document_id.partition(":")[2].removesuffix("-again")


def _unlabelled(texts: Mapping[str, str]) -> set[frozenset[str]]:
    """Return the pairs of prose that are copies of each other, which nobody labelled.

    Pages with headings or code share the runs of words of their template and are no copies by that.
    """
    runs = {}
    for name, text in texts.items():
        words = re.findall(r"\w+", text.casefold())
        if not re.search(r"^#|```", text, re.MULTILINE):
            runs[name] = {tuple(words[start : start + RUN]) for start in range(len(words))}
    found = set()
    for first, second in combinations(runs, 2):
        common = len(runs[first] & runs[second])
        if common > COPIED * min(len(runs[first]), len(runs[second])):
            found.add(frozenset((first, second)))
    return found


def _open(root: Path, lane: str, model: str) -> Workspace:
    flags: dict[str, object] = {"memory.enabled": True}
    if model:
        flags["embedding.model"] = model
    workspace = Workspace(load(root, project=root, flags=flags), lanes=(lane,))
    workspace.sync()
    workspace.embed()
    return workspace


# --- the documentation ---


def _restated(sets: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Half of the texts that are told again are in the documentation, half are not."""
    rows = []
    for name, texts in sets.items():
        random = Random(3)
        pages = texts[: len(texts) // 2]
        memories = []
        for text in texts:
            beginning = "\n".join(list(statements.all_sentences(text))[:4])
            memories.append(told_again(beginning, random))
        rows.append(_row(name, *_restating(pages, memories), len(pages)))
    pages = [first for first, _ in SAME_MEMORIES]
    again = [second for _, second in SAME_MEMORIES]
    others = [second for _, second in DIFFERENT_MEMORIES]
    return [*rows, _row("own memories", *_restating(pages, [*again, *others]), len(pages))]


def _restating(pages: Sequence[str], memories: Sequence[str]) -> tuple[int, int]:
    """Count the memories that a page is said to restate, and those of them where it does.

    A memory is about the page of the same number, if there is one.
    """
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        for number, text in enumerate(pages):
            (docs / f"{number}.md").write_text(f"# Page {number}\n\n{text}\n")
        corpus = _open(Path(folder), lane="docs", model="none").corpus("docs")
        documents = corpus.documents()
        chunks = corpus.passages([document.id for document in documents], LONGEST * 2)
        items = []
        for document in documents:
            for chunk in chunks[document.id]:
                items.append((document, chunk))
        passages = Passages(items)
        suggested = right = 0
        for number, memory in enumerate(memories):
            found = passages.restating(memory)
            if found is not None:
                suggested += 1
                right += items[found[1]][0].path == f"docs/{number}.md"
    return suggested, right


# --- statements ---

Pairs = Sequence[tuple[str, str]]


def _own_pairs() -> tuple[Pairs, Pairs]:
    return OPPOSITE, [*SAME, *DIFFERENT]


def _turned(texts: Sequence[str]) -> tuple[Pairs, Pairs]:
    """Return sentences with their opposites, and with what says the same or something else."""
    random = Random(4)
    opposite = []
    others = []
    for text in texts:
        sentences = list(statements.all_sentences(text))
        for sentence, following in pairwise(sentences):
            others += [(sentence, told_again(sentence, random)), (sentence, following)]
            turned = _opposite(sentence, random)
            if turned:
                opposite.append((sentence, turned))
    return opposite, others


def _opposite(sentence: str, random: Random) -> str:
    """Give a sentence another number, or a negation; nothing where it has neither."""
    if len(statements.wording(sentence).content) < 4:
        return ""
    number = _NUMBER.search(sentence)
    if number and random.random() < 0.5:
        other = str(int(number["number"]) * 3 + 7)
        return sentence[: number.start()] + other + sentence[number.end() :]
    verb = _VERB.search(sentence)
    if verb:
        return f"{sentence[: verb.end()]} not{sentence[verb.end() :]}"
    return ""


def _opposites(right: Pairs, wrong: Pairs) -> Counts:
    return _judged(lambda one, other: bool(statements.opposite(one, other)), right, wrong)


def _is_same(one: str, other: str) -> bool:
    return statements.same(one, other)


def _judged(judge: Callable[[str, str], bool], right: Pairs, wrong: Pairs) -> Counts:
    hits = sum(judge(*pair) for pair in right)
    false = sum(judge(*pair) for pair in wrong)
    return hits + false, hits, len(right)


if __name__ == "__main__":
    main()
