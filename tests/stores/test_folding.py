"""Memories on a file system that ignores case and Unicode form, as on macOS and Windows."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from tests import folding

from ragdocs.errors import AlreadyExistsError, NotFoundError
from ragdocs.lanes import MEMORY
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Discard, Expect, Put


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portable: None) -> Path:
    root = tmp_path / "memories"
    root.mkdir()
    folding.install(monkeypatch, root)
    (root / "Probe").touch()
    assert (root / "pROBE").exists()
    (root / "probe").unlink()
    return root


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.suffix == ".md")


def test_a_second_name_that_is_the_same_file_is_refused(root: Path) -> None:
    store = FileStore(root, MEMORY)
    store.commit([Put("Größe.md", "one", Expect.ABSENT)])
    for name in ("größe.md", "GRÖSSE.md", unicodedata.normalize("NFD", "Größe.md")):
        with pytest.raises(AlreadyExistsError):
            store.commit([Put(name, "two", Expect.ABSENT)])
    assert names(root) == ["Größe.md"]
    assert store.read("Größe.md").text == "one"


def test_a_name_in_another_case_is_not_found_as_on_any_system(root: Path) -> None:
    store = FileStore(root, MEMORY)
    store.commit([Put("Plan.md", "one", Expect.ABSENT)])
    for change in (Put("plan.md", "two", Expect.PRESENT), Discard("PLAN.md", Expect.PRESENT)):
        with pytest.raises(NotFoundError):
            store.commit([change])
    with pytest.raises(NotFoundError):
        store.read("plan.md")
    store.commit([Put("Plan.md", "three", Expect.PRESENT)])
    assert names(root) == ["Plan.md"]
    assert len(store.history("Plan.md")) == len(store.history()) == 1


def test_a_name_that_macos_decomposed_is_one_memory(root: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "größe.md")
    (root / decomposed).write_text("by hand", encoding="utf-8")
    store = FileStore(root, MEMORY)
    assert store.read("größe.md").text == "by hand"
    store.commit([Put("größe.md", "by a tool", Expect.PRESENT)])
    assert names(root) == [decomposed]


def test_text_with_line_ends_of_windows_is_kept_and_read(root: Path) -> None:
    (root / "crlf.md").write_bytes(b"---\r\ntags: [a]\r\n---\r\n# Title\r\n\r\nText.\r\n")
    store = FileStore(root, MEMORY)
    assert "Text." in store.read("crlf.md").text
