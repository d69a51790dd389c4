"""Any model of sentence-transformers, by name or folder."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragdocs.errors import UnavailableError
from ragdocs.protocols import Vectors
from ragdocs.search.encoders.vectors import clean, unit

# Words of everyday Chinese, Japanese and Korean, that a vocabulary for these languages has.
OTHER_SCRIPTS = "这个吗谢谢 ありがとう 감사합니다"


# The endings of files that hold what a model has learnt.
WEIGHTS = (".safetensors", ".bin")


class _Reference(NamedTuple):
    model: Any
    dim: int
    identity: str
    latin_only: bool


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

    @property
    def latin_only(self) -> bool:
        """Whether the model knows no other script; loads the model."""
        return self._load().latin_only

    def prepare(self) -> None:
        """Load the model."""
        self._load()

    def rest(self, _: float, /) -> bool:
        """Keep the model: other people's models take seconds to load."""
        return False

    def close(self) -> None:
        """Let go of the model."""
        self._loaded = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        import numpy as np

        loaded = self._load()
        if not texts:
            return np.zeros((0, loaded.dim), dtype=np.float32)
        rows = loaded.model.encode(
            [clean(text) for text in texts], show_progress_bar=False, convert_to_numpy=True
        )
        return unit(np.asarray(rows, dtype=np.float32))

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
    local = Path(name).expanduser()
    if not local.is_absolute() and local.exists():
        # sentence-transformers would take the folder: whoever wrote the project would choose the
        # model.
        raise UnavailableError(
            f"The model {name!r} has the name of something in the working directory",
            "Give the absolute path in [embedding] model, or start the server in another directory",
        )
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UnavailableError(
            f"The model {name!r} needs the package sentence-transformers",
            'Install it: pip install "ragdocs[sentence-transformers]"',
        ) from error
    path = label = name
    weights_folder = None
    if local.is_dir():
        path = str(local)
        label = local.resolve().name
        weights_folder = local

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
    weights = _digest_weights(weights_folder or _hub_directory(name))
    pooling = _pooling(model)
    dim = int(model.encode([""], show_progress_bar=False, convert_to_numpy=True).shape[1])
    identity = f"{label}/torch:{weights}/{pooling}/{model.max_seq_length}"
    return _Reference(model, dim, identity, _is_latin_only(model))


def _pooling(model: Any) -> str:
    """Return how a model makes one vector of many."""
    for module in model:
        if hasattr(module, "pooling_mode"):
            return str(module.pooling_mode)
    return "own"


def _is_latin_only(model: Any) -> bool:
    """Tell whether words of other scripts are unknown to the vocabulary of a model."""
    tokenizer = getattr(model, "tokenizer", None)
    unknown = getattr(tokenizer, "unk_token_id", None)
    if tokenizer is None or unknown is None:
        return False
    return unknown in tokenizer(OTHER_SCRIPTS)["input_ids"]


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
    if directory is None:
        return "unknown"
    files = sorted(path for path in directory.rglob("*") if path.suffix in WEIGHTS)
    if not files:
        return "unknown"
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
