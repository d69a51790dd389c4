"""Answers to a client's first requests, from before its server is there.

A client may ask for the tools only once, within a second of starting the window; a server takes
longer to start. So each server leaves what it answers to such requests in a file for the next start
of the same project, and the installation has such a file for the default settings. For `ragdocs
mcp`, so little is imported.
"""

from __future__ import annotations

import json
import os

from ragdocs import __version__
from ragdocs.serve.shared.address import CONFIG_FILE, Start, directory
from ragdocs.system import user_folders

# The lists that a client asks for, with the kind that a notification of a change names.
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}
META = "io.modelcontextprotocol/"
# What a request of the stateless era has to say about its client.
ENVELOPE = (f"{META}protocolVersion", f"{META}clientInfo", f"{META}clientCapabilities")
# Stands for the version of ragdocs in the file of the installation.
VERSION_MARK = "@version@"
SHIPPED = os.path.join(os.path.dirname(__file__), "prepared.json")
WITH_MEMORY = "with memory"
WITHOUT_MEMORY = "without memory"
MEMORY_KEY = "memory.enabled"
MEMORY_VARIABLE = "RAGDOCS_MEMORY_ENABLED"
TRUE_WORDS = ("true", "yes", "on", "1")
# As in ragdocs.config.
LARGEST_CONFIG = 65_536


class Prepared:
    """The answers of one server to first requests, by version of the protocol and by method."""

    def __init__(self, table: dict[str, object]) -> None:
        _check(table["results"], table["versions"])
        self._results: list[object] = table["results"]  # type: ignore[assignment]
        self._versions: dict[str, dict[str, int]] = table["versions"]  # type: ignore[assignment]
        self._newest_handshake = str(table["newest handshake"])
        # The version that this client and its server speak, once the client has said so.
        self._version = ""

    def answer(self, message: dict[str, object]) -> object:
        """Return the result of a request, or nothing if only the server can answer it."""
        method = message.get("method")
        params = message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not isinstance(params, dict):
            return None
        meta = params.get("_meta")
        if method == "initialize":
            version = self._handshake_version(params)
        elif isinstance(meta, dict) and ENVELOPE[0] in meta:
            version = self._stateless_version(meta)
        else:
            version = self._version
        if not version or "cursor" in params:
            return None
        position = self._versions.get(version, {}).get(str(method))
        if position is None:
            return None
        self._version = version
        return self._results[position]

    def _handshake_version(self, params: dict[str, object]) -> str:
        """Return the version that a server would agree on; nothing if it would refuse."""
        client = params.get("clientInfo")
        if not isinstance(client, dict) or not isinstance(params.get("capabilities"), dict):
            return ""
        has_name = isinstance(client.get("name"), str) and isinstance(client.get("version"), str)
        version = params.get("protocolVersion")
        if self._version or not has_name or not isinstance(version, str):
            return ""
        if "initialize" in self._versions.get(version, {}):
            return version
        return self._newest_handshake

    def _stateless_version(self, meta: dict[str, object]) -> str:
        version = meta[ENVELOPE[0]]
        is_complete = isinstance(version, str) and set(ENVELOPE) <= meta.keys()
        if not is_complete or self._version not in ("", version):
            return ""
        return str(version)


def _check(results: object, versions: object) -> None:
    """Raise if a file that claims to hold answers is none of ours."""
    if not isinstance(results, list) or not isinstance(versions, dict):
        raise TypeError("not a table of answers")
    for positions in versions.values():
        if not isinstance(positions, dict):
            raise TypeError("not the positions of answers")
        for position in positions.values():
            if not 0 <= position < len(results):
                raise ValueError("not the position of an answer")


def load(server: str, start: Start, arguments: list[str]) -> Prepared | None:
    """Return the answers for a window, or nothing where the server may have to explain itself."""
    if not start.may_be_project():
        return None
    try:
        table = json.loads(_read(file_of(server)))
        if table["states"] == start.states():
            return Prepared(table)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        # There is none, or it is not a file of this version.
        pass
    try:
        return _default(start, arguments)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def file_of(server: str) -> str:
    """Return the file that a server leaves for the next start."""
    name = f"{os.path.basename(server)}.json"
    return os.path.join(directory(user_folders.CACHE), "windows", name)


def _default(start: Start, arguments: list[str]) -> Prepared | None:
    """Return the answers of the installation that a new configuration probably leads to."""
    shipped = json.loads(_read(SHIPPED).replace(VERSION_MARK, __version__))
    has_memory = False
    for file in reversed(start.config_files()):
        settings = _settings(file)
        if not _are_valid(settings, shipped["keys"]):
            # The server has to say what is wrong, or that the file is not ours.
            return None
        has_memory = settings.get(MEMORY_KEY, has_memory) is True
    word = os.environ.get(MEMORY_VARIABLE, "")
    for key, value in _pairs(arguments):
        if key not in shipped["keys"]:
            return None
        if key == MEMORY_KEY:
            word = value
    if word:
        has_memory = word.strip().casefold() in TRUE_WORDS
    variant = WITHOUT_MEMORY
    if has_memory:
        variant = WITH_MEMORY
    return Prepared({**shipped, "versions": shipped["variants"][variant]})


def _pairs(arguments: list[str]) -> list[tuple[str, str]]:
    """Return the keys and values of the options --set."""
    pairs = []
    before = ""
    for argument in arguments:
        pair = ""
        if before == "--set":
            pair = argument
        elif argument.startswith("--set="):
            pair = argument.removeprefix("--set=")
        if pair:
            key, _, value = pair.partition("=")
            pairs.append((key.strip(), value))
        before = argument
    return pairs


def _settings(file: str) -> dict[str, object]:
    """Return the keys and values of a configuration file; raise if it cannot be read."""
    import tomllib

    settings: dict[str, object] = {}
    with open(file, "rb") as source:
        text = source.read(LARGEST_CONFIG + 1).decode("utf-8-sig")
    if len(text) > LARGEST_CONFIG:
        raise ValueError(f"{CONFIG_FILE} is too long")
    for section, table in tomllib.loads(text).items():
        if not isinstance(table, dict):
            raise TypeError(f"{section} is not a section")
        for key, value in table.items():
            settings[f"{section}.{key}"] = value
    return settings


def _are_valid(settings: dict[str, object], keys: dict[str, dict[str, object]]) -> bool:
    """Tell whether a server would take these settings."""
    for name, value in settings.items():
        rule = keys.get(name)
        if rule is None or not _is_valid(value, rule):
            return False
    return True


def _is_valid(value: object, rule: dict[str, object]) -> bool:
    """Tell whether a value keeps the rules of its key that need no more than a comparison."""
    default = rule["default"]
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        return False
    size: object = rule["low"]
    if isinstance(value, int | float):
        size = value
    elif isinstance(value, list):
        size = len(value)
    if not rule["low"] <= size <= rule["high"]:  # type: ignore[operator]
        return False
    if isinstance(value, list):
        return all(_is_text(item, rule["choices"]) for item in value)
    return not isinstance(value, str) or _is_text(value, rule["choices"])


def _is_text(value: object, choices: object) -> bool:
    is_allowed = not choices or value in choices  # type: ignore[operator]
    return isinstance(value, str) and value.isprintable() and bool(value.strip()) and is_allowed


def _read(file: str) -> str:
    with open(file, encoding="utf-8") as source:
        return source.read()
