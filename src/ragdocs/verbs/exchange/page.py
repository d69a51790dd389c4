"""All memories on one HTML page, to read and to print; nothing in it runs or loads anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ragdocs.text import times
from ragdocs.text.statements import split_statements
from ragdocs.types import Document
from ragdocs.verbs.exchange.exported import LINK, Exported, Names
from ragdocs.verbs.exchange.note import digest

STYLE = """\
body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.6 system-ui,sans-serif}
article{border-top:1px solid #8886;margin-top:2rem}
p,pre{white-space:pre-wrap;overflow-wrap:anywhere}
pre{background:#8882;padding:.6rem;font-size:.9rem}
.about{color:#888;font-size:.85rem}
:root{color-scheme:light dark}"""
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return the page."""
    memories = list(memories)
    names = Names(memories)
    contents = []
    for memory in memories:
        document = memory.document
        contents.append(f'<li><a href="#{_anchor(document)}">{escape(document.title)}</a></li>')
    articles = [_article(memory, names) for memory in memories]
    yield "", _framed(contents, articles)


def _framed(contents: Sequence[str], articles: Sequence[str]) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Memories</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width">',
        f"<style>{STYLE}</style></head><body>",
        f"<h1>Memories</h1><nav><ul>{''.join(contents)}</ul></nav>",
        *articles,
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def _article(memory: Exported, names: Names) -> str:
    document = memory.document
    about = [document.path, document.kind, document.status, *document.tags]
    if document.created_at:
        about.append(times.stamp(document.created_at))
    parts = [
        f'<article id="{_anchor(document)}"><h2>{escape(document.title)}</h2>',
        f'<p class="about">{escape(" · ".join(filter(None, about)))}</p>',
    ]
    for statement in split_statements(memory.body):
        parts.append(_block(statement, document, names))
    return "\n".join([*filter(None, parts), "</article>"])


def _block(statement: str, document: Document, names: Names) -> str:
    heading = _HEADING.fullmatch(statement.strip())
    if heading:
        if heading[2].strip() == document.title:
            return ""
        level = min(6, len(heading[1]) + 2)
        return f"<h{level}>{_linked(heading[2], names)}</h{level}>"
    if _FENCE.match(statement):
        return f"<pre>{escape(statement)}</pre>"
    return f"<p>{_linked(statement, names)}</p>"


def _linked(text: str, names: Names) -> str:
    """Return a text in which links to memories lead to their place on the page."""

    def anchor(match: re.Match[str]) -> str:
        target = names.find(match[1])
        label = escape(match[3] or match[1])
        if target is None:
            return f"[[{label}]]"
        return f'<a href="#{_anchor(target)}">{label}</a>'

    pieces = []
    end = 0
    for match in LINK.finditer(text):
        pieces.append(escape(text[end : match.start()]))
        pieces.append(anchor(match))
        end = match.end()
    pieces.append(escape(text[end:]))
    return "".join(pieces)


def _anchor(document: Document) -> str:
    return f"m-{digest(document.path)}"
