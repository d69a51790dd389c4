"""Finding: one search over all lanes, or over one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ragdocs.errors import ValidationError
from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.docs import search_docs
from ragdocs.serve.surface.layouts import finding as layout_finding
from ragdocs.serve.surface.memories import search_memories
from ragdocs.serve.surface.parameters import AnyTag, Explain, Limit, Query, Since
from ragdocs.serve.surface.present import finding as present_finding
from ragdocs.verbs import page

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

NO_QUESTION = (
    f'{page.NO_QUERY}. {page.WHAT_TO_ASK}, such as `ragdocs search "how are tokens refreshed"`. '
    "`ragdocs recall` lists the latest memories"
)
LANES = ("docs", "sources", "memory", "journal", "commits")
LaneName = Literal["docs", "sources", "memory", "journal", "commits", "all"]
# Lanes whose own search answers a command that names them alone, in the shape that it always had.
OWN_SEARCHES = (["docs"], ["memory"])


@verb(
    command="search",
    toolset="docs",
    title="Search all lanes",
    effect="read",
    tool=False,
    page=True,
    lanes=LANES,
    meaning=True,
    text=present_finding.by_lane,
    about="search the documentation, the memories and what else is turned on",
    examples=(
        {"query": "how are tokens refreshed"},
        {"query": "auth", "lane": ["memory"], "explain": True},
        {"query": "retries", "tags": ["billing"], "since": "7d"},
    ),
)
def search(
    ask: Ask,
    query: Query,
    lane: Annotated[
        list[LaneName] | None, Arg(help="where to look, if not in all lanes", metavar="LANE")
    ] = None,
    limit: Limit = 5,
    tags: AnyTag = None,
    kinds: Annotated[
        list[str] | None, Arg(help="only memories of this type", flag="--type", metavar="TYPE")
    ] = None,
    path: Annotated[str, Arg(help="only below this folder, such as docs/api")] = "",
    since: Since = None,
    status: Annotated[str, Arg(help='only with this status, such as archived; "all" for any')] = "",
    archived: Annotated[bool, Arg(help="archived memories too")] = False,
    offset: Annotated[int, Arg(help="how many results to pass over", metavar="COUNT")] = 0,
    source: Annotated[
        str,
        Arg(
            help='only this source of documentation; "project" for its own',
            metavar="NAME",
            only="command",
        ),
    ] = "",
    explain: Explain = False,
) -> dict[str, Any]:
    """Search the documentation, the memories, the journal and the commits at once, by meaning,
    words and links. Returns passages of all lanes in one order, and how many there are for each
    value of each filter.
    """
    lanes = _lanes(lane, source)
    if ask.rim == "command" and lanes in OWN_SEARCHES:
        _refuse(lanes[0], since, status, offset)
        if lanes == ["docs"]:
            return dict(search_docs(ask, query, limit, path, tags, source, explain))
        return dict(search_memories(ask, query, limit, tags, _single(kinds), archived, explain))
    if ask.rim == "command" and not query.strip():
        return _nothing(ask)
    workspace = _opened(ask, lanes)
    filters = layout_finding.filters(lanes, kinds, tags, path, since, _status(status, archived))
    result = workspace.finding.search(query, filters, limit, offset)
    if not offset and not any((lanes, kinds, tags, path, since, status)):
        ask.note_question(query, [lane_hit.hit for lane_hit in result.hits])
    answer = layout_finding.page_of_hits(result, workspace.finding.location, ask, offset, explain)
    for closed in workspace.closed.values():
        answer["notes"].append(str(closed))
    if not answer["result"]:
        answer["notes"] += _empty_notes(ask)
    return answer


def _nothing(ask: Ask) -> dict[str, Any]:
    """Answer a command without a question: pages list the newest then, beside their filters."""
    from ragdocs.verbs.finding import Found

    nothing = Found(hits=(), total=0, notes=(NO_QUESTION,))
    return layout_finding.page_of_hits(
        nothing, ask.workspace.finding.location, ask, 0, explain=False
    )


def _lanes(chosen: Sequence[LaneName] | None, source: str) -> list[LaneName]:
    """Return the lanes that are searched, empty for all; only documentation has sources."""
    lanes: list[LaneName] = [name for name in chosen or () if name != "all"]
    if source and not lanes:
        return ["docs"]
    return lanes


def _opened(ask: Ask, lanes: Sequence[LaneName]) -> Workspace:
    """Return the workspace; a lane that was asked for by name and cannot be searched says why."""
    for name in lanes:
        ask.workspace.corpus(name)
    return ask.workspace


def _empty_notes(ask: Ask) -> list[str]:
    """Tell a person what could have been found, if more were configured."""
    if ask.rim != "command":
        return []
    from ragdocs.serve import outside

    return list(outside.empty_notes(ask.workspace, wait=True))


def _refuse(lane: str, *options: object) -> None:
    """Refuse options that the own search of a lane does not have."""
    if any(options):
        raise ValidationError(
            "--since, --status and --offset are for a search of all lanes",
            f"Leave out --lane {lane}, or those options",
        )


def _status(status: str, archived: bool) -> str:
    if archived and not status:
        return "all"
    return status


def _single(kinds: list[str] | None) -> str | None:
    """Return the only type that was asked for; the memories' own search takes one."""
    if not kinds:
        return None
    if len(kinds) > 1:
        raise ValidationError(
            "--lane memory takes one --type", "Leave out --lane memory to search for several"
        )
    return kinds[0]
