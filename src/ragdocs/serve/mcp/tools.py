"""The MCP rim: every declared verb of the offered toolsets as a tool."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp.server.mcpserver.tools import Tool
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
from ragdocs.serve.surface import REQUIRED, VERBS, Ask, ModelAnswer, Verb, call
from ragdocs.serve.surface.catalog import offered
from ragdocs.serve.surface.shapes import MARK, QUOTED, quotes_others

# The size of an answer of a client's model; an overview is shorter.
MOST_TOKENS = 4000
# The lanes of verbs that cannot do anything without one of them.
DOCUMENTATION = ("docs", "sources")
# Where a server that cannot start shows its reason.
REASON_TOOL = "index_status"
# The parameter that the SDK fills by asking the client's model.
SAMPLED = "sampled"
# More than there are tools: a configuration can change the default of a parameter.
MOST_FORMS = 256
# Parts of a JSON schema whose keys are names of parameters and types.
_NAMED_SCHEMAS = ("properties", "$defs")
NULL = {"type": "null"}
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


def tools_of(live: Live, sessions: Sessions) -> list[Tool]:
    """Return every verb that this configuration offers and that can work in it as a tool."""
    tools = []
    for verb in working(live.config):
        defaults = _defaults(verb, live.config)
        function = _answering(verb, live, sessions)
        tool = _form(verb.name, defaults).model_copy(update={"fn": function})
        tools.append(tool)
    return tools


def working(config: Config) -> list[Verb]:
    """Return the verbs that a configuration offers and that can work in it."""
    return [verb for verb in offered(config) if not closed_lane(verb, config)]


def reason_tool() -> Tool:
    """Return the tool of a project that cannot be served; the server answers it by the reason."""

    def tool() -> str:
        return ""

    verb = VERBS[REASON_TOOL]
    form = _read(verb, tool)
    return _slimmed(form)


@functools.lru_cache(maxsize=MOST_FORMS)
def _form(name: str, defaults: tuple[object, ...]) -> Tool:
    """Return what the SDK reads off the signature of a tool, which takes it as long as many calls.

    Tools of all servers of this process share it; each has its own function.
    """

    def tool(**arguments: Any) -> CallToolResult:
        raise TypeError(f"{name} was called without a function of its own: {sorted(arguments)}")

    verb = VERBS[name]
    parameters = []
    for param, default in zip(verb.params_for("tool"), defaults, strict=True):
        described: Any = Annotated[param.type, Field(description=param.arg.help)]
        parameter = inspect.Parameter(param.name, KEYWORD_ONLY, default=default)
        parameters.append(parameter.replace(annotation=described))
    if verb.question is not None:
        parameters.append(_sampled(verb.question, parameters))
    _give_signature(tool, parameters, Annotated[CallToolResult, verb.result])
    form = _read(verb, tool)
    return _slimmed(form)


def _defaults(verb: Verb, config: Config) -> tuple[object, ...]:
    """Return the default of each parameter, which a setting may give."""
    defaults = []
    for param in verb.params_for("tool"):
        default: object = param.default
        if param.arg.setting:
            section, _, key = param.arg.setting.partition(".")
            settings = getattr(config, section)
            default = getattr(settings, key)
        elif default is REQUIRED:
            default = inspect.Parameter.empty
        defaults.append(default)
    return tuple(defaults)


def _read(verb: Verb, function: Callable[..., Any]) -> Tool:
    return Tool.from_function(
        function,
        name=verb.name,
        title=verb.title,
        description=verb.purpose,
        annotations=_annotations(verb),
    )


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


def _answering(verb: Verb, live: Live, sessions: Sessions) -> Callable[..., Any]:
    """Return the function of a tool of one server."""
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

    return tool


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


def _slimmed(tool: Tool) -> Tool:
    """Drop what only costs tokens, and declare the field that marks quoted texts.

    That unknown arguments are not allowed is not part of the schemas: they are refused with the
    name that was meant, which a client that validates by the schema would never show.
    """
    tool.description = " ".join(tool.description.split())
    tool.parameters = _without_texts(tool.parameters, ("title",))
    parameters = tool.parameters["properties"]
    for name, schema in parameters.items():
        parameters[name] = _slim(schema)
    metadata = tool.fn_metadata
    if metadata.output_schema:
        schema = _without_texts(metadata.output_schema, ("title", "description"))
        if quotes_others(VERBS[tool.name].result):
            fields = {MARK: {"type": "string"}}
            fields.update(schema["properties"])
            schema["properties"] = fields
        metadata.output_schema = schema
    return tool


def _without_texts(schema: Any, keys: tuple[str, ...]) -> Any:
    """Return a JSON schema without the texts under these keys, such as titles."""
    if isinstance(schema, list):
        return [_without_texts(item, keys) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lean: dict[str, Any] = {}
    for key, part in schema.items():
        if key in _NAMED_SCHEMAS:
            # A name is kept, whatever it is.
            lean[key] = {name: _without_texts(inner, keys) for name, inner in part.items()}
        elif key not in keys or not isinstance(part, str):
            lean[key] = _without_texts(part, keys)
    return lean


def _slim(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without what goes without saying.

    Whoever has no value leaves the parameter out: null, "" and false as defaults say no more. A
    null is still taken, but to list it costs as much as the description.
    """
    lean = dict(schema)
    default = lean.get("default", REQUIRED)
    if default is None or default is False or default == "":
        del lean["default"]
    options = [option for option in schema.get("anyOf", ()) if option != NULL]
    if len(options) == 1:
        del lean["anyOf"]
        lean.update(options[0])
    return lean
