"""Quality: why a search found a document, problems of texts, and whether the index is right."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from ragdocs.errors import ForbiddenError
from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.layouts import quality as layout_quality
from ragdocs.serve.surface.present import quality as present_quality
from ragdocs.serve.surface.present import reports
from ragdocs.serve.surface.shapes.quality import Explained, Linted, Verified

if TYPE_CHECKING:
    from ragdocs.verbs.quality.lint import Problem

REPAIR = "ragdocs lint --fix --dry-run"
LaneName = Literal["docs", "sources", "memory"]
LANES = ("docs", "sources", "memory", "journal", "commits")


@verb(
    command="explain",
    toolset="quality",
    title="Explain a search",
    situation="a document that a search should have found",
    effect="read",
    lanes=("docs", "sources", "memory"),
    meaning=True,
    text=present_quality.explained,
    about="explain why a search finds a document, or at which stage it drops out",
    examples=({"query": "how are tokens refreshed", "path": "docs/auth.md"},),
)
def explain_search(
    ask: Ask,
    query: Annotated[str, Arg(help="what was searched for", positional=True)],
    path: Annotated[str, Arg(help="the document that was expected", positional=True)],
    lane: Annotated[LaneName, Arg(help="where it is")] = "docs",
    limit: Annotated[int, Arg(help="how many results were asked for")] = 5,
    tags: Annotated[
        list[str] | None, Arg(help="tags that were asked for", flag="--tag", only="command")
    ] = None,
    kind: Annotated[
        str | None, Arg(help="the type of memory that was asked for", flag="--type", only="command")
    ] = None,
) -> Explained:
    """Tell why a search finds a document, or at which stage it drops out: not indexed, filtered,
    other words, not a candidate, below the floor, cut by limit. Call it when a result that you
    expected is missing. Returns the stage, the reason, its place and score, and what words and
    meaning say of its best passage.
    """
    explain = ask.workspace.explain(lane)
    explanation = explain.explain(query, path, limit, tags=tags or (), kind=kind or "")
    return layout_quality.explained(explanation)


def _has_problems(answer: Linted) -> bool:
    return any(row["level"] != "note" for row in answer["result"])


@verb(
    command="lint",
    toolset="quality",
    title="Find problems in texts",
    situation="texts that are missing from answers or lead nowhere",
    effect="read",
    lanes=LANES,
    text=present_quality.linted,
    columns=("path", "line", "level", "rule", "problem"),
    formats={"github": reports.github, "sarif": reports.sarif},
    failed=_has_problems,
    about="list what is wrong with documents and memories, and repair what is safe to repair",
    examples=({}, {"secrets": True}),
    shell_examples=(
        "ragdocs lint --fix --dry-run",
        "ragdocs lint --fix",
        "ragdocs lint --format sarif > ragdocs.sarif",
    ),
)
def lint_texts(
    ask: Ask,
    secrets: Annotated[bool, Arg(help="look for secrets, also in earlier texts")] = False,
    fix: Annotated[
        bool, Arg(help="repair memories where it is safe, as one change", only="command")
    ] = False,
    dry_run: Annotated[
        bool, Arg(help="with --fix: show a diff and change nothing", only="command")
    ] = False,
) -> Linted:
    """List what is wrong with documents and memories: broken frontmatter, unknown types, text that
    looks like a link, dead links of documents, memories that contradict each other; or secrets that
    are written down. Returns path, line and problem; a secret itself is never shown.
    """
    from ragdocs.verbs.quality import lint

    if secrets:
        leaks: list[lint.Problem] = []
        for open_lane in ask.workspace.open_lanes.values():
            leaks += lint.leaks(open_lane.corpus)
        return layout_quality.linted(leaks, ask.room)
    if fix:
        # Memories are repaired: a lane that is not open says why, and how to open it.
        ask.workspace.corpus("memory")
    if "memory" not in ask.workspace.open_lanes:
        return layout_quality.linted(_problems(ask), ask.room)
    repairs = ask.workspace.tidying.repairs
    if not fix:
        # What can be repaired is looked for before the problems, as it would be repaired.
        count = len(repairs.plan())
        notes = []
        if count:
            notes.append(f"repairs are possible in {count} of the memories; `{REPAIR}` shows them")
        return layout_quality.linted(_problems(ask), ask.room, notes)
    if not dry_run and ask.role == "reader":
        raise ForbiddenError("repairs are for writers, and you are a reader", "Add --dry-run")
    repaired = repairs.make(dry_run=dry_run)
    answer = layout_quality.linted(_problems(ask), ask.room)
    locate = ask.workspace.corpus("memory").store.locate
    return layout_quality.repaired(answer, repaired, locate, ask.room)


def _problems(ask: Ask) -> list[Problem]:
    """List the problems of all lanes that are open."""
    from ragdocs.verbs.quality import lint

    open_lanes = ask.workspace.open_lanes
    problems: list[Problem] = []
    for open_lane in open_lanes.values():
        problems += lint.problems_of(open_lane.corpus)
    if "docs" in open_lanes:
        corpora = [open_lane.corpus for open_lane in open_lanes.values()]
        problems += lint.dead_ends(ask.workspace.config.root, open_lanes["docs"].corpus, corpora)
    if "memory" in open_lanes:
        problems += lint.contradictions(ask.workspace.tidying.contradictions)
    return lint.by_path(problems)


def _differs(answer: Verified) -> bool:
    return not answer["identical"]


@verb(
    command="verify",
    toolset="quality",
    title="Verify the index",
    situation="answers that contradict the files",
    effect="read",
    lanes=LANES,
    # As it is: an index that was brought up to date first could not be seen to be behind.
    current=False,
    text=present_quality.verified,
    failed=_differs,
    about="compare the index with one built from the files alone",
)
def verify_index(ask: Ask) -> Verified:
    """Compare the index that answers now with one built from the files alone. Call it when answers
    contradict the files. Returns for each lane what was compared, the first difference, and the
    paths it is behind by.
    """
    from ragdocs.verbs.quality.health import verify

    workspace = ask.workspace
    lanes = {}
    for name, open_lane in workspace.open_lanes.items():
        lanes[name] = verify(
            open_lane.corpus, open_lane.index.contents, partial(workspace.rebuilt, name)
        )
    return layout_quality.verified(lanes)
