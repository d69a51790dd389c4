"""Answers about documentation as text."""

from __future__ import annotations

from collections.abc import Sequence

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.present import inline, listing, plural, quote, whole
from ragdocs.serve.surface.shapes import SignalShape
from ragdocs.serve.surface.shapes.docs import DocHit, DocHits, DocText, Sibling, SourceList


def documents(answer: DocHits) -> str:
    """Write passages of the documentation."""
    blocks = []
    for number, hit in enumerate(inline(answer)["result"], start=1):
        heading = layouts.heading_of(hit["title"], hit["header_path"])
        blocks.append(
            f"{number}. {hit['path']}:{hit['lines']} · {heading} · score {hit['score']:.2f}\n"
            f"   why: {hit['why']}{_matched_lines(hit)}\n"
            f"{also(hit.get('siblings'))}"
            f"{quote(hit['content'])}{signals(hit.get('signals'))}"
        )
    return listing(blocks, answer["omitted"], answer["notes"], "passages")


def sources(answer: SourceList) -> str:
    """Write one source a line, and below it what a reader should know."""
    rows = []
    for source in inline(answer)["result"]:
        head = f"{source['name']} {source['version']}".rstrip()
        if source["problem"]:
            rows.append(f"{head} · cannot be read: {source['problem']} ({source['line']})")
            continue
        documents = plural(source["documents"], "document")
        rows.append(f"{head} · {documents} · {source['location']}")
        if source["note"]:
            rows.append(f"   {source['note']}")
    return "\n".join(rows) or "no sources are configured"


def also(siblings: Sequence[Sibling] | None) -> str:
    """Write in which other languages and versions a page is there, or nothing without any."""
    if not siblings:
        return ""
    names = []
    for sibling in siblings:
        labels = [sibling.get("language"), sibling.get("version")]
        label = " ".join(filter(None, labels))
        names.append(f"{label} {sibling['path']}".lstrip())
    return f"   also: {', '.join(names)}\n"


def _matched_lines(hit: DocHit) -> str:
    """Say which lines matched, where more of their section is shown."""
    if "matched" not in hit:
        return ""
    return f"; in lines {hit['matched']}"


def document(answer: DocText) -> str:
    """Write a document or a part of it."""
    answer = inline(answer)
    parts = [f"{answer['path']}:{answer['lines']} · {answer['title']}", whole(answer["content"])]
    if answer["omitted"]:
        parts.append(f"[{answer['omitted']}]")
    if answer["headings"]:
        headings = "\n".join(answer["headings"])
        parts.append(f"Headings:\n{quote(headings)}")
    return "\n\n".join(parts)


def signals(contributions: Sequence[SignalShape] | None) -> str:
    """Write every contribution to a score on one line, or nothing without any."""
    if not contributions:
        return ""
    parts = []
    for signal in contributions:
        name = f"{signal['source']}[{signal['probe']}]"
        parts.append(f"{name} rank {signal['rank']} raw {signal['raw']} share {signal['share']}")
    return f"\n   signals: {', '.join(parts)}"
