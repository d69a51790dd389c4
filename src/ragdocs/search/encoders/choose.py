"""Which encoder a model name stands for."""

from __future__ import annotations

from pathlib import Path

from ragdocs.config import Config
from ragdocs.errors import UnavailableError
from ragdocs.project.folders import cache_dir
from ragdocs.protocols import Encoder
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.minilm import MINILM, OnnxEncoder
from ragdocs.search.encoders.sentence_transformers import SentenceTransformerEncoder


def open_encoder(model: str, cache: Path | None) -> Encoder:
    """Return the encoder for a model name; nothing is loaded yet."""
    if model == "hash":
        return HashEncoder()
    short = model.removeprefix("sentence-transformers/")
    encoder: Encoder = OnnxEncoder() if short == MINILM else SentenceTransformerEncoder(model)
    return CachedEncoder(encoder, cache) if cache else encoder


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
