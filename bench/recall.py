"""Measures `recall` on many memories against a plain search.

And counts what a crowd of processes remembers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bench import _corpora
from bench._corpora import Corpus, Writer
from bench._measure import Row, Sample, each, table

from ragdocs import config
from ragdocs.project import registry
from ragdocs.workspace import Workspace

PROJECTS = ("own", "other", "third")
# Memories are spread over this many days, as a team of some agents would write them.
DAYS = 200


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-recall-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        rows = [
            *_crowd(work, options.processes, options.each),
            *_measure(work, options.memories, options.repeats),
        ]
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))
    sys.exit(any(row.met is False for row in rows))


def _measure(work: Path, memories: int, repeats: int) -> Iterator[Row]:
    """Compare each way of recalling with a search of the same memories, turn by turn.

    So that all meet one machine.
    """
    now = datetime.now(UTC)
    corpora = [_filled(work / name, memories, now, seed) for seed, name in enumerate(PROJECTS)]
    for corpus in corpora:
        registry.register(corpus.root, now.timestamp())
    own = corpora[0]
    verbs, queries = own.workspace.recall, own.queries(repeats, seed=4)
    ways: dict[str, Callable[[str], Any]] = {
        "search_memories": lambda query: own.workspace.memories.search(query, 10),
        "recall()": lambda _: verbs.recall(),
        'recall(since="1w")': lambda _: verbs.recall(since="1w"),
        "recall(query)": verbs.recall,
        'recall(query, since="1w")': lambda query: verbs.recall(query, since="1w"),
        'recall(scope="global"), 3 projects': lambda _: verbs.recall(scope="global"),
        'recall(query, scope="global"), 3 projects': lambda query: verbs.recall(
            query, scope="global"
        ),
    }
    first = Sample()
    first.take(partial(verbs.recall, scope="global"))
    for way in ways.values():
        each(way, queries)
    samples = {name: Sample() for name in ways}
    for query in queries:
        for name, way in ways.items():
            samples[name].take(partial(way, query))
    plain = samples["search_memories"].cpu_ms()
    for name, sample in samples.items():
        note = f"{sample.cpu_ms() / plain:.2f} x search_memories; {sample.note()}"
        yield Row(
            "recall", f"{name}, cpu p50", "generated", own.chunks, sample.cpu_ms(), "ms", note=note
        )
    yield Row(
        "recall",
        "first global recall, opens 2 indexes",
        "generated",
        own.chunks,
        first.cpu_ms(),
        "ms",
    )
    yield from _remembering(own, repeats)


def _remembering(corpus: Corpus, repeats: int) -> Iterator[Row]:
    """Remember in a git repository with a changed file.

    And create a memory of the same text beside it.
    """
    git = [
        "git",
        "-C",
        str(corpus.root),
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
    ]
    subprocess.run([*git, "init", "-q"], check=True)
    (corpus.root / "changed.py").write_text("pass\n", encoding="utf-8")
    texts = Writer(seed=99)
    created, remembered = Sample(), Sample()
    for number in range(repeats):
        text, name = texts.document("docs", number, repeats), f"created/{time.time_ns()}"
        created.take(partial(corpus.workspace.memories.create, name, text, ["bench"]))
        remembered.take(partial(corpus.workspace.recall.remember, text, ["bench"]))
    for name, sample in (("create_memory", created), ("remember, with git", remembered)):
        yield Row(
            "recall",
            f"{name}, wall p50",
            "generated",
            corpus.chunks,
            sample.wall_ms(),
            "ms",
            note=sample.note(),
        )


def _filled(root: Path, memories: int, now: datetime, seed: int) -> Corpus:
    """Write a project whose memories look as `remember` leaves them, unless it is there.

    And index it.
    """
    if not (root / "config.toml").exists():
        writer, rng = Writer(seed=seed), random.Random(seed)
        for number in range(memories):
            moment = now - timedelta(seconds=rng.uniform(0, DAYS * 86_400))
            own_id = f"{rng.getrandbits(48):012x}"
            prose = re.sub(
                r"(?s)\A---.*?---\n", "", writer.document("memory", number, memories)
            ).split("\n## ")[0]
            path = root / f".memories/{moment:%Y-%m-%d/%H%M%S}_{own_id[:4]}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            head = f"tags: [area{number % 50}]\ncreated_at: '{moment.isoformat(timespec='seconds')}'\nid: mem_{own_id}\n"
            git = f"git: {{branch: main, commit: {own_id[:7]}, dirty: true, files_changed: [src/m{number % 90}.py]}}\n"
            path.write_text(f"---\n{head}{git}---\n\n{prose}", encoding="utf-8")
        _corpora.configure(root, "memory")
    return _corpora.index(root.name, root, "memory")


def _crowd(work: Path, processes: int, count: int) -> Iterator[Row]:
    """Let processes remember at once in one project.

    And look for what is lost, doubled or unregistered.
    """
    root = work / "crowd"
    shutil.rmtree(root, ignore_errors=True)
    _corpora.configure(root, "memory")
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        answers = [
            one
            for batch in pool.starmap(_remember, [(root, n, count) for n in range(processes)])
            for one in batch
        ]
    expected = processes * count
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in root.glob(".memories/*/*.md")
    }
    kept = sum(
        f"id: {one['id']}\n" in texts.get(one["path"], "") and one["mark"] in texts[one["path"]]
        for one in answers
    )
    ids = {one["id"] for one in answers}
    known = [one.path for one in registry.projects()[0]]
    again = Workspace(config.load(root, project=root, flags={"embedding.model": "none"}))
    again.sync()
    found = {
        memory["id"]
        for memory in replace(again.recall, budget=1_000_000).recall(limit=50)["result"]
    }
    for name, value in (
        ("remembered and on disk as acknowledged", kept),
        ("different ids", len(ids)),
        ("files, none of them unasked for", len(texts)),
    ):
        note = f"{processes} processes x {count}"
        yield Row(
            "crowd", name, "files", expected, value, "", f"= {expected}", value == expected, note
        )
    yield Row(
        "crowd",
        "registry knows the project",
        "files",
        1,
        known.count(root),
        "",
        "= 1",
        known.count(root) == 1,
    )
    recalled = len(found & ids)
    wanted = min(50, expected)
    yield Row(
        "crowd",
        "of the newest 50, recalled",
        "files",
        wanted,
        recalled,
        "",
        f"= {wanted}",
        recalled == wanted,
    )


def _remember(root: Path, number: int, count: int) -> list[dict[str, str]]:
    verbs = Workspace(config.load(root, project=root, flags={"embedding.model": "none"})).recall
    marks = [f"decision {number}-{turn} of this process" for turn in range(count)]
    answers = [(mark, verbs.remember(f"A {mark}.", ["crowd"])) for mark in marks]
    return [{"id": answer["id"], "path": answer["path"], "mark": mark} for mark, answer in answers]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--memories", type=int, default=10_000, help="in each of three projects (default: 10000)"
    )
    parser.add_argument(
        "--repeats", type=int, default=50, help="how often each is measured (default: 50)"
    )
    parser.add_argument(
        "--processes", type=int, default=8, help="that remember at once (default: 8)"
    )
    parser.add_argument(
        "--each", type=int, default=50, help="how often each of them does (default: 50)"
    )
    parser.add_argument(
        "--work", type=Path, help="where to keep the generated projects for the next run"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
