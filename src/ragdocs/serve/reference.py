"""The tables of tools, commands and keys in docs/, written from the code: `python -m ragdocs.serve.reference`."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragdocs import config
from ragdocs.keys import toml
from ragdocs.serve import bounds, cli
from ragdocs.serve.live import Live
from ragdocs.serve.server import TOOLSETS, ToolServer


def tools() -> str:
    """Return one section for each tool: when to call it, its parameters and defaults, and what it returns."""
    everything = config.Config(
        root=Path(),
        docs=config.DocsConfig(commits=True),
        server=config.ServerConfig(toolsets=tuple(TOOLSETS)),
    )
    server = ToolServer(Live(everything))
    return "\n\n".join(_tool(tool) for tool in asyncio.run(server.list_tools()))


def commands() -> str:
    """Return one line for each command and its options."""
    parser = cli.build_parser()
    rows = ["| Command | What it does |", "|---|---|"]
    for name, command in _flat(parser, "ragdocs"):
        options = " ".join(filter(None, (_option(action) for action in command._actions)))  # noqa: SLF001 - no public list
        rows.append(f"| `{name}{' ' + options if options else ''}` | {_about(parser, name)} |")
    return "\n".join(rows)


def keys() -> str:
    """Return the table of keys for the documentation."""
    lines = ["| Key | Default | Takes | From a project's file | What it does |", "|---|---|---|---|---|"]
    for key in config.KEYS.values():
        project_may = " or ".join(f"`{toml(choice)}`" for choice in key.project_choices)
        trust = f"only {project_may}" if project_may else "yes"
        lines.append(f"| `{key.full_name}` | `{toml(key.default)}` | {key.wanted} | {trust} | {key.about} |")
    return "\n".join(lines)


def limits() -> str:
    """Return the table of how large arguments may be."""
    rows = ["| Argument | At most | Parameters |", "|---|---|---|"]
    kinds = list(dict.fromkeys((*bounds.PARAMETERS.values(), *bounds.REQUESTS.values())))
    for bound in kinds:
        names = [f"`{name}`" for name, own in bounds.PARAMETERS.items() if own is bound]
        names += [f"`{name}` of `{tool}`" for (tool, name), own in bounds.OF_TOOL.items() if own is bound]
        rows.append(f"| {bound.about} | {bound.words} | {', '.join(names) or 'of requests for resources'} |")
    return "\n".join(rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "tools": ("docs/tools.md", tools),
    "limits": ("docs/tools.md", limits),
    "commands": ("docs/cli.md", commands),
    "keys": ("docs/configuration.md", keys),
}


def outdated(root: Path, *, write: bool = False) -> list[str]:
    """Return the pages whose tables differ from the code, and write them anew if asked to."""
    pages = []
    for name, (page, generate) in TABLES.items():
        path = root / page
        text = path.read_text(encoding="utf-8")
        table = f"<!-- generated:{name} -->\n{generate()}\n<!-- /generated:{name} -->"
        pattern = rf"<!-- generated:{name} -->.*?<!-- /generated:{name} -->"
        fresh = re.sub(pattern, lambda _, table=table: table, text, flags=re.DOTALL)  # type: ignore[misc]
        if fresh != text or table not in text:
            pages.append(page)
            if write:
                path.write_text(fresh, encoding="utf-8")
    return pages


def _tool(tool: Any) -> str:
    required = tool.input_schema.get("required", [])
    defaults = {
        name: "required" if name in required else f"`{toml(schema.get('default'))}`"
        for name, schema in tool.input_schema["properties"].items()
    }
    rows = [f"| `{n}` | {_type(tool.input_schema['properties'][n])} | {default} |" for n, default in defaults.items()]
    table = "\n".join(["| Parameter | Type | Default |", "|---|---|---|", *rows]) if rows else "No parameters."
    returns = ", ".join(f"`{name}`" for name in (tool.output_schema or {}).get("properties", {}))
    text = " ".join(tool.description.split())
    return f"### `{tool.name}`\n\n{text}\n\n{table}\n\nReturns {returns}."


def _type(schema: dict[str, Any]) -> str:
    options = schema.get("anyOf", [schema])
    names = [
        f"list of {option['items']['type']}s" if option["type"] == "array" else option["type"]
        for option in options
        if option["type"] != "null"
    ]
    return " or ".join(names)


def _flat(parser: argparse.ArgumentParser, prefix: str) -> list[tuple[str, argparse.ArgumentParser]]:
    found = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of sub-commands
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                below = _flat(command, f"{prefix} {name}")
                found += below or [(f"{prefix} {name}", command)]
    return found


def _option(action: argparse.Action) -> str:
    if action.dest in {"help", "project", "json", "set"} or isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        return ""
    if not action.option_strings:
        return action.dest.upper()
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return f"[{action.option_strings[-1]}{value}]"


def _about(parser: argparse.ArgumentParser, name: str) -> str:
    current: Any = parser
    about = ""
    for word in name.split()[1:]:
        subparsers = next(a for a in current._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
        about = next(str(choice.help) for choice in subparsers._choices_actions if choice.dest == word)  # noqa: SLF001
        current = subparsers.choices[word]
    return about


def main() -> int:
    """Check the pages below the working directory, or write them with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables")
    pages = outdated(Path.cwd(), write=parser.parse_args().write)
    sys.stdout.write("".join(f"{page}\n" for page in pages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
