"""The links in a markdown text: where to, of what kind, and in which words."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from ragdocs.text.formats.markdown import Block
from ragdocs.types import Link

MENTIONS = "mentions"
RELATED_TO = "related_to"
TOUCHES = "touches"
IMPACTS = "impacts"

# A document with more is generated, and its links say nothing.
LINK_LIMIT = 5_000
# About a line of text: enough to see why a link is there.
CONTEXT_LENGTH = 100
_LEAST_CONTEXT = 40
# No line on which a link stands alone is longer.
_LINE_WINDOW = 1_000

# Every repetition is possessive and stops at the next bracket, so no text makes these slower than
# its length.
_WIKI = r"(?<!\\)!?\[\[(?P<wiki>[^\[\]\n]{1,600}+)\]\]"
_LABEL = r"(?P<label>(?:!\[[^\[\]]{0,200}+\]\([^()\s]{0,500}+\)|[^\[\]\\\n]|\n(?![ \t]*+\n)|\\.){0,500}+)"
_DESTINATION = (
    r"\([ \t\n]{0,20}+(?:<(?P<angle>[^<>\n]{0,1000}+)>|(?P<path>(?:[^\s()<>\\]|\\.|\([^\s()]{0,300}+\)){0,1000}+))"
    r"(?:[ \t\n]{1,20}+(?:\"[^\"]{0,500}+\"|'[^']{0,500}+'|\([^()]{0,500}+\)))?+[ \t\n]{0,20}+\)"
)
_INLINE = re.compile(rf"{_WIKI}|(?<![\\!])\[{_LABEL}\]{_DESTINATION}")
_REFERENCED = re.compile(
    rf"{_WIKI}|(?<!\\)(?P<image>!)?\[{_LABEL}\](?:{_DESTINATION}|\[(?P<reference>[^\[\]\n]{{0,200}}+)\]|(?![:\[(]))"
)
_PLACES = re.compile(rf"{_WIKI}|(?<!\\)\[{_LABEL}\]{_DESTINATION}")
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<name>[^\[\]\n^][^\[\]\n]{0,200}+)\]:[ \t]{0,20}+"
    r"(?:<(?P<angle>[^<>\n]{1,1000}+)>|(?P<path>[^\s<>]{1,1000}+))",
    re.MULTILINE,
)
_BARE_WIKI = re.compile(_WIKI)
_LEAD = re.compile(
    r"[ \t]*+(?:>[ \t]*+)*+(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?)?"
    r"(?:(?P<word>[\w-]{1,40}+)(?:(?P<explicit>::)[ \t]*+|[ \t]++))?!?"
)
_TOKEN = re.compile(r"`++|<!--|\n(?:[ \t]*+\n)++")
_REMOTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")
_ABSOLUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://|[a-zA-Z]:/|mailto:")
_LANE = re.compile(r"(?:docs|memory):(?=[^\s/])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A bracket right behind a word is an index in code, such as arr[config.py].
_SINGLE = re.compile(r"(?<![A-Za-z0-9_)\[\]!\\])\[(?P<path>[^\[\]\s]{3,200}+)\](?![\[(:\]])")
_PATH = re.compile(
    r"(?:\.{0,2}/)?(?:(?:[\w.@-]{1,80}/){1,20}[\w.@-]{1,80}\.[A-Za-z]\w{0,9}"
    r"|[\w-]{1,80}\.(?:md|rst|txt|py|js|ts|tsx|go|rs|java|c|h|cpp|rb|sh|toml|yaml|yml|json|sql))"
)


def clean_target(target: str) -> str:
    """Return a link's target as a path or name from the root, or nothing if it cannot be one."""
    target = unicodedata.normalize("NFC", target.replace("\\", "/")).strip()
    if _ABSOLUTE.match(target) or _CONTROL.search(target) or {".", ".."} & set(target.split("/")):
        return ""
    return target.strip("/").strip()


def wiki_target(name: str) -> str:
    """Return what a wikilink names; an id such as memory:plan means what plan does."""
    return clean_target(_LANE.sub("", name.strip(), count=1))


def visible(text: str, blocks: Sequence[Block]) -> str:
    """Blank out code and comments, in place and line by line.

    Inline code becomes NUL, all else spaces.
    """
    if "[" not in text:
        return ""
    shown = _covered(text, _hidden_spans(blocks))
    return _covered(shown, _inline_spans(shown))


def _hidden_spans(blocks: Sequence[Block]) -> Iterator[tuple[int, int, str]]:
    """Yield code, comments and metadata, in order."""
    for block in blocks:
        if block.kind in {"fence", "code", "comment", "front"}:
            yield block.start, block.stop, " "
        for start, stop in block.code:
            yield start, stop, " "


def _covered(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, stop, filler in spans:
        pieces += (
            text[done:start],
            "\n".join(filler * len(line) for line in text[start:stop].split("\n")),
        )
        done = stop
    return "".join((*pieces, text[done:]))


def find(shown: str, text: str, path: str, base: str = "") -> Iterator[Link]:
    """Yield every link of a text in order.

    `shown` is what `visible` left of it, `path` is below `base`.
    """
    if "]]" not in shown and "](" not in shown and "]:" not in shown:
        return
    definitions = _definitions(shown)
    for match in (_REFERENCED if definitions else _INLINE).finditer(shown):
        if match["wiki"]:
            name, _, heading = match["wiki"].partition("|")[0].removesuffix("\\").partition("#")
            target = wiki_target(name).removeprefix(f"{base}/")
            kind = _kind(shown, match.start(), match.end())
        else:
            target, heading = _resolve(_destination(match, definitions), posixpath.join(base, path))
            target = target.removeprefix(f"{base}/")
            kind = MENTIONS
        if target:
            yield Link(target, kind, _context(text, match.start(), match.end()), heading.strip())


def places(shown: str, path: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield the start and stop of each link's written name, what it means from the root.

    And whether it is a wikilink.

    Definitions and images count: whoever moves a file wants to know all of them.
    """
    for match in (*_PLACES.finditer(shown), *_DEFINITION.finditer(shown)):
        group = next(
            name for name in ("wiki", "angle", "path") if match.groupdict().get(name) is not None
        )
        name = re.split(r"[|#]" if group == "wiki" else r"[?#]", match[group], maxsplit=1)[
            0
        ].removesuffix("\\")
        target = wiki_target(name) if group == "wiki" else _resolve(_unescaped(name), path)[0]
        if target:
            yield match.start(group), match.start(group) + len(name), target, group == "wiki"


def lint(shown: str, first_line: int = 1) -> Iterator[str]:
    """Yield what looks like a link and is none, with its line."""
    if "]" not in shown:
        return
    defined = _definitions(shown)
    near_misses = [
        (match.start(), match[0], match["path"])
        for match in _SINGLE.finditer(shown)
        if _PATH.fullmatch(match["path"]) and _fold(match["path"]) not in defined
    ]
    for match in _BARE_WIKI.finditer(shown):
        name = match["wiki"].partition("|")[0].partition("#")[0].strip()
        if name.startswith(("./", "../", ".\\", "..\\")):
            near_misses.append((match.start(), match[0], name))
    line, counted = first_line, 0
    for start, written, target in sorted(near_misses):
        line += shown.count("\n", counted, start)
        counted = start
        better = re.sub(r"^(?:\.{0,2}/)++", "", target.replace("\\", "/"))
        yield f"line {line}: {written} is not a link; write [[{better}]]"


def _inline_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield inline code and comments, paragraph by paragraph: neither reaches over a blank line."""
    paragraph: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        if token[0][0] == "\n":
            yield from _paragraph_spans(text, paragraph, token.start())
            paragraph = []
        else:
            paragraph.append(token.span())
    yield from _paragraph_spans(text, paragraph, len(text))


def _paragraph_spans(
    text: str, tokens: list[tuple[int, int]], end: int
) -> Iterator[tuple[int, int, str]]:
    later: dict[int, int] = {}
    partners: list[int | None] = []
    for start, stop in reversed(tokens):
        is_code = text[start] == "`"
        # A backslash takes the first backtick of an opening run, never one of a closing run.
        partners.append(later.get(stop - start - _escaped(text, start)) if is_code else None)
        if is_code:
            later[stop - start] = stop
    partners.reverse()
    done = 0
    unclosed = False
    for (start, stop), partner in zip(tokens, partners, strict=True):
        if start < done:
            continue
        if partner:
            yield start, partner, "\0"
            done = partner
        elif text[start] == "<" and not unclosed:
            closing = text.find("-->", stop, end)
            unclosed = closing < 0
            if not unclosed:
                yield start, closing + 3, " "
                done = closing + 3


def _escaped(text: str, start: int) -> bool:
    before = start
    while before and text[before - 1] == "\\":
        before -= 1
    return (start - before) % 2 == 1


def _kind(shown: str, start: int, stop: int) -> str:
    """Tell a wikilink's kind from its line alone.

    A word put before it, nothing at all, or a sentence.
    """
    first = shown.rfind("\n", max(0, start - _LINE_WINDOW), start) + 1
    last = shown.find("\n", stop, stop + _LINE_WINDOW)
    if (not first and start > _LINE_WINDOW) or (last < 0 and len(shown) - stop > _LINE_WINDOW):
        return MENTIONS
    line = shown[first : last if last >= 0 else len(shown)]
    opening = _BARE_WIKI.search(line)
    lead = opening and _LEAD.fullmatch(line[: opening.start()])
    if not opening or not lead or _BARE_WIKI.sub("", line[opening.start() :]).strip(" \t\r,"):
        return MENTIONS
    word = lead["word"]
    if not word:
        return RELATED_TO
    alone = len(_BARE_WIKI.findall(line)) == 1
    is_kind = (
        word[0].isalpha()
        and word == word.lower()
        and (lead["explicit"] or (lead["item"] and alone))
    )
    return unicodedata.normalize("NFC", word) if is_kind else MENTIONS


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def _definitions(shown: str) -> dict[str, str]:
    if "]:" not in shown:
        return {}
    # The first definition of a name counts.
    found = [
        (_fold(match["name"]), match["angle"] or match["path"])
        for match in _DEFINITION.finditer(shown)
    ]
    return dict(reversed(found))


def _destination(match: re.Match[str], definitions: Mapping[str, str]) -> str:
    written = match["angle"] or match["path"]
    if definitions and match["image"]:
        return ""
    if written is not None or not definitions:
        return _unescaped(written or "")
    return definitions.get(_fold(match["reference"] or match["label"]), "")


def _unescaped(destination: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", destination)


def _resolve(destination: str, path: str) -> tuple[str, str]:
    """Return the path from the root that a relative destination means, and its heading.

    Nothing if it leads out.
    """
    if _REMOTE.match(destination):
        return "", ""
    name, _, heading = destination.partition("#")
    name = unquote(name.partition("?")[0]).replace("\\", "/")
    if not name or _CONTROL.search(name):
        return "", ""
    here = "" if name.startswith("/") else posixpath.dirname(path)
    target = posixpath.normpath(posixpath.join(here, name.lstrip("/")))
    return ("", "") if target in {"", "."} else (clean_target(target), unquote(heading))


def _context(text: str, start: int, stop: int) -> str:
    """Return about a line of the paragraph around a link, cut between words."""
    room = max(CONTEXT_LENGTH - (stop - start), _LEAST_CONTEXT)
    left = re.sub(
        r"\s++", " ", re.split(r"\n\s*\n", text[max(0, start - 3 * room) : start])[-1]
    ).lstrip()
    right = re.sub(r"\s++", " ", re.split(r"\n\s*\n", text[stop : stop + 3 * room])[0]).rstrip()
    taken = min(len(left), max(room // 2, room - len(right)))
    rest = min(len(right), room - taken)
    before, after = left[len(left) - taken :], right[:rest]
    if taken < len(left):
        before = "…" + (before.partition(" ")[2] if " " in before else before)
    if rest < len(right):
        after = (after.rpartition(" ")[0] if " " in after else after) + "…"
    return before + " ".join(text[start:stop].split()) + after
