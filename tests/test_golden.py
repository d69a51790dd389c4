"""What users and models see is as it was accepted.

See `tests/golden/files.py` for how to accept a change.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.golden import answers, bigger, build, calls, files, hits, lines, rims, surface
from tests.golden.normal import pretty
from tests.golden.world import World

from ragdocs.serve.surface.clients import CLIENTS

# Other processors add the products of vectors in another order.
SAME = 1e-6
# The model computes with small integers, which some processors do in another way.
SAME_MODEL = 2e-3


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build.build(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def bigger_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return bigger.build(tmp_path_factory.mktemp("bigger"))


@pytest.fixture(autouse=True)
def alone() -> None:
    """Forget the windows that other tests had in this process; a golden call is of a client."""
    for session, client in list(CLIENTS._clients.items()):
        if client.program != "mcp":
            del CLIENTS._clients[session]


def test_tools_prompts_and_resources_are_described_as_before(world: World) -> None:
    files.check("tools.json", pretty(surface.tools(world)))


def test_commands_and_options_are_described_as_before() -> None:
    files.check("commands.json", pretty(surface.commands()))


@pytest.mark.parametrize("name", calls.SCENARIOS)
def test_a_tool_answers_as_before(world: World, name: str) -> None:
    structured, text = answers.tool_answers(world, name)
    files.check(f"answers/tools/{name}.json", structured)
    files.check(f"answers/tools/{name}.txt", text)


@pytest.mark.parametrize("name", lines.SCENARIOS)
def test_a_command_answers_as_before(world: World, name: str) -> None:
    structured, text = answers.command_answers(world, name)
    file = name.replace(" ", "-")
    files.check(f"answers/commands/{file}.json", structured)
    files.check(f"answers/commands/{file}.txt", text)


@pytest.mark.parametrize("model", ["hash", "none"])
def test_searches_find_the_same_with_the_same_signals(bigger_world: World, model: str) -> None:
    found = hits.record(bigger_world, model, hits.QUERIES, digits=9)
    name = {"hash": "hits.json", "none": "hits-words.json"}[model]
    files.check(name, pretty(found), tolerance=SAME)


def test_searches_by_the_built_in_model_find_the_same(tmp_path: Path) -> None:
    small = bigger.build(tmp_path, bigger.Size(documents=30, memories=30, entries=0, commits=1))
    found = hits.record(small, "all-MiniLM-L6-v2", hits.MEANING, digits=4)
    files.check("hits-model.json", pretty(found), tolerance=SAME_MODEL)


def test_every_tool_and_every_command_has_a_scenario(world: World) -> None:
    world.restore()
    with world.entered("names"), rims.connect(world.project, {}) as connection:
        tools = {tool["name"] for tool in connection.lists()["tools"]}
    assert tools == set(calls.TOOLS), (
        "add calls to tests/golden/calls.py, or remove those of a tool that is gone"
    )
    assert surface.leaves() == set(lines.COMMANDS), (
        "add lines to tests/golden/lines.py, or remove those that are gone"
    )


def test_no_golden_file_is_left_without_a_scenario() -> None:
    commands = {name.replace(" ", "-") for name in lines.SCENARIOS}
    assert files.without("answers/tools", set(calls.SCENARIOS)) == []
    assert files.without("answers/commands", commands) == []


def test_golden_files_are_small_and_name_no_folder_of_a_machine() -> None:
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted(files.ROOT.rglob("*"))
        if path.suffix in {".json", ".txt"}
    ]
    assert sum(map(len, texts)) < 1_200_000
    folders = (
        "xxxxxxxx",
        str(Path.home()),
        str(files.ROOT.parent.parent),
        sys.prefix,
        tempfile.gettempdir(),
    )
    for folder in folders:
        assert not any(f"{folder}/" in text for text in texts), folder


@pytest.mark.parametrize(
    "change",
    [
        lambda value: [*value, 1],
        lambda value: value[:-1],
        lambda value: [value[0] * 1.01, *value[1:]],
        lambda value: [value[0], "other", value[2]],
        lambda value: [value[0], value[1], {**value[2], "more": None}],
    ],
)
def test_a_tolerance_forgives_last_digits_only(
    change: Callable[[Sequence[object]], object],
) -> None:
    value: list[object] = [0.123456789, "text", {"key": 3}]
    assert files.near(value, [0.123456788, "text", {"key": 3}], SAME)
    assert not files.near(value, change(value), SAME)
