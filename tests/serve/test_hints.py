"""What to do next is said in the words of whoever asks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ragdocs
from ragdocs.serve.surface import VERBS, catalog, hints

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


def test_a_title_becomes_a_tool_or_a_command() -> None:
    assert len(list(catalog.every())) > 40
    hint = "See it with <read a memory>"
    assert hints.addressed(hint, "tool") == "See it with read_memory"
    assert hints.addressed(hint, "command") == "See it with `ragdocs memory read`"


def test_a_verb_without_a_tool_is_named_by_its_command() -> None:
    assert hints.addressed("<copy a branch's memory>", "tool") == "`ragdocs repo copy`"


def test_a_command_names_verbs_that_it_has_not_imported() -> None:
    program = (
        "from ragdocs.serve.cli import app; from ragdocs.serve.surface.hints import addressed;"
        "app.build_for(['context']); print(addressed('<search memories>', 'command'))"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "`ragdocs memory search`\n"


def test_what_is_no_title_stays() -> None:
    assert hints.addressed("a <b> and <no such verb> <", "tool") == "a <b> and <no such verb> <"


def test_only_our_own_sentences_of_an_answer_are_changed() -> None:
    answer = {
        "content": "Somebody wrote <read a memory>.",
        "notes": ["Look with <read a memory>"],
        "result": [{"content": "<read a memory>", "warnings": ["<read a memory>"]}],
    }
    assert hints.in_answer(answer, "tool") == {
        "content": "Somebody wrote <read a memory>.",
        "notes": ["Look with read_memory"],
        "result": [{"content": "<read a memory>", "warnings": ["read_memory"]}],
    }


def test_a_pack_stays_within_its_size() -> None:
    text = "# Context\n- <read a memory>\n## Left out\n- 3 more; <read a memory>"
    spoken = "# Context\n- <read a memory>\n## Left out\n- 3 more; `ragdocs memory read`"
    assert hints.in_pack(text, "command", 1000) == spoken
    assert hints.in_pack(text, "command", len(text)) == text


def test_every_verb_that_a_sentence_names_is_declared() -> None:
    titles = {verb.title.casefold() for verb in catalog.every()}
    named = set()
    verbs = Path(ragdocs.__file__).parent / "verbs"
    # Elements of HTML look alike too, in what writes a page.
    for path in set(verbs.rglob("*.py")) - {verbs / "exchange" / "page.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                # A named group of a pattern looks alike.
                named.update(hints.REFERENCE.findall(node.value.replace("(?P<", "(")))
    assert {"read the journal", "read the repository's memory"} <= named <= titles


@pytest.mark.parametrize(
    ("tool", "arguments", "meant"),
    [
        ("edit_memory", {"filename": "a", "old_string": "x", "new_string": "y"}, ["find", "text"]),
        ("edit_memory", {"file_path": "a", "find": "x", "text": "y"}, ["filename"]),
        ("read_memory", {"path": "a"}, ["filename"]),
        ("read_memory", {"name": "a"}, ["filename"]),
        ("read_doc", {"file": "a"}, ["path"]),
        (
            "create_memory",
            {"name": "a", "text": "x", "tag": ["t"]},
            ["filename", "content", "tags"],
        ),
        (
            "create_memory",
            {"filename": "a", "content": "x", "tags": [], "type": "plan"},
            ["memory_type"],
        ),
        ("search_memories", {"question": "x", "tags": ["t"]}, ["query", "filter_tags"]),
        ("search_memories", {"query": "x", "top_k": 3}, ["limit"]),
        ("search_linked_memories", {"query": "x", "path": "src/a.py"}, ["target_document"]),
        ("search_docs", {"query": "x", "limt": 3}, ["limit"]),
    ],
)
def test_a_parameter_of_other_tools_is_answered_by_ours(
    connect: Connect, tool: str, arguments: dict[str, Any], meant: list[str]
) -> None:
    message = connect().error(tool, **arguments)
    suggestions = [part.split("?")[0] for part in message.split("Did you mean ")[1:]]
    assert suggestions == meant
    assert "It knows: " in message


def test_every_habit_leads_to_a_parameter_or_tool_that_exists() -> None:
    parameters = {param.name for verb in catalog.every() for param in verb.params}
    for names in hints.PARAMETER_HABITS.values():
        assert set(names) <= parameters
    for names in hints.TOOL_HABITS.values():
        assert set(names) <= VERBS.keys()
    tools = {verb.name for verb in catalog.every() if verb.tool}
    assert not hints.TOOL_HABITS.keys() & tools


@pytest.mark.parametrize(
    ("tool", "meant"),
    [
        ("store_memory", "remember"),
        ("get_memory", "read_memory"),
        ("search_memory", "search_memor"),
    ],
)
def test_a_tool_of_other_servers_is_answered_by_ours(
    connect: Connect, tool: str, meant: str
) -> None:
    assert f"Did you mean {meant}" in connect().error(tool)


@pytest.mark.parametrize(
    ("tool", "flags", "reason", "switch"),
    [
        (
            "memory_history",
            {},
            "the toolset edit is off",
            'toolsets = ["docs", "memory", "recall", "edit"] under [server]',
        ),
        (
            "remember",
            {"server.toolsets": ["docs"]},
            "the toolset recall is off",
            'toolsets = ["docs", "recall"] under [server]',
        ),
        ("recall", {"memory.enabled": False}, "the memory lane is switched off", "under [memory]"),
        (
            "memory_history",
            {"memory.enabled": False},
            "the memory lane is switched off for this project and the toolset edit is off",
            "under [server]",
        ),
        ("journal_read", {}, "the journal lane is switched off", "under [journal]"),
        ("search_commits", {}, "the commits lane is switched off", "commits = true under [docs]"),
        ("copy_repo_memory", {}, "is not a tool", "`ragdocs repo copy`"),
    ],
)
def test_a_tool_that_is_off_says_how_to_turn_it_on(
    connect: Connect, tool: str, flags: dict[str, Any], reason: str, switch: str
) -> None:
    message = connect(**flags).error(tool)
    assert reason in message
    assert switch in message


def test_every_tool_that_is_off_has_a_reason(connect: Connect) -> None:
    session = connect(**{"server.toolsets": ["docs"], "memory.enabled": False})
    offered = {tool.name for tool in session.tools()}
    for verb in catalog.every():
        if verb.name not in offered and verb.tool:
            message = session.error(verb.name)
            assert "To turn it on, " in message, verb.name
            assert "because ." not in message, verb.name


@pytest.mark.parametrize("tool", ["append_memory", "update_memory"])
def test_writing_to_a_name_that_does_not_exist_names_the_tool_that_creates(
    project: Project, connect: Connect, tool: str
) -> None:
    project.memory("plan.md", "text\n")
    session = connect()
    message = session.error(tool, filename="plam.md", content="x")
    assert message.endswith("Did you mean plan.md? create_memory writes a new one")
    message = session.error(tool, filename="zebra.md", content="x")
    assert message == "zebra.md does not exist. create_memory writes a new one"
