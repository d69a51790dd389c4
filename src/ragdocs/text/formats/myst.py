"""Labels of MyST: names for places, which links in any document of a project may use.

A label stands above what it names, or among the options of a directive. A link to one looks like a
link to a heading or to a file beside the text, so what is neither is taken for a label here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, islice

from ragdocs.system.patterns import later
from ragdocs.text.formats.page import REFERENCE_LIMIT, Replacement, Rewrite, rewritten
from ragdocs.types import Block

# Roles and directives. Both signs begin with one character, which is looked for ten times as fast.
_SIGN = later(
    r"\{(?:(?:ref|doc|numref|eq|term|any|download)\}`[^`\n]"
    r"|(?<=```\{|~~~\{|:::\{)(?:admonition|attention|code-block|code-cell|dropdown|figure|grid"
    r"|image|important|include|list-table|literalinclude|math|note|seealso|tab-set|tip|toctree"
    r"|warning)\})"
)
_LABEL_SIGN = later(r"\((?<![^\n]\()[^()\n]{1,200}+\)=[ \t]*+\n")
_LABEL = later(
    r"^(?:[ \t]*+\((?P<above>[\w:./ -]{1,200}+)\)=|[ \t]*+:(?:name|label):[ \t]++(?P<option>\S++)"
    r"|\$\$[ \t]\((?P<equation>[\w:.-]{1,200}+)\))[ \t]*+$",
    re.MULTILINE,
)
_LINK = later(
    r"`[^`\n]{1,300}+`|(?<=\]\()(?:(?:project:)?#(?P<place>[^\s()<>#]{1,300}+)"
    r"|(?P<name>(?!(?:https?|mailto|inv|path|xref):)[A-Za-z_][\w-]{0,200}+"
    r"(?:[/:][\w:-]{1,200}+){0,10}+))(?=\))"
)
_CODE = ("fence", "code")


def recognises(text: str) -> bool:
    """Tell whether a markdown text has labels, roles or directives of MyST."""
    if ")=\n" in text and _LABEL_SIGN.search(text):
        return True
    has_marks = "}`" in text or "```{" in text or ":::{" in text
    return has_marks and _SIGN.search(text) is not None


def linked(body: str, blocks: Sequence[Block], own: Collection[str]) -> str:
    """Mark the links to labels in a text by a second `#`; `own` are the ids of its headings."""
    hidden = []
    for block in blocks:
        if block.kind in _CODE:
            hidden.append((block.start, block.stop))

    def marked(match: re.Match[str]) -> Replacement:
        label = match["place"] or match["name"]
        if label is None or (match["place"] and label.casefold() in own):
            return match[0], "", ""
        return f"##{label}", "", ""

    return rewritten(body, Rewrite(_LINK, marked), hidden)[0]


def labelled(text: str, body: str, blocks: Sequence[Block]) -> list[Block]:
    """Give blocks the labels that the text has for them; lines of the body are those of the text.

    A label above a heading is one of the heading, too.
    """
    anchored = list(blocks)
    starts = [block.start for block in blocks]
    for start, label in _labels(text, body):
        number = max(bisect_right(starts, start) - 1, 0)
        if number < len(anchored) and anchored[number].stop <= start:
            number += 1
        _name(anchored, number, label)
        is_mark = number < len(anchored) and body.startswith("<a id=", anchored[number].start)
        below = number + 1
        if is_mark and below < len(anchored) and anchored[below].kind == "heading":
            _name(anchored, below, label)
    return anchored


def _name(blocks: list[Block], number: int, label: str) -> None:
    """Give a block a label, if there is a block of this number."""
    if number < len(blocks):
        anchors = dict.fromkeys((*blocks[number].anchors, label))
        blocks[number] = blocks[number]._replace(anchors=tuple(anchors))


def _labels(text: str, body: str) -> Iterator[tuple[int, str]]:
    """Yield the labels of a text, and where in the body the line of each begins."""
    ends = _line_ends(text)
    starts = [0, *_line_ends(body)]
    for match in islice(_LABEL.finditer(text), REFERENCE_LIMIT):
        label = match["above"] or match["option"] or match["equation"]
        line = bisect_right(ends, match.start())
        yield starts[min(line, len(starts) - 1)], " ".join(label.casefold().split())


def _line_ends(text: str) -> list[int]:
    """Return where the line begins that follows each line."""
    return list(accumulate(len(line) + 1 for line in text.split("\n")))
