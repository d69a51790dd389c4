"""Answers about living links as text, as Markdown for a pull request, and as SARIF."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote as escaped

from ragdocs import __version__
from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.present import inline, listing, plural, quote, with_notes
from ragdocs.serve.surface.shapes.living import (
    AffectedAnswer,
    AffectedShape,
    DriftReview,
    RelinkedShape,
    VerifiedShape,
)

# Characters that mean something in a table of Markdown.
_MARKS = re.compile(r"([\\`*_{}\[\]<>|#!])")
RULE = "affected-text"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def drift_review(answer: DriftReview) -> str:
    """List memories to look at, with what changed."""
    blocks = []
    for number, memory in enumerate(inline(answer)["result"], start=1):
        head = f"{number}. {memory['filename']} · {memory['title']} · {memory['type']}"
        head += f", {memory['age']} · weight {memory['weight']:.2f}"
        if memory["verified"]:
            head += f" · verified {memory['verified']}"
        rows = [head]
        for link in memory["links"]:
            rows.append(f"   {link['target']}: {link['words']}")
            if link["content"]:
                rows.append(quote(link["content"]))
        blocks.append("\n".join(rows))
    if not blocks:
        return with_notes(
            "no file that a memory links to has changed, moved or gone", answer["notes"]
        )
    return listing(blocks, answer["omitted"], answer["notes"], "memories")


def verified(answer: VerifiedShape) -> str:
    """Confirm that a memory was checked."""
    answer = inline(answer)
    rows = [f"verified {answer['filename']}: {answer['verified']}"]
    for link in answer["links"]:
        rows.append(f"   still to correct: {link}")
    return with_notes("\n".join(rows), answer["warnings"])


def relinked(answer: RelinkedShape) -> str:
    """Say which links of a memory lead elsewhere now."""
    answer = inline(answer)
    rows = [f"no link of {answer['filename']} has moved"]
    if answer["status"] == "updated":
        rows = [f"updated {answer['filename']} (version {answer['version']})"]
    for old, new in answer["links"]:
        rows.append(f"   {old} → {new}")
    return with_notes("\n".join(rows), answer["warnings"])


def affected(answer: AffectedAnswer) -> str:
    """List passages that speak about a change; a report is printed as it is."""
    if "report" in answer:
        return answer["report"]
    blocks = []
    for number, text in enumerate(inline(answer)["result"], start=1):
        blocks.append(f"{number}. {_head(text)}\n   {'; '.join(text['reasons'])}")
    if not answer["files"]:
        return "no file is changed"
    changed = plural(answer["files"], "changed file")
    if not blocks:
        return with_notes(f"no memory or document mentions {_changed(answer)}", answer["notes"])
    return listing(blocks, answer["omitted"], [*answer["notes"], changed], "passages")


def _changed(answer: AffectedAnswer) -> str:
    if answer["files"] == 1:
        return "the changed file"
    return f"the {answer['files']:,} changed files"


def _head(text: AffectedShape) -> str:
    heading = layouts.heading_of(text["title"], text["header_path"])
    suffix = ", changed here too" if text["changed"] else ""
    return f"{text['location']}:{text['line']} · {heading} · {text['type']}{suffix}"


def markdown(answer: AffectedAnswer) -> str:
    """Write the comment of a pull request."""
    if not answer["files"]:
        return "No file is changed."
    changed = plural(answer["files"], "changed file")
    if not answer["result"]:
        return f"No memory or document mentions {_changed(answer)}."
    rows = [
        f"**{plural(len(answer['result']), 'passage')} to check** for {changed}:",
        "",
        "| text | why |",
        "|---|---|",
    ]
    for text in inline(answer)["result"]:
        heading = layouts.heading_of(text["title"], text["header_path"])
        mark = " (changed here too)" if text["changed"] else ""
        where = f"`{text['location'].replace('`', '')}:{text['line']}`"
        rows.append(f"| {where} {_plain(heading)}{mark} | {_plain('; '.join(text['reasons']))} |")
    if answer["omitted"]:
        rows += ["", f"{answer['omitted']} more are not listed."]
    return "\n".join(rows)


def sarif(answer: AffectedAnswer) -> str:
    """Write the passages as results of a static analysis."""
    results = []
    for text in answer["result"]:
        heading = layouts.heading_of(text["title"], text["header_path"])
        results.append(_result(text, f"{heading}: {'; '.join(text['reasons'])}"))
    rule = {
        "id": RULE,
        "shortDescription": {"text": "A text speaks about what this change concerns"},
        "defaultConfiguration": {"level": "note"},
    }
    driver = {"name": "ragdocs", "version": __version__, "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": results}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _result(text: AffectedShape, words: str) -> dict[str, Any]:
    location = {
        "artifactLocation": {"uri": escaped(text["location"])},
        "region": {"startLine": text["line"]},
    }
    return {
        "ruleId": RULE,
        "level": "note",
        "message": {"text": words},
        "locations": [{"physicalLocation": location}],
    }


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKS.sub(r"\\\1", text)
