"""The start page: one box over all lanes, filters with counts, and reasons for every result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from ragdocs.errors import RagdocsError, ValidationError
from ragdocs.search.floor import FLOOR
from ragdocs.serve.live import Live
from ragdocs.serve.surface import bounds
from ragdocs.serve.web import results
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.view import environment, page, status_of

LIMIT = 8
# Rows of a facet that are always there, and those that are folded away.
MOST_ROWS = 6
MOST_MORE = 20
LANES = {
    "docs": "Documents",
    "sources": "Sources",
    "memory": "Memories",
    "journal": "Journal",
    "commits": "Commits",
}
PERIODS = {"today": "today", "7d": "last 7 days", "30d": "last 30 days"}
# What `explain` calls the stages of a search, in their order, and what the page calls them.
STAGES = ("indexed", "passes the filters", "candidate", "above the floor", "within the limit")
DROPPED_AT = {
    "not indexed": 0,
    "filtered": 1,
    "other words": 2,
    "not a candidate": 2,
    "below the floor": 3,
    "cut by limit": 4,
}
NOTHING: dict[str, Any] = {
    "result": [],
    "total": 0,
    "more": False,
    "next": None,
    "below": None,
    "facets": {},
    "passages": 0,
    "notes": [],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that the address of the page holds."""

    query: str = ""
    lanes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    path: str = ""
    since: str = ""
    status: str = ""
    offset: int = 0
    # The document that was expected.
    why: str = ""

    @classmethod
    def read(cls, given: QueryParams) -> State:
        """Read an address; a number that is none is as good as absent."""
        offset = given.get("offset", "")
        return cls(
            query=given.get("q", "").strip(),
            lanes=tuple(given.getlist("lane")),
            types=tuple(given.getlist("type")),
            tags=tuple(given.getlist("tag")),
            path=given.get("path", ""),
            since=given.get("since", ""),
            status=given.get("status", ""),
            offset=int(offset) if offset.isdecimal() else 0,
            why=given.get("why", "").strip(),
        )

    @property
    def is_start(self) -> bool:
        """Whether nothing is asked for."""
        return self == State(offset=self.offset)

    @property
    def has_filters(self) -> bool:
        """Whether something narrows the search."""
        return replace(self, query="", offset=0, why="") != State()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb."""
        lanes = self.lanes
        if self.is_start:
            lanes = ("memory",)
        return {
            "query": self.query,
            "lane": list(lanes),
            "limit": LIMIT,
            "tags": list(self.tags),
            "kinds": list(self.types),
            "path": self.path,
            "since": self.since,
            "status": self.status,
            "offset": self.offset,
            "explain": True,
        }

    def address(self, base: str) -> str:
        """Return the address that holds this."""
        pairs: list[tuple[str, object]] = [("q", self.query)]
        for name, values in (("lane", self.lanes), ("type", self.types), ("tag", self.tags)):
            pairs += [(name, value) for value in values]
        pairs += [("path", self.path), ("since", self.since), ("status", self.status)]
        pairs += [("offset", self.offset), ("why", self.why)]
        written = urlencode([(name, value) for name, value in pairs if value])
        if not written:
            return f"{base}/"
        return f"{base}/?{written}"


class Values:
    """The values that filters may have in this project, with how many documents have them.

    Read when a page is opened: their rows stay in place while the counts beside them change.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self.counts: Mapping[str, Mapping[str, int]] = {}

    async def read(self) -> None:
        """Count all documents."""
        answer = await ask(self._live, "search", query="", limit=1)
        self.counts = answer["facets"]


def routes(live: Live) -> list[BaseRoute]:
    """Return the page, and the part of it that changes with each key."""
    values = Values(live)

    async def show(request: Request) -> Response:
        view = await _view(request, live, values, is_whole=True)
        title = view["state"].query or "Search"
        return page(request, live, "search", title, view["http_status"], v=view)

    async def part(request: Request) -> Response:
        view = await _view(request, live, values, is_whole=not values.counts)
        template = environment().get_template("search-fragment.html")
        base = request.scope.get("root_path", "")
        return HTMLResponse(template.render(v=view, base=base), view["http_status"])

    return [Route("/", show), Route("/search-fragment", part)]


async def _view(request: Request, live: Live, values: Values, *, is_whole: bool) -> dict[str, Any]:
    """Return what the templates show."""
    base = request.scope.get("root_path", "")
    state = State.read(request.query_params)
    started = time.perf_counter()
    answer = NOTHING
    error = ""
    http_status = 200
    stages = None
    try:
        arguments = _checked(state)
        if is_whole:
            await values.read()
        if not state.is_start or "memory" in values.counts["lane"]:
            answer = await ask(live, "search", **arguments)
        elapsed = time.perf_counter() - started
        if state.why:
            stages = await _stages(live, state)
    except RagdocsError as failure:
        error = str(failure)
        http_status = status_of(failure)
        elapsed = time.perf_counter() - started
    marking = results.Marking.of(state.query)
    hits = [results.card_of(hit, marking, base) for hit in answer["result"]]
    below = answer["below"]
    if below is not None:
        below = results.card_of(below, marking, base)
    return {
        "state": state,
        "http_status": http_status,
        "error": error,
        "hits": hits,
        "below": below,
        "notes": answer["notes"],
        "total": answer["total"],
        "status_line": _status_line(state, answer, elapsed),
        "passages": answer["passages"],
        "lanes": _lanes(state, values, answer),
        "groups": _groups(state, values, answer),
        "has_memory": "memory" in values.counts.get("lane", {}),
        "memories": values.counts.get("lane", {}).get("memory", 0),
        "next": _turned(state, answer["next"], base),
        "previous": _previous(state, base),
        "stages": stages,
        "floor": FLOOR,
        "verdict": results.verdict,
        "example": 'create_memory(filename="retries.md", content="Why retries are few: …")',
    }


def _checked(state: State) -> dict[str, Any]:
    """Return the arguments of a search, unless they are larger than they can be meant."""
    arguments = state.arguments()
    bounds.check_options(arguments)
    bounds.check("why", state.why, bounds.NAME)
    for lane in state.lanes:
        if lane not in LANES:
            raise ValidationError(
                f"there is no lane {lane[:40]!r}", f"There are {', '.join(LANES)}"
            )
    return arguments


def _status_line(state: State, answer: Mapping[str, Any], seconds: float) -> str:
    total = answer["total"]
    single = "result"
    many = "results"
    if state.is_start:
        single = "memory"
        many = "memories"
    noun = single if total == 1 else many
    sign = "+" if answer["more"] else ""
    count = f"{total:,}{sign} {noun}, {len(answer['result'])} shown"
    if state.query and not total:
        count = "nothing relevant"
    parts = [count, f"{answer['passages']:,} passages", f"{seconds * 1000:.0f} ms"]
    return " · ".join(parts)


def _lanes(state: State, values: Values, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    counts = answer["facets"].get("lane", {})
    rows = []
    for name in values.counts.get("lane", {}):
        row = {
            "value": name,
            "label": LANES.get(name, name),
            "count": counts.get(name, 0),
            "is_set": not state.lanes or name in state.lanes,
        }
        rows.append(row)
    return rows


def _groups(state: State, values: Values, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the facets, each with rows that stay in place and rows that are folded away."""
    statuses = values.counts.get("status", {})
    groups = [
        _group("type", "Type", state.types, values, answer),
        _group("tag", "Tag", state.tags, values, answer),
        _group("path", "Path", (state.path,), values, answer, unset="anywhere"),
        _group("since", "Written", (state.since,), values, answer, unset="any time"),
    ]
    if len(statuses) > 1 or state.status:
        set_status = (state.status,)
        groups.append(
            _group("status", "Status", set_status, values, answer, unset="all but archived")
        )
    return groups


def _group(
    name: str,
    label: str,
    chosen: tuple[str, ...],
    values: Values,
    answer: Mapping[str, Any],
    *,
    unset: str = "",
) -> dict[str, Any]:
    """Return one facet; `unset` is the choice of no value, where only one can be chosen."""
    counts = answer["facets"].get(name, {})
    names = list(values.counts.get(name, {}))
    always = names[:MOST_ROWS]
    # What is chosen stays in sight, wherever it ranks.
    always += [value for value in chosen if value and value not in always]
    more = [value for value in {**counts, **dict.fromkeys(names)} if value not in always]
    rows = [_facet_row(name, value, counts, chosen) for value in always]
    folded = [_facet_row(name, value, counts, chosen) for value in more[:MOST_MORE]]
    return {"name": name, "label": label, "rows": rows, "more": folded, "unset": unset}


def _facet_row(
    name: str, value: str, counts: Mapping[str, int], chosen: tuple[str, ...]
) -> dict[str, Any]:
    label = value
    if name == "since":
        label = PERIODS.get(value, value)
    return {
        "value": value,
        "label": label,
        "count": counts.get(value, 0),
        "is_set": value in chosen,
    }


def _turned(state: State, offset: int | None, base: str) -> str:
    """Return the address of another page of results."""
    if offset is None:
        return ""
    return replace(state, offset=offset, why="").address(base)


def _previous(state: State, base: str) -> str:
    if not state.offset:
        return ""
    return _turned(state, max(0, state.offset - LIMIT), base)


async def _stages(live: Live, state: State) -> dict[str, Any]:
    """Return how far a document came in the search, stage by stage."""
    lane = "docs"
    path = state.why
    if path.startswith(".memories/"):
        lane = "memory"
    kind = None
    if state.types:
        kind = state.types[0]
    try:
        explained = await ask(
            live,
            "explain_search",
            query=state.query,
            path=path,
            lane=lane,
            limit=LIMIT,
            tags=list(state.tags),
            kind=kind,
        )
    except RagdocsError as failure:
        return {"steps": [], "verdict": str(failure), "missing": []}
    dropped = DROPPED_AT.get(explained["stage"], len(STAGES))
    steps = []
    for number, label in enumerate(STAGES):
        step = {"label": label, "mark": ""}
        if number < dropped:
            step["mark"] = "done"
        elif number == dropped:
            step = {"label": explained["why"], "mark": "stop"}
        steps.append(step)
    verdict = ""
    if dropped >= len(STAGES):
        verdict = explained["why"]
    return {"steps": steps, "verdict": verdict, "missing": explained["missing"]}
