"""Quality: why a search found a document, what is wrong with texts, and whether the index is right."""

from __future__ import annotations

from typing import Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, present_quality, verb
from ragdocs.verbs.shapes import Explained

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
