"""Every command that a page shows is run, in the order of the page, on a small project."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bench import _sample

from ragdocs.serve.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HERE_DOCUMENT = re.compile(r"^(.*<<'EOF'\n.*?^EOF)$", re.DOTALL | re.MULTILINE)
ASSIGNMENT = re.compile(r"([A-Z_]+)=(\S*)$")
# Commands that serve until they are stopped, or talk to another machine; other tests run them.
NOT_RUN = ("mcp", "serve", "web", "journal sync")
# What scripts on the pages have in variables.
VARIABLES = {"TASK": "revoke sessions", "RUN": "r1", "STEP": "s1"}
# Pages that show a memory's earlier texts by these names.
OLDER, NEWER = "3f2a9b8c", "77aa01bc"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass
class Step:
    """One line of a page: a command of ragdocs with its input, or something for the shell."""

    line: str
    words: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    shell: str = ""


def steps(page: Path) -> Iterator[Step]:
    """Return what a page tells its reader to type."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in HERE_DOCUMENT.split(block):
            if "<<'EOF'" in part:
                yield Step(part, shell=part)
                continue
            for line in part.splitlines():
                if "ragdocs " in line:
                    yield from commands(line.removeprefix("$ "))


def commands(line: str) -> Iterator[Step]:
    """Return the commands of ragdocs in a line, each with the file or the text that it reads."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    step = Step(line)
    read_next = ""
    for word in [*lexer, "&&"]:
        if word in ("|", "&&"):
            if step.words[:1] == ["ragdocs"]:
                yield step
            step = Step(line, stdin="a line from a pipe\n")
        elif word in ("<", ">"):
            read_next = word
        elif read_next:
            step.stdin = word if read_next == "<" else ""
            read_next = ""
        elif not step.words and (match := ASSIGNMENT.match(word)):
            step.environment[match[1]] = match[2]
        else:
            step.words.append(os.path.expandvars(word))


class Shell:
    """A shell in the project, whose ragdocs runs in this process."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.root = root
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        self.versions: dict[str, str] = {}

    def run(self, words: list[str], stdin: str = "") -> tuple[int, str, str]:
        """Run a command of ragdocs; the words do not have its name."""
        text = stdin
        if stdin and (self.root / stdin).is_file():
            text = (self.root / stdin).read_text(encoding="utf-8")
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        code = app.main(words)
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def follow(self, step: Step) -> None:
        """Do what a line of a page says; it must succeed."""
        if step.shell:
            subprocess.run(["bash", "-ec", step.shell], cwd=self.root, check=True)
            return
        words = [self.versions.get(word, word) for word in step.words[1:]]
        if " ".join(words).startswith(NOT_RUN):
            return
        with self.monkeypatch.context() as context:
            for variable, value in step.environment.items():
                context.setenv(variable, value)
            code, out, error = self.run(words, step.stdin)
        assert code == 0, f"{step.line}\n{out}{error}"

    def change(self, memory: str) -> None:
        """Give a memory two earlier texts, which pages call by names that they made up."""
        for content in ("One", "Two"):
            self.run(["memory", "append", memory, "--content", content])
        _, out, _ = self.run(["memory", "log", memory, "--json"])
        newer, older = [revision["version"] for revision in json.loads(out)["result"]]
        self.versions = {OLDER: older, NEWER: newer}


@pytest.mark.parametrize("page", [page for page in PAGES if any(steps(page))], ids=name)
def test_the_commands_of_a_page_succeed(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    shown = list(steps(page))
    root = _sample.write(tmp_path / "harbour")
    if any(step.words[1:2] in (["team"], ["push"]) for step in shown):
        monkeypatch.setenv("RAGDOCS_DATABASE", request.getfixturevalue("team_address"))
        monkeypatch.setenv("RAGDOCS_TEAM_PROJECTS", f"{root}=harbour")
    if any("memory create plan.md" in step.line for step in shown):
        (root / ".memories/plan.md").unlink()
    (root / "path/to/clone").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("RAGDOCS_EMBEDDING_MODEL", "hash")
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = Shell(root, monkeypatch, capsys)
    if any("auth-plan.md" in step.words for step in shown):
        shell.change("auth-plan.md")
    for step in shown:
        shell.follow(step)
