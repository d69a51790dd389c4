"""Answers about the journal and about commits as text."""

from __future__ import annotations

from typing import Any

from ragdocs.serve.surface.present import (
    inline,
    joined,
    listing,
    note_lines,
    quote,
    whole,
    with_notes,
)
from ragdocs.serve.surface.shapes.journal import (
    CommitHit,
    CommitHits,
    Contents,
    Exchanged,
    JournalHits,
    JournalText,
    JournalWritten,
    ListedEntries,
    Synthesis,
)
from ragdocs.text.visible import line

REBASED = "Others had written since you read the section; your entry stands on top"


def text(answer: JournalText) -> str:
    """Write an overview or an entry."""
    answer = inline(answer)
    entry_count = ""
    if answer["type"] == "overview":
        entry_count = f"{answer['entry_count']} entries"
    head = (
        answer["id"],
        answer["type"],
        entry_count,
        answer["timestamp"],
        f"at {answer['version'] or 'nothing yet'}",
    )
    parts = [" · ".join(filter(None, head)), whole(answer["content"])]
    if answer["omitted"]:
        parts.append(f"[{answer['omitted']}]")
    return "\n\n".join([*parts, *note_lines(answer["notes"])])


def written(answer: JournalWritten) -> str:
    """Confirm an entry."""
    answer = inline(answer)
    what = "entry"
    if answer["overview_changed"]:
        what = "entry and overview"
    location = f"{answer['entry_count']} entries in {answer['path']}"
    rows = [f"committed {what} as {answer['id']} ({answer['commit']}), {location}"]
    if answer["rebased"]:
        rows.append(REBASED)
    return with_notes("\n".join(rows), answer["warnings"])


def contents(answer: Contents) -> str:
    """Draw the tree of sections."""
    rows = _section_rows(answer, 0)
    return "\n".join([*rows, *note_lines(answer["notes"])])


def listed(answer: ListedEntries) -> str:
    """List entries, one line each."""
    rows = []
    for entry in inline(answer)["result"]:
        rows.append(f"{entry['timestamp']}  {entry['id']} | {entry['summary']}")
    rows.append(f"{len(rows)} of {answer['total']} entries, newest first")
    return "\n".join([*rows, *note_lines(answer["notes"])])


def hits(answer: JournalHits) -> str:
    """Write the entries that match."""
    blocks = []
    for number, hit in enumerate(inline(answer)["result"], start=1):
        context = f"work context {hit['work_context_score']:.2f}"
        content = f"content {hit['content_score']:.2f}"
        scores = f"combined {hit['combined_score']:.2f} ({context}, {content})"
        blocks.append(f"{number}. {hit['id']} · {hit['age']} · {scores}\n{quote(hit['content'])}")
    return listing(blocks, answer["omitted"], answer["notes"], "entries")


def synthesis(answer: Synthesis) -> str:
    """Write a draft, what the client's model made of it, and what to do next."""
    parts = [
        f"{line(answer['section'])} · {answer['disagreements']} disagreements",
        whole(answer["draft"]),
    ]
    if answer["synthesis"]:
        parts += [f"what {line(answer['model'])} made of both:", whole(answer["synthesis"])]
    return "\n\n".join([*parts, answer["instructions"]])


def exchanged(answer: Exchanged) -> str:
    """Say how many commits came and went."""
    answer = inline(answer)
    remote = f"{answer['remote']}, {answer['branch']}"
    head = f"{remote}: {answer['received']} commits came, {answer['sent']} went"
    if answer["merged"]:
        head += f"; merged {', '.join(answer['merged'])}"
    return with_notes(head, answer["notes"])


def commits(answer: CommitHits) -> str:
    """Write the commits that match."""
    blocks = []
    for number, hit in enumerate(inline(answer)["result"], start=1):
        head = f"{hit['commit'][:12]} · {hit['subject']} · {hit['author']}, {hit['age']}"
        if hit["score"]:
            # Without a query there is none.
            head += f" · {hit['score']:.2f}"
        blocks.append(
            f"{number}. {head}\n"
            f"   files: {_files(hit)} · why: {hit['why'] or 'newest'}\n"
            f"{quote(hit['content'])}"
        )
    return listing(blocks, answer["omitted"], answer["notes"], "commits")


def _files(hit: CommitHit) -> str:
    paths = joined(hit["paths"])
    more = hit.get("paths_total", 0) - len(hit["paths"])
    if more > 0:
        return f"{paths} and {more} more"
    return paths


def _section_rows(section: Any, depth: int) -> list[str]:
    """Return a section and all below it, one row each."""
    name = line(section["id"]) or "journal"
    updated = section["last_updated"] or "never"
    rows = [f"{'  ' * depth}{name} · {section['entry_count']} entries · {updated}"]
    for subsection in section.get("subsections", []):
        rows += _section_rows(subsection, depth + 1)
    return rows
