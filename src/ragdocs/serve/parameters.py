"""What each parameter of the tools is: one short phrase for each meaning, shared by the tools that have it."""

from __future__ import annotations

from typing import Any

LIMIT = "most results"
TAGS = "tags to write"
ANY_TAG = "keep those with any of these tags"
ITEM_ID = "id of the item"
NEW_ITEM_ID = "id of the item to change"
SECTION = "journal section, such as project/api"

# By the name of the parameter, because the same name mostly means the same.
PARAMETERS: dict[str, str] = {
    "author": "part of the author's name or address",
    "branch_scope": "whose it is, if not as configured",
    "confidence": "how sure it is, 0 to 1",
    "content": "the text, in markdown",
    "context": "how it came up",
    "depth": "levels to descend",
    "entry": "what changed or was learned",
    "entryType": "what kind of entry it is",
    "entryTypes": "keep entries of these types",
    "expected_version": "refuse if it is at another version",
    "expiresAt": "ISO 8601 or Unix milliseconds",
    "explain": "add every contribution to the score",
    "fields": "frontmatter to set; null removes a field",
    "filename": "file below the memory folder",
    "files": "files that the task is about",
    "filter_tags": ANY_TAG,
    "filter_type": "keep memories of this type",
    "find": "passage to change, as it stands",
    "heading": "only the section under this heading",
    "impacted_paths": "files and folders it is about",
    "importance": "1 to 10; 5 is ordinary",
    "include_archived": "archived memories too",
    "kind": "kind of item",
    "lane": "where to search",
    "length": "number of entries",
    "limit": LIMIT,
    "lines": 'only these lines, such as "10-40"',
    "max_chars": "largest size in characters",
    "memory_type": "journal, plan, fact, observation or reflection",
    "minConfidence": "least confidence, 0 to 1",
    "minImportance": "least importance, 1 to 10",
    "mode": "what to do with the passage",
    "new_name": "file name it gets",
    "overview": "new text of the whole section",
    "path": "path of the document",
    "paths": "files or folders that were changed",
    "query": "what to look for, in plain words",
    "rationale": "why it was decided",
    "run_id": "the run, such as release-42",
    "salience_threshold": "score that old entries need, 0 to 1",
    "scope": "this project, or all projects",
    "section": "heading of the section to change",
    "since": '"1d", "1w", "yesterday" or "2026-02-04"',
    "source": "who or what it comes from",
    "source_files": "memories to replace",
    "start": "first to list; 0 is the newest",
    "step_id": "the step of the run",
    "summary": "one line",
    "summary_content": "text of the merged memory",
    "tags": TAGS,
    "target_document": "file or document they link to",
    "target_file": "file name of the merged memory",
    "task": "what is about to be done",
    "text": "new text; empty removes the passage",
    "threshold": "least similarity, 0 to 1",
    "title": "what it is called, on one line",
    "used": "whether it helped",
    "version": "from memory_history; default: before the last change",
    "version_a": "one overview",
    "version_b": "the other overview",
    "work_context": "kind of work it came from",
}
# Where the same name means something else.
OF_TOOL: dict[tuple[str, str], str] = {
    ("append_summary", "summary"): "one paragraph on what happened",
    ("explain_search", "path"): "document that was expected",
    ("get_repo_memory", "id"): ITEM_ID,
    ("get_repo_memory", "path"): "decisions about this file or folder",
    ("delete_repo_memory", "id"): ITEM_ID,
    ("journal_list_entries", "path"): SECTION,
    ("journal_read", "id"): "section, or section#commit for an entry",
    ("journal_search", "content"): "what to look for",
    ("journal_synthesize_conflict", "section"): SECTION,
    ("journal_toc", "id"): "where to begin; empty for all",
    ("journal_write", "path"): SECTION,
    ("journal_write", "summary"): "first line of the commit message",
    ("memory_delete", "id"): "id of the entry",
    ("memory_get", "id"): "id of the entry",
    ("memory_search", "mode"): "by meaning, by words or both",
    ("memory_search", "tags"): ANY_TAG,
    ("recall", "tags"): ANY_TAG,
    ("search_docs", "path"): "only below this folder",
    ("search_docs", "tags"): ANY_TAG,
    ("upsert_convention", "id"): NEW_ITEM_ID,
    ("upsert_decision", "id"): NEW_ITEM_ID,
    ("upsert_note", "id"): NEW_ITEM_ID,
}


def describe(tool: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's input schema with a description for each parameter."""
    described = {}
    for name, value in schema["properties"].items():
        about = OF_TOOL.get((tool, name)) or PARAMETERS.get(name)
        described[name] = {**value, "description": about} if about else value
    return {**schema, "properties": described}
