"""The YAML block at the top of a text: split off, read with suspicion, written plainly.

No other module imports yaml.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from ragdocs.errors import ParseError, ValidationError
from ragdocs.system.patterns import later
from ragdocs.text.formats import markdown

# A card's metadata is a few hundred bytes; what is larger is a mistake or an attack.
BLOCK_LIMIT = 65_536
DEPTH_LIMIT = 20
EVENT_LIMIT = 20_000

# What a reader looks for first comes first.
_FIRST_KEYS = ("type", "status", "tags", "created_at")

# The line above and below a block of TOML.
TOML = "+++"
_TOML_OPEN = later(r"\+\+\+[ \t]*+\r?\n")
_TOML_CLOSE = later(r"^\+\+\+[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
_KEY = later(
    r"""(?P<key>"(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'|[^\s#\-"'\[\]{}?:,][^:\n]*?)[ \t]*:(?=\s|$)"""
)
_TITLE = later(r"^title[ \t]*+[:=][ \t]*+(\S[^\n]{0,300}+)$", re.MULTILINE)
_COMMENT = later(r"[ \t]+#[^\n]*\n")
_LINE = later(r"[^\n]*\n|[^\n]+")
_LINE_BREAK = later(r"[\n\r\x85\u2028\u2029]")

# A word is a value only if writing the value gives the same word, so that tags like `no`, `3.10`,
# `12:30:45` and dates stay what their author wrote.
_WORDS = (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"0|-?[1-9][0-9]{0,17}", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]{0,6})\.(?:0|[0-9]{0,3}[1-9])", list("-0123456789")),
)


def split(text: str) -> tuple[str | None, str, int]:
    """Return the block between `---` lines at the very top, the body, and the body's first line."""
    text = text.removeprefix("\ufeff")
    offsets = markdown.front(text)
    if not offsets:
        return None, text, 1
    start, stop, rest = offsets
    first_line = text.count("\n", 0, stop) + 2
    return text[start:stop], text[rest:], first_line


def split_toml(text: str) -> tuple[str | None, str, int]:
    """Return the block between `+++` lines at the very top, the body, and its first line."""
    opening = _TOML_OPEN.match(text)
    closing = None
    if opening:
        closing = _TOML_CLOSE.search(text, opening.end())
    if not opening or not closing:
        return None, text, 1
    first_line = text.count("\n", 0, closing.start()) + 2
    return text[opening.end() : closing.start()], text[closing.end() :], first_line


def load_toml(block: str) -> tuple[dict[str, Any], list[str]]:
    """Read a block of TOML into its fields and the problems it has, as `load` does for YAML."""
    if len(block) > BLOCK_LIMIT:
        return {}, [f"frontmatter: larger than {BLOCK_LIMIT // 1024} kB"]
    import tomllib

    try:
        return _keyed(tomllib.loads(block)), []
    except tomllib.TOMLDecodeError as error:
        return {}, [f"frontmatter: {error}"]
    except (RecursionError, ValueError):
        return {}, ["frontmatter: nested too deep, or a number too long"]


def load(block: str) -> tuple[dict[str, Any], list[str]]:
    """Read a block into its fields and the problems it has.

    No fields but problems mean that the block is refused and should be kept as text.
    """
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


def written_title(block: str) -> str:
    """Return the title as it is written in a block, for one that is no YAML: {#each ...}."""
    written = _TITLE.search(block)
    if not written:
        return ""
    return written[1].strip("\"' \r")


def render(metadata: Mapping[str, Any], body: str) -> str:
    """Write a text with one block: well-known keys first, then the others as given."""
    from frontmatter.default_handlers import YAMLHandler

    if not metadata:
        # A body that looks like a block needs an empty one before it.
        if markdown.front(body):
            return f"---\n---\n\n{body}"
        return body
    block = YAMLHandler().export(
        _ordered(metadata),
        Dumper=_dumper(),
        sort_keys=False,
        default_flow_style=None,
        # A value that is folded to a width parts the name of a secret from the secret, and no rule
        # would find it.
        width=2**31 - 1,
    )
    return f"---\n{block}\n---\n{_gap(body)}{body}"


def _ordered(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in the order in which they are written."""
    ordered = {}
    for key in _FIRST_KEYS:
        if key in metadata:
            ordered[key] = plain(metadata[key])
    for key, value in metadata.items():
        if key not in ordered:
            ordered[key] = plain(value)
    return ordered


def _gap(body: str) -> str:
    """Return the blank line between a block and a body that does not begin with one."""
    if not body or body.startswith(("\n", "\r\n")):
        return ""
    return "\n"


def merge(
    content: str, defaults: Mapping[str, Any], fields: Mapping[str, Any] | None = None
) -> str:
    """Write `content` with one block: its own keys win over the defaults, `fields` over its own.

    The lines of its own block stay as they are, comments and order included; others come behind
    them.
    """
    content = content.removeprefix("\ufeff")
    fields = fields or {}
    end = newline(content)
    block, body, _ = split(content)
    if block is None or not block.strip():
        header = render({**defaults, **fields}, "")
        if not header:
            return render({}, body)
        header += _gap(body)
        return header.replace("\n", end) + body
    own, problems = load(block)
    if problems:
        hint = "Correct the block between the --- lines, or leave it out"
        raise ParseError("; ".join(problems), hint)
    changes = {}
    for key, value in defaults.items():
        if key not in own:
            changes[key] = value
    for key, value in fields.items():
        if own.get(key) != plain(value):
            changes[key] = value
    header = set_fields(content, changes)
    return header.replace("\r\n", "\n").replace("\n", end) + body


def newline(text: str) -> str:
    """Return the line ending that a text mostly has."""
    if 2 * text.count("\r\n") > text.count("\n"):
        return "\r\n"
    return "\n"


# --- one field after the other ---


def set_fields(text: str, fields: Mapping[str, Any]) -> str:
    """Return the block of a text with these fields set, or removed where None.

    The lines of others stay as they are.
    """
    start, stop, rest = markdown.front(text) or (0, 0, 0)
    block = text[start:stop]
    wanted, problems = load(block)
    if problems and not wanted:
        hint = "Correct the block between the --- lines with <replace a memory> first"
        raise ParseError("; ".join(problems), hint)
    end = newline(text)
    changes = {}
    for key, value in fields.items():
        if value is None:
            wanted.pop(key, None)
            changes[key] = ""
        else:
            wanted[key] = plain(value)
            changes[key] = _lines_of(key, wanted[key], end)
    new = _spliced(block, changes)
    if load(new)[0] != wanted:
        # A block in some unusual style is written anew.
        new = "".join([_lines_of(key, value, end) for key, value in wanted.items()])
        if load(new)[0] != wanted:
            hint = "Give texts, numbers, true or false, or lists of them"
            raise ValidationError("these fields cannot be written", hint)
    if not rest:
        return f"---{end}{new}---{end}"
    return text[:start] + new + text[stop:rest]


def _lines_of(key: str, value: Any, end: str) -> str:
    # A list beside it keeps YAML from putting the field into braces.
    block = render({key: value, f"{key}_": []}, "")
    lines = block.removeprefix("---\n").removesuffix("---\n")
    last_line = lines.rindex("\n", 0, -1) + 1
    return lines[:last_line].replace("\n", end)


def _spliced(block: str, changes: Mapping[str, str]) -> str:
    """Put the new lines of fields in the place of the old ones, and new fields at the end."""
    new_fields = dict(changes)
    pieces = []
    for key, lines in _fields_of(block):
        if key in changes:
            pieces.append(_with_comment(new_fields.pop(key, ""), lines))
        else:
            pieces.append(lines)
    whole = "".join(pieces)
    more = "".join(new_fields.values())
    if more and whole and not whole.endswith("\n"):
        whole += "\n"
    return whole + more


def _with_comment(new: str, old: str) -> str:
    """Keep the comment behind a value on one line."""
    if new.count("\n") != 1 or old.count("\n") != 1:
        return new
    comment = _COMMENT.search(old)
    # A sign within quotes begins no comment: without what follows, the value would be another.
    if not comment or load(old) != load(old[: comment.start()]):
        return new
    body = new.rstrip("\r\n")
    return body + comment[0].rstrip("\r\n") + new[len(body) :]


def _fields_of(block: str) -> list[tuple[str, str]]:
    """Cut a block into its fields, each with its lines; lines between fields have no name."""
    fields: list[tuple[str, str]] = []
    between = ""
    for line in _LINE.findall(block):
        key = _KEY.match(line)
        is_remark = not line.strip() or line[0] == "#"
        if key:
            fields.append(("", between))
            fields.append((key["key"].strip("\"'"), line))
            between = ""
        elif is_remark or not fields:
            between += line
        else:
            name, lines = fields.pop()
            fields.append((name, lines + between + line))
            between = ""
    fields.append(("", between))
    return fields


# --- values ---


def plain(value: Any) -> Any:
    """Return a value made of what JSON knows; dates become ISO 8601."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return _keyed(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    # Broken characters become question marks.
    return str(value).encode("utf-8", "replace").decode()


def as_text(value: Any) -> str:
    """Return a loaded scalar as its author wrote it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(plain(value))


def _keyed(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    return {as_text(key): plain(value) for key, value in mapping.items()}


def _guard(block: str) -> Iterator[str]:
    """Refuse what could hurt the loader, before it runs, and yield the lesser problems."""
    import yaml

    # One entry for each open collection.
    stack: list[_Keys] = []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for number, event in enumerate(yaml.parse(block, Loader=loader)):
        if number > EVENT_LIMIT:
            raise ParseError(f"more than {EVENT_LIMIT} values")
        # The block starts below the first `---`, and marks count from 0.
        line = event.start_mark.line + 2
        _refuse_reference(event, line)
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            continue
        if stack and isinstance(event, yaml.NodeEvent):
            name = getattr(event, "value", None)
            if stack[-1].repeats(name):
                problem = f"duplicate key {str(name)[:60]!r}; the last one counts"
                yield f"frontmatter: line {line}: {problem}"
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(_Keys(is_mapping=isinstance(event, yaml.MappingStartEvent)))
            if len(stack) > DEPTH_LIMIT:
                raise ParseError(f"line {line}: nested deeper than {DEPTH_LIMIT} levels")


def _refuse_reference(event: Any, line: int) -> None:
    """Refuse anchors, aliases and tags, which make more of a block than its author wrote."""
    # An alias has the name of its anchor.
    if getattr(event, "anchor", None):
        raise ParseError(f"line {line}: anchors and aliases are not accepted")
    if getattr(event, "tag", None) not in {None, "tag:yaml.org,2002:str"}:
        raise ParseError(f"line {line}: the tag {event.tag[:60]!r} is not accepted")


class _Keys:
    """The keys of one open mapping, as its nodes go by; a sequence has none."""

    def __init__(self, *, is_mapping: bool) -> None:
        self.is_mapping = is_mapping
        self.names: set[str] = set()
        self.is_key = False

    def repeats(self, name: str | None) -> bool:
        """Take the next node and tell whether it is a key that was there before."""
        if not self.is_mapping:
            return False
        self.is_key = not self.is_key
        if not self.is_key or name is None:
            return False
        repeated = name in self.names
        self.names.add(name)
        return repeated


def _explain(error: Exception) -> str:
    problem = getattr(error, "problem", None) or "not valid YAML"
    mark = getattr(error, "problem_mark", None)
    if not mark:
        return str(problem)
    return f"line {mark.line + 2}: {problem}"


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
        expression = re.compile(rf"(?:{pattern})\Z")
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", expression, first)
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
            """Write line breaks and spaces at the ends as escapes; other styles lose them."""
            style = None
            if _LINE_BREAK.search(data) or data != data.strip():
                style = '"'
            return self.represent_scalar("tag:yaml.org,2002:str", data, style)

    Dumper.add_representer(str, Dumper.represent_str)
    return Dumper
