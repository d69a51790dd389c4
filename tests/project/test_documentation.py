"""Which documentation a project has, and what is read of it without a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import shapes
from tests.shapes import plant

from ragdocs import config
from ragdocs.lanes import DOCS
from ragdocs.project import documentation
from ragdocs.project.documentation import (
    default_globs,
    documentation_format,
    list_documentation,
)
from ragdocs.project.formats import FORMATS, Format
from ragdocs.text.formats.reading import read
from ragdocs.workspace import Workspace

# A heading as each format writes it; one that is read without headings has none.
HEADINGS = {
    "Markdown": "# Title\n\nWords.\n",
    "reStructuredText": "Title\n=====\n\nWords.\n",
    "AsciiDoc": "== Title\n\nWords.\n",
    "Org": "* Title\n\nWords.\n",
    "notebooks": '{"cells": [{"cell_type": "markdown", "source": ["# Title"]}]}',
    "HTML": "<h1>Title</h1><p>Words.",
    "plain text": "Title\n\nWords.\n",
}


def indexed(root: Path) -> set[str]:
    """Return the paths that a search of a project without configuration can find."""
    workspace = Workspace(config.load(root, project=root, flags={"embedding.model": "none"}))
    workspace.sync()
    return set(workspace.corpus("docs").stamps())


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_a_format_is_read_as_the_table_says(kind: Format) -> None:
    if kind.extra:
        # What these are converted to is tried in tests/text/test_office.py.
        assert kind.name not in HEADINGS
        return
    for suffix in kind.suffixes:
        page = read(HEADINGS[kind.name], f"page{suffix}")
        titles = [block.title for block in page.blocks if block.kind == "heading"]
        assert titles == (["Title"] if kind.has_headings else [])


def test_every_ending_of_the_table_is_read_in_docs(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for kind in FORMATS:
        if not kind.extra:
            files |= {f"docs/page{suffix}": HEADINGS[kind.name] for suffix in kind.suffixes}
    built = {"docs/_build/page.html": HEADINGS["HTML"], "docs/_templates/page.html": "<p>x"}
    assert indexed(plant(tmp_path, {**files, **built})) == set(files)


COUNTS = {
    "OBSIDIAN": 16, "NEXT": 13, "ASCIIDOCTOR": 8, "LANGCHAIN": 13, "ASTRO": 22,
    "VUE": 12, "DJANGO": 10, "PACKAGE": 1, "MONOREPO": 19,
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("git", [True, False])
def test_without_a_configuration_the_documentation_is_found(
    tmp_path: Path, name: str, *, git: bool
) -> None:
    root = plant(tmp_path / "project", getattr(shapes, name), git=git)
    assert len(indexed(root)) == COUNTS[name]


def test_beside_documentation_in_docs_nothing_else_but_the_readme_is_read(tmp_path: Path) -> None:
    root = plant(tmp_path, {"docs/a.md": "# A", "guide/b.md": "# B", "README.md": "# R"})
    assert default_globs(root).include == DOCS.include
    assert indexed(root) == {"docs/a.md", "README.md"}


def test_a_docs_folder_with_a_built_site_is_not_all_there_is(tmp_path: Path) -> None:
    root = plant(tmp_path, {"docs/CNAME": "x", "docs/index.html": "<p>", "guide/b.md": "# B"})
    assert indexed(root) == {"guide/b.md", "docs/index.html"}


def test_what_git_ignores_and_builds_write_is_not_read(tmp_path: Path) -> None:
    files = {
        ".gitignore": "drafts/\n",
        "guide/a.md": "# A",
        "guide/_build/a.md": "# A",
        "guide/node_modules/x/README.md": "# X",
    }
    root = plant(tmp_path, files)
    plant(root, {"drafts/b.md": "# B"}, git=False)
    assert indexed(root) == {"guide/a.md"}


def test_the_entries_of_a_journal_are_no_documents(tmp_path: Path) -> None:
    root = plant(tmp_path, {"guide/a.md": "# A", "journal-data/entry.md": "# E"}, git=False)
    assert indexed(root) == {"guide/a.md"}


def test_of_very_many_documents_only_the_upper_folders_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "MOST_BY_DEFAULT", 5)
    deep = {f"notes/deep/page{number}.md": "# P" for number in range(9)}
    root = plant(tmp_path, {"top.md": "# T", "notes/first.md": "# F", **deep})
    assert indexed(root) == {"top.md", "notes/first.md"}


def test_with_many_top_folders_a_glob_for_all_of_them_does(tmp_path: Path) -> None:
    files = {f"area{number}/notes/page.md": "# P" for number in range(40)}
    root = plant(tmp_path, files)
    assert default_globs(root).include == ("*.md", "**/*.md")
    assert len(indexed(root)) == 40


def test_folders_without_documentation_are_neither_walked_nor_watched(tmp_path: Path) -> None:
    root = plant(tmp_path, {"guide/a.md": "# A", "guide/b.md": "# B", "src/main.py": ""})
    workspace = Workspace(config.load(root, project=root, flags={"embedding.model": "none"}))
    store = workspace.open_lanes["docs"].store
    watched = {path.name: is_deep for path, is_deep in store.watched()}
    assert watched == {"guide": True, root.name: False}


def test_a_folder_name_with_signs_of_globs_is_taken_literally(tmp_path: Path) -> None:
    files = {f"[a] *?/page{number}.md": "# P" for number in range(4)}
    root = plant(tmp_path, files)
    assert len(indexed(root)) == 4


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("guide/a.MD", "Markdown"),
        ("docs/page.txt", "plain text"),
        ("src/words.txt", ""),
        ("requirements.txt", ""),
        (".github/CONTRIBUTING.md", ""),
        ("docs/.draft.md", ""),
        ("main.py", ""),
        ("md", ""),
    ],
)
def test_what_counts_as_documentation(path: str, name: str) -> None:
    kind = documentation_format(path)
    assert (kind.name if kind else "") == name


def test_new_files_count_before_git_tracks_them(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a.md": "# A"})
    (root / "b.md").write_text("# B", encoding="utf-8")
    listing = list_documentation(root)
    assert listing.from_git
    assert listing.paths == ("a.md", "b.md")


def test_inside_a_repository_only_the_project_is_listed(tmp_path: Path) -> None:
    plant(tmp_path, {"other/a.md": "# A", "project/b.md": "# B"})
    assert list_documentation(tmp_path / "project").paths == ("b.md",)


def test_a_walk_that_is_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "MOST_ENTRIES", 5)
    files = {f"area{number}/page{page}.md": "# P" for number in range(5) for page in range(5)}
    listing = list_documentation(plant(tmp_path, files, git=False))
    assert 0 < len(listing.paths) < 25
    assert "only the first" in listing.gap
