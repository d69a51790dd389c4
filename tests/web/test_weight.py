"""The weight of a page: what a browser with an empty cache loads, without compression."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from tests.conftest import Project
from tests.http.site import Site, serving

LIMIT = 100_000
MEMORIES = 500
WORDS = [
    *("ledger", "billing", "session", "deploy", "queue", "retry", "webhook", "invoice", "cursor"),
    *("shard", "cache", "tenant", "export", "digest", "rollout", "schema", "batch", "region"),
]
KINDS = ("fact", "decision", "plan", "journal", "observation")
STATIC = re.compile(r'(?:href|src)="(/static/[^"]+)"')
IMPORTED = re.compile(r'from "\./([^"]+)"')
PAGES = (
    "/",
    "/?q=ledger+retry+webhook",
    "/?q=zzzz&tag=ledger",
    "/text/memory/note-0000.md",
    "/text/memory/note-0000.md?raw",
    "/text/docs/docs/area0/page-0.md",
    "/text/memory/nowhere.md",
    "/edit/memory/note-0000.md",
    "/new",
    "/graph?limit=300",
    "/graph?limit=300&as=table",
    "/graph?around=memory:note-0000&steps=4&limit=300",
    "/tidy",
    "/tidy?only=merge",
    "/tidy?only=broken",
    "/timeline",
    "/status",
)


def _fill(project: Project) -> None:
    """Write many memories that link to each other, to pages, and to what is not there."""
    choice = random.Random(3)

    def words(count: int) -> str:
        return " ".join(choice.choices(WORDS, k=count))

    for number in range(60):
        text = "\n\n".join(f"## {words(3)}\n\n{words(80)}" for _ in range(5))
        project.doc(f"area{number % 6}/page-{number}.md", f"# {words(4)} {number}\n\n{text}\n")
        project.doc(f"broken-{number}.md", "---\ntags: [a\n---\n# Broken\n")
    for number in range(MEMORIES):
        near = choice.choices(range(min(number, 80) + 1), k=3)
        links = [f"[[note-{other:04}]]" for other in near]
        links += [f"[[docs/area{number % 6}/page-{number % 60}.md]]", f"[[src/{words(1)}.py]]"]
        if number % 9 == 0:
            links.append(f"[[src/gone/file-{number}.py]]")
        title = f"About the {words(5)} {number}"
        expiry = "expires_at: 2026-01-01\n" if number % 9 == 1 else ""
        head = f"type: {KINDS[number % 5]}\ntags: [{words(1)}, tag-{number}]\ntitle: {title}\n"
        body = f"{words(60)}\n\n{' '.join(links)}\n\n{words(40)}\n"
        project.memory(f"note-{number:04}.md", f"---\n{head}author: Kim\n{expiry}---\n{body}")


@pytest.fixture
def site(project: Project) -> Iterator[Site]:
    project.write("config.toml", "[memory]\nenabled = true\n")
    _fill(project)
    with serving(project.root) as opened:
        yield opened


def weigh(site: Site, path: str, cookie: str) -> int:
    """Return the bytes of a page with its styles, its scripts and what those import."""
    answer = site.ask(path, cookie=cookie)
    assert answer.status in (200, 404), answer.text
    files = {path: answer.text}
    wanted = STATIC.findall(answer.text)
    assert wanted
    while wanted:
        name = wanted.pop()
        if name not in files:
            files[name] = site.ask(name, cookie=cookie).text
            wanted += [f"/static/{other}" for other in IMPORTED.findall(files[name])]
    return sum(len(text.encode()) for text in files.values())


def test_every_page_weighs_less_than_the_limit(site: Site) -> None:
    cookie = site.sign_in()
    weights = {path: weigh(site, path, cookie) for path in PAGES}
    assert {path: weight for path, weight in weights.items() if weight > LIMIT} == {}
    # The graph is full, so that the limit says something.
    assert "300 of " in site.ask("/graph?limit=300", cookie=cookie).text
