"""Which encoder a model name stands for."""

from __future__ import annotations

from pathlib import Path

from ragdocs.config import Config
from ragdocs.errors import UnavailableError
from ragdocs.project.folders import cache_dir
from ragdocs.protocols import Encoder

# Only the module of the configured model is imported.
BUILT_IN = "all-MiniLM-L6-v2"


def open_encoder(model: str, cache: Path | None) -> Encoder:
    """Return the encoder for a model name; nothing is loaded yet."""
    if model == "hash":
        from ragdocs.search.encoders.hashing import HashEncoder

        return HashEncoder()
    encoder = _model(model)
    if cache is None:
        return encoder
    from ragdocs.search.encoders.cache import CachedEncoder

    return CachedEncoder(encoder, cache)


def _model(name: str) -> Encoder:
    if name.removeprefix("sentence-transformers/") == BUILT_IN:
        from ragdocs.search.encoders.minilm import OnnxEncoder

        return OnnxEncoder()
    from ragdocs.search.encoders.sentence_transformers import SentenceTransformerEncoder

    return SentenceTransformerEncoder(name)


def configured_encoder(config: Config) -> tuple[Encoder | None, str, int, str]:
    """Return the encoder, its identity and dimension, and why there is none."""
    if config.embedding.model == "none":
        return None, "none", 1, ""
    try:
        encoder = open_encoder(config.embedding.model, cache_dir() / "vectors.sqlite")
        identity = encoder.identity
        dim = encoder.dim
    except UnavailableError as error:
        return None, "none", 1, str(error)
    return encoder, identity, dim, ""
