"""The page of what happened: days and sessions of work on the memories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.graph import address
from ragdocs.serve.web.view import page, status_of

EVENTS_A_PAGE = 50
MOST_OFFSET = 1_000_000
# The sign and the word of each kind of change.
WORDS = {
    "create": ("+", "remembered"),
    "written": ("+", "written"),
    "update": ("~", "changed"),
    "append": ("~", "added to"),
    "edit": ("~", "changed"),
    "merge": ("⇒", "merged"),
    "rename": ("→", "renamed"),
    "delete": ("\N{MINUS SIGN}", "removed"),
    "restore": ("↺", "restored"),
    "undo": ("↶", "undone"),
}
PERIODS = (("today", "Today"), ("7d", "7 days"), ("30d", "30 days"))
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def routes(live: Live) -> list[BaseRoute]:
    """Return the page."""

    async def show(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        query = request.query_params
        since = query.get("since", "")
        until = query.get("until", "")
        offset = _offset(query.get("offset", ""))
        problem = ""
        status = 200
        timeline: Any = {"days": [], "omitted": 0}
        try:
            timeline = await ask(
                live,
                "memory_timeline",
                since=since or None,
                until=until or None,
                offset=offset,
                limit=EVENTS_A_PAGE,
            )
        except RagdocsError as error:
            problem = str(error)
            status = status_of(error)
        for day in timeline["days"]:
            _dress(day, base)
        earlier = later = ""
        if timeline["omitted"]:
            earlier = _turned(query, offset + EVENTS_A_PAGE)
        if offset:
            later = _turned(query, max(0, offset - EVENTS_A_PAGE))
        return page(
            request,
            live,
            "timeline",
            "Timeline",
            status,
            days=timeline["days"],
            omitted=timeline["omitted"],
            earlier=earlier,
            later=later,
            since=since,
            # A field for a day takes nothing else.
            since_day=since if _DAY.fullmatch(since) else "",
            until=until,
            periods=PERIODS,
            problem=problem,
        )

    return [Route("/timeline", show)]


def _turned(query: Mapping[str, str], offset: int) -> str:
    """Return the query of the same page that passes over so many events."""
    chosen = {name: value for name, value in query.items() if name != "offset" and value}
    return urlencode({**chosen, "offset": offset})


def _offset(text: str) -> int:
    if not text.isdecimal():
        return 0
    return min(MOST_OFFSET, int(text[:7]))


def _dress(day: Any, base: str) -> None:
    """Add what a person reads: the name of the day, signs, words and addresses."""
    moment = date.fromisoformat(day["day"])
    day["name"] = f"{moment:%A}, {moment.day} {moment:%B %Y}"
    for session in day["sessions"]:
        for event in session["events"]:
            sign, word = WORDS.get(event["verb"], ("~", event["verb"]))
            event["sign"] = sign
            event["word"] = word
            event["address"] = address(base, "memory", event["path"])
            event["around"] = _around(event)


def _around(event: Any) -> str:
    """Say which other memories a change was about."""
    others = ", ".join(event["others"])
    if not others:
        return ""
    if event["verb"] == "merge":
        return f"from {others}"
    if event["verb"] == "rename":
        return f"was {others}"
    return f"and {others}"
