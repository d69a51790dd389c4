"""Replays a history: from the code that a commit changed, which texts did it edit beside it?

The label is what people edited in the same commit. It is noisy: a text that nobody edited may have
deserved it, was edited in another commit, or was edited for another reason.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._measure import grid

from ragdocs import config
from ragdocs.verbs.living.affected import LEAST_WEIGHT
from ragdocs.verbs.living.changes import Diff
from ragdocs.workspace import Workspace

# The surest texts of each commit that are counted, and the weights from which on they are.
CUTS = (1, 3, 5)
WEIGHTS = (0.5, 0.6)
# Texts that nearly every change edits by rule say nothing about precision.
BY_RULE = re.compile(r"(^|/)(changelog|changes|history|news)\.\w+$", re.IGNORECASE)

# Chooses texts of a commit from the weights of all that were foretold.
Choice = Callable[[dict[str, float]], set[str]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One commit: what it edited among the texts that there were, and what was foretold."""

    edited: frozenset[str]
    foretold: dict[str, float]
    texts: int


def report(work: Path, repository: Path, commits: int, last: str) -> str:
    """Replay the commits of a repository up to one of them, and lay out precision and recall."""
    clone = work / "clones" / repository.resolve().parent.name / repository.name
    command = ["git", "clone", "--quiet", "--no-local", str(repository), str(clone)]
    subprocess.run(command, check=True)
    names = _git(clone, "rev-list", "--no-merges", f"--max-count={commits}", last).split()
    replayed = list(_replay(clone, names))
    with_texts = [commit for commit in replayed if commit.edited]
    without = [commit for commit in replayed if not commit.edited]
    edits = sum(len(commit.edited) for commit in with_texts)
    chance = edits / max(1, sum(commit.texts for commit in with_texts))
    rows = []
    for count in CUTS:
        rows.append(_row(f"the surest {count}", with_texts, without, _surest(count)))
    rows.append(_row(f"all (weight {LEAST_WEIGHT:.1f})", with_texts, without, set))
    for least in WEIGHTS:
        rows.append(_row(f"weight {least:.1f}", with_texts, without, _from(least)))
    head = (
        f"{repository.name}: {len(replayed)} commits with code,"
        f" {len(with_texts)} edited {edits} texts beside it;"
        f" a text taken at random is right with {chance:.2f}"
    )
    columns = ("listed", "precision", "recall", "a commit", "a commit without edits")
    return f"{head}\n{grid(columns, rows)}"


def _surest(count: int) -> Choice:
    def choose(foretold: dict[str, float]) -> set[str]:
        ranked = sorted(foretold, key=lambda path: (-foretold[path], path))
        return set(ranked[:count])

    return choose


def _from(least: float) -> Choice:
    def choose(foretold: dict[str, float]) -> set[str]:
        return {path for path, weight in foretold.items() if weight >= least}

    return choose


def _row(
    title: str, commits: Sequence[Replayed], without: Sequence[Replayed], choose: Choice
) -> tuple[str, ...]:
    right = told = wanted = 0
    for commit in commits:
        chosen = choose(commit.foretold)
        right += len(chosen & commit.edited)
        told += len(chosen)
        wanted += len(commit.edited)
    idle = sum(len(choose(commit.foretold)) for commit in without)
    return (
        title,
        f"{right / max(1, told):.2f}",
        f"{right / max(1, wanted):.2f}",
        f"{told / max(1, len(commits)):.1f}",
        f"{idle / max(1, len(without)):.1f}",
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
        diff = texts.diffs.between(f"{parent}..{name}")
        code = [change for change in diff.files if change.before not in known]
        edited = {change.before for change in diff.files if change.before in known}
        if code:
            foretold: dict[str, float] = {}
            for text in texts.by(Diff(code, diff.base)).texts:
                path = workspace.finding.location(text.document.lane, text.document.path)
                foretold[path] = max(foretold.get(path, 0.0), text.weight)
            counted = set(filter(_is_counted, known))
            chosen = {path: foretold[path] for path in foretold.keys() & counted}
            yield Replayed(frozenset(edited & counted), chosen, len(counted))
        workspace.save()


def _is_counted(path: str) -> bool:
    return BY_RULE.search(path) is None


def _texts(workspace: Workspace) -> set[str]:
    """Return the paths of all documents and memories, from the root."""
    known = set()
    for lane, place in workspace.places.items():
        for document in place.corpus.documents():
            known.add(workspace.finding.location(lane, document.path))
    return known


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
