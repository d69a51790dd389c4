"""Every argument has a bound.

One table, for all tools, commands, prompts, resources and completions.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import pytest
from mcp import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from ragdocs.config import MORE_TOOLSETS, TOOLSETS
from ragdocs.errors import ValidationError
from ragdocs.serve.cli import app as cli
from ragdocs.serve.surface import bounds, catalog
from ragdocs.serve.surface import layouts as answers
from ragdocs.text.checks import LONGEST_TEXT
from ragdocs.verbs.context import pack, repo
from ragdocs.verbs.memories.find import spellings

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

# Generous: the issue asks for 50 ms, and the check itself takes less than one.
SECONDS = 0.5
MARKED = "needle-that-is-never-echoed"


@pytest.fixture
def session(project: Project, connect: Connect) -> Session:
    project.memory("note.md", "A note about [[src/auth.py]].")
    every = connect(
        **{
            "server.toolsets": ",".join((*TOOLSETS, *MORE_TOOLSETS)),
            "docs.commits": "true",
            "memory.enabled": "true",
            "journal.enabled": "true",
        }
    )
    every.call("index_status")
    return every


def parameters(session: Session) -> Iterator[tuple[str, str, bounds.Bound | None, dict[str, Any]]]:
    """List every parameter of every tool with its bound and its schema."""
    for tool in session.tools():
        for name, schema in tool.input_schema["properties"].items():
            yield tool.name, name, bounds.of_tool(tool.name, name), schema


def oversized(bound: bounds.Bound) -> list[Any]:
    """Return values that are larger than a bound in each way they can be."""
    if bound.is_table:
        deep: Any = MARKED
        for _ in range(5000):
            deep = {"a": deep}
        many = {f"{MARKED}{number}": "x" for number in range(100_000)}
        large = MARKED * 1_000_000
        nested = {"a": [MARKED] * 100_000}
        return [many, {"a": large}, {large: "a"}, nested, {"a": deep}, json.dumps(many)]
    if bound.most:
        items = [MARKED] * 100_000
        return [items, [MARKED * 400_000], json.dumps(items), MARKED * 400_000]
    return [MARKED * 400_000]


def filling(bound: bounds.Bound, more: int = 0) -> Any:
    """Return a value that fills a bound, or goes beyond it by so many items or characters."""
    if bound.is_table:
        return {str(number): [MARKED] for number in range(bound.most + more)}
    if bound.most:
        item = MARKED if more else "x" * bound.longest
        return [item] * (bound.most + more)
    return MARKED.ljust(bound.longest + more, "x")


def test_every_text_list_and_table_of_every_tool_has_a_bound(session: Session) -> None:
    listed = set()
    for tool, name, bound, schema in parameters(session):
        listed.add((tool, name))
        types = {option.get("type") for option in schema.get("anyOf", [schema])}
        bounded = {"string", "array", "object"} & types
        assert bound or not bounded, f"{tool}.{name} has no bound: name it in serve/bounds.py"
        if bound and bounded:
            assert bool(bound.most) == bool({"array", "object"} & bounded), f"{tool}.{name}"
            assert bound.is_table == ("object" in bounded), f"{tool}.{name}"
    # No bound is left without a parameter, but for the prompt's own argument.
    assert set(bounds.OF_TOOL) <= listed
    names = {name for _, name in listed}
    for declared in catalog.every():
        for param in declared.params:
            if declared.page or param.arg.only == "people":
                names.add(param.name)
    assert bounds.PARAMETERS.keys() - names == {"topic"}


def test_what_is_too_large_is_refused_at_once_with_its_name_its_limit_and_its_size(
    session: Session,
) -> None:
    count = 0
    for tool, name, bound, _ in parameters(session):
        for value in oversized(bound) if bound else ():
            started = time.process_time()
            with pytest.raises(ValidationError) as refused:
                bounds.check_arguments(tool, {name: value})
            assert time.process_time() - started < SECONDS
            message = str(refused.value)
            assert message.startswith(name)
            assert MARKED not in message
            assert len(message) < 200
            count += 1
    assert count > 100


def test_a_client_gets_the_refusal_from_every_tool_for_one_more_than_the_bound(
    session: Session,
) -> None:
    for tool, name, bound, _ in parameters(session):
        if bound:
            bounds.check(name, filling(bound), bound)
            message = session.error(tool, **{name: filling(bound, 1)})
            assert message.startswith(f"{name} "), f"{tool}: {message}"
            assert "more than" in message or "longer than" in message
            assert MARKED not in message


def test_names_are_measured_in_bytes() -> None:
    bounds.check("path", "ä" * 500, bounds.NAME)
    with pytest.raises(ValidationError, match="1,002"):
        bounds.check("path", "ä" * 501, bounds.NAME)
    bounds.check("path", "\ud800" * 10, bounds.NAME)


def test_no_bound_is_tighter_than_what_a_verb_takes() -> None:
    assert bounds.TEXT.longest == LONGEST_TEXT
    assert bounds.PATHS.most >= max(repo.MOST_PATHS, pack.MOST_FILES)
    assert bounds.TAGS.most >= answers.MOST_TAGS


def test_the_name_of_a_tool_or_a_parameter_may_be_anything(session: Session) -> None:
    assert "name of the tool is longer than 200" in session.error("x" * 1_000_000)
    message = session.error("get_memory_stats", **{"x" * 1_000_000: 1})
    assert "has no parameter" in message
    assert len(message) < 300


# --- requests of the protocol ---


LARGE = MARKED * 100_000
DOCS_TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="ragdocs://docs/{+path}")
NO_PROMPT = PromptReference(type="ref/prompt", name=LARGE)


@pytest.mark.parametrize(
    ("name", "method", "arguments"),
    [
        ("uri", "read_resource", [f"ragdocs://docs/{LARGE}"]),
        ("task", "get_prompt", ["start_with_context", {"task": LARGE}]),
        ("files", "get_prompt", ["start_with_context", {"files": LARGE}]),
        ("topic", "get_prompt", ["write_session_journal", {"topic": LARGE}]),
        ("unknown", "get_prompt", ["write_session_journal", {"unknown": LARGE}]),
        ("name", "get_prompt", [LARGE, {}]),
        ("value", "complete", [DOCS_TEMPLATE, {"name": "path", "value": LARGE}]),
        ("name", "complete", [DOCS_TEMPLATE, {"name": LARGE, "value": "a"}]),
        ("name", "complete", [NO_PROMPT, {"name": "a", "value": "a"}]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_resources_prompts_and_completions_are_bounded_too(
    session: Session, name: str, method: str, arguments: list[Any]
) -> None:
    with pytest.raises(MCPError) as refused:
        session.ask(method, *arguments)
    message = refused.value.message
    assert message.startswith(f"{name} is longer than"), message
    assert MARKED not in message


# --- commands ---


def params_of(command: click.Command) -> list[click.Parameter]:
    if not isinstance(command, click.Group):
        return list(command.params)
    params: list[click.Parameter] = []
    for child in command.commands.values():
        params += params_of(child)
    return params


TAGS = ["--content", "x", *(["--tag", "a"] * 101)]


def test_every_option_of_every_command_has_a_bound() -> None:
    for param in params_of(cli.build()):
        if isinstance(param.type, click.types.StringParamType | click.Path):
            assert bounds.of_option(str(param.name)), f"{param.name} has no bound"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["memory", "linked", "a/" * 600],
            "target_document is longer than 1,000 bytes: it has 1,200",
        ),
        (["memory", "create", "a.md", *TAGS], "tags has more than 100 items: it has 101"),
        (
            ["search", "--lane", "docs", *(["word"] * 5000)],
            "query is longer than 20,000 characters",
        ),
        (["memory", "read", "a" * 1001], "filename is longer than 1,000 bytes"),
        (["memory", "create", "a.md", "--file", "large"], "longer than 1,000,000 characters"),
        (["memory", "create", "a.md"], "standard input is longer than 1,000,000 characters"),
        (["remember"], "standard input is longer than 1,000,000 characters"),
    ],
    ids=["path", "tags", "query", "filename", "file", "standard input", "remembered input"],
)
def test_a_command_refuses_what_a_tool_refuses(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(project.root)
    project.write("large", "x" * 1_000_001)
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * 3_000_000))
    settings = ["--set", "embedding.model=none", "--set", "memory.enabled=true"]
    assert cli.main([*words, "--project", str(project.root), *settings]) == 1
    assert message in capsys.readouterr().err
    assert not (project.root / ".memories" / "a.md").exists()


# --- below the bounds ---


def test_the_folders_of_a_name_cost_no_more_than_its_length() -> None:
    def characters(depth: int) -> int:
        return sum(map(len, spellings("a/" * depth)))

    assert characters(60_000) < 2 * characters(30_000) + 1_000_000
    assert spellings("src/net/retry.py")[2:] == ("src/net/retry.py/*", "src/net/*", "src/*")
    assert spellings("/src/net")[2:] == ("/src/net/*", "/src/*")
    longest = spellings("a/" * 60_000)
    assert "a/*" in longest
    assert max(map(len, longest[2:])) <= 1_002
    assert spellings("a" * 5_000)[2:] == ()
