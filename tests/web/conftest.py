"""One project with linked memories, one server and one browser for the pages about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.web.visit import Office, Screen, office, opened_browser

if TYPE_CHECKING:
    from tests.conftest import Project

Desk = Office
TWINS = "Deliveries are recorded by event id before anything is posted to the ledger."


def _write(project: Project) -> None:
    project.write("notes/extra.md", "# Extra\n")
    project.doc("auth.md", "# Auth\n\nTokens. See [[docs/ledger.md]].\n")
    project.doc("ledger.md", "# Ledger\n\nPostings.\n")
    project.doc("a/overview.md", "# Overview\n\nOf a.\n")
    project.doc("b/overview.md", "# Overview\n\nOf b.\n")
    project.doc("broken.md", "---\ntags: [a\n---\n# Broken\n")
    for kind, name, body in (
        ("plan", "split-ledger", "Split it. See [[docs/ledger.md]].\n\n- plans:: [[dedup]]"),
        ("fact", "dedup", f"{TWINS}\n\nA duplicate is answered with 200.\n\nSwept in 30 days."),
        ("fact", "receipts", f"{TWINS}\n\nA duplicate is answered with 200.\n\nSplit by month."),
        ("decision", "sessions", "Revocable. See [[docs/auth.md]] and [[src/gone.py]]."),
        ("journal", "skew", "Of 90 s. See [[Overview]] and [[docs/disputes.md]]."),
        ("observation", "locks", "Receipts first. See [[split-ledger]] and [[docs/disputes.md]]."),
    ):
        head = f"---\ntype: {kind}\ntags: [billing]\ntitle: About {name}\nauthor: Kim\n---\n"
        project.memory(f"{name}.md", f"{head}{body}\n")
    project.memory("old.md", "---\ntype: fact\nexpires_at: 2026-01-01\n---\nOver.\n")


@pytest.fixture(scope="session")
def screen() -> Iterator[Screen]:
    """The browser of all tests of this process."""
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory, screen: Screen) -> Iterator[Office]:
    """The server: whatever a test writes it takes back, or no other test looks at it."""
    with office(tmp_path_factory.mktemp("pages"), screen, _write) as opened:
        opened.wait_for_vectors()
        yield opened
