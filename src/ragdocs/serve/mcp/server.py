"""The MCP server of one live project; errors become answers here."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import anyio
from mcp.server import MCPServer
from mcp.server.context import ServerMiddleware
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import ToolManager
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    InputRequiredResult,
)
from pydantic import ValidationError as ArgumentError

from ragdocs import __version__, caller
from ragdocs.caller import Caller
from ragdocs.errors import ConflictError, RagdocsError
from ragdocs.search.floor import WEAK_MATCHES
from ragdocs.serve.live import Live
from ragdocs.serve.mcp import instructions, resources
from ragdocs.serve.mcp.intake import Intake, Line
from ragdocs.serve.mcp.tools import Sessions, reason_tool, tools_of
from ragdocs.serve.surface import VERBS, Verb, bounds, hints, present
from ragdocs.serve.surface.clients import CLIENTS
from ragdocs.text.visible import framed

# Requests that need no index, so they are answered before anything heavy is imported.
_LIGHT = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "logging/setLevel",
    }
)
# How often to look for the first index: a warm start takes less than the short steps together.
SHORT_STEP_SECONDS = 0.02
SHORT_STEPS = 10
LONG_STEP_SECONDS = 0.05
# After a search of what is read so far has found nothing, it is tried again when more is read, and
# this much later at the latest.
EARLY_PAUSE_SECONDS = 0.5
# A client that waits is told at least this often how far the index is.
REPORT_SECONDS = 1.0
# Requests that a project needs which can be served; a call of a tool says why in its own way.
_NEEDS_PROJECT = frozenset({"prompts/get", "resources/read"})
# A client that does not read must not keep the others from being told.
ANNOUNCE_SECONDS = 1.0
# Problems of arguments that are listed in one answer.
MOST_PROBLEMS = 5
# What a call holds while it runs, where only so many may run at once.
Turn = Callable[[], AbstractAsyncContextManager[None]]


class ToolServer(MCPServer[Any]):
    """An MCP server that waits for the first index and explains every error."""

    def __init__(
        self, project: Live | RagdocsError, folder: Path | None = None, turn: Turn = nullcontext
    ) -> None:
        super().__init__("ragdocs", title="ragdocs", version=__version__, log_level="WARNING")
        self._turn = turn
        self.live: Live | None = None
        self.failure: RagdocsError | None = None
        self._folder = folder or Path()
        # What each client has read, which it keeps when the configuration changes.
        self._sessions: Sessions = WeakKeyDictionary()
        # The clients that have shaken hands, with what sends them notifications.
        self._greeted: WeakKeyDictionary[Caller, ServerSession] = WeakKeyDictionary()
        # Every transport promises what `announce` does.
        changes = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        lowlevel: Any = self._lowlevel_server
        lowlevel.create_initialization_options = partial(
            lowlevel.create_initialization_options, changes
        )
        self.middleware.append(cast("ServerMiddleware[Any]", self._wake))
        self.adopt(project)

    def adopt(self, project: Live | RagdocsError) -> None:
        """Offer what a project has; of one that cannot be served, offer the reason."""
        self._withdraw()
        if isinstance(project, Live):
            self.live = project
            self.failure = None
            self._tool_manager = ToolManager(tools=tools_of(project, self._sessions))
            resources.register(self, project)
            self.instruct(instructions.for_project(project.config))
        else:
            self.live = None
            self.failure = project
            self._tool_manager = ToolManager(tools=[reason_tool()])
            self.instruct(instructions.for_failure(project, self._folder))

    def instruct(self, text: str) -> None:
        """Set what the next client is told when it connects."""
        self._lowlevel_server.instructions = text

    async def announce(self) -> None:
        """Tell every connected client that tools, prompts and resources may be others now."""
        for session in list(self._greeted.values()):
            with (
                anyio.move_on_after(ANNOUNCE_SECONDS),
                suppress(anyio.BrokenResourceError, anyio.ClosedResourceError),
            ):
                await session.send_tool_list_changed()
                await session.send_prompt_list_changed()
                await session.send_resource_list_changed()
        for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
            await self._subscriptions.publish(event)

    def _withdraw(self) -> None:
        for prompt in self._prompt_manager.list_prompts():
            self.remove_prompt(prompt.name)
        # The SDK has no public way to remove a template.
        self._resource_manager._templates.clear()  # noqa: SLF001

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool and turn every failure into one sentence with a hint and without secrets."""
        # Before anything else is done with them, and without waiting for the index.
        _refuse_large(name, arguments)
        try:
            return await self._call(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            # The message of a failed write holds its text, and clients keep messages.
            message = await anyio.to_thread.run_sync(self._redacted, str(error))
            raise ToolError(message) from error.__cause__

    async def _call(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        if self.failure:
            raise ToolError(instructions.for_failure(self.failure, self._folder))
        live = self.live
        assert live is not None
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise ToolError(self._why_missing(name, live))
        _refuse_unknown(name, arguments, tool.parameters["properties"])
        verb = VERBS.get(name)
        is_search = "query" in arguments
        if is_search:
            live.foresee()
        while True:
            await _wait_for_first_index(live, verb, context, is_search=is_search)
            is_early = is_search and _is_waiting(live, verb)
            passages = live.passages(verb)
            answer = await self._answer(name, arguments, context)
            if not is_early or _has_found(answer):
                return answer
            await _wait_for_passages(live, verb, passages)

    async def _answer(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        try:
            async with self._turn():
                return await super().call_tool(name, arguments, context)
        except RagdocsError as error:
            raise ToolError(explain(error)) from error
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, RagdocsError):
                raise ToolError(explain(cause)) from cause
            if isinstance(cause, ArgumentError):
                raise ToolError(_explain_arguments(cause)) from cause
            raise

    @property
    def lowlevel(self) -> Any:
        """The server of the SDK, for transports of its own."""
        return self._lowlevel_server

    def _why_missing(self, name: str, live: Live) -> str:
        """Say why there is no tool of a name: it is not offered, or there is none."""
        verb = VERBS.get(name)
        if verb is not None:
            return instructions.not_offered(verb, live.config)
        names = [other.name for other in self._tool_manager.list_tools()]
        near = hints.likely(name, names, hints.TOOL_HABITS)
        problem = f"there is no tool {name!r}."
        if near:
            problem += f" Did you mean {near}?"
        return f"{problem} {_known(names)}"

    async def talk(
        self, requests: AsyncIterable[Line], client: Caller, answers: Any = None
    ) -> None:
        """Serve one client line by line; without `answers`, to standard output."""
        caller.begin(client)
        server = self._lowlevel_server
        intake: Any = Intake(requests)
        async with stdio_server(intake, answers) as (reading, writing):
            intake.open(writing)
            try:
                await server.run(reading, writing, server.create_initialization_options())
            finally:
                CLIENTS.leave(client)

    async def _wake(self, context: Any, call_next: Any) -> Any:
        """Open the project with the first request that needs it, and frame every answer."""
        try:
            bounds.check_request(context.method, context.params)
        except RagdocsError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        if self.failure and context.method in _NEEDS_PROJECT:
            reason = instructions.for_failure(self.failure, self._folder)
            raise MCPError(INTERNAL_ERROR, reason)
        result = await call_next(context)
        if context.method == "initialize":
            self._greeted[caller.current()] = context.session
        CLIENTS.greet(caller.current(), context.params)
        if context.method in _LIGHT:
            return result
        if self.live:
            self.live.start()
        return framed(result)

    def _redacted(self, text: str) -> str:
        if self.live:
            return self.live.redact(text)
        from ragdocs.text.redaction.redact import CallersRedactor

        # The secrets of the environment are known without a project.
        return CallersRedactor(os.environ).redact(text).text


async def _wait_for_first_index(
    live: Live, verb: Verb | None, context: Context[Any, Any] | None, *, is_search: bool
) -> None:
    """Wait for the lanes of a verb, and report progress to the client each second.

    A search may be tried before all of a large lane is read.
    """
    live.start()
    step = 0
    reports = 0
    pause = SHORT_STEP_SECONDS
    reported_at = anyio.current_time()
    while _is_waiting(live, verb):
        if is_search and live.may_search_early(verb):
            return
        await anyio.sleep(pause)
        step += 1
        if step >= SHORT_STEPS:
            pause = LONG_STEP_SECONDS
        now = anyio.current_time()
        if context is not None and now + pause - reported_at > REPORT_SECONDS:
            reports += 1
            reported_at = now
            await context.report_progress(reports, None, live.progress)


async def _wait_for_passages(live: Live, verb: Verb | None, passages: int) -> None:
    """Wait until a verb has more passages to search than so many, but not for long."""
    live.hasten(verb, EARLY_PAUSE_SECONDS)
    deadline = anyio.current_time() + EARLY_PAUSE_SECONDS
    while live.passages(verb) <= passages and _is_waiting(live, verb):
        await anyio.sleep(LONG_STEP_SECONDS)
        if anyio.current_time() > deadline:
            return


def _is_waiting(live: Live, verb: Verb | None) -> bool:
    """Tell whether a caller still waits for the lanes of a verb."""
    if live.is_ready_for(verb):
        return False
    return live.patience_for(verb) > 0


def _has_found(answer: CallToolResult | InputRequiredResult) -> bool:
    """Tell whether a search has results that are not all weak."""
    if not isinstance(answer, CallToolResult):
        return True
    content = answer.structured_content or {}
    if not content.get("result"):
        return False
    for note in content.get("notes", ()):
        if note.startswith(WEAK_MATCHES):
            return False
    return True


def explain(error: RagdocsError) -> str:
    """Return an error as a model reads it, with the texts of a conflict."""
    if isinstance(error, ConflictError):
        return present.conflict(error)
    return str(error)


def _refuse_large(tool: str, arguments: Mapping[str, Any]) -> None:
    try:
        bounds.check("the name of the tool", tool, bounds.WORD)
        bounds.check_arguments(tool, arguments)
    except RagdocsError as error:
        raise ToolError(str(error)) from error


def _refuse_unknown(tool: str, arguments: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Refuse arguments that a tool does not have, which the SDK would drop in silence.

    An agent that writes `tags` for `filter_tags` would get results without the filter.
    """
    unknown = [name for name in arguments if name not in params]
    if not unknown:
        return
    # A parameter that has its value was not meant by another name.
    free = [name for name in params if name not in arguments]
    problems = []
    for name in unknown[:MOST_PROBLEMS]:
        word = name[:80]
        problem = f"{tool} has no parameter {word!r}."
        near = hints.likely(word, free, hints.PARAMETER_HABITS)
        if near:
            problem += f" Did you mean {near}?"
        problems.append(problem)
    raise ToolError(f"{' '.join(problems)} {_known(params)}")


def _known(names: Iterable[str]) -> str:
    return f"It knows: {', '.join(names) or 'none'}"


def _explain_arguments(error: ArgumentError) -> str:
    problems = []
    for problem in error.errors(include_url=False)[:MOST_PROBLEMS]:
        parameter = ".".join(map(str, problem["loc"]))
        problems.append(f"{parameter}: {problem['msg']}")
    return "; ".join(problems) + ". Correct the arguments and call again"
