"""Documented tools == registered tools == tested tools, parameter by parameter.

What a client pays to list them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from ragdocs.config import MORE_TOOLSETS, TOOLSETS
from ragdocs.serve import reference

if TYPE_CHECKING:
    from tests.serve.conftest import Connect, Session

REPOSITORY = Path(__file__).parent.parent.parent
GOLDEN = REPOSITORY / "tests/golden"

# Names, order, types and defaults as the main document has them; what ragdocs adds comes after and
# is optional.
DOCUMENTED: dict[str, dict[str, str]] = {
    "create_memory": {
        "filename": "string",
        "content": "string",
        "tags": "array",
        "memory_type": 'string = "journal"',
    },
    "read_memory": {"filename": "string"},
    "update_memory": {"filename": "string", "content": "string"},
    "append_memory": {"filename": "string", "content": "string"},
    "delete_memory": {"filename": "string"},
    "search_memories": {
        "query": "string",
        "limit": "integer = 5",
        "filter_tags": "array = null",
        "filter_type": "string = null",
    },
    "search_linked_memories": {
        "query": "string",
        "target_document": "string",
        "limit": "integer = 5",
    },
    "get_memory_stats": {},
    "merge_memories": {
        "source_files": "array",
        "target_file": "string",
        "summary_content": "string",
    },
    "suggest_memory_merges": {
        "threshold": "number = 0.85",
        "limit": "integer = 5",
        "filter_type": 'string = "journal"',
    },
}
# The same of the document about remembering and recalling.
REMEMBERING: dict[str, dict[str, str]] = {
    "remember": {"content": "string", "tags": "array = null"},
    "recall": {
        "query": "string = null",
        "tags": "array = null",
        "since": "string = null",
        "limit": "integer = 10",
        "scope": 'string = "project"',
    },
}
BEYOND = {"search_docs", "read_doc", "index_status"}
PARTIAL = "edit_memory"


def listed(session: Session) -> list[dict[str, Any]]:
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in session.tools()]


def signature(schema: dict[str, Any]) -> dict[str, str]:
    """Write the parameters of a tool as the table above does."""
    result = {}
    for name, parameter in schema["properties"].items():
        kinds = [
            option["type"]
            for option in parameter.get("anyOf", [parameter])
            if option["type"] != "null"
        ]
        default = (
            "" if name in schema.get("required", []) else f" = {json.dumps(parameter['default'])}"
        )
        result[name] = f"{'|'.join(kinds)}{default}"
    return result


def test_the_tools_of_the_main_document_are_registered_with_its_parameters(
    connect: Connect,
) -> None:
    tools = {tool["name"]: signature(tool["inputSchema"]) for tool in listed(connect())}
    assert tools.keys() == DOCUMENTED.keys() | REMEMBERING.keys() | BEYOND | {PARTIAL}
    for name, parameters in (DOCUMENTED | REMEMBERING).items():
        ours = tools[name]
        assert dict(list(ours.items())[: len(parameters)]) == parameters, name
        assert all("=" in ours[added] for added in list(ours)[len(parameters) :]), (
            f"{name}: additions are optional"
        )


def test_the_pages_show_what_the_code_does() -> None:
    assert reference.outdated(REPOSITORY) == []


def test_page_readme_and_server_name_the_same_tools(connect: Connect) -> None:
    names = [tool["name"] for tool in listed(connect())]
    every = [
        tool["name"]
        for tool in listed(
            connect(**{"server.toolsets": [*TOOLSETS, *MORE_TOOLSETS], "docs.commits": True})
        )
    ]
    page = (REPOSITORY / "docs/tools.md").read_text(encoding="utf-8")
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == every
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    mentioned = set(
        re.findall(r"`((?:\w+_)+(?:docs?|memory|memories|stats|merges|status))`", readme)
    )
    assert mentioned <= set(every)
    assert set(names) <= set(re.findall(r"`(\w+)`", readme))


def test_toolsets_choose_what_is_listed(connect: Connect) -> None:
    docs = [tool["name"] for tool in listed(connect(**{"server.toolsets": ["docs"]}))]
    memory = [tool["name"] for tool in listed(connect(**{"server.toolsets": ["memory"]}))]
    recall = [tool["name"] for tool in listed(connect(**{"server.toolsets": ["recall"]}))]
    assert set(docs) == BEYOND
    assert docs + memory + recall == [tool["name"] for tool in listed(connect())]
    assert set(memory) == DOCUMENTED.keys() | {PARTIAL}
    assert recall == list(REMEMBERING)


def test_the_order_is_the_same_every_time_and_in_both_eras(connect: Connect) -> None:
    first, again, legacy = (listed(connect(mode)) for mode in ("auto", "auto", "legacy"))
    assert json.dumps(first) == json.dumps(again)
    assert [tool["name"] for tool in first] == [tool["name"] for tool in legacy]


def test_listing_the_tools_is_cheap(connect: Connect) -> None:
    session = connect()
    tools = listed(session)
    for tool in tools:
        assert 40 < len(tool["description"]) < 700, tool["name"]
        assert "title" not in tool["inputSchema"]
        assert not any(
            "title" in parameter for parameter in tool["inputSchema"]["properties"].values()
        )
        assert tool["inputSchema"]["additionalProperties"] is False
        tool.pop("outputSchema")
    # 9,500 for the two lanes; remember and recall must say when to call them, or no agent does so
    # unasked; edit_memory costs 1,400 and saves a rewritten file with every use. Descriptions of
    # the parameters cost 2,400 and save as much of the tools' own as they repeat: 400.
    assert len(json.dumps(tools, ensure_ascii=False)) < 14_700
    assert 200 < len(session.instructions) < 2000


def test_every_parameter_of_every_tool_is_described_in_a_few_words(connect: Connect) -> None:
    tools = listed(
        connect(**{"server.toolsets": [*TOOLSETS, *MORE_TOOLSETS], "docs.commits": True})
    )
    described = set()
    for tool in tools:
        for name, schema in tool["inputSchema"]["properties"].items():
            about = schema.get("description", "")
            assert 0 < len(about.split()) <= 8, (tool["name"], name, about)
            described |= {name, (tool["name"], name)}
    assert len(described) > 150


def test_instructions_and_descriptions_name_only_tools_that_exist(connect: Connect) -> None:
    session = connect()
    tools = listed(session)
    names = {tool["name"] for tool in tools}
    pattern = re.compile(
        r"\b(?:search|read|create|update|append|delete|merge|suggest|get|index)_\w+"
    )
    for text in (session.instructions, *(tool["description"] for tool in tools)):
        assert set(pattern.findall(text)) <= names


def test_examples_in_descriptions_are_valid_arguments(connect: Connect) -> None:
    seen = 0
    for tool in listed(connect()):
        validator = Draft202012Validator(tool["inputSchema"])
        start = 0
        while (start := tool["description"].find('{"', start)) >= 0:
            example, start = json.JSONDecoder().raw_decode(tool["description"], start)
            validator.validate(example)
            seen += 1
    assert seen >= 7


def recorded() -> dict[str, list[Any]]:
    """Return the structured answers of every tool that the golden files hold."""
    answers: dict[str, list[Any]] = {}
    for path in sorted((GOLDEN / "answers/tools").glob("*.json")):
        for record in json.loads(path.read_text(encoding="utf-8")):
            tool = record["call"].split()[0]
            answers.setdefault(tool, []).append(record["answer"])
    return answers


def test_every_recorded_answer_of_every_tool_has_the_declared_shape() -> None:
    tools = json.loads((GOLDEN / "tools.json").read_text(encoding="utf-8"))["tools"]
    answers = recorded()
    # tests/test_golden.py sees to it that every tool has a scenario.
    assert len(answers) > 30
    for tool in tools:
        schema = tool["outputSchema"]
        Draft202012Validator.check_schema(schema)
        for answer in answers.get(tool["name"], ()):
            Draft202012Validator(schema).validate(answer)
            assert answer.keys() <= schema["properties"].keys(), tool["name"]
