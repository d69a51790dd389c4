"""Another model: every language has a vote, and vectors of two models are never mixed."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragdocs.engines.local.index import LocalIndex
from ragdocs.lanes import DOCS
from ragdocs.protocols import Encoder
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.sentence_transformers import (
    OTHER_SCRIPTS,
    SentenceTransformerEncoder,
)
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Findings, Probe, Query

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
PAGES = {
    "german.md": "# Sitzungen\n\nDie Tokens einer Sitzung werden im Speicher gehalten.\n",
    "english.md": "# Lamps\n\nThe lamps in the shop are green and they are sold at nine.\n",
    "chinese.md": "# 会话\n\n会话的令牌保存在内存中，重启后就没有了。\n",
}
LETTERS = "abcdefghijklmnopqrstuvwxyz" + "".join(PAGES.values()) + OTHER_SCRIPTS
# The tokenizer takes syllables of Korean and voiced ones of Japanese apart.
LETTERS += unicodedata.normalize("NFD", LETTERS)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformerEncoder:
    """A model of random weights whose vocabulary has the characters of several scripts."""
    pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("model")
    base = folder / "base"
    base.mkdir()
    characters = sorted({letter.lower() for letter in LETTERS if not letter.isspace()})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    pieces += [f"##{character}" for character in characters]
    (base / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    torch.manual_seed(7)
    shape = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    BertModel(shape).save_pretrained(base)
    AutoTokenizer.from_pretrained(base).save_pretrained(base)
    words = Transformer(str(base), max_seq_length=64)
    pooling = Pooling(words.get_embedding_dimension())
    SentenceTransformer(modules=[words, pooling]).save(str(folder / "tiny"))
    return SentenceTransformerEncoder(str(folder / "tiny"))


def corpus(root: Path, encoder: Encoder, state: Path | None = None) -> Corpus:
    for name, text in PAGES.items():
        (root / name).write_text(text, encoding="utf-8")
    lane = replace(DOCS, include=("*.md",), gitignore=False)
    index = LocalIndex(state, recipe="1", encoder=encoder.identity, dim=encoder.dim, key=b"k" * 32)
    index.open()
    opened = Corpus(lane, FileStore(root, lane), index, encoder)
    opened.sync()
    return opened


def search(corpus: Corpus, text: str) -> Findings:
    return corpus.search(Query(probes=(Probe(text),), limit=3), NOW)


def sources(findings: Findings, path: str) -> set[str]:
    """Return what has a share in the score of a document."""
    for hit in findings.hits:
        if hit.document.path == path:
            return {signal.source for signal in hit.signals}
    return set()


def test_a_model_of_all_languages_votes_on_all(
    multilingual: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    assert not multilingual.latin_only
    opened = corpus(tmp_path, multilingual)
    opened.embed()
    for path, query in (
        ("chinese.md", "会话的令牌"),
        ("german.md", "wo sind die Tokens der Sitzung"),
        ("english.md", "green lamps"),
    ):
        assert {"keyword", "vector"} <= sources(search(opened, query), path)


def test_words_answer_while_another_model_encodes(
    multilingual: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    before = corpus(root, HashEncoder(), tmp_path / "state")
    before.embed()
    before.index.save()
    after = corpus(root, multilingual, tmp_path / "state")
    assert after.counts()["vectors"] == 0
    findings = search(after, "green lamps")
    assert findings.hits[0].document.path == "english.md"
    assert "vector" not in sources(findings, "english.md")
    assert "0 of 3 passages can be found by meaning" in " ".join(findings.notes)
    done: list[int] = []
    after.embed(lambda _, count, __: done.append(count), lambda: bool(done), at_once=1)
    assert done == [1]
    assert "1 of 3 passages" in " ".join(search(after, "green lamps").notes)
    after.embed()
    expected = {tuple(vector) for vector in multilingual.encode(["green lamps"]).astype("f2")}
    assert {tuple(after.encoded("green lamps").astype("f2"))} == expected  # type: ignore[union-attr]
    assert "vector" in sources(search(after, "green lamps"), "english.md")
    assert not search(after, "green lamps").notes


class EnglishEncoder(HashEncoder):
    """Stands for a model that was trained on English."""

    latin_only = True


@pytest.mark.parametrize(
    ("query", "path", "is_less"),
    [
        ("wo sind die Tokens der Sitzung", "german.md", True),
        ("the green lamps", "english.md", False),
    ],
)
def test_an_english_model_counts_less_for_a_query_in_another_language(
    tmp_path: Path, query: str, path: str, is_less: bool
) -> None:
    shares = []
    for encoder in (HashEncoder(), EnglishEncoder()):
        opened = corpus(tmp_path, encoder)
        opened.embed()
        findings = search(opened, query)
        assert findings.hits[0].document.path == path
        signals = {signal.source: signal.share for signal in findings.hits[0].signals}
        shares.append(signals["vector"] / (signals["vector"] + signals["keyword"]))
    every_language, english = shares
    assert (english < 0.6 * every_language) is is_less
