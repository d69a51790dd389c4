"""The identity of a repository: its folder, its remote and its branch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plain_git import plain_git

from ragdocs.errors import ConfigError, TooSlowError, UnavailableError
from ragdocs.project.identity import clean_address, repository_id, shared_name
from ragdocs.system import git


@pytest.mark.parametrize(
    ("address", "clean"),
    [
        (
            "https://user:token@github.com:443/owner/repo/?foo=bar#section",
            "https://github.com/owner/repo",
        ),
        ("git@github.com:owner/repo.git", "ssh://github.com/owner/repo"),
        ("ssh://user@github.com:22/owner/repo.git?foo=bar", "ssh://github.com/owner/repo"),
        ("HTTPS://GitHub.com/Owner/Repo.git/", "https://github.com/Owner/Repo"),
        ("http://host:80/a//b", "http://host/a/b"),
        ("https://host:8443/a", "https://host:8443/a"),
        ("ssh://git@host:2222/a", "ssh://host/a"),
        ("git@[2001:db8::1]:a/b.git", "ssh://[2001:db8::1]/a/b"),
        ("https://host/@scope/a", "https://host/@scope/a"),
        ("git@host:a@v1", ""),
        ("https://dev.azure.com/org/a%20b/_git/repo", "https://dev.azure.com/org/a%20b/_git/repo"),
        ("/srv/git/repo.git", "file:///srv/git/repo"),
        ("file:///srv/git/repo.git", "file:///srv/git/repo"),
        ("C:\\git\\repo", "file:///C:/git/repo"),
        ("", ""),
    ],
)
def test_an_address_is_told_in_one_spelling(address: str, clean: str) -> None:
    assert clean_address(address) == clean


@given(st.text() | st.from_regex(r"[a-z]{0,5}:?/{0,2}[^\n]{0,9}[:@/?#][^\n]{0,20}"))
def test_no_address_is_too_odd(address: str) -> None:
    assert clean_address(address).isprintable()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "repository"
    root.mkdir()
    plain_git(root, "init")
    plain_git(root, "commit", "--allow-empty", "-m", "first")
    return root


def own(root: Path) -> str:
    return repository_id(root, git.branch(root))


def test_an_identity_depends_on_place_remote_and_branch_and_not_on_credentials(
    repository: Path,
) -> None:
    first = own(repository)
    assert own(repository) == first
    plain_git(repository, "remote", "add", "origin", "https://me:old@github.com/owner/repo")
    second = own(repository)
    plain_git(
        repository, "remote", "set-url", "origin", "https://me:new@github.com:443/owner/repo.git"
    )
    assert own(repository) == second != first
    plain_git(repository, "checkout", "-b", "topic")
    shared = repository_id(repository)
    assert own(repository) not in {first, second, shared}
    plain_git(repository, "checkout", "main")
    assert repository_id(repository) == shared
    assert own(repository.parent) != first, "outside a repository the place alone counts"


def test_the_first_commit_of_a_repository_changes_nothing_about_its_identity(
    tmp_path: Path,
) -> None:
    plain_git(tmp_path, "init")
    before = own(tmp_path)
    assert git.branch(tmp_path) == "main"
    plain_git(tmp_path, "commit", "--allow-empty", "-m", "first")
    assert own(tmp_path) == before


def test_a_git_that_does_not_answer_is_an_error_and_not_another_identity(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(TooSlowError):
        repository_id(repository)


@pytest.mark.parametrize(
    ("remotes", "name"),
    [
        (["git@host.example:shop/api.git", "https://ann:x@host.example/shop/api"], "shop/api"),
        (["ssh://git@host.example:2222/shop/api", "http://host.example/shop/api/"], "shop/api"),
    ],
)
def test_clones_by_ssh_and_by_https_are_one_project(
    repository: Path, remotes: list[str], name: str
) -> None:
    plain_git(repository, "remote", "add", "origin", "x")
    for remote in remotes:
        plain_git(repository, "remote", "set-url", "origin", remote)
        assert shared_name(repository) == f"host.example/{name}"
    inside = repository / "packages" / "web"
    inside.mkdir(parents=True)
    assert shared_name(inside) == f"host.example/{name}#packages/web"
    assert shared_name(inside, [f"{inside}=web"]) == "web"


def test_a_project_without_a_remote_is_named_by_its_user(repository: Path) -> None:
    with pytest.raises(UnavailableError, match=r'projects = \["/.*=NAME"\]'):
        shared_name(repository)
    assert shared_name(repository, ["/elsewhere=no", f"{repository} = handbook"]) == "handbook"
    with pytest.raises(ConfigError, match="projects holds 'handbook'"):
        shared_name(repository, ["handbook"])
