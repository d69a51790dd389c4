"""The MCP rim: every declared verb of the offered toolsets as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import Field

from ragdocs.caller import Caller, current
from ragdocs.config import Config
from ragdocs.serve.live import Live
from ragdocs.serve.surface import REQUIRED, VERBS, Ask, ModelAnswer, Param, Verb, call
from ragdocs.serve.surface.catalog import offered
from ragdocs.serve.surface.shapes import MARK, QUOTED, quotes_others

if TYPE_CHECKING:
    from mcp.server import MCPServer

# The size of an answer of a client's model; an overview is shorter.
MOST_TOKENS = 4000
# The lanes of verbs that cannot do anything without one of them.
DOCUMENTATION = ("docs", "sources")
# Where a server that cannot start shows its reason.
REASON_TOOL = "index_status"
# The parameter that the SDK fills by asking the client's model.
SAMPLED = "sampled"
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
# The effects of verbs as hints of the protocol: read-only, destructive, idempotent.
EFFECTS = {
    "read": (True, False, True),
    "add": (False, False, False),
    "replace": (False, True, True),
    "remove": (False, True, False),
}

# The texts that each client has read, for as long as it is connected.
Sessions = WeakKeyDictionary[Caller, dict[str, Any]]


def add_tools(server: MCPServer[Any], live: Live, sessions: Sessions) -> None:
    """Register every verb that this configuration offers and that can work in it."""
    for verb in working(live.config):
        _add(server, verb, _tool(verb, live, sessions))


def working(config: Config) -> list[Verb]:
    """Return the verbs that a configuration offers and that can work in it."""
    return [verb for verb in offered(config) if not closed_lane(verb, config)]


def add_reason_tool(server: MCPServer[Any]) -> None:
    """Register the tool of a project that cannot be served; the server answers it by the reason."""

    def tool() -> str:
        return ""

    _add(server, VERBS[REASON_TOOL], tool)


def mark_output(tool: str, schema: dict[str, Any]) -> None:
    """Declare the field that marks quoted texts, where the answers of a tool have it."""
    if quotes_others(VERBS[tool].result):
        schema["properties"] = {MARK: {"type": "string"}, **schema["properties"]}


def _add(server: MCPServer[Any], verb: Verb, tool: Callable[..., Any]) -> None:
    register = server.tool(
        name=verb.name,
        title=verb.title,
        description=verb.purpose,
        annotations=_annotations(verb),
    )
    register(tool)


def closed_lane(verb: Verb, config: Config) -> str:
    """Return the lane that a verb needs and that is off, or nothing if it can work."""
    is_open = {
        "docs": config.docs.enabled,
        "memory": config.memory.enabled,
        "journal": config.journal.enabled,
        "commits": config.docs.commits,
        "sources": bool(config.docs.sources),
    }
    # A verb of several lanes makes do with those that are there.
    needs_one = len(verb.lanes) == 1 or verb.lanes == DOCUMENTATION
    if needs_one and not any(is_open[lane] for lane in verb.lanes):
        return verb.lanes[0]
    return ""


def _annotations(verb: Verb) -> ToolAnnotations:
    read_only, destructive, idempotent = EFFECTS[verb.effect]
    return ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        # Asking a client's model leaves this server.
        open_world_hint=verb.question is not None,
    )


def _tool(verb: Verb, live: Live, sessions: Sessions) -> Callable[..., Any]:
    """Return a function with the signature that the SDK reads the schema off."""
    marks = {}
    if quotes_others(verb.result):
        marks = {MARK: QUOTED}

    def tool(**arguments: Any) -> CallToolResult:
        sampled = arguments.pop(SAMPLED, None)
        caller = current()
        ask = Ask(
            workspace=live.workspace(),
            caller=caller,
            session=sessions.setdefault(caller, {}),
            state=live.state(),
            model_answer=_model_answer(sampled),
        )
        answer = call.answer(verb, ask, arguments)
        text = TextContent(type="text", text=verb.text(answer))
        return CallToolResult(content=[text], structured_content={**marks, **answer})

    parameters = [_parameter(param, live.config) for param in verb.params_for("tool")]
    if verb.question is not None:
        parameters.append(_sampled(verb.question, parameters))
    _give_signature(tool, parameters, Annotated[CallToolResult, verb.result])
    tool.__name__ = verb.name
    return tool


def _parameter(param: Param, config: Config) -> inspect.Parameter:
    described: Any = Annotated[param.type, Field(description=param.arg.help)]
    default = param.default
    if param.arg.setting:
        section, _, key = param.arg.setting.partition(".")
        default = getattr(getattr(config, section), key)
    elif default is REQUIRED:
        default = inspect.Parameter.empty
    return inspect.Parameter(param.name, KEYWORD_ONLY, default=default, annotation=described)


def _sampled(
    question: Callable[..., str], parameters: Sequence[inspect.Parameter]
) -> inspect.Parameter:
    """Return the parameter that holds what the client's model wrote, if the client lends it."""

    def sample(context: Context[Any, Any], **arguments: Any) -> Sample | None:
        capabilities = context.client_capabilities
        if capabilities is None or capabilities.sampling is None:
            return None
        text = TextContent(type="text", text=question(**arguments))
        return Sample([SamplingMessage(role="user", content=text)], max_tokens=MOST_TOKENS)

    context = inspect.Parameter("context", KEYWORD_ONLY, annotation=Context[Any, Any])
    _give_signature(sample, [*parameters, context], Sample | None)
    answer = Annotated[CreateMessageResult | None, Resolve(sample)]
    return inspect.Parameter(SAMPLED, KEYWORD_ONLY, annotation=answer)


def _give_signature(function: Any, parameters: Sequence[inspect.Parameter], result: Any) -> None:
    function.__signature__ = inspect.Signature(parameters, return_annotation=result)
    function.__annotations__ = {}
    for parameter in parameters:
        function.__annotations__[parameter.name] = parameter.annotation
    function.__annotations__["return"] = result


def _model_answer(sampled: CreateMessageResult | None) -> ModelAnswer | None:
    if sampled is None or not isinstance(sampled.content, TextContent):
        return None
    return ModelAnswer(sampled.content.text, sampled.model)
