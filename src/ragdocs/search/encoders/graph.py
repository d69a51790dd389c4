"""The built-in model as a graph that multiplies whole numbers.

Every row that meets a matrix is rounded to 128 steps between its least and its greatest number.
Rows that decide what words look at and which of the wide ones wake up are multiplied a second
time, with what the first rounding took from them: without that, vectors of short texts lose a
quarter of a hundredth.
Eight bits would be finer, but processors without dot products of bytes add pairs of products in
16 bits: seven bits times eight never overflow there, so that all processors get the same sums.
Steps are of a row, never of a text, so no word makes the others coarser.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragdocs.search.encoders.messages import field
from ragdocs.search.encoders.weights import LAYERS, Array, Layer, Matrix, Norm, Weights

HEADS = 12
WIDTH = 384
STEPS = 127
EPSILON = 1e-12
EMBEDDED, MEAN = "embedded", "mean"

# Operators that ONNX Runtime adds to those of ONNX, and versions of both.
_OWN = "com.microsoft"
_OPERATORS = {"": 17, _OWN: 1}
_FORMAT = 8

# Numbers of fields in ONNX's messages.
_MODEL_FORMAT, _MODEL_GRAPH, _MODEL_OPERATORS = 1, 7, 8
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_TENSOR, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS, _ATTRIBUTE_TYPE = 1, 2, 3, 8, 20
_TENSOR_SIZE, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_CONTENT = 1, 2, 8, 9
_IS_FLOAT, _IS_INT, _IS_INTS = 1, 2, 7
_FLOATS, _BYTES = 1, 2
_TYPES = {"float32": _FLOATS, "uint8": _BYTES, "int8": 3, "int64": 7}


def write_graph(weights: Weights) -> bytes:
    """Return a file for ONNX Runtime: rows of one text in, the mean of what becomes of them out."""
    graph = _Graph()
    rows = graph.norm(EMBEDDED, weights.first_norm())
    for index in range(LAYERS):
        rows = _layer(graph, rows, weights.layer(index))
    graph.add("ReduceMean", [rows], output=MEAN, axes=[1], keepdims=0)
    return graph.written()


def _layer(graph: _Graph, rows: str, layer: Layer) -> str:
    product = graph.product(rows, layer.attention, twice=True)
    sizes = graph.tensor(np.array([WIDTH] * 3, dtype=np.int64))
    parts = graph.add_several("Split", [product, sizes], 3, axis=-1)
    bias = graph.tensor(layer.attention_bias)
    seen = graph.own("MultiHeadAttention", [*parts, bias], num_heads=HEADS)
    joined = graph.product(seen, layer.joining)
    joined = graph.norm_of_sum(joined, rows, layer.joining_norm, layer.joining_bias)
    wide = graph.product(joined, layer.widening, twice=True)
    wide = graph.own("BiasGelu", [wide, graph.tensor(layer.widening_bias)])
    narrow = graph.product(wide, layer.narrowing)
    return graph.norm_of_sum(narrow, joined, layer.narrowing_norm, layer.narrowing_bias)


class _Graph:
    """Nodes and tensors in the order in which they were added."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._count = 0
        self._zero = self.tensor(np.array(0, dtype=np.float32))
        self._one = self.tensor(np.array(1, dtype=np.float32))
        self._steps = self.tensor(np.array(STEPS, dtype=np.float32))
        # Rows of equal numbers have no range to divide by.
        self._least_step = self.tensor(np.array(1e-9, dtype=np.float32))
        self._last_axis = self.tensor(np.array([1], dtype=np.int64))
        self._fine = self.tensor(np.array(1 / STEPS, dtype=np.float32))
        self._middle = self.tensor(np.array((STEPS + 1) // 2, dtype=np.uint8))
        self._no_shift = self.tensor(np.array(0, dtype=np.uint8))

    def tensor(self, content: Array) -> str:
        """Add numbers, and return their name."""
        name = self._new_name()
        parts = [field(_TENSOR_SIZE, size) for size in content.shape]
        parts.append(field(_TENSOR_TYPE, _TYPES[content.dtype.name]))
        parts.append(field(_TENSOR_NAME, name))
        parts.append(field(_TENSOR_CONTENT, content.tobytes()))
        self._tensors.append(field(_GRAPH_TENSOR, b"".join(parts)))
        return name

    def add(
        self, operator: str, inputs: Sequence[str], *, output: str = "", **attributes: object
    ) -> str:
        """Add an operator of ONNX, and return the name of its result."""
        output = output or self._new_name()
        self._node("", operator, inputs, [output], attributes)
        return output

    def add_several(
        self, operator: str, inputs: Sequence[str], count: int, **attributes: object
    ) -> list[str]:
        """Add an operator of ONNX with several results, and return their names."""
        outputs = [self._new_name() for _ in range(count)]
        self._node("", operator, inputs, outputs, attributes)
        return outputs

    def own(self, operator: str, inputs: Sequence[str], **attributes: object) -> str:
        """Add an operator of ONNX Runtime, and return the name of its result."""
        output = self._new_name()
        self._node(_OWN, operator, inputs, [output], attributes)
        return output

    def norm(self, rows: str, norm: Norm) -> str:
        """Take mean and spread out of rows."""
        inputs = [rows, self.tensor(norm.scale), self.tensor(norm.shift)]
        return self.add("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)

    def norm_of_sum(self, rows: str, others: str, norm: Norm, bias: Array) -> str:
        """Take mean and spread out of the sum of two rows and a constant one."""
        inputs = [rows, others, self.tensor(norm.scale), self.tensor(norm.shift)]
        inputs.append(self.tensor(bias))
        return self.own("SkipLayerNormalization", inputs, epsilon=EPSILON)

    def product(self, rows: str, matrix: Matrix, *, twice: bool = False) -> str:
        """Multiply rows with a matrix, in whole numbers.

        What is lost by rounding a row may be rounded and multiplied too.
        """
        step, shift = self._steps_of(rows)
        shift_byte = self.add("Cast", [shift], to=_BYTES)
        rounded = self.add("QuantizeLinear", [rows, step, shift_byte], axis=1)
        values = self.tensor(matrix.values)
        scales = self.tensor(matrix.scales)
        no_shifts = self.tensor(np.zeros(len(matrix.scales), dtype=np.int8))
        inputs = [rounded, values, self._one, scales, self._no_shift, no_shifts]
        product = self.own("MatMulIntegerToFloat", inputs)
        if twice:
            lost = self._lost(rows, rounded, step, shift_byte)
            inputs = [lost, values, self._fine, scales, self._middle, no_shifts]
            rest = self.own("MatMulIntegerToFloat", inputs)
            product = self.add("Add", [product, rest])
        step = self.add("Unsqueeze", [step, self._last_axis])
        shift = self.add("Unsqueeze", [shift, self._last_axis])
        # A row is step * (rounded - shift): the shift meets the sums of the columns.
        moved = self.add("Mul", [shift, self.tensor(matrix.column_sums())])
        product = self.add("Sub", [product, moved])
        return self.add("Mul", [product, step])

    def _steps_of(self, rows: str) -> tuple[str, str]:
        """Return the step of each row, and how many of them lie below zero."""
        greatest = self.add("ReduceMax", [rows], axes=[0, 2], keepdims=0)
        least = self.add("ReduceMin", [rows], axes=[0, 2], keepdims=0)
        # Zero must be a whole number of steps from both ends.
        greatest = self.add("Max", [greatest, self._zero])
        least = self.add("Min", [least, self._zero])
        step = self.add("Div", [self.add("Sub", [greatest, least]), self._steps])
        step = self.add("Max", [step, self._least_step])
        return step, self.add("Round", [self.add("Div", [self.add("Neg", [least]), step])])

    def _lost(self, rows: str, rounded: str, step: str, shift: str) -> str:
        """Return what rounding took from rows, in fine steps around a middle."""
        back = self.add("DequantizeLinear", [rounded, step, shift], axis=1)
        lost = self.add("Sub", [rows, back])
        fine = self.add("Mul", [step, self._fine])
        # One middle for each row.
        middle = self.add("Expand", [self._middle, self.add("Shape", [step])])
        return self.add("QuantizeLinear", [lost, fine, middle], axis=1)

    def written(self) -> bytes:
        """Return the file."""
        parts = [*self._nodes, field(_GRAPH_NAME, "all-MiniLM-L6-v2"), *self._tensors]
        parts.append(field(_GRAPH_INPUT, _declared(EMBEDDED, (1, "words", WIDTH))))
        parts.append(field(_GRAPH_OUTPUT, _declared(MEAN, (1, WIDTH))))
        written = [field(_MODEL_FORMAT, _FORMAT)]
        for domain, version in _OPERATORS.items():
            written.append(field(_MODEL_OPERATORS, field(1, domain) + field(2, version)))
        written.append(field(_MODEL_GRAPH, b"".join(parts)))
        return b"".join(written)

    def _new_name(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def _node(
        self,
        domain: str,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: dict[str, object],
    ) -> None:
        parts = [field(_NODE_INPUT, name) for name in inputs]
        parts += [field(_NODE_OUTPUT, name) for name in outputs]
        parts.append(field(_NODE_OPERATOR, operator))
        for name, value in attributes.items():
            parts.append(field(_NODE_ATTRIBUTE, _attribute(name, value)))
        parts.append(field(_NODE_DOMAIN, domain))
        self._nodes.append(field(_GRAPH_NODE, b"".join(parts)))


def _attribute(name: str, value: object) -> bytes:
    written = field(_ATTRIBUTE_NAME, name)
    if isinstance(value, float):
        return written + field(_ATTRIBUTE_FLOAT, value) + field(_ATTRIBUTE_TYPE, _IS_FLOAT)
    if isinstance(value, int):
        return written + field(_ATTRIBUTE_INT, value) + field(_ATTRIBUTE_TYPE, _IS_INT)
    assert isinstance(value, list)
    for item in value:
        written += field(_ATTRIBUTE_INTS, item)
    return written + field(_ATTRIBUTE_TYPE, _IS_INTS)


def _declared(name: str, size: Sequence[int | str]) -> bytes:
    """Return an input or output of floats: a size that is a name differs from run to run."""
    sizes = b""
    for length in size:
        sizes += field(1, field(1 if isinstance(length, int) else 2, length))
    rows = field(1, _FLOATS) + field(2, sizes)
    return field(1, name) + field(2, field(1, rows))
