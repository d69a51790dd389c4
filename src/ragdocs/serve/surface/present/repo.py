"""Answers about a repository's knowledge as text."""

from __future__ import annotations

from typing import Any

from ragdocs.serve.surface.present import quote, with_notes
from ragdocs.serve.surface.shapes.context import Appended, Copied, RepoDeleted, RepoMemory
from ragdocs.text.visible import line


def saved(answer: Any) -> str:
    """Confirm a convention, decision or note."""
    outcome = "nothing to change in"
    if answer["created"]:
        outcome = "created"
    elif answer["changed"]:
        outcome = "changed"
    return with_notes(f"{outcome} {answer['id']} at {line(answer['path'])}", answer["warnings"])


def repository(answer: RepoMemory) -> str:
    """Write what a repository knows, kind by kind."""
    items: list[str] = []
    for convention in answer["conventions"]:
        items.append(_convention(convention))
    for decision in answer["decisions"]:
        items.append(_decision(decision))
    for note in answer["notes"]:
        head = f"note {note['id']} · by {note['source']}"
        items.append(f"{head}\n   {_state(note)}\n{quote(note['content'])}")
    for step in answer["summaries"]:
        origin = f"run {line(step['runId'])}, step {line(step['stepId'])}"
        items.append(f"summary of {step['timestamp']} | {origin}\n{quote(step['summary'])}")
    parts = [_repository_head(answer), *(items or ["nothing is known yet"])]
    for kind, count in answer["omitted"].items():
        parts.append(f"{count} more {kind}")
    return with_notes("\n\n".join(parts), answer["remarks"])


def deleted(answer: RepoDeleted) -> str:
    """Say whether something was deleted."""
    item = f"{answer['kind']} {line(answer['id'])}"
    if not answer["deleted"]:
        return f"there is no {item}; get_repo_memory lists the ids"
    return f"deleted {item}; it is kept at {line(answer['movedTo'])}"


def appended(answer: Appended) -> str:
    """Confirm a summary."""
    origin = f"run {line(answer['runId'])}, step {line(answer['stepId'])}"
    text = f"summary of {origin} written; {answer['kept']} are kept"
    if answer["pruned"]:
        text += f", {answer['pruned']} old ones left"
    return with_notes(text, answer["warnings"])


def copied(answer: Copied) -> str:
    """Say what was copied."""
    items = f"{len(answer['copied'])} items and {answer['summaries']} summaries"
    rows = [f"copied {items} from {line(answer['source'])} to {line(answer['target'])}"]
    for path in answer["copied"]:
        rows.append(f"   {line(path)}")
    for path in answer["left"]:
        rows.append(f"   left as it is: {line(path)}")
    return "\n".join(rows)


def _repository_head(answer: RepoMemory) -> str:
    branch = "all branches"
    if answer["branch"]:
        branch = f"branch {line(answer['branch'])}"
    return f"repository {answer['repoHash']} · {branch} · {answer['branchScope']}"


def _convention(convention: Any) -> str:
    tags = ""
    if convention["tags"]:
        tags = f" · tags: {line(', '.join(convention['tags']))}"
    head = f"convention {convention['id']} | {line(convention['title'])}"
    return f"{head}\n   {_state(convention)}{tags}\n{quote(convention['content'])}"


def _decision(decision: Any) -> str:
    paths = ""
    if decision["impactedPaths"]:
        paths = f" · impacts: {line(', '.join(decision['impactedPaths']))}"
    head = f"decision {decision['id']} | {line(decision['summary'])}"
    return f"{head}\n   {_state(decision)}{paths}\n{quote(decision['rationale'])}"


def _state(item: Any) -> str:
    """Write when an item was written, and what became of its branch and its links."""
    words: str = item["createdAt"]
    if item["updatedAt"] != words:
        words += f", changed {item['updatedAt']}"
    if "branch_state" in item:
        words += f" · {item['branch_state']}"
    if "drift" in item:
        words += f" · links: {line(item['drift'])}"
    return words
