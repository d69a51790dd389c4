"""Calls of every tool, in scenarios that begin with the fixture project as it was made.

A scenario has the name of a tool; a call without a name of its own is one of that tool. A value
such as "$0.version" is taken from the answer of the first call of the scenario.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Arguments = dict[str, Any]
Call = Arguments | tuple[str, Arguments]


@dataclass(frozen=True)
class Scenario:
    """Calls one after the other on one server.

    `flags` are settings that differ from the project's.
    """

    calls: tuple[Call, ...]
    flags: dict[str, Any] = field(default_factory=dict)
    everything: bool = True


LONG = "\n\n".join(f"Paragraph {number}: the berth calendar and the tide table agree in week {number}." for number in
                   range(1, 161))  # fmt: skip
AUTH = {"filename": "auth-plan.md"}


def plain(*calls: Call) -> Scenario:
    return Scenario(calls)


DOCS: dict[str, Scenario] = {
    "search_docs": plain(
        {"query": "how are tokens refreshed"},
        {"query": "token refresh", "explain": True, "limit": 2},
        {"query": "rollback", "path": "docs", "tags": ["ops"]},
        {"query": "retries", "path": "docs/api"},
        {"query": "予約"},
        {"query": "lihgthouse maintenence"},
        {"query": "zzz qqq"},
        {"query": ""},
        {"query": "token", "limit": 0},
        {"query": "token", "path": "nowhere"},
        {"query": "token", "filter_tags": ["auth"]},
        {"query": 7},
        {},
    ),
    "read_doc": plain(
        {"path": "docs/auth.md"},
        {"path": "docs/auth.md", "heading": "Tokens"},
        {"path": "docs/auth.md", "heading": "Notes"},
        {"path": "docs/auth.md", "heading": "Sessions > Notes"},
        {"path": "docs/auth.md", "heading": "Weather"},
        {"path": "docs/auth.md#sessions"},
        {"path": "docs/auth.md", "lines": "7-9"},
        {"path": "docs/auth.md", "lines": "900-901"},
        {"path": "docs/auth.md", "lines": "first"},
        {"path": "login"},
        {"path": "docs/api/retries.rst", "heading": "Limits"},
        {"path": "docs/broken.md"},
        {"path": "docs/latin.md"},
        {"path": "docs/empty.md"},
        {"path": "docs/aut.md"},
        {"path": "../secret.md"},
    ),
    "index_status": plain({}, {"lane": "docs"}),
    "search_commits": plain(
        {"query": "why are retries limited"},
        {"query": "sessions", "paths": ["src/auth.py"]},
        {"query": "", "since": "2w"},
        {"query": "", "author": "ada", "limit": 2},
        {"query": "tokens", "paths": ["src"], "since": "last month"},
        {"query": "x", "author": "nobody"},
        {"query": "x", "since": "soonish"},
    ),
}

MEMORY: dict[str, Scenario] = {
    "create_memory": plain(
        {
            "filename": "new.md",
            "content": "A fact about [[docs/auth.md]]",
            "tags": ["auth"],
            "memory_type": "fact",
        },
        {"filename": "new.md", "content": "Again", "tags": []},
        {
            "filename": "deep/er/note",
            "content": "---\ntags: [own]\n---\n\n# Own block",
            "tags": ["more"],
        },
        {"filename": "odd.md", "content": "x", "tags": [], "memory_type": "poem"},
        {"filename": "../out.md", "content": "x", "tags": []},
        {"filename": "empty.md", "content": "  ", "tags": []},
        {"filename": "bad\u0000name.md", "content": "x", "tags": []},
        {"filename": "new.md"},
        ("read_memory", {"filename": "deep/er/note.md"}),
        ("search_memories", {"query": "fact about auth", "limit": 2}),
    ),
    "update_memory": plain(
        ("read_memory", AUTH),
        {**AUTH, "content": "---\ntype: plan\n---\n\nRewritten.", "expected_version": "$0.version"},
        {**AUTH, "content": "Stale.", "expected_version": "$0.version"},
        {**AUTH, "content": "No front matter at all."},
        {"filename": "missing.md", "content": "x"},
        {"filename": "auth-pln.md", "content": "x"},
        ("read_memory", AUTH),
    ),
    "append_memory": plain(
        ("read_memory", AUTH),
        {**AUTH, "content": "- shipped, see [[docs/deploy.md]]", "expected_version": "$0.version"},
        {**AUTH, "content": "- late", "expected_version": "$0.version"},
        {"filename": "plain.md", "content": "More fees."},
        {"filename": "missing.md", "content": "x"},
        {**AUTH, "content": ""},
        ("read_memory", AUTH),
    ),
    "edit_memory": plain(
        ("read_memory", AUTH),
        {**AUTH, "find": "How long may", "text": "For how many days may"},
        {**AUTH, "section": "Progress", "mode": "append", "text": "- shipped"},
        {**AUTH, "section": "Open questions", "text": "None."},
        {**AUTH, "find": "Sessions", "mode": "replace_all", "text": "Server sessions"},
        {**AUTH, "fields": {"status": "archived", "owner": None}},
        {**AUTH, "find": "zebra", "text": "x"},
        {**AUTH, "find": "the", "text": "x"},
        {**AUTH, "section": "Weather", "text": "x"},
        {**AUTH, "text": "x"},
        {**AUTH, "mode": "shuffle", "find": "a", "text": "x"},
        {**AUTH, "find": "JWT", "text": "tokens", "expected_version": "$0.version"},
        {"filename": "missing.md", "find": "a", "text": "b"},
        ("read_memory", AUTH),
    ),
    "delete_memory": plain(
        {"filename": "retries.md"},
        {"filename": "retries.md"},
        {**AUTH, "expected_version": "0" * 16},
        {"filename": "plain"},
        ("search_memories", {"query": "three retries jitter", "limit": 2}),
    ),
    "read_memory": plain(
        AUTH,
        {**AUTH, "lines": "1-4"},
        {"filename": "auth-plan"},
        {"filename": "facts/rate-limits.md"},
        {"filename": "broken.md"},
        {"filename": "rate-limits.md"},
        {"filename": "missing.md"},
        {**AUTH, "lines": "99-100"},
        ("create_memory", {"filename": "long.md", "content": LONG, "tags": []}),
        {"filename": "long.md"},
    ),
    "search_memories": plain(
        {"query": "token handling", "filter_tags": ["auth"]},
        {"query": "deployment plan", "filter_type": "plan", "include_archived": True},
        {"query": "deployment plan", "filter_type": "plan"},
        {"query": "what happened last week", "explain": True, "limit": 3},
        {"query": "staging server frozen"},
        {"query": "berth calender wrong weeks", "limit": 2},
        {"query": "zzz"},
        {"query": "x", "filter_type": "poem"},
        {"query": "x", "limit": 99},
        {"query": "auth", "tags": ["auth"]},
    ),
    "search_linked_memories": plain(
        {"query": "plans and known problems", "target_document": "src/auth.py"},
        {"query": "", "target_document": "src/auth.py", "limit": 1},
        {"query": "limits", "target_document": "src/net/limits.py"},
        {"query": "sessions", "target_document": "docs/auth.md"},
        {"query": "plan", "target_document": "auth-plan.md"},
        {"query": "x", "target_document": "src/none.py"},
        {"query": "x", "target_document": ""},
    ),
    "get_memory_stats": plain({}),
    "merge_memories": plain(
        ("read_memory", AUTH),
        {
            "source_files": ["standup/monday.md", "standup/tuesday.md"],
            "target_file": "standup/all.md",
            "summary_content": "---\ntype: journal\ntags: [standup]\n---\n\nWeek numbers were wrong.",
        },
        {"source_files": ["standup/monday.md"], "target_file": "x.md", "summary_content": "x"},
        {"source_files": [], "target_file": "x.md", "summary_content": "x"},
        {"source_files": ["plain.md"], "target_file": "auth-plan.md", "summary_content": "Both."},
        {
            "source_files": ["plain.md"],
            "target_file": "auth-plan.md",
            "summary_content": "Both.",
            "expected_version": "$0.version",
        },
        ("get_memory_stats", {}),
    ),
    "suggest_memory_merges": plain(
        {},
        {"threshold": 0.99},
        {"threshold": 0.5, "filter_type": None, "limit": 2},
        {"threshold": 2},
        {"limit": 0},
    ),
}

EDIT: dict[str, Scenario] = {
    "memory_history": plain(
        {}, AUTH, {"filename": "wrong.md"}, {"filename": "missing.md"}, {"limit": 1}, {"limit": 0}
    ),
    "restore_memory": plain(
        ("memory_history", AUTH),
        AUTH,
        {"filename": "wrong.md"},
        {**AUTH, "version": "0" * 16},
        {"filename": "missing.md"},
        ("read_memory", {"filename": "wrong.md"}),
    ),
    "diff_memory": plain(
        AUTH,
        {"filename": "plain.md"},
        {**AUTH, "before": "00000000"},
        {"filename": "missing.md"},
    ),
    "undo_memory_change": plain({}, {}, ("memory_history", {"limit": 3})),
    "rename_memory": plain(
        {**AUTH, "new_name": "auth/plan.md"},
        ("read_memory", {"filename": "session-2025-05-10.md"}),
        {"filename": "retries.md", "new_name": "plain.md"},
        {"filename": "missing.md", "new_name": "x.md"},
        {"filename": "retries.md", "new_name": "../x.md"},
        {"filename": "plain.md", "new_name": "x.md", "expected_version": "0" * 16},
        ("memory_history", {"filename": "auth/plan.md"}),
    ),
}

RECALL: dict[str, Scenario] = {
    "remember": plain(
        {"content": "Chose Redis over files, see [[src/auth.py]]", "tags": ["auth", "ops"]},
        {"content": "---\ntype: plan\ntags: [own]\n---\n\nA copied block."},
        {"content": ""},
        {"content": "x", "tags": ["a\nb"]},
        ("recall", {"limit": 2}),
    ),
    "recall": plain(
        {},
        {"query": "sesions jwt", "limit": 3},
        {"tags": ["auth"], "limit": 3},
        {"since": "yesterday"},
        {"since": "1w", "limit": 2},
        {"scope": "global", "limit": 4},
        {"scope": "global", "query": "lamp", "limit": 2},
        {"since": "whenever"},
        {"scope": "galaxy"},
        {"limit": 0},
        {"query": "zzz"},
    ),
}

ENTRIES: dict[str, Scenario] = {
    "memory_add": plain(
        {
            "content": "Ben drinks tea",
            "entryType": "preference",
            "importance": 3,
            "tags": ["people"],
        },
        {"content": "Ben drinks tea", "entryType": "preference"},
        {
            "content": "Tides are in UTC",
            "context": "from the tide table",
            "confidence": 0.9,
            "expiresAt": 1780000000000,
        },
        {"content": "Old news", "expiresAt": "2020-01-01"},
        {"content": "x", "confidence": 3},
        {"content": "x", "importance": 11},
        {"content": "x", "entryType": "poem"},
        {"content": ""},
        ("memory_get", {"id": "$0.id"}),
    ),
    "memory_search": plain(
        {"query": "dark mode"},
        {"query": "dark mode", "mode": "keyword", "limit": 1},
        {"query": "harbour master", "mode": "vector", "limit": 2},
        {"query": "certificate", "entryTypes": ["task"]},
        {"query": "closed berth", "minConfidence": 0.5},
        {"query": "mode", "minImportance": 6, "tags": ["ui"]},
        {"query": "zzz"},
        {"query": "mode", "mode": "magic"},
    ),
    "memory_get": plain(
        ("memory_search", {"query": "dark mode", "limit": 1}),
        {"id": "$0.results.0.id"},
        {"id": "$0.results.0.id", "used": True},
        ("memory_search", {"query": "closed for repairs", "limit": 3}),
        {"id": "auth-plan.md"},
        {"id": "mem_000000000000"},
        {"id": ""},
    ),
    "memory_stats": plain({}),
    "memory_delete": plain(
        ("memory_search", {"query": "dark mode", "limit": 1}),
        {"id": "$0.results.0.id"},
        {"id": "$0.results.0.id"},
        {"id": "nothing"},
        ("memory_stats", {}),
    ),
}

REPO: dict[str, Scenario] = {
    "upsert_convention": plain(
        {"title": "Commits say why", "content": "One change each.", "tags": ["git"]},
        {"title": "Commits say why", "content": "One change each, with a body."},
        {"title": "Use make for everything", "content": "make test, make lint, make docs."},
        {"title": "", "content": "x"},
        {"title": "x", "content": ""},
        {"title": "Shared", "content": "For all branches.", "branch_scope": "sharedRepo"},
        {"title": "x", "content": "y", "id": "no-such-id"},
    ),
    "upsert_decision": plain(
        {
            "summary": "Redis for sessions",
            "rationale": "Fast enough.",
            "impacted_paths": ["src/auth.py", "src/net/"],
        },
        {"summary": "Redis for sessions", "rationale": "Fast enough, and it expires keys."},
        {"summary": "x", "rationale": "y", "impacted_paths": ["../out"]},
        {"summary": "", "rationale": "y"},
        ("search_linked_memories", {"query": "sessions", "target_document": "src/net/retry.py"}),
    ),
    "upsert_note": plain(
        {"content": "CI is slow on Mondays", "source": "tool"},
        {"content": "CI is slow on Mondays and Tuesdays", "id": "$0.id"},
        {"content": "x", "source": "bird"},
        {"content": ""},
    ),
    "append_summary": plain(
        {"run_id": "release-8", "step_id": "1", "summary": "Began.", "tags": ["ci"]},
        {"run_id": "release-8", "step_id": "1", "summary": "Began again."},
        {"run_id": "", "step_id": "1", "summary": "x"},
        {"run_id": "r", "step_id": "1", "summary": ""},
        ("get_repo_memory", {"kind": "summary"}),
    ),
    "get_repo_memory": plain(
        {},
        {"kind": "decision"},
        {"path": "src/auth.py"},
        {"path": "src/none.py"},
        {"kind": "note", "id": "note-00000000"},
        {"kind": "weather"},
        {"branch_scope": "sharedRepo"},
    ),
    "delete_repo_memory": plain(
        ("upsert_note", {"content": "To be deleted"}),
        {"kind": "note", "id": "$0.id"},
        {"kind": "note", "id": "$0.id"},
        {"kind": "summary", "id": "x"},
    ),
    "build_context": plain(
        {},
        {"task": "revoke sessions on logout", "files": ["src/auth.py"]},
        {"max_chars": 1200, "task": "retries"},
        {"max_chars": 10},
        {"files": ["src/none.py"]},
    ),
}

JOURNAL: dict[str, Scenario] = {
    "journal_search": plain(
        {"work_context": "debugging the client", "content": "attempts"},
        {"work_context": "", "content": "jitter after an outage", "salience_threshold": 0.1},
        {"work_context": "release", "content": ""},
        {"work_context": "", "content": ""},
        {"work_context": "x", "content": "x", "salience_threshold": 2},
    ),
    "journal_read": plain(
        {"id": "project/api"},
        {"id": "project/api", "lines": "1-1"},
        ("journal_list_entries", {"path": "project/api"}),
        {"id": "$2.result.1.id"},
        {"id": "project/apy"},
        {"id": "project/api#0000000"},
        {"id": ""},
    ),
    "journal_toc": plain(
        {}, {"depth": 2}, {"id": "project", "depth": 2}, {"id": "nowhere"}, {"depth": 0}
    ),
    "journal_list_entries": plain(
        {"path": "project/api"},
        {"path": "project/api", "start": 1, "length": 1},
        {"path": "nowhere"},
        {"path": "ops", "length": 0},
    ),
    "journal_write": plain(
        {"path": "project/api", "entry": "Without reading first."},
        ("journal_read", {"id": "project/api"}),
        {
            "path": "project/api",
            "entry": "A fifth second helps.",
            "summary": "timeouts",
            "work_context": "tuning",
        },
        {
            "path": "project/api",
            "entry": "A new view.",
            "overview": "# API client\n\nFive seconds, three attempts.\n",
        },
        ("journal_read", {"id": "project/new"}),
        {"path": "project/new", "entry": "A section begins."},
        {"path": "../out", "entry": "x"},
        {"path": "project/api", "entry": ""},
        ("journal_list_entries", {"path": "project/api"}),
    ),
    "journal_synthesize_conflict": plain(
        {
            "section": "project/api",
            "version_a": "# API\n\nThree attempts.\n\nJitter.\n",
            "version_b": "# API\n\nFour attempts.\n\nJitter.\n",
            "work_context": "tuning",
        },
        {"section": "nowhere", "version_a": "# One", "version_b": "# One", "work_context": ""},
        {"section": "project/api", "version_a": "", "version_b": "", "work_context": ""},
    ),
}

QUALITY: dict[str, Scenario] = {
    "verify_index": plain({}),
    "explain_search": plain(
        {"query": "how are tokens refreshed", "path": "docs/auth.md"},
        {"query": "how are tokens refreshed", "path": "docs/guide.txt"},
        {"query": "token", "path": "docs/none.md"},
        {"query": "auth plan", "path": "old-deploy-plan.md", "lane": "memory"},
        {"query": "sessions", "path": "auth-plan.md", "lane": "memory", "limit": 1},
        {"query": "x", "path": "y", "lane": "journal"},
    ),
}

# What belongs to no tool: prompts, resources, lanes that are switched off, tools that are not
# there.
BESIDE: dict[str, Scenario] = {
    "prompts": plain(
        ("prompt:start_with_context", {}),
        ("prompt:start_with_context", {"task": "sessions", "files": "src/auth.py, web/app.ts"}),
        ("prompt:recall_before_work", {"task": "sessions"}),
        ("prompt:write_session_journal", {"topic": "retries"}),
    ),
    "resources": plain(
        ("resource:ragdocs://docs/docs/auth.md", {}),
        ("resource:ragdocs://memory/auth-plan.md", {}),
        ("resource:ragdocs://docs/docs/none.md", {}),
        ("complete:ragdocs://docs/{+path}", {"path": "AU"}),
        ("complete:ragdocs://memory/{+path}", {"path": "stand"}),
    ),
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

TOOLS: dict[str, Scenario] = {
    **DOCS,
    **MEMORY,
    **EDIT,
    **RECALL,
    **ENTRIES,
    **REPO,
    **JOURNAL,
    **QUALITY,
}
SCENARIOS: dict[str, Scenario] = {**TOOLS, **BESIDE}
