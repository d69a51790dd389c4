"""The help is printed, and a command is run, without importing what neither needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from ragdocs import __version__
from ragdocs.serve.cli import app, listed

if TYPE_CHECKING:
    from tests.conftest import Project

RAGDOCS = (sys.executable, "-P", "-m", "ragdocs")
# Runs a command, then says which modules it imported.
IMPORTS = """\
import sys
from ragdocs.__main__ import main
code = main()
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def run(*words: str, columns: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "COLUMNS": columns}
    return subprocess.run(
        [*RAGDOCS, *words], env=environ, capture_output=True, encoding="utf-8", check=False
    )


def imported(*words: str) -> set[str]:
    command = [sys.executable, "-P", "-c", IMPORTS, *words]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return set(ran.stderr.split())


def leaves(group: click.Group, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    helps = {}
    for name, command in group.commands.items():
        path = (*above, name)
        helps[path] = command.get_help(click.Context(command, info_name=name))
        if isinstance(command, click.Group):
            helps |= leaves(command, path)
    return helps


def test_the_file_says_what_the_commands_say() -> None:
    written = json.loads(Path(listed.FILE).read_text(encoding="utf-8"))
    assert written == app.summary(), "run: python3 tasks.py docs"


def test_every_command_is_listed_under_what_it_is_for() -> None:
    names = [name for section in app.SECTIONS.values() for name in section]
    assert sorted(names) == sorted(app.build().commands)
    assert "..." not in app.summary()["help"].partition("\n\n")[2]


@pytest.mark.parametrize("columns", ["40", "66", "79", "80", "81", "200", "0", "wide", ""])
def test_the_help_is_that_of_the_command_line_at_every_width(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    root = app.build()
    expected = root.get_help(click.Context(root, info_name="ragdocs"))
    for words, code in ((("--help",), 0), ((), 2)):
        ran = run(*words, columns=columns)
        assert (ran.returncode, ran.stdout) == (code, f"{expected}\n")


def test_the_version_is_printed() -> None:
    ran = run("--version")
    assert (ran.returncode, ran.stdout) == (0, f"ragdocs {__version__}\n")


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_and_version_import_no_command(words: tuple[str, ...]) -> None:
    modules = imported(*words)
    assert "ragdocs.serve.cli.listed" in modules
    assert not modules & {"click", "ragdocs.config", "ragdocs.serve.surface", "socket"}


def test_a_command_imports_its_own_declarations_only() -> None:
    modules = imported("recall", "--help")
    assert "ragdocs.serve.surface.recall" in modules
    assert not modules & {"ragdocs.serve.surface.catalog", "ragdocs.serve.surface.entries"}


def test_each_command_is_the_same_whether_all_are_built_or_one() -> None:
    every = leaves(app.build())
    one_by_one: dict[tuple[str, ...], str] = {}
    for name in app.build().commands:
        one_by_one |= leaves(app.build_for([name]))
    assert list(one_by_one.items()) == list(every.items())


def test_a_misspelt_command_names_one_that_was_not_imported() -> None:
    ran = run("memory", "lint")
    assert ran.returncode == 2
    assert "Did you mean 'ragdocs lint'?" in ran.stderr


def test_listing_the_latest_memories_opens_no_graph_and_no_words(project: Project) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.write(".memories/old.md", "The old way.\n")
    project.write(".memories/new.md", "The new way.\n\nsupersedes:: [[old]]\n")
    words = ["--project", str(project.root), "--set", "embedding.model=none"]
    shown = run("index", *words)
    assert shown.returncode == 0, shown.stderr
    shown = run("recall", "--json", *words)
    assert [memory["path"] for memory in json.loads(shown.stdout)["result"]] == [".memories/new.md"]
    assert not imported("recall", *words) & {"networkx", "whoosh", "faiss"}


def test_what_lists_and_checks_memories_imports_nothing_that_scores_or_reads_texts(
    project: Project,
) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.write(".memories/plan.md", "The plan of [[docs/auth.md]].\n")
    project.doc("auth.md", "# Authentication\n\nTokens are refreshed.\n")
    words = ["--project", str(project.root), "--set", "embedding.model=none"]
    assert run("index", *words).returncode == 0
    # A link is compared with its file once.
    assert "The plan" in run("recall", *words).stdout
    never = {"numpy", "networkx", "whoosh", "faiss", "concurrent.futures"}
    never |= {"logging", "subprocess", "difflib"}
    never |= {f"ragdocs.search.{name}" for name in ("query", "score", "calibration", "parse")}
    never |= {"ragdocs.engines.local.rows", "ragdocs.text.redaction.passes"}
    checks = never | {"tomllib", "ragdocs.search.variants", "ragdocs.verbs.quality.health"}
    checks |= {"ragdocs.verbs.living.drift", "ragdocs.verbs.memories.preview"}
    assert not imported("lint", *words) & (checks - {"ragdocs.search.parse"})
    never |= {"ragdocs.text.formats.markdown", "ragdocs.text.sections", "ragdocs.text.terms"}
    never |= {"ragdocs.search.variants", "ragdocs.project.documentation"}
    assert not imported("recall", *words) & never
