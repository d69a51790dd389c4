"""Templates, and what every page of a project shows around its own content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.serve.live import Live
from ragdocs.system import git

HERE = Path(__file__).parent
BAD_REQUEST = 400
UNAVAILABLE = 503
# Pages in the order of the bar at the top: name, label, path.
NAVIGATION = (
    ("search", "Search", "/"),
    ("graph", "Graph", "/graph"),
    ("tidy", "Tidy up", "/tidy"),
    ("timeline", "Timeline", "/timeline"),
    ("status", "Status", "/status"),
)
# What counts the suggestions of a project's pages, without waiting; by the page's name.
BADGES: WeakKeyDictionary[Live, Callable[[], Mapping[str, int]]] = WeakKeyDictionary()
# Types of memories that have a hue of their own.
HUES = frozenset({"fact", "decision", "plan", "journal", "observation"})


@cache
def environment() -> Environment:
    """Return the templates; every value in them is escaped."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # They change with the installation only: looking at the files costs each page a stat.
        auto_reload=False,
    )
    templates.filters["hue"] = _hue
    templates.filters["number"] = _number
    return templates


def page(
    request: Request, live: Live, name: str, title: str, status: int = 200, **content: Any
) -> HTMLResponse:
    """Return a page of a project."""
    root = live.config.root
    template = environment().get_template(f"{name}.html")
    badges = BADGES.get(live, dict)
    text = template.render(
        page=name,
        title=title,
        project=root.name,
        branch=_branch(root),
        nav=NAVIGATION,
        badges=badges(),
        base=request.scope.get("root_path", ""),
        csrf=getattr(request.state, "csrf", ""),
        **content,
    )
    return HTMLResponse(text, status)


def status_of(error: RagdocsError) -> int:
    """Return the status of a page that says why there is no answer."""
    if isinstance(error, UnavailableError):
        return UNAVAILABLE
    return BAD_REQUEST


def _branch(root: Path) -> str:
    state = git.context(root)
    return state.branch if state else ""


def _hue(kind: str) -> str:
    """Return the class of a type's hue; any other type is grey."""
    return kind if kind in HUES else ""


def _number(count: int) -> str:
    return f"{count:,}"
