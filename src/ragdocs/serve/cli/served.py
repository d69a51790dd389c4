"""Commands that a shared server answers: the same declarations, on the index that it has open.

What only the process of a command can do is declined: wrong usage, help, the commands about
configuration and index, and a project or settings other than those of the server.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from ragdocs import config as configuration
from ragdocs.caller import current
from ragdocs.errors import RagdocsError
from ragdocs.project import folders
from ragdocs.serve.cli.app import build, explained
from ragdocs.serve.cli.commands import VerbCommand, arguments_of, reader_of
from ragdocs.serve.cli.output import written
from ragdocs.serve.cli.project import ROOM, is_complete
from ragdocs.serve.live import Live
from ragdocs.serve.shared.client import METHOD
from ragdocs.serve.surface import Ask, Verb, bounds, call
from ragdocs.serve.surface.arguments import bounded

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

DECLINED: dict[str, Any] = {"declined": True}


class _NeedsTextError(Exception):
    """A text is missing that only the process of the command can read."""

    def __init__(self, file: str, of_hook: bool) -> None:
        super().__init__(file)
        self.file = file
        self.of_hook = of_hook


class _DeclinedError(Exception):
    """The command is not for this server."""


class Commands:
    """The commands of a live project, for callers who are connected to its server."""

    def __init__(self, live: Callable[[], Live | None]) -> None:
        self._find_live = live
        self._workspaces: tuple[Workspace, Workspace] | None = None

    async def intercept(self, context: Any, call_next: Any) -> Any:
        """Answer a command; pass every other request on."""
        if context.method != METHOD:
            return await call_next(context)
        live = self._find_live()
        if live is None:
            return DECLINED
        live.start()
        return await anyio.to_thread.run_sync(partial(self._answer, live, context.params or {}))

    def _answer(self, live: Live, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if not request.get("words"):
                return {**DECLINED, "complete": _is_complete(live)}
            return self._run(live, request)
        except _NeedsTextError as needed:
            return {"needs": needed.file, "hook": needed.of_hook}
        except RagdocsError as error:
            return {"error": explained(error), "code": 1}
        except (_DeclinedError, click.ClickException):
            # The process of the command says what is wrong with it.
            return DECLINED

    def _run(self, live: Live, request: Mapping[str, Any]) -> dict[str, Any]:
        verb, given = self._parsed(request)
        if not _has_config(live.config, verb, request):
            raise _DeclinedError
        bounds.check_options(given)
        as_json = given["as_json"]
        arguments = arguments_of(verb, given, partial(_sent, request.get("texts") or {}))
        if verb.meaning:
            live.foresee()
        if verb.current:
            live.catch_up(verb.lanes_for(arguments), embed=verb.meaning)
        if verb.current and not verb.meaning and not live.settled:
            # Only a search and the state of the index say how much is missing.
            raise _DeclinedError
        ask = Ask(
            workspace=self._workspace(live), caller=current(), rim="command", state=live.state()
        )
        answer = call.answer(verb, ask, arguments)
        out = written(
            answer,
            reader_of(verb, arguments),
            as_json=as_json,
            form=given.get("form"),
            columns=verb.columns,
            formats=verb.formats,
        )
        code = int(verb.failed is not None and verb.failed(answer))
        return {"out": out.text, "json": out.is_json, "table": out.table, "code": code}

    def _parsed(self, request: Mapping[str, Any]) -> tuple[Verb, dict[str, Any]]:
        """Return the verb that the words name, and its options as they are typed."""
        words = list(request["words"])
        command: click.Command | None = self._root
        while isinstance(command, click.Group) and words:
            command = command.commands.get(words.pop(0))
        if not isinstance(command, VerbCommand) or command.verb is None:
            raise _DeclinedError
        with command.make_context(str(command.name), words) as context:
            given = dict(context.params)
        if [given["project"], list(given["settings"])] != [request["project"], request["settings"]]:
            raise _DeclinedError
        return command.verb, given

    @cached_property
    def _root(self) -> click.Group:
        return build()

    def _workspace(self, live: Live) -> Workspace:
        """Return the server's workspace with the room that a person has."""
        original = live.workspace()
        if self._workspaces is None or self._workspaces[0] is not original:
            roomy = copy.copy(original)
            roomy.room = ROOM
            self._workspaces = (original, roomy)
        return self._workspaces[1]


def _has_config(config: configuration.Config, verb: Verb, request: Mapping[str, Any]) -> bool:
    """Tell whether a command means the project and the settings of this server."""
    flags: dict[str, object] = dict(verb.settings)
    flags.update(_pairs(request["settings"]))
    folder = Path(request["folder"])
    project = None
    if request["project"] is not None:
        project = folder / request["project"]
    try:
        meant = configuration.load(folder, project=project, flags=flags, environ=request["environ"])
    except RagdocsError:
        return False
    for find in (folders.cache_dir, folders.state_dir, folders.data_dir, folders.config_dir):
        if find(request["environ"]) != find():
            return False
    return _values(meant) == _values(config)


def _values(config: configuration.Config) -> list[object]:
    """Return what a configuration says; who says it counts for the branch scope only."""
    values: list[object] = [config.root, config.origin("memory.branch_scope")]
    for section in configuration.SECTIONS:
        values.append(getattr(config, section))
    return values


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        pairs[key.strip()] = value
    return pairs


def _sent(texts: Mapping[str, str], file: str, of_hook: bool) -> str:
    """Return a text that came with the command."""
    if file not in texts:
        raise _NeedsTextError(file, of_hook)
    return bounded(io.StringIO(texts[file], newline=None), file or "standard input")


def _is_complete(live: Live) -> bool:
    if not live.settled:
        return False
    try:
        return is_complete(live.workspace())
    except RagdocsError:
        # It cannot be opened, so there is nothing to wait for.
        return True
