"""The page of one memory or document: its text, fields, links both ways and history."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ragdocs.caller import current
from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError, ValidationError
from ragdocs.lanes import DOCS, MEMORY, SOURCES, Lane
from ragdocs.project import layout
from ragdocs.serve.live import Live
from ragdocs.serve.web import markdown
from ragdocs.serve.web.ask import ask
from ragdocs.serve.web.view import UNAVAILABLE, page
from ragdocs.text import frontmatter, links

LANES = {lane.name: lane for lane in (DOCS, SOURCES, MEMORY)}
# Endings of texts that are rendered; others are shown as they are.
RENDERED = (".md", ".markdown", ".mdx", ".qmd")
# Changes that are listed; the verb has them all.
MOST_CHANGES = 12
# Fields that the page shows elsewhere or in words of its own.
TOLD = frozenset({"type", "status", "tags", "created_at", "title", "git", "id", "timestamp"})
NOT_INDEXED = markdown.Target("", "a file of the project that is not indexed", "file-link")
_WIKILINK = re.compile(r"\[\[([^\[\]]+)\]\]")
_HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+(?P<new>\d+)(?:,\d+)? @@")
# A unified diff begins with the names of the two texts.
DIFF_HEADER_LINES = 2


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff; `sign` is "+", "-", " ", or "…" where lines are left out."""

    sign: str
    number: int
    text: str


def routes(live: Live) -> list[BaseRoute]:
    """Return the page."""

    async def show(request: Request) -> Response:
        path = request.path_params["path"]
        lane = LANES.get(request.path_params["lane"])
        if lane is None:
            return missing(request, live, path, "there is no such lane")
        try:
            text = await ask(live, "show_text", text_lane=lane.name, path=path)
        except UnavailableError as error:
            return unavailable(request, live, path, str(error))
        except (NotFoundError, ValidationError) as error:
            changes = await history(live, lane, path)
            return missing(request, live, path, str(error), changes)
        neighbourhood = await ask(live, "text_links", text_lane=lane.name, path=text["path"])
        for link in neighbourhood["back"]:
            link["pieces"] = pieces(link["context"])
        changes = await history(live, lane, text["path"])
        chosen = request.query_params.get("change", "")
        return page(
            request,
            live,
            "text",
            text["title"],
            text=text,
            is_memory=lane.writable,
            may_write=lane.writable and current().may_write,
            raw="raw" in request.query_params,
            lines=text["content"].split("\n"),
            rendered=rendered(request, live, text, neighbourhood["out"]),
            location=shown_location(live, text["location"]),
            fields=fields_of(text),
            links=neighbourhood,
            missing_links=count_missing(neighbourhood["out"]),
            drifted=count_drifted(neighbourhood["out"]),
            successors=successors_of(neighbourhood["back"]),
            moved=count_moved(neighbourhood["out"]),
            changes=changes,
            change=await chosen_change(live, text, changes, chosen),
        )

    return [Route("/text/{lane}/{path:path}", show)]


def missing(
    request: Request,
    live: Live,
    path: str,
    reason: str,
    changes: Sequence[Mapping[str, Any]] = (),
) -> Response:
    """Say that there is no such text, and which earlier texts of it are kept."""
    return page(
        request,
        live,
        "gone",
        "Not there",
        status=404,
        path=path,
        reason=reason,
        changes=changes,
        may_write=current().may_write,
    )


def unavailable(request: Request, live: Live, path: str, reason: str) -> Response:
    """Say why a text cannot be shown now, and ask again."""
    return page(
        request, live, "unavailable", "Not now", status=UNAVAILABLE, path=path, reason=reason
    )


def rendered(
    request: Request, live: Live, text: Mapping[str, Any], out: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return a text as HTML, or nothing if it is not markdown."""
    if not text["path"].casefold().endswith(RENDERED):
        return None
    body = frontmatter.split(text["content"])[1]
    resolver = resolve(request, live, text["lane"], text["path"], out)
    return markdown.render(body, resolver, text["first_line"], text["title"])


def resolve(
    request: Request, live: Live, lane: str, path: str, out: Sequence[Mapping[str, Any]]
) -> markdown.Resolve:
    """Return how the links of a text lead to pages."""
    folder = ""
    if LANES[lane].writable:
        folder = layout.memory_lane(live.config).base
    destinations = {link["target"]: link for link in out}
    base = request.scope.get("root_path", "")

    def target_of(written: str, is_wikilink: bool) -> markdown.Target:
        if is_wikilink:
            name, _, heading = written.partition("#")
            target = links.wiki_target(name).removeprefix(f"{folder}/")
        else:
            target, heading = links.destination(written, path, folder)
        fragment = f"#h-{markdown.anchor(heading)}" if heading else ""
        if not target and fragment:
            return markdown.Target(fragment)
        link = destinations.get(target)
        if link is None:
            return markdown.Target("")
        if link["state"] == "file":
            return NOT_INDEXED
        if link["state"] == "missing":
            return markdown.Target("")
        return markdown.Target(f"{base}/text/{link['lane']}/{quote(link['path'])}{fragment}")

    return target_of


def fields_of(text: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields of the front matter that the page has no words of its own for."""
    rows = []
    git = text["fields"].get("git")
    if isinstance(git, dict):
        rows.append(("git", f"{git.get('branch', '')} at {git.get('commit', '')}"))
    for name, value in text["fields"].items():
        if name not in TOLD:
            rows.append((name, written(value)))
    return rows


def written(value: Any) -> str:
    """Return the value of a field as a person writes it."""
    if isinstance(value, list):
        return ", ".join(map(written, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {written(item)}" for name, item in value.items())
    return frontmatter.as_text(value)


def shown_location(live: Live, location: str) -> str:
    """Return where a file is, from the folder of the project if it is in there."""
    return location.removeprefix(f"{live.config.root}{os.sep}")


def pieces(context: str) -> list[tuple[str, bool]]:
    """Return the words around a link in pieces, each with whether it is a link."""
    parts = []
    for number, words in enumerate(_WIKILINK.split(context)):
        is_link = number % 2 == 1
        if is_link:
            words = words.rpartition("|")[2]  # noqa: PLW2901 - the label of the link
        parts.append((words, is_link))
    return parts


def count_missing(out: Sequence[Mapping[str, Any]]) -> int:
    """Count the links that lead nowhere; a file need not be indexed to be there."""
    count = 0
    for link in out:
        count += link["state"] == "missing" and link.get("drift_state", "missing") == "missing"
    return count


def successors_of(back: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the memories that say that they supersede this one."""
    return [link for link in back if link["kind"] == "supersedes"]


def count_moved(out: Sequence[Mapping[str, Any]]) -> int:
    """Count the links whose targets are elsewhere now."""
    return sum(link.get("drift_state", "") == "moved" for link in out)


def count_drifted(out: Sequence[Mapping[str, Any]]) -> int:
    """Count the links that do not lead to what they did."""
    return sum(link.get("drift_state", "ok") != "ok" for link in out)


async def history(live: Live, lane: Lane, path: str) -> list[dict[str, Any]]:
    """Return the changes of a memory, the latest first."""
    if not lane.writable:
        return []
    try:
        revisions = await ask(live, "memory_history", filename=path, limit=MOST_CHANGES)
    except RagdocsError:
        # Nothing of it is kept, or its name is none.
        return []
    changes: list[dict[str, Any]] = revisions["result"]
    return changes


async def chosen_change(
    live: Live, text: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], chosen: str
) -> dict[str, Any] | None:
    """Return the change that is looked at, the latest if none is chosen, line by line."""
    for change in changes:
        is_chosen = chosen in ("", change["version"])
        if is_chosen and change["became"]:
            compared = await ask(
                live,
                "diff_memory",
                filename=text["path"],
                before=change["version"],
                after=change["became"],
            )
            rows = _diff_rows(compared["content"])
            return {**change, "rows": rows, "is_latest": change["became"] == text["version"]}
    return None


def _diff_rows(unified: str) -> list[DiffRow]:
    """Return the lines of a diff with their numbers in the text that has them."""
    rows: list[DiffRow] = []
    old = new = 1
    for line in unified.split("\n")[DIFF_HEADER_LINES:]:
        hunk = _HUNK.match(line)
        if hunk:
            first = int(hunk["new"])
            if first > new:
                rows.append(DiffRow("…", new, f"lines {new} to {first - 1} are the same"))
            old = int(hunk["old"])
            new = first
        elif line.startswith("-"):
            rows.append(DiffRow("-", old, line[1:]))
            old += 1
        else:
            rows.append(DiffRow(line[:1] or " ", new, line[1:]))
            new += 1
            old += not line.startswith("+")
    return rows
