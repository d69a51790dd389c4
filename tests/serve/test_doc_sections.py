"""A search of the documentation shows the section around each passage, as far as there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.asking import ask

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.layouts.docs import LEAST_ROOM, LONGEST_SECTION, ROOM_A_HIT
from ragdocs.serve.surface.present import docs as present_docs

if TYPE_CHECKING:
    from tests.conftest import Project

# About 400 characters: two of them make one passage, three make two.
FILLER = ("Nothing of interest is written on this line of the text. " * 7).strip()
KEYS = f"""\
# Vault

{FILLER}

## Keys

A zebra key opens the vault. {FILLER}

{FILLER}

It is turned twice. {FILLER}

### Lost keys

Call the owner. {FILLER}

## Doors

Doors are grey. {FILLER}

{FILLER}
"""


def test_a_hit_is_shown_with_the_rest_of_its_section(project: Project) -> None:
    project.doc("vault.md", KEYS)
    answer = ask(project.open(), "search_docs", query="zebra key", limit=1)
    hit = answer["result"][0]
    assert hit["header_path"] == "Vault › Keys"
    assert "It is turned twice." in hit["content"]
    assert "Doors are grey" not in hit["content"]
    first, last = map(int, hit["lines"].split("-"))
    matched_first, matched_last = map(int, hit["matched"].split("-"))
    assert first <= matched_first <= matched_last <= last
    assert (first, last) != (matched_first, matched_last)
    lines = KEYS.split("\n")[first - 1 : last]
    assert hit["content"] == "\n".join(lines)
    assert f"; in lines {hit['matched']}\n" in present_docs.documents(answer)


def test_no_passage_is_shown_twice_and_the_answer_keeps_its_size(project: Project) -> None:
    for number in range(6):
        project.doc(f"{number}.md", KEYS.replace("# Vault", f"# Vault {number}"))
    workspace = project.open()
    for limit in (1, 3, 5, 20):
        hits = ask(workspace, "search_docs", query="zebra key vault doors", limit=limit)["result"]
        shown: dict[str, list[tuple[int, int]]] = {}
        for hit in hits:
            first, last = map(int, hit["lines"].split("-"))
            for other_first, other_last in shown.get(hit["path"], []):
                assert last < other_first or other_last < first
            shown.setdefault(hit["path"], []).append((first, last))
            if "matched" in hit:
                assert layouts.cost(hit["content"]) <= LONGEST_SECTION + 10
        if any("matched" in hit for hit in hits):
            assert layouts.cost(hits) <= max(LEAST_ROOM, ROOM_A_HIT * len(hits)) * 1.1


def test_a_text_without_headings_grows_too(project: Project) -> None:
    project.doc("plain.txt", f"A zebra key. {FILLER}\n\n{FILLER}\n\nTurn it twice. {FILLER}\n")
    project.doc("other.txt", "A key.\n")
    project.doc("third.txt", "A zebra.\n")
    hits = ask(project.open(), "search_docs", query="zebra key")["result"]
    best = next(hit for hit in hits if hit["path"].endswith("plain.txt"))
    assert "Turn it twice." in best["content"]
