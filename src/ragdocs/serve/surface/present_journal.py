"""Answers about the journal and about commits, as text."""

from __future__ import annotations

from typing import Any

from ragdocs.serve.surface import present as render
from ragdocs.text.visible import line
from ragdocs.verbs.journal_shapes import (
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


def text(answer: JournalText) -> str:
    """Write an overview or an entry."""
    answer = render.inline(answer)
    count = f"{answer['entry_count']} entries" if answer["type"] == "overview" else ""
    head = (
        answer["id"],
        answer["type"],
        count,
        answer["timestamp"],
        f"at {answer['version'] or 'nothing yet'}",
    )
    parts = [" · ".join(filter(None, head)), render.whole(answer["content"])]
    parts += [f"[{answer['omitted']}]"] if answer["omitted"] else []
    return "\n\n".join([*parts, *(f"Note: {note}" for note in answer["notes"])])


def written(answer: JournalWritten) -> str:
    """Confirm an entry."""
    answer = render.inline(answer)
    what = "entry and overview" if answer["overview_changed"] else "entry"
    head = f"committed {what} as {answer['id']} ({answer['commit']}), {answer['entry_count']} entries in {answer['path']}"
    rebased = (
        "\nOthers had written since you read the section; your entry stands on top"
        if answer["rebased"]
        else ""
    )
    return f"{head}{rebased}" + "".join(f"\nNote: {warning}" for warning in answer["warnings"])


def contents(answer: Contents) -> str:
    """Draw the tree of sections."""
    rows = [_section(answer, 0), *_below(answer, 1)]
    return "\n".join([*rows, *(f"Note: {note}" for note in answer["notes"])])


def listed(found: ListedEntries) -> str:
    """List entries, one line each."""
    rows = [
        f"{one['timestamp']}  {one['id']} | {one['summary']}"
        for one in render.inline(found)["result"]
    ]
    rows.append(f"{len(rows)} of {found['total']} entries, newest first")
    return "\n".join([*rows, *(f"Note: {note}" for note in found["notes"])])


def hits(found: JournalHits) -> str:
    """Write entries that were found."""
    blocks = [
        f"{number}. {hit['id']} · {hit['age']} · combined {hit['combined_score']:.2f} (work context "
        f"{hit['work_context_score']:.2f}, content {hit['content_score']:.2f})\n{render.quote(hit['content'])}"
        for number, hit in enumerate(render.inline(found)["result"], start=1)
    ]
    return render.listing(blocks, found["omitted"], found["notes"], "entries")


def synthesis(answer: Synthesis) -> str:
    """Write a draft, what the client's model made of it, and what to do next."""
    parts = [
        f"{line(answer['section'])} · {answer['disagreements']} disagreements",
        render.whole(answer["draft"]),
    ]
    if answer["synthesis"]:
        parts += [f"what {line(answer['model'])} made of both:", render.whole(answer["synthesis"])]
    return "\n\n".join([*parts, answer["instructions"]])


def exchanged(answer: Exchanged) -> str:
    """Say what came and what went."""
    answer = render.inline(answer)
    merged = f"; merged {', '.join(answer['merged'])}" if answer["merged"] else ""
    head = f"{answer['remote']}, {answer['branch']}: {answer['received']} commits came, {answer['sent']} went{merged}"
    return "\n".join([head, *(f"Note: {note}" for note in answer["notes"])])


def commits(found: CommitHits) -> str:
    """Write commits that were found."""
    blocks = [
        f"{number}. {hit['commit'][:12]} · {hit['subject']} · {hit['author']}, {hit['age']} · {hit['score']:.2f}\n"
        f"   files: {_files(hit)} · why: {hit['why'] or 'newest'}\n{render.quote(hit['content'])}"
        for number, hit in enumerate(render.inline(found)["result"], start=1)
    ]
    return render.listing(blocks, found["omitted"], found["notes"], "commits")


def _files(hit: CommitHit) -> str:
    more = hit.get("paths_total", 0) - len(hit["paths"])
    return (", ".join(hit["paths"]) or "none") + (f" and {more} more" if more > 0 else "")


def _section(node: Any, depth: int) -> str:
    name = line(node["id"]) or "journal"
    return (
        f"{'  ' * depth}{name} · {node['entry_count']} entries · {node['last_updated'] or 'never'}"
    )


def _below(node: Any, depth: int) -> list[str]:
    below = node.get("subsections", [])
    return [row for child in below for row in (_section(child, depth), *_below(child, depth + 1))]
