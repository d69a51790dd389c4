"""Memories that others supersede: below their successors in a search, and not recalled."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest
from tests.asking import ask
from tests.conftest import NOW, Project
from tests.engines.wrappers import Counting

from ragdocs.protocols import Index
from ragdocs.verbs.memories.succession import Succession
from ragdocs.workspace import Workspace

OLD = "# Tokens\n\nAccess tokens are signed with RS256 and live for one hour.\n"
NEW = "# Cookies\n\nSessions are kept in Redis.\n\n- supersedes:: [[tokens]]\n"


@pytest.fixture
def workspace(project: Project) -> Workspace:
    project.memory("tokens.md", OLD)
    project.memory("sessions.md", NEW)
    project.memory("other.md", "# Other\n\nAccess tokens of the shop are something else.\n")
    return project.open()


def hits(workspace: Workspace, **arguments: object) -> list[dict[str, object]]:
    query = {"query": "how are access tokens signed with RS256", **arguments}
    result: list[dict[str, object]] = ask(workspace, "search_memories", **query)["result"]
    return result


def test_a_superseded_memory_comes_right_below_its_successor(workspace: Workspace) -> None:
    found = hits(workspace)
    names = [hit["memory_id"] for hit in found]
    rank = names.index("memory:tokens")
    assert names[rank - 1] == "memory:sessions"
    assert found[rank]["superseded_by"] == ["memory:sessions"]
    assert "superseded_by" not in found[rank - 1]
    assert found[rank - 1]["score"] == found[rank]["score"]
    assert "supersedes another result" in str(found[rank - 1]["why"])
    assert names == list(dict.fromkeys(names))
    for hit in hits(workspace, explain=True):
        shares = sum(signal["share"] for signal in hit["signals"])  # type: ignore[attr-defined]
        assert shares == pytest.approx(hit["score"], abs=0.002)


def test_reading_it_names_its_successor(workspace: Workspace) -> None:
    assert ask(workspace, "read_memory", filename="tokens")["superseded_by"] == ["memory:sessions"]
    assert "superseded_by" not in ask(workspace, "read_memory", filename="sessions")


def test_packs_leave_it_out_unless_asked(workspace: Workspace) -> None:
    for task in (None, "access tokens RS256"):
        pack = ask(workspace, "build_context", task=task)["context"]
        assert ".memories/tokens.md" not in pack
        whole = ask(workspace, "build_context", task=task, superseded=True)["context"]
        (line,) = [line for line in whole.splitlines() if ".memories/tokens.md" in line]
        assert line.endswith("superseded by memory:sessions")


def test_where_there_is_room_for_one_it_is_the_successor(workspace: Workspace) -> None:
    assert [hit["memory_id"] for hit in hits(workspace, limit=1)] == ["memory:sessions"]


def test_recall_leaves_it_out_unless_asked_and_says_so(workspace: Workspace) -> None:
    for query in (None, "access tokens RS256"):
        answer = ask(workspace, "recall", query=query)
        paths = [memory["path"] for memory in answer["result"]]
        assert ".memories/tokens.md" not in paths
        assert ".memories/sessions.md" in paths
        assert any("memory:tokens for memory:sessions" in note for note in answer["notes"])
        assert len(ask(workspace, "recall", query=query, limit=2)["result"]) == 2
        everything = ask(workspace, "recall", query=query, superseded=True)["result"]
        by_path = {memory["path"]: memory for memory in everything}
        assert by_path[".memories/tokens.md"]["superseded_by"] == ["memory:sessions"]


def test_a_pack_has_the_successor_only(workspace: Workspace) -> None:
    sections = workspace.packs.gather(task="access tokens signed with RS256").sections
    paths = [piece.path for section in sections for piece in section.pieces]
    assert ".memories/sessions.md" in paths
    assert ".memories/tokens.md" not in paths


def successors(workspace: Workspace, *names: str) -> dict[str, list[str]]:
    corpus = workspace.corpus("memory")
    documents = [document for document in corpus.documents() if document.path in names]
    found = Succession(corpus, NOW).successors(documents)
    return {name: [document.path for document in last] for name, last in found.items()}


def test_chains_are_followed_and_circles_say_nothing(project: Project) -> None:
    project.memory("a.md", "The first.\n\nsuperseded_by:: [[b]]\n")
    project.memory("b.md", "The second.\n")
    project.memory("c.md", "The third.\n\nsupersedes:: [[b]]\n")
    project.memory("x.md", "One.\n\nsupersedes:: [[y]]\n")
    project.memory("y.md", "Other.\n\nsupersedes:: [[x]]\n")
    project.memory("z.md", "Itself.\n\nsupersedes:: [[z]]\n")
    every = ("a.md", "b.md", "c.md", "x.md", "y.md", "z.md")
    assert successors(project.open(), *every) == {"memory:a": ["c.md"], "memory:b": ["c.md"]}


def test_a_name_that_several_have_supersedes_none_of_them(project: Project) -> None:
    for day in ("18", "19"):
        project.memory(f"2026-11-{day}-standup.md", "# Standup\n\nWhat we did.\n")
    project.memory("new.md", "No more of these.\n\nsupersedes:: [[standup]]\n")
    names = ("2026-11-18-standup.md", "2026-11-19-standup.md")
    assert successors(project.open(), *names) == {}


def test_a_successor_may_be_named_by_its_title(project: Project) -> None:
    project.memory("a.md", "The first.\n\nsuperseded_by:: [[The Second]]\n")
    project.memory("b.md", "# The Second\n\nThe second.\n")
    assert successors(project.open(), "a.md") == {"memory:a": ["b.md"]}


def test_an_archived_or_expired_memory_supersedes_nothing(project: Project) -> None:
    project.memory("a.md", "The first.\n")
    project.memory("b.md", "---\nstatus: archived\n---\nsupersedes:: [[a]]\n")
    project.memory("c.md", "---\nexpires_at: 2020-01-01\n---\nsupersedes:: [[a]]\n")
    assert successors(project.open(), "a.md") == {}


def test_a_name_that_is_a_path_means_that_memory_alone(project: Project) -> None:
    project.memory("plan.md", "The first.\n")
    project.memory("other.md", "---\ntitle: plan\n---\nAnother.\n")
    project.memory("new.md", "supersedes:: [[plan]]\n")
    found = successors(project.open(), "plan.md", "other.md")
    assert found == {"memory:plan": ["new.md"]}


# What each way of asking may call an index for, however many memories and links there are. A search
# makes four calls, and who supersedes its hits comes with them. Whoever reads an answer is told
# whether linked files have changed: one call more says which of the linked names are memories.
# `recall` shows the beginnings of texts, which it reads together. The newest are counted and listed.
# A linked search begins with the names of its target and ends with what the query did not find.
FLAGS = 1
SEARCH = 4
CALLS: dict[str, tuple[dict[str, object], int]] = {
    "search_memories": ({"query": "access tokens RS256", "limit": 50}, SEARCH + FLAGS),
    "recall": ({"query": "access tokens RS256", "limit": 50}, SEARCH + FLAGS + 1),
    "recall the newest": ({"limit": 10}, 5 + FLAGS),
    "search_linked_memories": (
        {"query": "access tokens", "target_document": "src/auth.py"},
        1 + SEARCH + 1 + FLAGS,
    ),
}


def test_a_search_names_successors_within_its_four_calls(project: Project) -> None:
    project.memory("old.md", "Access tokens RS256.\n")
    project.memory("new.md", "Something else.\n\nsupersedes:: [[old]]\n")
    project.memory("newest.md", "Nothing alike.\n\nsupersedes:: [[new]]\n")
    memories = project.open().memories
    calls: Counter[str] = Counter()
    memories.corpus.index = cast("Index", Counting(memories.corpus.index, calls))
    findings = memories.search("access tokens RS256", 2)
    assert [hit.document.path for hit in findings.hits] == ["newest.md", "old.md"]
    assert calls.total() == SEARCH, calls


@pytest.mark.parametrize("verb", CALLS)
def test_calls_to_the_index_do_not_grow_with_the_memories(project: Project, verb: str) -> None:
    for number in range(20):
        body = f"Access tokens RS256 number {number} of [[src/auth.py]].\n"
        project.memory(f"old-{number}.md", f"# Old {number}\n\n{body}")
        link = f"- supersedes:: [[old-{number}]]\n"
        project.memory(f"new-{number}.md", f"# New {number}\n\n{body}\n{link}")
    workspace = project.open()
    corpus = workspace.corpus("memory")
    calls: Counter[str] = Counter()
    corpus.index = cast("Index", Counting(corpus.index, calls))
    arguments, most = CALLS[verb]
    assert ask(workspace, verb.removesuffix(" the newest"), **arguments)["result"]
    assert calls.total() <= most, calls
