"""The pages for people: their commands parse, their links and paths lead somewhere, they begin well."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from bench import _pictures
from tests.asking import ask

import ragdocs
from ragdocs import config
from ragdocs.serve.cli.app import build
from ragdocs.workspace import Workspace

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
COMMANDS = build()
# Ways to write several commands, or any of a group.
ANY = {"…", "..."}
FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"(?:src/ragdocs|tests|bench)/[\w/.-]*\w")
BENCH = re.compile(r"\bbench ([\w/.]+)")
# How a client starts the server, whatever the form of its configuration.
ARGUMENTS = ["-E", "-P", "-m", "ragdocs", "mcp", "--project"]
LONGEST = {"README.md": 150, "CONTRIBUTING.md": 60}
# A reader sees what to type without scrolling.
FIRST_COMMAND = 26


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


of_every_page = pytest.mark.parametrize("page", PAGES, ids=name)


def text_of(page: Path) -> str:
    """Return a page without what a program printed into it."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


def shell_lines(page: Path) -> Iterator[str]:
    """Return the lines of a page's shell blocks that start ragdocs, from its name on."""
    for _, language, block in FENCE.findall(text_of(page)):
        if language not in ("sh", "console"):
            continue
        for line in block.splitlines():
            for part in re.split(r"\||&&", line):
                words = part.strip().removeprefix("$ ")
                words = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", words)
                if words.startswith("ragdocs "):
                    yield words


def inline_commands(page: Path) -> Iterator[list[str]]:
    """Return the commands that a page names in its sentences and tables."""
    prose = FENCE.sub("", text_of(page)).replace(r"\|", "|")
    for code in INLINE.findall(prose):
        words = code.split()
        if words[0] == "ragdocs" and len(words) > 1 and not words[1].startswith("-"):
            yield words[1:]


def find(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words begin with, and the words after it."""
    command: click.Command = COMMANDS
    rest = list(words)
    while isinstance(command, click.Group) and rest:
        assert rest[0] in command.commands, f"there is no command {' '.join(words)!r}"
        command = command.commands[rest.pop(0)]
    return command, rest


@of_every_page
def test_every_command_in_a_block_can_be_typed(page: Path) -> None:
    for line in shell_lines(page):
        words = shlex.split(line, comments=True)
        if "<" in words:
            words = words[: words.index("<")]
        command, rest = find(words[1:])
        assert not isinstance(command, click.Group), line
        try:
            command.make_context(line, rest)
        except click.ClickException as error:
            pytest.fail(f"{name(page)}: {line}: {error.format_message()}")


@of_every_page
def test_every_command_in_a_sentence_exists(page: Path) -> None:
    for words in inline_commands(page):
        group: click.Command = COMMANDS
        for word in words:
            if not isinstance(group, click.Group) or word in ANY:
                break
            for choice in word.split("|"):
                assert choice in group.commands, f"{name(page)}: ragdocs {' '.join(words)}"
            group = group.commands[word.split("|")[0]]


def anchors(page: Path) -> set[str]:
    """Return the names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@of_every_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    prose = INLINE.sub("", FENCE.sub("", text_of(page)))
    for target in LINK.findall(prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)}: {target}"


@of_every_page
def test_files_tests_and_benchmarks_that_a_page_names_exist(page: Path) -> None:
    text = text_of(page)
    paths = set(PATH.findall(text))
    code = [block for _, language, block in FENCE.findall(text) if language == "sh"]
    for bench in BENCH.findall("\n".join([*code, *INLINE.findall(text)])):
        paths.add(f"bench/{bench}.py")
    for path in paths:
        assert (ROOT / path).exists(), f"{name(page)}: {path}"


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_a_page_begins_with_something_to_type(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    assert fences, name(page)
    assert fences[0] < FIRST_COMMAND, f"{name(page)} begins its first block in line {fences[0] + 1}"


@of_every_page
def test_blocks_of_data_can_be_read(page: Path) -> None:
    readers = {"json": json.loads, "toml": tomllib.loads}
    for _, language, block in FENCE.findall(text_of(page)):
        if language in readers:
            readers[language](block)


def server_in(value: Any) -> Any:
    """Return the innermost object named ragdocs in a client's configuration."""
    if "ragdocs" in value:
        return value["ragdocs"]
    return next(server_in(inner) for inner in value.values() if isinstance(inner, dict))


def test_every_client_gets_a_command_that_starts_the_server() -> None:
    text = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
    servers = []
    for _, language, block in FENCE.findall(text):
        if language in ("json", "toml"):
            servers.append(server_in((json if language == "json" else tomllib).loads(block)))
    local = [server for server in servers if "command" in server]
    assert len(local) == len(re.findall(r"^## ", text, re.MULTILINE)) - 1
    for server in servers:
        if server not in local:
            # A token of its own in a file would be committed with it.
            assert server["url"].endswith("/mcp")
            assert "RAGDOCS_TOKEN" in json.dumps(server)
            continue
        words = server["command"]
        if isinstance(words, str):
            words = [words, *server["args"]]
        assert words[0] == "/path/to/python"
        assert words[1:-1] == ARGUMENTS


def test_the_question_of_the_readme_finds_its_page_and_lint_finds_nothing() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (question,) = re.findall(r"ask your agent: \*\"(.+?)\"\*", readme)
    # Words alone: encoding all pages would take longer than all other tests of this module.
    workspace = Workspace(config.load(ROOT, project=ROOT, flags={"embedding.model": "none"}))
    workspace.sync()
    hits = ask(workspace, "search_docs", query=question)["result"]
    assert hits[0]["path"] == "docs/editing.md"
    assert ask(workspace, "lint_texts")["result"] == []


def test_pictures_show_the_commands_that_draw_them() -> None:
    for picture, commands in _pictures.PICTURES.items():
        drawing = ET.parse(_pictures.FOLDER / f"{picture}.svg")
        drawn = " ".join(text for text in drawing.getroot().itertext() if text.strip())
        for command in commands:
            assert command in drawn


@pytest.mark.parametrize("page", LONGEST)
def test_pages_that_everybody_reads_are_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= LONGEST[page]


def test_the_readme_names_every_page_once() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Documentation")[2]
    links = [link for link in LINK.findall(table) if link.startswith("docs/")]
    assert sorted(links) == sorted(name(page) for page in DOCS)


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == ragdocs.__version__
