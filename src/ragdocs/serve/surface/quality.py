"""Quality: why a search found a document, and whether the index is right."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, present_quality, verb
from ragdocs.verbs.shapes import Explained, Verified

LaneName = Literal["docs", "memory"]


@verb(
    command="explain",
    toolset="quality",
    title="Explain a search",
    effect="read",
    lanes=("docs", "memory"),
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
    return explain.explain(query, path, limit, tags=tags or (), kind=kind or "")


def _differs(answer: Verified) -> bool:
    return not answer["identical"]


@verb(
    command="verify",
    toolset="quality",
    title="Verify the index",
    effect="read",
    lanes=("docs", "memory", "journal", "commits"),
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
    identical = not any(lane["difference"] for lane in lanes.values())
    return Verified(identical=identical, lanes=lanes)
