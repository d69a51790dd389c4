"""Entries: one file for one content, ids that stay.

A search in which importance orders near equals, a daily log.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
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
from tests.asking import ask

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.search.rank import DOUBT_REACH, IMPORTANCE_REACH
from ragdocs.stores.access import SqliteAccessLog
from ragdocs.verbs.memories.entries import MOST_EARNED, earned
from ragdocs.verbs.memories.entry_rules import NewEntry, Wanted

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.verbs.memories.entries import Entries
    from ragdocs.verbs.memories.entry_outcomes import AddedEntry, EntryDetails
    from ragdocs.workspace import Workspace

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
ADD = """
import sys, time, pathlib
from ragdocs import config
from ragdocs.verbs.memories.entry_rules import NewEntry
from ragdocs.workspace import Workspace
root, go = map(pathlib.Path, sys.argv[1:])
flags = {"embedding.model": "none", "memory.enabled": True}
verbs = Workspace(config.load(root, project=root, flags=flags)).entries
print("ready", flush=True)
while not go.exists():
    time.sleep(0.001)
for n in range(5):
    added = verbs.add(NewEntry(content=f"The deploy key number {n} is kept in the vault"))
    print(added.id, added.written is not None)
"""
DARK = "User prefers dark mode in the editor"
BUILD = "The build server was replaced on Monday"
ALICE = "Alice reports to Bob"


def add(workspace: Workspace, content: str, **fields: Any) -> AddedEntry:
    return workspace.entries.add(NewEntry(content=content, **fields))


def found(workspace: Workspace, query: str, *arguments: Any, **named: Any) -> list[str]:
    findings = workspace.entries.search(query, *arguments, **named)
    return [entry.hit.chunk.text for entry in findings.entries]


def read(workspace: Workspace, entry_id: str) -> EntryDetails:
    details = workspace.entries.get(entry_id).details
    assert details is not None
    return details


def files(project: Project) -> list[str]:
    paths = (project.root / ".memories").rglob("*.md")
    return sorted(path.name for path in paths if ".daily" not in path.parts)


def stamps(project: Project) -> dict[Path, int]:
    paths = (project.root / ".memories").rglob("*")
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


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
    assert added.id == f"mem_{digest[:12]}"
    assert added.written
    assert (added.written.removed, added.written.notes) == ((), ())
    text = (project.root / f".memories/entries/{added.id}.md").read_text()
    assert text == (
        "---\ntype: preference\nstatus: active\ntags: [ui, theme]\n"
        f"created_at: '2026-11-16T12:00:00Z'\nid: {added.id}\nimportance: 7\nconfidence: 0.9\n"
        "source: chat\ncontext: said while setting up\n"
        "expires_at: '2027-01-31T08:00:00Z'\n---\n\nUser prefers dark mode\n"
    )
    (hit,) = workspace.memories.search("dark mode").hits
    assert (hit.document.kind, hit.document.problems) == ("preference", ())


def test_the_same_content_again_returns_its_id_and_writes_nothing(project: Project) -> None:
    workspace = project.open()
    first = add(workspace, "Same words")
    before = stamps(project)
    for again in ("{}", "{}\n", "\n{}  \r\n", "  {}\t", " \n\t\n {}"):
        second = add(workspace, again.format("Same words"), kind="task", importance=9)
        assert (second.id, second.written) == (first.id, None)
    assert stamps(project) == before


def test_a_duplicate_names_the_fields_that_were_not_taken_over(project: Project) -> None:
    workspace = project.open()
    add(workspace, "Same words", importance=3, tags=["ui"], kind="task")
    assert add(workspace, "Same words").differing == [], "nothing was said about the fields"
    same = add(workspace, "Same words", importance=3, tags=["UI"], kind="task")
    assert same.differing == []
    arguments = {
        "content": "Same words",
        "entryType": "event",
        "importance": 9,
        "confidence": 0.5,
        "tags": ["ui", "theme"],
        "context": f"with {TOKEN}",
        "expiresAt": "2027-01-31T09:00:00Z",
    }
    answer = ask(workspace, "memory_add", **arguments)
    (note,) = answer["warnings"]
    fields = ("type event (it has task)", "importance 9 (it has 3", "confidence 0.5")
    for part in (*fields, "theme", "context", "2027-01", "unchanged"):
        assert part in note
    assert TOKEN not in note
    assert read(workspace, answer["id"]).card.importance == 3


@pytest.mark.parametrize("how", ["archived", "expired", "deleted"])
def test_content_of_an_entry_that_nobody_finds_is_live_again(project: Project, how: str) -> None:
    expiry = {"expires_at": "2026-11-16T13:00:00Z"}
    first = add(project.open(), "Zebras graze", importance=3, tags=["animals"], **expiry)
    path = Path(first.location)
    if how == "archived":
        text = path.read_text().replace("status: active", "status: archived\nreviewer: Ada")
        path.write_text(text)
    elif how == "expired":
        project.clock = lambda: NOW + timedelta(days=2)
    else:
        assert project.open().entries.delete(first.id).moved_to
    is_deleted = how == "deleted"
    workspace = project.open()
    assert found(workspace, "zebras") == []
    again = add(workspace, "Zebras graze", importance=8)
    assert again.written
    assert (again.id, again.revived) == (first.id, "" if is_deleted else how)
    assert found(workspace, "zebras") == ["Zebras graze"]
    card = read(workspace, first.id).card
    assert (card.importance, card.document.expires_at) == (8, None)
    assert card.document.tags == (() if is_deleted else ("animals",))
    assert ("reviewer: Ada" in path.read_text()) == (how == "archived")
    assert workspace.versions.history(first.id).total == 1


def test_the_first_line_of_an_entry_keeps_its_indent(project: Project) -> None:
    workspace = project.open()
    added = add(workspace, "\n    x = 1\n    y = 2\n")
    assert read(workspace, added.id).content == "    x = 1\n    y = 2"
    assert add(workspace, "x = 1\n    y = 2").written is None


def test_content_that_was_corrected_by_hand_can_be_added_again_under_another_id(
    project: Project,
) -> None:
    first = add(project.open(), "The port is 8080")
    path = Path(first.location)
    path.write_text(path.read_text().replace("8080", "9090"))
    other = add(project.open(), "The port is 8080")
    assert other.written
    assert other.id != first.id
    assert add(project.open(), "The port is 8080").id == other.id
    assert sorted(found(project.open(), "port")) == ["The port is 8080", "The port is 9090"]


def test_eight_processes_that_add_the_same_make_one_file_each_and_one_is_told_so(
    project: Project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (project.root / ".memories").mkdir()
    command = [sys.executable, "-c", ADD, str(project.root), str(go)]
    crowd = []
    for _ in range(8):
        crowd.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ))
    for process in crowd:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    go.touch()
    answers = [process.communicate(timeout=60)[0].splitlines() for process in crowd]
    assert len(files(project)) == 5
    for same in zip(*answers, strict=True):
        ids, created = zip(*map(str.split, same), strict=True)
        assert len(set(ids)) == 1
        assert sorted(created) == 7 * ["False"] + ["True"]
    log = next((project.root / ".memories/.daily").glob("*.md")).read_text().splitlines()
    assert log[0].startswith("# 2")
    assert (log[1], len(log)) == ("", 7)
    line = re.compile(r"- \*\*\d\d:\d\d:\d\d\*\* \[fact\] \(manual\) The deploy key .*")
    assert all(map(line.fullmatch, log[2:]))


REFUSED: list[tuple[str, Any, str]] = [
    ("content", " \n", "content is empty"),
    ("kind", "journal", "'journal' is not a type of entry"),
    ("importance", 0, "importance is 0"),
    ("importance", 11, "importance is 11"),
    ("confidence", 1.01, "confidence is 1.01"),
    ("confidence", float("nan"), "confidence is nan"),
    ("tags", ["a\nb"], "a tag is not one short line"),
    ("source", "x" * 101, "source is longer"),
    ("context", "x" * 2001, "context is longer"),
    ("context", "a\0b", "context holds characters"),
    ("expires_at", "next week", "is not a time"),
    ("expires_at", "2026-11-16T12:00:00Z", "which is in the past"),
    ("expires_at", 1_900_000_000, "which is in the past"),
    ("expires_at", 10**30, "is not a time"),
    ("expires_at", "0001-01-01T00:00:00+14:00", "is not a time"),
]


def test_what_cannot_be_meant_is_refused_and_nothing_is_written(project: Project) -> None:
    entries = project.open().entries
    for field, value, complaint in REFUSED:
        with pytest.raises(ValidationError, match=re.escape(complaint)):
            entries.add(NewEntry(**{"content": "words", field: value}))
    assert files(project) == []
    for mode, limit, wanted in (
        ("fuzzy", 10, Wanted()),
        ("hybrid", 0, Wanted()),
        ("hybrid", 10, Wanted(kinds=("journal",))),
        ("hybrid", 10, Wanted(min_importance=11)),
        ("hybrid", 10, Wanted(min_confidence=-0.1)),
    ):
        with pytest.raises(ValidationError):
            entries.search("words", mode, limit, wanted)


def test_a_secret_reaches_neither_entry_nor_log_nor_database(
    project: Project, own_directories: Path
) -> None:
    workspace = project.open()
    content = f"Deploys use {TOKEN} for now"
    added = add(workspace, content, source=f"shell {TOKEN}", context=f"key {TOKEN}")
    assert added.written
    assert any("line 1 of the content" in rule for rule in added.written.removed)
    # The digest is that of what is kept, so the secret cannot be guessed from the id either.
    assert add(workspace, content).written is None
    workspace.entries.search(f"who uses {TOKEN}")
    assert isinstance(workspace.access, SqliteAccessLog)
    assert workspace.access.recent()
    for root in (project.root, own_directories):
        for path in root.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


# --- finding ---


@pytest.fixture
def themes(project: Project) -> Workspace:
    workspace = project.open()
    add(workspace, DARK, kind="preference", importance=7, tags=["ui"])
    add(workspace, BUILD, kind="event", confidence=0.4, context="infra retro")
    add(workspace, ALICE, kind="relationship", importance=2, tags=["People"])
    return workspace


def test_a_search_by_words_alone_brings_in_nothing_by_links(themes: Workspace) -> None:
    add(themes, "Zebra crossing, see [[other]]")
    themes.memories.create("other.md", "Nothing about it.", [])
    assert found(themes, "zebra", "keyword") == ["Zebra crossing, see [[other]]"]
    assert "Nothing about it." in found(themes, "zebra", limit=50)


def test_context_and_tags_are_searched_and_context_is_not_part_of_the_content(
    themes: Workspace,
) -> None:
    assert found(themes, "retro", "keyword") == [BUILD]
    assert found(themes, "people", "keyword") == [ALICE]
    entry = themes.entries.search("monday infra", "keyword").entries[0]
    assert (entry.hit.chunk.text, entry.card.context) == (BUILD, "infra retro")
    hit = ask(themes, "search_memories", query="retro")["result"][0]
    assert hit["content"] == f"Context: infra retro\n\n{BUILD}"
    assert not hit["lines"].startswith("1-")
    text = ask(themes, "read_memory", filename=hit["file_path"], lines=hit["lines"])
    assert text["content"].splitlines()[-1] == BUILD


def test_filters_keep_what_was_asked_for(themes: Workspace) -> None:
    assert found(themes, "the", limit=50, wanted=Wanted(kinds=("event",))) == [BUILD]
    assert found(themes, "user", limit=50, wanted=Wanted(min_importance=6)) == [DARK]
    assert found(themes, "alice", limit=50, wanted=Wanted(tags=("people",))) == [ALICE]
    certain = found(themes, "server editor bob", limit=50, wanted=Wanted(min_confidence=0.5))
    assert set(certain) == {DARK, ALICE}
    for nothing in (found(themes, "user", wanted=Wanted(kinds=("task",))), found(themes, " ")):
        assert nothing == []


def test_without_embeddings_words_are_searched_and_meaning_is_refused(project: Project) -> None:
    workspace = project.open(**{"embedding.model": "none"})
    add(workspace, "User prefers dark mode")
    findings = workspace.entries.search("dark")
    assert [entry.matched_by for entry in findings.entries] == ["keyword"]
    assert "semantic search is switched off" in findings.notes[0]
    with pytest.raises(UnavailableError, match="needs embeddings"):
        workspace.entries.search("dark", "vector")


def test_the_weight_of_meaning_is_configurable(project: Project, themes: Workspace) -> None:
    add(themes, "dark dark dark dark")
    for weight, matched in ((0.0, "keyword"), (0.7, "both"), (1.0, "vector")):
        workspace = project.open(**{"memory.entries_vector_weight": weight})
        assert workspace.entries.search("dark mode").entries[0].matched_by == matched


def test_an_entry_is_called_by_its_first_words(project: Project) -> None:
    workspace = project.open()
    title = "The nightly job that resets the staging database also rotates the logs and then"
    add(workspace, f"{title} mails a summary to everyone", context="not this")
    add(workspace, "Short words\n\nand more")
    titles = {document.title for document in workspace.corpus("memory").documents()}
    assert titles == {"Short words", f"{title}…"}


# --- importance ---


RELEVANCE = [
    "The staging database is reset every night by a job",
    "The staging server has no backups",
    "A database of recipes was begun in spring",
    "Release notes are written in the present tense",
    "Alice prefers tea to coffee",
]


def scores(entries: Entries, query: str) -> dict[str, float]:
    findings = entries.search(query, limit=50)
    return {entry.card.id: entry.hit.score for entry in findings.entries}


def written(project: Project, number: int, text: str, importance: float, confidence: float) -> str:
    own_id = f"mem_{number:012x}"
    weight = f"importance: {importance}\nconfidence: {confidence}\n"
    head = f"id: {own_id}\n{weight}created_at: '2026-01-01T00:00:00Z'\n"
    project.memory(f"entries/{own_id}.md", f"---\n{head}---\n\n{text}\n")
    return own_id


def test_importance_confidence_and_use_order_equals(project: Project) -> None:
    plain = written(project, 1, RELEVANCE[0], 5, 1.0)
    doubtful = written(project, 2, RELEVANCE[0], 5, 0.2)
    important = written(project, 3, RELEVANCE[0], 9, 1.0)
    used = written(project, 4, RELEVANCE[0], 5, 1.0)
    entries = project.open().entries
    before = scores(entries, "staging database reset")
    assert list(before) == [important, plain, used, doubtful]
    for _ in range(5):
        entries.get(used)
    assert scores(entries, "staging database reset") == before, "being found or read earns nothing"
    entries.get(used, used=True)
    assert list(scores(entries, "staging database reset")) == [important, used, plain, doubtful]


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_use_earns_more_and_more_slowly_up_to_a_bound(fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))
    assert 0 <= earned(fewer) <= earned(more) <= MOST_EARNED
    assert (earned(1), earned(3)) == (1, MOST_EARNED)


SAID = st.tuples(st.integers(-3, 30), st.floats(-1, 2, width=16), st.integers(0, 40))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(said=st.lists(SAID, min_size=5, max_size=5))
def test_nothing_that_is_said_or_done_lifts_an_irrelevant_entry_over_a_clearly_relevant_one(
    project: Project, tmp_path: Path, said: list[tuple[int, float, int]]
) -> None:
    ids = [written(project, number, text, 5, 1.0) for number, text in enumerate(RELEVANCE)]
    workspace = project.open()
    access = SqliteAccessLog(tmp_path / "uses.sqlite", secrets.token_hex(8))
    entries = replace(workspace.entries, access=access)
    query = "when is the staging database reset"
    before = scores(entries, query)
    for number, (importance, confidence, uses) in enumerate(said):
        written(project, number, RELEVANCE[number], importance, confidence)
        access.note("used", [(ids[number], None)] * uses, NOW)
    workspace.sync()
    workspace.embed()
    after = scores(entries, query)
    most, least = 1 + IMPORTANCE_REACH, (1 - IMPORTANCE_REACH * 4 / 5) * (1 - DOUBT_REACH)
    order = list(after)
    assert order[0] == ids[0]
    assert after.keys() == before.keys()
    for one, other in product(before, before):
        assert least * before[one] - 1e-6 <= after[one] <= most * before[one] + 1e-6
        if least * before[one] > most * before[other]:
            assert order.index(one) < order.index(other)


# --- ids ---


def test_an_id_survives_renaming_rebuilding_and_editing(project: Project) -> None:
    workspace = project.open()
    own_id = add(workspace, "User prefers dark mode", importance=7).id
    workspace.entries.get(own_id, used=True)
    workspace.save()
    memories = project.root / ".memories"
    moved = memories / "people/theme.md"
    moved.parent.mkdir()
    (memories / f"entries/{own_id}.md").rename(moved)
    assert add(project.open(), "User prefers dark mode").id == own_id
    assert files(project) == ["theme.md"]
    moved.write_text(moved.read_text().replace("dark mode", "a dark mode"))
    shutil.rmtree(memories / "indices")
    again = project.open()
    entry = read(again, own_id)
    assert (entry.card.id, entry.card.location) == (own_id, str(moved))
    assert entry.content == "User prefers a dark mode"
    assert entry.accesses == {"get": 1, "search": 0, "used": 1}
    assert again.entries.search("dark").entries[0].card.id == own_id
    assert again.entries.delete(own_id).moved_to
    assert not moved.exists()


def test_an_entry_whose_id_was_removed_by_hand_is_known_by_its_name(project: Project) -> None:
    added = add(project.open(), "User prefers dark mode")
    Path(added.location).write_text("User prefers dark mode\n")
    assert read(project.open(), added.id).content == "User prefers dark mode"
    assert add(project.open(), "User prefers dark mode").written is None


def test_what_is_not_there_is_told_and_no_error(themes: Workspace) -> None:
    names = ["mem_000000000000", "", "../../etc/passwd", "memory:nothing", "x" * 5000, "\0"]
    # Another process deleted this one.
    card = themes.entries.search("dark").entries[0].card
    Path(card.location).unlink()
    for name in (*names, card.id):
        answer = ask(themes, "memory_get", id=name)
        assert (answer["found"], answer["entry"]) == (False, None)
        deleted = ask(themes, "memory_delete", id=name)
        assert (deleted["deleted"], deleted["movedTo"]) == (False, "")
        for text in (answer["message"], deleted["message"]):
            assert "there is no entry" in text
            assert len(text) < 200


def test_statistics_count_types_averages_accesses_and_ages(
    project: Project, themes: Workspace
) -> None:
    nothing = type(project)(project.root.parent).open().entries.stats()
    assert (nothing.total, nothing.oldest, nothing.mean_importance) == (0, None, 0)
    card = themes.entries.search("dark", limit=1).entries[0].card
    themes.entries.get(card.id)
    themes.entries.get(card.id, used=True)
    assert ask(themes, "memory_stats") == {
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


# --- time ---


def test_an_entry_leaves_search_at_the_second_it_expires(project: Project) -> None:
    moment = NOW + timedelta(hours=1)
    content, over = "The demo password changes at one", int(moment.timestamp() * 1000)
    own_id = add(project.open(), content, expires_at=over).id
    moments = (moment - timedelta(microseconds=1), moment, moment + timedelta(days=1))
    for clock, seen in zip(moments, (1, 0, 0), strict=True):
        project.clock = lambda clock=clock: clock  # type: ignore[misc]
        workspace = project.open()
        for mode in ("hybrid", "vector", "keyword"):
            assert len(found(workspace, "demo password", mode)) == seen
        assert read(workspace, own_id).is_expired is (not seen)
        message = ask(workspace, "memory_get", id=own_id)["message"]
        assert ("it expired" in message) is (not seen)
        assert workspace.entries.stats().expired == 1 - seen


def test_what_is_over_goes_to_the_trash_when_asked_and_the_rest_stays(project: Project) -> None:
    workspace = project.open()
    over = add(workspace, "Over soon", expires_at="2026-11-16T12:00:01Z").id
    add(workspace, "Over later", expires_at="2026-11-16T13:00:00Z")
    add(workspace, "Never over")
    extended = add(workspace, "Extended by hand", expires_at="2026-11-16T12:00:01Z").location
    project.clock = lambda: NOW + timedelta(seconds=1)
    workspace = project.open()
    listed = workspace.entry_care.expire(dry_run=True).memories
    assert {memory.beginning for memory in listed} == {"Over soon", "Extended by hand"}
    assert len(files(project)) == 4
    text = Path(extended).read_text().replace("12:00:01Z", "18:00:00Z")
    Path(extended).write_text(text)
    expiry = workspace.entry_care.expire()
    (memory,) = expiry.memories
    assert (memory.id, memory.expired_at) == (over, NOW + timedelta(seconds=1))
    assert "stays" in expiry.notes[0]
    assert Path(memory.moved_to).read_text().endswith("Over soon\n")
    assert Path(extended).exists()
    assert project.open().entry_care.expire().memories == []


def test_a_review_names_old_unused_and_superseded_entries_and_changes_nothing(
    project: Project,
) -> None:
    def at(days: float) -> Workspace:
        project.clock = lambda: NOW - timedelta(days=days)
        return project.open()

    old = add(at(400), "Invoices are sent by post on the first of the month").id
    needed = add(at(300), "Alice leads the platform team").id
    superseded = add(at(20), "The staging database is reset every night at two").id
    newer = add(at(10), "The staging database is reset every night at three").id
    add(at(10), "The staging database is reset every night at four", kind="task")
    text = "---\ncreated_at: 2020-01-01\n---\n\nNobody counts who reads this.\n"
    project.memory("hand-written.md", text)
    workspace = at(0)
    workspace.entries.get(needed)
    before = files(project)
    review = ask(workspace, "review_memories")
    reasons = {entry["id"]: entry["reasons"] for entry in review["result"]}
    assert reasons.keys() == {old, needed, superseded}
    assert reasons[old] == ["never used", "older than 180 days"]
    assert reasons[needed] == ["older than 180 days"]
    assert re.fullmatch(rf"superseded by {newer}, similarity 0\.\d\d", reasons[superseded][0])
    first = workspace.entry_care.review(limit=1)
    assert ([entry.id for entry in first.entries], first.omitted) == ([old], 2)
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
    title, blank, first, second = path.read_text().splitlines()
    assert (title, blank) == (f"# {local:%Y-%m-%d}", "")
    assert first == f"- **{moment}** [preference] (chat) User prefers dark mode"
    head = f"- **{moment}** [fact] (manual) "
    assert second.startswith(head)
    assert len(second) == len(head) + 200
    with path.open("a") as log:
        log.write("- **23:59:59** [fact] (manual) a quokka that nobody added\n")
    project.clock = lambda: NOW + timedelta(hours=24)
    again = project.open()
    assert again.memories.stats().count == 3
    assert found(again, "quokka", "keyword") == []
    assert again.open_lanes["memory"].store.relative(str(path)) is None
    add(again, "Entry of the next day")
    assert len(list(path.parent.glob("*.md"))) == 2


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
    assert added.written
    assert "not in the daily log" in added.written.notes[0]
    assert list(outside.iterdir()) == []


# --- files that are indexed by themselves ---


def test_a_file_above_the_cap_is_left_out_and_reported(project: Project) -> None:
    project.memory("small.md", "A wombat.\n")
    project.memory("large.md", "A wombat.\n" * 200)
    workspace = project.open(**{"watch.largest_kb": 1})
    assert found(workspace, "wombat") == ["A wombat."]
    lane = ask(workspace, "index_status")["lanes"][-1]
    assert "larger than 0.001 MB" in lane["problems"]["large.md"]
    with pytest.raises(ValidationError, match="larger than"):
        add(workspace, "x" * 2000)
    assert len(found(project.open(), "wombat")) == 2
