"""The YAML block at the top of a text: split off, read with suspicion, written plainly.

The only user of yaml.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from ragdocs.errors import ParseError, ValidationError
from ragdocs.text.formats import markdown as markup

# A card's metadata is a few hundred bytes; what is larger is a mistake or an attack.
BLOCK_LIMIT = 65_536
DEPTH_LIMIT = 20
EVENT_LIMIT = 20_000

# What a reader looks for first comes first.
_FIRST_KEYS = ("type", "status", "tags", "created_at")

_KEY = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'|[^\s#\-"'\[\]{}?:,][^:\n]*?)[ \t]*:(?=\s|$)"""
)
_COMMENT = re.compile(r"[ \t]+#[^\n]*\n")
_LINE_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")

# A word is a value only if writing the value gives the same word, so that tags like `no`, `3.10`,
# `12:30:45` and dates stay what their author wrote.
_WORDS = (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"0|-?[1-9][0-9]{0,17}", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]{0,6})\.(?:0|[0-9]{0,3}[1-9])", list("-0123456789")),
)


def split(text: str) -> tuple[str | None, str, int]:
    """Return the block between `---` lines at the very top, the body below it.

    And the body's first line number.
    """
    text = text.removeprefix("\ufeff")
    found = markup.front(text)
    if not found:
        return None, text, 1
    start, stop, rest = found
    return text[start:stop], text[rest:], text.count("\n", 0, stop) + 2


def load(block: str) -> tuple[dict[str, Any], list[str]]:
    """Read a block; an empty mapping with problems means that the block is refused and should be kept as text."""
    from frontmatter.default_handlers import YAMLHandler
    from yaml import YAMLError

    if len(block) > BLOCK_LIMIT:
        return {}, [f"frontmatter: larger than {BLOCK_LIMIT // 1024} kB"]
    block = block.replace("\r\n", "\n")
    try:
        problems = list(_guard(block))
        loaded = YAMLHandler().load(block, Loader=_loader())
    except ParseError as error:
        return {}, [f"frontmatter: {error.message}"]
    except YAMLError as error:
        return {}, [f"frontmatter: {_explain(error)}"]
    except ValueError as error:
        # Half a surrogate pair cannot be handed to the parser at all.
        return {}, [f"frontmatter: not valid text ({type(error).__name__})"]
    if loaded is None and not block.strip():
        loaded = {}
    if not isinstance(loaded, dict):
        return {}, ["frontmatter: not a mapping of keys to values"]
    return _keyed(loaded), problems


def render(metadata: Mapping[str, Any], body: str) -> str:
    """Write a text with one block: well-known keys first, then the others as given."""
    from frontmatter.default_handlers import YAMLHandler

    keys = [
        *(key for key in _FIRST_KEYS if key in metadata),
        *(key for key in metadata if key not in _FIRST_KEYS),
    ]
    if not keys:
        return f"---\n---\n\n{body}" if markup.front(body) else body
    ordered = {key: plain(metadata[key]) for key in keys}
    # A value that is folded to a width parts the name of a secret from the secret, and no rule
    # would find it.
    block = YAMLHandler().export(
        ordered, Dumper=_dumper(), sort_keys=False, default_flow_style=None, width=2**31 - 1
    )
    between = "" if not body or body.startswith(("\n", "\r\n")) else "\n"
    return f"---\n{block}\n---\n{between}{body}"


def merge(
    content: str, defaults: Mapping[str, Any], fields: Mapping[str, Any] | None = None
) -> str:
    """Write `content` with one block.

    Its own keys win over the defaults, and `fields` over its own.

    The lines of its own block stay as they are, comments and order included; others come behind
    them.
    """
    content = content.removeprefix("\ufeff")
    fields = fields or {}
    end = newline(content)
    block, body, _ = split(content)
    if block is None or not block.strip():
        header = render({**defaults, **fields}, "")
        if header and body and not body.startswith(("\n", "\r\n")):
            header += "\n"
        return header.replace("\n", end) + body if header else render({}, body)
    own, problems = load(block)
    if problems:
        raise ParseError(
            "; ".join(problems), "Correct the block between the --- lines, or leave it out"
        )
    missing = {key: value for key, value in defaults.items() if key not in own}
    changed = {key: value for key, value in fields.items() if own.get(key) != plain(value)}
    header = set_fields(content, {**missing, **changed})
    return header.replace("\r\n", "\n").replace("\n", end) + body


def newline(text: str) -> str:
    """Return the line ending that a text mostly has."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


# --- the body ---


def set_fields(text: str, fields: Mapping[str, Any]) -> str:
    """Return the block of a text with these fields set, or removed where None.

    The lines of others stay as they are.
    """
    found = markup.front(text)
    block = text[found[0] : found[1]] if found else ""
    loaded, problems = load(block)
    if problems and not loaded:
        raise ParseError(
            "; ".join(problems), "Correct the block between the --- lines with update_memory first"
        )
    changed = {key: plain(value) for key, value in fields.items()}
    wanted = {
        key: value
        for key, value in {**loaded, **changed}.items()
        if value is not None or key not in fields
    }
    end = newline(text)
    changes = {
        key: "" if value is None else _lines_of(key, value, end) for key, value in changed.items()
    }
    # A block in some unusual style is written anew.
    for new in (
        _spliced(block, changes),
        "".join(_lines_of(key, value, end) for key, value in wanted.items()),
    ):
        if load(new)[0] == wanted:
            return (
                text[: found[0]] + new + text[found[1] : found[2]]
                if found
                else f"---{end}{new}---{end}"
            )
    raise ValidationError(
        "these fields cannot be written", "Give texts, numbers, true or false, or lists of them"
    )


def _lines_of(key: str, value: Any, end: str) -> str:
    # A list beside it keeps YAML from putting the field into braces.
    lines = render({key: value, f"{key}_": []}, "").removeprefix("---\n").removesuffix("---\n")
    return lines[: lines.rindex("\n", 0, -1) + 1].replace("\n", end)


def _spliced(block: str, changes: Mapping[str, str]) -> str:
    """Put the new lines of fields in the place of the old ones.

    And those of new fields at the end.
    """
    left = dict(changes)
    pieces = []
    for key, lines in _fields_of(block):
        pieces.append(_with_comment(left.pop(key, ""), lines) if key in changes else lines)
    whole = "".join(pieces)
    more = "".join(left.values())
    return whole + ("\n" if more and whole and not whole.endswith("\n") else "") + more


def _with_comment(new: str, old: str) -> str:
    """Keep the comment behind a value on one line."""
    found = _COMMENT.search(old) if new.count("\n") == 1 and old.count("\n") == 1 else None
    # A sign within quotes begins no comment: without what follows, the value would be another.
    if not found or load(old) != load(old[: found.start()]):
        return new
    body = new.rstrip("\r\n")
    return body + found[0].rstrip("\r\n") + new[len(body) :]


def _fields_of(block: str) -> list[tuple[str, str]]:
    """Cut a block into its fields, each with the lines that belong to it.

    What lies between has no name.
    """
    found: list[tuple[str, str]] = []
    between = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", block):
        key = _KEY.match(line)
        if key:
            found += [("", between), (key["key"].strip("\"'"), line)]
            between = ""
        elif not line.strip() or line[0] == "#":
            between += line
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + between + line)
            between = ""
        else:
            between += line
    return [*found, ("", between)]


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows.

    Dates become ISO 8601 and broken characters question marks.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return _keyed(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return str(value).encode("utf-8", "replace").decode()


def as_text(value: Any) -> str:
    """Return a loaded scalar as its author wrote it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(plain(value))


def _keyed(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    return {as_text(key): plain(value) for key, value in mapping.items()}


def _guard(block: str) -> Iterator[str]:
    """Refuse what could hurt the loader, before it runs, and yield the lesser problems."""
    import yaml

    # One entry for each open collection: the keys seen and whether a key comes next, or None for a
    # sequence.
    stack: list[_Keys | None] = []
    for number, event in enumerate(
        yaml.parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    ):
        # The block starts below the first `---`, and marks count from 0.
        line = event.start_mark.line + 2
        if number > EVENT_LIMIT:
            raise ParseError(f"more than {EVENT_LIMIT} values")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ParseError(f"line {line}: anchors and aliases are not accepted")
        if getattr(event, "tag", None) not in {None, "tag:yaml.org,2002:str"}:
            raise ParseError(f"line {line}: the tag {event.tag[:60]!r} is not accepted")
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            continue
        if stack and stack[-1] and isinstance(event, yaml.NodeEvent):
            name = event.value if isinstance(event, yaml.ScalarEvent) else None
            if stack[-1].repeats(name):
                yield f"frontmatter: line {line}: duplicate key {str(name)[:60]!r}; the last one counts"
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(_Keys() if isinstance(event, yaml.MappingStartEvent) else None)
            if len(stack) > DEPTH_LIMIT:
                raise ParseError(f"line {line}: nested deeper than {DEPTH_LIMIT} levels")


class _Keys:
    """The keys of one mapping, seen as its nodes go by."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.is_key = False

    def repeats(self, name: str | None) -> bool:
        """Take the next node and tell whether it is a key that was seen before."""
        self.is_key = not self.is_key
        if not self.is_key or name is None:
            return False
        repeated = name in self.seen
        self.seen.add(name)
        return repeated


def _explain(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 2}: " if mark else ""
    return f"{place}{getattr(error, 'problem', None) or 'not valid YAML'}"


@functools.cache
def _loader() -> type:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads a word as a value only where that loses nothing."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Read every key as text: as values, `1` and `true` would be the same key."""
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    for name, pattern, first in _WORDS:
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), first
        )
    return Loader


@functools.cache
def _dumper() -> type:
    import yaml

    # The C emitter escapes everything beyond the basic plane; a memory's emoji should stay
    # readable.
    class Dumper(yaml.SafeDumper):
        """Writes every value out where it stands."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
            """Never refer to a value written before."""
            return True

        def represent_str(self, data: str) -> yaml.ScalarNode:
            """Write line breaks and odd spaces at the ends as escapes.

            Other styles fold or lose them.
            """
            style = '"' if _LINE_BREAK.search(data) or data != data.strip() else None
            return self.represent_scalar("tag:yaml.org,2002:str", data, style)

    Dumper.add_representer(str, Dumper.represent_str)
    return Dumper
