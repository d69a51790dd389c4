"""Drafts of merges, and what happened to memories when."""

from __future__ import annotations

import pytest
from tests.conftest import Project

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.verbs.memories.draft import split_statements

TEXT = """
# Title
A paragraph
of two lines.

- one
- two
  goes on

```
code

with a blank line
```
"""


def test_a_text_is_cut_into_statements() -> None:
    assert split_statements(TEXT) == [
        "# Title",
        "A paragraph\nof two lines.",
        "- one",
        "- two\n  goes on",
        "```\ncode\n\nwith a blank line\n```",
    ]


def test_a_draft_has_each_statement_once_and_the_tags_of_all(project: Project) -> None:
    project.memory("a.md", "---\ntitle: A\ntags: [x]\n---\nKeys are hashed.\n\nOnly a.\n\nTwo.")
    project.memory("b.md", "---\ntags: [y]\n---\nKeys are hashed!\n\n## Notes\n\nOnly b.")
    drafts = project.open().drafts
    draft = drafts.draft(["a.md", "b.md"])
    said = [(statement.text, statement.sources) for statement in draft.statements]
    assert said == [
        ("Keys are hashed.", (1, 2)),
        ("Only a.", (1,)),
        ("Two.", (1,)),
        ("## Notes", (2,)),
        ("Only b.", (2,)),
    ]
    assert draft.target == "a.md"
    assert "title: A" in draft.content
    assert "tags: [x, y]" in draft.content
    with pytest.raises(NotFoundError):
        drafts.draft(["a.md", "missing.md"])
    with pytest.raises(ValidationError, match="2 to 10"):
        drafts.draft(["a.md"])


def test_the_timeline_tells_changes_and_memories_written_otherwise(project: Project) -> None:
    project.memory("hand.md", "---\ncreated_at: 2026-11-01\n---\nBy hand.")
    workspace = project.open()
    memories = workspace.memories
    memories.create("new.md", "See [[other]].", [], "fact")
    memories.create("other.md", "Text.", [], "fact")
    workspace.edits.rename("other.md", "renamed.md")
    memories.delete("renamed.md")
    events = workspace.timeline.events().events
    told = [(event.verb, event.path, tuple(event.others)) for event in events]
    assert told == [
        ("delete", "renamed.md", ()),
        ("rename", "renamed.md", ("other.md",)),
        ("create", "other.md", ()),
        ("create", "new.md", ()),
        ("written", "hand.md", ()),
    ]
    assert not events[0].exists
    assert events[0].document is not None
    page = workspace.timeline.events(limit=2, offset=1)
    assert [event.verb for event in page.events] == ["rename", "create"]
    assert page.omitted == 2
    assert len(workspace.timeline.events(until="2026-11-01").events) == 1
    assert not workspace.timeline.events(until="2026-10-31").events
