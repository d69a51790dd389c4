"""The built-in model with its table of words left in the 12 MB it is stored in.

Instead of the 47 MB it unpacks to.

The file keeps 30,522 rows of bytes and a scale for each, and its graph multiplies them all before
it takes the few rows of a text. Taking the rows first gives the same numbers, bit for bit. The
graph is a Protocol Buffers message; what has to be known of that format is below, so that no
package is needed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

WORDS = "inner.embeddings.word_embeddings.weight"

# Numbers of fields in ONNX's messages: a model's graph, a graph's nodes, and the parts of a node.
_GRAPH = 7
_NODE = 1
_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE = 1, 2, 4, 5
# Kinds of fields in a message; the one that is left has four bytes.
_VARINT, _EIGHT_BYTES, _BYTES = 0, 1, 2


def take_rows_first(model: bytes) -> bytes:
    """Return the model with its words looked up before they are unpacked.

    Raise ValueError if it is another model.
    """
    return with_graph(model, _words_looked_up)


def with_graph(
    model: bytes, rewrite: Callable[[memoryview], Iterable[bytes | memoryview]]
) -> bytes:
    """Return the model with its graph written again."""
    written: list[bytes | memoryview] = []
    graph: list[bytes | memoryview] = []
    for number, whole, payload in _fields(memoryview(model)):
        if number == _GRAPH:
            graph = list(rewrite(payload))
            written += [_varint(number << 3 | _BYTES), _varint(sum(map(len, graph))), *graph]
        else:
            written.append(whole)
    if not graph:
        raise ValueError("the model has no graph")
    return b"".join(written)


def _words_looked_up(graph: memoryview) -> Iterator[bytes | memoryview]:
    casting = b""
    replaced = 0
    for number, whole, payload in _fields(graph):
        node: dict[int, list[bytes]] = {}
        if number == _NODE:
            node = _parts(payload)
        inputs = _names(node, _INPUT)
        outputs = _names(node, _OUTPUT)
        if outputs in ([f"{WORDS}_f"], [WORDS]):
            # The cast and the product of the whole table; what to cast to is said in an attribute.
            if _ATTRIBUTE in node:
                casting = b"".join(_field(_ATTRIBUTE, value) for value in node[_ATTRIBUTE])
            replaced += 1
        elif inputs[:1] == [WORDS]:
            ids, row = inputs[1], outputs[0]
            yield _written("Gather", [f"{WORDS}_q", ids], f"{row}_q")
            yield _written("Gather", [f"{WORDS}_scale", ids], f"{row}_scale")
            yield _written("Cast", [f"{row}_q"], f"{row}_f", casting)
            yield _written("Mul", [f"{row}_f", f"{row}_scale"], row)
            replaced += 1
        else:
            yield whole
    if replaced != 3:  # noqa: PLR2004 - the cast, the product and the lookup
        raise ValueError("the model's words are not looked up as expected")


def _names(node: dict[int, list[bytes]], part: int) -> list[str]:
    return [name.decode() for name in node.get(part, [])]


def _parts(message: memoryview) -> dict[int, list[bytes]]:
    parts: dict[int, list[bytes]] = {}
    for number, _, payload in _fields(message):
        parts.setdefault(number, []).append(bytes(payload))
    return parts


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield each field as (number, all its bytes, its payload)."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _read_varint(message, at)
        first = at
        kind = tag & 7
        if kind == _BYTES:
            size, first = _read_varint(message, at)
            at = first + size
        elif kind == _VARINT:
            _, at = _read_varint(message, at)
        elif kind == _EIGHT_BYTES:
            at += 8
        else:
            at += 4
        yield tag >> 3, message[start:at], message[first:at]


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number has no eighth bit
            return value, at


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits to a byte
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload


def _written(operator: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    parts = [_field(_INPUT, name.encode()) for name in inputs]
    parts.append(_field(_OUTPUT, output.encode()))
    parts.append(_field(_OPERATOR, operator.encode()))
    parts.append(attributes)
    return _field(_NODE, b"".join(parts))
