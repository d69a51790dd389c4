"""The command line, as a person and a script use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.serve.conftest import answer

from ragdocs.serve.cli import app as cli
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Source

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Run


@pytest.fixture
def enabled(project: Project) -> Project:
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.doc("auth.md", "# Authentication\n\nTokens are refreshed every quarter of an hour.\n")
    return project


def test_a_project_is_set_up_indexed_and_searched(project: Project, run: Run) -> None:
    project.doc("auth.md", "# Authentication\n\nTokens are refreshed.\n")
    assert cli.main(["init", "--project", str(project.root)]) == 0
    assert "enabled = true" in (project.root / "config.toml").read_text()
    run("check-config")
    indexed = answer(run("index", "--json"))
    assert indexed["lanes"]["docs"]["added"] == 1
    assert answer(run("index", "--json"))["lanes"]["docs"]["unchanged"] == 1
    assert answer(run("index", "--rebuild", "--json"))["lanes"]["docs"]["added"] == 1
    found = answer(run("search", "refreshed", "tokens", "--json", "--explain"))["result"]
    assert [hit["path"] for hit in found] == ["docs/auth.md"]
    assert sum(signal["share"] for signal in found[0]["signals"]) == pytest.approx(
        found[0]["score"], abs=0.005
    )
    assert "docs/auth.md:1-3" in run("search", "tokens")[1]


def test_errors_say_what_to_do_and_end_with_one(enabled: Project, run: Run) -> None:
    enabled.memory("auth-plan.md", "text\n")
    code, out, error = run("memory", "read", "auth-plam.md")
    assert (code, out) == (1, "")
    assert "auth-plan.md" in error
    assert run("memory", "create", "../out", "--content", "x")[0] == 1
    assert run("memory", "create", "x", "--file", str(enabled.root / "absent.txt"))[0] == 1
    code, _, error = run("serach", "x")
    assert code == 2
    assert "Did you mean 'search'?" in error


def test_a_dash_stands_for_standard_input_in_every_text(enabled: Project, run: Run) -> None:
    memory = enabled.memory("plan.md", "Ship it in May, not later.\n")
    edit = ("memory", "edit", "plan", "--find", "in May", "--text", "-")
    assert run(*edit, stdin="in June\n")[0] == 0
    assert memory.read_text().endswith("Ship it in June, not later.\n")
    commands = (
        ("memory", "append", "plan", "--content", "-"),
        ("memory", "append", "plan", "--file", "-"),
        ("remember", "-"),
        ("entry", "add", "-"),
        ("repo", "note", "--content", "-"),
    )
    for number, words in enumerate(commands):
        code, _, error = run(*words, stdin=f"the text of command {number}\n")
        assert code == 0, error
    texts = "".join(path.read_text() for path in (enabled.root / ".memories").rglob("*.md"))
    for number in range(len(commands)):
        assert f"the text of command {number}\n" in texts
    code, _, error = run("journal", "write", "project/api", "--overview", "-", stdin="text")
    assert code == 1
    assert "entry and overview cannot both be read from standard input" in error


def test_check_config_shows_value_and_origin_and_names_the_nearest_key(
    enabled: Project, run: Run
) -> None:
    code, out, _ = run("check-config")
    assert code == 0
    assert "memory.enabled" in out
    assert "config.toml:2" in out
    assert "memory is enabled" in out
    settings = {row["key"]: row for row in answer(run("check-config", "--json"))["settings"]}
    assert settings["embedding.model"]["value"] == '"hash"'
    enabled.write("config.toml", "[memory]\nenabeld = true\n")
    code, _, error = run("check-config")
    assert code == 1
    assert "enabled" in error
    assert run("check-config", "--set", "memory.enabled")[0] == 1


def test_lint_names_file_line_and_remedy(enabled: Project, run: Run) -> None:
    assert run("lint")[0] == 0
    enabled.memory("a.md", "---\ntype: banana\n---\nsee [src/auth.py] and [[./src/b.py]]\n")
    enabled.memory("b.md", "---\ntags: [a\n---\ntext\n")
    code, out, _ = run("lint")
    assert code == 1
    assert "a.md:4: [src/auth.py] is not a link; write [[src/auth.py]]" in out
    assert "[[./src/b.py]]" in out
    assert "unknown type 'banana'" in out
    assert str(enabled.root / ".memories" / "b.md") in out


def test_repairs_need_the_lane_of_memories(project: Project, run: Run) -> None:
    project.write("config.toml", "[memory]\nenabled = false\n")
    project.memory("a.md", "---\ntags: One\n---\ntext\n")
    for options in (("--fix",), ("--fix", "--dry-run")):
        code, out, error = run("lint", *options)
        assert (code, out) == (1, "")
        assert "the memory lane is switched off" in error
        assert "enabled = true under [memory]" in error
    assert run("lint")[0] == 0


@pytest.mark.parametrize("query", ["", " \t"])
def test_an_empty_query_finds_nothing_and_says_what_to_type(
    enabled: Project, run: Run, query: str
) -> None:
    enabled.memory("a.md", "text\n")
    found = answer(run("search", query, "--json"))
    assert (found["result"], found["total"]) == ([], 0)
    assert "the query is empty" in found["notes"][0]
    assert "ragdocs search" in found["notes"][0]
    assert answer(run("search", query, "--since", "1w", "--json"))["result"] == []
    entries = answer(run("entry", "search", query, "--json"))
    assert entries["results"] == []
    assert "the query is empty" in entries["notes"][0]
    for words in (("docs", "search"), ("memory", "search"), ("search", "--lane", "memory")):
        code, out, error = run(*words, query)
        assert (code, out) == (1, "")
        assert "the query is empty" in error


def test_status_compares_the_index_with_the_files(enabled: Project, run: Run) -> None:
    run("index")
    assert answer(run("status", "--json"))["lanes"][0]["documents"] == 1
    enabled.doc("new.md", "# New\n")
    notes = answer(run("status", "--json"))["lanes"][0]["notes"]
    assert any("1 files changed on disk" in note for note in notes)
    assert "embedder: hash" in run("status")[1]


def test_verify_names_the_files_by_which_the_index_is_behind_and_changes_nothing(
    enabled: Project, run: Run
) -> None:
    for name in ("changed", "gone", "touched"):
        enabled.doc(f"{name}.md", f"# {name}\n")
    run("index")
    enabled.doc("changed.md", "# Another text\n")
    (enabled.root / "docs/gone.md").unlink()
    os.utime(enabled.root / "docs/touched.md", (1, 1))
    enabled.doc("new.md", "# New\n")
    for _ in range(2):
        code, out, _ = run("verify", "--json")
        lane = json.loads(out)["lanes"]["docs"]
        assert code == 1
        assert lane["stale"] == ["docs/changed.md"]
        assert lane["missing"] == ["docs/new.md"]
        assert lane["extra"] == ["docs/gone.md"]
    code, out, _ = run("verify")
    assert code == 1
    assert "docs: BEHIND its files" in out
    assert "docs/changed.md: changed since it was indexed" in out
    assert "docs/gone.md: indexed, but gone" in out
    assert "docs/new.md: not indexed" in out
    assert "`ragdocs index`" in out
    run("index")
    assert run("verify")[0] == 0


def test_a_command_reads_only_the_lanes_it_needs(
    enabled: Project, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        enabled.doc(f"page-{number}.md", f"# Page {number}\n\nNothing about memories.\n")
    enabled.memory("harbour.md", "The harbour master calls on Mondays.")
    files_read: list[str] = []
    read = FileStore.read

    def counted(store: FileStore, path: str) -> Source:
        files_read.append(store.locate(path))
        return read(store, path)

    monkeypatch.setattr(FileStore, "read", counted)
    assert run("recall")[0] == 0
    assert run("memory", "read", "harbour.md")[0] == 0
    assert [path for path in files_read if "/docs/" in path] == []
    assert any(path.endswith("harbour.md") for path in files_read)
    assert run("search", "page")[0] == 0
    assert any("/docs/" in path for path in files_read)


def test_the_shell_is_told_what_comes_next() -> None:
    environ = {**os.environ, "COMP_WORDS": "ragdocs memory re", "COMP_CWORD": "2"}
    environ["_RAGDOCS_COMPLETE"] = "bash_complete"
    command = [sys.executable, "-P", "-m", "ragdocs"]
    output = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert [line.split(",")[1] for line in output.stdout.split()] == [
        "read",
        "restore",
        "rename",
        "review",
        "relink",
    ]
