"""Questions that found nothing relevant: one small database of the user, for all projects.

It is written to only where the user has switched that on, and nothing depends on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.system.sqlite_cache import SideFile
from ragdocs.types import Question

# Of one project; those that were asked longest ago go first.
MOST_QUESTIONS = 500
# More than the beginning of a question helps nobody to answer it.
LONGEST_QUESTION = 300
# A search must not wait for a log.
WAIT_SECONDS = 0.5

_TABLES = """
CREATE TABLE IF NOT EXISTS questions (
    project TEXT NOT NULL, question TEXT NOT NULL,
    count INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (project, question)
) WITHOUT ROWID;
"""
_COUNT = """
INSERT INTO questions VALUES (?, ?, 1, ?, ?)
ON CONFLICT DO UPDATE SET count = count + 1, last_at = excluded.last_at
"""
_PRUNE = """
DELETE FROM questions WHERE project = ? AND question NOT IN (
    SELECT question FROM questions WHERE project = ? ORDER BY last_at DESC, question LIMIT ?
)
"""
_FORGET = "DELETE FROM questions WHERE project = ? AND question = ?"
_LIST = """
SELECT question, count, first_at, last_at FROM questions WHERE project = ?
ORDER BY count DESC, last_at DESC, question
"""


class QuestionLog:
    """The questions of one project that found nothing; `redact` takes secrets out of them."""

    def __init__(self, path: Path, project: str, redact: Callable[[str], str]) -> None:
        self._project = project
        self._redact = redact
        self._file = SideFile(path, _TABLES, name="log of questions", wait_seconds=WAIT_SECONDS)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def note(self, question: str, at: datetime, *, found: bool) -> None:
        """Keep a question that found nothing; forget one that finds something now."""
        # Secrets go before anything is cut, so that none is cut in half and stays.
        text = " ".join(self._redact(question).casefold().split())[:LONGEST_QUESTION]
        if not text:
            return
        seconds = int(at.timestamp())

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                if found:
                    connection.execute(_FORGET, (self._project, text))
                    return
                connection.execute(_COUNT, (self._project, text, seconds, seconds))
                connection.execute(_PRUNE, (self._project, self._project, MOST_QUESTIONS))

        self._file.ask(write)

    def unanswered(self) -> list[Question]:
        """List the questions that found nothing, those that were asked most first."""

        def select(connection: sqlite3.Connection) -> list[tuple[str, int, int, int]]:
            return connection.execute(_LIST, (self._project,)).fetchall()

        questions = []
        for text, count, first_at, last_at in self._file.ask(select) or ():
            first = datetime.fromtimestamp(first_at, UTC)
            last = datetime.fromtimestamp(last_at, UTC)
            questions.append(Question(text, count, first, last))
        return questions
