import logging
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ragdocs.protocols import Vectors
from ragdocs.search.encoders import cache as vector_cache
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.hashing import HashEncoder


class Counting:
    """An encoder that remembers what it was asked for."""

    latin_only = False

    def __init__(self, identity: str = "counting") -> None:
        self.identity = identity
        self.dim = 64
        self.seen: list[str] = []

    def rest(self, _: float, /) -> bool:
        return False

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.seen.extend(texts)
        return HashEncoder().encode(texts)


class TestCache:
    def test_a_text_is_encoded_once(self, tmp_path: Path) -> None:
        inner = Counting()
        cached = CachedEncoder(inner, tmp_path / "deep" / "vectors.sqlite")
        first = cached.encode(["a", "b", "a"])
        second = cached.encode(["b", "c", "a"])
        assert inner.seen == ["a", "b", "c"]
        assert cached.encoded == 3
        assert np.array_equal(first, HashEncoder().encode(["a", "b", "a"]))
        assert np.array_equal(second, HashEncoder().encode(["b", "c", "a"]))

    def test_a_second_process_encodes_nothing(self, tmp_path: Path) -> None:
        program = f"""
            from pathlib import Path
            from ragdocs.search.encoders.hashing import HashEncoder
            from ragdocs.search.encoders.cache import CachedEncoder
            cached = CachedEncoder(HashEncoder(), Path({str(tmp_path / "vectors.sqlite")!r}))
            cached.encode(["one", "two", "\\ud800"])
            print(cached.encoded)
        """
        assert [run_python(program).strip() for _ in range(2)] == ["3", "0"]

    def test_processes_that_write_at_once_all_get_their_vectors(self, tmp_path: Path) -> None:
        program = f"""
            from pathlib import Path
            from ragdocs.search.encoders.hashing import HashEncoder
            from ragdocs.search.encoders.cache import CachedEncoder
            cached = CachedEncoder(HashEncoder(), Path({str(tmp_path / "vectors.sqlite")!r}))
            texts = [f"text {{number}}" for number in range(600)]
            print((cached.encode(texts) == HashEncoder().encode(texts)).all())
        """
        command = [sys.executable, "-c", textwrap.dedent(program)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        assert [process.communicate()[0].strip() for process in started] == ["True"] * 3

    def test_models_do_not_share_vectors(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.sqlite"
        CachedEncoder(Counting("one"), path).encode(["text"])
        other = CachedEncoder(Counting("two"), path)
        other.encode(["text"])
        assert other.encoded == 1

    def test_threads_get_the_right_vectors(self, tmp_path: Path) -> None:
        cached = CachedEncoder(HashEncoder(), tmp_path / "vectors.sqlite")
        texts = [f"text {number}" for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            results = list(
                pool.map(lambda start: cached.encode(texts[start:] + texts[:start]), range(40))
            )
        expected = HashEncoder().encode(texts)
        assert all(
            np.array_equal(np.roll(result, start, axis=0), expected)
            for start, result in enumerate(results)
        )

    def test_a_damaged_file_costs_one_warning_and_no_vector(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "vectors.sqlite"
        path.write_bytes(b"this is not a database, and long enough to be looked at " * 100)
        cached = CachedEncoder(HashEncoder(), path)
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert np.array_equal(cached.encode(["a", "a"]), HashEncoder().encode(["a", "a"]))
        assert len(caplog.records) == 1

    def test_a_place_that_cannot_be_written_costs_no_vector(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").write_text("not a directory")
        cached = CachedEncoder(HashEncoder(), tmp_path / "file" / "vectors.sqlite")
        with caplog.at_level(logging.WARNING):
            assert cached.encode(["a"]).shape == (1, 64)
        assert len(caplog.records) == 1

    def test_a_file_damaged_in_its_middle_gives_no_wrong_vector(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.sqlite"
        texts = [f"text {number}" for number in range(300)]
        CachedEncoder(HashEncoder(), path).encode(texts)
        sqlite3.connect(path).close()
        content = bytearray(path.read_bytes())
        content[8192 : len(content) - 4096] = b"\xa5" * (len(content) - 12288)
        path.write_bytes(content)
        assert np.array_equal(
            CachedEncoder(HashEncoder(), path).encode(texts), HashEncoder().encode(texts)
        )

    @pytest.mark.parametrize("damage", [b"short", bytes(256), b"\xff" * 256, "text"])
    def test_a_damaged_vector_is_encoded_again_and_mended(
        self, tmp_path: Path, damage: bytes | str
    ) -> None:
        path = tmp_path / "vectors.sqlite"
        CachedEncoder(HashEncoder(), path).encode(["a"])
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE vectors SET vector = ?", (damage,))
        connection.close()
        again = CachedEncoder(HashEncoder(), path)
        assert np.array_equal(again.encode(["a"]), HashEncoder().encode(["a"]))
        again.encode(["a"])
        assert again.encoded == 1

    def test_a_writer_that_holds_the_file_delays_but_never_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_cache, "WAIT_SECONDS", 0.01)
        path = tmp_path / "vectors.sqlite"
        cached = CachedEncoder(HashEncoder(), path)
        cached.encode(["a"])
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        cached.encode(["b"])
        holder.rollback()
        holder.close()
        cached.encode(["b"])
        cached.encode(["a", "b"])
        assert cached.encoded == 3

    def test_the_oldest_vectors_leave_a_full_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_cache, "CACHE_LIMIT", 3)
        cached = CachedEncoder(HashEncoder(), tmp_path / "vectors.sqlite")
        for text in "abcde":
            cached.encode([text])
        cached.encode(["c", "d", "e"])
        assert cached.encoded == 5
        cached.encode(["a"])
        assert cached.encoded == 6


def run_python(program: str, stdin: str = "") -> str:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout
