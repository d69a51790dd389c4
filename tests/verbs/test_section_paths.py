"""A heading path that a search prints is the section that reading and editing take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.asking import ask

from ragdocs.verbs.memories.revise import Edit

if TYPE_CHECKING:
    from tests.conftest import Project

FILLER = (
    "Plenty of words so that no section is short enough to be joined with the one below it. " * 4
)


def test_a_document_is_read_at_the_heading_path_that_a_search_printed(project: Project) -> None:
    parts = [
        f"## {system}\n\n{FILLER}\n\n### Install\n\n{word} {FILLER}\n\n"
        for system, word in SYSTEMS.items()
    ]
    project.doc("guide.md", "# Guide\n\n" + "".join(parts))
    workspace = project.open()
    for system, word in SYSTEMS.items():
        hit = ask(workspace, "search_docs", query=f"{word} Install")["result"][0]
        assert hit["header_path"] == f"Guide › {system} › Install"
        read = ask(workspace, "read_doc", path=hit["path"], heading=hit["header_path"])
        assert read["lines"].split("-")[0] == hit["lines"].split("-")[0]
        assert word in read["content"]


SYSTEMS = {"Linux": "apt", "Windows": "winget"}


def test_a_memory_is_edited_at_the_heading_path_that_a_search_printed(project: Project) -> None:
    text = f"# Plan\n\n{FILLER}\n\n## #1 priority\n\nalpha {FILLER}\n\n## 1 priority\n\nbeta {FILLER}\n"
    project.memory("plan.md", text)
    workspace = project.open()
    for word in ("alpha", "beta"):
        hit = ask(workspace, "search_memories", query=word)["result"][0]
        edit = Edit(text=f"marked {word}", section=hit["header_path"], mode="append")
        workspace.edits.edit("plan.md", edit)
    first, second = (
        (project.root / ".memories/plan.md").read_text(encoding="utf-8").split("## 1 priority")
    )
    assert "marked alpha" in first
    assert "marked beta" in second


def test_an_outline_names_sections_as_they_are_asked_for(project: Project) -> None:
    sections = "".join(f"## Same\n\n{number} {FILLER * 8}\n\n" for number in range(9))
    project.doc("long.md", f"# Long\n\n{sections}")
    workspace = project.open()
    headings = ask(workspace, "read_doc", path="docs/long.md")["headings"]
    assert len(headings) == 10
    for number, heading in enumerate(headings[1:]):
        reading = workspace.documents.read("docs/long.md", heading=heading)
        assert reading.span is not None
        assert reading.text.split("\n")[reading.span[0] + 1].startswith(f"{number} ")


def test_a_page_whose_name_has_a_number_sign_is_read(project: Project) -> None:
    project.doc("c#.md", "# C sharp\n\nWords.\n\n## Install\n\nMore.\n")
    workspace = project.open()
    assert workspace.documents.read("docs/c#.md").document.title == "C sharp"
    assert workspace.documents.read("docs/c#.md#install").span == (5, 7)
