"""Lines that are no requests: each one that had an id is answered, and the session goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter
from tests.serve.windows import Window, servers

from ragdocs.serve.mcp import intake
from ragdocs.serve.mcp.intake import Overlong, RefusedError, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project


def request(**more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", **more}).encode()


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


ID_LAST = b'{"method":"ping","params":{"id":3,"a":X},"jsonrpc":"2.0","id":7}'
ARGUMENT = request(params={"a": "X"})
BATCH = b"[" + request() + b"," + request(id="b") + b',5,{"method":"x"}]'

# The line and the ids of its answer.
NO_JSON: dict[str, tuple[bytes, list[object]]] = {
    "nested 300 deep": (ARGUMENT.replace(b'"X"', deep(300)), [7]),
    "nested 300 deep, id last": (ID_LAST.replace(b"X", deep(300)), [7]),
    "nested very deep, id last": (ID_LAST.replace(b"X", deep(200_000)), [7]),
    "nested without an end": (b'{"a": ' + b"[" * 100_000, [None]),
    "a number of 5,001 digits": (ARGUMENT.replace(b'"X"', b"9" * 5001), [7]),
    "an id of 5,001 digits": (request(id="X").replace(b'"X"', b"9" * 5001), [None]),
    "not JSON": (b"not json", [None]),
    "cut off": (ARGUMENT[:-6], [7]),
    "cut off in an inner id": (b'{"method":"ping","params":{"a":1,"id":5}', [None]),
    "a NUL": (request() + b"\0", [7]),
    "a text id and a fault": (b'{"id":"a\\"b","method":"ping",', ['a"b']),
    "NaN": (request(params={"a": float("nan")}), [7]),
    "Infinity": (request(params={"a": float("-inf")}), [7]),
    "UTF-16": (request().decode().encode("utf-16-le").replace(b"\n", b""), [None]),
    "bytes that are no text alone": (b"\xff\xfe", [None]),
}
NO_REQUEST: dict[str, tuple[bytes, list[object]]] = {
    "a list": (b"[]", [None]),
    "a batch": (BATCH, [7, "b", None]),
    "a number": (b"5", [None]),
    "a text": (b'"tools/list"', [None]),
    "nothing": (b"null", [None]),
    "a version alone": (b'{"jsonrpc": "2.0"}', [None]),
    "an id that is a fraction": (request(id=1.5), [None]),
    "an id that is true": (request(id=True), [None]),
    "an id that is null": (request(id=None), [None]),
    "an id that is a list": (request(id=[1]), [None]),
    "no method": (b'{"jsonrpc":"2.0","id":7}', [7]),
    "a method that is a number": (request(method=5), [7]),
    "another version": (request(jsonrpc="1.0"), [7]),
    "parameters in a list": (request(params=[1]), [7]),
}
REFUSED = [(name, -32700, *case) for name, case in NO_JSON.items()]
REFUSED += [(name, -32600, *case) for name, case in NO_REQUEST.items()]
# These are served as if nothing were wrong with them.
MENDED = {
    "a byte order mark": b"\xef\xbb\xbf" + request(),
    "half a character": request(params={"a": "\ud83d"}),
    "bytes that are no text": request(params={"a": "X"}).replace(b"X", b"\xff\xfe"),
    "the end of a line of Windows": request() + b"\r",
    "nested 100 deep": request(params={"a": "X"}).replace(b'"X"', deep(100)),
    "the word NaN": request(params={"a": "NaN"}),
}


@pytest.mark.parametrize(
    ("code", "line", "ids"),
    [case[1:] for case in REFUSED]
    + [(-32700, b'{"jsonrpc":"2.0","id":3,"result":{"a":', [])]
    + [(-32700, b'{"id":3,"error":{"code":NaN}}', [])],
    ids=[case[0] for case in REFUSED] + ["a broken answer", "a broken error"],
)
def test_what_is_no_request_is_refused_with_its_id(
    code: int, line: bytes, ids: list[object]
) -> None:
    with pytest.raises(RefusedError) as refused:
        read(line + b"\n")
    assert (refused.value.code, list(refused.value.ids)) == (code, ids)


@pytest.mark.parametrize("name", MENDED)
def test_what_can_be_mended_is_served(name: str) -> None:
    jsonrpc_message_adapter.validate_json(read(MENDED[name] + b"\n"))


@pytest.mark.parametrize("line", [b"\n", b"  \r\n", b"\xef\xbb\xbf\n"])
def test_an_empty_line_is_nothing(line: bytes) -> None:
    assert read(line).strip() == ""


OVERLONG = [(b'{"id":7,"params":"', b'"}'), (b'{"params":{"id":3,"a":"', b'"},"id":7}')]


@pytest.mark.parametrize(("first", "last"), OVERLONG)
def test_the_id_of_an_overlong_line_is_read_from_either_end(first: bytes, last: bytes) -> None:
    line = Overlong(first + b"x" * intake.LONGEST_LINE)
    line.add(b"y" * 5000 + last + b"\n")
    with pytest.raises(RefusedError, match="longer than 64 MB") as refused:
        read(line)
    assert refused.value.ids == (7,)


IDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "a"]), inner)
    ),
    max_leaves=5,
)
FIELDS = {"jsonrpc": st.just("2.0"), "method": st.just("ping"), "params": st.none()}


@given(IDS, st.fixed_dictionaries({}, optional=FIELDS), st.integers(0, 200))
def test_no_line_is_dropped_in_silence(number: object, more: dict[str, object], cut: int) -> None:
    line = json.dumps({**more, "id": number}).encode()
    for text in (line, line[:cut]):
        ids: tuple[object, ...] = ()
        try:
            whole = read(text)
        except RefusedError as refused:
            whole, ids = "", refused.ids
        if whole.strip():
            message = jsonrpc_message_adapter.validate_json(whole)
            assert getattr(message, "id", None) == number
        else:
            assert ids or not text.strip()


@pytest.fixture(params=["shared", "alone"])
def window(
    request: pytest.FixtureRequest,
    served: Project,
    runtime: Path,
    quick_servers: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Window:
    """Open a window on a shared server, or one that serves itself."""
    if request.param == "alone":
        monkeypatch.setenv("RAGDOCS_SERVER_SHARED", "false")
    window = Window(served).greet()
    assert len(servers(runtime)) == (request.param == "shared")
    return window


def test_every_refusal_is_an_answer_and_the_session_goes_on(window: Window) -> None:
    for name, code, line, ids in REFUSED:
        window.write(b"\n" + line + b"\n")
        for number in ids:
            answer = window.receive()
            assert (answer["error"]["code"], answer["id"]) == (code, number), name
    for name, line in MENDED.items():
        window.write(line + b"\n")
        assert window.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}, name
    assert window.close() == 0


def test_a_line_that_is_too_long_costs_one_error(window: Window) -> None:
    for first, last in OVERLONG:
        window.write(first)
        for _ in range(66):
            window.write(b"x" * 1024 * 1024)
        window.write(last + b"\n")
        answer = window.receive()
        assert answer["id"] == 7
        assert "64 MB" in answer["error"]["message"]
        assert window.call("search_docs", query="tokens")["structuredContent"]["result"]
    assert window.close() == 0


def test_a_huge_id_and_equal_ids_are_answered(window: Window) -> None:
    huge = "i" * 10_000_000
    window.write(request(id=huge) + b"\n")
    assert window.receive()["id"] == huge
    call = {"name": "search_docs", "arguments": {"query": "tokens"}}
    window.write(b"".join(request(method="tools/call", params=call) + b"\n" for _ in range(5)))
    assert [window.receive()["id"] for _ in range(5)] == [7] * 5
    assert window.close() == 0
