"""Answers about single texts as text."""

from __future__ import annotations

from ragdocs.serve.surface.present import inline, plural, quote, whole
from ragdocs.serve.surface.shapes import ComparedTexts, SecretsFound, TextLinks, TextShape
from ragdocs.text.visible import line


def text(answer: TextShape) -> str:
    """Write a whole text."""
    head = f"{line(answer['path'])} (version {answer['version']})"
    return f"{head}\n{whole(answer['content'])}"


def links(answer: TextLinks) -> str:
    """List links out, links back and similar memories."""
    texts = inline(answer)
    rows = [plural(len(texts["out"]), "link")]
    for link in texts["out"]:
        state = "" if link["state"] == "indexed" else f" ({link['state']})"
        if "drift" in link:
            state += f": {link['drift']}"
        rows.append(f"   {link['kind']} {link['target']}{state}")
    rows.append(f"linked from {plural(len(texts['back']), 'text')}")
    for source in texts["back"]:
        rows.append(f"   {source['path']} {source['kind']}\n{quote(source['context'])}")
    rows.append(f"similar memories: {len(texts['similar'])}")
    for memory in texts["similar"]:
        rows.append(f"   {memory['path']} · {memory['score']:.2f}")
    return "\n".join(rows)


def secrets(answer: SecretsFound) -> str:
    """List the secrets of a text by line and kind."""
    if not answer["result"]:
        return "no secrets found"
    rows = []
    for secret in answer["result"]:
        rows.append(f"line {secret['line']}: {line(secret['kind'])}")
    return "\n".join(rows)


def compared(answer: ComparedTexts) -> str:
    """Count what changed."""
    overlaps = 0
    changed = 0
    for region in answer["result"]:
        changed += region["origin"] != "same"
        overlaps += region["origin"] == "overlap"
    return f"{plural(changed, 'changed region')}, {overlaps} on both sides"
