"""Every answer has a size, as text and as structure, and says what it left out."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

# What clients are known to take in one piece; the default of server.answer_chars leaves room below
# it.
CLIENT_LIMIT = 10_000
# Texts that grow when they are quoted, escaped or listed.
HARD_TEXTS = {
    "prose": "A needle in a sentence of some words that goes on for a while. ",
    "short lines": "needle\nx\n",
    "quotes": '"needle" \\ "\\" ',
    "wide": "needle 日本語の文章がここにあります。",
}


def sizes(session: Session, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Call a tool and check that each face of its answer stays below what clients take."""
    answer, text = session.call(tool, **arguments), session.text(tool, **arguments)
    structure = json.dumps(answer, ensure_ascii=False)
    assert len(text) < CLIENT_LIMIT, (tool, len(text))
    assert len(structure) < CLIENT_LIMIT, (tool, len(structure))
    return answer, text


@pytest.fixture
def crowded(project: Project) -> Project:
    """Long texts of the hard kinds.

    With long titles, many tags and deep headings, in both lanes.
    """
    headings = "\n\n".join(f"{'#' * level} {'Heading needle ' * 5}" for level in range(1, 5))
    for number, kind in enumerate([*HARD_TEXTS] * 4):
        tags = ", ".join(f"tag-{number}-{n}" for n in range(40))
        text = f"{headings}\n\nOn [[src/a.py]].\n\n{HARD_TEXTS[kind] * 150}"
        for plant in (project.doc, project.memory):
            plant(long_name(number), f"---\ntags: [{tags}]\n---\n\n{text}\n")
    return project


def long_name(number: int) -> str:
    return f"a-rather-long-folder-name/{number:02}-{'long-name-' * 5}.md"


def test_search_answers_fit_and_say_what_is_left_out(crowded: Project, connect: Connect) -> None:
    session = connect().settle()
    tools = ("search_docs", "search_memories")
    for tool, limit, explain in product(tools, (1, 5, 50), (False, True)):
        answer, text = sizes(session, tool, query="needle", limit=limit, explain=explain)
        shown = len(answer["result"])
        assert 1 <= shown <= limit
        assert answer["omitted"] > 0
        assert f"{answer['omitted']} more" in text
        # A result without content helps nobody.
        assert min(len(hit["content"]) for hit in answer["result"]) >= 100
        if shown < limit:
            assert any("did not fit" in note for note in answer["notes"])
            assert "did not fit" in text
        if any(hit["content"].endswith("…") for hit in answer["result"]):
            assert any("are cut" in note for note in answer["notes"])


def test_the_default_number_of_ordinary_results_fits_whole(
    project: Project, connect: Connect
) -> None:
    text = "The needle is in this ordinary sentence. " * 18
    for number in range(8):
        project.doc(f"{number}.md", f"# Page {number}\n\n{text}\n")
    answer, _ = sizes(connect().settle(), "search_docs", query="needle")
    assert len(answer["result"]) == 5
    assert not any(hit["content"].endswith("…") for hit in answer["result"])


def test_linked_answers_fit_even_with_hundreds_of_links(crowded: Project, connect: Connect) -> None:
    sentences = (f"Sentence {number} names [[src/a.py]] once more." for number in range(300))
    crowded.memory("hub.md", "\n\n".join(sentences))
    session = connect().settle()
    tool, target = "search_linked_memories", {"target_document": "src/a.py"}
    answer, text = sizes(session, tool, query="sentence", **target)
    hub = answer["result"][0]
    assert hub["memory_id"] == "memory:hub"
    assert len(hub["links"]) < 300
    assert f"{300 - len(hub['links'])} more links" in text
    assert len(answer["result"]) >= 3
    everything, _ = sizes(session, tool, query="", limit=50, **target)
    assert everything["omitted"] + len(everything["result"]) == 17


READERS = {"read_doc": {"path": "docs/long.md"}, "read_memory": {"filename": "long.md"}}


@pytest.mark.parametrize("kind", HARD_TEXTS)
def test_a_long_text_is_read_in_pieces_that_fit_and_lose_nothing(
    project: Project, connect: Connect, kind: str
) -> None:
    lines = (HARD_TEXTS[kind] * 3).strip().split("\n")
    text = "\n".join(f"{number} {line}" for number in range(600) for line in lines)
    project.doc("long.md", text)
    project.memory("long.md", text)
    session = connect()
    for tool, name in READERS.items():
        pieces = []
        rest: dict[str, str] = {"lines": ""}
        while rest:
            answer, shown = sizes(session, tool, **name, **rest)
            pieces.append(answer["content"])
            assert answer["omitted"] in shown
            omitted = re.search(r'ask for lines="(?P<lines>\d+-\d+)"', answer["omitted"])
            rest = omitted.groupdict() if omitted else {}
        assert len(pieces) > 2
        assert "\n".join(pieces) == text


def test_an_outline_does_not_crowd_out_the_text(project: Project, connect: Connect) -> None:
    heading = "A long heading with many words " * 4
    body = "\n\n".join(f"## {heading}{number}\n\nText." for number in range(400))
    project.doc("headings.md", f"# Top\n\n{body}\n")
    answer, text = sizes(connect(), "read_doc", path="docs/headings.md")
    assert len(answer["content"]) > 4000
    assert len(answer["headings"]) >= 5
    assert answer["headings"][0] == "# Top (line 1)"
    assert answer["headings"][0] in text


def test_one_endless_line_is_cut_and_said_so(project: Project, connect: Connect) -> None:
    project.doc("long.md", "needle " * 20_000)
    project.memory("long.md", "needle " * 20_000)
    session = connect()
    for tool, name in READERS.items():
        answer, text = sizes(session, tool, **name)
        assert len(answer["content"]) > 5000
        assert "is cut" in answer["omitted"]
        assert answer["omitted"] in text


def test_statistics_of_thousands_of_tags_fit(project: Project, connect: Connect) -> None:
    for number in range(100):
        tags = ", ".join(["everywhere", *(f"a-tag-of-one-memory-{number}-{n}" for n in range(30))])
        project.memory(f"{number}.md", f"---\ntype: kind-{number}\ntags: [{tags}]\n---\n\nx\n")
    answer, text = sizes(connect(), "get_memory_stats")
    assert answer["count"] == 100
    assert next(iter(answer["tags"].items())) == ("everywhere", 100)
    left = 3001 - len(answer["tags"])
    assert left > 0
    assert f"{left} rarer tags" in text
    assert any(f"{left} rarer tags" in note for note in answer["notes"])


def test_suggestions_for_hundreds_of_equal_memories_fit(project: Project, connect: Connect) -> None:
    text = "The same words are written into every one of these. " * 5
    for number in range(200):
        project.memory(long_name(number), text)
    session = connect().settle()
    answer, text = sizes(session, "suggest_memory_merges", threshold=0.8)
    assert sum(cluster["memory_count"] for cluster in answer["result"]) > 100
    cluster = answer["result"][0]
    assert cluster["memory_count"] > len(cluster["memories"]) >= 2
    assert any("not listed" in note for note in answer["notes"])
    assert "not listed" in text


def test_status_with_problems_in_every_file_fits(project: Project, connect: Connect) -> None:
    links = " ".join(f"[[./a/folder/file-{number}.py]]" for number in range(30))
    for number in range(60):
        project.memory(long_name(number), f"---\ncreated_at: never\n---\n\n{links}\n")
        project.doc(long_name(number), "---\na: [\n---\n")
    answer, text = sizes(connect().settle(), "index_status")
    for lane in answer["lanes"]:
        left = 60 - len(lane["problems"])
        assert f"{left} more files have problems; `ragdocs lint` lists them all" in lane["notes"]
        assert f"{left} more files have problems" in text


@pytest.mark.usefixtures("crowded")
def test_the_budget_is_configurable(connect: Connect) -> None:
    lengths = []
    for chars in (1000, 30_000):
        session = connect(**{"server.answer_chars": chars}).settle()
        answer = session.call("search_docs", query="needle", limit=10)
        lengths.append(len(json.dumps(answer, ensure_ascii=False)))
        assert len(session.call("read_memory", filename=long_name(0))["content"]) <= chars
    assert lengths[0] < 2500
    assert CLIENT_LIMIT < lengths[1] < 31_000
