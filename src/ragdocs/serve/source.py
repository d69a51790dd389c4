"""From the options of a command line to a configuration, which may change while a server runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragdocs import config as configuration
from ragdocs.config import Config
from ragdocs.errors import ConfigError
from ragdocs.project.folders import NO_ROOT_HINT
from ragdocs.serve.shared import address

# The files that a configuration may come from, with what tells whether they have changed.
States = list[list[object]]


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
    return configuration.load(_working_directory(), project=folder, flags=flags)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        message = f"the working directory cannot be used as a project: {error}"
        raise ConfigError(message, NO_ROOT_HINT) from error


class Source:
    """Where the configuration of a server comes from."""

    def __init__(
        self,
        project: str | None,
        pairs: Sequence[str],
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._project = project
        self._pairs = pairs
        self._settings = settings

    @property
    def folder(self) -> Path:
        """The folder that the project is looked for in."""
        return Path(self._start().folder)

    def load(self) -> Config:
        """Read the configuration as it is now."""
        return load_config(self._project, self._pairs, self._settings)

    def states(self) -> States:
        """Return what tells whether the configuration has to be read again."""
        return self._start().states()

    def _start(self) -> address.Start:
        arguments: list[str] = []
        if self._project is not None:
            arguments = ["--project", self._project]
        return address.find_start(arguments)


def server_source(arguments: Sequence[str]) -> Source | None:
    """Return the source of the configuration for the arguments of `ragdocs mcp`, if they fit."""
    import argparse

    parser = argparse.ArgumentParser(prog="ragdocs mcp", add_help=False, exit_on_error=False)
    parser.add_argument("--project")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    try:
        options, others = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return None
    if others:
        return None
    return Source(options.project, options.set)
