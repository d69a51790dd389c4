"""What every new memory is written with, whichever verb writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import NOW

from ragdocs.system.names import OWN_ID
from ragdocs.verbs.memories import record
from ragdocs.verbs.memories.entry_rules import NewEntry

if TYPE_CHECKING:
    from tests.conftest import Project


def test_every_writer_begins_with_the_same_fields(project: Project) -> None:
    workspace = project.open()
    for name in ("a.md", "b.md", "created.md"):
        workspace.memories.create(name, "A text.", ["x"])
    workspace.merges.merge(["a.md", "b.md"], "merged.md", "Both.")
    added = workspace.entries.add(NewEntry(content="An entry.", tags=["z"]))
    noted = workspace.repository.upsert_note("A note.")
    memories = project.root / ".memories"
    paths = [memories / "created.md", memories / "merged.md"]
    paths += [Path(added.location), Path(noted.location)]
    for path in paths:
        fields = record.own_fields(path.read_text(encoding="utf-8"))
        assert fields["status"] == record.ACTIVE
        assert set(record.fields("fact", [], NOW)) <= set(fields), path


def test_the_ids_of_a_content_are_its_own_and_white_space_makes_no_others() -> None:
    ids = record.content_ids("  A text.\n")
    assert ids == record.content_ids("A text.")
    assert ids != record.content_ids("Another text.")
    assert len(set(ids)) == len(ids) == 5
    assert all(OWN_ID.fullmatch(entry_id) for entry_id in (*ids, record.random_id()))


def test_tags_are_added_to_a_list_and_to_words_with_commas() -> None:
    for tags in ("[a, b]", "a, b"):
        text = record.add_tags(f"---\ntags: {tags}\nmood: calm\n---\n\nText.\n", ["c"])
        assert record.own_fields(text) == {"tags": ["a", "b", "c"], "mood": "calm"}
        assert text.endswith("\nText.\n")


def test_tags_that_are_there_leave_every_byte_alone() -> None:
    text = "---\ntags:   [a,b] # mine\n---\n\nText.\n"
    assert record.add_tags(text, []) == text
