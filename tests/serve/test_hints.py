"""What to do next is said in the words of whoever asks."""

from __future__ import annotations

import ast
from pathlib import Path

import ragdocs
from ragdocs.serve.surface import catalog, hints


def test_a_title_becomes_a_tool_or_a_command() -> None:
    assert len(list(catalog.every())) > 40
    hint = "See it with <read a memory>"
    assert hints.addressed(hint, "tool") == "See it with read_memory"
    assert hints.addressed(hint, "command") == "See it with `ragdocs memory read`"


def test_a_verb_without_a_tool_is_named_by_its_command() -> None:
    assert hints.addressed("<copy a branch's memory>", "tool") == "`ragdocs repo copy`"


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
    for path in Path(ragdocs.__file__).parent.joinpath("verbs").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                # A named group of a pattern looks alike.
                named.update(hints.REFERENCE.findall(node.value.replace("(?P<", "(")))
    assert {"read the journal", "read the repository's memory"} <= named <= titles
