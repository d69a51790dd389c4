"""The project's own commits, found by what they say and what they changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.asking import ask
from tests.plain_git import plain_git

from ragdocs.errors import NotFoundError, UnavailableError, ValidationError

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

ON = {"docs.commits": True}
ADA, GRACE = ("Ada Lovelace", "ada@x.org"), ("Grace Hopper", "grace@navy.mil")


def git(project: Project, *words: str, author: tuple[str, str] = ADA, at: str = "") -> str:
    who = ("-c", f"user.name={author[0]}", "-c", f"user.email={author[1]}")
    dated = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    return plain_git(project.root, *who, *words, check=True, **dated)


def change(project: Project, path: str, message: str, days: int = 0, **more: Any) -> None:
    project.write(path, f"{message}\n")
    git(project, "add", path)
    at = (project.clock() - timedelta(days=days)).isoformat()
    git(project, "commit", "-q", "-m", message, at=at, **more)


@pytest.fixture
def workspace(project: Project) -> Workspace:
    git(project, "init", "-q")
    limit = "Limit retries to three\n\nMore of them kept the queue full."
    change(project, "src/net/retry.py", limit, 40)
    change(project, "src/net/client.py", "Close idle connections", 20, author=GRACE)
    change(project, "docs/guide.md", "Explain the retries", 10)
    change(project, "src/style.css", "Larger buttons", 1)
    return project.open(**ON)


def subjects(workspace: Workspace, query: str = "", **more: Any) -> list[str]:
    return [hit.document.title for hit in workspace.commits.search(query, **more).hits]


def test_a_commit_is_found_by_its_message_and_by_its_files(
    project: Project, workspace: Workspace
) -> None:
    best = ask(workspace, "search_commits", query="why are retries limited")["result"][0]
    assert best["commit"] == git(project, "log", "--format=%H", "--", "src/net/retry.py")
    assert best["subject"] == "Limit retries to three"
    assert "kept the queue full" in best["content"]
    facts = (best["author"], best["age"], best["paths"])
    assert facts == ("Ada Lovelace", "1 month ago", ["src/net/retry.py"])
    assert subjects(workspace, "style.css")[0] == "Larger buttons"
    # The other lanes know nothing of commits.
    assert {hit.document.path for hit in workspace.documents.search("retries").hits} == {
        "docs/guide.md"
    }
    assert ask(workspace, "search_memories", query="retries")["result"] == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"query": "retries", "paths": ["docs"]}, ["Explain the retries"]),
        ({"paths": ["./src/net/"]}, ["Close idle connections", "Limit retries to three"]),
        (
            {"paths": ["src/net/retry.py", "src/style.css"]},
            ["Larger buttons", "Limit retries to three"],
        ),
        ({"since": "2w"}, ["Larger buttons", "Explain the retries"]),
        ({"author": "hopper"}, ["Close idle connections"]),
        ({"author": "NAVY.mil", "since": "1d"}, []),
        ({"paths": ["nowhere"]}, []),
    ],
)
def test_paths_time_and_author_narrow_the_search(
    workspace: Workspace, filters: dict[str, Any], expected: list[str]
) -> None:
    assert subjects(workspace, **filters) == expected


def test_a_filter_that_cannot_be_meant_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotFoundError, match="Ada Lovelace"):
        subjects(workspace, "x", author="nobody")
    with pytest.raises(ValidationError):
        subjects(workspace, "x", since="whenever")


def test_only_what_is_new_is_read_and_what_was_rewritten_is_gone(
    project: Project, workspace: Workspace
) -> None:
    change(project, "src/net/retry.py", "Retry with jitter")
    report = workspace.sync()["commits"]
    assert (report.added, report.removed, report.unchanged) == (1, 0, 4)
    git(project, "commit", "-q", "--amend", "-m", "Retry with exponential backoff")
    report = workspace.sync()["commits"]
    assert (report.added, report.removed) == (1, 1)
    assert "Retry with jitter" not in subjects(workspace, "jitter")
    git(project, "reset", "-q", "--hard", "HEAD~3")
    workspace.sync()
    assert subjects(workspace, "retries") == ["Limit retries to three"]


@pytest.mark.usefixtures("workspace")
def test_a_project_below_the_top_sees_what_happened_to_it(project: Project) -> None:
    project.root = project.root / "src"
    below = project.open(**ON)
    expected = ["Larger buttons", "Close idle connections", "Limit retries to three"]
    assert subjects(below, limit=20) == expected
    assert subjects(below, paths=["net/client.py"]) == ["Close idle connections"]


def test_it_is_off_until_it_is_turned_on_and_needs_no_repository(project: Project) -> None:
    with pytest.raises(UnavailableError, match=r"commits = true under \[docs\]"):
        _ = project.open().commits
    assert subjects(project.open(**ON), "anything") == []
    git(project, "init", "-q")
    assert subjects(project.open(**ON), "anything") == []
