"""The page that suggests what could be tidied up: merges, links, gaps, and what nobody needs."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.web.ask import ask, ask_now
from ragdocs.serve.web.graph import address
from ragdocs.serve.web.pending import Pending
from ragdocs.serve.web.view import BADGES, environment, page
from ragdocs.types import Document

# Groups that are suggested, and the most memories that are compared with each other.
MOST_MERGES = 10
MOST_COMPARED = 10
# Longer texts are compared by a person who reads them.
MOST_CHARACTERS = 40_000
MOST_REVIEWED = 50
# Rows of a section, unless the page is only about that one.
LISTED = 10
MOST_LISTED = 50
# The page waits this long for what takes seconds in a large project.
PATIENCE_SECONDS = 0.6
# Answers about links change with files of which nobody tells the page: they hold this long.
HOLDS_SECONDS = 10.0
ABOUT_FILES = ("review_drift", "review_links")
# The number in the bar is counted again after a change, at most this often.
RECOUNT_SECONDS = 30.0
# Comparing more memories with each other takes seconds: that is done when the page is opened.
MOST_COUNTED = 2_000
SECTIONS = (
    ("merge", "Merge"),
    ("contradictions", "Contradictions"),
    ("superseded", "Superseded"),
    ("restated", "Said by the docs"),
    ("patches", "For the docs"),
    ("drift", "Drifted"),
    ("gaps", "Docs gaps"),
    ("pages", "Pages"),
    ("broken", "Broken links"),
    ("ambiguous", "Ambiguous links"),
    ("expired", "Expired"),
    ("unused", "Old or never used"),
)
# Verbs whose answers the page waits for only so long, with the sections that they fill.
SLOW: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] = {
    "suggest_memory_merges": ({"limit": MOST_MERGES, "filter_type": None}, ("merge",)),
    "review_conflicts": ({}, ("contradictions", "superseded")),
    "suggest_docs_changes": ({}, ("restated", "patches")),
    "documentation_gaps": ({}, ("pages",)),
    "review_drift": ({"limit": MOST_REVIEWED, "diff": "hide"}, ("drift",)),
    "review_links": ({}, ("gaps", "broken", "ambiguous")),
    "review_memories": ({"limit": MOST_REVIEWED}, ("unused",)),
}


def routes(live: Live) -> list[BaseRoute]:
    """Return the page, and the comparison of one group of memories."""
    count = Count(live)
    BADGES[live] = count.latest
    slow = {}
    for verb, (arguments, _) in SLOW.items():
        holds = math.inf
        if verb in ABOUT_FILES:
            holds = HOLDS_SECONDS
        slow[verb] = Pending(partial(ask_now, live, verb, **arguments), count.state, holds)

    async def show(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        findings = Findings(live, base)
        for verb, pending in slow.items():
            await findings.wait_for(verb, pending)
        await findings.add_expired()
        suggestions = findings.suggestions()
        total = sum(map(len, suggestions.values()))
        if not findings.missing:
            count.set(total)
        only = request.query_params.get("only", "")
        compared = request.query_params.getlist("compare")
        merges = await _merges(live, suggestions["merge"], compared, base)
        return page(
            request,
            live,
            "tidy",
            "Tidy up",
            sections=SECTIONS,
            counts={name: len(items) for name, items in suggestions.items()},
            suggestions={**_listed(suggestions, only), "merge": merges},
            only=only if only in suggestions else "",
            missing=findings.missing,
            total=total,
            memories=findings.memories,
            notes=list(dict.fromkeys(findings.notes)),
        )

    async def compare(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        names = request.query_params.getlist("compare")
        merge = await _compared(live, {"names": names}, base)
        text = environment().get_template("tidy-merge.html").render(merge=merge, base=base)
        return HTMLResponse(text)

    return [Route("/tidy", show), Route("/tidy-fragment", compare)]


class Findings:
    """What the page has to suggest, and what is missing because it takes longer."""

    def __init__(self, live: Live, base: str) -> None:
        self._live = live
        self._base = base
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._deadline = time.monotonic() + PATIENCE_SECONDS
        self.missing: set[str] = set()
        self.notes: list[str] = []
        self.memories = 0
        corpus = live.corpora().get("memory")
        if corpus is not None:
            self.notes += corpus.notes()
            self.memories = corpus.info().documents

    async def wait_for(self, verb: str, pending: Pending) -> None:
        """Take an answer if it comes in time."""
        try:
            answer = await pending.within(max(0.0, self._deadline - time.monotonic()))
        except RagdocsError as error:
            self.notes.append(str(error))
            answer = {}
        if answer is None:
            self.missing.update(SLOW[verb][1])
            answer = {}
        self._answers[verb] = answer

    async def answer_to(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        """Return an answer about what is indexed now, or nothing with a note why."""
        try:
            answer: Mapping[str, Any] = await ask(self._live, verb, wait=False, **arguments)
        except RagdocsError as error:
            self.notes.append(str(error))
            return {}
        return answer

    async def add_expired(self) -> None:
        """Look for memories whose time is over."""
        self._answers["expire_memories"] = await self.answer_to("expire_memories", dry_run=True)

    def suggestions(self) -> dict[str, list[dict[str, Any]]]:
        """Return all suggestions by section."""
        links = self._answers["review_links"]
        suggestions = {"merge": self._groups()}
        memories = self._answers["review_drift"].get("result", ())
        suggestions["drift"] = list(_drifted(self._live, memories, self._base))
        for name in ("gaps", "broken", "ambiguous"):
            suggestions[name] = _with_addresses(links.get(name, ()), self._base)
        conflicts = self._answers["review_conflicts"]
        for name in ("contradictions", "superseded"):
            suggestions[name] = _with_addresses(conflicts.get(name, ()), self._base)
        changes = self._answers["suggest_docs_changes"]
        for name in ("restated", "patches"):
            suggestions[name] = _with_addresses(changes.get(name, ()), self._base)
        suggestions["pages"] = _pages(self._answers["documentation_gaps"], self._base)
        for name, verb in (("expired", "expire_memories"), ("unused", "review_memories")):
            items = self._answers[verb].get("result", ())
            suggestions[name] = _entries(self._live, items, self._base)
        return suggestions

    def _groups(self) -> list[dict[str, Any]]:
        """Return the groups of similar memories, not compared yet."""
        corpus = self._live.corpora().get("memory")
        groups = []
        for group in self._answers["suggest_memory_merges"].get("result", ()):
            documents = []
            for member in group["memories"]:
                document = corpus.get(member["id"]) if corpus else None
                if document is not None:
                    documents.append(document)
            if len(documents) > 1:
                groups.append(_group(group, documents))
        return groups


def _listed(
    suggestions: Mapping[str, Sequence[dict[str, Any]]], only: str
) -> dict[str, Sequence[dict[str, Any]]]:
    """Return the rows that the page shows: of one section all, or some of each."""
    listed = {}
    for name, items in suggestions.items():
        listed[name] = items[: MOST_LISTED if name == only else LISTED]
    return listed


def _group(group: Mapping[str, Any], documents: Sequence[Document]) -> dict[str, Any]:
    """Return how a group of similar memories is called."""
    return {
        "score": group["score"],
        "names": [document.id for document in documents],
        "count": group["memory_count"],
        "title": _title([document.title for document in documents], group["memory_count"]),
        "kind": _common([document.kind for document in documents]),
        # Skipped until one of them changes.
        "key": " ".join(sorted(document.version for document in documents)),
        "draft": None,
        "problem": "",
    }


async def _merges(
    live: Live, groups: Sequence[dict[str, Any]], compared: Sequence[str], base: str
) -> list[dict[str, Any]]:
    """Compare the first group, or the one that the address names; it comes first."""
    if not groups:
        return []
    groups = sorted(groups, key=lambda group: group["names"] != list(compared))
    return [await _compared(live, groups[0], base), *groups[1:]]


async def _compared(live: Live, group: Mapping[str, Any], base: str) -> dict[str, Any]:
    """Return a group of similar memories with a draft, if they can be compared."""
    names = group["names"]
    if len(names) > MOST_COMPARED:
        return {**group, "problem": f"{len(names)} memories are too many to compare here"}
    try:
        draft: Any = await ask(live, "draft_memory_merge", source_files=names)
    except RagdocsError as error:
        return {**group, "draft": None, "problem": str(error)}
    if len(draft["content"]) > MOST_CHARACTERS:
        return {**group, "draft": None, "problem": "their texts are too long to compare here"}
    shared = 0
    for side in draft["sides"]:
        side["address"] = address(base, side["lane"], side["path"])
    for statement in draft["statements"]:
        shared += len(statement["sources"]) > 1
    return {
        **group,
        "draft": draft,
        "problem": "",
        "statements": len(draft["statements"]),
        "shared": shared,
    }


def _title(names: Sequence[str], count: int) -> str:
    if count == 2:  # noqa: PLR2004 - a pair is named in full
        return f"“{names[0]}” and “{names[1]}”"
    return f"“{names[0]}” and {count - 1} others"


def _common(kinds: Sequence[str]) -> str:
    """Return the type that all have, if there is one."""
    if len(set(kinds)) == 1:
        return kinds[0]
    return ""


def _with_addresses(items: Sequence[Any], base: str) -> list[dict[str, Any]]:
    """Return items with the pages of the texts that they name."""

    def linked(text: Mapping[str, Any]) -> dict[str, Any]:
        return {**text, "address": address(base, text["lane"], text["path"])}

    listed = []
    for item in items:
        names: dict[str, Any] = {}
        for field in ("memories", "candidates", "successors"):
            names[field] = list(map(linked, item.get(field, ())))
        for field in ("memory", "page", "first", "second"):
            if field in item:
                names[field] = linked(item[field])
        listed.append({**item, **names})
    return listed


def _pages(gaps: Mapping[str, Any], base: str) -> list[dict[str, Any]]:
    """Return what else the documentation lacks, as rows of what is missing and where."""
    rows = []
    for question in gaps.get("questions", ()):
        times = "once" if question["count"] == 1 else f"{question['count']} times"
        why = f"asked {times}, nothing found"
        rows.append({"what": question["question"], "why": why, "places": []})
    for text in gaps.get("unlinked", ()):
        row = {"path": text["path"], "address": address(base, "docs", text["path"])}
        rows.append({"what": text["title"], "why": "nothing links to it", "places": [row]})
    for group in gaps.get("repeated", ()):
        sections = []
        for section in group["sections"]:
            where = f"{address(base, 'docs', section['path'])}#L{section['line']}"
            sections.append({"path": f"{section['path']}:{section['line']}", "address": where})
        rows.append({"what": group["heading"], "why": "says the same", "places": sections})
    return rows


def _drifted(
    live: Live, memories: Sequence[Mapping[str, Any]], base: str
) -> Iterator[dict[str, Any]]:
    """Yield a row for each link that does not lead to what it did."""
    corpus = live.corpora().get("memory")
    for memory in memories:
        path = memory["filename"]
        memory_address = address(base, "memory", path)
        document = corpus.get(path) if corpus else None
        version = document.version if document else ""
        for link in memory["links"]:
            yield {
                "memory": {**memory, "path": path, "address": memory_address, "version": version},
                "link": link,
                "sign": "missing" if link["state"] == "missing" else "changed",
            }


def _entries(live: Live, items: Sequence[Mapping[str, Any]], base: str) -> list[dict[str, Any]]:
    """Add to memories that are given by their files what the page calls them."""
    corpus = live.corpora().get("memory")
    if corpus is None:
        return []
    root = corpus.store.locate("").rstrip("/") + "/"
    entries = []
    for item in items:
        path = str(item["path"]).removeprefix(root)
        document: Document | None = corpus.get(path)
        entry = {
            **item,
            "path": path,
            "title": path,
            "type": "",
            "version": "",
            "address": address(base, "memory", path),
        }
        if document is not None:
            entry["title"] = document.title
            entry["type"] = document.kind
            entry["version"] = document.version
        entries.append(entry)
    return entries


class Count:
    """The number of suggestions, counted in the background after something changed."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._total = 0
        self._changes = 0
        self._is_stale = True
        self._counted_at = -RECOUNT_SECONDS
        self._lock = threading.Lock()
        live.listeners.append(self._note_change)

    def latest(self) -> Mapping[str, int]:
        """Return the last count; a new one is begun if it is due."""
        now = time.monotonic()
        with self._lock:
            is_due = self._is_stale and now - self._counted_at >= RECOUNT_SECONDS
            if is_due and self._live.settled:
                self._is_stale = False
                self._counted_at = now
                context = contextvars.copy_context()
                threading.Thread(target=context.run, args=(self._count,), daemon=True).start()
        return {"tidy": self._total}

    def state(self) -> tuple[object, ...]:
        """Return what differs whenever other suggestions are possible."""
        corpus = self._live.corpora().get("memory")
        if corpus is None:
            return (self._changes,)
        # Whoever says that a memory is still true changes no memory.
        checks = self._live.workspace().living.drift.ledger.state()
        return self._changes, corpus.info().vectors, checks

    def set(self, total: int) -> None:
        """Take the number that the page has found."""
        with self._lock:
            self._total = total
            self._is_stale = False
            self._counted_at = time.monotonic()

    def _note_change(self, lane: str, documents: Sequence[Document], gone: Sequence[str]) -> None:
        del lane, documents, gone
        self._changes += 1
        self._is_stale = True

    def _count(self) -> None:
        corpus = self._live.corpora().get("memory")
        if corpus is None or corpus.count() > MOST_COUNTED:
            return
        total = 0
        for verb, arguments in COUNTED:
            try:
                answer = ask_now(self._live, verb, **arguments)
            except RagdocsError:
                # Without a model there are no suggestions to merge; the page says so.
                continue
            for field in COUNTED_FIELDS:
                total += len(answer.get(field, ()))
        self._total = total


COUNTED_FIELDS = (
    "result",
    "broken",
    "ambiguous",
    "gaps",
    "contradictions",
    "superseded",
    "restated",
    "patches",
    "questions",
    "unlinked",
    "repeated",
)
COUNTED: Sequence[tuple[str, Mapping[str, Any]]] = (
    *((verb, arguments) for verb, (arguments, _) in SLOW.items()),
    ("expire_memories", {"dry_run": True}),
)
