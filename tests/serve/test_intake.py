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

PARSE, INVALID = -32700, -32600


def request(**more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", **more}).encode()


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


# The line, the code of the answer, and its ids.
REFUSED: dict[str, tuple[bytes, int, tuple[object, ...]]] = {
    "nested 300 deep": (request(params={"a": "X"}).replace(b'"X"', deep(300)), PARSE, (7,)),
    "nested 300 deep, id last": (
        b'{"method":"ping","params":{"id":3,"a":' + deep(300) + b'},"jsonrpc":"2.0","id":7}',
        PARSE,
        (7,),
    ),
    "nested very deep, id last": (
        b'{"method":"ping","params":{"id":3,"a":' + deep(200_000) + b'},"jsonrpc":"2.0","id":7}',
        PARSE,
        (7,),
    ),
    "nested without an end": (b'{"a": ' + b"[" * 100_000, PARSE, (None,)),
    "a number of 5,001 digits": (
        request(params={"a": "X"}).replace(b'"X"', b"9" * 5001),
        PARSE,
        (7,),
    ),
    "an id of 5,001 digits": (request(id="X").replace(b'"X"', b"9" * 5001), PARSE, (None,)),
    "not JSON": (b"not json", PARSE, (None,)),
    "cut off": (request(params={"a": "b"})[:-6], PARSE, (7,)),
    "cut off in an inner id": (
        b'{"jsonrpc":"2.0","method":"ping","params":{"a":1,"id":5}',
        PARSE,
        (None,),
    ),
    "a NUL": (request() + b"\0", PARSE, (7,)),
    "a text id and a fault": (b'{"id":"a\\"b","method":"ping",', PARSE, ('a"b',)),
    "NaN": (request(params={"a": float("nan")}), PARSE, (7,)),
    "Infinity": (request(params={"a": float("-inf")}), PARSE, (7,)),
    "UTF-16": (request().decode().encode("utf-16-le").replace(b"\n", b""), PARSE, (None,)),
    "a list": (b"[]", INVALID, (None,)),
    "a batch": (
        b"[" + request() + b"," + request(id="b") + b',5,{"method":"x"}]',
        INVALID,
        (7, "b", None),
    ),
    "a number": (b"5", INVALID, (None,)),
    "a text": (b'"tools/list"', INVALID, (None,)),
    "nothing": (b"null", INVALID, (None,)),
    "an id that is a fraction": (request(id=1.5), INVALID, (None,)),
    "an id that is true": (request(id=True), INVALID, (None,)),
    "an id that is null": (request(id=None), INVALID, (None,)),
    "an id that is a list": (request(id=[1]), INVALID, (None,)),
    "no method": (b'{"jsonrpc":"2.0","id":7}', INVALID, (7,)),
    "a method that is a number": (request(method=5), INVALID, (7,)),
    "another version": (request(jsonrpc="1.0"), INVALID, (7,)),
    "parameters in a list": (request(params=[1]), INVALID, (7,)),
}
# These are served as if nothing were wrong with them.
MENDED = {
    "a byte order mark": b"\xef\xbb\xbf" + request(),
    "half a character": request(params={"a": "\ud83d"}),
    "bytes that are no text": request(params={"a": "X"}).replace(b"X", b"\xff\xfe"),
    "the end of a line of Windows": request() + b"\r",
    "nested 100 deep": request(params={"a": "X"}).replace(b'"X"', deep(100)),
    "the word NaN": request(params={"a": "NaN"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_is_refused_with_its_id(name: str) -> None:
    line, code, ids = REFUSED[name]
    with pytest.raises(RefusedError) as refused:
        read(line + b"\n")
    assert (refused.value.code, refused.value.ids) == (code, ids)


@pytest.mark.parametrize("name", MENDED)
def test_what_can_be_mended_is_served(name: str) -> None:
    jsonrpc_message_adapter.validate_json(read(MENDED[name] + b"\n"))


@pytest.mark.parametrize("line", [b"\n", b"  \r\n", b"\xef\xbb\xbf\n"])
def test_an_empty_line_is_nothing(line: bytes) -> None:
    assert read(line).strip() == ""


@pytest.mark.parametrize(
    "line", [b'{"jsonrpc":"2.0","id":3,"result":{"a":', b'{"id":3,"error":{"code":NaN}}']
)
def test_a_broken_answer_is_not_answered(line: bytes) -> None:
    with pytest.raises(RefusedError) as refused:
        read(line)
    assert refused.value.ids == ()


def test_the_id_of_an_overlong_line_is_read_from_either_end() -> None:
    for first, last in (
        (b'{"id":7,"params":"', b'"}'),
        (b'{"params":{"id":3,"a":"', b'"},"id":7}\n'),
    ):
        line = Overlong(first + b"x" * intake.LONGEST_LINE)
        line.add(b"y" * 5000 + last)
        with pytest.raises(RefusedError, match="longer than 64 MB") as refused:
            read(line)
        assert refused.value.ids == (7,)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(("id", "a")), inner, max_size=2)
        ),
        max_leaves=5,
    ),
    st.fixed_dictionaries(
        {}, optional={"jsonrpc": st.just("2.0"), "method": st.just("ping"), "params": st.none()}
    ),
    st.integers(0, 200),
)
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
    request: pytest.FixtureRequest, served: Project, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> Window:
    """Open a window on a shared server, or one that serves itself."""
    if request.param == "alone":
        monkeypatch.setenv("RAGDOCS_SERVER_SHARED", "false")
    window = Window(served).greet()
    assert len(servers(runtime)) == (request.param == "shared")
    return window


def test_every_refusal_is_an_answer_and_the_session_goes_on(window: Window) -> None:
    for name, (line, code, ids) in REFUSED.items():
        window.write(line + b"\n")
        answers = [window.receive() for _ in ids]
        assert [(answer["error"]["code"], answer["id"]) for answer in answers] == [
            (code, i) for i in ids
        ], name
    for name, line in MENDED.items():
        window.write(line + b"\n")
        assert window.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}, name
    assert window.close() == 0


def test_a_line_that_is_too_long_costs_one_error(window: Window) -> None:
    for start, end in (('{"id":7,"params":"', '"}'), ('{"params":{"id":3,"a":"', '"},"id":7}')):
        window.write(start.encode())
        for _ in range(66):
            window.write(b"x" * 1024 * 1024)
        window.write(end.encode() + b"\n")
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
