"""Protocol Buffers messages, as far as a file of ONNX needs them.

The package `onnx` does the same and brings 26 MB along.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

# Kinds of fields in a message.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number of each field with its payload."""
    at = 0
    while at < len(message):
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
        yield tag >> 3, message[first:at]


def number(payload: memoryview) -> int:
    """Return the number in a payload."""
    return _read_varint(payload, 0)[0]


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number has no eighth bit
            return value, at


def field(field_number: int, value: bytes | str | float) -> bytes:
    """Return one field of a message."""
    if isinstance(value, int):
        return _varint(field_number << 3 | _VARINT) + _varint(value)
    if isinstance(value, float):
        return _varint(field_number << 3 | _FOUR_BYTES) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return _varint(field_number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    # Negative numbers are written in two's complement.
    value &= 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits to a byte
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
