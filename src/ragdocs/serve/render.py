"""Answers as text: complete by itself, because some clients show a model only the text and some only the structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent

from ragdocs.verbs.answers import STEP
from ragdocs.verbs.shapes import (
    Clusters,
    Deleted,
    DocHits,
    DocText,
    LinkedHits,
    MemoryHits,
    MemoryText,
    Merged,
    Saved,
    SignalShape,
    Stats,
    Status,
)


def result(structured: Mapping[str, Any], text: str) -> CallToolResult:
    """Return both faces of one answer."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=dict(structured))


def documents(found: DocHits) -> str:
    """Write passages of the documentation."""
    blocks = [
        f"{number}. {hit['path']}:{hit['lines']} · {_place(hit['title'], hit['header_path'])} · "
        f"score {hit['score']:.2f}\n   why: {hit['why']}\n{_quote(hit['content'])}{_signals(hit.get('signals'))}"
        for number, hit in enumerate(found["result"], start=1)
    ]
    return _listing(blocks, found["omitted"], found["notes"], "passages")


def memories(found: MemoryHits) -> str:
    """Write memories."""
    blocks = [
        f"{number}. {hit['memory_id']} · {_place(hit['title'], hit['header_path'])} · {hit['type']}, {hit['status']}, "
        f"{hit['age']} · score {hit['score']:.2f}\n"
        f"   file: {hit['file_path']}:{hit['lines']} · tags: {', '.join(hit['tags']) or 'none'} · why: {hit['why']}\n"
        f"{_quote(hit['content'])}{_signals(hit.get('signals'))}"
        for number, hit in enumerate(found["result"], start=1)
    ]
    return _listing(blocks, found["omitted"], found["notes"], "memories")


def linked(found: LinkedHits) -> str:
    """Write memories that link to a document."""
    blocks = [
        f"{number}. {hit['memory_id']} · {hit['title']} · {hit['age']} · score {hit['score']:.2f}\n"
        f"   file: {hit['file_path']}:{hit['lines']}\n"
        + "".join(f"   {link['edge_type']}: {link['anchor_context']}\n" for link in hit["links"])
        + _quote(hit["content"])
        for number, hit in enumerate(found["result"], start=1)
    ]
    return _listing(blocks, found["omitted"], found["notes"], "memories")


def document(text: DocText) -> str:
    """Write a document or a part of it."""
    parts = [f"{text['path']}:{text['lines']} · {text['title']}", text["content"]]
    if text["omitted"]:
        parts.append(f"[{text['omitted']}]")
    if text["headings"]:
        parts.append("Headings:\n" + "\n".join(text["headings"]))
    return "\n\n".join(parts)


def memory(text: MemoryText) -> str:
    """Write a memory as it stands."""
    head = f"{text['filename']}:{text['lines']} · version {text['version']} · {text['path']}"
    return "\n\n".join([head, text["content"], *([f"[{text['omitted']}]"] if text["omitted"] else [])])


def saved(answer: Saved) -> str:
    """Confirm a write."""
    warnings = "".join(f"\nNote: {warning}" for warning in answer["warnings"])
    return f"{answer['status']} {answer['filename']} (version {answer['version']}) at {answer['path']}{warnings}"


def deleted(answer: Deleted) -> str:
    """Confirm a deletion."""
    return f"deleted {answer['filename']}; it is kept at {answer['moved_to']}"


def merged(answer: Merged) -> str:
    """Confirm a merge."""
    trash = "\n".join(answer["moved_to"])
    sources = ", ".join(answer["merged"])
    trash += "".join(f"\nNote: {warning}" for warning in answer["warnings"])
    return f"merged {sources} into {answer['filename']} (version {answer['version']}); the sources are kept at\n{trash}"


def stats(answer: Stats) -> str:
    """Write the counts of a memory bank."""
    tags = ", ".join(f"{tag} {count}" for tag, count in answer["tags"].items())
    types = ", ".join(f"{kind} {count}" for kind, count in answer["types"].items())
    return (
        f"{answer['count']} memories, {answer['total_size']}, in {answer['memory_path']}\n"
        f"types: {types or 'none'}\ntags: {tags or 'none'}" + "".join(f"\nNote: {note}" for note in answer["notes"])
    )


def clusters(found: Clusters) -> str:
    """Write groups of similar memories."""
    blocks = [
        f"{cluster['cluster_id']}. {cluster['memory_count']} memories, similarity {cluster['score']:.2f}\n"
        + "\n".join(f"   {member['id']}: {member['preview']}" for member in cluster["memories"])
        for cluster in found["result"]
    ]
    return _listing(blocks, 0, found["notes"], "groups of similar memories")


def status(state: Status) -> str:
    """Write the state of the index."""
    readiness = "ready" if state["ready"] else "indexing"
    watcher = f"watcher: {state['watcher']}, last seen alive {state['heartbeat'] or 'never'}"
    parts = [f"ragdocs {state['version']} · {state['project']} · {readiness} · {watcher}"]
    for lane in state["lanes"]:
        parts.append(
            f"{lane['lane']}: {lane['documents']} documents, {lane['chunks']} passages, {lane['vectors']} vectors, "
            f"{lane['links']} links\n   root: {lane['root']}\n   embedder: {lane['embedder']}, "
            f"vector search: {lane['vector_search']}"
        )
        parts += [f"   note: {note}" for note in lane["notes"]]
        parts += [f"   problem: {path}: {reason}" for path, reason in lane["problems"].items()]
    return "\n".join(parts)


def _listing(blocks: Sequence[str], omitted: int, notes: Sequence[str], what: str) -> str:
    parts = list(blocks) or [f"no {what} found"]
    if omitted:
        parts.append(f"{omitted} more {what} matched; raise limit or narrow the query to see others")
    return "\n\n".join([*parts, *(f"Note: {note}" for note in notes)])


def _place(title: str, header_path: str) -> str:
    # A heading path usually begins with the title itself.
    return header_path if header_path.startswith(title) else STEP.join(filter(None, (title, header_path)))


def _quote(content: str) -> str:
    """Mark content as quoted text, so that nothing in it can pose as the server's own words."""
    return "\n".join(f"   | {line}" for line in content.split("\n"))


def _signals(signals: Sequence[SignalShape] | None) -> str:
    if not signals:
        return ""
    shown = ", ".join(
        f"{s['source']}[{s['probe']}] rank {s['rank']} raw {s['raw']} share {s['share']}" for s in signals
    )
    return f"\n   signals: {shown}"
