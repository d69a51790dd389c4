"""The pages for people: their commands parse, their links and paths lead somewhere, they begin well."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ragdocs
from ragdocs.serve.cli.app import build

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
COMMANDS = build()
# Ways to write several commands, or any of a group.
ANY = {"…", "..."}
FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"(?:src/ragdocs|tests|bench)/[\w/.-]*\w")
TASK = re.compile(r"\b(test|bench) ((?:tests/)?[\w/.]+)")
LONGEST = {"README.md": 150, "CONTRIBUTING.md": 60}
# A reader sees what to type without scrolling.
FIRST_COMMAND = 26


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


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


@pytest.mark.parametrize("page", PAGES, ids=name)
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


@pytest.mark.parametrize("page", PAGES, ids=name)
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


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    prose = INLINE.sub("", FENCE.sub("", text_of(page)))
    for target in LINK.findall(prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_of_the_repository_that_a_page_names_exist(page: Path) -> None:
    for path in PATH.findall(text_of(page)):
        assert (ROOT / path).exists(), f"{name(page)}: {path}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_tests_and_benchmarks_that_a_page_runs_exist(page: Path) -> None:
    code = [block for _, language, block in FENCE.findall(text_of(page)) if language == "sh"]
    code += INLINE.findall(text_of(page))
    for task, target in TASK.findall("\n".join(code)):
        if task == "bench":
            assert (ROOT / "bench" / f"{target}.py").exists(), f"{name(page)}: bench {target}"
        elif target.startswith("tests/"):
            assert (ROOT / target).exists(), f"{name(page)}: test {target}"


@pytest.mark.parametrize("page", DOCS, ids=name)
def test_a_page_begins_with_something_to_type(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    assert fences, name(page)
    assert fences[0] < FIRST_COMMAND, f"{name(page)} begins its first block in line {fences[0] + 1}"


@pytest.mark.parametrize("page", LONGEST)
def test_pages_that_everybody_reads_are_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= LONGEST[page]


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == ragdocs.__version__
