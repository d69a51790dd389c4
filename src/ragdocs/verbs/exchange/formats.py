"""The formats that memories are read from and written to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A format: what it is, and where its memories go."""

    name: str
    about: str
    # The folder of its memories; none where paths and links stay as they are.
    folder: str = ""
    is_read: bool = True
    is_written: bool = False
    # Whether it is one file, when it is written.
    is_file: bool = False
    # Whether the earlier texts of a memory are written too.
    has_history: bool = False


_LIST = (
    Format("markdown", "a folder of markdown, or one file", is_written=True),
    Format(
        "jsonl",
        "JSON lines, one memory each with its history",
        is_written=True,
        is_file=True,
        has_history=True,
    ),
    Format(
        "server-memory",
        "the file of the MCP reference server",
        folder="server-memory",
        is_written=True,
        is_file=True,
    ),
    Format("obsidian", "an Obsidian vault", is_written=True),
    Format("rules", "CLAUDE.md, AGENTS.md, Cursor rules and their like, as conventions"),
    Format("adr", "a folder of architecture decision records, as decisions"),
    Format("mcp-memory-service", "its SQLite database", folder="mcp-memory-service"),
    Format("claude-mem", "its SQLite database", folder="claude-mem"),
    Format("basic-memory", "a folder of its notes", folder="basic-memory"),
    Format("serena", "a project with .serena/memories", folder="serena"),
    Format("logseq", "a Logseq graph", folder="logseq"),
    Format("html", "one page to read", is_read=False, is_written=True, is_file=True),
)
FORMATS: dict[str, Format] = {}
READABLE: list[str] = []
WRITABLE: list[str] = []
for _form in _LIST:
    FORMATS[_form.name] = _form
    if _form.is_read:
        READABLE.append(_form.name)
    if _form.is_written:
        WRITABLE.append(_form.name)
