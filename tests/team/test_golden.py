"""A team database answers as the files of one person do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests import postgres
from tests.golden import answers, build, calls, files, lines
from tests.team.world import TeamWorld

from ragdocs.project.folders import user_name

# What must differ besides the addresses of texts.
DIFFERENCES = {
    # The scenario has no model, and vectors of another one are refused.
    "words_only",
    # They say what is followed, and which branch was pushed.
    "index_status",
    "lanes_off",
    # Addresses are shorter than paths, which leaves more room for texts.
    "memory_search",
}
# What a file is called beside a row.
NAMES = (("<home>/data/ragdocs/repos/<key>/summaries.jsonl", "<project>/summaries.jsonl"),)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamWorld]:
    if reason := postgres.unavailable():
        pytest.skip(reason)
    # Nothing of it outlives the tests, and a database is made for each of them.
    cluster = postgres.Cluster(fsync="off", full_page_writes="off")
    cluster.start()
    base = tmp_path_factory.mktemp("team")
    world = TeamWorld(base, cluster)
    build.build(base, world)
    yield world
    world.leave()
    cluster.remove()


def shared(name: str) -> bool:
    """Tell whether a scenario is about what a team shares: the journal and commits are git's."""
    return name not in DIFFERENCES and not name.startswith(("journal_", "search_commits"))


@pytest.mark.parametrize("name", [name for name in calls.SCENARIOS if shared(name)])
def test_a_tool_answers_as_it_does_from_files(world: TeamWorld, name: str) -> None:
    structured, text = answers.tool_answers(world, name)
    # A team knows who made a change, where files know only the program of an agent.
    structured = structured.replace(f'"author": "{user_name()}"', '"author": ""')
    text = text.replace(f", by {user_name()}", "")
    assert structured.rstrip("\n").splitlines() == expected(f"{name}.json").splitlines()
    assert text.rstrip("\n").splitlines() == expected(f"{name}.txt").splitlines()


# Commands that have nothing to do with what a team shares, or that are about the team itself.
APART = (
    "init", "install", "uninstall", "mcp", "clients", "completion", "journal", "commits", "ragdocs",
    "serve", "web", "token", "text", "team", "push", "check-config",
)  # fmt: skip
COMMANDS = [name for name in lines.SCENARIOS if not name.startswith(APART)]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_as_it_does_from_files(world: TeamWorld, name: str) -> None:
    structured, text = answers.command_answers(world, name)
    structured = structured.replace(f'"author": "{user_name()}"', '"author": ""')
    text = text.replace(f", by {user_name()}", "")
    file = name.replace(" ", "-")
    assert structured.rstrip("\n").splitlines() == expected(f"{file}.json", "commands").splitlines()
    assert text.rstrip("\n").splitlines() == expected(f"{file}.txt", "commands").splitlines()


def expected(name: str, kind: str = "tools") -> str:
    """Return what is answered from files, with the names of rows."""
    text = (files.ROOT / "answers" / kind / name).read_text(encoding="utf-8")
    for file, row in NAMES:
        text = text.replace(file, row)
    return text
