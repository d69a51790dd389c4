"""From the options of a command line to a configuration, and to a server that speaks MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragdocs import config as configuration
from ragdocs.config import Config
from ragdocs.errors import ConfigError


def load_config(
    project: str | Path | None, pairs: Sequence[str], settings: Mapping[str, object] | None = None
) -> Config:
    """Return the configuration of a project, overridden by settings and then KEY=VALUE pairs."""
    flags: dict[str, object] = dict(settings or {})
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            hint = "Write it as --set embedding.model=none"
            raise ConfigError(f"--set {pair!r} is not KEY=VALUE", hint)
        flags[key.strip()] = value
    folder = None
    if project is not None:
        folder = Path(project)
    return configuration.load(Path.cwd(), project=folder, flags=flags)


def server_config(arguments: Sequence[str]) -> Config:
    """Return the configuration for the arguments of `ragdocs mcp`."""
    import argparse

    parser = argparse.ArgumentParser(prog="ragdocs mcp", add_help=False)
    parser.add_argument("--project")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args(arguments)
    return load_config(options.project, options.set)


def serve_mcp(config: Config) -> None:
    """Serve a project over standard input and output until the client goes away."""
    from ragdocs.serve.mcp.server import serve

    serve(config)
