"""Labelled sets: documents, questions, and which document answers which question."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Words of a text that somebody pastes as a question.
PASTED_WORDS = 120
DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Item:
    """A document or a question; questions have no title."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any]

    @property
    def group(self) -> str | None:
        """The conversation, say, that a question is asked in; none if all is searched."""
        return self.metadata.get("group")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One set: grades are by question, then by document."""

    name: str
    documents: Sequence[Item]
    questions: Sequence[Item]
    grades: Mapping[str, Mapping[str, int]]

    def sample(self, documents: int, questions: int) -> Labelled:
        """Return some questions, their answers, and as many other documents as fit."""
        asked = _spread(self.questions, questions)
        answers = {id_ for question in asked for id_ in self.grades[question.id]}
        groups = {question.group for question in asked}
        room = documents - len(answers)
        kept = []
        for document in self.documents:
            is_other = document.id not in answers
            if document.group in groups and not (is_other and room <= 0):
                kept.append(document)
                room -= is_other
        return replace(self, documents=kept, questions=asked)

    def pasted(self, most: int) -> Labelled:
        """Cut a piece out of some long documents: each looks for the rest of its document."""
        long = [one for one in self.documents if len(one.text.split()) >= 2 * PASTED_WORDS]
        chosen = {one.id for one in _spread(long, most)}
        documents = []
        questions = []
        for document in self.documents:
            rest = document.text
            if document.id in chosen:
                rest, piece = _without_piece(rest)
                questions.append(replace(document, title="", text=piece))
            documents.append(replace(document, text=rest))
        grades = {question.id: {question.id: 1} for question in questions}
        return replace(self, documents=documents, questions=questions, grades=grades)


def parser(name: str, description: str | None, page: str) -> argparse.ArgumentParser:
    """Return the options of every bench over the sets, whose tables are in a page of docs/."""
    made = argparse.ArgumentParser(prog=f"python3 tasks.py bench {name}", description=description)
    made.add_argument("--data", type=Path, default=DATA, help="the folder of the labelled sets")
    made.add_argument(
        "--work", type=Path, help="keep projects and vectors here, and use those that are there"
    )
    made.add_argument("--write", action="store_true", help=f"put the tables into docs/{page}")
    return made


def say(text: str) -> None:
    """Tell how far a bench is; its tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)


def folders(data: Path) -> list[Path]:
    """Return the folders of the sets; end the program, saying why, if there are none."""
    found = sorted(path.parent for path in data.glob("*/qrels.tsv.gz"))
    if not found:
        raise SystemExit(f"ABSENT: no labelled sets in {data}; name their folder with --data")
    return found


def read(folder: Path) -> Labelled:
    """Return a whole set, without questions that nothing answers."""
    grades: dict[str, dict[str, int]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            question, document, grade = line.split("\t")
            if int(grade) > 0:
                grades.setdefault(question, {})[document] = int(grade)
    documents = list(_items(folder / "corpus.jsonl.gz"))
    questions = [item for item in _items(folder / "queries.jsonl.gz") if item.id in grades]
    return Labelled(folder.name, documents, questions, grades)


def _items(path: Path) -> Iterator[Item]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield Item(row["_id"], row.get("title") or "", row["text"], row.get("metadata") or {})


def _without_piece(text: str) -> tuple[str, str]:
    """Return a text without the words in its middle, and these words."""
    places = [found.start() for found in re.finditer(r"\S+", text)]
    first = len(places) // 2
    last = min(len(places) - 1, first + PASTED_WORDS)
    start, stop = places[first], places[last]
    return text[:start] + text[stop:], text[start:stop]


def _spread(questions: Sequence[Item], most: int) -> Sequence[Item]:
    # Questions of one kind stand together in some files. Where they are asked of groups, those of
    # the first groups are taken instead: a few whole groups are as hard to search as the set,
    # fragments of all would be easier.
    if len(questions) <= most or questions[0].group is not None:
        return questions[:most]
    return [questions[i * len(questions) // most] for i in range(most)]
