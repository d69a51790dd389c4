"""An id that an answer contains is an id that every tool takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

TOOLSETS = "docs,memory,recall,edit,entries,repo,quality"
# Fields of answers that name a memory.
NAMES = {"id", "memory_id", "filename", "path", "file_path", "previous"}


@pytest.fixture
def session(project: Project, connect: Connect) -> Session:
    for number in range(2):
        text = f"# Plan {number}\n\nThe zebra plan says that stripes are drawn before the hooves are.\n"
        project.memory(f"plans/zebra-{number}.md", text)
    project.doc("guide.md", "# Guide\n\nA zebra guide.\n")
    opened: Session = connect(**{"server.toolsets": TOOLSETS, "watch.enabled": False})
    return opened.settle()


def named(answer: Any) -> Iterator[str]:
    """Yield every value of the fields that name a memory."""
    if isinstance(answer, list):
        for value in answer:
            yield from named(value)
    elif isinstance(answer, dict):
        for field, value in answer.items():
            if field in NAMES and isinstance(value, str):
                yield value
            else:
                yield from named(value)


def answers(session: Session) -> dict[str, set[str]]:
    """Make a memory in every way there is, ask for it in every way.

    And return the names that each answer gives it.
    """
    session.call("create_memory", filename="auth.md", content="# Auth\n\nquagga tokens", tags=[])
    remembered = session.call("remember", content="quokka remembered")
    added = session.call("memory_add", content="numbat added")
    decided = session.call("upsert_decision", summary="Okapi first", rationale="okapi reasons")
    noted = session.call("upsert_note", content="tapir noted")
    session.settle()
    found: dict[str, set[str]] = {
        "quagga": {"auth", "auth.md", ".memories/auth.md", "ragdocs://memory/auth.md"}
    }
    made = {"quokka": remembered, "numbat": added, "okapi": decided, "tapir": noted}
    for word in ("quagga", *made):
        names = found.setdefault(word, set())
        names |= set(named(made.get(word, {})))
        names |= set(named(session.call("search_memories", query=word, limit=1)))
        names |= set(named(session.call("memory_search", query=word, limit=1)))
        names |= set(named(session.call("recall", query=word, limit=1)))
        for name in list(names):
            names |= set(named(session.call("read_memory", filename=name)))
    found["okapi"] |= set(named(session.call("get_repo_memory", kind="decision")))
    found["tapir"] |= set(named(session.call("get_repo_memory", kind="note")))
    return found


def test_every_name_in_an_answer_is_taken_by_every_tool(session: Session) -> None:
    for word, names in answers(session).items():
        assert len(names) >= 3, names
        for name in sorted(names):
            assert word in session.call("read_memory", filename=name)["content"], name
            found = session.call("memory_get", id=name)
            assert found["found"], name
            assert word in found["entry"]["content"], name
            appended = session.call("append_memory", filename=name, content="more")
            assert word in session.call("read_memory", filename=appended["filename"])["content"]
            edited = session.call("edit_memory", filename=name, text="most", find="more")
            assert session.call("restore_memory", filename=name)["filename"] == edited["filename"]
            assert (
                session.call("memory_history", filename=name)["result"][0]["filename"]
                == edited["filename"]
            )
            before = session.call("read_memory", filename=name)["content"]
            session.call("update_memory", filename=name, content=before.replace("more", ""))
            session.call("search_linked_memories", query=word, target_document=name)


def test_every_name_is_taken_by_the_tools_that_remove(session: Session) -> None:
    for word, names in answers(session).items():
        for name in sorted(names):
            deleted = session.call("delete_memory", filename=name)["filename"]
            assert session.call("restore_memory", filename=name)["filename"] == deleted, name
            assert session.call("memory_delete", id=name)["deleted"], name
            removed = session.call(
                "delete_memory", filename=session.call("restore_memory", filename=name)["filename"]
            )
            assert (
                session.call("restore_memory", filename=removed["moved_to"])["filename"] == deleted
            ), name
            renamed = session.call("rename_memory", filename=name, new_name=".memories/moved.md")
            assert renamed["previous"] == deleted
            session.call("rename_memory", filename="memory:moved", new_name=renamed["previous"])
            merged = session.call(
                "merge_memories",
                source_files=[name],
                target_file=name,
                summary_content=f"{word} merged",
            )
            assert merged["filename"] == deleted
            session.call("restore_memory", filename=deleted)


def test_an_item_of_the_repository_is_taken_by_its_id_and_by_its_path(session: Session) -> None:
    names = answers(session)["okapi"]
    for name in sorted(names):
        found = session.call("get_repo_memory", kind="decision", id=name)
        assert [item["summary"] for item in found["decisions"]] == ["Okapi first"], name
        changed = session.call(
            "upsert_decision", summary="Okapi first", rationale=f"by {len(name)}", id=name
        )
        assert not changed["created"], name
        assert session.call("delete_repo_memory", kind="decision", id=name)["deleted"], name
        session.call("restore_memory", filename=changed["path"])


def test_links_mean_a_memory_by_any_of_its_names(project: Project, session: Session) -> None:
    own_id = session.call("remember", content="quokka remembered")["id"]
    session.call("create_memory", filename="auth.md", content="# Auth\n\nquagga", tags=[])
    session.call("create_memory", filename="l1.md", content="see [[memory:auth]]", tags=[])
    session.call("create_memory", filename="l2.md", content="see [[.memories/auth.md]]", tags=[])
    session.call("create_memory", filename="l3.md", content=f"see [[{own_id}]]", tags=[])
    root = project.root / ".memories"
    for target in ("auth", "auth.md", "memory:auth", ".memories/auth.md", str(root / "auth.md")):
        linked = session.call("search_linked_memories", query="see", target_document=target)[
            "result"
        ]
        assert {hit["memory_id"] for hit in linked} == {"memory:l1", "memory:l2"}, target
    recalled = session.call("recall", query="quokka", limit=1)["result"][0]
    for target in (own_id, recalled["path"], str(project.root / recalled["path"])):
        linked = session.call("search_linked_memories", query="see", target_document=target)[
            "result"
        ]
        assert [hit["memory_id"] for hit in linked] == ["memory:l3"], target
    renamed = session.call("rename_memory", filename=own_id, new_name="quokka.md")
    assert renamed["links"] == 0, "the id stays with the memory"
    renamed = session.call("rename_memory", filename="auth", new_name="login.md")
    assert set(renamed["files"]) == {"l1.md", "l2.md"}
    assert "[[login.md]]" in (root / "l2.md").read_text(encoding="utf-8")


def test_a_copied_memory_is_not_mistaken_for_the_one_it_was_copied_from(
    project: Project, connect: Connect
) -> None:
    text = "---\nid: mem_0123456789ab\n---\n\ncopied words\n"
    project.memory("a.md", text)
    project.memory("b.md", text)
    session = connect(**{"server.toolsets": TOOLSETS, "watch.enabled": False})
    message = session.error("delete_memory", filename="mem_0123456789ab")
    assert "a.md, b.md" in message
    assert session.call("delete_memory", filename="b")["filename"] == "b.md"
    assert session.call("read_memory", filename="mem_0123456789ab")["filename"] == "a.md"


def test_a_document_is_read_by_every_name_of_it(project: Project, session: Session) -> None:
    hit = session.call("search_docs", query="zebra guide")["result"][0]
    path = str(project.root / "docs/guide.md")
    for name in (
        hit["path"],
        "docs/guide",
        "docs:docs/guide",
        "./docs/guide.md",
        path,
        "ragdocs://docs/docs/guide.md",
    ):
        assert session.call("read_doc", path=name)["path"] == "docs/guide.md", name
        assert session.call("read_doc", path=f"{name}#guide")["content"].startswith("# Guide"), name
