"""The lines that a client sends.

What the SDK would drop in silence is mended, or refused with an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

# The longest line that is read as a whole.
LONGEST_LINE = 64 * 1024 * 1024
# Of a line that cannot be parsed, so much is searched for the id of the request, from either end.
SIGHT = 100_000
TAIL = 1_000
# Of a batch; whoever sends more in one line hears of the first ones only.
MOST_ANSWERS = 1_000
# No id that a client made is longer, and a longer number may not be printable.
LONGEST_NUMBER = 40
BOM = "\ufeff"
# Nobody needs more; the SDK's parser takes a few more and then gives up.
DEEPEST = 150
HINT = f"Send one JSON object a line, nested at most {DEEPEST} deep, with numbers of at most 4,000 digits"
NOT_A_REQUEST = (
    'not a request of JSON-RPC 2.0. It takes "jsonrpc": "2.0", an "id" that is a text or a whole number, '
    'a "method", and "params" that are an object'
)
NO_BATCHES = "batches are not supported. Send one request a line"
TOO_LONG = f"the request is longer than {LONGEST_LINE // 1024 // 1024} MB. Send less at once"

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)
_OPENING, _CLOSING = ("[", "{"), ("]", "}")
_LAST_ID = re.compile(r',\s*"id"\s*:\s*(-?\d{1,40}|"(?:[^"\\]|\\.){0,200}")\s*\}\s*\Z')


class Overlong:
    """A line that is too long to be kept: its first and its last bytes."""

    def __init__(self, start: bytes) -> None:
        self.head = start[:SIGHT]
        self.tail = start[-TAIL:]

    def add(self, more: bytes) -> None:
        """Take more of the line."""
        self.tail = (self.tail + more[-TAIL:])[-TAIL:]


Line = bytes | Overlong


class RefusedError(Exception):
    """Why a line is not a request.

    With the code of the protocol and the ids that wait for an answer.
    """

    def __init__(self, code: int, message: str, *ids: int | str | None) -> None:
        super().__init__(message)
        self.code = code
        self.ids = ids


class Intake:
    """The requests among a client's lines, as the SDK's transport reads them.

    The rest is answered here.
    """

    def __init__(self, lines: AsyncIterable[Line]) -> None:
        self._lines = lines
        self._answers: Any = None

    def open(self, answers: Any) -> None:
        """Take the stream that answers go to; before the first line is read."""
        self._answers = answers

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            try:
                request = read(line)
            except RefusedError as refused:
                await self._refuse(refused)
                continue
            if request:
                yield request

    async def _refuse(self, refused: RefusedError) -> None:
        error = ErrorData(code=refused.code, message=str(refused))
        for number in refused.ids:
            await self._answers.send(
                SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))
            )
            await anyio.lowlevel.checkpoint()


def read(line: Line) -> str:
    """Return a line that the SDK can parse, nothing for an empty one, or raise why it is none."""
    if isinstance(line, Overlong):
        head, tail = (part.decode("utf-8", "replace") for part in (line.head, line.tail))
        raise RefusedError(INVALID_REQUEST, TOO_LONG, *_ids(head, tail))
    text = mend(line.decode("utf-8", "replace").removeprefix(BOM))
    if not text.strip():
        return ""
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _unreadable(
            text, f"{error.msg.removesuffix(' at')} at column {error.colno}"
        ) from None
    except ValueError as error:
        raise _unreadable(
            text, str(error) if isinstance(error, _ConstantError) else "a number is too long"
        ) from None
    except RecursionError:
        raise _unreadable(text, "it is nested too deep") from None
    _check_shape(message)
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(text)
    return text


def mend(text: str) -> str:
    """Replace half characters, which JavaScript clients send when they cut an emoji in two."""
    if "\\ud" not in text.casefold():
        return text
    try:
        # Python joins the halves that belong together; what is left alone becomes a question mark.
        return (
            json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
            + "\n"
        )
    except (ValueError, RecursionError):
        return text


def _check_shape(message: object) -> None:
    """Refuse what is neither a request nor a notification nor an answer to a request of the server."""
    if isinstance(message, list):
        requests = [
            item for item in message[:MOST_ANSWERS] if isinstance(item, dict) and "method" in item
        ]
        ids = [_id_of(request) for request in requests]
        raise RefusedError(INVALID_REQUEST, NO_BATCHES, *(ids or [None]))
    if not isinstance(message, dict):
        raise RefusedError(INVALID_REQUEST, NOT_A_REQUEST, None)
    if "method" not in message and ("result" in message or "error" in message):
        # An answer. If it is wrong, the SDK drops it: an error with its id would be taken for
        # another answer.
        return
    is_named = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
    # The SDK takes a request for a notification if its id has a type that the protocol does not
    # know.
    is_known = "id" not in message or _id_of(message) is not None
    if not is_named or not is_known or not isinstance(message.get("params"), dict | None):
        raise RefusedError(INVALID_REQUEST, NOT_A_REQUEST, _id_of(message))


def _check_depth(text: str) -> None:
    """Refuse what Python can parse, but the SDK cannot."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False)[0]
        raise _unreadable(text, reason.get("ctx", {}).get("error", "unknown")) from None


class _ConstantError(ValueError):
    """A number that Python and JavaScript write, but JSON does not have."""


def _refuse_constant(constant: str) -> None:
    raise _ConstantError(f"it has no {constant}")


def _unreadable(text: str, reason: str) -> RefusedError:
    return RefusedError(PARSE_ERROR, f"the line is not JSON: {reason}. {HINT}", *_ids(text))


def _id_of(message: dict[str, object]) -> int | str | None:
    """Return the id of a request, if it is one of the protocol's."""
    number = message.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _ids(head: str, tail: str = "") -> Iterator[int | str | None]:
    """Yield the id of the request whose text cannot be parsed, or nothing known.

    None at all for an answer.
    """
    members = _members(head)
    if '"method"' not in members and not {'"result"', '"error"'}.isdisjoint(members):
        return
    written = members.get('"id"', "")
    last = _LAST_ID.search(tail or head[-TAIL:])
    if not written and last and (tail or len(head) > SIGHT):
        written = last[1]
    try:
        # A number of a thousand digits is no id that anybody waits for.
        number = (
            json.loads(written)
            if written.startswith('"') or len(written) <= LONGEST_NUMBER
            else None
        )
    except ValueError:
        number = None
    yield _id_of({"id": number})


def _members(text: str) -> dict[str, str]:
    """Return the members of the outermost object that can be made out, as written.

    Objects and lists without text.
    """
    members: dict[str, str] = {}
    depth, name, before = 0, "", ""
    for match in _TOKENS.finditer(text, 0, SIGHT):
        mark = match[0]
        if depth == 1 and mark == ":":
            name = before
            members[name] = ""
        elif depth == 1 and before == ":" and mark not in _OPENING:
            members[name] = mark
        depth += (mark in _OPENING) - (mark in _CLOSING)
        before = mark
    return members
