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
    for number in range(16):
        kind = list(HARD_TEXTS)[number % len(HARD_TEXTS)]
        tags = ", ".join(f"tag-{number}-{n}" for n in range(40))
        headings = "\n\n".join(
            f"{'#' * level} {'Heading needle ' * 5}{level}" for level in range(1, 5)
        )
        body = f"---\ntags: [{tags}]\n---\n\n{headings}\n\nOn [[src/a.py]].\n\n{HARD_TEXTS[kind] * 150}\n"
        project.doc(f"a-rather-long-folder-name/{number:02}-{'long-name-' * 5}.md", body)
        project.memory(f"a-rather-long-folder-name/{number:02}-{'long-name-' * 5}.md", body)
    return project


def test_search_answers_fit_and_say_what_is_left_out(crowded: Project, connect: Connect) -> None:
    session = connect().settle()
    for tool, limit, explain in product(
        ("search_docs", "search_memories"), (1, 5, 50), (False, True)
    ):
        answer, text = sizes(session, tool, query="needle", limit=limit, explain=explain)
        shown = len(answer["result"])
        assert 1 <= shown <= limit
        assert answer["omitted"] > 0
        assert f"{answer['omitted']} more" in text
        assert all(len(hit["content"]) >= 100 for hit in answer["result"]), (
            "a result without content helps nobody"
        )
        if shown < limit:
            assert any("did not fit" in note for note in answer["notes"])
            assert "did not fit" in text
        if any(hit["content"].endswith("…") for hit in answer["result"]):
            assert any("are cut" in note for note in answer["notes"])


def test_the_default_number_of_ordinary_results_fits_whole(
    project: Project, connect: Connect
) -> None:
    for number in range(8):
        project.doc(
            f"{number}.md",
            f"# Page {number}\n\n{'The needle is in this ordinary sentence. ' * 18}\n",
        )
    answer, _ = sizes(connect().settle(), "search_docs", query="needle")
    assert len(answer["result"]) == 5
    assert not any(hit["content"].endswith("…") for hit in answer["result"])


def test_linked_answers_fit_even_with_hundreds_of_links(crowded: Project, connect: Connect) -> None:
    crowded.memory(
        "hub.md", "\n\n".join(f"Sentence {n} names [[src/a.py]] once more." for n in range(300))
    )
    session = connect().settle()
    answer, text = sizes(
        session, "search_linked_memories", query="sentence", target_document="src/a.py"
    )
    hub = answer["result"][0]
    assert hub["memory_id"] == "memory:hub"
    assert len(hub["links"]) < 300
    assert f"{300 - len(hub['links'])} more links" in text
    assert len(answer["result"]) >= 3
    everything, _ = sizes(
        session, "search_linked_memories", query="", target_document="src/a.py", limit=50
    )
    assert everything["omitted"] + len(everything["result"]) == 17


@pytest.mark.parametrize("kind", HARD_TEXTS)
def test_a_long_text_is_read_in_pieces_that_fit_and_lose_nothing(
    project: Project, connect: Connect, kind: str
) -> None:
    lines = (HARD_TEXTS[kind] * 3).strip().split("\n")
    text = "\n".join(f"{number} {line}" for number in range(600) for line in lines)
    project.doc("long.md", text)
    project.memory("long.md", text)
    session = connect()
    for tool, name in (
        ("read_doc", {"path": "docs/long.md"}),
        ("read_memory", {"filename": "long.md"}),
    ):
        pieces, rest = [], None
        while True:
            answer, shown = sizes(session, tool, **name, **({"lines": rest} if rest else {}))
            pieces.append(answer["content"])
            if not answer["omitted"]:
                break
            assert answer["omitted"] in shown
            found = re.search(r'ask for lines="(\d+-\d+)"', answer["omitted"])
            assert found
            rest = found[1]
        assert len(pieces) > 2
        assert "\n".join(pieces) == text


def test_an_outline_does_not_crowd_out_the_text(project: Project, connect: Connect) -> None:
    body = "\n\n".join(
        f"## {'A long heading with many words ' * 4}{n}\n\nText {n}." for n in range(400)
    )
    project.doc("headings.md", f"# Top\n\n{body}\n")
    answer, text = sizes(connect(), "read_doc", path="docs/headings.md")
    assert len(answer["content"]) > 4000
    assert len(answer["headings"]) >= 5
    assert answer["headings"][0] == "# Top (line 1)"
    assert answer["headings"][0] in text


def test_one_endless_line_is_cut_and_said_so(project: Project, connect: Connect) -> None:
    project.doc("line.md", "needle " * 20_000)
    project.memory("line.md", "needle " * 20_000)
    session = connect()
    for tool, name in (
        ("read_doc", {"path": "docs/line.md"}),
        ("read_memory", {"filename": "line.md"}),
    ):
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
    for number in range(200):
        project.memory(
            f"{number:03}-{'long-name-' * 5}.md",
            "The same words are written into every one of these. " * 5,
        )
    session = connect().settle()
    answer, text = sizes(session, "suggest_memory_merges", threshold=0.8)
    assert sum(cluster["memory_count"] for cluster in answer["result"]) > 100
    cluster = answer["result"][0]
    assert cluster["memory_count"] > len(cluster["memories"]) >= 2
    assert any("not listed" in note for note in answer["notes"])
    assert "not listed" in text


def test_status_with_problems_in_every_file_fits(project: Project, connect: Connect) -> None:
    for number in range(60):
        links = " ".join(f"[[./a/folder/file-{n}.py]]" for n in range(30))
        project.memory(
            f"folder/{number:02}-{'long-name-' * 5}.md", f"---\ncreated_at: never\n---\n\n{links}\n"
        )
        project.doc(f"folder/{number:02}-{'long-name-' * 5}.md", "---\na: [\n---\n")
    answer, text = sizes(connect().settle(), "index_status")
    for lane in answer["lanes"]:
        left = 60 - len(lane["problems"])
        assert f"{left} more files have problems; `ragdocs lint` lists them all" in lane["notes"]
        assert f"{left} more files have problems" in text


def test_the_budget_is_configurable(crowded: Project, connect: Connect) -> None:
    small, large = (
        connect(**{"server.answer_chars": 1000}),
        connect(**{"server.answer_chars": 30_000}),
    )
    for session in (small, large):
        session.settle()
    short = small.raw("search_docs", query="needle", limit=10)
    long = large.raw("search_docs", query="needle", limit=10)
    assert len(json.dumps(short.structured_content, ensure_ascii=False)) < 2500
    assert CLIENT_LIMIT < len(json.dumps(long.structured_content, ensure_ascii=False)) < 31_000
    assert (
        len(
            small.call("read_memory", filename=f"a-rather-long-folder-name/00-{'long-name-' * 5}")[
                "content"
            ]
        )
        <= 1000
    )
