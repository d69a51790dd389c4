"""The list of projects that have memories: kept by many, read by all, harmless when it is wrong."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.plain_git import plain_git as git

from ragdocs.errors import ParseError
from ragdocs.project import registry

AT = 1_738_680_652


@pytest.fixture
def home(own_directories: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(own_directories))
    return own_directories


@pytest.fixture
def file(home: Path) -> Path:
    return home / "data" / "ragdocs" / "registry.json"


def folder(path: Path, *, memories: bool = True) -> Path:
    (path / ".memories" if memories else path).mkdir(parents=True)
    return path


def listed() -> list[str]:
    return [one.name for one in registry.projects()[0]]


def test_the_file_has_the_documented_form(file: Path, tmp_path: Path) -> None:
    for name, moment in (("koi", AT), ("miller", AT - 9000)):
        registry.register(folder(tmp_path / name), moment)
    assert json.loads(file.read_text()) == {
        "version": 1,
        "projects": {
            str(tmp_path / "koi"): {"lastAccess": AT, "name": "koi"},
            str(tmp_path / "miller"): {"lastAccess": AT - 9000, "name": "miller"},
        },
    }
    assert listed() == ["koi", "miller"], "the last used first"


def test_projects_without_memories_are_passed_over_and_kept(file: Path, tmp_path: Path) -> None:
    registry.register(tmp_path / "gone", AT)
    registry.register(folder(tmp_path / "bare", memories=False), AT)
    registry.register(folder(tmp_path / "here"), AT)
    assert listed() == ["here"]
    assert len(json.loads(file.read_text())["projects"]) == 3, (
        "a disk that is not mounted may come back"
    )


def test_a_burst_writes_once_and_a_later_access_again(file: Path, tmp_path: Path) -> None:
    root = folder(tmp_path / "koi")
    registry.register(root, AT)
    before = file.stat().st_ino
    registry.register(root, AT + 20)
    assert file.stat().st_ino == before
    registry.register(root, AT + 100)
    registry.register(root, AT - 5000)
    assert json.loads(file.read_text())["projects"][str(root)]["lastAccess"] == AT + 100


def test_what_others_wrote_into_the_file_stays(file: Path, tmp_path: Path) -> None:
    root = folder(tmp_path / "koi")
    file.parent.mkdir(parents=True)
    entry = {"lastAccess": 1, "name": "old", "colour": "red"}
    file.write_text(
        json.dumps({"version": 1, "note": "mine", "projects": {str(root): entry, "/x": 5}})
    )
    registry.register(root, AT)
    known = json.loads(file.read_text())
    assert known["note"] == "mine"
    assert known["projects"][str(root)] == {"lastAccess": AT, "name": "koi", "colour": "red"}


def test_the_registry_of_the_earlier_design_is_read_too(
    home: Path, file: Path, tmp_path: Path
) -> None:
    old, both = folder(tmp_path / "old"), folder(tmp_path / "both")
    projects = {
        str(old): {"lastAccess": AT - 1, "name": "Koi's"},
        str(both): {"lastAccess": AT - 9999, "name": "both"},
    }
    (home / ".koi").mkdir()
    theirs = home / ".koi" / "registry.json"
    theirs.write_text(json.dumps({"version": 1, "projects": projects}))
    text = theirs.read_text()
    registry.register(both, AT)
    assert listed() == ["both", "Koi's"]
    assert theirs.read_text() == text


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2, "projects": {}}', '{"version": 1}', "[" * 100_000]
)
def test_a_file_that_cannot_be_understood_stays_as_it_is(
    file: Path, tmp_path: Path, text: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(ParseError, match="registry"):
        registry.register(folder(tmp_path / "koi"), AT)
    assert file.read_text() == text
    found, problems = registry.projects()
    assert found == []
    assert len(problems) == 1
    assert str(file) in problems[0]


def test_odd_entries_are_passed_over(file: Path, tmp_path: Path) -> None:
    good = folder(tmp_path / "good")
    odd: dict[str, Any] = {
        "relative": {},
        "": {},
        "/a\0b": {},
        "~": {},
        str(good): None,
        str(tmp_path / "x"): [],
    }
    odd[str(folder(tmp_path / "late"))] = {"lastAccess": "soon", "name": 7}
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": 1, "projects": odd}))
    assert sorted(listed()) == ["good", "late"]


def test_many_at_once_lose_nothing(file: Path, tmp_path: Path) -> None:
    roots = [folder(tmp_path / f"p{number}") for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda root: registry.register(root, AT), roots))
    assert sorted(listed()) == sorted(root.name for root in roots)
    assert [path.name for path in file.parent.iterdir()] == ["registry.json"]


def test_the_projects_not_used_for_longest_leave_first(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MOST_PROJECTS", 3)
    for number in (2, 0, 1, 3):
        registry.register(folder(tmp_path / f"p{number}"), AT + 1000 * number)
    assert listed() == ["p3", "p2", "p1"]


def test_a_worktree_belongs_to_its_repository(tmp_path: Path) -> None:
    main = folder(tmp_path / "koi")
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "feature-x"))
    tree = tmp_path / "feature-x"
    assert registry.main_worktree(tree) == main
    assert registry.main_worktree(folder(tree / "packages" / "one")) == main / "packages" / "one"
    assert registry.main_worktree(main) == main
    assert registry.main_worktree(folder(tmp_path / "plain")) == tmp_path / "plain"
    registry.register(folder(tree / "sub"), AT)
    registry.register(tree, AT)
    assert sorted(listed()) == ["sub"], "the worktree itself has no memories yet"


@pytest.mark.parametrize("pointer", ["", "gitdir: /nowhere", "gitdir: \0", "x" * 10_000])
def test_a_damaged_pointer_to_a_repository_leads_nowhere(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert registry.main_worktree(tmp_path) == tmp_path
