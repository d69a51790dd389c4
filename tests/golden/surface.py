"""What the program says about itself: tools as a client lists them, and commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from tests.golden import rims
from tests.golden.world import World

from ragdocs.serve.cli.app import build

KINDS: dict[Any, str] = {
    click.types.IntParamType: "integer",
    click.types.FloatParamType: "number",
    click.Path: "path",
}


def tools(world: World) -> dict[str, Any]:
    """Return what clients are told, by default and with all toolsets, sorted by name."""
    world.restore()
    told = {}
    with world.entered("tools"):
        for name, everything in (("default", False), ("all toolsets", True)):
            flags = {} if everything else {"journal.enabled": False, "docs.commits": False}
            with rims.connect(world.project, flags, everything=everything) as connection:
                told[name] = connection.lists()
    full = {tool["name"]: tool for tool in told["all toolsets"]["tools"]}
    different = [
        tool["name"] for tool in told["default"]["tools"] if full.get(tool["name"]) != tool
    ]
    return {
        # Each tool is described once; the order is that of the server.
        "default": {
            **told["default"],
            "tools": [tool["name"] for tool in told["default"]["tools"]],
        },
        "tools that differ by default": different,
        "all toolsets": {**told["all toolsets"], "tools": list(full)},
        "tools": [full[name] for name in sorted(full)],
    }


def commands() -> dict[str, Any]:
    """Return each command with its arguments and options; common ones are listed once."""
    listed = dict(_commands(build(), "ragdocs"))
    leaves = [facts for facts in listed.values() if not facts["commands"]]
    common = [
        option
        for option in leaves[0]["options"]
        if all(option in facts["options"] for facts in leaves)
    ]
    for facts in listed.values():
        facts["options"] = [option for option in facts["options"] if option not in common]
    return {
        "options of every command": common,
        "commands": {path: _said(listed[path]) for path in sorted(listed)},
    }


def leaves() -> set[str]:
    """Return the paths of the commands that do something, without the name of the program."""
    listed = commands()["commands"]
    return {
        path.removeprefix("ragdocs ") for path, facts in listed.items() if "commands" not in facts
    }


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    below = command.commands if isinstance(command, click.Group) else {}
    arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
    options = [_option(param) for param in command.params if isinstance(param, click.Option)]
    yield (
        path,
        {
            "help": command.help or "",
            "epilog": (command.epilog or "").splitlines(),
            "commands": sorted(below),
            "arguments": arguments,
            "options": sorted(options, key=_flag),
        },
    )
    for name, child in below.items():
        yield from _commands(child, f"{path} {name}")


def _argument(param: click.Argument) -> dict[str, Any]:
    facts = {"name": param.name, "required": param.required, "repeated": param.nargs == -1}
    return _said({**facts, **_value(param)})


def _option(param: click.Option) -> dict[str, Any]:
    flags = sorted(param.opts)
    value = None if param.is_flag else param.metavar or flags[-1].removeprefix("--").upper()
    facts = {"flags": flags, "value": value, "required": param.required, "repeated": param.multiple}
    return _said({**facts, **_value(param), "help": param.help or ""})


def _value(param: click.Parameter) -> dict[str, Any]:
    default = None if callable(param.default) or "UNSET" in repr(param.default) else param.default
    choices = list(param.type.choices) if isinstance(param.type, click.Choice) else None
    return {"kind": KINDS.get(type(param.type), "text"), "default": default, "choices": choices}


def _said(facts: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a command or option does not say."""
    return {name: fact for name, fact in facts.items() if fact not in (None, False, "", [])}


def _flag(option: dict[str, Any]) -> str:
    return str(option["flags"][0])
