"""Measures living links: what drift costs a search, what affected texts cost and how right they are."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import _corpora
from bench._corpora import MODULES, Corpus
from bench._measure import Row, cost, each, figure, table

from ragdocs import config
from ragdocs.verbs.living.affected import Affected
from ragdocs.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("search", "affected", "replay")
# Weights from which a text is counted as found, in the replay.
WEIGHTS = (0.0, 0.5, 0.7)
# Texts that nearly every change of this project edits by rule say nothing about precision.
BY_RULE = frozenset({"CHANGELOG.md"})
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
            print(_replayed(work, options.commits))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help=f"some of {', '.join(PARTS)}, with commas between them")
    parser.add_argument(
        "--size", type=int, default=10_000, help="passages of the generated memories"
    )
    parser.add_argument("--repeats", type=int, default=200, help="searches that are measured")
    parser.add_argument("--files", type=int, default=200, help="files of the diff")
    parser.add_argument("--commits", type=int, default=100, help="commits that are replayed")
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
        path.write_text(old.replace(f"step_{number}_3(", f"renamed_{number}_3(") + "\nnew = 1\n")
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


# --- how right they are, by the history of this project ---


@dataclass(frozen=True, slots=True)
class Replayed:
    """One commit: what it edited among the texts that there were, and what was foretold."""

    edited: frozenset[str]
    foretold: dict[str, float]
    texts: int


def _replayed(work: Path, commits: int) -> str:
    """Replay the last commits: from the code that each changed, foretell the texts it edited."""
    clone = work / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", "--no-local", str(ROOT), str(clone)], check=True
    )  # fmt: skip
    names = _git(clone, "rev-list", "--no-merges", f"--max-count={commits}", "HEAD").split()
    replayed = list(_replay(clone, names))
    with_texts = [commit for commit in replayed if commit.edited]
    edits = sum(len(commit.edited) for commit in with_texts)
    lines = [f"{len(replayed)} commits, {len(with_texts)} edited {edits} texts beside their code"]
    for least in WEIGHTS:
        lines.append(_score(with_texts, least))
    return "\n".join(lines)


def _score(commits: Sequence[Replayed], least: float) -> str:
    right = told = wanted = available = 0
    for commit in commits:
        foretold = {path for path, weight in commit.foretold.items() if weight >= least}
        right += len(foretold & commit.edited)
        told += len(foretold)
        wanted += len(commit.edited)
        available += commit.texts
    precision = right / max(1, told)
    recall = right / max(1, wanted)
    chance = wanted / max(1, available)
    lift = precision / chance if chance else 0.0
    return (
        f"weight ≥ {least:.1f}: precision {precision:.2f}, recall {recall:.2f}"
        f" ({told} foretold; any text is right with {chance:.2f}, so {lift:.1f} x)"
    )


def _replay(clone: Path, names: Sequence[str]) -> Iterator[Replayed]:
    """Stand before each commit and ask what it affects."""
    for name in names:
        parent = _git(clone, "rev-parse", f"{name}^").strip()
        _git(clone, "checkout", "--quiet", "--detach", parent)
        flags = {"embedding.model": "none", "memory.enabled": True}
        workspace = Workspace(config.load(clone, project=clone, flags=flags))
        workspace.load()
        workspace.sync()
        known = _texts(workspace)
        texts = workspace.living.affected
        changes = texts.diffs.between(f"{parent}..{name}")
        code = [change for change in changes if change.before not in known]
        edited = {change.before for change in changes if change.before in known} - BY_RULE
        if not code:
            continue
        foretold: dict[str, float] = {}
        for text in texts.by(code).texts:
            path = workspace.finding.location(text.document.lane, text.document.path)
            if path not in BY_RULE:
                foretold[path] = max(foretold.get(path, 0.0), text.weight)
        workspace.save()
        yield Replayed(frozenset(edited), foretold, len(known - BY_RULE))


def _texts(workspace: Workspace) -> set[str]:
    """Return the paths of all documents and memories, from the root."""
    known = set()
    for lane, place in workspace.places.items():
        for document in place.corpus.documents():
            known.add(workspace.finding.location(lane, document.path))
    return known


if __name__ == "__main__":
    main()
