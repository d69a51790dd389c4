"""Texts in scripts that the built-in model cannot read are judged by their words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.search.other_scripts import PAGES, QUESTIONS, SOUNDS, UNRELATED

from ragdocs.engines.local.index import LocalIndex
from ragdocs.lanes import DOCS
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.search.encoders.vectors import mostly_latin
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Findings, Probe, Query

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
# English pages beside the others, so that there are enough passages to measure a floor.
ENGLISH_PAGES = 100


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A handbook in Chinese, Japanese, Lao, Khmer and English, indexed with the built-in model."""
    root = tmp_path_factory.mktemp("handbook")
    for name, text in PAGES.items():
        (root / name).write_text(text, encoding="utf-8")
    for number in range(ENGLISH_PAGES):
        text = f"# Branch {number}\n\nThe shop in street {number} opens at nine and sells lamps.\n"
        (root / f"branch-{number:03}.md").write_text(text, encoding="utf-8")
    return corpus_of(root)


def corpus_of(root: Path) -> Corpus:
    encoder = OnnxEncoder()
    lane = replace(DOCS, include=("**/*.md",), gitignore=False)
    index = LocalIndex(None, recipe="1", encoder=encoder.identity, dim=encoder.dim, key=b"k")
    corpus = Corpus(lane, FileStore(root, lane), index, encoder)
    corpus.sync()
    corpus.embed()
    assert corpus.gauge().measured
    return corpus


def search(corpus: Corpus, text: str) -> Findings:
    return corpus.search(Query(probes=(Probe(text),), limit=3, floored=True), NOW)


def test_questions_in_another_script_are_answered(handbook: Corpus) -> None:
    answered = []
    for question, page in QUESTIONS.items():
        if page in [hit.document.path for hit in search(handbook, question).hits]:
            answered.append(question)
    assert len(answered) >= 8, set(QUESTIONS) - set(answered)


@pytest.mark.parametrize("question", SOUNDS)
def test_questions_in_lao_and_khmer_find_their_page_first(handbook: Corpus, question: str) -> None:
    assert search(handbook, question).hits[0].document.path == SOUNDS[question]


@pytest.mark.parametrize("question", UNRELATED)
def test_unrelated_questions_in_another_script_find_nothing(
    handbook: Corpus, question: str
) -> None:
    assert search(handbook, question).hits == ()


def test_meaning_has_no_share_in_what_the_model_cannot_read(handbook: Corpus) -> None:
    for question in ("接口每分钟可以调用多少次", "error 429"):
        best = search(handbook, question).hits[0]
        assert best.document.path == "接口.md"
        assert "vector" not in {signal.source for signal in best.signals}
    assert not handbook.measure("limits", "docs:接口").meaning
    assert handbook.measure("branches", "docs:branch-007").meaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How are tokens refreshed?", True),
        ("Größe, Übermut, déjà vu, œuvre", True),
        ("Kubernetes 集群如何升级", False),
        ("run `kubectl get pods` to see 集群", True),
        ("Память проекта хранится в файлах", False),
        ("429", True),
        ("→ ✓", True),
        ("", True),
    ],
)
def test_a_text_is_latin_if_half_of_what_it_says_is(text: str, expected: bool) -> None:
    assert mostly_latin(text) is expected
