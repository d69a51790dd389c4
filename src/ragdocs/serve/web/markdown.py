"""Markdown as safe HTML: nothing in a text can run, load or pose as a part of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ragdocs.text.headings import STEP

# Schemes that a link may have; everything else is shown as text.
SCHEMES = frozenset({"http", "https", "mailto"})
TAGS = frozenset(
    [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "ins",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
# The lines of the file that a block was made of, such as "12-15".
LINES = "data-lines"
ATTRIBUTES = {
    "a": {"href", "title", "class", "rel"},
    "blockquote": {LINES},
    "code": {"class", LINES},
    "h1": {"id", LINES},
    "h2": {"id", LINES},
    "h3": {"id", LINES},
    "h4": {"id", LINES},
    "h5": {"id", LINES},
    "h6": {"id", LINES},
    "hr": {LINES},
    "li": {LINES},
    "ol": {"start", LINES},
    "p": {LINES},
    "span": {"class", "title"},
    "table": {LINES},
    "td": {"class"},
    "th": {"class"},
    "tr": {LINES},
    "ul": {LINES},
}
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]{1,1000})(?:\|([^\[\]\n]{1,1000}))?\]\]")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a link of a text leads on the page; without an address nothing is shown there."""

    address: str
    # What is said about a link without an address, and its class.
    remark: str = "not written yet"
    look: str = "ghost-link"


# Takes what a link has, and whether it is a wikilink.
Resolve = Callable[[str, bool], Target]


def render(text: str, resolve: Resolve, first_line: int = 1, title: str = "") -> str:
    """Return a text as HTML; `resolve` says where its links within the project lead.

    `first_line` is that of the text in its file. A first heading that is the title is left out: the
    page has it already.
    """
    markdown = _parser()
    tokens = markdown.parse(text, {})
    if title and _is_title(tokens, title):
        tokens = tokens[3:]
    _number_headings(tokens)
    _number_lines(tokens, first_line)
    rendered = markdown.renderer.render(tokens, markdown.options, {"resolve": resolve})
    return nh3.clean(
        rendered,
        tags=set(TAGS),
        attributes={name: set(names) for name, names in ATTRIBUTES.items()},
        url_schemes=set(SCHEMES),
        link_rel=None,
    )


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as forges make it."""
    plain = _NOT_IN_ANCHORS.sub("", heading.casefold())
    return plain.strip().replace(" ", "-")


@cache
def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False})
    markdown.enable(["table", "strikethrough"])
    markdown.inline.ruler.before("link", "wikilink", _wikilink)
    markdown.add_render_rule("wikilink", _render_wikilink)
    markdown.add_render_rule("link_open", _render_link)
    markdown.add_render_rule("image", _render_image)
    return markdown


def _wikilink(state: StateInline, silent: bool) -> bool:
    """Take a link such as [[docs/auth.md#Tokens|the tokens]]."""
    match = _WIKILINK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        target = match[1].strip()
        label = match[2] or target.replace("#", STEP, 1)
        token.meta = {"target": target, "label": label.strip()}
    state.pos = match.end()
    return True


def _is_title(tokens: Sequence[Token], title: str) -> bool:
    """Tell whether a text begins with its title as a heading."""
    if len(tokens) < 3 or tokens[0].tag != "h1":  # noqa: PLR2004 - opening, words, closing
        return False
    return tokens[1].content.strip() == title


def _number_lines(tokens: Sequence[Token], first_line: int) -> None:
    """Note the lines of the file that each block was made of."""
    for token in tokens:
        if token.map and token.nesting >= 0 and token.type != "inline":
            first, stop = token.map
            last = max(first, stop - 1)
            token.attrSet(LINES, f"{first + first_line}-{last + first_line}")


def _number_headings(tokens: Sequence[Token]) -> None:
    """Give every heading an anchor of its own."""
    used: dict[str, int] = {}
    for position, token in enumerate(tokens):
        if token.type != "heading_open":
            continue
        name = anchor(tokens[position + 1].content) or "section"
        count = used.get(name, 0)
        used[name] = count + 1
        if count:
            name = f"{name}-{count}"
        # Not a name that the page itself uses.
        token.attrSet("id", f"h-{name}")


def _render_wikilink(
    renderer: RendererHTML, tokens: Sequence[Token], position: int, options: Any, env: Any
) -> str:
    del renderer, options
    meta = tokens[position].meta
    target = env["resolve"](meta["target"], True)
    label = nh3.clean_text(meta["label"])
    if not target.address:
        remark = nh3.clean_text(target.remark)
        return f'<span class="{target.look}" title="{remark}">{label}</span>'
    return f'<a class="wikilink" href="{nh3.clean_text(target.address)}">{label}</a>'


def _render_link(
    renderer: RendererHTML, tokens: Sequence[Token], position: int, options: Any, env: Any
) -> str:
    token = tokens[position]
    address = str(token.attrGet("href") or "")
    if urlsplit(address).scheme:
        # To another site, which learns nothing about this page.
        token.attrSet("rel", "noreferrer noopener nofollow")
        token.attrSet("class", "outside")
    elif address.startswith("#"):
        token.attrSet("href", f"#h-{address[1:]}")
    else:
        target = env["resolve"](address, False)
        token.attrSet("href", target.address)
        if not target.address:
            del token.attrs["href"]
            token.attrSet("class", target.look)
            token.attrSet("title", target.remark)
    return renderer.renderToken(tokens, position, options, env)


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], position: int, options: Any, env: Any
) -> str:
    """Name an image instead of loading it: it could tell another site who reads this."""
    del renderer, options, env
    token = tokens[position]
    label = nh3.clean_text(token.content or str(token.attrGet("src") or ""))
    return f'<span class="image" title="images are not loaded">image: {label}</span>'
