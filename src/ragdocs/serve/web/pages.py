"""The pages of one project, and the files that all pages use."""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from ragdocs.serve.live import Live
from ragdocs.serve.web import graph, search, status, text, tidy, timeline, writing
from ragdocs.serve.web.view import HERE


def routes(live: Live) -> list[BaseRoute]:
    """Return the pages of a project."""
    pages = (search, graph, tidy, timeline, status, text, writing)
    return [route for page in pages for route in page.routes(live)]


def server_routes() -> list[BaseRoute]:
    """Return what is the same for all projects."""
    return [Mount("/static", StaticFiles(directory=HERE / "static"))]
