"""Answers about links, drafts, the past and clients as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragdocs.serve.surface.present import inline, note_lines, plural, quote, whole, with_notes


def graph(answer: Any) -> str:
    """Write each node with what it links to."""
    answer = inline(answer)
    titles = {}
    links: dict[str, list[str]] = {}
    for node in answer["nodes"]:
        titles[node["id"]] = node["title"]
        links[node["id"]] = []
    for edge in answer["edges"]:
        links[edge["source"]].append(f"   {edge['type']} {titles[edge['target']]}")
    rows = []
    for node in answer["nodes"]:
        kind = node["type"] or node["lane"] or "not indexed"
        rows.append(f"{node['title']} · {kind} · {node['path']} · {plural(node['links'], 'link')}")
        rows += links[node["id"]]
    if not rows:
        rows.append("there are no memories and no documents yet")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more nodes; raise --limit, or look around one of them")
    return "\n".join([*rows, *note_lines(answer["notes"])])


def links(answer: Any) -> str:
    """Write broken and ambiguous links and gaps."""
    answer = inline(answer)
    rows = list(_broken(answer["broken"]))
    rows += _ambiguous(answer["ambiguous"])
    rows += _gaps(answer["gaps"])
    if not rows:
        rows.append("no broken or ambiguous links, and no gaps")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more are not listed")
    return "\n".join([*rows, *note_lines(answer["notes"])])


def _broken(items: Any) -> Iterator[str]:
    for item in items:
        yield f"{item['memory']['path']}: {item['target']} does not exist"


def _ambiguous(items: Any) -> Iterator[str]:
    for item in items:
        paths = _paths(item["candidates"])
        yield f"{item['memory']['path']}: {item['target']} may be {paths}"


def _paths(items: Any) -> str:
    return ", ".join(item["path"] for item in items)


def _gaps(items: Any) -> Iterator[str]:
    for item in items:
        yield f"{item['target']}: named by {_memories(item)}, in no document"


def _memories(gap: Any) -> str:
    """Count the memories that have what the documentation lacks."""
    if gap["memory_count"] == 1:
        return "1 memory"
    return f"{gap['memory_count']} memories"


def gaps(answer: Any) -> str:
    """Write what the documentation lacks, kind by kind."""
    answer = inline(answer)
    rows: list[str] = []
    for gap in answer["targets"]:
        state = "no document does" if gap["is_file"] else "which does not exist"
        age = ""
        if gap["oldest"] and gap["newest"]:
            days = dict.fromkeys((gap["oldest"][:10], gap["newest"][:10]))
            age = f" ({' to '.join(days)})"
        verb = "explain"
        if gap["memory_count"] == 1:
            verb = "explains"
        rows.append(f"{_memories(gap)}{age} {verb} {gap['target']}, {state}")
    for question in answer["questions"]:
        times = plural(question["count"], "time")
        last = question["last_at"][:10]
        rows.append(f"asked {times}, last {last}, nothing found | {question['question']}")
    for text in answer["unlinked"]:
        rows.append(f"nothing links to {text['path']} · {text['title']}")
    for group in answer["repeated"]:
        sections = ", ".join(
            f"{section['path']}:{section['line']}" for section in group["sections"]
        )
        rows.append(f"sections repeat each other | {group['heading']}: {sections}")
    if not rows:
        rows.append("no gaps found")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more are not listed")
    return with_notes("\n".join(rows), answer["notes"])


def conflicts(answer: Any) -> str:
    """Write contradictions and superseded memories, one line each."""
    answer = inline(answer)
    rows = []
    for item in answer["contradictions"]:
        first = item["first"]
        second = item["second"]
        row = f"{_claim(first)} contradicts {_claim(second)}"
        if item["how"]:
            row += f" ({item['how']})"
        rows.append(row)
    for item in answer["superseded"]:
        names = ", ".join(text["path"] for text in item["successors"])
        rows.append(f"{item['memory']['path']} is superseded by {names}")
    if not rows:
        rows.append("no contradictions, and nothing is superseded")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more are not listed")
    return with_notes("\n".join(rows), answer["notes"])


def _claim(side: Any) -> str:
    address: str = side["path"]
    if side["line"]:
        address += f":{side['line']}"
    if side["text"]:
        address += f" “{side['text']}”"
    return address


def docs_changes(answer: Any) -> str:
    """Write memories that a page restates and those that a page should have, as diffs."""
    blocks = []
    for item in answer["restated"]:
        named = inline(item)
        section = f"{named['page']['path']}:{named['lines']}"
        head = f"{named['memory']['path']} restates {section} | {named['heading']}"
        blocks.append(f"{head}, {item['share']:.0%}\n{quote(item['diff'])}")
    for item in answer["patches"]:
        named = inline(item)
        uses = plural(item["uses"], "time")
        head = f"{named['memory']['path']} was used {uses}; as a part of {named['page']['path']}:"
        blocks.append(f"{head}\n{quote(item['diff'])}")
    if not blocks:
        blocks.append("no memory restates the documentation, and none should be a part of it")
    if answer["omitted"]:
        blocks.append(f"{answer['omitted']} more are not listed")
    return with_notes("\n\n".join(blocks), answer["notes"])


def handover(answer: Any) -> str:
    """Write the page as it is."""
    text: str = answer["page"]
    return text.rstrip("\n")


def draft(answer: Any) -> str:
    """Write the proposal."""
    names = inline(answer["sides"])
    sources = _paths(names)
    head = f"draft of {inline(answer['target'])} for {sources}; nothing was changed"
    return "\n".join([head, whole(answer["content"])])


def timeline(answer: Any) -> str:
    """Write days and sessions."""
    answer = inline(answer)
    rows = []
    for day in answer["days"]:
        rows.append(day["day"])
        for session in day["sessions"]:
            where = "".join(f" · {branch}" for branch in session["branches"])
            rows.append(f"  {session['begins']} to {session['ends']}{where}")
            for event in session["events"]:
                rows.append(f"    {event['time']} {event['verb']:8} {event['path']}")
    if not rows:
        rows.append("nothing happened in this time")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} earlier changes; raise --limit or --offset to see them")
    return "\n".join(rows)


def clients(answer: Any) -> str:
    """Write who is connected."""
    rows = []
    for client in inline(answer["result"]):
        name = client["program"] or client["user"] or "client"
        calls = plural(client["calls"], "call")
        rows.append(f"{name}: {client['last_call'] or 'no call yet'}, {client['age']}, {calls}")
    return "\n".join(rows) or "no client is connected"
