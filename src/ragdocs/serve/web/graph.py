"""The page of the graph: memories, documents and link targets around one of them or a filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.web import graph_drawing, graph_layout
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.view import page

# Nodes at first, how many more each time, and the most.
FIRST = 60
MORE = 60
MOST = 300
# Neighbours of the node in the middle; the first look shows as many of the most linked nodes.
MOST_STEPS = 4
LISTED = 12
MOST_NEIGHBOURS = 30
# Tags and types that can be chosen in a list; an address may name any other.
MOST_CHOICES = 40
FILTERS = ("tag", "type", "path")


def routes(live: Live) -> list[BaseRoute]:
    """Return the page."""

    async def show(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        query = request.query_params
        arguments = _arguments(query)
        problem = ""
        status = 200
        try:
            graph = await ask(live, "link_graph", **arguments)
        except RagdocsError as error:
            problem = str(error)
            status = 404
            graph = await ask(live, "link_graph", limit=FIRST)
        parameters = dict(query)
        parameters.pop("as", None)
        is_table = query.get("as") == "table"
        nodes = _nodes(graph, base)
        drawing = None
        if nodes and not is_table:
            draw = partial(graph_drawing.draw, nodes, graph["edges"])
            drawing = await anyio.to_thread.run_sync(draw)
        return page(
            request,
            live,
            "graph",
            "Graph",
            status,
            nodes=nodes,
            drawing=drawing,
            centre=_centre(graph["centre"], base),
            most_linked=sorted(nodes, key=lambda node: -node["links"])[:LISTED],
            total=graph["total"],
            omitted=graph["omitted"],
            more=_more(query, graph),
            steps=arguments["steps"],
            chosen={name: query.get(name, "") for name in (*FILTERS, "around")},
            ghosts=arguments["ghosts"] == "show",
            facets=await _facets(live),
            size=(graph_layout.WIDTH, graph_layout.HEIGHT),
            is_table=is_table,
            as_table=urlencode({**parameters, "as": "table"}),
            as_graph=urlencode(parameters),
            problem=problem,
        )

    return [Route("/graph", show)]


def _arguments(query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the address of the page asks for; numbers that make no sense are left out."""
    tags = None
    if query.get("tag"):
        tags = [query["tag"]]
    # A form without its box sends nothing: the hidden field beside it says that it was a form.
    is_unchecked = "form" in query and "ghosts" not in query
    ghosts = "show"
    if is_unchecked or query.get("ghosts") == "hide":
        ghosts = "hide"
    return {
        "around": query.get("around") or None,
        "steps": _number(query.get("steps", ""), 2, MOST_STEPS),
        "tags": tags,
        "kind": query.get("type") or None,
        "path": query.get("path", ""),
        "ghosts": ghosts,
        "limit": _number(query.get("limit", ""), FIRST, MOST),
    }


def _number(text: str, default: int, most: int) -> int:
    if not text.isdecimal():
        return default
    return max(1, min(most, int(text[:6])))


def address(base: str, lane: str, path: str) -> str:
    """Return the page of a text, or nothing for a target that is not indexed."""
    if not lane:
        return ""
    return f"{base}/text/{lane}/{quote(path)}"


def _nodes(graph: Any, base: str) -> list[dict[str, Any]]:
    """Return the nodes with the pages of their texts."""
    nodes = []
    for node in graph["nodes"]:
        nodes.append({**node, "address": address(base, node["lane"], node["path"])})
    return nodes


def _centre(centre: Any, base: str) -> Any:
    if centre is None:
        return None
    neighbours = []
    for neighbour in centre["neighbours"][:MOST_NEIGHBOURS]:
        around = urlencode({"around": neighbour["id"]})
        neighbours.append({**neighbour, "address": f"{base}/graph?{around}"})
    return {
        **centre,
        "address": address(base, centre["lane"], centre["path"]),
        "neighbours": neighbours,
        "unlisted": len(centre["neighbours"]) - len(neighbours),
    }


def _more(query: Mapping[str, str], graph: Any) -> str:
    """Return the query of the page with more nodes, or nothing if all are shown or it is full."""
    count = len(graph["nodes"])
    if not graph["omitted"] or count >= MOST:
        return ""
    return urlencode({**query, "limit": min(MOST, count + MORE)})


async def _facets(live: Live) -> dict[str, list[str]]:
    """Return the tags and types that a person can choose."""
    try:
        stats = await ask(live, "get_memory_stats")
    except RagdocsError:
        # A project without memories still has documents.
        return {"tag": [], "type": []}
    return {
        "tag": list(stats["tags"])[:MOST_CHOICES],
        "type": list(stats["types"])[:MOST_CHOICES],
    }
