"""Quality: why a search found a document, problems of texts, and whether the index is right."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, layout_quality, present_quality, verb
from ragdocs.serve.surface.quality_shapes import Explained, Linted, Verified

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
    about="why a search finds a document, or at which stage it drops out",
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
    return bool(answer["result"])


@verb(
    command="lint",
    toolset="quality",
    title="Find problems in texts",
    situation="texts that are missing from answers or lead nowhere",
    effect="read",
    lanes=LANES,
    text=present_quality.linted,
    columns=("path", "line", "problem"),
    failed=_has_problems,
    about="list what is wrong with documents and memories, and dead links in documents",
    examples=({}, {"secrets": True}),
)
def lint_texts(
    ask: Ask,
    secrets: Annotated[bool, Arg(help="look for secrets, also in earlier texts")] = False,
) -> Linted:
    """List what is wrong with documents and memories: broken frontmatter, unknown types, text that
    looks like a link, dead links of documents; or secrets that are written down. Returns path, line
    and problem; a secret itself is never shown.
    """
    from ragdocs.verbs.quality import lint

    places = ask.workspace.places
    problems: list[lint.Problem] = []
    if secrets:
        for place in places.values():
            problems += lint.leaks(place.corpus)
        return layout_quality.linted(problems, ask.room)
    for place in places.values():
        problems += lint.problems_of(place.corpus)
    if "docs" in places:
        corpora = [place.corpus for place in places.values()]
        problems += lint.dead_ends(ask.workspace.config.root, places["docs"].corpus, corpora)
    return layout_quality.linted(lint.by_path(problems), ask.room)


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
    about="prove that the index equals one built from the files alone",
)
def verify_index(ask: Ask) -> Verified:
    """Compare the index that answers now with one built from the files alone. Call it when answers
    contradict the files. Returns for each lane what was compared, the first difference, and the
    paths it is behind by.
    """
    from ragdocs.verbs.quality.health import verify

    workspace = ask.workspace
    lanes = {}
    for name, place in workspace.places.items():
        lanes[name] = verify(place.corpus, place.index.contents, partial(workspace.rebuilt, name))
    return layout_quality.verified(lanes)
