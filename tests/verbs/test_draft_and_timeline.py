"""Drafts of merges, and what happened to memories when."""

from __future__ import annotations

import pytest
from tests.asking import ask
from tests.conftest import Project

from ragdocs.errors import ConflictError, NotFoundError, ValidationError
from ragdocs.text.statements import split_statements

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
    drafts = project.open().tidying.drafts
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


def test_a_draft_unites_sections_and_puts_contradictions_side_by_side(project: Project) -> None:
    project.memory(
        "limits.md",
        """
        ---
        created_at: 2026-01-02
        ---
        # Limits

        The gateway allows 100 requests per minute. Bursts are refused.

        ## Exceptions

        - Health checks are not counted.

        ## History

        Raised once.
        """,
    )
    project.memory(
        "limits-2.md",
        """
        ---
        created_at: 2026-03-04
        ---
        # Limits of the gateway

        The gateway allows 200 requests per minute. Bursts are refused. Clients see a 429.

        ## Exceptions

        - Metrics are not counted either.
        """,
    )
    draft = project.open().tidying.drafts.draft(["limits.md", "limits-2.md"])
    assert draft.content == (
        "---\ncreated_at: 2026-01-02\n---\n\n# Limits\n\n"
        "The gateway allows 100 requests per minute. Bursts are refused.[^s1]\n\n"
        "The gateway allows 200 requests per minute. Clients see a 429.[^s2]\n\n"
        "## Exceptions\n\n"
        "- Health checks are not counted.[^s1]\n"
        "- Metrics are not counted either.[^s2]\n\n"
        "## History\n\n"
        "Raised once.[^s1]\n\n"
        "[^s1]: limits.md, 2026-01-02\n"
        "[^s2]: limits-2.md, 2026-03-04\n"
    )
    opposed = {item.text: item.contradicts for item in draft.statements if item.contradicts}
    text = "The gateway allows 200 requests per minute. Clients see a 429."
    assert opposed == {text: "100 and 200"}


TEMPLATE = (
    "# {0}\n\nThe call {0} is for the owner of the ledger. It writes a line to the log and returns "
    "nothing. Whoever calls {0} needs the role of a writer. It is available since the last release."
)


def test_pages_of_one_template_about_different_names_are_not_suggested(project: Project) -> None:
    project.memory("a.md", TEMPLATE.format("sweepLedger"))
    project.memory("b.md", TEMPLATE.format("splitLedger"))
    workspace = project.open()
    assert ask(workspace, "suggest_memory_merges", threshold=0.8)["result"] == []
    project.memory("c.md", TEMPLATE.format("splitLedger").replace("the last release", "EC2"))
    (group,) = ask(project.open(), "suggest_memory_merges", threshold=0.8)["result"]
    assert [memory["id"] for memory in group["memories"]] == ["memory:b", "memory:c"]


def test_texts_that_share_words_and_few_sentences_are_not_suggested(project: Project) -> None:
    words = (
        "The ledger is swept every night by the worker. The auditors read monthly reports of it."
    )
    other = (
        "The worker reads monthly reports every night. The ledger of the auditors is swept by it."
    )
    project.memory("a.md", words)
    project.memory("b.md", other)
    workspace = project.open()
    assert ask(workspace, "suggest_memory_merges", threshold=0.8)["result"] == []
    assert ask(workspace, "suggest_memory_merges", threshold=0.5)["result"] != []


def test_a_memory_that_another_supersedes_is_not_suggested(project: Project) -> None:
    text = "The ledger is swept every night and split by month for the auditors."
    project.memory("old.md", f"# Ledger\n\n{text}\n")
    project.memory("new.md", f"# Ledger\n\n{text} Reports follow.\n")
    (group,) = ask(project.open(), "suggest_memory_merges", threshold=0.8)["result"]
    assert group["memory_count"] == 2
    project.memory("new.md", f"# Ledger\n\n{text} Reports follow.\n\nsupersedes:: [[old]]\n")
    assert ask(project.open(), "suggest_memory_merges", threshold=0.8)["result"] == []


def test_a_draft_spells_a_tag_one_way(project: Project) -> None:
    project.memory("a.md", "---\ntags: [road-map]\n---\nKeys are hashed.")
    project.memory("b.md", "---\ntags: [Road_Map, keys]\n---\nKeys are hashed!")
    draft = project.open().tidying.drafts.draft(["a.md", "b.md"])
    assert "tags: [road-map, keys]" in draft.content


def test_suggestions_come_with_drafts_and_a_merge_is_tried_first(project: Project) -> None:
    text = "The ledger is swept every night and split by month for the auditors."
    project.memory("a.md", f"# Ledger\n\n{text}\n")
    project.memory("b.md", f"# Ledger\n\n{text} Reports follow.\n")
    workspace = project.open()
    assert "draft" not in ask(workspace, "suggest_memory_merges", threshold=0.8)["result"][0]
    (group,) = ask(workspace, "suggest_memory_merges", threshold=0.8, drafts=True)["result"]
    draft = group["draft"]
    assert "Reports follow." in draft["content"]
    arguments = {
        "source_files": ["a.md", "b.md"],
        "target_file": draft["target"],
        "summary_content": draft["content"],
    }
    before = {path.name: path.read_text() for path in project.root.glob(".memories/*.md")}
    trial = ask(workspace, "merge_memories", **arguments, dry_run=True)
    assert "-# Ledger" in trial["diff"]
    assert {path.name: path.read_text() for path in project.root.glob(".memories/*.md")} == before
    stale = {"source_versions": ["0" * 16, "1" * 16], "dry_run": True}
    with pytest.raises(ConflictError, match="changed"):
        ask(workspace, "merge_memories", **arguments, **stale)
    assert ask(workspace, "merge_memories", **arguments)["status"] == "merged"


def test_the_timeline_tells_changes_and_memories_written_otherwise(project: Project) -> None:
    project.memory("hand.md", "---\ncreated_at: 2026-11-01\n---\nBy hand.")
    workspace = project.open()
    memories = workspace.memories
    memories.create("new.md", "See [[other]].", [], "fact")
    memories.create("other.md", "Text.", [], "fact")
    workspace.edits.rename("other.md", "renamed.md")
    memories.delete("renamed.md")
    events = workspace.tidying.timeline.events().events
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
    page = workspace.tidying.timeline.events(limit=2, offset=1)
    assert [event.verb for event in page.events] == ["rename", "create"]
    assert page.omitted == 2
    assert len(workspace.tidying.timeline.events(until="2026-11-01").events) == 1
    assert not workspace.tidying.timeline.events(until="2026-10-31").events
