"""What somebody meets in the first minutes: empty answers with a reason, and counts of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.errors import NotFoundError
from ragdocs.serve.surface.present import care, memories, quality

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Run


def test_a_search_in_a_project_without_documentation_says_so(project: Project, run: Run) -> None:
    reason = f"no document is indexed: the configuration includes no file of {project.root}"
    for words in (["search", "tokens"], ["docs", "search", "tokens"]):
        code, out, _ = run(*words)
        assert code == 0
        assert reason in out
    project.doc("guide.md", "# Guide\n\nNothing to see here.\n")
    assert "no document is indexed" not in run("search", "tokens")[1]


def test_an_agent_is_told_it_too(project: Project) -> None:
    (note,) = ask(project.open(), "search_docs", query="tokens")["notes"]
    assert note.startswith("no document is indexed: ")


def test_a_file_that_a_memory_only_names_is_not_linked_and_the_answer_says_how(
    project: Project,
) -> None:
    project.memory("plan.md", "# Plan\n\nUse OAuth2, see src/auth.py\n")
    workspace = project.open()
    answer = ask(workspace, "search_linked_memories", query="", target_document="src/auth.py")
    assert answer["notes"] == [
        "no memory links to src/auth.py; a link is written as [[src/auth.py]] in its text"
    ]
    project.memory("plan.md", "# Plan\n\nUse OAuth2, see [[src/auth.py]]\n")
    workspace.sync()
    answer = ask(workspace, "search_linked_memories", query="", target_document="src/auth.py")
    assert [hit["memory_id"] for hit in answer["result"]] == ["memory:plan"]
    assert not any("no memory links" in note for note in answer["notes"])


def test_a_name_that_is_like_no_other_comes_with_a_next_step(project: Project) -> None:
    project.memory("plan.md", "# Plan\n")
    workspace = project.open()
    with pytest.raises(NotFoundError, match="zebra-crossing") as refused:
        ask(workspace, "read_memory", filename="zebra-crossing.md")
    assert refused.value.hint == "search_memories finds memories by their content"
    with pytest.raises(NotFoundError) as refused:
        ask(workspace, "read_memory", filename="plam.md")
    assert refused.value.hint == "Did you mean plan.md?"


def test_one_is_not_counted_as_many(project: Project) -> None:
    project.memory("plan.md", "# Plan\n")
    project.write("src/auth.py", "def login(): pass\n")
    workspace = project.open()
    assert memories.stats(ask(workspace, "get_memory_stats")).startswith("1 memory, ")
    verified = quality.verified(ask(workspace, "verify_index"))
    assert "memory: identical (1 document, 1 chunk, 4 postings, 0 edges, 1 vector)" in verified
    pack = ask(workspace, "build_context", task="login")["context"]
    assert "## Outline of 1 source file, as it is now" in pack
    gap = {"target": "src/a.py", "memory_count": 1, "is_file": True, "oldest": "", "newest": ""}
    answer = {"targets": [gap], "questions": [], "unlinked": [], "repeated": [], "omitted": 0}
    assert care.gaps({**answer, "notes": []}) == ("1 memory explains src/a.py, no document does")


def test_a_command_does_not_list_itself_as_a_client(project: Project, run: Run) -> None:
    project.doc("guide.md", "# Guide\n")
    assert run("clients")[1] == "no client is connected\n"


def test_the_status_names_a_model_and_not_its_checksums(project: Project) -> None:
    minilm = "all-MiniLM-L6-v2/onnx-int8:8199be6f699a:e944e2e87666/mean/256/latin"
    hub = "intfloat/multilingual-e5-small/torch:0a1b2c3d/mean/512"
    assert quality.short_model(minilm) == "all-MiniLM-L6-v2"
    assert quality.short_model(hub) == "intfloat/multilingual-e5-small"
    assert quality.short_model("none") == "none"
    assert "embedder: hash, vector search" in quality.status(ask(project.open(), "index_status"))
