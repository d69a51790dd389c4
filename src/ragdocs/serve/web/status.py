"""The page of a project's state: its lanes, problems, tools, speed and settings."""

from __future__ import annotations

import statistics
from collections import deque
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ragdocs import config as configuration
from ragdocs.serve.live import Live
from ragdocs.serve.surface import Verb, call, layouts
from ragdocs.serve.surface.catalog import every, toolsets
from ragdocs.serve.surface.present.quality import short_model
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.graph import address
from ragdocs.serve.web.view import page

# Searches whose times are drawn.
MOST_TIMES = 48
CHART_HEIGHT = 80
BAR_STEP = 10
# Characters of a tool's description and schema that make a token, on the average.
CHARACTERS_A_TOKEN = 4
# The bar of the dearest toolset.
TOKEN_BAR = 120
# The origin of a setting that nobody has set.
DEFAULT = "default"
# Lanes whose texts have a page, and what people call the lanes.
READABLE = frozenset({"docs", "sources", "memory"})
LABELS = {
    "docs": "Documents",
    "sources": "Sources",
    "memory": "Memories",
    "journal": "Journal",
    "commits": "Commits",
}


class Times:
    """How long the last searches took, in milliseconds."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST_TIMES)

    def observe(self, verb: str, seconds: float, failed: bool) -> None:
        """Take the time of a call, if it was a search."""
        if "search" in verb and not failed:
            self._times.append(seconds * 1000)

    def chart(self) -> dict[str, Any] | None:
        """Return the bars and what they say together."""
        times = list(self._times)
        if not times:
            return None
        ordered = sorted(times)
        longest = ordered[-1]
        bars = []
        # The latest search stands at the right end, under "now", also where there are few.
        first = MOST_TIMES - len(times)
        for number, time in enumerate(times, start=first):
            height = max(1.0, time / longest * CHART_HEIGHT)
            bars.append({"x": number * BAR_STEP, "y": CHART_HEIGHT - height, "height": height})
        return {
            "times": times,
            "bars": bars,
            # Where the line of the 95th percentile is drawn.
            "line": round(CHART_HEIGHT * (1 - ordered[int(len(ordered) * 0.95)] / longest), 1),
            "median": round(statistics.median(times), 1),
            "p95": round(ordered[int(len(ordered) * 0.95)], 1),
        }


# Of this server, whichever project was searched: a page that is made anew must not count twice.
TIMES = Times()
call.OBSERVERS.append(TIMES.observe)


def routes(live: Live) -> list[BaseRoute]:
    """Return the page."""

    async def show(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        status = await ask(live, "index_status")
        clients = await ask(live, "connected_clients")
        problems = []
        for lane in status["lanes"]:
            _dress(lane)
            for path, reason in lane["problems"].items():
                link = ""
                if lane["lane"] in READABLE:
                    link = address(base, lane["lane"], path)
                problems.append({"path": path, "lane": lane["label"], "why": reason, "link": link})
        rows = _toolsets(live)
        settings = []
        defaults = []
        for row in configuration.render_table(live.config):
            if row[2] == DEFAULT:
                defaults.append(row)
            else:
                settings.append(row)
        return page(
            request,
            live,
            "status",
            "Status",
            state=status,
            compared=_age(status["heartbeat"]),
            problems=problems,
            clients=clients["result"],
            toolsets=rows,
            tool_tokens=sum(row["tokens"] for row in rows if row["offered"]),
            speed=TIMES.chart(),
            settings=settings,
            defaults=defaults,
        )

    return [Route("/status", show)]


def _toolsets(live: Live) -> list[dict[str, Any]]:
    """Return the number and the cost of the tools of each set."""
    offered = toolsets(live.config)
    rows: dict[str, dict[str, Any]] = {}
    for verb in every():
        if not verb.tool:
            continue
        row = rows.setdefault(
            verb.toolset,
            {"name": verb.toolset, "tools": 0, "tokens": 0, "offered": verb.toolset in offered},
        )
        row["tools"] += 1
        row["tokens"] += _tokens(verb)
    most = max([row["tokens"] for row in rows.values()], default=1)
    for row in rows.values():
        row["bar"] = round(row["tokens"] / most * TOKEN_BAR)
    return sorted(rows.values(), key=lambda row: not row["offered"])


def _dress(lane: dict[str, Any]) -> None:
    """Add what a person reads: the name of a lane, its state, and its model in short."""
    is_embedding = lane["vectors"] < lane["chunks"] and lane["embedder"] != "none"
    lane["label"] = LABELS.get(lane["lane"], lane["lane"])
    lane["state"] = "ready"
    if is_embedding:
        lane["state"] = "embedding"
    lane["model"] = short_model(lane["embedder"])


def _age(moment: str | None) -> str:
    if not moment:
        return ""
    return layouts.age(datetime.fromisoformat(moment), datetime.now(UTC))


def _tokens(verb: Verb) -> int:
    text = verb.purpose + verb.title
    for param in verb.params_for("tool"):
        text += f"{param.name}{param.arg.help}{param.type}"
    return len(text) // CHARACTERS_A_TOKEN
