"""Memories: writing, finding, changing and merging them, and their earlier texts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.flags import checked_words, compared, flags_of
from ragdocs.serve.surface.layouts import entries as layout_entries
from ragdocs.serve.surface.layouts import memories as layout_memories
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
from ragdocs.serve.surface.present import entries as present_entries
from ragdocs.serve.surface.present import memories as present_memories
from ragdocs.serve.surface.shapes import (
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
from ragdocs.serve.surface.shapes.entries import Expired, Reviewed

Content = Annotated[str, Arg(help="markdown", text=True)]
ALL_TYPES = "all"


@verb(
    command="memory create",
    toolset="memory",
    title="Create a memory",
    situation="a named document that will be read and changed again",
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
    filename: Annotated[str, Arg(help="new file name", positional=True)],
    content: Content,
    tags: Annotated[list[str], Arg(help="its tags", flag="--tag", command_default=())],
    memory_type: Annotated[
        str, Arg(help="journal, plan, fact, observation, reflection", flag="--type")
    ] = "journal",
) -> Saved:
    """Create a named document that will be read and changed again, such as a plan. For a
    single note use remember. Link files as [[src/auth.py]].

    Fails if the file exists. Links in the text make the memory turn up for those files.
    """
    memory = ask.workspace.memories.create(filename, content, tags, memory_type)
    return layout_memories.saved(memory)


@verb(
    command="memory update",
    toolset="memory",
    title="Replace a memory",
    situation="a new text of it",
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
    """Replace a memory's whole text, frontmatter included. Read it first; to change a part, use
    edit_memory.

    `expected_version` (from read_memory) refuses the write if somebody changed the memory
    meanwhile.
    """
    memory = ask.workspace.memories.update(filename, content, expected_version)
    return layout_memories.saved(memory)


@verb(
    command="memory append",
    toolset="memory",
    title="Append to a memory",
    situation="progress at its end",
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
    """Add a paragraph to the end of a memory, such as progress on a plan."""
    memory = ask.workspace.memories.append(filename, content, expected_version)
    return layout_memories.saved(memory)


@verb(
    command="memory edit",
    toolset="memory",
    title="Change a part of a memory",
    situation="a changed part",
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
    text: Annotated[str | None, Arg(help="the new text", text=True)] = None,
    find: Annotated[str | None, Arg(help="the exact passage")] = None,
    section: Annotated[str | None, Arg(help="its heading")] = None,
    mode: Annotated[
        Literal["replace", "replace_all", "append", "prepend"], Arg(help="how to use `text`")
    ] = "replace",
    fields: Annotated[
        dict[str, Any] | None,
        Arg(help="frontmatter to set; an empty value removes", flag="--field", metavar="KEY=VALUE"),
    ] = None,
    expected_version: ExpectedVersion = None,
) -> Edited:
    """Change a part of a memory. `text` replaces the passage that `find` quotes, or a whole
    section, or goes before or after it.

    The rest stays as it is. Returns the changed lines.
    """
    from ragdocs.verbs.memories.revise import Edit

    edit = Edit(text, find, section, mode, fields)
    return layout_memories.edited(ask.workspace.edits.edit(filename, edit, expected_version))


@verb(
    command="memory delete",
    toolset="memory",
    title="Delete a memory",
    situation="a wrong one",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.deleted,
    about="move a memory to the trash",
)
def delete_memory(
    ask: Ask, filename: Filename, expected_version: ExpectedVersion = None
) -> Deleted:
    """Move a wrong or obsolete memory to the trash.

    The answer says where it went.
    """
    return layout_memories.deleted(ask.workspace.memories.delete(filename, expected_version))


@verb(
    command="memory read",
    toolset="memory",
    title="Read a memory",
    situation="one you know by name",
    effect="read",
    lanes=("memory",),
    text=present_memories.memory,
    about="print a memory",
    examples=({"filename": "auth-plan.md"},),
)
def read_memory(ask: Ask, filename: Filename, lines: Lines = None) -> MemoryText:
    """Read a memory by name, with its frontmatter and version.

    update_memory and the other writing tools can check the version.
    """
    memory = ask.workspace.memories.read(filename, lines)
    answer = layout_memories.text(memory, ask.room)
    document = ask.workspace.corpus("memory").get(memory.path)
    if document is not None and document.version == memory.source.version:
        answer = compared(ask, [document]).add(answer, document)
        check = ask.workspace.living.drift.check(document)
        if check is not None:
            answer["verified"] = checked_words(check)
        successors = ask.workspace.memories.successors(document)
        if successors:
            answer["superseded_by"] = [successor.id for successor in successors]
    return answer


@verb(
    command="memory search",
    toolset="memory",
    title="Search memories",
    situation="what was decided or learned",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.memories,
    columns=("memory_id", "type", "tags", "age", "score", "title", "lines"),
    about="find memories",
    examples=({"query": "token handling", "filter_tags": ["auth"], "filter_type": "plan"},),
)
def search_memories(
    ask: Ask,
    query: Query,
    limit: Limit = 5,
    filter_tags: AnyTag = None,
    filter_type: MemoryType = None,
    include_archived: Annotated[bool, Arg(help="archived too", flag="--archived")] = False,
    explain: Explain = False,
) -> MemoryHits:
    """Answer a question from the memories: what was decided, planned or learned, and why.

    Memories match by meaning, words and links. A time in the query, such as "last week", counts.
    Each result has its score, age, lines and the reason why it matched.
    """
    memories = ask.workspace.memories
    findings = memories.search(
        query,
        limit,
        tags=filter_tags or (),
        kind=filter_type,
        archived=include_archived,
    )
    if not filter_tags and not filter_type:
        ask.note_question(query, findings.hits)
    flags = flags_of(ask, [hit.document for hit in findings.hits])
    return layout_memories.hits(
        findings, memories.locate, ask.room, ask.now, flags, explain=explain
    )


@verb(
    command="memory linked",
    toolset="memory",
    title="Search memories about a file",
    situation="a file you are about to edit",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.linked,
    columns=("memory_id", "edge_type", "age", "score", "title", "lines"),
    about="find memories that link to a file",
    examples=({"query": "plans and known problems", "target_document": "src/auth.py"},),
)
def search_linked_memories(
    ask: Ask,
    query: Annotated[str, Arg(help="what to rank by", command_default="")],
    target_document: Annotated[str, Arg(help="such as src/auth.py", positional=True)],
    limit: Limit = 5,
) -> LinkedHits:
    """Find memories that link to a file. Call it before you change that file.

    A document can be named like a file. Returns memories with the words around the link and the
    kind of link.
    """
    memories = ask.workspace.memories
    findings = memories.linked(query, target_document, limit)
    flags = flags_of(ask, [hit.document for hit in findings.hits])
    return layout_memories.linked(findings, memories.locate, ask.room, ask.now, flags)


@verb(
    command="memory stats",
    toolset="memory",
    title="Count memories",
    situation="the tags in use",
    effect="read",
    lanes=("memory",),
    text=present_memories.stats,
    about="count memories, tags and types",
)
def get_memory_stats(ask: Ask) -> Stats:
    """Count memories, tags and types, to see which exist."""
    return layout_memories.stats(ask.workspace.memories.stats(), ask.room)


@verb(
    command="memory merge",
    toolset="memory",
    title="Merge memories",
    situation="making one of several",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.merged,
    about="merge several memories into one",
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
    source_files: Annotated[list[str], Arg(help="memories to replace", positional=True)],
    target_file: Annotated[str, Arg(help="memory to write", flag="--into", metavar="FILENAME")],
    summary_content: Annotated[str, Arg(help="its text", flag="--content", text=True)],
    expected_version: ExpectedVersion = None,
    source_versions: Annotated[
        list[str] | None,
        Arg(
            help="refuse other versions of the source files, in their order",
            flag="--source-version",
            metavar="VERSION",
            only="people",
        ),
    ] = None,
    dry_run: Annotated[bool, Arg(help="only show the diff")] = False,
) -> Merged:
    """Replace several memories by one text. Read them first; they go to the trash.

    Either everything happens or nothing.
    """
    memory = ask.workspace.merges.merge(
        source_files,
        target_file,
        summary_content,
        expected_version,
        source_versions or (),
        dry_run=dry_run,
    )
    return layout_memories.merged(memory, ask.room)


@verb(
    command="memory suggest",
    toolset="memory",
    title="Suggest merges",
    situation="repetitions",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_memories.clusters,
    about="list groups of similar memories",
)
def suggest_memory_merges(
    ask: Ask,
    threshold: Annotated[float, Arg(help="similarity, 0 to 1")] = 0.85,
    limit: Annotated[int, Arg(help="how many")] = 5,
    filter_type: Annotated[str | None, Arg(help="one type, or all", flag="--type")] = "journal",
    drafts: Annotated[bool, Arg(help="with merged texts")] = False,
) -> Clusters:
    """List memories that say nearly the same, for merge_memories.

    Changes nothing. filter_type null means every type, as "all" does. A draft has the sections of
    all memories, each sentence once, contradictions next to each other, and footnotes with dates.
    """
    kind = None if filter_type == ALL_TYPES else filter_type
    suggestions = ask.workspace.merges.suggest(threshold, limit, kind, drafts=drafts)
    return layout_memories.clusters(suggestions, ask.room)


@verb(
    command="memory log",
    toolset="edit",
    title="List earlier texts",
    situation="the texts a memory had",
    effect="read",
    lanes=("memory",),
    text=present_memories.revisions,
    columns=("filename", "version", "verb", "age", "size", "became"),
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
    history = ask.workspace.versions.history(filename or "", limit)
    return layout_memories.revisions(history, ask.room, ask.now)


@verb(
    command="memory restore",
    toolset="edit",
    title="Restore an earlier text",
    situation="bringing one back",
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
    return layout_memories.saved(ask.workspace.versions.restore(filename, version))


@verb(
    command="memory rename",
    toolset="edit",
    title="Rename a memory",
    situation="another file name",
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
    memory = ask.workspace.edits.rename(filename, new_name, expected_version)
    return layout_memories.renamed(memory, ask.room)


@verb(
    command="memory diff",
    toolset="edit",
    title="Compare two texts",
    situation="what changed between two texts",
    effect="read",
    lanes=("memory",),
    text=present_memories.difference,
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
    return layout_memories.difference(ask.workspace.versions.diff(filename, before, after))


@verb(
    command="memory undo",
    toolset="edit",
    title="Undo the last change",
    situation="taking back the last change",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_memories.undone,
    about="take back your last change of any memory, completely",
    shell_examples=("ragdocs memory undo", "ragdocs memory undo --json"),
)
def undo_memory_change(
    ask: Ask,
    expected_version: Annotated[
        str | None,
        Arg(
            help="only the change to this version",
            flag="--expect",
            metavar="VERSION",
        ),
    ] = None,
) -> Undone:
    """Take back your last change of any memory, whole: a merge, a rename, a deletion, an edit.
    Fails if somebody changed the same memories since.
    """
    return layout_memories.undone(ask.workspace.versions.undo(expected_version))


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
    return layout_entries.expired(ask.workspace.entry_care.expire(dry_run=dry_run))


@verb(
    command="memory review",
    toolset="entries",
    title="Review entries",
    effect="read",
    tool=False,
    lanes=("memory",),
    meaning=True,
    text=present_entries.reviewed,
    columns=("id", "reasons", "age", "preview"),
    about="list entries that are old, never used or superseded",
    shell_examples=(
        "ragdocs memory review --limit 50",
        "ragdocs memory review --json | jq -r '.result[].id'",
    ),
)
def review_memories(ask: Ask, limit: Annotated[int, Arg(help="how many at most")] = 20) -> Reviewed:
    """List entries that are old, never used or replaced by a newer one. Nothing is changed."""
    return layout_entries.reviewed(ask.workspace.entry_care.review(limit), ask.now)
