"""Repository memory: conventions, decisions, notes, summaries, and packs of
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.flags import compared
from ragdocs.serve.surface.hints import in_pack
from ragdocs.serve.surface.layouts import pack as layout_pack
from ragdocs.serve.surface.layouts import repo as layout_repo
from ragdocs.serve.surface.parameters import Scope, Superseded, Tags
from ragdocs.serve.surface.present import repo as present_repo
from ragdocs.serve.surface.shapes.context import (
    Appended,
    Copied,
    Pack,
    RepoDeleted,
    RepoMemory,
    SavedConvention,
    SavedDecision,
    SavedNote,
)

Kind = Literal["convention", "decision", "note"]
# Before a compaction, a host reads plain text as instructions for it; a pack comes afterwards.
BEFORE_COMPACTION = "PreCompact"
COMPACTION = """\
Keep in the summary: what the task is, what is done and what is left; decisions and their reasons, \
conventions and causes that were found and are not written down yet; the files at work. Leave out \
project documentation and memories that were read: they can be found again with the tools of \
ragdocs. Continue by writing down what is not written down yet."""


@verb(
    command="repo convention",
    toolset="repo",
    title="Write a convention",
    situation="how something is done here",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_repo.saved,
    about="write a convention, or change the one of this title",
    examples=(
        {
            "title": "Use pnpm workspaces",
            "content": "All packages live under packages/.",
            "tags": ["build"],
        },
    ),
)
def upsert_convention(
    ask: Ask,
    title: Annotated[str, Arg(help="what it is called", positional=True)],
    content: Annotated[str, Arg(help="how it is done", text=True)],
    tags: Tags = None,
    id: Annotated[str | None, Arg(help="the convention to change")] = None,
    branch_scope: Scope = None,
) -> SavedConvention:
    """Write down how something is done in this repository, for every later run. The same title, or
    `id`, changes the convention that there is; tags that are not given stay.
    """
    repository = ask.workspace.repository
    saved = repository.upsert_convention(title, content, tags, id or "", branch_scope)
    return layout_repo.saved_convention(saved, ask.room)


@verb(
    command="repo decision",
    toolset="repo",
    title="Write a decision",
    situation="a choice with its reasons and files",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_repo.saved,
    about="write a decision, or change the one of this summary",
    examples=(
        {
            "summary": "Sessions instead of JWT",
            "rationale": "They can be revoked at once.",
            "impacted_paths": ["src/auth/", "docs/auth.md"],
        },
    ),
    shell_examples=('ragdocs repo decision "Sessions instead of JWT" --path src/auth/ < why.md',),
)
def upsert_decision(
    ask: Ask,
    summary: Annotated[str, Arg(help="what was decided, on one line", positional=True)],
    rationale: Annotated[str, Arg(help="the reasons", flag="--content", text=True)],
    impacted_paths: Annotated[
        list[str] | None, Arg(help="files and folders it is about", flag="--path")
    ] = None,
    id: Annotated[str | None, Arg(help="the decision to change")] = None,
    branch_scope: Scope = None,
) -> SavedDecision:
    """Write down what was chosen and why, with the files and folders it is about:
    search_linked_memories finds it for each of them. The same summary, or `id`, changes the
    decision that there is.
    """
    saved = ask.workspace.repository.upsert_decision(
        summary, rationale, impacted_paths, id or "", branch_scope
    )
    return layout_repo.saved_decision(saved, ask.room)


@verb(
    command="repo note",
    toolset="repo",
    title="Write a note",
    situation="anything else about the repository",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_repo.saved,
    about="write a note",
    examples=({"content": "The integration tests need Redis 7", "source": "agent"},),
)
def upsert_note(
    ask: Ask,
    content: Annotated[str, Arg(help="the note", text=True)],
    source: Annotated[Literal["manual", "agent", "tool"], Arg(help="who wrote it")] = "manual",
    id: Annotated[str | None, Arg(help="the note to change")] = None,
    branch_scope: Scope = None,
) -> SavedNote:
    """Write down something about this repository that is neither rule nor choice; `id` changes an
    earlier note.
    """
    saved = ask.workspace.repository.upsert_note(content, source, id or "", branch_scope)
    return layout_repo.saved_note(saved, ask.room)


@verb(
    command="repo summary",
    toolset="repo",
    title="Append a summary",
    situation="the end of a step",
    effect="add",
    role="writer",
    lanes=("memory",),
    text=present_repo.appended,
    about="append a summary of a step",
    examples=(
        {
            "run_id": "release-42",
            "step_id": "2-tests",
            "summary": "Fixed the race in the lock; CI is green",
        },
    ),
)
def append_summary(
    ask: Ask,
    run_id: Annotated[str, Arg(help="the run, such as release-42", flag="--run")],
    step_id: Annotated[str, Arg(help="the step of the run", flag="--step")],
    summary: Annotated[str, Arg(help="what happened, at most 64 KB", flag="--content", text=True)],
    tags: Tags = None,
    branch_scope: Scope = None,
) -> Appended:
    """At the end of a step, say in one paragraph what happened, what came out and what is left to
    do; the next step's build_context has it. At most 64 KB; the oldest summaries leave.
    """
    appended = ask.workspace.repository.append_summary(
        run_id, step_id, summary, tags or (), branch_scope
    )
    return layout_repo.appended(appended)


@verb(
    command="repo show",
    toolset="repo",
    title="Read the repository's memory",
    situation="all that the branch knows",
    effect="read",
    lanes=("memory",),
    text=present_repo.repository,
    about="list the conventions, decisions, notes and summaries of this branch",
    examples=(
        {},
        {"kind": "decision", "id": "sessions-not-jwt-1a2b3c4d"},
        {"path": "src/auth/login.py"},
    ),
)
def get_repo_memory(
    ask: Ask,
    kind: Annotated[
        Literal["convention", "decision", "note", "summary"] | None, Arg(help="only one kind")
    ] = None,
    id: Annotated[str | None, Arg(help="one item, whole")] = None,
    path: Annotated[str | None, Arg(help="the decisions about a file or folder")] = None,
    branch_scope: Scope = None,
) -> RepoMemory:
    """Read conventions, decisions, notes and summaries of this branch, the last changed first; or
    one kind, one item whole, or the decisions about a path and the folders it is in.
    """
    knowledge = ask.workspace.repository.get(kind or "", id or "", path or "", branch_scope)
    documents = []
    for items in knowledge.items.values():
        documents += [item.document for item in items]
    return layout_repo.knowledge(knowledge, ask.room, compared(ask, documents))


@verb(
    command="repo delete",
    toolset="repo",
    title="Delete from the repository's memory",
    situation="what no longer holds",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_repo.deleted,
    about="move a convention, decision or note to the trash",
    examples=({"kind": "note", "id": "note-3f2a9b8c"},),
)
def delete_repo_memory(
    ask: Ask,
    kind: Annotated[Kind, Arg(help="what it is", positional=True)],
    id: Annotated[str, Arg(help="its id", positional=True)],
    branch_scope: Scope = None,
) -> RepoDeleted:
    """Move a convention, decision or note that no longer holds to the trash folder. Returns whether
    there was one.
    """
    return layout_repo.deleted(ask.workspace.repository.delete(kind, id, branch_scope))


@verb(
    command="repo copy",
    toolset="repo",
    title="Copy a branch's memory",
    effect="add",
    role="writer",
    tool=False,
    lanes=("memory",),
    text=present_repo.copied,
    about="copy the items of one branch to another",
    examples=({"source": "feature/oauth", "target": "main"},),
)
def copy_repo_memory(
    ask: Ask,
    source: Annotated[str, Arg(help="the branch to copy from", positional=True)],
    target: Annotated[str, Arg(help="the branch to copy to; its items stay", positional=True)],
) -> Copied:
    """Copy what one branch knows to another one, too."""
    return layout_repo.copied(ask.workspace.repository.copy(source, target))


def _pack(pack: Pack, arguments: Mapping[str, Any]) -> str:
    """Write a pack as it is, or as the answer of a hook."""
    event = arguments["hook"]
    if not event:
        return pack["context"].rstrip("\n")
    if event == BEFORE_COMPACTION:
        return COMPACTION
    if event[0].islower():
        # Cursor names its events so, and reads the text from another key.
        return json.dumps({"additional_context": pack["context"]})
    output = {"hookEventName": event, "additionalContext": pack["context"]}
    return json.dumps({"hookSpecificOutput": output})


def _text(pack: Pack) -> str:
    return pack["context"]


@verb(
    command="context",
    toolset="recall",
    also_in=("repo",),
    title="Build a context pack",
    situation="a task you are about to start",
    effect="read",
    lanes=("memory", "docs", "sources"),
    text=_text,
    terminal=_pack,
    about="print what an agent should know when a run or a step begins",
    examples=({"task": "revoke sessions on logout", "files": ["src/auth/login.py"]},),
    shell_examples=(
        "ragdocs context --hook SessionStart",
        "ragdocs context --json | jq -r '.omitted[]'",
    ),
)
def build_context(
    ask: Ask,
    max_chars: Annotated[int, Arg(help="size of the answer")] = 8000,
    task: Annotated[
        str | None, Arg(help="what you are about to do", positional=True, words=True)
    ] = None,
    files: Annotated[list[str] | None, Arg(help="files to change", flag="--file")] = None,
    branch_scope: Scope = None,
    superseded: Superseded = False,
    hook: Annotated[
        str | None,
        Arg(
            help="print the JSON that a hook of this event answers with",
            metavar="EVENT",
            only="command",
        ),
    ] = None,
) -> Pack:
    """Collect what matters for a task: conventions, decisions, memories, documentation and an
    outline of files.

    The pack is never longer than `max_chars`. Each item has its source and age; what was left out
    is listed with how to get it. Without a task it has the latest summaries and memories.
    """
    del hook
    candidates = ask.workspace.packs.gather(
        max_chars, task or "", files or (), branch_scope, superseded=superseded
    )
    pack = layout_pack.pack(candidates, ask.now, max_chars)
    pack["context"] = in_pack(pack["context"], ask.rim, max_chars)
    pack["chars"] = len(pack["context"])
    return pack
