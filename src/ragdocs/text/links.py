"""The links in a markdown text: where to, of what kind, and in which words."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from ragdocs.system.patterns import later
from ragdocs.text.formats.page import Reference
from ragdocs.text.link_kinds import MENTIONS, RELATED_TO
from ragdocs.types import Block, Link

# A document with more is generated, and its links say nothing.
LINK_LIMIT = 5_000
# About a line of text: enough to see why a link is there.
CONTEXT_LENGTH = 100
_LEAST_CONTEXT = 40
# No line on which a link stands alone is longer.
_LINE_WINDOW = 1_000

# Every repetition is possessive and stops at the next bracket, so no text makes these slower than
# its length.
_WIKI_NAME = r"\[(?P<wiki>[^\[\]\n]{1,600}+)\]\]"
_WIKI = rf"(?<!\\)!?\[{_WIKI_NAME}"
_LABEL = (
    r"(?P<label>(?:!\[[^\[\]]{0,200}+\]\([^()\s]{0,500}+\)"
    r"|[^\[\]\\\n]|\n(?![ \t]*+\n)|\\.){0,500}+)"
)
_DESTINATION = (
    r"\([ \t\n]{0,20}+(?:<(?P<angle>[^<>\n]{0,1000}+)>"
    r"|(?P<path>(?:[^\s()<>\\]|\\.|\([^\s()]{0,300}+\)){0,1000}+))"
    r"(?:[ \t\n]{1,20}+(?:\"[^\"]{0,500}+\"|'[^']{0,500}+'|\([^()]{0,500}+\)))?+[ \t\n]{0,20}+\)"
)
# The same as `_WIKI` or a link that has a destination, from its first character on: what begins
# with a set of characters is looked for ten times as fast.
_INLINE = later(
    rf"[!\[](?:(?<!\\[!\[])(?:(?<=!)\[|(?<=\[)){_WIKI_NAME}"
    rf"|(?<=\[)(?<![\\!]\[){_LABEL}\]{_DESTINATION})"
)
_REFERENCED = later(
    rf"{_WIKI}|(?<!\\)(?P<image>!)?\[{_LABEL}\]"
    rf"(?:{_DESTINATION}|\[(?P<reference>[^\[\]\n]{{0,200}}+)\]|(?![:\[(]))"
)
_WRITTEN = later(rf"{_WIKI}|(?<!\\)\[{_LABEL}\]{_DESTINATION}")
_DEFINITION = later(
    r"^ {0,3}\[(?P<name>[^\[\]\n^][^\[\]\n]{0,200}+)\]:[ \t]{0,20}+"
    r"(?:<(?P<angle>[^<>\n]{1,1000}+)>|(?P<path>[^\s<>]{1,1000}+))",
    re.MULTILINE,
)
_BARE_WIKI = later(_WIKI)
_LEAD = later(
    r"[ \t]*+(?:>[ \t]*+)*+(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?)?"
    r"(?:(?P<word>[\w-]{1,40}+)(?:(?P<explicit>::)[ \t]*+|[ \t]++))?!?"
)
_TOKEN = later(r"``*+|<!--|\n(?:[ \t]*+\n)++")
_REMOTE = later(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")
# What a template puts into a destination is not known here.
_TEMPLATE = later(r"\{\{|\{%|\$\{|<%")
# MyST: a document of this project. A label in any of them is marked so by the reader.
_PROJECT = "project:"
_LABELLED = "##"
# The top of a site, as some generators write it.
_TOP = later(r"\A@(?:site)?/")
_ABSOLUTE = later(r"[a-zA-Z][a-zA-Z0-9+.-]*://|[a-zA-Z]:/|mailto:")
_LANE = later(r"(?:docs|memory):(?=[^\s/])")
_CONTROL = later(r"[\x00-\x1f\x7f]")
# A bracket right behind a word is an index in code, such as arr[config.py].
_SINGLE = later(r"(?<![A-Za-z0-9_)\[\]!\\])\[(?P<path>[^\[\]\s]{3,200}+)\](?![\[(:\]])")
_PATH = later(
    r"(?:\.{0,2}/)?(?:(?:[\w.@-]{1,80}/){1,20}[\w.@-]{1,80}\.[A-Za-z]\w{0,9}"
    r"|[\w-]{1,80}\.(?:md|rst|txt|py|js|ts|tsx|go|rs|java|c|h|cpp|rb|sh|toml|yaml|yml|json|sql))"
)
_ESCAPED = later(r"\\([!-/:-@\[-`{-~])")
_BLANK_LINE = later(r"\n\s*\n")
_SPACES = later(r"\s++")
_AFTER_WIKI_NAME = later(r"[|#]")
_AFTER_PATH = later(r"[?#]")
_UP = later(r"^(?:\.{0,2}/)++")

# Start, stop and what every character of it becomes.
_Cover = tuple[int, int, str]
# Start, stop, the target from the root, and whether the link is a wikilink.
_WrittenName = tuple[int, int, str, bool]


def clean_target(target: str) -> str:
    """Return a link's target as a path or name from the root, or nothing if it cannot be one."""
    target = unicodedata.normalize("NFC", target.replace("\\", "/")).strip()
    if _ABSOLUTE.match(target) or _CONTROL.search(target):
        return ""
    steps = target.split("/")
    if "." in steps or ".." in steps:
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
    without_blocks = _covered(text, _hidden_spans(blocks))
    return _covered(without_blocks, _inline_spans(without_blocks))


def _hidden_spans(blocks: Sequence[Block]) -> Iterator[_Cover]:
    """Yield code, comments and metadata, in order."""
    for block in blocks:
        if block.kind in {"fence", "code", "comment", "front"}:
            yield block.start, block.stop, " "
        for start, stop in block.code:
            yield start, stop, " "


def _covered(text: str, spans: Iterable[_Cover]) -> str:
    pieces: list[str] = []
    done = 0
    for start, stop, filler in spans:
        pieces.append(text[done:start])
        lines = [filler * len(line) for line in text[start:stop].split("\n")]
        pieces.append("\n".join(lines))
        done = stop
    pieces.append(text[done:])
    return "".join(pieces)


def find(prose: str, text: str, path: str, base: str = "") -> Iterator[Link]:
    """Yield every link of a text in order.

    `shown` is what `visible` left of it, `path` is below `base`.
    """
    if "]]" not in prose and "](" not in prose and "]:" not in prose:
        return
    definitions = _definitions(prose)
    pattern = _INLINE
    if definitions:
        pattern = _REFERENCED
    full_path = posixpath.join(base, path)
    for match in pattern.finditer(prose):
        kind = MENTIONS
        if match["wiki"]:
            written = match["wiki"].partition("|")[0].removesuffix("\\")
            name, _, heading = written.partition("#")
            target = wiki_target(name)
            kind = _kind(prose, match.start(), match.end())
        else:
            written = _destination(match, definitions)
            target, heading = _resolve(written, full_path)
            if written.startswith(_LABELLED):
                target = clean_target(unquote(written.removeprefix(_LABELLED)))
                heading = ""
        target = target.removeprefix(f"{base}/")
        if target:
            context = _context(text, match.start(), match.end())
            yield Link(target, kind, context, heading.strip())


def referred(
    references: Iterable[Reference], text: str, path: str, base: str = ""
) -> Iterator[Link]:
    """Yield the links that a reader found in a text, each with the words around it."""
    for reference in references:
        target = clean_target(reference.name)
        heading = target
        if reference.destination:
            target, heading = destination(reference.destination, path, base)
        if target:
            context = _context(text, reference.start, reference.stop)
            yield Link(target, reference.kind or MENTIONS, context, heading)


def destination(written: str, path: str, base: str = "") -> tuple[str, str]:
    """Return the target that a relative link in the file at a path means, and its heading."""
    target, heading = _resolve(written, posixpath.join(base, path))
    return target.removeprefix(f"{base}/"), heading.strip()


def written_names(prose: str, path: str) -> Iterator[_WrittenName]:
    """Yield each link's name: start and stop, its target from the root, whether a wikilink has it.

    Definitions and images count: whoever moves a file wants to know all of them.
    """
    for match in _WRITTEN.finditer(prose):
        if match["wiki"] is not None:
            start = match.start("wiki")
            name = _name_before(_AFTER_WIKI_NAME, match["wiki"])
            target = wiki_target(name)
            if target:
                yield start, start + len(name), target, True
        else:
            yield from _written_path(match, path)
    for match in _DEFINITION.finditer(prose):
        yield from _written_path(match, path)


def _written_path(match: re.Match[str], path: str) -> Iterator[_WrittenName]:
    """Yield the path that a link or a definition has, if it leads somewhere."""
    group = "path"
    if match["angle"] is not None:
        group = "angle"
    start = match.start(group)
    name = _name_before(_AFTER_PATH, match[group])
    target, _ = _resolve(_unescaped(name), path)
    if target:
        yield start, start + len(name), target, False


def _name_before(mark: re.Pattern[str], written: str) -> str:
    """Return what stands before the label, the heading or the query of a link."""
    name = mark.split(written, maxsplit=1)[0]
    return name.removesuffix("\\")


def lint(prose: str, first_line: int = 1) -> Iterator[str]:
    """Yield text that looks like a link but is not, with its line."""
    if "]" not in prose:
        return
    line = first_line
    counted = 0
    for start, written, target in sorted(_near_misses(prose)):
        line += prose.count("\n", counted, start)
        counted = start
        better = _UP.sub("", target.replace("\\", "/"))
        yield f"line {line}: {written} is not a link; write [[{better}]]"


def _near_misses(prose: str) -> Iterator[tuple[int, str, str]]:
    """Yield paths in single brackets, and wikilinks to paths that are relative to their file."""
    definitions = _definitions(prose)
    for match in _SINGLE.finditer(prose):
        path = match["path"]
        if _PATH.fullmatch(path) and _fold(path) not in definitions:
            yield match.start(), match[0], path
    for match in _BARE_WIKI.finditer(prose):
        written = match["wiki"].partition("|")[0]
        name = written.partition("#")[0].strip()
        if name.startswith(("./", "../", ".\\", "..\\")):
            yield match.start(), match[0], name


def _inline_spans(text: str) -> Iterator[_Cover]:
    """Yield inline code and comments, paragraph by paragraph: neither reaches over a blank line."""
    paragraph: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        if token[0][0] == "\n":
            yield from _paragraph_spans(text, paragraph, token.start())
            paragraph = []
        else:
            paragraph.append(token.span())
    yield from _paragraph_spans(text, paragraph, len(text))


def _paragraph_spans(text: str, tokens: list[tuple[int, int]], end: int) -> Iterator[_Cover]:
    if not tokens:
        return
    done = 0
    has_open_comment = False
    code_stops = _code_stops(text, tokens)
    for (start, stop), code_stop in zip(tokens, code_stops, strict=True):
        if start < done:
            continue
        if code_stop:
            yield start, code_stop, "\0"
            done = code_stop
        elif text[start] == "<" and not has_open_comment:
            closing = text.find("-->", stop, end)
            has_open_comment = closing < 0
            if not has_open_comment:
                done = closing + 3
                yield start, done, " "


def _code_stops(text: str, tokens: list[tuple[int, int]]) -> list[int]:
    """Return for each token where the inline code ends that it opens, 0 if it opens none."""
    # The end of the next run of backticks, by its length.
    later: dict[int, int] = {}
    stops: list[int] = []
    for start, stop in reversed(tokens):
        if text[start] != "`":
            stops.append(0)
            continue
        length = stop - start
        # A backslash takes the first backtick of an opening run, never one of a closing run.
        stops.append(later.get(length - _is_escaped(text, start), 0))
        later[length] = stop
    stops.reverse()
    return stops


def _is_escaped(text: str, start: int) -> bool:
    before = start
    while before and text[before - 1] == "\\":
        before -= 1
    return (start - before) % 2 == 1


def _kind(prose: str, start: int, stop: int) -> str:
    """Tell a wikilink's kind from its line: a word before it, nothing at all, or a sentence."""
    line = _line_around(prose, start, stop)
    opening = _BARE_WIKI.search(line)
    if not opening:
        return MENTIONS
    lead = _LEAD.fullmatch(line[: opening.start()])
    rest = _BARE_WIKI.sub("", line[opening.start() :])
    if not lead or rest.strip(" \t\r,"):
        return MENTIONS
    word = lead["word"]
    if not word:
        return RELATED_TO
    if not word[0].isalpha() or word != word.lower():
        return MENTIONS
    is_alone = lead["item"] and len(_BARE_WIKI.findall(line)) == 1
    if lead["explicit"] or is_alone:
        return unicodedata.normalize("NFC", word)
    return MENTIONS


def _line_around(prose: str, start: int, stop: int) -> str:
    """Return the line on which a link stands, empty if it is too long to hold a link alone."""
    first = prose.rfind("\n", max(0, start - _LINE_WINDOW), start) + 1
    if not first and start > _LINE_WINDOW:
        return ""
    last = prose.find("\n", stop, stop + _LINE_WINDOW)
    if last >= 0:
        return prose[first:last]
    if len(prose) - stop > _LINE_WINDOW:
        return ""
    return prose[first:]


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def _definitions(prose: str) -> dict[str, str]:
    """Return the destinations that references are defined to have, by folded name."""
    if "]:" not in prose:
        return {}
    destinations: dict[str, str] = {}
    for match in _DEFINITION.finditer(prose):
        name = _fold(match["name"])
        # The first definition of a name counts.
        destinations.setdefault(name, match["angle"] or match["path"])
    return destinations


def _destination(match: re.Match[str], definitions: Mapping[str, str]) -> str:
    written = match["angle"] or match["path"]
    if not definitions:
        return _unescaped(written or "")
    if match["image"]:
        return ""
    if written is not None:
        return _unescaped(written)
    return definitions.get(_fold(match["reference"] or match["label"]), "")


def _unescaped(destination: str) -> str:
    return _ESCAPED.sub(r"\1", destination)


def _resolve(destination: str, path: str) -> tuple[str, str]:
    """Return the path from the root that a relative destination means, and its heading.

    Both are empty if it leads out.
    """
    destination = _TOP.sub("/", destination.removeprefix(_PROJECT), count=1)
    if _REMOTE.match(destination) or _TEMPLATE.search(destination):
        return "", ""
    written, _, heading = destination.partition("#")
    name = unquote(written.partition("?")[0]).replace("\\", "/")
    if not name or _CONTROL.search(name):
        return "", ""
    if name.startswith("/"):
        target = posixpath.normpath(name.lstrip("/"))
    else:
        folder = posixpath.dirname(path)
        target = posixpath.normpath(posixpath.join(folder, name))
    if target in {"", "."}:
        return "", ""
    return clean_target(target), unquote(heading)


def _context(text: str, start: int, stop: int) -> str:
    """Return about a line of the paragraph around a link, cut between words."""
    room = max(CONTEXT_LENGTH - (stop - start), _LEAST_CONTEXT)
    reach = 3 * room
    above = _BLANK_LINE.split(text[max(0, start - reach) : start])[-1]
    below = _BLANK_LINE.split(text[stop : stop + reach], maxsplit=1)[0]
    left = _SPACES.sub(" ", above).lstrip()
    right = _SPACES.sub(" ", below).rstrip()
    left_length = min(len(left), max(room // 2, room - len(right)))
    right_length = min(len(right), room - left_length)
    words = " ".join(text[start:stop].split())
    return _end_of(left, left_length) + words + _beginning_of(right, right_length)


def _end_of(text: str, length: int) -> str:
    """Return the last words of a text, about so many characters."""
    if length == len(text):
        return text
    end = text[len(text) - length :]
    if " " in end:
        end = end.partition(" ")[2]
    return f"…{end}"


def _beginning_of(text: str, length: int) -> str:
    """Return the first words of a text, about so many characters."""
    if length == len(text):
        return text
    beginning = text[:length]
    if " " in beginning:
        beginning = beginning.rpartition(" ")[0]
    return f"{beginning}…"
