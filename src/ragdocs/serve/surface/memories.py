"""Memories: writing, finding, changing and merging them, and their earlier texts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ragdocs.serve.surface import Arg, Ask, present_entries, present_memories, verb
from ragdocs.serve.surface.parameters import (
    AnyTag,
    ExpectedVersion,
    Explain,
    Filename,
    Limit,
    Lines,
    MemoryType,
    Query,
)
from ragdocs.verbs.memories.entry_shapes import Expired, Reviewed
from ragdocs.verbs.shapes import (
    Clusters,
    Deleted,
    Difference,
    Edited,
    LinkedHits,
    MemoryHits,
    MemoryText,
    Merged,
    Renamed,
    Revisions,
    Saved,
    Stats,
    Undone,
)

Content = Annotated[str, Arg(help="the text, in markdown", text=True)]
ALL_TYPES = "all"


@verb(
    command="memory create",
    toolset="memory",
    title="Create a memory",
    effect="add",
    role="writer",
    lanes=("memory",),
    text=present_memories.saved,
    about="write a new memory",
    examples=(
        {
            "filename": "auth-plan.md",
            "content": "Move [[src/auth.py]] to JWT because …",
            "tags": ["auth"],
            "memory_type": "plan",
        },
    ),
    shell_examples=("ragdocs memory create plan.md --type plan --tag auth < plan.txt",),
)
def create_memory(
    ask: Ask,
    filename: Annotated[str, Arg(help="the new memory's file name", positional=True)],
    content: Content,
    tags: Annotated[list[str], Arg(help="tags to give it", flag="--tag", command_default=())],
    memory_type: Annotated[
        str, Arg(help="journal, plan, fact, observation or reflection", flag="--type")
    ] = "journal",
) -> Saved:
    """Save something worth knowing later: a decision and its reasons, a plan, a fact, the cause of
    a bug. Call it at milestones without being asked. Link files and documents as [[src/auth.py]].
    Fails if the file exists.
    """
    return ask.workspace.memories.create(filename, content, tags, memory_type)


@verb(
    command="memory update",
    toolset="memory",
    title="Replace a memory",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_memories.saved,
    about="replace a memory entirely",
)
def update_memory(
    ask: Ask,
    filename: Filename,
    content: Content,
    expected_version: ExpectedVersion = None,
) -> Saved:
    """Replace the whole text of a memory, frontmatter included: read it first and keep what should
    stay. `expected_version` (from read_memory) refuses the write if somebody changed the memory
    meanwhile.
    """
    return ask.workspace.memories.update(filename, content, expected_version)


@verb(
    command="memory append",
    toolset="memory",
    title="Append to a memory",
    effect="add",
    role="writer",
    lanes=("memory",),
    text=present_memories.saved,
    about="add to the end of a memory",
    examples=(
        {"filename": "session.md", "content": "- fixed the token refresh in [[src/auth.py]]"},
    ),
    shell_examples=("ragdocs memory append auth-plan.md < progress.md",),
)
def append_memory(
    ask: Ask,
    filename: Filename,
    content: Content,
    expected_version: ExpectedVersion = None,
) -> Saved:
    """Add a paragraph to the end of a memory, such as today's progress to a running journal."""
    return ask.workspace.memories.append(filename, content, expected_version)


@verb(
    command="memory edit",
    toolset="memory",
    title="Change a part of a memory",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.edited,
    about="change a part of a memory",
    examples=(
        {"filename": "plan.md", "find": "in May", "text": "in June"},
        {"filename": "plan.md", "section": "Done", "mode": "append", "text": "- shipped"},
        {"filename": "plan.md", "fields": {"status": "archived"}},
    ),
)
def edit_memory(
    ask: Ask,
    filename: Filename,
    text: Annotated[str | None, Arg(help="the new text")] = None,
    find: Annotated[str | None, Arg(help="the passage to change, quoted exactly")] = None,
    section: Annotated[str | None, Arg(help="the section to change, by its heading")] = None,
    mode: Annotated[
        Literal["replace", "replace_all", "append", "prepend"], Arg(help="what to do with the text")
    ] = "replace",
    fields: Annotated[
        dict[str, Any] | None,
        Arg(help="frontmatter to set; an empty value removes", flag="--field", metavar="KEY=VALUE"),
    ] = None,
    expected_version: ExpectedVersion = None,
) -> Edited:
    """Change a part of a memory instead of rewriting it: put `text` in place of (or before, behind)
    the one passage that `find` quotes, or of the section under a heading; `fields` sets
    frontmatter, null removes. The rest stays as it is. Returns the changed lines.
    """
    from ragdocs.verbs.memories.revise import Edit

    edit = Edit(text, find, section, mode, fields)
    return ask.workspace.edits.edit(filename, edit, expected_version)


@verb(
    command="memory delete",
    toolset="memory",
    title="Delete a memory",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.deleted,
    about="move a memory to the trash",
)
def delete_memory(
    ask: Ask, filename: Filename, expected_version: ExpectedVersion = None
) -> Deleted:
    """Move a memory that is wrong or no longer needed to the trash folder; the answer says where it
    went.
    """
    return ask.workspace.memories.delete(filename, expected_version)


@verb(
    command="memory read",
    toolset="memory",
    title="Read a memory",
    effect="read",
    lanes=("memory",),
    text=present_memories.memory,
    about="print a memory",
    examples=({"filename": "auth-plan.md"},),
)
def read_memory(ask: Ask, filename: Filename, lines: Lines = None) -> MemoryText:
    """Read a memory as it stands in its file, with frontmatter and the version that update_memory
    can check.
    """
    return ask.workspace.memories.read(filename, lines)


@verb(
    command="memory search",
    toolset="memory",
    title="Search memories",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.memories,
    about="find memories",
    examples=({"query": "token handling", "filter_tags": ["auth"], "filter_type": "plan"},),
)
def search_memories(
    ask: Ask,
    query: Query,
    limit: Limit = 5,
    filter_tags: AnyTag = None,
    filter_type: MemoryType = None,
    include_archived: Annotated[bool, Arg(help="archived memories too", flag="--archived")] = False,
    explain: Explain = False,
) -> MemoryHits:
    """Find what was decided, planned or learned before, by meaning, words and links. Call it when
    you start a task. A time in the query, such as "last week", counts. Returns memories with score,
    age, lines and why they matched.
    """
    return ask.workspace.memories.search(
        query,
        limit,
        tags=filter_tags or (),
        kind=filter_type,
        archived=include_archived,
        explain=explain,
    )


@verb(
    command="memory linked",
    toolset="memory",
    title="Search memories about a file",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.linked,
    about="find memories that link to a file",
    examples=({"query": "plans and known problems", "target_document": "src/auth.py"},),
)
def search_linked_memories(
    ask: Ask,
    query: Annotated[str, Arg(help="what to rank the memories by", command_default="")],
    target_document: Annotated[
        str, Arg(help="the file or document, such as src/auth.py", positional=True)
    ],
    limit: Limit = 5,
) -> LinkedHits:
    """Find memories that link to a source file or document. Call it before you change that file.
    Returns memories with the words around the link and the kind of link.
    """
    return ask.workspace.memories.linked(query, target_document, limit)


@verb(
    command="memory stats",
    toolset="memory",
    title="Count memories",
    effect="read",
    lanes=("memory",),
    text=present_memories.stats,
    about="count memories, tags and types",
)
def get_memory_stats(ask: Ask) -> Stats:
    """Count the memories, their tags and types. Call it to see which tags exist before you filter
    or write.
    """
    return ask.workspace.memories.stats()


@verb(
    command="memory merge",
    toolset="memory",
    title="Merge memories",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.merged,
    about="make one memory of several",
    examples=(
        {
            "source_files": ["a.md", "b.md"],
            "target_file": "auth.md",
            "summary_content": "# Auth …",
        },
    ),
)
def merge_memories(
    ask: Ask,
    source_files: Annotated[list[str], Arg(help="the memories to replace", positional=True)],
    target_file: Annotated[str, Arg(help="the memory to write", flag="--into", metavar="FILENAME")],
    summary_content: Annotated[str, Arg(help="what it says", flag="--content", text=True)],
    expected_version: ExpectedVersion = None,
) -> Merged:
    """Replace several memories by one that says what they say: read the sources, write the summary
    yourself. The sources go to the trash folder; either everything happens or nothing.
    """
    return ask.workspace.merges.merge(source_files, target_file, summary_content, expected_version)


@verb(
    command="memory suggest",
    toolset="memory",
    title="Suggest merges",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.clusters,
    about="list groups of similar memories",
)
def suggest_memory_merges(
    ask: Ask,
    threshold: Annotated[float, Arg(help="similarity from 0.0 to 1.0")] = 0.85,
    limit: Annotated[int, Arg(help="how many groups")] = 5,
    filter_type: Annotated[
        str | None, Arg(help='only this type; "all" for every type', flag="--type")
    ] = "journal",
) -> Clusters:
    """List groups of memories that say nearly the same and could become one; filter_type null means
    every type. Changes nothing: merge_memories does the merging.
    """
    kind = None if filter_type == ALL_TYPES else filter_type
    return ask.workspace.merges.suggest(threshold, limit, kind)


@verb(
    command="memory log",
    toolset="edit",
    title="List earlier texts",
    effect="read",
    lanes=("memory",),
    text=present_memories.revisions,
    about="list the earlier texts of memories, newest first",
    examples=({"filename": "auth-plan.md"},),
    shell_examples=("ragdocs memory log", "ragdocs memory log auth-plan.md --limit 50 --json"),
)
def memory_history(
    ask: Ask,
    filename: Annotated[
        str | None, Arg(help="one memory only, under all names it had", positional=True)
    ] = None,
    limit: Annotated[int, Arg(help="how many", command_default=20)] = 10,
) -> Revisions:
    """List the earlier texts of a memory, also under names it had before, or the latest changes of
    all memories. Call it before restore_memory, or to see what was changed and deleted lately.
    Returns for each change: when, which verb, the version that was replaced and the one it became.
    """
    return ask.workspace.versions.history(filename or "", limit)


@verb(
    command="memory restore",
    toolset="edit",
    title="Restore an earlier text",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_memories.saved,
    about="bring back an earlier text of a memory, or a deleted one",
    examples=({"filename": "auth-plan.md", "version": "3f2a9b8c7d6e5f4a"},),
)
def restore_memory(
    ask: Ask,
    filename: Filename,
    version: Annotated[
        str | None, Arg(help="a version; without it the latest replaced", positional=True)
    ] = None,
) -> Saved:
    """Bring back an earlier text of a memory, or a deleted memory: the version from memory_history,
    or the text before the last change. What is there now is kept in history too.
    """
    return ask.workspace.versions.restore(filename, version)


@verb(
    command="memory rename",
    toolset="edit",
    title="Rename a memory",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.renamed,
    about="give a memory another name and rewrite the links to it",
    examples=({"filename": "notes.md", "new_name": "auth/session-notes.md"},),
)
def rename_memory(
    ask: Ask,
    filename: Filename,
    new_name: Annotated[str, Arg(help="the new file name", positional=True)],
    expected_version: ExpectedVersion = None,
) -> Renamed:
    """Give a memory another name or folder and rewrite the links to it in all memories; either
    everything happens or nothing. Fails if the new name is taken. Returns how many links were
    rewritten in which files.
    """
    return ask.workspace.edits.rename(filename, new_name, expected_version)


@verb(
    command="memory diff",
    toolset="edit",
    title="Compare two texts",
    effect="read",
    lanes=("memory",),
    text=present_memories.difference,
    terminal=present_memories.coloured_difference,
    about="show what changed between two texts of a memory",
    examples=({"filename": "auth-plan.md"},),
    shell_examples=("ragdocs memory diff auth-plan.md 3f2a9b8c 77aa01bc",),
)
def diff_memory(
    ask: Ask,
    filename: Filename,
    before: Annotated[
        str | None,
        Arg(help="a version; without it the latest replaced", positional=True),
    ] = None,
    after: Annotated[
        str | None, Arg(help="another version; without it the current", positional=True)
    ] = None,
) -> Difference:
    """Show what changed between two texts of a memory, line by line. Call it to see what an edit
    did, or before restore_memory.
    """
    return ask.workspace.versions.diff(filename, before, after)


@verb(
    command="memory undo",
    toolset="edit",
    title="Undo the last change",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.undone,
    about="take back the last change of any memory, whole",
    shell_examples=("ragdocs memory undo", "ragdocs memory undo --json"),
)
def undo_memory_change(ask: Ask) -> Undone:
    """Take back the last change of any memory, whole: a merge, a rename, a deletion, an edit. Fails
    if somebody changed the same memories since.
    """
    return ask.workspace.versions.undo()


@verb(
    command="memory expire",
    toolset="entries",
    title="Clear out expired memories",
    effect="remove",
    role="writer",
    tool=False,
    lanes=("memory",),
    text=present_entries.expired,
    about="move memories whose expires_at has passed to the trash",
    shell_examples=(
        "ragdocs memory expire --dry-run",
        "ragdocs memory expire",
    ),
)
def expire_memories(
    ask: Ask, dry_run: Annotated[bool, Arg(help="only list them")] = False
) -> Expired:
    """Move memories whose expires_at has passed to the trash folder."""
    return ask.workspace.entry_care.expire(dry_run=dry_run)


@verb(
    command="memory review",
    toolset="entries",
    title="Review entries",
    effect="read",
    tool=False,
    lanes=("memory",),
    meaning=True,
    text=present_entries.reviewed,
    about="list entries that are old, never used or superseded",
    shell_examples=(
        "ragdocs memory review --limit 50",
        "ragdocs memory review --json | jq -r '.result[].id'",
    ),
)
def review_memories(ask: Ask, limit: Annotated[int, Arg(help="how many at most")] = 20) -> Reviewed:
    """List entries that are old, never used or replaced by a newer one. Nothing is changed."""
    return ask.workspace.entry_care.review(limit)
