"""How large an argument may be, for tools, commands, prompts, resources and completions alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragdocs.errors import ValidationError
from ragdocs.system.names import NAME_BYTES

# As `ragdocs.verbs.memories` has it, whose import would slow down every command.
LONGEST_TEXT = 1_000_000
# Values and levels inside an argument that is a table, such as the fields of a frontmatter block.
MOST_VALUES = 1_000
MOST_LEVELS = 8
# Some clients send a list or a table as the JSON text of it.
LONGEST_JSON = 200_000


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest size of an argument; `most` is the number of items of a list, 0 for a text."""

    about: str
    longest: int
    unit: str = "characters"
    most: int = 0
    is_table: bool = False

    @property
    def words(self) -> str:
        """The bound as the documentation says it."""
        each = f"{self.longest:,} {self.unit}"
        if self.is_table:
            return (
                f"{self.most} fields, {MOST_LEVELS} levels, {MOST_VALUES:,} values, {each} in all"
            )
        if self.most:
            return f"{self.most} items of {each}"
        return each


WORD = Bound("a version, a type, lines, a time or another word", 200)
NAME = Bound("a name, a path or an id", NAME_BYTES, "bytes")
LINE = Bound("a heading, a title or another line", 4_000)
QUERY = Bound("a query or a task", 20_000)
TEXT = Bound("a content or another whole text", LONGEST_TEXT)
URI = Bound("the URI of a resource", 4 * NAME_BYTES, "bytes")
TAGS = Bound("tags", 100, most=100)
KINDS = Bound("types", 100, most=100)
PATHS = Bound("paths", NAME_BYTES, "bytes", most=100)
SOURCES = Bound("memories to merge", NAME_BYTES, "bytes", most=200)
PAIRS = Bound("options of the form KEY=VALUE", 4_000, most=100)
FIELDS = Bound("fields of the frontmatter", 60_000, most=100, is_table=True)

# By the name of the parameter, because the same name means the same everywhere.
PARAMETERS: dict[str, Bound] = {
    **dict.fromkeys(("filename", "new_name", "target_document", "target_file", "path", "id"), NAME),
    **dict.fromkeys(("expected_version", "version", "before", "after", "memory_type"), WORD),
    **dict.fromkeys(("filter_type", "entryType"), WORD),
    **dict.fromkeys(
        (
            "lines",
            "since",
            "expiresAt",
            "mode",
            "kind",
            "lane",
            "text_lane",
            "language",
            "scope",
            "branch_scope",
        ),
        WORD,
    ),
    **dict.fromkeys(("run_id", "step_id", "author", "source", "title", "heading", "section"), LINE),
    **dict.fromkeys(("summary", "context", "work_context", "topic"), LINE),
    **dict.fromkeys(("query", "task"), QUERY),
    **dict.fromkeys(
        ("content", "text", "find", "summary_content", "rationale", "entry", "overview"), TEXT
    ),
    **dict.fromkeys(("version_a", "version_b", "base", "theirs", "yours"), TEXT),
    **dict.fromkeys(("tags", "filter_tags"), TAGS),
    **dict.fromkeys(("paths", "impacted_paths", "files"), PATHS),
    "entryTypes": KINDS,
    "around": NAME,
    **dict.fromkeys(("revisions", "diff", "report"), LINE),
    **dict.fromkeys(("until", "ghosts"), WORD),
    "source_files": SOURCES,
    "source_versions": SOURCES,
    "fields": FIELDS,
}
# Where the same name means something else.
OF_TOOL: dict[tuple[str, str], Bound] = {
    ("journal_search", "content"): QUERY,
    ("append_summary", "summary"): TEXT,
}
# Options of commands that no tool has.
OPTIONS: dict[str, Bound] = {
    **dict.fromkeys(("expect", "remote", "hook", "against", "status"), WORD),
    "branch": LINE,
    "kinds": KINDS,
    **dict.fromkeys(("target", "project", "qrels", "queries", "name"), NAME),
    "from_project": LINE,
    **dict.fromkeys(("tls_cert", "tls_key", "into", "folder"), NAME),
    "words": PATHS,
    **dict.fromkeys(("host", "allow_origin", "forwarded_allow_ips"), LINE),
    **dict.fromkeys(("oauth_issuer", "oauth_audience"), LINE),
    **dict.fromkeys(("settings", "resolve", "fields"), PAIRS),
}
FILE_OPTION = "_file"
# In the requests of the protocol itself; whatever is not named is a line.
REQUESTS: dict[str, Bound] = {"uri": URI, "name": WORD, "value": NAME, "files": QUERY}
BOUNDED_REQUESTS = frozenset(
    {
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/get",
        "completion/complete",
    }
)


def of_tool(tool: str, parameter: str) -> Bound | None:
    """Return the bound of a tool's parameter."""
    return OF_TOOL.get((tool, parameter)) or PARAMETERS.get(parameter)


def of_option(name: str) -> Bound | None:
    """Return the bound of a command's option, by the name that the verb has for it."""
    if name.endswith(FILE_OPTION):
        return NAME
    return OPTIONS.get(name) or PARAMETERS.get(name)


def check_arguments(tool: str, arguments: Mapping[str, Any]) -> None:
    """Refuse the arguments of a tool that are too large."""
    for name, value in arguments.items():
        bound = of_tool(tool, name)
        if bound is not None:
            check(name, value, bound)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse the options of a command that are too large."""
    for name, given in options.items():
        bound = of_option(name)
        if bound is None:
            continue
        value = given
        if isinstance(given, tuple):
            # Words that are typed one by one are one text, unless they are a list.
            value = " ".join(map(str, given))
            if bound.most:
                value = list(given)
        check(name, value, bound)


def check_request(method: str, params: Mapping[str, Any] | None) -> None:
    """Refuse a request for a resource, a prompt or a completion with a text that is too long."""
    if method not in BOUNDED_REQUESTS or not params:
        return
    _check_size(method, params)
    pending: list[Any] = [params]
    while pending:
        for name, value in pending.pop().items():
            if isinstance(value, Mapping):
                pending.append(value)
            elif isinstance(value, str):
                label = str(name)[: WORD.longest]
                check(label, value, REQUESTS.get(name) or PARAMETERS.get(name) or LINE)


def check(name: str, value: Any, bound: Bound) -> None:
    """Refuse one argument that is too large; its type is checked elsewhere."""
    if bound.most and isinstance(value, str):
        value = _parsed(name, value)
    if isinstance(value, str):
        _check_length(name, value, bound)
    elif bound.is_table and isinstance(value, dict):
        _check_table(name, value, bound)
    elif bound.most and isinstance(value, list):
        _check_count(name, len(value), bound.most, "items")
        for position, item in enumerate(value):
            if isinstance(item, str):
                _check_length(f"{name}[{position}]", item, bound)


def refuse_longer(name: str, bound: Bound) -> ValidationError:
    """Return the error about a text that was not even read to its end."""
    return ValidationError(f"{name} is longer than {bound.longest:,} {bound.unit}", _hint(bound))


def _check_length(name: str, text: str, bound: Bound) -> None:
    size = len(text)
    if bound.unit == "bytes":
        size = len(text.encode("utf-8", "surrogatepass"))
    if size > bound.longest:
        message = f"{name} is longer than {bound.longest:,} {bound.unit}: it has {size:,}"
        raise ValidationError(message, _hint(bound))


def _check_count(name: str, count: int, most: int, what: str) -> None:
    if count > most:
        raise ValidationError(
            f"{name} has more than {most:,} {what}: it has {count:,}", "Give fewer"
        )


def _check_table(name: str, table: Mapping[str, Any], bound: Bound) -> None:
    _check_count(name, len(table), bound.most, "fields")
    size = _check_size(name, table)
    if size > bound.longest:
        message = f"{name} is longer than {bound.longest:,} {bound.unit}: it has {size:,}"
        raise ValidationError(message, _hint(bound))


def _check_size(name: str, value: Any) -> int:
    """Count the characters of all texts inside a value; refuse too many values or levels.

    Level by level and not by recursion, so that deep nesting costs no stack.
    """
    characters = count = 0
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                characters += len(item)
            elif isinstance(item, Mapping):
                count += len(item)
                characters += sum(map(len, map(str, item)))
                inner.extend(item.values())
            elif isinstance(item, list):
                count += len(item)
                inner.extend(item)
            _check_count(name, count, MOST_VALUES, "values")
        if not inner:
            return characters
        level = inner
    raise ValidationError(f"{name} is nested deeper than {MOST_LEVELS} levels", "Give it flatter")


def _parsed(name: str, text: str) -> Any:
    """Return the list or table that a client sent as JSON text, or the text."""
    if len(text) > LONGEST_JSON:
        message = f"{name} is longer than {LONGEST_JSON:,} characters as JSON: it has {len(text):,}"
        raise ValidationError(message, "Give fewer or shorter ones")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _hint(bound: Bound) -> str:
    if bound is TEXT:
        return "Split it into several"
    return "Give a shorter one"
