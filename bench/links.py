"""Measures living links: what drift costs a search, what affected texts cost and how right they are."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from bench import _corpora, _replay
from bench._corpora import MODULES, Corpus
from bench._measure import Row, cost, each, figure, table

from ragdocs.verbs.living.affected import Affected

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("search", "affected", "replay")
SIGNED = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def main() -> None:
    options = _options()
    chosen = PARTS if options.only is None else tuple(options.only.split(","))
    with tempfile.TemporaryDirectory(prefix="ragdocs-links-") as scratch:
        work = Path(scratch).resolve()
        _corpora.enter(work)
        rows: list[Row] = []
        if {"search", "affected"} & {*chosen}:
            memories = _corpora.generate(work, "memory", options.size)
            _add_code(memories)
            if "search" in chosen:
                rows += _search(memories, options.repeats)
            if "affected" in chosen:
                rows += _affected(memories, options.files)
        if rows:
            print(table(rows))
        if "replay" in chosen:
            for place in (ROOT, *options.repository):
                print(_replay.report(work, place, options.commits, options.last), end="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help=f"some of {', '.join(PARTS)}, with commas between them")
    parser.add_argument(
        "--size", type=int, default=10_000, help="passages of the generated memories"
    )
    parser.add_argument("--repeats", type=int, default=200, help="searches that are measured")
    parser.add_argument("--files", type=int, default=200, help="files of the diff")
    parser.add_argument(
        "--repository",
        type=Path,
        action="append",
        default=[],
        help="another clone whose history is replayed",
    )
    parser.add_argument("--commits", type=int, default=100, help="commits that are replayed")
    parser.add_argument("--last", default="HEAD", help="the last of them")
    return parser.parse_args()


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *SIGNED, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _add_code(memories: Corpus) -> None:
    """Write the files that the generated memories link to, as a repository of two commits."""
    root = memories.workspace.config.root
    folder = root / "src"
    folder.mkdir(exist_ok=True)
    for number in range(MODULES):
        text = "".join(f"def step_{number}_{n}(x):\n    return x + {n}\n\n\n" for n in range(20))
        (folder / f"module_{number}.py").write_text(text)
    if (root / ".git").exists():
        return
    _git(root, "init", "--quiet", "--initial-branch=main")
    _git(root, "add", "src")
    _git(root, "commit", "--quiet", "-m", "code")


# --- what drift costs a search ---


def _search(memories: Corpus, repeats: int) -> list[Row]:
    """Search with and without a look at the links of the hits, in turns."""
    workspace = memories.workspace
    verbs, drift = workspace.memories, workspace.living.drift
    branches = workspace.living.branches
    queries = memories.queries(repeats, seed=9)
    answers = [[hit.document for hit in verbs.search(query).hits] for query in queries]
    # What a server has done by the second time that it shows a memory.
    time.sleep(0.2)
    for documents in answers:
        drift.look(documents)
    unknown = sum(len(documents) - len(drift.known(documents)) for documents in answers)
    plain = each(verbs.search, queries)
    flags = each(lambda found: (drift.known(found), branches.known(found)), answers)
    links = [len(states) for found in answers for states in drift.known(found).values()]
    note = (
        f"{sum(links) / max(1, len(links)):.1f} links a memory, {unknown} not known; {flags.note()}"
    )
    return [
        cost("search", "memories, verb", memories, plain),
        figure("search", "drift and branch of 5 hits, cpu p50", memories, flags.cpu_ms(), "ms",
               most=0.3, note=note),
    ]  # fmt: skip


# --- what affected texts cost ---


def _affected(memories: Corpus, files: int) -> list[Row]:
    """Ask about a diff of many files, twice: the second time all passages are known."""
    root = memories.workspace.config.root
    for number in range(files):
        path = root / "src" / f"module_{number}.py"
        old = path.read_text() if path.exists() else ""
        path.write_text(old.replace(f"step_{number}_", f"renamed_{number}_") + "\nnew = 1\n")
    _git(root, "add", "src")
    _git(root, "commit", "--quiet", "-m", "change")
    texts = memories.workspace.living.affected
    found: list[Affected] = []

    def ask(_: int) -> None:
        found.append(texts.by(texts.diffs.between("HEAD~1..HEAD")))

    first = each(ask, [0])
    warm = each(ask, range(5))
    note = f"{len(found[-1].texts)} passages of {found[-1].files} files; {warm.note()}"
    return [
        cost("affected", "first", memories, first),
        figure("affected", f"{files} files, warm, cpu p50", memories, warm.cpu_ms() / 1000, "s",
               most=1.0, note=note),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
