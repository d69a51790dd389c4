"""The project's own commits, found by what they say and what they changed."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import NotFoundError, UnavailableError, ValidationError

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

ON = {"docs.commits": True}


def git(
    root: Path, *words: str, author: str = "Ada Lovelace <ada@example.org>", at: str = ""
) -> str:
    environ = {"HOME": str(root.parent), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    dated = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    name, _, mail = author.rstrip(">").partition(" <")
    who = ("-c", f"user.name={name}", "-c", f"user.email={mail}", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(root), *who, *words]
    return subprocess.run(
        command, env=environ | dated, check=True, capture_output=True, text=True
    ).stdout.strip()


def change(
    project: Project,
    path: str,
    message: str,
    *,
    days: int = 0,
    author: str = "Ada Lovelace <ada@x.org>",
) -> str:
    project.write(path, f"{message}\n")
    git(project.root, "add", path)
    at = (project.clock() - timedelta(days=days)).isoformat()
    git(project.root, "commit", "-q", "-m", message, author=author, at=at)
    return git(project.root, "rev-parse", "HEAD")


@pytest.fixture
def workspace(project: Project) -> Workspace:
    git(project.root, "init", "-q")
    change(
        project,
        "src/net/retry.py",
        "Limit retries to three\n\nMore of them kept the queue full.",
        days=40,
    )
    change(
        project,
        "src/net/client.py",
        "Close idle connections",
        days=20,
        author="Grace Hopper <grace@navy.mil>",
    )
    change(project, "docs/guide.md", "Explain the retries", days=10)
    change(project, "src/style.css", "Larger buttons", days=1)
    return project.open(**ON)


def subjects(workspace: Workspace, query: str, **more: object) -> list[str]:
    return [hit["subject"] for hit in workspace.commits.search(query, **more)["result"]]  # type: ignore[arg-type]


def test_a_commit_is_found_by_its_message_and_by_its_files(
    project: Project, workspace: Workspace
) -> None:
    best = workspace.commits.search("why are retries limited")["result"][0]
    assert best["commit"] == git(project.root, "log", "--format=%H", "--", "src/net/retry.py")
    assert best["subject"] == "Limit retries to three"
    assert "kept the queue full" in best["content"]
    assert (best["author"], best["age"], best["paths"]) == (
        "Ada Lovelace",
        "1 month ago",
        ["src/net/retry.py"],
    )
    assert subjects(workspace, "style.css")[0] == "Larger buttons"


def test_paths_time_and_author_narrow_the_search(workspace: Workspace) -> None:
    assert subjects(workspace, "retries", paths=["docs"]) == ["Explain the retries"]
    assert set(subjects(workspace, "", paths=["./src/net/"])) == {
        "Limit retries to three",
        "Close idle connections",
    }
    assert subjects(workspace, "", paths=["src/net/retry.py", "src/style.css"]) == [
        "Larger buttons",
        "Limit retries to three",
    ]
    assert subjects(workspace, "", since="2w") == ["Larger buttons", "Explain the retries"]
    assert subjects(workspace, "", author="hopper") == ["Close idle connections"]
    assert subjects(workspace, "", author="NAVY.mil", since="1d") == []
    assert subjects(workspace, "", paths=["nowhere"]) == []
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
    git(project.root, "commit", "-q", "--amend", "-m", "Retry with exponential backoff")
    report = workspace.sync()["commits"]
    assert (report.added, report.removed) == (1, 1)
    assert "Retry with jitter" not in subjects(workspace, "jitter")
    git(project.root, "reset", "-q", "--hard", "HEAD~3")
    workspace.sync()
    assert set(subjects(workspace, "retries")) == {"Limit retries to three"}


def test_a_project_below_the_top_sees_what_happened_to_it(
    project: Project, workspace: Workspace
) -> None:
    del workspace
    project.root = project.root / "src"
    below = project.open(**ON)
    assert set(subjects(below, "", limit=20)) == {
        "Limit retries to three",
        "Close idle connections",
        "Larger buttons",
    }
    assert subjects(below, "", paths=["net/client.py"]) == ["Close idle connections"]


def test_it_is_off_until_it_is_turned_on_and_needs_no_repository(project: Project) -> None:
    with pytest.raises(UnavailableError, match=r"commits = true under \[docs\]"):
        _ = project.open().commits
    assert subjects(project.open(**ON), "anything") == []
    git(project.root, "init", "-q")
    assert subjects(project.open(**ON), "anything") == []


def test_documents_and_memories_do_not_mix_with_commits(workspace: Workspace) -> None:
    assert all(
        hit["path"].startswith("docs/") for hit in workspace.documents.search("retries")["result"]
    )
    assert workspace.memories.search("retries")["result"] == []
