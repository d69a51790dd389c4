"""Memories come from other tools and go to them: once, whole, and without secrets."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import NOW, Project

from ragdocs.errors import ParseError, RagdocsError
from ragdocs.serve.cli import app
from ragdocs.stores.files.history import version_of
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Expect, Put
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.detect import READERS, WRITERS, detect
from ragdocs.verbs.exchange.exporting import Export, ExportReport
from ragdocs.verbs.exchange.formats import FORMATS, READABLE, WRITABLE
from ragdocs.verbs.exchange.importing import Import, ImportReport
from ragdocs.verbs.exchange.json_lines import FORMAT
from ragdocs.verbs.exchange.note import KEPT, NEW, PRESENT, REFUSED
from ragdocs.workspace import Workspace

# Put together here, so that no scanner takes it for a leak.
SECRET = "ghp_" + "k7Qz2mXw9Rt4Lp8Vb3Nc6Yd1Hs5Jf0Ga" + "Ue4T"


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def a_markdown_folder(root: Path) -> Path:
    texts = {
        "plan.md": f"# Plan\n\nShip it. The token is {SECRET}\n",
        "team/who.md": "---\ntype: fact\ntags: [team]\ndate: 2020-01-02\n---\n\n# Who\n\nSee [[plan]].\n",
        ".hidden/no.md": "no\n",
        "picture.png": "no",
    }
    return files(root, texts)


def json_lines(root: Path) -> Path:
    return lines(
        root / "notes.jsonl",
        {"title": "Deploy", "content": f"Tag first. {SECRET}", "tags": ["ops"], "type": "plan"},
        {"text": "No title at all", "created_at": "2025-01-02T03:04:05Z"},
    )


def a_server_memory(root: Path) -> Path:
    """Return what @modelcontextprotocol/server-memory writes for these entities."""
    return lines(
        root / "memory.jsonl",
        {
            "type": "entity",
            "name": "Ada Lovelace",
            "entityType": "person",
            "observations": ["wrote the first program", "likes\nnumbers", f"has {SECRET}"],
        },
        {"type": "entity", "name": "C#", "entityType": "programming language", "observations": []},
        {"type": "relation", "from": "Ada Lovelace", "to": "C#", "relationType": "would like"},
    )


def a_vault(root: Path) -> Path:
    texts = {
        ".obsidian/app.json": "{}",
        ".trash/old.md": "gone\n",
        "Ideas/Cache.md": f"---\naliases: [caching]\n---\nUse [[Redis|it]] #idea {SECRET}\n",
        "Redis.md": "A store.\n",
    }
    return files(root, texts)


# What an installation with rules has written there.
OWN_PART = "<!-- ragdocs: begin (…) -->\nCall recall.\n<!-- ragdocs: end -->\n"


def rules(root: Path) -> Path:
    texts = {
        "CLAUDE.md": f"# House\n\nUse tabs. {SECRET}\n\n{OWN_PART}",
        ".cursor/rules/ragdocs.mdc": f"---\nalwaysApply: true\n---\n\n{OWN_PART}",
        ".github/instructions/ts.instructions.md": "---\napplyTo: *.ts,*.tsx\n---\n\nNo any.\n",
    }
    files(root, texts)
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    return root


def decisions(root: Path) -> Path:
    texts = {
        "README.md": "# Index\n",
        "0001-use-postgres.md": "---\ntags: [db]\ndeciders: [ada]\n---\n\n# 1. Use Postgres\n\n"
        "Date: 2020-03-04\n\n## Status\n\nAccepted\n",
        "0002-drop-it.md": f"# 2. Drop it\n\n## Status\n\nSuperseded\n\n{SECRET}\n",
    }
    return files(root, texts)


def a_memory_service(root: Path) -> Path:
    """Return a database with the columns that mcp-memory-service makes."""
    path = root / "sqlite_vec.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT UNIQUE, content TEXT,"
            " tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL,"
            " created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL)"
        )
        rows = [
            (1, "a" * 64, f"The queue is slow {SECRET}", "ops,queue", "note", '{"n": 1}', 1.7e9),
            (2, "b" * 64, "Second", "", None, "not json", 1.7e9),
        ]
        connection.executemany(
            "INSERT INTO memories (id, content_hash, content, tags, memory_type, metadata,"
            " created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        connection.execute(
            "INSERT INTO memories (content_hash, content, deleted_at) VALUES ('c', 'gone', 1.0)"
        )
    connection.close()
    return path


def a_claude_mem(root: Path) -> Path:
    """Return a database with the tables and columns that claude-mem makes."""
    path = root / "claude-mem.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project"
            " TEXT, text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT,"
            " concepts TEXT, files_read TEXT, files_modified TEXT, created_at TEXT,"
            " created_at_epoch INTEGER)"
        )
        connection.execute(
            "CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, project TEXT, request TEXT,"
            " investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, notes TEXT,"
            " created_at TEXT, created_at_epoch INTEGER)"
        )
        connection.execute(
            "INSERT INTO observations (project, type, title, facts, narrative, concepts,"
            " files_modified, created_at_epoch) VALUES ('app', 'bugfix', 'Fixed login', ?, ?, ?,"
            " '[\"src/a.py\"]', 1700000000000)",
            ('["expiry was off"]', f"It was late. {SECRET}", '["gotcha"]'),
        )
        connection.execute(
            "INSERT INTO session_summaries (project, request, learned, created_at_epoch)"
            " VALUES ('app', 'Fix login', 'Clocks differ', 1700000000000)"
        )
    connection.close()
    return path


def basic_memory(root: Path) -> Path:
    texts = {
        "tea.md": "---\ntitle: Tea\ntype: note\npermalink: drinks/tea\ntags: [drink]\n---\n\n# Tea\n\n"
        f"- [fact] hot #temperature {SECRET}\n- pairs well with [[Scones]]\n",
        "scones.md": "---\ntitle: Scones\npermalink: food/scones\n---\n\nCrumbly.\n",
    }
    return files(root, texts)


def serena(root: Path) -> Path:
    text = f"# Style\n\nShort functions. {SECRET}\n"
    files(root, {".serena/memories/style.md": text, ".serena/memories/core.md": "Core.\n"})
    return root


def a_graph(root: Path) -> Path:
    texts = {
        "logseq/config.edn": "{}",
        "pages/proj___api.md": f"alias:: API\ntags:: web\n\n- An [[idea]] {SECRET}\n",
        "journals/2026_01_31.md": "- Met [[proj/api]]\n",
    }
    return files(root, texts)


CONVENTIONS = "repo/all-branches/conventions"


class Case(NamedTuple):
    make: Callable[[Path], Path]
    # A path that is written, and what it says.
    path: str
    says: str
    tags: tuple[str, ...] = ()


CASES = {
    "markdown": Case(a_markdown_folder, "team/who.md", "created_at: '2020-01-02", ("team",)),
    "jsonl": Case(json_lines, "Deploy.md", "type: plan", ("ops",)),
    "server-memory": Case(
        a_server_memory, "server-memory/Ada Lovelace.md", "- would_like [[C-|C#]]", ("person",)
    ),
    "obsidian": Case(a_vault, "Ideas/Cache.md", "Use [[Redis|it]]"),
    "rules": Case(rules, f"{CONVENTIONS}/github-instructions-ts.instructions.md", "'*.tsx'"),
    "adr": Case(
        decisions,
        "repo/all-branches/decisions/0001-use-postgres.md",
        "deciders: [ada]\ntitle: Use Postgres\nadr_status: accepted",
        ("db",),
    ),
    "mcp-memory-service": Case(a_memory_service, "mcp-memory-service/second-bbbbbbbb.md", "Second"),
    "claude-mem": Case(
        a_claude_mem, "claude-mem/2023-11-14-session-fix-login-1.md", "## Learned\n\nClocks differ"
    ),
    "basic-memory": Case(basic_memory, "basic-memory/tea.md", "- pairs_well_with [[Scones]]"),
    "serena": Case(serena, "serena/core.md", "Core.", ("serena",)),
    "logseq": Case(a_graph, "logseq/proj/api.md", "- An [[idea]]", ("web",)),
}
of_every_format = pytest.mark.parametrize("name", CASES)


def take(workspace: Workspace, name: str, path: Path, *, dry_run: bool = False) -> ImportReport:
    memories = workspace.memories
    importer = Import(memories.corpus, memories.clock, workspace.scope)
    return importer.run(FORMATS[name], path, dry_run=dry_run)


def give(workspace: Workspace, name: str, target: Path) -> ExportReport:
    return Export(workspace.memories.corpus).run(FORMATS[name], target)


def written(project: Project) -> dict[str, str]:
    """Return the memories of a project by their paths."""
    root = project.root / ".memories"
    texts = {}
    for path in sorted(root.rglob("*.md")):
        relative = path.relative_to(root).as_posix()
        if not relative.startswith((".", "indices")):
            texts[relative] = path.read_text(encoding="utf-8")
    return texts


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_format_is_tried_here() -> None:
    assert set(CASES) == set(READERS) == set(READABLE)
    assert set(WRITERS) == set(WRITABLE)


@of_every_format
def test_an_import_is_previewed_written_once_and_taken_back_whole(
    project: Project, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    (tmp_path / "theirs").mkdir()
    path = case.make(tmp_path / "theirs")
    before = contents(tmp_path / "theirs")
    workspace = project.open()

    preview = take(workspace, name, path, dry_run=True)
    assert written(project) == {}
    report = take(workspace, name, path)
    texts = written(project)
    assert [memory.path for memory in preview.memories] == [
        memory.path for memory in report.memories
    ]
    assert report.count(NEW) == len(report.memories) == len(texts) == 2
    assert sum(memory.secrets for memory in report.memories) == 1
    assert not any(SECRET in text or OWN_PART in text for text in texts.values())
    assert case.says in texts[case.path]
    document = workspace.memories.corpus.get(f"memory:{case.path.removesuffix('.md')}")
    assert document is not None
    kinds = {memory.path: memory.kind for memory in report.memories}
    assert document.kind == kinds[case.path]
    assert set(case.tags) <= set(document.tags)
    assert not document.problems

    again = take(workspace, name, path)
    assert (again.count(PRESENT), again.is_written) == (2, False)
    assert written(project) == texts
    assert contents(tmp_path / "theirs") == before

    workspace.versions.undo()
    assert written(project) == {}


@of_every_format
def test_a_format_is_detected(tmp_path: Path, name: str) -> None:
    path = CASES[name].make(tmp_path)
    if name == "rules":
        path /= "CLAUDE.md"
    assert detect(path).name == name


def test_memories_that_came_from_a_graph_are_markdown_when_they_are_exported(
    tmp_path: Path,
) -> None:
    files(tmp_path, {"plan.md": "# Plan\n", "logseq/notes.md": "# Notes\n"})
    assert detect(tmp_path).name == "markdown"


def test_nothing_that_exists_is_overwritten(project: Project, tmp_path: Path) -> None:
    project.memory("plan.md", "# Plan\n\nMine.\n")
    workspace = project.open()
    report = take(workspace, "markdown", a_markdown_folder(tmp_path))
    assert (report.count(KEPT), report.count(NEW)) == (1, 1)
    assert written(project)["plan.md"] == "# Plan\n\nMine.\n"


def test_a_memory_that_was_renamed_is_not_imported_again(project: Project, tmp_path: Path) -> None:
    workspace = project.open()
    path = a_server_memory(tmp_path)
    take(workspace, "server-memory", path)
    workspace.edits.rename("server-memory/C-.md", "languages/c-sharp.md")
    texts = written(project)
    report = take(workspace, "server-memory", path)
    assert report.count(NEW) == 0
    assert written(project) == texts


def test_names_that_no_file_can_have_are_replaced(project: Project, tmp_path: Path) -> None:
    names = ("a/b", "A/B", "..", "con", "x" * 500, "what? <now>", "\u202eevil", SECRET, ".dot")
    records = [{"type": "entity", "name": name, "observations": ["is odd"]} for name in names]
    workspace = project.open()
    path = lines(tmp_path / "m.jsonl", *records)
    report = take(workspace, "server-memory", path)
    assert report.count(NEW) == len(names)
    assert len(written(project)) == len(names)
    assert not any(SECRET in path for path in written(project))
    assert take(workspace, "server-memory", path).count(NEW) == 0


def test_a_database_whose_newest_rows_are_beside_it_is_read_whole(
    project: Project, tmp_path: Path
) -> None:
    path = a_memory_service(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("INSERT INTO memories (content_hash, content) VALUES ('d', 'Third')")
    connection.commit()
    report = take(project.open(), "mcp-memory-service", path)
    connection.close()
    assert report.count(NEW) == 3


def a_text(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.write_bytes(text.encode("latin-1"))
    return path


def a_view(root: Path) -> Path:
    path = root / "view.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE VIEW memories AS SELECT 1 content, 2 content_hash, 3 tags, 4 memory_type"
        )
    connection.close()
    return path


def a_cut_database(root: Path) -> Path:
    path = a_memory_service(root)
    path.write_bytes(path.read_bytes()[:2000])
    return path


BROKEN: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "no file": ("markdown", lambda root: root / "none"),
    "an empty folder": ("markdown", lambda root: root),
    "half a line": ("jsonl", lambda root: a_text(root, "x.jsonl", '{"text": "a"}\n{"te')),
    "a line without text": ("jsonl", lambda root: a_text(root, "x.jsonl", '{"text": "a"}\n{}\n')),
    "a list": ("jsonl", lambda root: a_text(root, "x.jsonl", "[1]\n")),
    "latin letters": ("jsonl", lambda root: a_text(root, "x.jsonl", '{"text": "é"}\n')),
    "deep": ("jsonl", lambda root: a_text(root, "x.jsonl", "[" * 100_000)),
    "no entity": ("server-memory", lambda root: a_text(root, "m.jsonl", '{"type": "x"}\n')),
    "odd observations": (
        "server-memory",
        lambda root: lines(root / "m.jsonl", {"type": "entity", "name": "a", "observations": 1}),
    ),
    "no database": ("claude-mem", lambda root: a_text(root, "x.db", "SQLite format 3")),
    "another database": ("claude-mem", a_memory_service),
    "a view": ("mcp-memory-service", a_view),
    "a cut database": ("mcp-memory-service", a_cut_database),
    "no rules": ("rules", lambda root: root),
    "no pages": ("logseq", lambda root: root),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_source_that_cannot_be_read_is_an_error_and_nothing_is_written(
    project: Project, tmp_path: Path, case: str
) -> None:
    name, make = BROKEN[case]
    (tmp_path / "theirs").mkdir()
    path = make(tmp_path / "theirs")
    with pytest.raises(RagdocsError) as caught:
        take(project.open(), name, path)
    assert caught.value.hint
    assert written(project) == {}


def test_texts_that_cannot_be_memories_are_refused_one_by_one(
    project: Project, tmp_path: Path
) -> None:
    texts = {"good.md": "Good.\n", "empty.md": "", "block.md": "---\na: [\n---\nx\n"}
    texts["node_modules/left-pad/readme.md"] = "No search looks here.\n"
    root = files(tmp_path / "theirs", texts)
    (root / "latin.md").write_bytes(b"caf\xe9")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "outside.md").write_text("outside", encoding="utf-8")
    report = take(project.open(), "markdown", root)
    assert list(written(project)) == ["good.md"]
    assert (report.count(NEW), report.count(REFUSED)) == (1, 4)
    exported = a_text(tmp_path, "list.json", '[\n  {"memory": "Better."},\n  {"memory": " "}\n]\n')
    assert detect(exported).name == "jsonl"
    report = take(project.open(), "jsonl", exported)
    assert (report.count(NEW), report.count(REFUSED)) == (1, 1)


def test_notes_of_one_title_become_memories_of_their_own(project: Project, tmp_path: Path) -> None:
    days = ("Monday", "Tuesday", "Wednesday")
    records = [{"title": "Standup", "text": f"{day} was fine."} for day in days]
    path = lines(tmp_path / "notes.jsonl", *records)
    workspace = project.open()
    assert take(workspace, "jsonl", path).count(NEW) == len(days)
    assert take(workspace, "jsonl", path).count(PRESENT) == len(days)


def test_tags_are_given_to_exported_memories_too(project: Project, tmp_path: Path) -> None:
    record = {"format": FORMAT, "path": "plan.md", "text": "---\ntags: [own]\n---\n\nShip.\n"}
    path = lines(tmp_path / "all.jsonl", record)
    words = ("import", str(path), "--tag", "old", "--project", str(project.root))
    assert app.main([*words, "--set", "memory.enabled=true"]) == 0
    assert "tags: [own, old]" in written(project)["plan.md"]


def test_endings_in_capitals_are_texts_too(project: Project, tmp_path: Path) -> None:
    root = files(tmp_path / "theirs", {"NOTES.MD": "Old disk.\n"})
    assert take(project.open(), "markdown", root).count(NEW) == 1


def test_a_folder_that_cannot_be_listed_is_an_error(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = files(tmp_path / "theirs", {"a.md": "A.\n", "locked/b.md": "B.\n"})
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(RagdocsError, match="locked"):
        list(READERS["markdown"](root))


def test_one_project_of_a_source_can_be_chosen(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = a_claude_mem(tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE session_summaries SET project = 'site'")
    connection.close()
    words = ("import", str(path), "--project", str(project.root), "--set", "memory.enabled=true")
    assert app.main([*words, "--dry-run"]) == 0
    assert "projects there: app (1), site (1)" in capsys.readouterr().out
    assert app.main([*words, "--from-project", "harbour"]) == 1
    assert "Name one project of the source: app, site" in capsys.readouterr().err
    assert app.main([*words, "--from-project", "site"]) == 0
    assert list(written(project)) == ["claude-mem/2023-11-14-session-fix-login-1.md"]


def test_too_many_texts_are_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_NOTES", 1)
    with pytest.raises(RagdocsError, match="more than 1 "):
        take(project.open(), "markdown", a_markdown_folder(tmp_path))
    assert written(project) == {}


@pytest.mark.parametrize("name", [name for name in WRITABLE if name in READABLE])
def test_what_was_exported_is_the_same_after_an_import(
    project: Project, tmp_path: Path, name: str
) -> None:
    project.memory(
        "auth/plan.md",
        "---\ntype: plan\nstatus: active\ntags: [auth]\ncreated_at: '2026-01-01T00:00:00Z'\n---\n\n"
        "# The plan\n\nSessions first, says [[who]].\n\n- blocks [[Release]]\n",
    )
    project.memory(
        "who.md",
        "---\ntype: fact\nstatus: active\ntags: []\ncreated_at: '2026-01-02T00:00:00Z'\n---\n\n"
        f"# Release\n\nSee [[The plan]].\n\nThe token is {SECRET}\n",
    )
    first = tmp_path / "first.jsonl"
    report = give(project.open(), name, first)
    assert (report.memories, report.secrets) == (2, 1)
    other = Project(tmp_path / "other")
    other.root.mkdir()
    workspace = other.open()
    assert take(workspace, name, first).count(NEW) == 2
    second = tmp_path / "second.jsonl"
    give(workspace, name, second)
    assert exported(second) == exported(first)
    assert SECRET not in "".join(exported(first).values())


def test_the_history_of_memories_goes_along_in_json_lines(project: Project, tmp_path: Path) -> None:
    workspace = project.open()
    store = workspace.memories.corpus.versioned
    store.commit([Put("a.md", f"one, with {SECRET}\n", Expect.ABSENT)], "create")
    store.commit([Put("a.md", "two\n", Expect.PRESENT)], "edit")
    store.commit([Put("a.md", "three\n", Expect.PRESENT), Put("b.md", "new\n", Expect.ABSENT)])
    workspace.sync()
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    give(workspace, "jsonl", first)
    (a, b) = map(json.loads, first.read_text(encoding="utf-8").splitlines())
    assert [entry["text"] for entry in a["history"]][1:] == ["two\n"]
    assert [entry["verb"] for entry in a["history"]] == ["edit", "update"]
    assert b["history"] == []
    assert SECRET not in first.read_text(encoding="utf-8")
    other = Project(tmp_path / "other")
    other.root.mkdir()
    workspace = other.open()
    files = workspace.memories.corpus.store
    assert isinstance(files, FileStore)
    importer = Import(workspace.memories.corpus, lambda: NOW, workspace.scope, files.adopt)
    for _ in range(2):
        importer.run(FORMATS["jsonl"], first)
    workspace.sync()
    give(workspace, "jsonl", second)
    assert exported(second) == exported(first)
    newest, oldest = files.history("a.md")
    assert newest.version == oldest.after
    assert newest.after == version_of(b"three\n")
    assert files.recover(newest.version) == "two\n"
    # The import itself is one change set, which one undo takes back.
    assert {step.path for step in files.commits()[0].steps} == {"a.md", "b.md"}


@pytest.mark.parametrize("history", [1, [1], [{"text": "x"}], [{"at": "2026-01-01"}]])
def test_a_damaged_history_is_refused_before_anything_is_written(
    project: Project, tmp_path: Path, history: object
) -> None:
    record = {"format": FORMAT, "path": "a.md", "text": "x", "history": history}
    with pytest.raises(ParseError, match="line 1"):
        take(project.open(), "jsonl", lines(tmp_path / "x.jsonl", record))
    assert not list(project.root.rglob("a.md"))


def exported(target: Path) -> dict[str, str]:
    if target.is_file():
        # Entities have no folders, so that they come in another order.
        return {"": "\n".join(sorted(target.read_text(encoding="utf-8").splitlines()))}
    return {
        path.relative_to(target).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(target.rglob("*"))
        if path.is_file()
    }


def test_a_page_shows_texts_and_runs_none_of_them(project: Project, tmp_path: Path) -> None:
    project.memory("a.md", "# First\n\n<script>alert(1)</script> and [[Second|the <b>other]]\n")
    project.memory("b.md", '# Second\n\n```sh\nrm "x"\n```\n')
    give(project.open(), "html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; and <a href=" in page
    assert "<script" not in page
    assert "the &lt;b&gt;other</a>" in page
    assert "<pre>```sh" in page


def test_an_export_into_the_folder_of_the_memories_is_refused(project: Project) -> None:
    project.memory("a.md", "# A\n\nText.\n")
    with pytest.raises(RagdocsError, match="in the folder of the memories"):
        give(project.open(), "markdown", project.root / ".memories" / "copy")
    assert list(written(project)) == ["a.md"]


@pytest.mark.parametrize("name", WRITABLE)
def test_an_export_never_replaces_anything(project: Project, tmp_path: Path, name: str) -> None:
    project.memory("a.md", "# A\n\nText.\n")
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(RagdocsError, match="exists already"):
        give(project.open(), name, target)
    assert exported(target) == {"mine": "mine"}
    assert not list(tmp_path.glob(".*"))


def test_commands_detect_formats_and_report(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("config.toml", '[memory]\nenabled = true\n[embedding]\nmodel = "none"\n')
    path = str(a_server_memory(tmp_path))
    where = ["--project", str(project.root)]
    assert app.main(["import", path, "--into", "people", *where]) == 0
    out = capsys.readouterr().out
    assert "2 memories imported" in out
    assert "new: people/Ada Lovelace.md (fact; secrets left out: 1)" in out
    assert app.main(["import", "server-memory", path, "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["counts"][PRESENT] == 2
    assert app.main(["export", str(tmp_path / "out.html"), *where]) == 0
    assert "(html): 2 memories exported" in capsys.readouterr().out
    (tmp_path / "empty.jsonl").touch()
    assert app.main(["import", str(tmp_path / "empty.jsonl"), *where]) == 1
    assert "empty.jsonl is empty" in capsys.readouterr().err
    assert app.main(["import", "nonsense", path, *where]) == 2
    assert app.main(["import", str(tmp_path / "none"), *where]) == 1
    assert app.main(["import", path, "--into", "../out", *where]) == 1
    assert app.main(["import", str(a_text(tmp_path, "x.md", "Hi")), "--tag", "old", *where]) == 0
    assert "tags: [old]" in written(project)["x.md"]
