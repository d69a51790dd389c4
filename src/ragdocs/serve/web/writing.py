"""The pages on which a person writes: a new memory, or another text of one."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from ragdocs.caller import current
from ragdocs.errors import NotFoundError, UnavailableError, ValidationError
from ragdocs.serve.live import Live
from ragdocs.serve.web import markdown
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.text import missing, resolve, unavailable
from ragdocs.serve.web.view import page
from ragdocs.text import frontmatter
from ragdocs.types import MEMORY_KINDS

KINDS = tuple(dict.fromkeys(("fact", "decision", *MEMORY_KINDS)))
# Tags that are offered for a new memory.
MOST_TAGS = 20
# A draft without a name is previewed as if it had this one.
UNNAMED = "draft.md"


def routes(live: Live) -> list[BaseRoute]:
    """Return the pages."""

    def form(title: str, request: Request, **fields: Any) -> Response:
        fields = {"text": None, "known_tags": [], **fields}
        may_write = current().may_write
        return page(request, live, "write", title, kinds=KINDS, may_write=may_write, **fields)

    async def create(request: Request) -> Response:
        stats = await ask(live, "get_memory_stats")
        filename = request.query_params.get("filename", "")
        known_tags = list(stats["tags"])[:MOST_TAGS]
        return form("New memory", request, mode="create", filename=filename, known_tags=known_tags)

    async def edit(request: Request) -> Response:
        path = request.path_params["path"]
        try:
            text = await ask(live, "show_text", text_lane="memory", path=path)
        except UnavailableError as error:
            return unavailable(request, live, path, str(error))
        except (NotFoundError, ValidationError) as error:
            return missing(request, live, path, str(error))
        mode = "append" if "append" in request.query_params else "edit"
        title = f"{mode.title()}: {text['title']}"
        return form(title, request, mode=mode, filename=text["path"], text=text)

    async def preview(request: Request) -> Response:
        draft = _draft(await request.body())
        content = str(draft.get("content") or "")
        path = str(draft.get("path") or UNNAMED)
        links = await ask(live, "draft_links", path=path, content=content, text_lane="memory")
        _, body, first_line = frontmatter.split(content)
        resolver = resolve(request, live, "memory", path, links["out"])
        return HTMLResponse(markdown.render(body, resolver, first_line))

    return [
        Route("/new", create),
        Route("/edit/memory/{path:path}", edit),
        Route("/preview", preview, methods=["POST"]),
    ]


def _draft(body: bytes) -> dict[str, Any]:
    """Return what is to be previewed; anything else is an empty draft."""
    try:
        draft = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return draft if isinstance(draft, dict) else {}
