"""The weights of the built-in model, read from its file.

The file keeps each matrix as bytes and a scale for each of its columns, or of its rows where it
is a table to look words up in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.search.encoders.messages import fields, number

Array = npt.NDArray[Any]

LAYERS = 6
_EMBEDDINGS = "inner.embeddings"

# Numbers of fields in ONNX's messages: a model's graph; a graph's nodes and tensors; the parts of
# a node and of a tensor.
_GRAPH = 7
_NODE = 1
_TENSOR = 5
_INPUT = 1
_OPERATOR = 4
_SIZE = 1
_TYPE = 2
_NAME = 8
_CONTENT = 9
_TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    3: np.dtype("i1"),
    7: np.dtype("<i8"),
    9: np.dtype("?"),
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a row of numbers is multiplied with: bytes, and a scale for each column."""

    values: Array
    scales: Array

    def beside(self, *others: Matrix) -> Matrix:
        """Return the matrix with others to its right."""
        values = self.values
        scales = self.scales
        for other in others:
            values = np.concatenate([values, other.values], axis=1)
            scales = np.concatenate([scales, other.scales])
        return Matrix(values, scales)

    def column_sums(self) -> Array:
        """Return the sum of each column; the bytes are added before they are scaled."""
        whole = self.values.sum(axis=0, dtype=np.int32)
        sums: Array = whole.astype(np.float32) * self.scales
        return sums


@dataclass(frozen=True, slots=True)
class Norm:
    """How a row is scaled and moved after its mean and spread are taken out of it."""

    scale: Array
    shift: Array


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the six layers: matrices, what is added to their products, and two norms."""

    attention: Matrix
    attention_bias: Array
    joining: Matrix
    joining_bias: Array
    joining_norm: Norm
    widening: Matrix
    widening_bias: Array
    narrowing: Matrix
    narrowing_bias: Array
    narrowing_norm: Norm


class Weights:
    """The weights of a file; arrays share its memory where they can."""

    def __init__(self, model: memoryview) -> None:
        """Read a file; raise ValueError if it is of another model."""
        self._tensors: dict[str, Array] = {}
        self._products: list[str] = []
        for field_number, payload in _graph(model):
            if field_number == _TENSOR:
                name, content = _tensor(payload)
                self._tensors[name] = content
            elif field_number == _NODE:
                self._products += _factor(payload)
        # A layer multiplies with six matrices that are stored; two more products are of rows only.
        self._products = [name for name in self._products if f"{name}_q" in self._tensors]
        if len(self._products) != 6 * LAYERS:
            raise ValueError("the file is of another model")

    def words(self) -> tuple[Array, Array]:
        """Return the table of words as bytes, and the scale of each row."""
        name = f"{_EMBEDDINGS}.word_embeddings.weight"
        return self._tensors[f"{name}_q"], self._tensors[f"{name}_scale"]

    def positions(self, count: int) -> Array:
        """Return what is added to the first word, to the second and so on."""
        name = f"{_EMBEDDINGS}.position_embeddings.weight"
        values = self._tensors[f"{name}_q"]
        scales = self._tensors[f"{name}_scale"]
        positions = values[:count] * scales[:count]
        # All words of a text are of the first kind; the second is for pairs of texts.
        kinds = self._tensors[f"{_EMBEDDINGS}.token_type_embeddings.weight"]
        return np.asarray(positions + kinds[0], dtype=np.float32)

    def first_norm(self) -> Norm:
        """Return what is done to the sum of words and positions."""
        return self._norm(_EMBEDDINGS)

    def layer(self, index: int) -> Layer:
        """Return one of the layers."""
        first = 6 * index
        products = self._products[first : first + 6]
        six = [self._matrix(name) for name in products]
        query, key, value, joining, widening, narrowing = six
        name = f"inner.encoder.layer.{index}"
        parts = []
        for part in ("query", "key", "value"):
            bias = self._bias(f"{name}.attention.self.{part}")
            parts.append(bias)
        return Layer(
            attention=query.beside(key, value),
            attention_bias=np.concatenate(parts),
            joining=joining,
            joining_bias=self._bias(f"{name}.attention.output.dense"),
            joining_norm=self._norm(f"{name}.attention.output"),
            widening=widening,
            widening_bias=self._bias(f"{name}.intermediate.dense"),
            narrowing=narrowing,
            narrowing_bias=self._bias(f"{name}.output.dense"),
            narrowing_norm=self._norm(f"{name}.output"),
        )

    def _matrix(self, name: str) -> Matrix:
        values = self._tensors[f"{name}_q"]
        scales = self._tensors[f"{name}_scale"]
        return Matrix(values, scales.reshape(-1))

    def _bias(self, name: str) -> Array:
        return self._tensors[f"{name}.bias"]

    def _norm(self, name: str) -> Norm:
        name = f"{name}.LayerNorm"
        scale = self._tensors[f"{name}.weight"]
        shift = self._tensors[f"{name}.bias"]
        return Norm(scale, shift)


def _graph(model: memoryview) -> Iterator[tuple[int, memoryview]]:
    for field_number, payload in fields(model):
        if field_number == _GRAPH:
            yield from fields(payload)


def _factor(node: memoryview) -> list[str]:
    """Return the name of what a node multiplies with, if it does."""
    parts = _parts(node)
    if parts[_OPERATOR] != [b"MatMul"]:
        return []
    factor = parts[_INPUT][1]
    return [bytes(factor).decode()]


def _tensor(message: memoryview) -> tuple[str, Array]:
    parts = _parts(message)
    name = bytes(parts[_NAME][0]).decode()
    sizes = parts.get(_SIZE, [])
    size = [number(payload) for payload in sizes]
    kind = number(parts[_TYPE][0])
    content = parts[_CONTENT][0]
    values = np.frombuffer(content, _TYPES[kind])
    return name, values.reshape(size)


def _parts(message: memoryview) -> Mapping[int, list[memoryview]]:
    parts: dict[int, list[memoryview]] = {}
    for field_number, payload in fields(message):
        parts.setdefault(field_number, []).append(payload)
    return parts
