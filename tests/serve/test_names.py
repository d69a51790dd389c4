"""Filenames that must not work, through every parameter that takes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

BAD_NAMES = [
    *("", " ", "\t", ".", "..", "/", "~", ".md", "a/"),
    *(
        "../x.md",
        "a/../x.md",
        "a/../../x.md",
        "./x.md",
        "a/./b.md",
        "../../../../etc/cron.d/x.md",
        "../.memories/here.md",
    ),
    *("/etc/passwd", "/tmp/x.md", "//host/share/x.md", "~/x.md", "~root/x.md", "C:x.md", "c:/x.md", "file:///x.md"),
    *("\\x.md", "..\\x.md", "a\\b.md", "\\\\host\\share\\x.md", "\\\\?\\C:\\x.md"),
    *("%2e%2e/x.md", "..%2fx.md", "a%2Fb.md", "a%5Cb.md", "a%00.md", "%252e%252e/x.md"),
    *("a\0.md", "a\0/../../x.md", "a\n.md", "a\r.md", "a\x1b[31m.md", "a\x7f.md", "\ud800.md"),
    *(".hidden.md", "a/.hidden/b.md", ".trash/x.md", ".history/x.md", ".git/config", "a/.git/x.md"),
    *("indices/x.md", "Indices/x.md", "INDICES/current"),
    *("con.md", "NUL", "aux.txt.md", "lpt1.md", "a/COM1.md", "conin$.md", "nul .md"),
    *("a:b.md", "a.md:stream", "a*.md", "a?.md", 'a".md', "a<b>.md", "a|b.md"),
    *("a//b.md", " a.md", "a /b.md", "a./b.md", "a.md.", "a.md "),
    *("x" * 300, "é" * 150, "a/" * 600 + "x.md"),
    *("\u2025/x.md", "\uff0e\uff0e/x.md", "a\u2215b.md", "a\uff0fb.md", "a\u2044b.md", "a\uff3cb.md", "C\uff1ax.md"),
    *("a\u202emd.exe", "a\u200bb.md", "\ufeffa.md", "a\u00a0b.md", "a\u2028b.md", "a\ufe00.md", "\u0301a.md"),
]
GOOD_NAMES = [
    "a b.md",
    "2026-02-04/143052_a1b2.md",
    "données.md",
    "日本語.md",
    "v1.2-notes",
    "UPPER.MD",
    "a'b (1) & c.md",
]

CALLS: dict[str, Callable[[Session, str], str]] = {
    "create": lambda session, name: session.error("create_memory", filename=name, content="x", tags=[]),
    "read": lambda session, name: session.error("read_memory", filename=name),
    "update": lambda session, name: session.error("update_memory", filename=name, content="x"),
    "append": lambda session, name: session.error("append_memory", filename=name, content="x"),
    "delete": lambda session, name: session.error("delete_memory", filename=name),
    "merge from": lambda session, name: session.error(
        "merge_memories", source_files=["here.md", name], target_file="new.md", summary_content="x"
    ),
    "merge into": lambda session, name: session.error(
        "merge_memories", source_files=["here.md"], target_file=name, summary_content="x"
    ),
}


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files and folders but the index, which a background thread may write at any time."""
    found = [path for path in folder.rglob("*") if "indices" not in path.parts]
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("call", CALLS)
def test_bad_names_are_refused_and_nothing_changes(
    tmp_path: Path, project: Project, connect: Connect, call: str
) -> None:
    project.memory("here.md", "stays\n")
    project.write("x.md", "outside\n")
    session = connect()
    before = everything(tmp_path)
    for name in BAD_NAMES:
        message = CALLS[call](session, name)
        assert "cannot be used as a name" in message, name
        assert message.isprintable(), name
    assert everything(tmp_path) == before


@pytest.mark.parametrize("call", CALLS)
def test_links_out_of_the_memory_folder_are_not_followed(
    tmp_path: Path, project: Project, connect: Connect, call: str
) -> None:
    project.memory("here.md", "stays\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("launch codes\n", encoding="utf-8")
    (project.root / ".memories/folder").symlink_to(outside, target_is_directory=True)
    (project.root / ".memories/file.md").symlink_to(outside / "secret.md")
    (project.root / ".memories/new-file.md").symlink_to(outside / "new.md")
    session = connect()
    before = everything(tmp_path)
    for name in ("folder/secret.md", "folder/new.md", "file.md", "new-file.md"):
        assert "launch codes" not in CALLS[call](session, name), name
    assert everything(tmp_path) == before
    assert session.call("search_memories", query="launch codes")["result"] == []


def test_a_name_that_differs_only_in_case_is_not_a_second_file(project: Project, connect: Connect) -> None:
    project.memory("Notes.md", "first\n")
    session = connect()
    for name in ("notes.md", "NOTES", "notes.MD"):
        assert "exists" in session.error("create_memory", filename=name, content="x", tags=[])
    assert [path.name for path in (project.root / ".memories").glob("*.md")] == ["Notes.md"]


def test_good_names_are_kept(project: Project, connect: Connect) -> None:
    session = connect()
    for name in GOOD_NAMES:
        saved = session.call("create_memory", filename=name, content="needle", tags=[])
        assert Path(saved["path"]).is_file()
        assert Path(saved["path"]).is_relative_to(project.root / ".memories")
        assert session.call("read_memory", filename=name)["content"].endswith("needle")
        found = session.call("search_memories", query="needle")["result"]
        assert [hit["file_path"] for hit in found] == [saved["path"]]
        session.call("delete_memory", filename=name)
        assert session.call("get_memory_stats")["count"] == 0


def test_read_doc_reads_nothing_but_documents(project: Project, connect: Connect) -> None:
    project.doc("a.md", "# A\n")
    project.write("x.md", "outside\n")
    session = connect()
    for path in (
        "../x.md",
        "x.md",
        "/etc/passwd",
        "docs/../x.md",
        "docs/../../x.md",
        "a\0b",
        "docs:",
        "#x",
        "",
        "\ud800",
    ):
        assert "outside\n" not in session.error("read_doc", path=path), path
