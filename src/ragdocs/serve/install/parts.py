"""What ragdocs puts into the files of a client: its server, its hooks, its paragraph of rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragdocs.errors import ParseError
from ragdocs.keys import toml
from ragdocs.serve.install import command, hooks, rules
from ragdocs.serve.install.clients import NAMED, Client, Machine, Scope
from ragdocs.text import jsonc, toml_tables

NAME = "ragdocs"
Kind = Literal["server", "hooks", "rules"]
OPENCODE_SCHEMA = "https://opencode.ai/config.json"


@dataclass(frozen=True, slots=True)
class Part:
    """Something of ours in one file: how it is added, how it is taken back, and what to paste."""

    client: Client
    kind: Kind
    file: Path
    # The folder that the file may not lead out of.
    inside: Path
    add: Callable[[str], str]
    take: Callable[[str], str]
    lines: str
    # The file has nothing else in it.
    is_whole: bool = False
    # Keys that may be made on the way to our entry, the innermost first.
    keys: tuple[tuple[str, ...], ...] = ()


def parts(client: Client, scope: Scope, machine: Machine, python: Sequence[str]) -> Iterator[Part]:
    """Yield all parts that a client can have in a scope; a client without one has the other."""
    names = client.user_files
    project = client.user_project
    if scope == "project" and client.project_files:
        names = client.project_files
        project = client.project
    if project == NAMED:
        project = str(machine.root)
    command_line = command.server(python, project)
    inside = machine.inside(names[0])
    yield _server(client, machine.first(names), inside, client.entry(command_line))
    # An editor replaces its variables in its own settings only.
    hook_project = ""
    hook_file = client.user_hooks
    rules_file = client.user_rules
    if scope == "project":
        hook_project = str(machine.root)
        hook_file = client.project_hooks
        rules_file = client.project_rules
    if hook_file:
        inside = machine.inside(hook_file)
        yield _hooks(client, machine.path(hook_file), inside, python, hook_project)
    if rules_file:
        yield _rules(client, machine.path(rules_file), machine.inside(rules_file))


# --- the server ---


def _server(client: Client, file: Path, inside: Path, entry: dict[str, Any]) -> Part:
    path = (client.key, NAME)
    if client.is_toml:
        table = {"command": entry["command"], "args": entry["args"]}
        header = f"[{client.key}.{NAME}]"
        lines = "\n".join([header, *(f"{key} = {toml(table[key])}" for key in table)])
        return Part(
            client,
            "server",
            file,
            inside,
            lambda text: _put_table(text, path, table),
            lambda text: _take_table(text, path),
            lines,
        )
    return Part(
        client,
        "server",
        file,
        inside,
        lambda text: _put_entry(text, path, entry),
        lambda text: _take_entry(text, path),
        jsonc.dumps({client.key: {NAME: entry}}),
        keys=((client.key,),),
    )


def _put_entry(text: str, path: tuple[str, str], entry: dict[str, Any]) -> str:
    before = _entry(jsonc.loads(text), path)
    if before is None:
        if path[0] == "mcp" and not text.strip():
            text = jsonc.put(text, ("$schema",), OPENCODE_SCHEMA)
        return jsonc.put(text, path, entry)
    _check_ours(before)
    # What the user added to our entry, such as an environment, stays.
    for key, value in entry.items():
        if key != "enabled" or key not in before:
            text = jsonc.put(text, (*path, key), value)
    return text


def _take_entry(text: str, path: tuple[str, str]) -> str:
    before = _entry(jsonc.loads(text), path)
    if before is None or not is_ours(before):
        return text
    return jsonc.remove(text, path)


def _put_table(text: str, path: tuple[str, str], table: dict[str, Any]) -> str:
    before = _entry(toml_tables.loads(text), path)
    if before is not None:
        _check_ours(before)
    return toml_tables.put(text, path, table)


def _take_table(text: str, path: tuple[str, str]) -> str:
    before = _entry(toml_tables.loads(text), path)
    if before is None or not is_ours(before):
        return text
    return toml_tables.remove(text, path)


def _entry(settings: Any, path: tuple[str, str]) -> Any:
    key, name = path
    if settings is None:
        return None
    if not isinstance(settings, dict):
        raise ParseError("it is not a JSON object")
    servers = settings.get(key, {})
    if not isinstance(servers, dict):
        raise ParseError(f"{key} is not an object")
    if name not in servers:
        return None
    # An empty entry is one, too, and not ours.
    return servers[name] or {}


def words_of(entry: Any) -> list[str]:
    """Return the command of a server's entry, whatever its shape."""
    if not isinstance(entry, dict):
        return []
    words: list[str] = []
    for value in (entry.get("command"), entry.get("args")):
        if isinstance(value, str):
            words.append(value)
        elif isinstance(value, list):
            words += map(str, value)
    return words


def is_ours(entry: Any) -> bool:
    """Tell whether an entry starts a server of ragdocs on this machine."""
    words = words_of(entry)
    return "mcp" in words and any(NAME in word for word in words)


def _check_ours(entry: Any) -> None:
    if not is_ours(entry):
        words = words_of(entry)
        kind = "of another kind"
        if words:
            kind += f", with the command {json.dumps(words)}"
        raise ParseError(f"it has a server named {NAME} {kind}")


# --- hooks and rules ---


def _hooks(client: Client, file: Path, inside: Path, python: Sequence[str], project: str) -> Part:
    if file.suffix == ".js":
        module = hooks.plugin(python, project)
        return _whole_file(client, "hooks", file, inside, module, hooks.PLUGIN_MARK)
    added = hooks.items(client.name, python, project)
    keys = tuple(("hooks", event) for event in added)
    return Part(
        client,
        "hooks",
        file,
        inside,
        lambda text: hooks.put(text, client.name, added),
        hooks.take,
        jsonc.dumps({"hooks": {event: [item] for event, item in added.items()}}),
        keys=(*keys, ("hooks",)),
    )


def _rules(client: Client, file: Path, inside: Path) -> Part:
    if file.stem == NAME:
        return _whole_file(client, "rules", file, inside, rules.own_file(file.name), rules.BEGIN)
    return Part(client, "rules", file, inside, rules.put, rules.take, rules.TEXT)


def _whole_file(
    client: Client, kind: Kind, file: Path, inside: Path, content: str, mark: str
) -> Part:
    def add(text: str) -> str:
        if text and mark not in text:
            raise ParseError("there is a file of this name that ragdocs did not write")
        return content

    def take(text: str) -> str:
        if mark in text:
            return ""
        return text

    return Part(client, kind, file, inside, add, take, content, is_whole=True)
