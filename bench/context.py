"""Measures a context pack on a real tree of source files, cold and warm.

Against reading the files; counts a crowd.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import _corpora
from bench._measure import Row, Sample, table

from ragdocs import config
from ragdocs.workspace import Workspace

TASK = "retry the request when the connection is closed"
NAMED = "retry.py"


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-context-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        root = _tree(work / "tree", options.tree, options.files)
        rows = [*_packs(root, options.repeats), *_crowd(root, options.processes, options.each)]
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))
    sys.exit(any(row.met is False for row in rows))


def _packs(root: Path, repeats: int) -> Iterator[Row]:
    """Read all files, build the first pack.

    And then take turns between reading and packs, warm and with one change.
    """
    paths = sorted(path for path in root.rglob("*.py") if path.is_file())
    size = sum(path.stat().st_size for path in paths)
    reading, first, warm, fresh, changed = (Sample() for _ in range(5))
    reading.take(partial(_read, paths))
    cold = first.take(partial(_build, _open(root)))
    mapped = _open(root).packs.files.read()
    server = _open(root)
    _build(server)
    victim = paths[len(paths) // 2]
    parsed = []
    for turn in range(repeats):
        reading.take(partial(_read, paths))
        again = warm.take(partial(_build, server))
        assert again == cold, "the same pack, cold and warm"
        fresh.take(lambda: _build(_open(root)))
        victim.write_text(
            f"{victim.read_text('utf-8', 'replace')}\n\ndef added_{turn}(): pass\n",
            encoding="utf-8",
        )
        parsed.append(changed.take(server.packs.files.read).parsed)
        cold = _build(server)
    plain = reading.cpu_ms()
    count = len(mapped.files)
    note = f"{size / 1e6:.1f} MB, {len(paths)} files; {reading.note()}"
    yield Row("context", "read every file, cpu p50", "python", count, plain, "ms", note=note)
    for name, sample in (
        ("first pack, parses every file, cpu", first),
        ("pack again, cpu p50", warm),
        ("pack in a new process, without its imports, cpu p50", fresh),
        ("look again after one file changed, cpu p50", changed),
    ):
        note = f"{sample.cpu_ms() / plain:.2f} x reading the files; {sample.note()}"
        yield Row("context", name, "python", count, sample.cpu_ms(), "ms", note=note)
    yield _exactly("files parsed by a second look", mapped.parsed, 0, count)
    yield _exactly("files parsed after one changed", max(parsed), 1, count)
    yield Row(
        "context",
        "characters of the pack",
        "python",
        count,
        len(cold),
        "",
        "≤ 8000",
        len(cold) <= 8000,
    )


def _crowd(root: Path, processes: int, count: int) -> Iterator[Row]:
    """Let processes append summaries at once, and count what is lost."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        waits = [
            wait
            for batch in pool.starmap(_append, [(root, n, count) for n in range(processes)])
            for wait in batch
        ]
    workspace = _open(root)
    kept = workspace.summaries(workspace.scope()).newest()
    found = {(record.run_id, record.step_id) for record in kept}
    note = f"{processes} processes x {count}; longest wait {max(waits) * 1000:.0f} ms"
    expected = processes * count
    yield Row("summaries", "appended at once and there", "jsonl", expected, len(found), "", f"= {expected}",
              len(found) == len(kept) == expected, note)  # fmt: skip


def _append(root: Path, number: int, count: int) -> list[float]:
    repository, waits = _open(root).repository, []
    for turn in range(count):
        begun = time.perf_counter()
        repository.append_summary(
            f"run {number}", str(turn), "What happened, what came out, what is left. " * 5
        )
        waits.append(time.perf_counter() - begun)
    return waits


def _exactly(name: str, value: int, wanted: int, count: int) -> Row:
    return Row("context", name, "python", count, value, "", f"= {wanted}", value == wanted)


def _open(root: Path) -> Workspace:
    limits = {"memory.summaries_max_entries": 10_000, "memory.summaries_max_bytes": 100_000_000}
    flags = {"embedding.model": "none", "memory.enabled": True, **limits}
    workspace = Workspace(config.load(root, project=root, flags=flags))
    workspace.load()
    workspace.sync()
    return workspace


def _build(workspace: Workspace) -> str:
    return workspace.packs.build(task=TASK, files=[NAMED])["context"]


def _read(paths: list[Path]) -> int:
    total = 0
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123 - the fastest way there is
            total += len(file.read())
    return total


def _tree(root: Path, source: Path | None, most: int) -> Path:
    """Copy source files to measure on.

    A folder, or this Python's own library and the packages beside it.
    """
    if root.exists():
        return root
    sources = (
        [source]
        if source
        else [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    )
    copied = 0
    for place in sources:
        for folder, _, names in os.walk(place):
            for name in sorted(names):
                path = Path(folder, name)
                if name.endswith(".py") and copied < most and path.is_file():
                    inside = (
                        path.relative_to(place).as_posix().replace("site-packages/", "packages/")
                    )
                    target = root / place.name.replace("site-packages", "packages") / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
                    copied += 1
    subprocess.run(
        ["git", "-C", str(root), "-c", "init.defaultBranch=main", "init", "-q"], check=True
    )
    # Files that were written a moment ago are looked at twice.
    time.sleep(0.1)
    return root


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--files", type=int, default=3000, help="how many source files (default: 3000)"
    )
    parser.add_argument("--tree", type=Path, help="a folder of Python files of your own to copy")
    parser.add_argument(
        "--repeats", type=int, default=10, help="how often each is measured (default: 10)"
    )
    parser.add_argument("--processes", type=int, default=8, help="that append at once (default: 8)")
    parser.add_argument(
        "--each", type=int, default=50, help="how often each of them does (default: 50)"
    )
    parser.add_argument("--work", type=Path, help="where to keep the copied tree for the next run")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
