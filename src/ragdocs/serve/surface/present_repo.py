"""Answers about a repository's knowledge as text; what others wrote stands behind a mark, as
everywhere.
"""

from __future__ import annotations

from typing import Any

from ragdocs.serve.surface.present import quote
from ragdocs.text.visible import line
from ragdocs.verbs.context.shapes import Appended, Copied, RepoDeleted, RepoMemory


def saved(answer: Any) -> str:
    """Confirm a convention, decision or note."""
    what = (
        "created"
        if answer["created"]
        else "changed"
        if answer["changed"]
        else "nothing to change in"
    )
    return f"{what} {answer['id']} at {line(answer['path'])}" + _notes(answer["warnings"])


def repository(found: RepoMemory) -> str:
    """Write what a repository knows, kind by kind."""
    whose = f"branch {line(found['branch'])}" if found["branch"] else "all branches"
    parts = [f"repository {found['repoHash']} · {whose} · {found['branchScope']}"]
    for one in found["conventions"]:
        tags = f" · tags: {line(', '.join(one['tags']))}" if one["tags"] else ""
        parts.append(
            f"convention {one['id']} | {line(one['title'])}\n   {_times(one)}{tags}\n{quote(one['content'])}"
        )
    for choice in found["decisions"]:
        paths = (
            f" · impacts: {line(', '.join(choice['impactedPaths']))}"
            if choice["impactedPaths"]
            else ""
        )
        head = f"decision {choice['id']} | {line(choice['summary'])}\n   {_times(choice)}{paths}"
        parts.append(f"{head}\n{quote(choice['rationale'])}")
    parts += [
        f"note {n['id']} · by {n['source']}\n   {_times(n)}\n{quote(n['content'])}"
        for n in found["notes"]
    ]
    for step in found["summaries"]:
        where = f"run {line(step['runId'])}, step {line(step['stepId'])}"
        parts.append(f"summary of {step['timestamp']} | {where}\n{quote(step['summary'])}")
    parts += ["nothing is known yet"] if len(parts) == 1 else []
    parts += [f"{count} more {what}" for what, count in found["omitted"].items()]
    return "\n\n".join(parts) + _notes(found["remarks"])


def deleted(answer: RepoDeleted) -> str:
    """Say whether something was deleted."""
    if not answer["deleted"]:
        return f"there is no {answer['kind']} {line(answer['id'])}; get_repo_memory lists the ids"
    return f"deleted {answer['kind']} {line(answer['id'])}; it is kept at {line(answer['movedTo'])}"


def appended(answer: Appended) -> str:
    """Confirm a summary."""
    pruned = f", {answer['pruned']} old ones left" if answer["pruned"] else ""
    where = f"run {line(answer['runId'])}, step {line(answer['stepId'])}"
    return f"summary of {where} written; {answer['kept']} are kept{pruned}" + _notes(
        answer["warnings"]
    )


def copied(answer: Copied) -> str:
    """Say what was copied."""
    head = (
        f"copied {len(answer['copied'])} items and {answer['summaries']} summaries from {line(answer['source'])} to "
        f"{line(answer['target'])}"
    )
    rows = [f"   {line(path)}" for path in answer["copied"]]
    return "\n".join([head, *rows, *(f"   left as it is: {line(path)}" for path in answer["left"])])


def _times(one: Any) -> str:
    return (
        f"{one['createdAt']}, changed {one['updatedAt']}"
        if one["updatedAt"] != one["createdAt"]
        else one["createdAt"]
    )


def _notes(notes: list[str]) -> str:
    return "".join(f"\nNote: {line(note)}" for note in notes)
