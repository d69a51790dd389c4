from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networkx import node_link_data

from ragdocs.engines.local import index as local
from ragdocs.engines.local import snapshot
from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import LockAcquisitionError, StorageError
from ragdocs.system.locks import lock
from ragdocs.types import Link

from .contract import DIM, axis, entry
from .reads import ANYTHING, counts, matching, near
from .test_local import KEY, fill, make


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with two generations of a small index."""
    index = make(tmp_path / "indices")
    link = Link("src/auth.py", "mentions", "see src/auth.py")
    index.apply([entry(f"{n}.md", f"apple word{n}", f"pear {n}", links=(link,)) for n in range(5)])
    index.save()
    fill(index, 100)
    index.save()
    return tmp_path / "indices"


def live(place: Path) -> Path:
    return place / (place / "current").read_text()


def parts(place: Path) -> list[Path]:
    return sorted(path for path in live(place).rglob("*") if path.is_file())


def sign(generation: Path, key: bytes = KEY, **changed: object) -> None:
    """Write a manifest that fits the files as they are now."""
    manifest = json.loads((generation / "manifest.json").read_text())
    manifest["files"] = {
        name: snapshot._digest([(generation / name).read_bytes()])
        for name in (
            path.relative_to(generation).as_posix()
            for path in sorted(generation.rglob("*"))
            if path.is_file()
        )
        if name != "manifest.json"
    }
    manifest |= changed
    manifest.pop("signature", None)
    manifest["signature"] = snapshot._sign(manifest, key)
    (generation / "manifest.json").write_text(json.dumps(manifest))


def is_empty(index: LocalIndex) -> bool:
    return not index.stamps() and not any(counts(index)) and not matching(index, "apple")


# --- on disk ---


def test_texts_that_are_gone_are_not_in_the_next_snapshot(place: Path) -> None:
    index = make(place)
    assert index.open()
    index.apply([entry("1.md", "banana word1", "a plum")], removed=["3.md"])
    index.save()
    texts = (live(place) / local.PASSAGES).read_bytes()
    assert b"word3" not in texts
    assert b"apple word1" not in texts
    again = make(place)
    assert again.open()
    assert again.contents()["chunks"] == index.contents()["chunks"]


def test_the_graph_is_written_as_networkx_writes_it(place: Path) -> None:
    index = make(place)
    twice = Link("src/auth.py", "cites", "again", "A heading")
    index.apply([entry("6.md", "links", links=(twice, Link("0", "mentions", "0"), twice))])
    index.save()
    written = json.loads((live(place) / local.GRAPH).read_text())
    expected = node_link_data(index._graph.open(), edges="edges")
    # Networkx lists links by where they end.
    for graph in (written, expected):
        graph["edges"].sort(key=lambda edge: (edge["source"], edge["order"]))
    assert written == expected


def test_a_generation_has_the_documented_layout(place: Path) -> None:
    names = {path.relative_to(live(place)).as_posix() for path in parts(place)}
    rest = {name for name in names if not name.startswith("keyword/")}
    assert rest >= {
        "vector/docstore.json",
        "vector/faiss_index.bin",
        "graph/graph.json",
        "manifest.json",
    }
    assert len(names - rest) >= 2
    assert (place / ".gitignore").read_text() == "*\n"
    assert place.stat().st_mode & 0o077 == 0, "it is for its owner only"
    assert list(place.glob("**/*.ragdocs-tmp")) == []


def test_a_gitignore_that_somebody_wrote_stays(place: Path) -> None:
    (place / ".gitignore").write_text("# mine\n")
    index = make(place)
    index.apply([entry("a.md", "x")])
    index.save()
    assert (place / ".gitignore").read_text() == "# mine\n"


def test_two_generations_are_kept(place: Path) -> None:
    index = make(place)
    for n in range(5):
        index.apply([entry("a.md", str(n))])
        index.save()
    generations = [path for path in place.iterdir() if path.is_dir()]
    assert len(generations) == 2
    assert live(place) in generations


def test_a_generation_that_is_being_read_stays_until_it_is_free(place: Path) -> None:
    read = live(place)
    index = make(place)
    with lock(read, shared=True):
        for n in range(3):
            index.apply([entry("a.md", str(n))])
            index.save()
        assert read.is_dir()
    index.apply([entry("a.md", "last")])
    index.save()
    assert not read.exists()


def test_an_index_behind_a_linked_folder_is_opened(place: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path, target_is_directory=True)
    assert make(tmp_path / "linked" / "indices").open()


def test_who_finds_the_folder_locked_keeps_its_changes_for_later(place: Path) -> None:
    index = make(place)
    index.apply([entry("a.md", "x")])
    before = live(place)
    with lock(place), pytest.raises(LockAcquisitionError):
        index.save()
    assert index.dirty
    assert live(place) == before
    assert index.save() == live(place).name


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one_and_no_rubbish(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, there = live(place), set(place.iterdir())
    index = make(place)
    index.apply([entry("a.md", "x")])
    monkeypatch.setattr(local, "GRAPH", f"{'n' * 300}/graph.json")
    with pytest.raises(StorageError, match="name too long"):
        index.save()
    assert index.dirty
    assert live(place) == before
    assert set(place.iterdir()) == there


# --- damage ---


def assert_not_believed(place: Path) -> None:
    index = make(place)
    assert not index.open()
    assert is_empty(index)


ELSEWHERE = [
    "../../elsewhere",
    "..",
    ".",
    "/etc",
    "nothing",
    "a/b",
    "current",
    ".hidden",
    "\x00",
    "ä�",
]


@pytest.mark.parametrize("pointer", [*ELSEWHERE, "", "x" * 500])
def test_a_pointer_to_elsewhere_or_nowhere_is_not_followed(
    place: Path, tmp_path: Path, pointer: str
) -> None:
    shutil.copytree(live(place), tmp_path.parent / "elsewhere", dirs_exist_ok=True)
    (place / "current").write_bytes(pointer.encode("utf-8", "surrogateescape"))
    assert_not_believed(place)


def test_a_file_that_the_manifest_names_outside_is_not_read(place: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    name = "../../secret"
    files = {name: snapshot._digest([b"x"])}
    sign(live(place), files=files)
    assert snapshot.load(place, KEY) is None


SIGNATURES = ('{"signature": 1}', '{"signature": "é"}', '{"signature": null, "files": []}')


@pytest.mark.parametrize("manifest", ["", "[]", "null", '"x"', "{}", *SIGNATURES, "[" * 10_000])
def test_an_unsigned_or_senseless_manifest_is_not_believed(place: Path, manifest: str) -> None:
    (live(place) / "manifest.json").write_text(manifest)
    assert_not_believed(place)


def test_an_index_signed_with_another_key_is_foreign(place: Path) -> None:
    sign(live(place), key=b"other" * 8)
    assert not make(place).open()
    sign(live(place))
    assert make(place).open()


def test_what_is_signed_but_cannot_be_read_is_not_loaded_half(place: Path) -> None:
    whole = make(place)
    assert whole.open()
    expected = whole.contents()["postings"]
    for file in [path for path in parts(place) if path.name != "manifest.json"]:
        data = file.read_bytes()
        file.write_bytes(b"\x80not what it was\n")
        sign(live(place))
        index = make(place)
        if f"{file.parent.name}/{file.name}" in (local.FAISS, local.VECTOR_ROWS):
            # Vectors are opened when they are needed, and those that cannot be are computed anew.
            assert index.open()
            assert near(index, axis(1)) == []
            assert len(index.claim_missing(100)) == index.info().passages == 10
            fill(index, 100)
            assert len(near(index, axis(1))) == 10
        elif file.parent.name == "keyword":
            # So are words.
            assert index.open()
            assert index.contents()["postings"] == expected
        else:
            assert not index.open(), file
            assert is_empty(index)
        file.write_bytes(data)
    sign(live(place))
    assert make(place).open()


# --- other recipes ---


def test_another_encoder_keeps_the_words_and_drops_the_vectors(place: Path) -> None:
    index = make(place, encoder="other/8")
    assert index.open()
    assert counts(index) == (5, 10, 0, 5)
    assert len(matching(index, "apple")) == 5
    assert len(index.claim_missing(100)) == 10
    assert index.dirty


def test_another_encoder_may_have_another_dimension(place: Path) -> None:
    index = LocalIndex(place, recipe="1/900/1400", encoder="other/16", dim=2 * DIM, key=KEY)
    assert index.open()
    index.fill(
        {chunk.digest: np.ones(2 * DIM, dtype=np.float32) for _, chunk in index.claim_missing(100)}
    )
    assert index.info().vectors == 10
    index.save()
    again = make(place)
    assert again.open()
    assert again.info().vectors == 0


@pytest.mark.parametrize("what", ["recipe", "format", "analyser"])
def test_another_chunker_format_or_analyser_begins_anew(
    place: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what != "recipe":
        monkeypatch.setattr(local, what.upper(), "999")
    recipe = "2/900/1400" if what == "recipe" else "1/900/1400"
    index = LocalIndex(place, recipe=recipe, encoder="test/8", dim=DIM, key=KEY)
    assert not index.open()
    assert is_empty(index)


# --- attacks ---


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("planted", ["*.toc", "*.seg", "*"])
@pytest.mark.parametrize(
    "how", ["as it is", "digests made to fit", "signed by another", "signature left out"]
)
def test_a_planted_pickle_never_runs(place: Path, tmp_path: Path, planted: str, how: str) -> None:
    marker = tmp_path / "marker"
    for file in (live(place) / "keyword").glob(planted):
        file.write_bytes(pickle.dumps(Payload(marker)))
    manifest = json.loads((live(place) / "manifest.json").read_text())
    if how == "digests made to fit":
        sign(live(place))
        made = json.loads((live(place) / "manifest.json").read_text())
        (live(place) / "manifest.json").write_text(
            json.dumps({**made, "signature": manifest["signature"]})
        )
    elif how == "signed by another":
        sign(live(place), key=b"attacker")
    elif how == "signature left out":
        sign(live(place), key=b"")
    index = make(place)
    assert not index.open()
    assert not marker.exists()


def test_the_planted_pickle_would_run_if_the_signature_were_right(
    place: Path, tmp_path: Path
) -> None:
    """Shows that the test above plants its pickle where it would be unpickled."""
    for file in (live(place) / "keyword").glob("*.toc"):
        head = file.read_bytes()
        file.write_bytes(head[: head.index(b"\x80")] + pickle.dumps(Payload(tmp_path / "marker")))
    sign(live(place))
    index = make(place)
    index.open()
    index.prepare()
    assert (tmp_path / "marker").exists()


def test_words_that_cannot_be_read_are_made_anew_from_the_passages(place: Path) -> None:
    whole = make(place)
    assert whole.open()
    expected = whole.contents()["postings"]
    for file in (live(place) / "keyword").glob("*.toc"):
        file.write_bytes(b"of another version")
    sign(live(place))
    index = make(place)
    assert index.open()
    assert not index.dirty
    assert sorted(matching(index, "apple")) == sorted(matching(whole, "apple"))
    assert index.dirty
    assert index.contents()["postings"] == expected
    index.save()
    again = make(place)
    assert again.open()
    assert again.contents()["postings"] == expected


def test_documents_are_listed_and_counted_before_the_words_are_opened(place: Path) -> None:
    index = make(place)
    assert index.open()
    assert len(index.stamps()) == index.info().documents == 5
    assert index._words is None
    assert matching(index, "apple")
    assert index._words is not None


# --- several processes ---

WRITER = """
import sys
import time
from pathlib import Path
from ragdocs.errors import LockAcquisitionError, StorageError
from ragdocs.engines.local.index import LocalIndex
from ragdocs.types import Chunk, Document, IndexedDocument

index = LocalIndex(Path(sys.argv[1]), recipe="1/900/1400", encoder="test/8", dim=8, key=b"k" * 32)
saved = n = 0
while not Path(sys.argv[3]).exists():
    n += 1
    for i in range(4):
        document = Document(id=f"test:{i}", lane="test", path=f"{i}.md", title="t", version=f"{sys.argv[2]} {n}")
        chunk = Chunk(f"test:{i}#0", document.id, (), document.version, 1, 1, document.version)
        index.apply([IndexedDocument(document, (chunk,))])
    try:
        saved += bool(index.save())
    except LockAcquisitionError:
        pass
print(saved)
"""


def test_processes_that_save_at_once_publish_whole_generations_only(tmp_path: Path) -> None:
    folder, enough = tmp_path / "indices", tmp_path / "enough"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, name, enough], stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    seen: set[str] = set()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        len(seen) >= 20 and {"one", "two"} <= {name.split()[0] for name in seen}
    ):
        index = make(folder)
        if index.open():
            with index.snapshot() as opened:
                versions = {document.version for document in opened.list(ANYTHING)}
            assert len(versions) == 1
            assert len(matching(index, min(versions))) == 4
            seen |= versions
    enough.touch()
    saved = [int(writer.communicate()[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert all(saved), saved
    assert len(seen) >= 20
    assert make(folder).open()
    assert len([path for path in folder.iterdir() if path.is_dir()]) <= 3


def test_vectors_and_calibration_are_restored_bit_for_bit(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.apply([entry(f"{n}.md", f"word{n}") for n in range(20)])
    fill(index, 100)
    before = index.contents()["vectors"]
    index.save()
    assert not index.dirty
    index.calibrate({"middle": 0.2, "spread": 0.1, "chunks": 1, "vectors": 0})
    assert index.dirty, "a calibration is saved by itself"
    index.save()
    again = make(tmp_path)
    assert again.open()
    assert again.info().calibration == index.info().calibration
    for (passage, vector), (expected, stored) in zip(
        again.contents()["vectors"], before, strict=True
    ):
        assert passage == expected
        assert (vector == stored).all()
        assert vector.any()
