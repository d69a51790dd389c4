"""What the program says about itself: tools as a client lists them, commands as facts, whatever parses them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden import rims
from tests.golden.world import World

from ragdocs.serve.cli import build_parser

KINDS: dict[Any, str] = {int: "integer", float: "number", Path: "path", None: "text"}


def tools(world: World) -> dict[str, Any]:
    """Return what clients are told, by default and with all toolsets; tools are in the order of their names."""
    world.restore()
    told = {}
    with world.entered("tools"):
        for name, everything in (("default", False), ("all toolsets", True)):
            flags = {} if everything else {"journal.enabled": False, "docs.commits": False}
            with rims.connect(world.project, flags, everything=everything) as connection:
                told[name] = connection.lists()
    full = {tool["name"]: tool for tool in told["all toolsets"]["tools"]}
    different = [tool["name"] for tool in told["default"]["tools"] if full.get(tool["name"]) != tool]
    return {
        # Each tool is described once; the order is that of the server.
        "default": {**told["default"], "tools": [tool["name"] for tool in told["default"]["tools"]]},
        "tools that differ by default": different,
        "all toolsets": {**told["all toolsets"], "tools": list(full)},
        "tools": [full[name] for name in sorted(full)],
    }


def commands() -> dict[str, Any]:
    """Return each command with its arguments and options; those that all commands have are told once."""
    listed = dict(_commands(build_parser(), "ragdocs", ""))
    leaves = [facts for facts in listed.values() if not facts["commands"]]
    common = [option for option in leaves[0]["options"] if all(option in facts["options"] for facts in leaves)]
    for facts in listed.values():
        facts["options"] = [option for option in facts["options"] if option not in common]
    return {
        "options of every command": common,
        "commands": {path: _said(listed[path]) for path in sorted(listed)},
    }


def leaves() -> set[str]:
    """Return the paths of the commands that do something, without the name of the program."""
    listed = commands()["commands"]
    return {path.removeprefix("ragdocs ") for path, facts in listed.items() if "commands" not in facts}


def _commands(parser: argparse.ArgumentParser, path: str, about: str) -> Iterator[tuple[str, dict[str, Any]]]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    names = [name for action in below for name in action.choices]
    plain = [action for action in parser._actions if action not in below and "--help" not in action.option_strings]
    yield (
        path,
        {
            "help": about,
            "description": parser.description or "",
            "epilog": (parser.epilog or "").splitlines(),
            "commands": sorted(names),
            "arguments": [_argument(action) for action in plain if not action.option_strings],
            "options": sorted((_option(parser, action) for action in plain if action.option_strings), key=_flag),
        },
    )
    for action in below:
        abouts = {choice.dest: str(choice.help) for choice in action._choices_actions}
        for name, command in action.choices.items():
            yield from _commands(command, f"{path} {name}", abouts[name])


def _argument(action: argparse.Action) -> dict[str, Any]:
    facts = {
        "name": action.metavar or action.dest,
        "required": action.nargs not in ("?", "*"),
        "repeated": action.nargs in ("+", "*"),
        **_value(action),
    }
    return _said(facts)


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> dict[str, Any]:
    takes_value = action.nargs != 0
    facts = {
        "flags": sorted(action.option_strings),
        "value": (action.metavar or action.dest.upper()) if takes_value else None,
        "required": action.required,
        "repeated": isinstance(action, argparse._AppendAction),
        **_value(action),
    }
    return _said({**facts, "not with": _rivals(parser, action)})


def _value(action: argparse.Action) -> dict[str, Any]:
    default = None if action.default in (argparse.SUPPRESS, [], False, "") else action.default
    return {
        "kind": KINDS[action.type],
        "default": default,
        "choices": list(action.choices) if action.choices else None,
        "help": action.help or "",
    }


def _rivals(parser: argparse.ArgumentParser, action: argparse.Action) -> list[str]:
    groups = [group for group in parser._mutually_exclusive_groups if action in group._group_actions]
    return sorted(flag for group in groups for other in group._group_actions if other is not action for flag in
                  other.option_strings)  # fmt: skip


def _said(facts: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a command or option does not say."""
    return {name: fact for name, fact in facts.items() if fact not in (None, False, "", [])}


def _flag(option: dict[str, Any]) -> str:
    return str(option["flags"][0])
