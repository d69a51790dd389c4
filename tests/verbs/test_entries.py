"""Entries: one file for one content, ids that stay.

A search in which importance orders near equals, a daily log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.search.rank import DOUBT_REACH, IMPORTANCE_REACH
from ragdocs.stores.access import SqliteAccessLog
from ragdocs.types import ENTRY_KINDS
from ragdocs.verbs.memories.entries import MOST_EARNED, earned
from ragdocs.verbs.memories.entry_rules import NewEntry, Wanted

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.verbs.memories.entries import Entries
    from ragdocs.workspace import Workspace

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
ADD = """
import json, sys, time, pathlib
from ragdocs import config
from ragdocs.verbs.memories.entry_rules import NewEntry
from ragdocs.workspace import Workspace
root, go = map(pathlib.Path, sys.argv[1:])
verbs = Workspace(config.load(root, project=root, flags={"embedding.model": "none", "memory.enabled": True})).entries
print("ready", flush=True)
while not go.exists():
    time.sleep(0.001)
answers = [verbs.add(NewEntry(content=f"The deploy key number {n} is kept in the vault")) for n in range(5)]
print(json.dumps(answers))
"""


def add(where: Workspace | Entries, content: str, **fields: Any) -> Any:
    verbs = where.entries if hasattr(where, "entries") else where
    return verbs.add(NewEntry(content=content, **fields))


def found(where: Workspace, query: str, *arguments: Any, **named: Any) -> list[str]:
    return [one["content"] for one in where.entries.search(query, *arguments, **named)["results"]]


def read(verbs: Entries, entry_id: str) -> Any:
    return verbs.get(entry_id)["entry"]


def files(project: Project) -> list[str]:
    return sorted(
        path.name
        for path in (project.root / ".memories").rglob("*.md")
        if ".daily" not in path.parts
    )


# --- adding ---


def test_an_entry_is_a_memory_named_by_the_digest_of_its_content(project: Project) -> None:
    workspace = project.open()
    added = add(
        workspace,
        "User prefers dark mode",
        kind="preference",
        source="chat",
        context="said while\nsetting up",
        confidence=0.9,
        importance=7,
        tags=["ui", "UI", "theme"],
        expires_at="2027-01-31T09:00:00+01:00",
    )
    digest = hashlib.sha256(b"User prefers dark mode").hexdigest()
    assert (added["id"], added["created"], added["duplicate"]) == (
        f"mem_{digest[:12]}",
        True,
        False,
    )
    assert added["warnings"] == []
    text = (project.root / f".memories/entries/{added['id']}.md").read_text()
    assert text == (
        "---\ntype: preference\nstatus: active\ntags: [ui, theme]\ncreated_at: '2026-11-16T12:00:00Z'\n"
        f"id: {added['id']}\nimportance: 7\nconfidence: 0.9\nsource: chat\ncontext: said while setting up\n"
        "expires_at: '2027-01-31T08:00:00Z'\n---\n\nUser prefers dark mode\n"
    )
    assert workspace.memories.search("dark mode")["result"][0]["type"] == "preference"
    assert workspace.places["memory"].index.documents()[0].problems == ()


@pytest.mark.parametrize(
    "again",
    ["Same words", "Same words\n", "\nSame words  \r\n", "  Same words\t", " \n\t\n Same words"],
)
def test_the_same_content_again_returns_its_id_and_writes_nothing(
    project: Project, again: str
) -> None:
    workspace = project.open()
    first = add(workspace, "Same words")
    before = {
        path: path.stat().st_mtime_ns
        for path in (project.root / ".memories").rglob("*")
        if path.is_file()
    }
    second = add(workspace, again, kind="task", importance=9)
    assert (second["id"], second["created"], second["duplicate"]) == (first["id"], False, True)
    after = {
        path: path.stat().st_mtime_ns
        for path in (project.root / ".memories").rglob("*")
        if path.is_file()
    }
    assert after == before


def test_a_duplicate_names_the_fields_that_were_not_taken_over(project: Project) -> None:
    workspace = project.open()
    add(workspace, "Same words", importance=3, tags=["ui"], kind="task")
    assert add(workspace, "Same words")["warnings"] == [], "nothing was said about the fields"
    assert add(workspace, "Same words", importance=3, tags=["UI"], kind="task")["warnings"] == []
    again = add(
        workspace,
        "Same words",
        kind="event",
        importance=9,
        confidence=0.5,
        tags=["ui", "theme"],
        context=f"with {TOKEN}",
        expires_at="2027-01-31T09:00:00Z",
    )
    (note,) = again["warnings"]
    for part in (
        "type event (it has task)",
        "importance 9 (it has 3",
        "confidence 0.5",
        "theme",
        "context",
        "2027-01",
    ):
        assert part in note
    assert "unchanged" in note
    assert TOKEN not in note
    assert read(workspace.entries, again["id"])["importance"] == 3


@pytest.mark.parametrize("how", ["archived", "expired"])
def test_content_of_an_entry_that_nobody_finds_is_live_again(project: Project, how: str) -> None:
    workspace = project.open()
    first = add(
        workspace, "Zebras graze", importance=3, tags=["animals"], expires_at="2026-11-16T13:00:00Z"
    )
    path = Path(first["path"])
    if how == "archived":
        path.write_text(
            path.read_text().replace("status: active", "status: archived\nreviewer: Ada")
        )
    else:
        project.clock = lambda: NOW + timedelta(days=2)
    workspace = project.open()
    assert found(workspace, "zebras") == []
    again = add(workspace, "Zebras graze", importance=8)
    assert (again["id"], again["created"], again["duplicate"]) == (first["id"], True, False)
    assert how in again["warnings"][0]
    assert "live again" in again["warnings"][0]
    assert found(workspace, "zebras") == ["Zebras graze"]
    entry = read(workspace.entries, first["id"])
    assert (entry["importance"], entry["tags"], entry["expiresAt"]) == (8, ["animals"], None)
    assert ("reviewer: Ada" in path.read_text()) == (how == "archived")
    assert len(workspace.corpus("memory").versioned.history(f"entries/{first['id']}.md")) == 1
    assert files(project) == [path.name]


def test_the_first_line_of_an_entry_keeps_its_indent(project: Project) -> None:
    workspace = project.open()
    added = add(workspace, "\n    x = 1\n    y = 2\n")
    assert read(workspace.entries, added["id"])["content"] == "    x = 1\n    y = 2"
    assert add(workspace, "x = 1\n    y = 2")["duplicate"]


def test_content_that_was_moved_elsewhere_is_still_the_same(project: Project) -> None:
    first = add(project.open(), "Same words")
    memories = project.root / ".memories"
    (memories / "people").mkdir()
    (memories / f"entries/{first['id']}.md").rename(memories / "people/theme.md")
    again = add(project.open(), "Same words")
    assert (again["id"], again["duplicate"]) == (first["id"], True)
    assert files(project) == ["theme.md"]


def test_content_that_was_corrected_by_hand_can_be_added_again_under_another_id(
    project: Project,
) -> None:
    workspace = project.open()
    first = add(workspace, "The port is 8080")
    path = Path(first["path"])
    path.write_text(path.read_text().replace("8080", "9090"))
    other = add(project.open(), "The port is 8080")
    assert other["created"]
    assert other["id"] != first["id"]
    assert add(project.open(), "The port is 8080")["id"] == other["id"]
    assert sorted(found(project.open(), "port")) == ["The port is 8080", "The port is 9090"]


def test_a_deleted_entry_may_be_added_again(project: Project) -> None:
    workspace = project.open()
    first = add(workspace, "Same words")
    assert workspace.entries.delete(first["id"])["deleted"]
    assert add(workspace, "Same words") == {**first, "created": True}


def test_eight_processes_that_add_the_same_make_one_file_each_and_one_is_told_so(
    project: Project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (project.root / ".memories").mkdir()
    command = [sys.executable, "-c", ADD, str(project.root), str(go)]
    crowd = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(8)
    ]
    for process in crowd:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    go.touch()
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in crowd]
    assert len(files(project)) == 5
    for same in zip(*answers, strict=True):
        assert len({one["id"] for one in same}) == 1
        assert sum(one["created"] for one in same) == 1
        assert sum(one["duplicate"] for one in same) == 7
        assert not any(one["warnings"] for one in same)
    log = next((project.root / ".memories/.daily").glob("*.md")).read_text().splitlines()
    assert log[0].startswith("# 2")
    assert log[1] == ""
    assert len(log) == 7
    assert all(
        re.fullmatch(r"- \*\*\d\d:\d\d:\d\d\*\* \[fact\] \(manual\) The deploy key .*", line)
        for line in log[2:]
    )


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": " \n"}, "content is empty"),
        ({"kind": "journal"}, "'journal' is not a type of entry"),
        ({"importance": 0}, "importance is 0"),
        ({"importance": 11}, "importance is 11"),
        ({"confidence": 1.01}, "confidence is 1.01"),
        ({"confidence": float("nan")}, "confidence is nan"),
        ({"tags": ["a\nb"]}, "a tag is not one short line"),
        ({"source": "x" * 101}, "source is longer"),
        ({"context": "x" * 2001}, "context is longer"),
        ({"context": "a\0b"}, "context holds characters"),
        ({"expires_at": "next week"}, "is not a time"),
        ({"expires_at": "2026-11-16T12:00:00Z"}, "which is over"),
        ({"expires_at": 1_900_000_000}, "which is over"),
        ({"expires_at": 10**30}, "is not a time"),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "is not a time"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    project: Project, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(complaint)):
        project.open().entries.add(NewEntry(**{"content": "words", **fields}))
    assert files(project) == []


def test_a_secret_reaches_neither_entry_nor_log_nor_database(
    project: Project, own_directories: Path
) -> None:
    workspace = project.open()
    added = add(
        workspace, f"Deploys use {TOKEN} for now", source=f"shell {TOKEN}", context=f"key {TOKEN}"
    )
    assert any("secret was replaced" in warning for warning in added["warnings"])
    # The digest is that of what is kept, so the secret cannot be guessed from the id either.
    assert add(workspace, f"Deploys use {TOKEN} for now")["duplicate"]
    workspace.entries.search(f"who uses {TOKEN}")
    assert workspace.access.recent()
    for root in (project.root, own_directories):
        for path in root.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


# --- finding ---


@pytest.fixture
def themes(project: Project) -> Workspace:
    workspace = project.open()
    add(
        workspace,
        "User prefers dark mode in the editor",
        kind="preference",
        importance=7,
        tags=["ui"],
    )
    add(
        workspace,
        "The build server was replaced on Monday",
        kind="event",
        confidence=0.4,
        context="infra retro",
    )
    add(workspace, "Alice reports to Bob", kind="relationship", importance=2, tags=["People"])
    return workspace


def test_every_mode_says_what_matched(themes: Workspace) -> None:
    for mode, matched in (("hybrid", "both"), ("vector", "vector"), ("keyword", "keyword")):
        answer = themes.entries.search("dark mode", mode)
        best = answer["results"][0]
        assert (best["content"], best["matchedBy"]) == (
            "User prefers dark mode in the editor",
            matched,
        )
        assert best["createdAt"] == NOW.timestamp() * 1000
        assert 0 < best["score"] <= 1
        assert answer["total"] >= len(answer["results"])
    assert found(themes, "dark mode", "keyword") == ["User prefers dark mode in the editor"]


def test_a_search_by_words_alone_brings_in_nothing_by_links(themes: Workspace) -> None:
    add(themes, "Zebra crossing, see [[other]]")
    themes.memories.create("other.md", "Nothing about it.", [])
    assert sorted(found(themes, "zebra", "keyword")) == ["Zebra crossing, see [[other]]"]
    linked = {
        one["content"]: one["matchedBy"]
        for one in themes.entries.search("zebra", limit=50)["results"]
    }
    assert "Nothing about it." in linked


def test_context_and_tags_are_searched_and_context_is_not_part_of_the_content(
    themes: Workspace,
) -> None:
    assert found(themes, "retro", "keyword") == ["The build server was replaced on Monday"]
    assert found(themes, "people", "keyword") == ["Alice reports to Bob"]
    both = themes.entries.search("monday infra", "keyword")["results"][0]
    assert (both["content"], both["context"]) == (
        "The build server was replaced on Monday",
        "infra retro",
    )
    hit = themes.memories.search("retro")["result"][0]
    assert hit["content"] == "Context: infra retro\n\nThe build server was replaced on Monday"
    first, last = map(int, hit["lines"].split("-"))
    shown = themes.memories.read(hit["file_path"].partition(".memories/")[2], hit["lines"])[
        "content"
    ]
    assert shown.splitlines()[-1] == "The build server was replaced on Monday"
    assert 1 < first < last


def test_filters_keep_what_was_asked_for(themes: Workspace) -> None:
    every = {"limit": 50}
    assert found(themes, "the", wanted=Wanted(kinds=("event",)), **every) == [
        "The build server was replaced on Monday"
    ]
    assert found(themes, "user", wanted=Wanted(min_importance=6), **every) == [
        "User prefers dark mode in the editor"
    ]
    assert found(themes, "alice", wanted=Wanted(tags=("people",)), **every) == [
        "Alice reports to Bob"
    ]
    certain = found(themes, "server editor bob", wanted=Wanted(min_confidence=0.5), **every)
    assert "The build server was replaced on Monday" not in certain
    assert len(certain) == 2
    none = themes.entries.search("user", wanted=Wanted(kinds=("task",)))
    assert none == {"results": [], "total": 0, "notes": []}


@pytest.mark.parametrize(
    "named",
    [
        {"mode": "fuzzy"},
        {"limit": 0},
        {"wanted": Wanted(kinds=("journal",))},
        {"wanted": Wanted(min_importance=11)},
        {"wanted": Wanted(min_confidence=-0.1)},
    ],
)
def test_a_search_that_cannot_be_meant_is_refused(themes: Workspace, named: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        themes.entries.search("words", **named)


@pytest.mark.parametrize(
    "query", ['"', "dark AND (", "*", "a:b~2^", "NEAR/3 -- '; DROP TABLE", "\\", "[[", "🙂" * 500]
)
def test_syntax_in_a_query_is_only_text(themes: Workspace, query: str) -> None:
    for mode in ("hybrid", "vector", "keyword"):
        assert isinstance(themes.entries.search(query, mode)["results"], list)
    assert found(themes, f"dark {query}", "keyword") == ["User prefers dark mode in the editor"]


def test_an_empty_query_finds_nothing(themes: Workspace) -> None:
    assert themes.entries.search(" ") == {"results": [], "total": 0, "notes": []}


def test_without_embeddings_words_are_searched_and_meaning_is_refused(project: Project) -> None:
    workspace = project.open(**{"embedding.model": "none"})
    add(workspace, "User prefers dark mode")
    answer = workspace.entries.search("dark")
    assert [one["matchedBy"] for one in answer["results"]] == ["keyword"]
    assert "semantic search is switched off" in answer["notes"][0]
    with pytest.raises(UnavailableError, match="needs embeddings"):
        workspace.entries.search("dark", "vector")


def test_the_weight_of_meaning_is_configurable(project: Project) -> None:
    workspace = project.open()
    add(workspace, "dark dark dark dark")
    add(workspace, "User prefers dark mode in the editor")
    for weight in (0.0, 0.7, 1.0):
        hit = project.open(**{"memory.entries_vector_weight": weight}).entries.search("dark mode")[
            "results"
        ][0]
        assert hit["matchedBy"] == {0.0: "keyword", 0.7: "both", 1.0: "vector"}[weight]


def test_memories_that_were_written_as_files_are_found_too(project: Project) -> None:
    project.memory("notes/theme.md", "# Theme\n\nThe dark palette was chosen.\n")
    hit = project.open().entries.search("palette")["results"][0]
    assert (hit["id"], hit["source"], hit["entryType"]) == (
        "memory:notes/theme",
        "file-index",
        "journal",
    )
    assert (hit["importance"], hit["confidence"]) == (5, 1)
    assert (
        read(project.open().entries, hit["id"])["content"]
        == "# Theme\n\nThe dark palette was chosen."
    )


def test_an_entry_is_called_by_its_first_words(project: Project) -> None:
    workspace = project.open()
    long = "The nightly job that resets the staging database also rotates the logs and then mails a summary to everyone"
    add(workspace, long, context="not this")
    add(workspace, "Short words\n\nand more")
    titles = {document.title for document in workspace.places["memory"].index.documents()}
    assert titles == {
        "Short words",
        "The nightly job that resets the staging database also rotates the logs and then…",
    }


# --- importance ---


RELEVANCE = [
    "The staging database is reset every night by a job",
    "The staging server has no backups",
    "A database of recipes was begun in spring",
    "Release notes are written in the present tense",
    "Alice prefers tea to coffee",
]


def ranked(project: Project, query: str) -> dict[str, float]:
    return {
        one["id"]: one["score"] for one in project.open().entries.search(query, limit=50)["results"]
    }


def written(project: Project, number: int, text: str, importance: float, confidence: float) -> str:
    own_id = f"mem_{number:012x}"
    head = f"id: {own_id}\nimportance: {importance}\nconfidence: {confidence}\ncreated_at: '2026-01-01T00:00:00Z'\n"
    project.memory(f"entries/{own_id}.md", f"---\n{head}---\n\n{text}\n")
    return own_id


def test_importance_confidence_and_use_order_equals(project: Project) -> None:
    said = ((1, 5, 1.0), (2, 5, 0.2), (3, 9, 1.0), (4, 5, 1.0))
    plain, doubtful, important, used = (
        written(project, number, RELEVANCE[0], importance, confidence)
        for number, importance, confidence in said
    )
    workspace = project.open()
    workspace.entries.get(used, used=True)
    assert list(ranked(project, "staging database reset")) == [important, used, plain, doubtful]


def test_being_found_or_read_earns_nothing(project: Project) -> None:
    first, second = (written(project, number, RELEVANCE[0], 5, 1.0) for number in (1, 2))
    before = ranked(project, "staging database")
    assert list(before) == [first, second]
    verbs = project.open().entries
    for _ in range(5):
        verbs.search("staging database")
        verbs.get(second)
    assert ranked(project, "staging database") == before
    verbs.get(second, used=True)
    assert list(ranked(project, "staging database")) == [second, first]


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_use_earns_more_and_more_slowly_up_to_a_bound(fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))
    assert 0 <= earned(fewer) <= earned(more) <= MOST_EARNED
    assert earned(1) == 1
    assert earned(3) == MOST_EARNED


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    said=st.lists(
        st.tuples(st.integers(-3, 30), st.floats(-1, 2, width=16), st.integers(0, 40)),
        min_size=5,
        max_size=5,
    )
)
def test_nothing_that_is_said_or_done_lifts_an_irrelevant_entry_over_a_clearly_relevant_one(
    project: Project, tmp_path: Path, said: list[tuple[int, float, int]]
) -> None:
    ids = [written(project, number, text, 5, 1.0) for number, text in enumerate(RELEVANCE)]
    workspace = project.open()
    plain, lifted = (
        replace(
            workspace.entries,
            access=SqliteAccessLog(tmp_path / "uses.sqlite", secrets.token_hex(8)),
        )
        for _ in range(2)
    )
    query = "when is the staging database reset"
    before = {one["id"]: one["score"] for one in plain.search(query, limit=50)["results"]}
    for number, (importance, confidence, uses) in enumerate(said):
        written(project, number, RELEVANCE[number], importance, confidence)
        lifted.access.note("used", [(ids[number], None)] * uses, NOW)
    workspace.sync()
    workspace.embed()
    after = {one["id"]: one["score"] for one in lifted.search(query, limit=50)["results"]}
    most, least = 1 + IMPORTANCE_REACH, (1 - IMPORTANCE_REACH * 4 / 5) * (1 - DOUBT_REACH)
    order = list(after)
    assert order[0] == ids[0]
    assert after.keys() == before.keys()
    for one, other in product(before, before):
        assert least * before[one] - 0.001 <= after[one] <= most * before[one] + 0.001
        if least * before[one] > most * before[other]:
            assert order.index(one) < order.index(other)


# --- ids ---


def test_an_id_survives_renaming_rebuilding_and_editing(project: Project) -> None:
    workspace = project.open()
    own_id = add(workspace, "User prefers dark mode", importance=7)["id"]
    workspace.entries.get(own_id, used=True)
    workspace.save()
    memories = project.root / ".memories"
    (memories / "people").mkdir()
    moved = memories / "people/theme.md"
    (memories / f"entries/{own_id}.md").rename(moved)
    moved.write_text(moved.read_text().replace("dark mode", "a dark mode"))
    for path in sorted((memories / "indices").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    again = project.open()
    entry = read(again.entries, own_id)
    assert (entry["id"], entry["content"], entry["path"]) == (
        own_id,
        "User prefers a dark mode",
        str(moved),
    )
    assert entry["accesses"] == {"get": 1, "search": 0, "used": 1}
    assert again.entries.search("dark")["results"][0]["id"] == own_id
    assert again.entries.delete(own_id)["deleted"]
    assert not moved.exists()


def test_an_entry_whose_id_was_removed_by_hand_is_known_by_its_name(project: Project) -> None:
    own_id = add(project.open(), "User prefers dark mode")["id"]
    path = project.root / f".memories/entries/{own_id}.md"
    path.write_text("User prefers dark mode\n")
    assert read(project.open().entries, own_id)["content"] == "User prefers dark mode"
    assert add(project.open(), "User prefers dark mode")["duplicate"]


@pytest.mark.parametrize(
    "own_id", ["mem_000000000000", "", "../../etc/passwd", "memory:nothing", "x" * 5000, "\0"]
)
def test_what_is_not_there_is_told_and_no_error(themes: Workspace, own_id: str) -> None:
    answer = themes.entries.get(own_id)
    assert (answer["found"], answer["entry"]) == (False, None)
    assert "there is no entry" in answer["message"]
    deleted = themes.entries.delete(own_id)
    assert (deleted["deleted"], deleted["movedTo"]) == (False, "")
    assert "there is no entry" in deleted["message"]


def test_an_entry_that_another_process_deleted_is_told_as_absent(themes: Workspace) -> None:
    hit = themes.entries.search("dark")["results"][0]
    Path(hit["path"]).unlink()
    assert not themes.entries.get(hit["id"])["found"]
    assert not themes.entries.delete(hit["id"])["deleted"]


def test_statistics_count_types_averages_accesses_and_ages(themes: Workspace) -> None:
    hit = themes.entries.search("dark", limit=1)["results"][0]
    themes.entries.get(hit["id"])
    themes.entries.get(hit["id"], used=True)
    assert themes.entries.stats() == {
        "total": 3,
        "byType": {"event": 1, "preference": 1, "relationship": 1},
        "averageImportance": 4.67,
        "averageConfidence": 0.8,
        "accesses": {"get": 1, "search": 1, "used": 1},
        "oldest": 1_794_830_400_000,
        "newest": 1_794_830_400_000,
        "expired": 0,
        "notes": [],
    }


def test_statistics_of_nothing_are_zero(project: Project) -> None:
    stats = project.open().entries.stats()
    assert (stats["total"], stats["byType"], stats["oldest"], stats["averageImportance"]) == (
        0,
        {},
        None,
        0,
    )


# --- time ---


def test_an_entry_leaves_search_at_the_second_it_expires(project: Project) -> None:
    moment = NOW + timedelta(hours=1)
    own_id = add(
        project.open(),
        "The demo password changes at one",
        expires_at=int(moment.timestamp() * 1000),
    )["id"]
    for clock, seen in (
        (moment - timedelta(microseconds=1), 1),
        (moment, 0),
        (moment + timedelta(days=1), 0),
    ):
        project.clock = lambda clock=clock: clock  # type: ignore[misc]
        workspace = project.open()
        for mode in ("hybrid", "vector", "keyword"):
            assert len(found(workspace, "demo password", mode)) == seen
        assert read(workspace.entries, own_id)["expired"] is (not seen)
        assert ("it expired" in workspace.entries.get(own_id)["message"]) is (not seen)
        assert workspace.entries.stats()["expired"] == 1 - seen


def test_what_is_over_goes_to_the_trash_when_asked_and_the_rest_stays(project: Project) -> None:
    workspace = project.open()
    over = add(workspace, "Over soon", expires_at="2026-11-16T12:00:01Z")["id"]
    add(workspace, "Over later", expires_at="2026-11-16T13:00:00Z")
    add(workspace, "Never over")
    extended = Path(add(workspace, "Extended by hand", expires_at="2026-11-16T12:00:01Z")["path"])
    project.clock = lambda: NOW + timedelta(seconds=1)
    workspace = project.open()
    listed = workspace.entry_care.expire(dry_run=True)
    assert {one["preview"] for one in listed["result"]} == {"Over soon", "Extended by hand"}
    assert listed["moved"] == 0
    assert len(files(project)) == 4
    extended.write_text(extended.read_text().replace("12:00:01Z", "18:00:00Z"))
    done = workspace.entry_care.expire()
    assert [(one["id"], one["expiredAt"]) for one in done["result"]] == [
        (over, "2026-11-16T12:00:01Z")
    ]
    assert done["moved"] == 1
    assert "stays" in done["notes"][0]
    assert Path(done["result"][0]["movedTo"]).read_text().endswith("Over soon\n")
    assert extended.exists()
    assert project.open().entry_care.expire()["result"] == []


def test_a_review_names_old_unused_and_superseded_entries_and_changes_nothing(
    project: Project,
) -> None:
    def at(days: float) -> Workspace:
        project.clock = lambda: NOW - timedelta(days=days)
        return project.open()

    old = add(at(400), "Invoices are sent by post on the first of the month")["id"]
    needed = add(at(300), "Alice leads the platform team")["id"]
    superseded = add(at(20), "The staging database is reset every night at two")["id"]
    newer = add(at(10), "The staging database is reset every night at three")["id"]
    add(at(10), "The staging database is reset every night at four", kind="task")
    project.memory(
        "hand-written.md", "---\ncreated_at: 2020-01-01\n---\n\nNobody counts who reads this.\n"
    )
    workspace = at(0)
    workspace.entries.get(needed)
    before = files(project)
    review = workspace.entry_care.review()
    reasons = {one["id"]: one["reasons"] for one in review["result"]}
    assert reasons.keys() == {old, needed, superseded}
    assert reasons[old] == ["never used", "older than 180 days"]
    assert reasons[needed] == ["older than 180 days"]
    assert re.fullmatch(rf"superseded by {newer}, similarity 0\.\d\d", reasons[superseded][0])
    assert review["result"][0]["id"] == old
    assert workspace.entry_care.review(limit=1)["omitted"] == 2
    assert files(project) == before


# --- the daily log ---


def test_the_daily_log_has_a_line_for_each_entry_that_is_never_found(project: Project) -> None:
    workspace = project.open()
    add(workspace, "User prefers\n\ndark mode", kind="preference", source="chat")
    add(workspace, "word " * 100)
    add(workspace, "What a file says", source="file-index")
    add(workspace, "word " * 100)
    local = NOW.astimezone()
    path = project.root / f".memories/.daily/{local:%Y-%m-%d}.md"
    moment = f"{local:%H:%M:%S}"
    lines = path.read_text().splitlines()
    assert lines[:3] == [
        f"# {local:%Y-%m-%d}",
        "",
        f"- **{moment}** [preference] (chat) User prefers dark mode",
    ]
    head = f"- **{moment}** [fact] (manual) "
    assert lines[3].startswith(head)
    assert len(lines[3]) == len(head) + 200
    assert len(lines) == 4
    path.write_text(
        path.read_text() + "- **23:59:59** [fact] (manual) a quokka that nobody added\n"
    )
    again = project.open()
    assert len(again.places["memory"].index.documents()) == 3
    assert found(again, "quokka", "keyword") == []
    assert again.places["memory"].store.relative(str(path)) is None


def test_a_day_ends_at_midnight_on_the_wall(project: Project) -> None:
    for hours in (0, 24):
        project.clock = lambda hours=hours: NOW + timedelta(hours=hours)  # type: ignore[misc]
        add(project.open(), f"Entry of hour {hours}")
    assert len(list((project.root / ".memories/.daily").glob("*.md"))) == 2


@pytest.mark.parametrize("trap", ["folder", "file"])
def test_a_log_that_leads_elsewhere_is_not_written_and_the_entry_is(
    project: Project, tmp_path: Path, trap: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    daily = project.root / ".memories/.daily"
    daily.parent.mkdir()
    if trap == "folder":
        daily.symlink_to(outside)
    else:
        daily.mkdir()
        (daily / f"{NOW.astimezone():%Y-%m-%d}.md").symlink_to(outside / "victim")
    added = add(project.open(), "Words")
    assert added["created"]
    assert "not in the daily log" in added["warnings"][0]
    assert list(outside.iterdir()) == []


# --- files that are indexed by themselves ---


def test_a_file_above_the_cap_is_left_out_and_reported(project: Project) -> None:
    project.memory("small.md", "A wombat.\n")
    project.memory("large.md", "A wombat.\n" * 200)
    workspace = project.open(**{"watch.largest_kb": 1})
    assert [hit["id"] for hit in workspace.entries.search("wombat")["results"]] == ["memory:small"]
    assert "larger than 0.001 MB" in workspace.status()["lanes"][-1]["problems"]["large.md"]
    with pytest.raises(ValidationError, match="larger than"):
        add(workspace, "x" * 2000)
    assert len(project.open().entries.search("wombat")["results"]) == 2


def test_every_type_of_entry_is_a_known_type_of_memory(project: Project) -> None:
    for kind in ENTRY_KINDS:
        project.memory(f"{kind}.md", f"---\ntype: {kind}\n---\n\nWords.\n")
    assert all(
        not document.problems for document in project.open().places["memory"].index.documents()
    )
