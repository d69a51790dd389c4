"""Labelled sets as projects on disk: pages of documentation, or memories with dates."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import _corpora
from bench._labelled import Item, Labelled

from ragdocs import config
from ragdocs.search.corpus import Corpus
from ragdocs.verbs.quality.evaluation import Question, Weights, ask
from ragdocs.workspace import Workspace

# Sets whose documents are turns of conversations are memories, everything else is documentation.
TURNS = "session"
# Where nothing says when a question was asked, it was asked long after the last thing it may be
# about.
LATER = timedelta(days=365)
_TIMES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M")


@dataclass(frozen=True, slots=True)
class Project:
    """A set on disk, with the id of the document in each file."""

    chosen: Labelled
    corpus: Corpus
    ids: Mapping[str, str]
    last: datetime

    def prefix(self, question: Item) -> str:
        """Return what the paths begin with that a question is asked of."""
        return f"{question.group}/" if question.group else ""

    def find(self, question: Item, weights: Weights = None) -> list[str]:
        """Ask a question as `ragdocs eval` does, and return the documents, best first."""
        asked = Question(question.id, question.text, {}, prefix=self.prefix(question))
        outcome = ask(self.corpus, asked, self.asked_at(question), weights)
        return [self.ids[path] for path in outcome.ranked]

    def asked_at(self, question: Item) -> datetime:
        """Return when a question is asked."""
        return moment(question.metadata.get("date")) or self.last + LATER


def moment(written: str | None) -> datetime | None:
    """Read a date as the sets write them."""
    for form in _TIMES if written else ():
        try:
            return datetime.strptime(str(written), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def is_memory(chosen: Labelled) -> bool:
    """Tell whether a set is made of memories."""
    return TURNS in chosen.documents[0].metadata


def write(chosen: Labelled, root: Path) -> Project:
    """Write a set as a project, and open it; nothing is indexed yet."""
    lane = "memory" if is_memory(chosen) else "docs"
    folder = root / ".memories" if lane == "memory" else root
    shutil.rmtree(folder if lane == "memory" else root / "docs", ignore_errors=True)
    paths = {item.id: (_turn if lane == "memory" else _page)(item) for item in chosen.documents}
    for item in chosen.documents:
        file = folder / paths[item.id]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_text(item, paths), encoding="utf-8")
    _corpora.configure(root, lane)
    workspace = Workspace(config.load(root, project=root))
    dates = [found for item in chosen.documents if (found := moment(item.metadata.get("date")))]
    ids = {path: id_ for id_, path in paths.items()}
    last = max(dates, default=datetime(2026, 1, 1, tzinfo=UTC))
    return Project(chosen, workspace.open_lanes[lane].corpus, ids, last)


def _page(item: Item) -> str:
    return f"docs/{item.id.removesuffix('.md')}.md"


def _turn(item: Item) -> str:
    """Name a memory as the product does: by day and clock, so that its name says nothing."""
    at = moment(item.metadata.get("date")) or datetime(2026, 1, 1, tzinfo=UTC)
    # Turns of a session share its time; the order in which they were written is kept in the
    # seconds.
    number = int((re.findall(r"\d+", item.id) or ["0"])[-1])
    clock = at + timedelta(seconds=number)
    mark = hashlib.blake2b(item.id.encode(), digest_size=2).hexdigest()
    group = f"{item.group}/" if item.group else ""
    return f"{group}{clock:%Y-%m-%d}/{clock:%H%M%S}_{mark}.md"


def _text(item: Item, paths: Mapping[str, str]) -> str:
    card: dict[str, object] = {}
    if item.title:
        card["title"] = item.title
    if at := moment(item.metadata.get("date")):
        card["created_at"] = at.isoformat()
    if links := [paths[target] for target in item.metadata.get("links", ()) if target in paths]:
        # The sets took links out of their texts and kept where they led: this key has links without
        # words.
        card["git"] = {"files_changed": links}
    # JSON is YAML, and quotes whatever a title may hold.
    rows = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in card.items()]
    head = "".join(rows)
    return f"---\n{head}---\n{item.text}\n" if head else f"{item.text}\n"
