"""The pieces of a text are those that the package `tokenizers` makes of it."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragdocs.search.encoders.vectors import MAX_TOKENS
from ragdocs.search.encoders.wordpiece import WordPiece

VOCABULARY = files("ragdocs") / "data" / "vocab.txt"
ROOT = Path(__file__).parents[2]
OLD = unicodedata.ucd_3_2_0


@cache
def own() -> WordPiece:
    return WordPiece(VOCABULARY.read_text(encoding="utf-8").split("\n")[:-1], MAX_TOKENS)


@cache
def reference() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece.from_file(str(VOCABULARY), unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def is_old(character: str) -> bool:
    """Tell whether a character has been the same since long ago: both sides know it."""
    category = OLD.category(character)
    return category not in ("Cn", "Cs") and category == unicodedata.category(character)


# Of the thousands of ideographs and syllables, some stand for all.
CODES = [*range(0x3400), *range(0x3400, 0x30000, 61), *range(0xF900, 0x10000)]
CHARACTERS = [chr(code) for code in CODES if is_old(chr(code))]
OFTEN = st.sampled_from(
    [*" \n\t.-_'\"[]()#aeinorstAEIÉßΣİſﬁé\u0301\u200d\u00ad漢字👍0123456789", "[SEP]"]
)
TEXTS = st.lists(st.one_of(OFTEN, st.sampled_from(CHARACTERS))).map("".join)


@given(TEXTS)
@example("[CLS] in [MASK]s, [sep] and [SEP][SEP]")
@example("ΟΔΥΣΣΕΥΣ straße ÅNGSTRÖM İstanbul")
@example("x" * 100 + " " + "y" * 101)
@example("word " * 400)
@example("\x00\x1c\x85\u2028\ufeff\ufffd")
def test_any_text_has_the_same_pieces(text: str) -> None:
    assert own().encode(text) == reference().encode(text).ids


def test_every_character_has_the_same_pieces() -> None:
    for start in range(0, len(CHARACTERS), 50):
        text = "a".join(CHARACTERS[start : start + 50])
        assert own().encode(text) == reference().encode(text).ids


@pytest.mark.parametrize("page", ["README.md", "docs/configuration.md", "src/ragdocs/config.py"])
def test_a_page_has_the_same_pieces(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for start in range(0, len(text), 700):
        part = text[start : start + 700]
        assert own().encode(part) == reference().encode(part).ids
