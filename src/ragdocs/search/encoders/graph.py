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
EMBEDDED = "embedded"
MEAN = "mean"

# Operators that ONNX Runtime adds to those of ONNX, and versions of both.
_OWN = "com.microsoft"
_OPERATORS = {"": 17, _OWN: 1}
_FORMAT = 8

# Numbers of fields in ONNX's messages.
_MODEL_FORMAT = 1
_MODEL_GRAPH = 7
_MODEL_OPERATORS = 8
_GRAPH_NODE = 1
_GRAPH_NAME = 2
_GRAPH_TENSOR = 5
_GRAPH_INPUT = 11
_GRAPH_OUTPUT = 12
_NODE_INPUT = 1
_NODE_OUTPUT = 2
_NODE_OPERATOR = 4
_NODE_ATTRIBUTE = 5
_NODE_DOMAIN = 7
_ATTRIBUTE_NAME = 1
_ATTRIBUTE_FLOAT = 2
_ATTRIBUTE_INT = 3
_ATTRIBUTE_INTS = 8
_ATTRIBUTE_TYPE = 20
_TENSOR_SIZE = 1
_TENSOR_TYPE = 2
_TENSOR_NAME = 8
_TENSOR_CONTENT = 9
_IS_FLOAT = 1
_IS_INT = 2
_IS_INTS = 7
_FLOATS = 1
_BYTES = 2
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
    three = np.array([WIDTH] * 3, dtype=np.int64)
    sizes = graph.tensor(three)
    parts = graph.add_several("Split", [product, sizes], 3, axis=-1)
    bias = graph.tensor(layer.attention_bias)
    seen = graph.own("MultiHeadAttention", [*parts, bias], num_heads=HEADS)
    joined = graph.product(seen, layer.joining)
    joined = graph.norm_of_sum(joined, rows, layer.joining_norm, layer.joining_bias)
    wide = graph.product(joined, layer.widening, twice=True)
    widening_bias = graph.tensor(layer.widening_bias)
    wide = graph.own("BiasGelu", [wide, widening_bias])
    narrow = graph.product(wide, layer.narrowing)
    return graph.norm_of_sum(narrow, joined, layer.narrowing_norm, layer.narrowing_bias)


class _Graph:
    """Nodes and tensors in the order in which they were added."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._count = 0
        self._zero = self._float(0)
        self._one = self._float(1)
        self._steps = self._float(STEPS)
        # Rows of equal numbers have no range to divide by.
        self._least_step = self._float(1e-9)
        last_axis = np.array([1], dtype=np.int64)
        self._last_axis = self.tensor(last_axis)
        self._fine = self._float(1 / STEPS)
        middle = (STEPS + 1) // 2
        self._middle = self._byte(middle)
        self._no_shift = self._byte(0)

    def _float(self, value: float) -> str:
        return self.tensor(np.array(value, dtype=np.float32))

    def _byte(self, value: int) -> str:
        return self.tensor(np.array(value, dtype=np.uint8))

    def tensor(self, content: Array) -> str:
        """Add numbers, and return their name."""
        name = self._new_name()
        kind = _TYPES[content.dtype.name]
        message = b""
        for size in content.shape:
            message += field(_TENSOR_SIZE, size)
        message += field(_TENSOR_TYPE, kind)
        message += field(_TENSOR_NAME, name)
        message += field(_TENSOR_CONTENT, content.tobytes())
        tensor = field(_GRAPH_TENSOR, message)
        self._tensors.append(tensor)
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
        scale = self.tensor(norm.scale)
        shift = self.tensor(norm.shift)
        inputs = [rows, scale, shift]
        return self.add("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)

    def norm_of_sum(self, rows: str, others: str, norm: Norm, bias: Array) -> str:
        """Take mean and spread out of the sum of two rows and a constant one."""
        scale = self.tensor(norm.scale)
        shift = self.tensor(norm.shift)
        constant = self.tensor(bias)
        inputs = [rows, others, scale, shift, constant]
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
        column_shifts = np.zeros(len(matrix.scales), dtype=np.int8)
        no_shifts = self.tensor(column_shifts)
        inputs = [rounded, values, self._one, scales, self._no_shift, no_shifts]
        product = self.own("MatMulIntegerToFloat", inputs)
        if twice:
            lost = self._lost(rows, rounded, step, shift_byte)
            inputs = [lost, values, self._fine, scales, self._middle, no_shifts]
            rest = self.own("MatMulIntegerToFloat", inputs)
            product = self.add("Add", [product, rest])
        return self._unrounded(product, matrix, step, shift)

    def _unrounded(self, product: str, matrix: Matrix, step: str, shift: str) -> str:
        """Return the product of rows from that of their rounded numbers."""
        step = self.add("Unsqueeze", [step, self._last_axis])
        shift = self.add("Unsqueeze", [shift, self._last_axis])
        # A row is step * (rounded - shift): the shift meets the sums of the columns.
        sums = self.tensor(matrix.column_sums())
        moved = self.add("Mul", [shift, sums])
        product = self.add("Sub", [product, moved])
        return self.add("Mul", [product, step])

    def _steps_of(self, rows: str) -> tuple[str, str]:
        """Return the step of each row, and how many of them lie below zero."""
        greatest = self.add("ReduceMax", [rows], axes=[0, 2], keepdims=0)
        least = self.add("ReduceMin", [rows], axes=[0, 2], keepdims=0)
        # Zero must be a whole number of steps from both ends.
        greatest = self.add("Max", [greatest, self._zero])
        least = self.add("Min", [least, self._zero])
        width = self.add("Sub", [greatest, least])
        step = self.add("Div", [width, self._steps])
        step = self.add("Max", [step, self._least_step])
        below = self.add("Neg", [least])
        steps_below = self.add("Div", [below, step])
        return step, self.add("Round", [steps_below])

    def _lost(self, rows: str, rounded: str, step: str, shift: str) -> str:
        """Return what rounding took from rows, in fine steps around a middle."""
        back = self.add("DequantizeLinear", [rounded, step, shift], axis=1)
        lost = self.add("Sub", [rows, back])
        fine = self.add("Mul", [step, self._fine])
        # One middle for each row.
        shape = self.add("Shape", [step])
        middle = self.add("Expand", [self._middle, shape])
        return self.add("QuantizeLinear", [lost, fine, middle], axis=1)

    def written(self) -> bytes:
        """Return the file."""
        name = field(_GRAPH_NAME, "all-MiniLM-L6-v2")
        embedded = _declared(EMBEDDED, (1, "words", WIDTH))
        mean = _declared(MEAN, (1, WIDTH))
        parts = [*self._nodes, name, *self._tensors]
        parts.append(field(_GRAPH_INPUT, embedded))
        parts.append(field(_GRAPH_OUTPUT, mean))
        written = [field(_MODEL_FORMAT, _FORMAT)]
        for domain, version in _OPERATORS.items():
            operators = field(1, domain) + field(2, version)
            written.append(field(_MODEL_OPERATORS, operators))
        graph = b"".join(parts)
        written.append(field(_MODEL_GRAPH, graph))
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
        message = b""
        for name in inputs:
            message += field(_NODE_INPUT, name)
        for name in outputs:
            message += field(_NODE_OUTPUT, name)
        message += field(_NODE_OPERATOR, operator)
        for name, value in attributes.items():
            attribute = _attribute(name, value)
            message += field(_NODE_ATTRIBUTE, attribute)
        message += field(_NODE_DOMAIN, domain)
        node = field(_GRAPH_NODE, message)
        self._nodes.append(node)


def _attribute(name: str, value: object) -> bytes:
    written = field(_ATTRIBUTE_NAME, name)
    if isinstance(value, float):
        written += field(_ATTRIBUTE_FLOAT, value)
        return written + field(_ATTRIBUTE_TYPE, _IS_FLOAT)
    if isinstance(value, int):
        written += field(_ATTRIBUTE_INT, value)
        return written + field(_ATTRIBUTE_TYPE, _IS_INT)
    assert isinstance(value, list)
    for item in value:
        written += field(_ATTRIBUTE_INTS, item)
    return written + field(_ATTRIBUTE_TYPE, _IS_INTS)


def _declared(name: str, size: Sequence[int | str]) -> bytes:
    """Return an input or output of floats: a size that is a name differs from run to run."""
    sizes = b""
    for length in size:
        field_number = 1
        if isinstance(length, str):
            field_number = 2
        dimension = field(field_number, length)
        sizes += field(1, dimension)
    rows = field(1, _FLOATS) + field(2, sizes)
    kind = field(1, rows)
    return field(1, name) + field(2, kind)
