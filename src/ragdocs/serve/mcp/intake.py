"""The lines that a client sends: those that the SDK would drop are mended or refused."""

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
# Characters of an unreadable line that are searched for the id of the request, from either end.
SIGHT = 100_000
TAIL = 1_000
# Requests of a batch that are answered one by one.
MOST_ANSWERS = 1_000
# No id that a client made is longer, and a longer number may not be printable.
LONGEST_NUMBER = 40
BOM = "\ufeff"
# Nobody needs more; the SDK's parser takes a few more and then gives up.
DEEPEST = 150
HINT = (
    f"Send one JSON object a line, nested at most {DEEPEST} deep, "
    "with numbers of at most 4,000 digits"
)
NOT_A_REQUEST = (
    'not a request of JSON-RPC 2.0. It takes "jsonrpc": "2.0", an "id" that is a text '
    'or a whole number, a "method", and "params" that are an object'
)
NO_BATCHES = "batches are not supported. Send one request a line"
TOO_LONG = f"the request is longer than {LONGEST_LINE // 1024 // 1024} MB. Send less at once"

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)
_OPENING = ("[", "{")
_CLOSING = ("]", "}")
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
    """Why a line is not a request, with the protocol's code and the ids to answer."""

    def __init__(self, code: int, message: str, *ids: int | str | None) -> None:
        super().__init__(message)
        self.code = code
        self.ids = ids


class Intake:
    """The requests among a client's lines, for the SDK's transport; other lines are refused."""

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
            answer = JSONRPCError(jsonrpc="2.0", id=number, error=error)
            await self._answers.send(SessionMessage(answer))
            await anyio.lowlevel.checkpoint()


def read(line: Line) -> str:
    """Return a line that the SDK can parse, nothing for an empty one, or raise why it is none."""
    if isinstance(line, Overlong):
        head = line.head.decode("utf-8", "replace")
        tail = line.tail.decode("utf-8", "replace")
        raise RefusedError(INVALID_REQUEST, TOO_LONG, *_ids(head, tail))
    text = mend(line.decode("utf-8", "replace").removeprefix(BOM))
    if not text.strip():
        return ""
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise _unreadable(text, f"{reason} at column {error.colno}") from None
    except _ConstantError as error:
        raise _unreadable(text, str(error)) from None
    except ValueError:
        raise _unreadable(text, "a number is too long") from None
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
        # Python joins the halves that belong together; a half alone becomes a question mark.
        joined = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return joined.encode("utf-8", "replace").decode() + "\n"


def _check_shape(message: object) -> None:
    """Refuse a message that is no request, no notification and no answer to the server."""
    if isinstance(message, list):
        raise _refused_batch(message)
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


def _refused_batch(batch: list[object]) -> RefusedError:
    ids = []
    for message in batch[:MOST_ANSWERS]:
        if isinstance(message, dict) and "method" in message:
            ids.append(_id_of(message))
    return RefusedError(INVALID_REQUEST, NO_BATCHES, *(ids or [None]))


def _check_depth(text: str) -> None:
    """Refuse a text that Python can parse, but the SDK cannot."""
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
    if isinstance(number, int | str) and not isinstance(number, bool):
        return number
    return None


def _ids(head: str, tail: str = "") -> Iterator[int | str | None]:
    """Yield the id, or None, of a request whose text cannot be parsed; nothing for an answer."""
    members = _members(head)
    if '"method"' not in members and not {'"result"', '"error"'}.isdisjoint(members):
        return
    written = members.get('"id"', "")
    last = _LAST_ID.search(tail or head[-TAIL:])
    if not written and last and (tail or len(head) > SIGHT):
        written = last[1]
    yield _id_of({"id": _parsed_id(written)})


def _parsed_id(written: str) -> object:
    if len(written) > LONGEST_NUMBER and not written.startswith('"'):
        # A number of a thousand digits is no id that anybody waits for.
        return None
    try:
        return json.loads(written)
    except ValueError:
        return None


def _members(text: str) -> dict[str, str]:
    """Return the members of the outermost object as written; objects and lists are empty."""
    members: dict[str, str] = {}
    depth = 0
    name = ""
    before = ""
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
