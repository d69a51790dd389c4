"""The generated tables in docs/, made by `python -m ragdocs.serve.reference`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click

from ragdocs import config
from ragdocs.keys import toml
from ragdocs.project.formats import FORMATS
from ragdocs.serve.cli import listed
from ragdocs.serve.cli.app import build, summary
from ragdocs.serve.surface import Param, Verb, bounds
from ragdocs.serve.surface.catalog import offered

# Options that every command has.
COMMON = frozenset({"project", "as_json", "settings"})
# A link in a description is an example: it leads to no page of ours.
LINK = re.compile(r"\[\[[^\[\]]{1,100}\]\]")


def tools() -> str:
    """Return one section for each tool: when to call it, its parameters, and what it returns."""
    everything = config.Config(
        root=Path(),
        docs=config.DocsConfig(commits=True),
        server=config.ServerConfig(toolsets=(*config.TOOLSETS, *config.MORE_TOOLSETS)),
    )
    return "\n\n".join(map(_tool, offered(everything)))


def commands() -> str:
    """Return one line for each command and its options."""
    rows = ["| Command | What it does |", "|---|---|"]
    root = build()
    context = click.Context(root, info_name="ragdocs")
    for name, command in _commands_of(root, context, "ragdocs"):
        words = [name]
        for parameter in command.params:
            if parameter.name not in COMMON:
                words.append(_usage(parameter))
        rows.append(f"| `{' '.join(words)}` | {command.help} |")
    return "\n".join(rows)


def keys() -> str:
    """Return the table of keys for the documentation."""
    lines = [
        "| Key | Default | Takes | From a project's file | What it does |",
        "|---|---|---|---|---|",
    ]
    for key in config.KEYS.values():
        trust = "yes"
        if key.personal:
            trust = "no"
        elif key.project_choices:
            trust = "only " + " or ".join(map(_code, map(toml, key.project_choices)))
        default = _code(toml(key.default))
        lines.append(f"| `{key.full_name}` | {default} | {key.wanted} | {trust} | {key.about} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """Return a text as code in markdown."""
    return f"`{text}`"


def limits() -> str:
    """Return the table of how large arguments may be."""
    rows = ["| Argument | At most | Parameters |", "|---|---|---|"]
    for bound in dict.fromkeys((*bounds.PARAMETERS.values(), *bounds.REQUESTS.values())):
        names = _bounded(bound) or ["of requests for resources"]
        rows.append(f"| {bound.about} | {bound.words} | {', '.join(names)} |")
    return "\n".join(rows)


def _bounded(bound: bounds.Bound) -> list[str]:
    """Return the parameters that a bound is for."""
    names = []
    for name, own in bounds.PARAMETERS.items():
        if own is bound:
            names.append(_code(name))
    for (tool, name), own in bounds.OF_TOOL.items():
        if own is bound:
            names.append(f"`{name}` of `{tool}`")
    return names


def formats() -> str:
    """Return the table of formats and how each is read."""
    rows = ["| Format | Endings | Where | How it is read |", "|---|---|---|---|"]
    for kind in FORMATS:
        endings = ", ".join(map(_code, kind.suffixes or kind.sniffed))
        where = "anywhere"
        if kind.only_in_docs:
            where = "in folders for documentation, such as `docs`"
        reading = "with its headings"
        if not kind.has_headings:
            reading = "as paragraphs, without headings, unless it is one of the formats above"
        if kind.extra:
            reading += f", if `ragdocs[{kind.extra}]` is installed"
        rows.append(f"| {kind.name} | {endings} | {where} | {reading} |")
    return "\n".join(rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "tools": ("docs/tools.md", tools),
    "limits": ("docs/tools.md", limits),
    "commands": ("docs/cli.md", commands),
    "keys": ("docs/configuration.md", keys),
    "formats": ("docs/formats.md", formats),
}


def outdated(root: Path, *, write: bool = False) -> list[str]:
    """Return the pages whose tables differ from the code, and write them anew if asked to."""
    pages = []
    for name, (page, generate) in TABLES.items():
        path = root / page
        text = path.read_text(encoding="utf-8")
        table = f"<!-- generated:{name} -->\n{generate()}\n<!-- /generated:{name} -->"
        pattern = rf"<!-- generated:{name} -->.*?<!-- /generated:{name} -->"
        # A backslash in a replacement has a meaning of its own.
        fresh = re.sub(pattern, table.replace("\\", r"\\"), text, flags=re.DOTALL)
        if fresh != text or table not in text:
            pages.append(page)
            if write:
                path.write_text(fresh, encoding="utf-8")
    return pages


def list_commands() -> bool:
    """Write the help and the modules of all commands for `listed`; tell whether they differed."""
    file = Path(listed.FILE)
    text = json.dumps(summary(), indent=1) + "\n"
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return False
    file.write_text(text, encoding="utf-8")
    return True


def _tool(verb: Verb) -> str:
    explanation = LINK.sub(r"`\g<0>`", f"{verb.purpose} {verb.details}".rstrip())
    parts = [f"### `{verb.name}`", explanation]
    for example in verb.examples:
        if example:
            parts.append(f"```json\n{json.dumps(example, ensure_ascii=False)}\n```")
    if verb.command:
        parts.append(f"On the command line: `ragdocs {verb.command}`.")
    rows = []
    for param in verb.params_for("tool"):
        default = "required"
        if not param.required:
            default = _code(toml(param.default))
        rows.append(f"| `{param.name}` | {type_name(param)} | {default} | {param.arg.help} |")
    if rows:
        head = ["| Parameter | Type | Default | What it is |", "|---|---|---|---|"]
        parts.append("\n".join([*head, *rows]))
    else:
        parts.append("No parameters.")
    fields = map(_code, get_type_hints(verb.result))
    parts.append(f"Returns {', '.join(fields)}.")
    return "\n\n".join(parts)


def type_name(param: Param) -> str:
    """Say in words what a parameter takes."""
    if param.choices:
        choices = ", ".join(map(_code, param.choices))
        if param.repeated:
            return f"list of {choices}"
        return choices
    if param.repeated:
        return "list of strings"
    if param.plain_type == dict[str, Any]:
        return "object"
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    kinds = get_args(param.plain_type) or (param.plain_type,)
    return " or ".join(names[kind] for kind in kinds if kind in names)


def _commands_of(
    group: click.Group, context: click.Context, prefix: str
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.commands[name]
        if isinstance(command, click.Group):
            yield from _commands_of(command, context, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _usage(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.make_metavar(click.Context(click.Command("")))
    assert isinstance(parameter, click.Option)
    flag = max(parameter.opts, key=len)
    if parameter.is_flag:
        return f"[{flag}]"
    value = parameter.metavar or flag.removeprefix("--").upper()
    return f"[{flag} {value}]"


def main() -> int:
    """Check the pages below the working directory, or write them with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables")
    options = parser.parse_args()
    pages = outdated(Path.cwd(), write=options.write)
    if options.write and list_commands():
        pages.append(Path(listed.FILE).name)
    sys.stdout.write("".join(f"{page}\n" for page in pages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
