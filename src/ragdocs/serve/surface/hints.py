"""What to do next, in the words of whoever asks: a tool to an agent, a command to a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from ragdocs.serve.surface import VERBS
from ragdocs.system.patterns import later

Rim = Literal["tool", "command"]

# Verbs write the title of another verb between angle brackets: "See it with <read a memory>".
REFERENCE = later(r"<([a-z][a-z' ]{2,60})>")


# Fields of answers that hold our own sentences; what others wrote is never changed.
OWN_FIELDS = frozenset(
    {"notes", "warnings", "omitted", "message", "reason", "hint", "instructions"}
)
LEFT_OUT = "\n## Left out"
# Import the declarations of all verbs, where a rim begins with those that it needs itself.
DECLARING: list[Callable[[], object]] = []
# Names that agents bring along from other tools, and the parameters that are like them.
PARAMETER_HABITS = {
    "body": ("content", "text", "summary_content"),
    "count": ("limit",),
    "document": ("target_document", "path", "filename"),
    "file": ("filename", "target_document", "path", "files"),
    "file_path": ("filename", "target_document", "path"),
    "id": ("filename",),
    "key": ("filename",),
    "kind": ("memory_type", "filter_type"),
    "labels": ("tags", "filter_tags"),
    "max_results": ("limit",),
    "memory": ("filename", "content"),
    "memory_id": ("filename",),
    "message": ("content",),
    "name": ("filename", "title"),
    "new_str": ("text",),
    "new_string": ("text",),
    "new_text": ("text", "content"),
    "note": ("content",),
    "old_str": ("find",),
    "old_string": ("find",),
    "old_text": ("find",),
    "path": ("filename", "target_document", "files"),
    "prompt": ("query", "task"),
    "question": ("query", "task"),
    "replace_all": ("mode",),
    "replacement": ("text",),
    "search": ("query", "find"),
    "sources": ("source_files",),
    "tag": ("tags", "filter_tags"),
    "tags": ("filter_tags",),
    "target": ("target_document", "target_file"),
    "text": ("content", "query"),
    "top_k": ("limit",),
    "type": ("memory_type", "filter_type"),
    "version": ("expected_version",),
}
# Tools that other servers have, and the ones that are like them.
TOOL_HABITS = {
    "add_memory": ("remember", "create_memory"),
    "get_context": ("build_context",),
    "get_memory": ("read_memory",),
    "list_memories": ("recall", "get_memory_stats"),
    "read_graph": ("recall",),
    "retrieve_memory": ("search_memories",),
    "save_memory": ("remember", "create_memory"),
    "search_nodes": ("search_memories",),
    "store_memory": ("remember", "create_memory"),
    "write_memory": ("create_memory",),
}


def addressed(text: str, rim: Rim) -> str:
    """Replace the titles of verbs in a text by the names that a rim has for them."""
    titles = set(REFERENCE.findall(text))
    if not titles:
        return text
    names = _names(rim)
    if not titles <= names.keys():
        for declare in DECLARING:
            declare()
        names = _names(rim)

    def name(match: re.Match[str]) -> str:
        return names.get(match[1], match[0])

    return REFERENCE.sub(name, text)


def _names(rim: Rim) -> dict[str, str]:
    """Map the titles of verbs to their names; one without a tool has only its command."""
    names = {}
    for verb in VERBS.values():
        name = f"`ragdocs {verb.command}`"
        if rim == "tool" and verb.tool:
            name = verb.name
        names[verb.title.casefold()] = name
    return names


def in_answer(answer: Any, rim: Rim) -> Any:
    """Return an answer whose own sentences speak to whoever asks."""
    if isinstance(answer, list):
        return [in_answer(item, rim) for item in answer]
    if not isinstance(answer, dict):
        return answer
    result = {}
    for name, value in answer.items():
        if name in OWN_FIELDS:
            result[name] = _own(value, rim)
        else:
            result[name] = in_answer(value, rim)
    return result


def in_pack(text: str, rim: Rim, longest: int) -> str:
    """Return a context pack whose list of what was left out speaks to whoever asks, if it fits."""
    items, heading, rest = text.rpartition(LEFT_OUT)
    spoken = items + heading + addressed(rest, rim)
    if len(spoken) > longest:
        return text
    return spoken


def _own(value: Any, rim: Rim) -> Any:
    if isinstance(value, str):
        return addressed(value, rim)
    if isinstance(value, list):
        return [_own(item, rim) for item in value]
    return value


def likely(word: str, names: Sequence[str], habits: Mapping[str, Collection[str]]) -> str:
    """Return the name that was probably meant, or nothing."""
    for name in habits.get(word.casefold(), ()):
        if name in names:
            return name
    import difflib

    near = difflib.get_close_matches(word, names, n=1, cutoff=0.4)
    near += [name for name in names if word in name or name in word]
    if near:
        return near[0]
    return ""
