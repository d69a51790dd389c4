"""Status and empty answers say how many documentation files nobody searches."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests import shapes
from tests.plain_git import plain_git
from tests.shapes import plant

from ragdocs import config
from ragdocs.lanes import DOCS
from ragdocs.project.formats import EXTRAS, is_installed
from ragdocs.serve import outside
from ragdocs.serve.outside import Outside, OutsideCount, count_outside
from ragdocs.serve.surface import Ask
from ragdocs.serve.surface.docs import search_docs
from ragdocs.serve.surface.upkeep import index_status
from ragdocs.workspace import Workspace

README_ONLY = replace(DOCS, include=("README.md",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path / "project", shapes.ASTRO)


def opened(root: Path, **docs: object) -> Workspace:
    flags: dict[str, object] = {"embedding.model": "none"}
    for name, value in docs.items():
        flags[f"docs.{name}"] = value
    workspace = Workspace(config.load(root, project=root, flags=flags))
    workspace.sync()
    return workspace


def docs_notes(workspace: Workspace) -> list[str]:
    status = index_status(Ask(workspace=workspace, rim="command"))
    return [note for lane in status["lanes"] for note in lane["notes"]]


def test_documents_that_no_glob_chooses_are_counted_by_kind(root: Path) -> None:
    assert count_outside(root, README_ONLY) == Outside(originals=8, copies=13)


def test_documents_that_are_excluded_on_purpose_do_not_count(root: Path) -> None:
    lane = replace(README_ONLY, exclude=("src/content/docs/fr/**", "src/content/docs/en/*0.mdx"))
    assert count_outside(root, lane) == Outside(originals=7, copies=6)


def test_formats_that_are_not_read_do_not_count_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXTRAS, "office", ("no_such_package",))
    is_installed.cache_clear()
    root = plant(tmp_path, {**shapes.LANGCHAIN, "docs/a.pdf": "x", "docs/b.docx": "x"})
    outside = count_outside(root, README_ONLY)
    is_installed.cache_clear()
    assert (outside.originals, outside.copies) == (12, 0)
    note = "2 documents are not read without ragdocs[office]: docs/a.pdf, docs/b.docx"
    assert outside.unread_notes() == [note]


def test_links_and_removed_files_do_not_count(root: Path) -> None:
    (root / "src" / "content" / "docs" / "en" / "guide0.mdx").unlink()
    (root / "src" / "link.md").symlink_to("../README.md")
    assert count_outside(root, README_ONLY) == Outside(originals=7, copies=13)


def test_the_note_names_the_number_and_the_command() -> None:
    assert Outside().note() == ""
    assert Outside(1).note() == (
        "1 documentation file lies outside the configured globs; "
        "`ragdocs init --dry-run` shows them"
    )
    assert "1,173 documentation files lie outside" in Outside(1000, 173).note()
    assert "173 of them translations" in Outside(1000, 173).note()


def test_status_tells_it(root: Path) -> None:
    notes = docs_notes(opened(root, include=["README.md"]))
    assert any(note.startswith("21 documentation files lie outside") for note in notes)


def test_status_of_a_project_that_reads_everything_is_silent(root: Path) -> None:
    assert not any("outside" in note for note in docs_notes(opened(root)))


def test_an_empty_answer_tells_it_and_an_answer_does_not(root: Path) -> None:
    ask = Ask(workspace=opened(root, include=["README.md"]), rim="command")
    assert "21 documentation files" in search_docs(ask, "zebra")["notes"][-1]
    found = search_docs(ask, "words about the matter")
    assert found["result"]
    assert not any("outside" in note for note in found["notes"])


def test_copies_alone_are_no_news_for_an_empty_answer(root: Path) -> None:
    workspace = opened(root, include=["README.md", "src/content/docs/en/**/*.mdx"])
    found = search_docs(Ask(workspace=workspace, rim="command"), "zebra")
    assert not any("outside" in note for note in found["notes"])
    assert any("13 documentation files" in note for note in docs_notes(workspace))


def test_a_server_counts_in_the_background(root: Path) -> None:
    workspace = opened(root, include=["README.md"])
    outside.begin(workspace)
    ask = Ask(workspace=workspace, rim="tool")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        notes = search_docs(ask, "zebra")["notes"]
        if any("21 documentation files" in note for note in notes):
            return
        time.sleep(0.02)
    pytest.fail("the count never came")


def test_a_count_is_kept_until_the_index_of_git_changes(root: Path) -> None:
    count = OutsideCount(root, README_ONLY)
    first = count.current()
    assert count.current() is first
    (root / "src" / "new.md").write_text("# New", encoding="utf-8")
    assert count.current() is first
    plain_git(root, "add", "-A")
    assert count.current() == Outside(originals=9, copies=13)


def test_without_documents_nothing_is_counted(root: Path) -> None:
    workspace = opened(root, enabled=False)
    assert outside.outside_of(workspace) is None
    assert outside.status_notes(workspace) == {}
    outside.begin(workspace)
