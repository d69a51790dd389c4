"""The map of source files: what is in it, what is parsed again, how it is ranked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.verbs.context import repomap
from ragdocs.verbs.context.repomap import Map

if TYPE_CHECKING:
    from tests.conftest import Project

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def read(project: Project) -> Map:
    """Read as a process that has just started, and end it."""
    workspace = project.open()
    try:
        return workspace.packs.files.read()
    finally:
        workspace.close()


def aged(path: Path) -> None:
    """Make a file older than the tick of the file system's clock.

    As files are that nobody is writing.
    """
    os.utime(path, ns=(1_700_000_000_000_000_000, path.stat().st_mtime_ns - 10_000_000_000))


@pytest.fixture
def tree(project: Project) -> Project:
    for name in ("a", "b", "c"):
        aged(project.write(f"src/{name}.py", f"def {name}(): pass\n"))
    return project


def test_only_contents_that_are_new_are_parsed(tree: Project) -> None:
    first = read(tree)
    assert first.files == {f"src/{name}.py": f"def {name}()" for name in ("a", "b", "c")}
    assert (first.parsed, read(tree).parsed) == (3, 0)
    aged(tree.write("src/b.py", "def b(): pass\ndef more(): pass\n"))
    changed = read(tree)
    assert (changed.parsed, changed.files["src/b.py"]) == (1, "def b()\ndef more()")
    assert read(tree).parsed == 0
    (tree.root / "src/a.py").rename(tree.root / "src/moved.py")
    os.utime(tree.root / "src/b.py")
    moved = read(tree)
    assert moved.parsed == 0
    assert sorted(moved.files) == ["src/b.py", "src/c.py", "src/moved.py"]
    tree.write("src/b.py", "def b(): pass\n")
    assert read(tree).parsed == 0, "as after a checkout of the old branch"


def test_a_damaged_cache_costs_time_only(tree: Project, own_directories: Path) -> None:
    before = read(tree).files
    cache = own_directories / "cache/ragdocs/outlines.sqlite"
    cache.write_bytes(b"not a database" * 100)
    again = read(tree)
    assert (again.files, again.parsed) == (before, 3)


def test_ignored_binary_huge_and_generated_files_are_left_out(tree: Project) -> None:
    tree.write(".gitignore", "build/\n*.gen.py\n")
    tree.write("build/x.py", "def x(): pass\n")
    tree.write("src/y.gen.py", "def y(): pass\n")
    tree.write("node_modules/z.js", "function z() {}\n")
    tree.write(".venv/w.py", "def w(): pass\n")
    tree.write("src/huge.py", "x = 1\n" * 100_000)
    tree.write("src/made.py", "# Automatically generated, do not edit\ndef made(): pass\n")
    (tree.root / "src/binary.py").write_bytes(b"\x00\x01\x02")
    tree.write("src/data.csv", "1,2\n")
    for _ in range(2):
        mapped = read(tree)
        assert sorted(mapped.files) == ["src/a.py", "src/b.py", "src/c.py"]
        assert mapped.skipped == {"made by a machine": 1, "not readable as text": 2}


def test_no_secret_reaches_the_cache(tree: Project, own_directories: Path) -> None:
    tree.write("src/login.py", f'def login(token="{SECRET}"): pass\n')
    lines = read(tree).files["src/login.py"]
    assert SECRET not in lines
    assert lines.startswith("def login(token=")
    for path in (own_directories / "cache").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


FILES = {
    "src/auth/login.py": "def login(user: str) -> Session",
    "src/auth/token.py": "class Token\n  def revoke(self)",
    "src/net/retry.py": "def retry(call)",
    "tests/test_login.py": "def test_login()",
    "src/plain.py": "",
}


LOGIN, TOKEN, RETRY = "src/auth/login.py", "src/auth/token.py", "src/net/retry.py"


@pytest.mark.parametrize(
    ("task", "named", "linked", "best"),
    [
        ("the login of users", [], {}, [LOGIN, "tests/test_login.py"]),
        ("revoke what was given", [], {}, [TOKEN]),
        ("", [RETRY], {}, [RETRY]),
        ("", ["src/auth"], {}, [TOKEN, LOGIN]),
        ("", [], {"src/plain.py": 5.0}, ["src/plain.py"]),
        ("the login", ["src/plain.py"], {RETRY: 1.0}, ["src/plain.py", LOGIN]),
        ("fair retries", [], {LOGIN: 20.0}, [LOGIN]),
        ("a fair retry", [], {LOGIN: 20.0}, [RETRY, LOGIN]),
    ],
)
def test_files_come_first_at_which_task_caller_and_links_point(
    task: str, named: list[str], linked: dict[str, float], best: list[str]
) -> None:
    order = repomap.ranked(FILES, task, named, linked)
    assert order[: len(best)] == best
    assert sorted(order) == sorted(FILES)
    assert order == repomap.ranked(dict(reversed(FILES.items())), task, named, linked)


def test_public_and_outer_definitions_are_shown_before_others() -> None:
    lines = ["class A", "  def m(self)", "  def _p(self)", "def _q()", "def r()"]
    text = "\n".join(lines)
    assert repomap.chosen_definitions(text, 2) == ["class A", "def r()", "… 3 more"]
    assert repomap.chosen_definitions(text, 3) == [
        "class A",
        "  def m(self)",
        "def r()",
        "… 2 more",
    ]
    assert repomap.chosen_definitions(text, 9) == lines
