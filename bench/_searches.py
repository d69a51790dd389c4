"""Search and writing through the verbs, in this process, without the cost of encoding."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench import _corpora
from bench._corpora import MODULES, Corpus
from bench._measure import Row, Sample, cost, each, figure, unlike_warm

from ragdocs.engines.local.inversion import invert
from ragdocs.engines.local.whoosh_files import LENGTHS
from ragdocs.search.fields import field_terms
from ragdocs.types import IndexedDocument

LOOKED_UP = 10_000

NOTE = (
    "Decided to keep the token in the keyring because the file was world readable; "
    "[[src/module_3.py]] reads it at start and refreshes it an hour before it ends. "
    "The old file is removed on the first run after the update. "
) * 3


def searching(corpus: Corpus, repeats: int) -> list[Row]:
    """Search the documentation through its verb."""
    queries = corpus.queries(repeats, seed=8)
    documents = corpus.workspace.documents
    # The first question of a process opens words and vectors, whatever it asks.
    (opening,) = corpus.queries(1, seed=28)
    documents.search(opening)
    first = each(documents.search, queries)
    sample = each(documents.search, queries)
    slips = [_misspelt(query) for query in corpus.queries(repeats, seed=18)]
    first_slips = each(documents.search, slips)
    slips_again = each(documents.search, slips)
    # In this process the protocol's own cost is left out: the row over MCP has the goal.
    return [
        cost("search", "verb, warm", corpus, sample),
        cost("search", "verb, new words", corpus, first),
        *unlike_warm("verb, new words", corpus, first, sample),
        *unlike_warm("verb, new misspelt words", corpus, first_slips, slips_again),
        _lookup(corpus),
    ]


def _misspelt(query: str) -> str:
    """Swap two letters of the longest word."""
    word = max(query.split(), key=len)
    return query.replace(word, f"{word[:2]}{word[3:4]}{word[2:3]}{word[4:]}")


def _lookup(corpus: Corpus) -> Row:
    """Look terms up in the words of at most ten thousand passages."""
    entries = []
    for document, chunk in corpus.passages()[:LOOKED_UP]:
        entries += field_terms(IndexedDocument(document, (chunk,)))
    words, _ = invert(entries, LENGTHS)
    terms = [text.decode() for text in words.terms()[::7]]
    sample = Sample()
    sample.take(lambda: [words.find(term) for term in terms])
    micros = sample.cpu[0] / len(terms) * 1e6
    return figure("search", "lookup of one term", corpus, micros, "us", most=20)


def linked(memories: Corpus, repeats: int) -> list[Row]:
    """Compare a search among the memories that link to a file with a search among all of them."""
    verbs = memories.workspace.memories
    targets = [f"src/module_{number % MODULES}.py" for number in range(repeats)]
    pairs = list(zip(memories.queries(repeats, seed=9), targets, strict=True))
    each(lambda pair: verbs.search(pair[0]), pairs)
    plain = each(lambda pair: verbs.search(pair[0]), pairs)
    to_target = each(lambda pair: verbs.linked(*pair), pairs)
    more = to_target.cpu_ms() - plain.cpu_ms()
    return [
        cost("search", "memories, verb", memories, plain),
        cost("search", "linked memories, verb", memories, to_target),
        figure("search", "linked minus plain, cpu p50", memories, more, "ms", most=2),
    ]


def translated(work: Path, chunks: int, repeats: int) -> list[Row]:
    """Compare a search of pages in two languages, shown as one each, with one of other pages."""
    corpora = {}
    for name, folders in (("grouped", ("en", "de")), ("apart", ("first", "second"))):
        root = work / f"{name}-{chunks}"
        for folder in folders:
            _corpora.write(root / folder, "docs", chunks // len(folders))
            target = root / "docs" / folder
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            (root / folder / "docs").rename(target)
        _corpora.configure(root, "docs")
        corpora[name] = _corpora.index(name, root, "docs")
    queries = corpora["apart"].queries(repeats, seed=8)
    samples = {name: Sample() for name in corpora}
    for query in [*queries, *queries]:
        for name, corpus in corpora.items():
            samples[name].take(partial(corpus.workspace.documents.search, query))
    ratio = samples["grouped"].cpu_ms() / samples["apart"].cpu_ms()
    row = figure(
        "search", "two languages / as many pages", corpora["grouped"], ratio, "x", most=1.1
    )
    return [row]


def writing(work: Path, memories: Corpus, repeats: int) -> list[Row]:
    """Create and append, in turns on an empty lane and on the full one."""
    shutil.rmtree(work / "empty", ignore_errors=True)
    _corpora.configure(work / "empty", "memory")
    lanes = {"full": memories, "empty": _corpora.index("empty", work / "empty", "memory")}
    samples = {(verb, lane): Sample() for verb in ("create", "append") for lane in lanes}
    for number in range(repeats):
        for lane, corpus in lanes.items():
            verbs, name = corpus.workspace.memories, f"bench-{number}.md"
            text = f"# Note {number}\n\n{NOTE}"
            samples["create", lane].take(partial(verbs.create, name, text, ["bench"]))
            more = "And it was tested on both systems."
            samples["append", lane].take(partial(verbs.append, name, more))
    for number in range(repeats):
        memories.workspace.memories.delete(f"bench-{number}.md")
    memories.workspace.save()
    rows = []
    for verb in ("create", "append"):
        full, empty = samples[verb, "full"], samples[verb, "empty"]
        ratio = full.cpu_ms() / empty.cpu_ms()
        wall = f"wall {full.wall_ms() / empty.wall_ms():.2f} x"
        rows += [
            cost("writes", verb, memories, full),
            cost("writes", f"{verb} on nothing", memories, empty),
            figure("writes", f"{verb}, full / empty", memories, ratio, "x", most=1.2, note=wall),
        ]
    return rows
