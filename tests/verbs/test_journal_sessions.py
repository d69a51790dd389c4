"""Three sessions and a person at one journal, in any order.

What a simple model says is what happens.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.plain_git import plain_git

from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import ConflictError, ValidationError
from ragdocs.lanes import JOURNAL
from ragdocs.search.corpus import Corpus
from ragdocs.stores.git.exchange import Exchange
from ragdocs.stores.git.journal import JournalStore
from ragdocs.verbs.journal import Journal, NewEntry, Reads

SESSIONS = 3
SECTIONS = ("a", "b/c")
TEXTS = ("# One", "# Two\n\nwith a tail", "", "# One\n\n<!-- entry count: 99 -->")
PERSON = SESSIONS

# Who does what where: reads, writes an entry, or writes an entry with one of the texts.
STEPS = st.lists(
    st.tuples(
        st.integers(0, PERSON),
        st.sampled_from(SECTIONS),
        st.sampled_from(["read", "entry", *range(len(TEXTS))]),
    ),
    min_size=4,
    max_size=14,
)


def said(text: str) -> str:
    return "# One" if "entry count" in text else text


@dataclass
class Model:
    """What should be: the text and the entries of each section.

    And the text that each session has seen of it.
    """

    texts: dict[str, str] = field(default_factory=dict)
    entries: dict[str, list[str]] = field(default_factory=dict)
    # Nothing where the session saw that there is no such section.
    seen: dict[tuple[int, str], str | None] = field(default_factory=dict)

    def may(self, who: int, section: str) -> bool:
        """Tell whether this session may replace the text: nobody else has since it looked."""
        seen = self.seen[who, section]
        return section not in self.texts if seen is None else self.texts.get(section) == seen

    def write(self, who: int, section: str, entry: str, text: str | None) -> None:
        now = self.texts.get(section, "")
        if text is not None or (self.seen[who, section] or "") == now:
            self.seen[who, section] = now if text is None else said(text)
        self.texts[section] = now if text is None else said(text)
        self.entries.setdefault(section, []).insert(0, entry)


class World:
    """One journal, opened once for each session as by three processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sessions: list[tuple[Journal, Reads]] = [(self.open(), {}) for _ in range(SESSIONS)]
        self.model = Model()

    def open(self) -> Journal:
        store = JournalStore(self.root)
        corpus = Corpus(JOURNAL, store, LocalIndex(None, recipe="1", encoder="none", dim=1), None)
        return Journal(corpus, lambda: datetime.now(UTC), 0.5, store.short, Exchange(store).run)

    def step(self, who: int, section: str, what: str | int, entry: str) -> None:
        if who == PERSON:
            self.person(section, entry)
        elif what == "read":
            self.read(who, section)
        else:
            self.write(who, section, entry, TEXTS[what] if isinstance(what, int) else None)

    def person(self, section: str, entry: str) -> None:
        """Commit with plain git what a person has made of a section."""
        if section not in self.model.texts:
            return
        (self.root / f"{section}.md").write_text(f"{entry}\n")
        plain_git(self.root, "commit", "-qam", entry)
        self.model.texts[section] = entry
        self.model.entries[section].insert(0, entry)

    def read(self, who: int, section: str) -> None:
        journal, reads = self.sessions[who]
        reading = journal.read(section, reads)
        assert reading.exists == (section in self.model.texts)
        assert reading.text == self.model.texts.get(section, "")
        assert reading.entry_count == len(self.model.entries.get(section, []))
        self.model.seen[who, section] = self.model.texts.get(section)

    def write(self, who: int, section: str, entry: str, text: str | None) -> None:
        journal, reads = self.sessions[who]
        new = NewEntry(entry, text)
        if (who, section) not in self.model.seen:
            with pytest.raises(ValidationError, match="was not read"):
                journal.write(section, new, reads)
        elif text is not None and not self.model.may(who, section):
            with pytest.raises(ConflictError) as caught:
                journal.write(section, new, reads)
            error = caught.value
            base = self.model.seen[who, section] or ""
            theirs = self.model.texts.get(section, "")
            assert (error.base, error.theirs, error.yours) == (base, theirs, text)
        else:
            written = journal.write(section, new, reads)
            self.model.write(who, section, entry, text)
            assert written.entry_count == len(self.model.entries[section])

    def compare(self) -> None:
        """Compare what git and a newcomer see with the model."""
        for section, entries in self.model.entries.items():
            assert (
                plain_git(self.root, "log", "--format=%s", "--", f"{section}.md").split("\n")
                == entries
            )
        journal = self.open()
        for section, text in self.model.texts.items():
            assert journal.read(section).text == text
            assert journal.entries(section, length=100).total == len(self.model.entries[section])
        assert journal.contents().entry_count == sum(map(len, self.model.entries.values()))
        if self.model.texts:
            assert plain_git(self.root, "status", "--porcelain") == ""


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_any_interleaving_of_sessions_is_as_the_model_says(
    steps: list[tuple[int, str, str | int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder, "journal"))
        # A session that has never looked is tried by the steps before its first look.
        for number, (who, section, what) in enumerate([*steps[:2], *LOOKS, *steps[2:]]):
            world.step(who, section, what, f"entry {number}")
        world.compare()


LOOKS: list[tuple[int, str, str | int]] = [
    (who, section, "read") for who in range(SESSIONS) for section in SECTIONS
]
