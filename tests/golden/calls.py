"""Calls of every tool, in scenarios that begin with the fixture project as it was made.

A heading of calls.txt names a scenario, which has the name of a tool; a call without a name of its
own is one of that tool. A value such as "$0.version" is taken from the answer of the first call of
the scenario.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Arguments = dict[str, Any]
FILE = Path(__file__).with_name("calls.txt")
# A text that is longer than an answer; it comes in where the file says {LONG}.
LONG = "\n\n".join(
    f"Paragraph {number}: the berth calendar and the tide table agree in week {number}."
    for number in range(1, 161)
)


@dataclass(frozen=True)
class Scenario:
    """Calls one after the other on one server, with settings that differ from the project's."""

    calls: tuple[tuple[str, Arguments], ...]
    flags: dict[str, Any] = field(default_factory=dict)
    everything: bool = True


def _scenarios() -> dict[str, Scenario]:
    calls: dict[str, list[tuple[str, Arguments]]] = {}
    for row in FILE.read_text(encoding="utf-8").splitlines():
        if row.startswith("# "):
            name = row.removeprefix("# ")
            calls[name] = []
        elif row:
            tool, arguments = (name, row) if row[0] == "{" else row.split(" ", 1)
            filled = arguments.replace('"{LONG}"', json.dumps(LONG))
            calls[name].append((tool, json.loads(filled)))
    return {name: Scenario(tuple(made)) for name, made in calls.items()}


# Lanes that are switched off, and tools that are not there.
CONFIGURED: dict[str, Scenario] = {
    "lanes_off": Scenario(
        (
            ("search_docs", {"query": "token"}),
            ("search_memories", {"query": "token"}),
            ("create_memory", {"filename": "a.md", "content": "x", "tags": []}),
            ("recall", {}),
            ("memory_search", {"query": "x"}),
            ("get_repo_memory", {}),
            ("build_context", {}),
            ("journal_read", {"id": "ops"}),
            ("search_commits", {"query": "x"}),
            ("index_status", {}),
        ),
        {
            "docs.enabled": False,
            "memory.enabled": False,
            "journal.enabled": False,
            "docs.commits": False,
        },
    ),
    "words_only": Scenario(
        (
            ("search_docs", {"query": "token refresh", "limit": 2}),
            ("search_memories", {"query": "auth plan", "limit": 2, "explain": True}),
            ("memory_search", {"query": "dark mode", "mode": "vector"}),
            ("suggest_memory_merges", {}),
            ("index_status", {}),
        ),
        {"embedding.model": "none"},
    ),
    "default_toolsets": Scenario(
        (("memory_add", {"content": "x"}), ("serch_docs", {"query": "token"})),
        {"journal.enabled": False},
        everything=False,
    ),
}

SCENARIOS: dict[str, Scenario] = {**_scenarios(), **CONFIGURED}
# The scenarios that belong to no tool.
BESIDE = {"prompts", "resources", *CONFIGURED}
TOOLS = SCENARIOS.keys() - BESIDE
