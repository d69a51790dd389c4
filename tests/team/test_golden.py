"""A team database answers as the files of one person do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests import postgres
from tests.golden import answers, build, calls, files, lines
from tests.team.world import TeamWorld

from ragdocs import caller
from ragdocs.project.folders import user_name

# What must differ besides the addresses of texts and what is said about the lanes.
DIFFERENCES = {
    # Addresses are shorter than paths, which leaves more room for texts.
    "memory_search",
}
# What a file is called beside a row.
NAMES = (("<home>/data/ragdocs/repos/<key>/summaries.jsonl", "<project>/summaries.jsonl"),)
# The team has vectors that a machine without a model does not use.
VECTORS = (
    ("13 passages, 0 vectors", "13 passages, 13 vectors"),
    ("23 passages, 0 vectors", "23 passages, 23 vectors"),
    ('"chunks": 13,\n     "vectors": 0', '"chunks": 13,\n     "vectors": 13'),
    ('"chunks": 23,\n     "vectors": 0', '"chunks": 23,\n     "vectors": 23'),
)
REPLACED = {"words_only": VECTORS}
PUSHED = "the documentation of branch main, as it was pushed"


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, cluster: postgres.Cluster
) -> Iterator[TeamWorld]:
    base = tmp_path_factory.mktemp("team")
    world = TeamWorld(base, cluster)
    with caller.acting(caller.NOBODY):
        build.build(base, world)
    yield world
    world.leave()


def shared(name: str) -> bool:
    """Tell whether a scenario is about what a team shares: the journal and commits are git's."""
    return name not in DIFFERENCES and not name.startswith(("journal_", "search_commits"))


@pytest.mark.parametrize("name", [name for name in calls.SCENARIOS if shared(name)])
def test_a_tool_answers_as_it_does_from_files(world: TeamWorld, name: str) -> None:
    compare(answers.tool_answers(world, name), "tools", name)


# Commands that have nothing to do with what a team shares, or that are about the team itself.
APART = (
    "init", "install", "uninstall", "mcp", "clients", "completion", "journal", "commits", "ragdocs",
    "serve", "web", "token", "text", "team", "push", "check-config",
)  # fmt: skip
OTHER_COMMANDS = {
    # There is no file that an editor could open.
    "open",
    # Memories that came in with an import were written then, and by somebody.
    "memory timeline",
}
COMMANDS = [
    name for name in lines.SCENARIOS if not name.startswith(APART) and name not in OTHER_COMMANDS
]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_as_it_does_from_files(world: TeamWorld, name: str) -> None:
    compare(answers.command_answers(world, name), "commands", name.replace(" ", "-"))


def compare(answer: tuple[str, str], kind: str, name: str) -> None:
    """Compare what a team answers with what is answered from files."""
    structured, text = answer
    # A team knows who made a change, where files know only the program of an agent.
    structured = structured.replace(f'"author": "{user_name()}"', '"author": ""')
    text = text.replace(f", by {user_name()}", "")
    # It says what is followed, and which branch was pushed.
    structured = structured.replace('"watcher": "team"', '"watcher": "off"')
    structured = re.sub(rf',\s*"{PUSHED}"', "", structured)
    text = text.replace("file watcher: team", "file watcher: off")
    text = text.replace(f"   note: {PUSHED}\n", "")
    for given, file in ((structured, f"{name}.json"), (text, f"{name}.txt")):
        wanted = (files.ROOT / "answers" / kind / file).read_text(encoding="utf-8")
        for before, after in (*NAMES, *REPLACED.get(name, ())):
            wanted = wanted.replace(before, after)
        assert given.rstrip("\n").splitlines() == wanted.splitlines()
