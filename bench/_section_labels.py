"""Questions about real documentation, with the sections that answer them and a phrase of each."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import tomli

from ragdocs.errors import NotFoundError
from ragdocs.text import sections
from ragdocs.text.formats.reading import read

LABELS = Path(__file__).resolve().parent / "section_labels"
# Characters of a file that are indexed: one file of release notes must not outweigh a project.
LONGEST_FILE = 60_000
# Characters of a project: embedding all of a large one would take an hour.
LARGEST_TREE = 450_000

# The first and the last line of a section without its subsections.
Lines = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Question:
    """What a developer asks, where the answer is, and a few words that only an answer has."""

    text: str
    # Each is a path and a heading with a number sign between them; a path alone is what stands
    # above the first heading.
    right: Sequence[str]
    # Each of them is enough.
    phrases: Sequence[str]
    # Constants were chosen by looking at "dev" only.
    split: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A project's documentation: which of its files are indexed, and the questions about them."""

    name: str
    files: Sequence[str]
    questions: Sequence[Question]


def trees() -> list[Tree]:
    """Read the labels of all projects."""
    found = []
    for path in sorted(LABELS.glob("*.toml")):
        written = tomli.loads(path.read_text(encoding="utf-8"))
        questions = []
        for row in written["question"]:
            question = Question(row["ask"], row["right"], row["phrases"], row["split"])
            questions.append(question)
        found.append(Tree(path.stem, written["files"], questions))
    return found


def copy(tree: Tree, source: Path, root: Path) -> None:
    """Write a part of a project anew: labelled files, and others in an order by chance.

    The order depends on the paths alone, so that every run takes the same files.
    """
    shutil.rmtree(root, ignore_errors=True)
    labelled: set[str] = set()
    for question in tree.questions:
        labelled.update(label.partition("#")[0] for label in question.right)
    paths: set[Path] = set()
    for glob in tree.files:
        paths.update(path for path in source.glob(glob) if path.is_file())
    names = {path.relative_to(source).as_posix(): path for path in paths}
    room = LARGEST_TREE
    for name in sorted(names, key=lambda name: (name not in labelled, _digest(name))):
        text = names[name].read_text(encoding="utf-8", errors="replace")[:LONGEST_FILE]
        if name not in labelled and len(text) > room:
            continue
        room -= len(text)
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _digest(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()


def section_lines(root: Path, label: str) -> Lines:
    """Return the lines of a labelled section, up to its first subsection."""
    path, _, heading = label.partition("#")
    page = read((root / path).read_text(encoding="utf-8"), path)
    outline = sections.outline(
        page.body, page.blocks, first_line=page.first_line, numbers=page.numbers
    )
    starts = [section.line for section in outline]
    if not heading:
        return 1, min(starts) - 1
    try:
        line = sections.find(outline, heading).line
    except NotFoundError as error:
        raise SystemExit(f"{root.name}: {label}: {error}") from error
    later = [start for start in starts if start > line]
    return line, min(later, default=10**9) - 1
