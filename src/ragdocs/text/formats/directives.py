"""Directives in markdown: what a reader sees of their names, labels and attributes.

Containers between colons, the components of Nuxt Content, the roles and labels of MyST, and the
icons and attributes that extensions of Python-Markdown add.
"""

from __future__ import annotations

import re

from ragdocs.system.patterns import later
from ragdocs.text.formats.page import Replacement, Rewrite, names

_TEXTS = (
    r"title|label|text|alt|alt-text|caption|header|heading|summary|description|desc|name|tab"
    r"|question"
)
_STRING = later(
    r"(?:\b([\w-]{1,40}+)[ \t]*+=[ \t]*+)?"
    r"(?:\"([^\"]{0,500}+)\"|`([^`]{0,500}+)`|(?<==)'([^']{0,500}+)')"
)
_SEEN = later(_TEXTS)
# A value of YAML that a reader of the site sees.
_PROPERTY = later(rf"[ \t]*+(?:{_TEXTS})[ \t]*+:[ \t]++[\"']?(.{1, 300}?)[\"']?[ \t]*+$")

_COLONS = later(r"([ \t>]*+):{3,}+[ \t]*+(.*)")
# Of two colons are only those that stand alone, or behind which a name stands.
_TWO_COLONS = later(
    r"([ \t>]*+)::(?=[ \t]*+$|[a-z])"
    r"((?:[a-z][\w-]{0,60}+)?(?:\[[^\[\]]{0,300}+\])?(?:\{[^{}]{0,1000}+\})?)[ \t]*+$"
)
_NAMED = later(
    r"(?P<name>[\w.-]{0,60}+)(?:\[(?P<label>[^\[\]]{0,300}+)\])?"
    r"[ \t]*+(?:\{(?P<attributes>[^{}]{0,1000}+)\})?(?P<title>.*)"
)
_BRACES = later(r"\{([^{}]{0,300}+)\}")
_KINDS = names("note tip info hint important warning caution danger alert success error details")
_CLASS = later(r"\.([\w-]{1,60}+)")
_WORD = later(r"[\w:-]{1,60}+")

# MyST: a name for the section below it.
_LABEL = later(r"\(([\w:. -]{1,200}+)\)=[ \t]*+$")
# Roles whose target is a label in some document.
_TO_LABELS = names("eq numref ref")
_TARGET = later(r"(.*?)[ \t]*+<([^<>]{1,300}+)>\Z")

_ICON_NAME = (
    r"(?<![\w:/\\])(?::material|:fontawesome|:octicons|:simple)-[a-z0-9-]{1,80}+:"
    r"(?:\{[^{}\n]{0,100}+\})?[ \t]?"
)
_ICON = later(_ICON_NAME)

# Without any of these nothing within a line is replaced.
_SIGN = later(r":[a-z][\w-]*+[\[{]|\}`|:(?:material|fontawesome|octicons|simple)-|\)\{")
_WITHIN = later(
    r"(?<![`\\])\{(?P<role>[a-z][\w:+-]{0,60}+)\}`(?P<content>[^`\n]{1,500}+)`(?!`)"
    r"|`[^`\n]{1,300}+`"
    rf"|{_ICON_NAME}"
    r"|(?<![\w:/\\]):(?P<name>[a-z][\w-]{0,60}+)(?:\[(?P<label>[^\[\]\n]{0,300}+)\])?+"
    r"(?:\{(?P<attributes>[^{}\n]{0,1000}+)\})?+(?<=[\]}])"
    r"|(?<=\))\{:?[ \t]*+(?:[.#][\w-]|[\w-]{1,40}+=[\"'\w])[^{}\n]{0,200}+\}"
)
_HREF = later(r"\b(?:href|to)=[\"']([^\"'\s]{1,500}+)[\"']")


def label(name: str, title: str) -> str:
    """Return the kind and the title of a container as words."""
    if "-" in title:
        title = _ICON.sub("", title)
    words = [part.strip(" \t\"'{}:") for part in (name, title)]
    written = ": ".join(filter(None, words))
    if written and not words[1]:
        written += ":"
    return written


def strings(arguments: str, *, named: bool = False) -> list[str]:
    """Return the quoted words that a reader of the site sees; with `named`, only those of a key."""
    words = []
    for match in _STRING.finditer(arguments):
        key, *values = match.groups()
        if (key is None and not named) or (key and _SEEN.fullmatch(key.casefold())):
            words.append("".join(filter(None, values)))
    return words


def container(line: str) -> str | None:
    """Return what a reader sees of a line of colons, nothing if it is none."""
    colons = _COLONS.match(line) or _TWO_COLONS.match(line)
    if not colons:
        return None
    words = colons[2]
    braces = _BRACES.match(words)
    if braces:
        # MyST has the name in braces, Pandoc a class among attributes.
        inside = braces[1].strip()
        title = words[braces.end() :]
        if _WORD.fullmatch(inside):
            return colons[1] + label(inside, title)
        kind = _CLASS.search(inside)
        title = " ".join([*strings(inside, named=True), title])
        return colons[1] + label(kind[1] if kind else "", title)
    named = _NAMED.match(words)
    assert named is not None
    name = named["name"]
    if ":::" not in line and name not in _KINDS:
        # The name of a component, which says how the content looks.
        name = ""
    given = strings(named["attributes"] or "", named=True)
    title = _BRACES.sub("", named["title"])
    if '="' in title:
        # Attributes without braces.
        title = " ".join(strings(title, named=True))
    title = " ".join(filter(None, [named["label"], *given, title]))
    href = _HREF.search(named["attributes"] or "")
    if title and href:
        title = f"[{title}]({href[1]})"
    return colons[1] + label(name, title)


def is_component(line: str) -> bool:
    """Tell whether a line begins a component, which may have properties below it."""
    colons = _COLONS.match(line) or _TWO_COLONS.match(line)
    return bool(colons and colons[2])


def property_seen(line: str) -> str:
    """Return what a reader sees of one property of a component."""
    match = _PROPERTY.match(line)
    return match[1] if match else ""


def anchor(line: str) -> str | None:
    """Return the name that MyST gives the section below a line, as HTML writes it."""
    match = _LABEL.match(line)
    return f'<a id="{match[1]}"></a>' if match else None


def entry(line: str) -> str:
    """Return a line of a table of contents as a link to the document that it names."""
    explicit = _TARGET.match(line.strip())
    target = line.strip()
    words = target
    if explicit:
        target = explicit[2]
        words = explicit[1] or target
    if not target or " " in target or target == "self":
        return line
    return f"[{words}]({beside(target)})"


def within_lines(body: str) -> Rewrite | None:
    """Return what to replace within the lines of a text, if it has any directive there."""
    if not _SIGN.search(body):
        return None
    return Rewrite(_WITHIN, _within)


def _within(match: re.Match[str]) -> Replacement:
    """Return the words of a role or a component."""
    if match["role"]:
        return _role(match["role"], match["content"]), "", ""
    if match[0][0] == "`":
        return match[0], "", ""
    name = match["name"]
    if not name or name == "icon":
        return "", "", ""
    attributes = match["attributes"] or ""
    words = match["label"] or " ".join(strings(attributes, named=True))
    href = _HREF.search(attributes)
    if words and href:
        words = f"[{words}]({href[1]})"
    return words, "", ""


def _role(role: str, content: str) -> str:
    """Return the words of a role, as a link if it leads to a document or a label."""
    explicit = _TARGET.match(content)
    target = content
    words = content
    if explicit:
        target = explicit[2]
        words = explicit[1] or target
    kind = role.rpartition(":")[2]
    if kind in _TO_LABELS and role in (kind, f"std:{kind}"):
        return f"[{words}](##{target})"
    if kind in {"doc", "download"}:
        return f"[{words}]({beside(target)})"
    if kind in {"abbr", "numref", "ref", "term"} or (explicit and explicit[1]):
        return words
    return f"`{content}`"


def beside(target: str) -> str:
    """Return the name of a document as a link has it that begins in the folder of the text."""
    if target[:1] in {".", "/"} or "://" in target:
        return target
    return f"./{target}"
