"""Every declared verb as an endpoint that takes and returns JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragdocs import errors
from ragdocs.caller import current
from ragdocs.errors import ConflictError, RagdocsError, ValidationError
from ragdocs.serve.http.limits import RefusedError, Turnstile
from ragdocs.serve.live import Live
from ragdocs.serve.surface import Ask, Verb, call
from ragdocs.serve.surface.catalog import every
from ragdocs.serve.surface.checking import checked
from ragdocs.text.visible import framed

# The first that fits counts, so that the narrower ones come first.
STATUSES: tuple[tuple[type[RagdocsError], int], ...] = (
    (ValidationError, 400),
    (errors.ParseError, 422),
    (errors.NotFoundError, 404),
    (errors.AlreadyExistsError, 409),
    (ConflictError, 409),
    (errors.ReadOnlyError, 403),
    (errors.ForbiddenError, 403),
    (errors.UnavailableError, 503),
    (errors.LockAcquisitionError, 503),
)


def routes(live: Live, turnstile: Turnstile) -> list[Route]:
    """Return the endpoints of one project."""
    endpoints = []
    for verb in verbs():
        endpoint = partial(_answer, verb, live, turnstile)
        methods = ["POST"]
        if verb.effect == "read":
            methods = ["GET", "POST"]
        endpoints.append(Route(f"/api/{verb.name}", endpoint, methods=methods, name=verb.name))
    return endpoints


def verbs() -> list[Verb]:
    """Return the verbs that have an endpoint: those that an agent or the page asks."""
    return [verb for verb in every() if verb.tool or verb.page]


async def _answer(verb: Verb, live: Live, turnstile: Turnstile, request: Request) -> Response:
    try:
        given = await _given(verb, request)
        arguments = await anyio.to_thread.run_sync(checked, verb, live.config, given)
        async with turnstile.turn():
            answer = await anyio.to_thread.run_sync(
                _run, verb, live, arguments, abandon_on_cancel=True
            )
    except RagdocsError as error:
        redact = partial(_redacted, live)
        return await anyio.to_thread.run_sync(redact, failure(error), status_of(error))
    except RefusedError as refused:
        return refused.response()
    return JSONResponse(answer)


async def _given(verb: Verb, request: Request) -> dict[str, Any]:
    """Return the arguments of a request: a JSON object, or the query of its address."""
    if request.method == "POST":
        return _json_object(await request.body())
    given: dict[str, Any] = {}
    for param in verb.params_for("api"):
        values = request.query_params.getlist(param.name)
        if values:
            given[param.name] = values if param.repeated else values[-1]
    for name in request.query_params:
        # Unknown ones are refused with the others.
        given.setdefault(name, request.query_params[name])
    return given


def _json_object(body: bytes) -> dict[str, Any]:
    hint = "Send a JSON object with the arguments"
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValidationError("the body is not JSON", hint) from error
    if not isinstance(given, dict):
        raise ValidationError("the body is not a JSON object", hint)
    return given


def _run(verb: Verb, live: Live, arguments: Mapping[str, Any]) -> Any:
    workspace = live.indexed(verb)
    ask = Ask(workspace=workspace, caller=current(), state=live.state())
    return framed(dict(call.answer(verb, ask, arguments)))


def status_of(error: RagdocsError) -> int:
    """Return the status of the answer to a call that failed."""
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    return 500


def failure(error: RagdocsError) -> dict[str, Any]:
    """Return what a program reads of an error; of a conflict, all of its texts."""
    answer: dict[str, Any] = {"error": error.message, "hint": error.hint}
    if isinstance(error, ConflictError):
        answer["conflict"] = {
            "version": error.version,
            "base": error.base,
            "theirs": error.theirs,
            "yours": error.yours,
            "merged": error.merged,
            "overlaps": error.overlaps,
        }
    return answer


def _redacted(live: Live, answer: dict[str, Any], status: int) -> JSONResponse:
    """Return an error without secrets: the message of a failed write may hold its text."""
    text = live.redact(json.dumps(answer, ensure_ascii=False))
    try:
        clean = json.loads(text)
    except ValueError:
        clean = {"error": "the call failed", "hint": "See the log of the server"}
    return JSONResponse(clean, status)
