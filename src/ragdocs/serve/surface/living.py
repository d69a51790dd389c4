"""Living links: memories whose files changed, and texts that a change concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from ragdocs.errors import ValidationError
from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.layouts import living as layout_living
from ragdocs.serve.surface.parameters import ExpectedVersion, Filename
from ragdocs.serve.surface.present import living as present_living
from ragdocs.serve.surface.shapes.living import (
    AffectedAnswer,
    DriftReview,
    RelinkedShape,
    VerifiedShape,
)
from ragdocs.verbs import page

if TYPE_CHECKING:
    from ragdocs.verbs.living.changes import Diff, Diffs

LANES = ("docs", "memory")
# Passages of a report, which no model has to read.
MOST_REPORTED = 200
REPORT_CHARS = 200_000


@verb(
    command="memory verify",
    toolset="quality",
    title="Verify a memory",
    situation="a memory that you found to be still true",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_living.verified,
    about="confirm a memory: its links are compared with today's files from now on",
    examples=({"filename": "auth-plan.md"},),
)
def verify_memory(
    ask: Ask,
    filename: Filename,
    in_file: Annotated[
        bool, Arg(help="also write verified_at and verified_by into its frontmatter")
    ] = False,
) -> VerifiedShape:
    """Note that a memory is still true today, after you compared it with what it links to. Its
    links then count as unchanged until their files change again.

    The note is local to this working copy; `in_file` writes it into the memory, for everybody.
    """
    drift = ask.workspace.living.drift
    warnings: list[str] = []
    if in_file:
        from ragdocs.serve.surface import layouts
        from ragdocs.verbs.living.drift import author
        from ragdocs.verbs.memories.revise import Edit

        fields = {"verified_at": layouts.iso(ask.now), "verified_by": author()}
        edited = ask.workspace.edits.edit(filename, Edit(fields=fields))
        warnings = layouts.removed(edited.written)
    return layout_living.verified(drift.verify(filename, _memory(ask)), warnings)


@verb(
    command="memory relink",
    toolset="quality",
    title="Update moved links",
    situation="a memory whose linked files were renamed",
    effect="replace",
    role="writer",
    lanes=("memory",),
    text=present_living.relinked,
    about="update links of a memory whose files were moved or renamed",
    examples=({"filename": "auth-plan.md"},),
)
def update_links(
    ask: Ask, filename: Filename, expected_version: ExpectedVersion = None
) -> RelinkedShape:
    """Rewrite the links of a memory whose files, sections or definitions moved, and nothing else.
    undo_memory_change takes it back.
    """
    relinks = ask.workspace.living.relinks
    return layout_living.relinked(relinks.update(filename, _memory(ask), expected_version or ""))


@verb(
    command="drift",
    toolset="quality",
    title="Review drift",
    situation="memories whose files changed since",
    effect="read",
    lanes=LANES,
    text=present_living.drift_review,
    columns=("filename", "weight", "title", "verified"),
    about="list memories whose linked files changed, moved or are missing, worst first",
    examples=({}, {"filename": "auth-plan.md"}),
)
def review_drift(
    ask: Ask,
    filename: Annotated[str | None, Arg(help="one memory only", positional=True)] = None,
    limit: Annotated[int, Arg(help="how many memories", command_default=20)] = 5,
    diff: Annotated[
        Literal["show", "hide"], Arg(help="whether to show what changed in the files")
    ] = "show",
) -> DriftReview:
    """List memories whose linked files, sections or definitions changed, moved or are missing since
    the memory was written or verified, worst first, with what changed. Correct them, or call
    verify_memory for those that are still true.
    """
    page.check_listed(limit)
    drift = ask.workspace.living.drift
    memories = drift.drifted(_memory(ask), filename or "")
    differ = None
    if diff == "show":
        differ = drift.difference
    return layout_living.drift_review(memories, limit, differ, ask.room, ask.now)


@verb(
    command="affected",
    toolset="quality",
    title="List affected texts",
    situation="what a change makes outdated, before you commit it",
    effect="read",
    lanes=LANES,
    text=present_living.affected,
    columns=("location", "line", "header_path", "reasons"),
    formats={"markdown": present_living.markdown, "sarif": present_living.sarif},
    about="list memories, decisions and documentation that mention what a diff changes",
    examples=({}, {"staged": True}, {"revisions": "main...HEAD"}, {"files": ["src/auth.py"]}),
    shell_examples=("ragdocs affected origin/main...HEAD --report markdown",),
)
def affected_texts(
    ask: Ask,
    revisions: Annotated[
        str | None,
        Arg(help="A..B or A...B; else what is uncommitted", positional=True),
    ] = None,
    staged: Annotated[bool, Arg(help="what the next commit would change")] = False,
    files: Annotated[
        list[str] | None, Arg(help="these files, as if all of them changed", flag="--file")
    ] = None,
    limit: Annotated[int, Arg(help="how many passages", command_default=50)] = 20,
    report: Annotated[
        Literal["text", "markdown", "sarif"],
        Arg(help="markdown for a pull request, sarif for code scanning", only="people"),
    ] = "text",
) -> AffectedAnswer:
    """List memories, decisions, conventions and sections of the documentation that speak about what
    a change concerns: by links, impacted paths, mentioned paths, and headings or definitions that
    were renamed or removed. Call it before you commit, and correct what is outdated.
    """
    page.check_listed(limit)
    texts = ask.workspace.living.affected
    outcome = texts.by(_changes(texts.diffs, revisions, staged, files))
    locate = ask.workspace.finding.location
    if report == "text":
        return layout_living.affected(outcome, locate, limit, ask.room)
    answer = layout_living.affected(outcome, locate, MOST_REPORTED, REPORT_CHARS)
    write = present_living.markdown if report == "markdown" else present_living.sarif
    answer["report"] = write(answer)
    return answer


def _memory(ask: Ask) -> str:
    """Return the lane of memories, or say why it is closed."""
    return ask.workspace.corpus("memory").lane.name


def _changes(diffs: Diffs, revisions: str | None, staged: bool, files: list[str] | None) -> Diff:
    """Return the changes that are asked about, of one kind."""
    if sum(map(bool, (revisions, staged, files))) > 1:
        raise ValidationError("revisions, staged and files cannot be combined", "Give one of them")
    if files:
        return diffs.named(files)
    if staged:
        return diffs.staged()
    if revisions:
        return diffs.between(revisions)
    return diffs.uncommitted()
