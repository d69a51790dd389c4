"""Answers about memories as text."""

from __future__ import annotations

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.present import (
    counts,
    inline,
    joined,
    listing,
    note_lines,
    plural,
    provenance,
    quote,
    superseded,
    whole,
    with_notes,
)
from ragdocs.serve.surface.present.docs import signals
from ragdocs.serve.surface.shapes import (
    Clusters,
    Deleted,
    Difference,
    Edited,
    LinkedHits,
    MemoryHits,
    MemoryText,
    Merged,
    Renamed,
    Revisions,
    RevisionShape,
    Saved,
    Stats,
    Undone,
)
from ragdocs.text.visible import line


def memories(answer: MemoryHits) -> str:
    """Write memories."""
    blocks = []
    for number, hit in enumerate(inline(answer)["result"], start=1):
        heading = layouts.heading_of(hit["title"], hit["header_path"])
        kind = f"{hit['type']}, {hit['status']}, {provenance(hit)}"
        blocks.append(
            f"{number}. {hit['memory_id']} · {heading} · {kind} · score {hit['score']:.2f}\n"
            f"   file: {hit['file_path']}:{hit['lines']} · tags: {joined(hit['tags'])}"
            f" · why: {hit['why']}\n{superseded(hit)}"
            f"{quote(hit['content'])}{signals(hit.get('signals'))}"
        )
    return listing(blocks, answer["omitted"], answer["notes"], "memories")


def linked(answer: LinkedHits) -> str:
    """Write memories that link to a document."""
    blocks = []
    for number, hit in enumerate(inline(answer)["result"], start=1):
        head = f"{hit['memory_id']} · {hit['title']} · {provenance(hit)}"
        if hit["score"]:
            # Without a query, or where it does not match, the link alone is the reason.
            head += f" · score {hit['score']:.2f}"
        rows = [f"{number}. {head}", f"   file: {hit['file_path']}:{hit['lines']}"]
        rows += superseded(hit).splitlines()
        for link in hit["links"]:
            rows.append(f"   link | {link['edge_type']}: {link['anchor_context']}")
        rows.append(quote(hit["content"]))
        blocks.append("\n".join(rows))
    return listing(blocks, answer["omitted"], answer["notes"], "memories")


def memory(answer: MemoryText) -> str:
    """Write a memory as it stands."""
    answer = inline(answer)
    head = (
        f"{answer['filename']}:{answer['lines']}",
        f"version {answer['version']}",
        answer["path"],
        provenance(answer),
    )
    first = " · ".join(filter(None, head))
    remark = superseded(answer).rstrip()
    parts = ["\n".join(filter(None, (first, remark))), whole(answer["content"])]
    if answer["omitted"]:
        parts.append(f"[{answer['omitted']}]")
    return "\n\n".join(parts)


def saved(answer: Saved) -> str:
    """Confirm a write."""
    memory = f"{answer['filename']} (version {answer['version']})"
    return with_notes(f"{answer['status']} {memory} at {answer['path']}", answer["warnings"])


def deleted(answer: Deleted) -> str:
    """Confirm a deletion."""
    return f"deleted {answer['filename']}; it is kept at {answer['moved_to']}"


def merged(answer: Merged) -> str:
    """Confirm a merge, or show what it would change."""
    sources = ", ".join(answer["merged"])
    if "diff" in answer:
        head = f"nothing is changed; merging {sources} into {answer['filename']} would do this:"
        return with_notes(f"{head}\n{quote(answer['diff'])}", answer["warnings"])
    memory = f"{answer['filename']} (version {answer['version']})"
    rows = [f"merged {sources} into {memory}; the sources are kept at", *answer["moved_to"]]
    return with_notes("\n".join(rows), answer["warnings"])


def stats(answer: Stats) -> str:
    """Write the counts of a memory bank."""
    answer = inline(answer)
    count = f"{answer['count']} memories"
    if answer["count"] == 1:
        count = "1 memory"
    rows = [
        f"{count}, {answer['total_size']}, in {answer['memory_path']}",
        f"types: {counts(answer['types']) or 'none'}",
        f"tags: {counts(answer['tags']) or 'none'}",
    ]
    return with_notes("\n".join(rows), answer["notes"])


def clusters(answer: Clusters) -> str:
    """Write groups of similar memories."""
    blocks = []
    for cluster in inline(answer)["result"]:
        size = f"{cluster['memory_count']} memories"
        rows = [f"{cluster['cluster_id']}. {size}, similarity {cluster['score']:.2f}"]
        for member in cluster["memories"]:
            rows.append(f"   {member['id']} | {member['preview']}")
        draft = cluster.get("draft")
        if draft:
            opposed = plural(draft["contradictions"], "contradiction")
            rows.append(f"   draft for {draft['target']} (version {draft['version']}), {opposed}:")
            rows.append(quote(draft["content"]))
        blocks.append("\n".join(rows))
    return listing(blocks, 0, answer["notes"], "groups of similar memories")


def edited(answer: Edited) -> str:
    """Confirm an edit and show it."""
    memory = f"{answer['filename']} (version {answer['version']})"
    count = plural(answer["places"], "place")
    head = f"{answer['status']} {memory}, {count}, lines {answer['lines']}"
    return with_notes(f"{head}\n{quote(answer['content'])}", answer["warnings"])


def renamed(answer: Renamed) -> str:
    """Confirm a new name and say where links were rewritten."""
    answer = inline(answer)
    memory = f"{answer['filename']} (version {answer['version']})"
    links = f"{plural(answer['links'], 'link')} rewritten"
    rows = [f"renamed {answer['previous']} to {memory} at {answer['path']}; {links}"]
    for path, count in answer["files"].items():
        rows.append(f"   {path}: {count}")
    return with_notes("\n".join(rows), answer["warnings"])


def revisions(answer: Revisions) -> str:
    """List earlier texts, one line each."""
    rows = list(map(_revision, inline(answer)["result"]))
    if answer["current"]:
        rows.insert(0, f"version now: {answer['current']}")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} older texts are not listed; raise limit to see them")
    return "\n".join([*rows, *note_lines(answer["notes"])])


def _revision(revision: RevisionShape) -> str:
    outcome = "removed"
    if revision["became"]:
        outcome = f"became {revision['became']}"
    if revision["author"]:
        outcome += f", by {revision['author']}"
    return (
        f"{revision['at']}  {revision['version']}  {revision['verb']:<7} {revision['size']:>7}"
        f"  {revision['filename']} · {revision['age']}, {outcome}"
    )


def difference(answer: Difference) -> str:
    """Show what differs, as diff does."""
    return answer["content"] or f"{answer['before']} and {answer['after']} are the same text"


def undone(answer: Undone) -> str:
    """Say which change was undone, and what became of its files."""
    rows = [f"undone: {answer['verb']} of {answer['at']}"]
    for name in answer["restored"]:
        rows.append(f"   as before: {line(name)}")
    for name in answer["removed"]:
        rows.append(f"   gone again: {line(name)}")
    for path in answer["moved_to"]:
        rows.append(f"   kept at {line(path)}")
    return with_notes("\n".join(rows), answer["warnings"])
