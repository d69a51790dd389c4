"""In and out of a team database: a round trip changes no byte, and nothing is overwritten."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres import Cluster, project_scope

from ragdocs.errors import DisconnectedError
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.postgres import exchange
from ragdocs.stores.postgres.exchange import DIFFERS, export_texts, import_texts
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system.postgres.database import Database
from ragdocs.types import Put

# Names that a folder can have and that no tool would give.
NAMES = [
    "plain.md", "with space.md", "a:b.md", "a*?.md", "-rf.md", "'quoted\".md", "semi;colon.md",
    "back\\slash.md", "new\nline.md", "tab\t.md", "CON.md", "trailing. .md", "%2e%2e.md",
    "cafe\u0301.md", "größe.md", "日本.md", "\U0001f600.md", "\u202egnp.md", "f/deep/er/x.md",
    "F2/UPPER.MD.md", "x" * 200 + ".md",
]  # fmt: skip
PIECES = [
    b"",
    b"text",
    b"\n",
    b"\r\n",
    b"\r",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\0",
    b"---\n",
    b"\xc3",
]


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> Iterator[Database]:
    database = Database(cluster.migrated())
    yield database
    database.close()
    cluster.drop(database.address)


def new_store(database: Database) -> RowStore:
    scope = project_scope(database, uuid.uuid4().hex)
    return RowStore(database, scope, MEMORY, writable=True)


@pytest.fixture
def store(database: Database) -> RowStore:
    return new_store(database)


def plant(root: Path, texts: dict[str, bytes]) -> Path:
    for name, data in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def contents(root: Path) -> dict[str, bytes]:
    found = {}
    for path in root.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join),
        max_size=len(NAMES),
    )
)
def test_a_round_trip_changes_no_byte(database: Database, texts: dict[str, bytes]) -> None:
    store = new_store(database)
    with tempfile.TemporaryDirectory() as place:
        first, second = plant(Path(place) / "first", texts), Path(place) / "second"
        first.mkdir(exist_ok=True)
        brought = import_texts(store, first, MEMORY)
        assert sorted(brought.copied) == sorted(texts)
        assert (brought.conflicts, brought.skipped) == ({}, {})
        taken = export_texts(store, second)
        assert sorted(taken.copied) == sorted(texts)
        assert contents(second) == texts
        # Both once more: there is nothing to do.
        for again in (import_texts(store, second, MEMORY), export_texts(store, first)):
            assert (again.copied, again.unchanged) == ([], len(texts))
            assert (again.conflicts, again.skipped) == ({}, {})
        if texts:
            assert len(store.commits()) == 1


def test_versions_and_times_are_those_of_the_files(store: RowStore, tmp_path: Path) -> None:
    plant(tmp_path / "in", {"a.md": b"x\r\n", "f/b.md": b"y"})
    os.utime(tmp_path / "in/a.md", (1_000_000_000.25, 1_000_000_000.25))
    import_texts(store, tmp_path / "in", MEMORY)
    local = FileStore(tmp_path / "in", MEMORY)
    for path in ("a.md", "f/b.md"):
        assert store.read(path).version == local.read(path).version
        assert store.read(path).text == local.read(path).text
    assert store.scan().modified["a.md"] == 1_000_000_000_250_000_000
    export_texts(store, tmp_path / "out")
    assert (tmp_path / "out/a.md").stat().st_mtime == 1_000_000_000.25


def test_texts_that_differ_are_reported_and_stay(store: RowStore, tmp_path: Path) -> None:
    store.commit([Put("a.md", "theirs"), Put("same.md", "same"), Put("Case.md", "x")])
    mine = {"a.md": b"mine", "same.md": b"same", "case.md": b"x", "new.md": b"new"}
    root = plant(tmp_path / "mine", mine)
    brought = import_texts(store, root, MEMORY)
    assert (brought.copied, brought.unchanged) == (["new.md"], 1)
    assert brought.conflicts["a.md"] == DIFFERS
    assert "Case.md" in brought.conflicts["case.md"]
    assert store.read("a.md").text == "theirs"
    taken = export_texts(store, root)
    assert (taken.copied, taken.unchanged) == ([], 2)
    assert set(taken.conflicts) == {"a.md", "Case.md"}
    assert contents(root) == mine


def test_hidden_files_the_trash_and_what_cannot_be_read_stay_out(
    store: RowStore, tmp_path: Path
) -> None:
    names = [".hidden.md", ".trash/old.md", ".history/log.jsonl", "indices/x.md", "image.png"]
    root = plant(tmp_path / "in", {**dict.fromkeys(names, b"x"), "a.md": b"x"})
    (root / "huge.md").write_bytes(b"x" * 10_000_001)
    (root / "out.md").symlink_to("/etc/hostname")
    (root / os.fsdecode(b"bad\xff.md")).write_bytes(b"x")
    # Twins of which a store has one.
    plant(root, {"twin.md": b"1", "TWIN.md": b"2", "d\u00e9.md": b"3", "de\u0301.md": b"4"})
    brought = import_texts(store, root, MEMORY)
    assert brought.copied[0] == "TWIN.md"
    assert set(brought.copied) == {"a.md", "TWIN.md", "de\u0301.md"}
    assert set(brought.conflicts) == {"twin.md", "d\u00e9.md"}
    assert len(brought.skipped) == 2
    assert "larger" in brought.skipped["huge.md"]


def test_what_stands_in_the_way_of_an_export_is_left_alone(store: RowStore, tmp_path: Path) -> None:
    store.commit([Put("a.md", "x"), Put("f/b.md", "x"), Put("link/c.md", "x"), Put("d.md", "x")])
    root = tmp_path / "out"
    (root / "a.md").mkdir(parents=True)
    (root / "f").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to("../elsewhere")
    taken = export_texts(store, root)
    assert taken.copied == ["d.md"]
    assert set(taken.skipped) == {"a.md", "f/b.md", "link/c.md"}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_interrupted_import_goes_on_where_it_ended(
    store: RowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BATCH", 3)
    root = plant(tmp_path / "in", {f"{number}.md": b"%d" % number for number in range(10)})
    seen = []

    def interrupt(looked_at: int, of: int) -> None:
        seen.append((looked_at, of))
        if looked_at == 8:
            raise DisconnectedError("gone")

    with pytest.raises(DisconnectedError):
        import_texts(store, root, MEMORY, interrupt)
    assert seen[-1] == (8, 10)
    assert len(store.versions()) == 6
    rest = import_texts(store, root, MEMORY)
    assert (rest.unchanged, len(rest.copied)) == (6, 4)


def test_pages_of_documentation_come_in_with_any_suffix(database: Database, tmp_path: Path) -> None:
    pages = {"docs/a.rst": b"x", "README.md": b"x", "docs/b/c.txt": b"x"}
    root = plant(tmp_path, {**pages, "src/d.md": b"x"})
    scope = project_scope(database, uuid.uuid4().hex, "docs")
    store = RowStore(database, scope, DOCS, writable=True)
    assert set(import_texts(store, root, DOCS).copied) == set(pages)
    assert set(store.scan(["docs"]).stamps) == {"docs/a.rst", "docs/b/c.txt"}
