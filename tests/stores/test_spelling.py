"""Names are found as they are spelled, and a large folder is listed once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragdocs.errors import AlreadyExistsError
from ragdocs.lanes import MEMORY
from ragdocs.stores.files.spelling import Spelling
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Discard, Expect, Put

_listed: list[str] = []
_hooked: list[bool] = []


@pytest.fixture
def listings() -> Iterator[list[str]]:
    """The folders of this test that were listed."""
    if not _hooked:
        sys.addaudithook(
            lambda event, details: (
                _listed.append(str(details[0])) if event == "os.listdir" else None
            )
        )
        _hooked.append(True)
    _listed.clear()
    yield _listed
    _listed.clear()


def test_changes_one_after_the_other_list_their_folder_once(
    tmp_path: Path, listings: list[str], own_system: None
) -> None:
    root = tmp_path / "memories"
    store = FileStore(root, MEMORY)
    for number in range(5):
        store.commit([Put(f"note-{number}.md", "x", Expect.ABSENT)])
        store.commit([Put(f"note-{number}.md", "y", Expect.PRESENT)])
    assert listings.count(str(root)) == 1


def test_what_somebody_else_wrote_since_is_seen(tmp_path: Path) -> None:
    store = FileStore(tmp_path, MEMORY)
    store.commit([Put("a.md", "x", Expect.ABSENT)])
    (tmp_path / "B.md").write_text("by hand")
    store.commit([Put("a.md", "y", Expect.PRESENT)])
    with pytest.raises(AlreadyExistsError, match=r"B\.md"):
        store.commit([Put("b.md", "z", Expect.ABSENT)])
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["B.md", "a.md"]


def test_the_name_of_a_discarded_file_may_be_spelled_anew(tmp_path: Path) -> None:
    store = FileStore(tmp_path, MEMORY)
    store.commit([Put("Plan.md", "x", Expect.ABSENT)])
    store.commit([Discard("Plan.md"), Put("other.md", "y", Expect.ABSENT)])
    store.commit([Put("plan.md", "z", Expect.ABSENT)])
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["other.md", "plan.md"]


def test_of_two_names_that_differ_in_case_each_is_found_as_it_is(tmp_path: Path) -> None:
    for name in ("Note.md", "note.md", "2026"):
        (tmp_path / name).write_text("x")
    if len(list(tmp_path.iterdir())) < 3:
        pytest.skip("this file system ignores case")
    spelling = Spelling(str(tmp_path))
    assert [
        spelling.find(name) for name in ("Note.md", "note.md", "NOTE.md", "2026", "new.md")
    ] == [*("Note.md", "note.md", "Note.md", "2026", "new.md")]
