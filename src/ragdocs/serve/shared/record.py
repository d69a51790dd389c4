"""Writes what a server answers to first requests, for windows whose server is not there yet."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from ragdocs import __version__
from ragdocs.caller import Caller
from ragdocs.config import KEYS, Config, MemoryConfig
from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.shared import prepared
from ragdocs.system import files

CLIENT = {"name": "ragdocs", "version": __version__}
# Files of servers that have not been started for so long belong to projects that are gone.
KEEP_SECONDS = 30 * 24 * 3600.0


class Dialogue:
    """A client that sends its requests one after the other and collects the answers."""

    def __init__(self, requests: list[tuple[str, dict[str, object]]]) -> None:
        self._requests = requests
        self._answers: dict[str, Any] = {}
        self._answered = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for method, params in self._requests:
            request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
            self._answered = anyio.Event()
            yield json.dumps(request).encode() + b"\n"
            await self._answered.wait()

    async def write(self, text: str) -> None:
        """Take a line of the server."""
        answer = json.loads(text)
        if "id" in answer:
            self._answers[answer["id"]] = answer["result"]
            self._answered.set()

    async def flush(self) -> None:
        """Do nothing, because lines are taken at once."""

    async def run(self, server: ToolServer) -> dict[str, Any]:
        """Return the results by method."""
        await server.talk(self, Caller(), self)
        return self._answers


class Table:
    """Results, each kept once, and which version of the protocol gets which."""

    def __init__(self) -> None:
        self.results: list[object] = []
        self._positions: dict[str, int] = {}

    def add(self, answers: dict[str, Any]) -> dict[str, int]:
        """Return the positions of the results of one version, by method."""
        positions = {}
        for method, result in answers.items():
            text = json.dumps(result)
            if text not in self._positions:
                self._positions[text] = len(self.results)
                self.results.append(result)
            positions[method] = self._positions[text]
        return positions


async def versions(server: ToolServer, table: Table) -> dict[str, dict[str, int]]:
    """Ask a server as clients of every version do; return the positions of its results."""
    by_version = {}
    for version in HANDSHAKE_PROTOCOL_VERSIONS:
        hello: dict[str, object] = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": CLIENT,
        }
        dialogue = Dialogue([("initialize", hello), *_lists({})])
        by_version[version] = table.add(await dialogue.run(server))
    for version in MODERN_PROTOCOL_VERSIONS:
        envelope = dict(zip(prepared.ENVELOPE, (version, CLIENT, {}), strict=True))
        meta: dict[str, object] = {"_meta": envelope}
        dialogue = Dialogue([("server/discover", meta), *_lists(meta)])
        by_version[version] = table.add(await dialogue.run(server))
    return by_version


def _lists(params: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    return [(method, params) for method in prepared.LISTS]


async def write(server: ToolServer, address: str, states: list[list[object]]) -> None:
    """Leave the answers of a server for the next window that finds it gone."""
    table = Table()
    by_version = await versions(server, table)
    content = {
        "states": states,
        "newest handshake": LATEST_HANDSHAKE_VERSION,
        "versions": by_version,
        "results": table.results,
    }
    file = Path(prepared.file_of(address))
    # A window without the file answers as the installation would.
    with suppress(RagdocsError, OSError):
        files.make_directories(file.parent)
        files.write_atomic(file, json.dumps(content).encode(), mode=0o600)
        _remove_old(file.parent)


def _remove_old(folder: Path) -> None:
    for file in folder.glob("*.json"):
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > KEEP_SECONDS:
                file.unlink()


async def shipped() -> str:
    """Return the file of the installation: the answers for the default settings."""
    table = Table()
    variants = {}
    for name, enabled in ((prepared.WITH_MEMORY, True), (prepared.WITHOUT_MEMORY, False)):
        config = Config(root=Path(os.devnull), memory=MemoryConfig(enabled=enabled))
        variants[name] = await versions(ToolServer(Live(config)), table)
    keys = {}
    for key in KEYS.values():
        keys[key.full_name] = {
            "default": key.default,
            "low": key.low,
            "high": key.high,
            "choices": key.project_choices or key.choices,
        }
    content = {
        "newest handshake": LATEST_HANDSHAKE_VERSION,
        "keys": keys,
        "variants": variants,
        "results": table.results,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return text.replace(f'"{__version__}"', f'"{prepared.VERSION_MARK}"') + "\n"


def main() -> None:
    """Write the file of the installation; a test compares it with what a server answers."""
    Path(prepared.SHIPPED).write_text(anyio.run(shipped), encoding="utf-8")
    sys.stdout.write(f"wrote {Path(prepared.SHIPPED).name}\n")


if __name__ == "__main__":
    main()
