"""Names that must not work are refused by everything that takes a name."""

from __future__ import annotations

import itertools
import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult

from ragdocs.errors import RagdocsError, ValidationError
from ragdocs.lanes import MEMORY
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.stores.files.store import FileStore
from ragdocs.system import files as fsio
from ragdocs.system.files import relative_name
from ragdocs.system.names import NAME_BYTES
from ragdocs.types import Discard, Put

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

GOOD = {
    "notes.md": "notes.md",
    "notes": "notes.md",
    "NOTES.MD": "NOTES.md",
    "2026-02-04/143052_a1b2.md": "2026-02-04/143052_a1b2.md",
    "2026-02-04/143052_a1b2": "2026-02-04/143052_a1b2.md",
    "a b c.md": "a b c.md",
    "größe.md": "größe.md",
    "gro\u0308ße.md": "größe.md",
    "日本語/メモ.md": "日本語/メモ.md",
    "заметки.md": "заметки.md",
    "ملاحظات.md": "ملاحظات.md",
    "हिन्दी.md": "हिन्दी.md",
    "🎉.md": "🎉.md",
    "\u2764\ufe0f love.md": "\u2764\ufe0f love.md",
    "\U0001f469\U0001f3fd\u200d\U0001f4bb work.md": "\U0001f469\U0001f3fd\u200d\U0001f4bb work.md",
    "v1.2.3-notes": "v1.2.3-notes.md",
    "a.b.c.md": "a.b.c.md",
    "-dash.md": "-dash.md",
    "indices.md": "indices.md",
    "notes/indices/a": "notes/indices/a.md",
    "console.md": "console.md",
    "com10.md": "com10.md",
    "50% done.md": "50% done.md",
    "it's (fine) [really] & true!.md": "it's (fine) [really] & true!.md",
    "x" * 197: "x" * 197 + ".md",
    "ü" * 98 + ".md": "ü" * 98 + ".md",
}

CONTROLS = [f"a{chr(code)}b" for code in (0, 1, 7, 8, 9, 10, 13, 27, 31, 127, 0x80, 0x85, 0x9F)]
INVISIBLE = [
    f"a{chr(code)}b"
    for code in (
        0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E,
        0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2060, 0x2061, 0x2066,
        0x2067, 0x2068, 0x2069, 0x206A, 0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9,
        0xFFFE, 0xE000, 0xE0001, 0xE0041, 0xE0100, 0xD800, 0xDFFF, 0x00A0, 0x2003, 0x3000, 0x1680,
    )
]  # fmt: skip
SEPARATORS = [
    f"..{chr(code)}etc" if code % 2 else f"a{chr(code)}b"
    for code in (
        0xFF0F, 0xFF3C, 0xFF0E, 0xFF1A, 0x2024, 0x2025, 0x2026, 0xFE52, 0xFE55, 0xFE68, 0x2044,
        0x2215, 0x29F8, 0x2216, 0x29F5, 0x29F9, 0x2236, 0xA789, 0x2571, 0x2572, 0x2100, 0x2105,
        0x2488, 0x1F100, 0xFE13, 0xFE30,
    )
]  # fmt: skip
DEVICES = [
    "CON", "con", "Con.md", "PRN", "AUX", "aux.txt", "NUL", "nul.tar.gz", "COM1", "com9.md",
    "LPT1", "lpt9", "COM0", "COM¹", "LPT².md", "CONIN$", "CONOUT$", "CLOCK$", "notes/CON/a.md",
    "a/nul", "CON .md", "ＣＯＮ", "NUL..md",
]  # fmt: skip
TRAVERSALS = [
    "..", ".", "../a", "../../etc/passwd", "a/..", "a/../b", "a/../../b", "./a", "a/./b", "a/.",
    "...", "..../a", "/etc/passwd", "/", "//", "//server/share/a", "\\\\server\\share\\a", "\\a",
    "a\\b", "..\\a", "a\\..\\..\\b", "C:\\a", "C:/a", "c:a", "C:", "file:///etc/passwd",
    "\\\\?\\C:\\a", "\\\\.\\pipe\\a", "~", "~/a", "~root/a", "~a", "a//b", "a/", "/a/", "a///b",
    " /a", "a/ /b", "", " ", "\t", "   ", "a.", "a. ", "a ", " a", "a/b /c", "a./b", "..%2fa",
    "%2e%2e/a", "%2e%2e%2fetc", "..%5ca", "a%2f..%2fb", "a%00.md", "%252e%252e", "a%5Cb", "..;/a",
    "..%c0", ".md", ".trash/a", ".history/x", ".git/config", ".git", "a/.git/hooks/x", ".hidden",
    ".ssh/id", "a/.b/c", "..a", "indices", "indices/a", "INDICES/a", "Indices/live/x.md",
    "indiceſ/a", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "a:b", "a.md:stream", "a::$DATA",
    "\u0301a", "a/\u0338b", "x" * 198, "ü" * 99, "a/" * 600 + "b", "😀" * 50 + "x", "$(x)/../a",
    "`x`/../../a", "a/b/../../../c", "..\0/a", "..\n/a", "a\r\n..", "../" * 50 + "etc/passwd",
    ". ./a", "../.memories/here.md", "../x.md", "/tmp/x.md", "a\0/../../x.md", "a\x1b[31m.md",
    "INDICES/current", "nul .md",
]  # fmt: skip
BAD_PATHS = (
    "../x.md", "/etc/passwd", "a/../../x.md", "~/x", "C:\\x", "..", "\\\\host\\x", "a\nb",
)  # fmt: skip
# Said before the name is looked at.
TOO_LONG = "is longer than 1,000 bytes"
BAD = list(dict.fromkeys([*CONTROLS, *INVISIBLE, *SEPARATORS, *DEVICES, *TRAVERSALS]))


# --- the rules ---


@pytest.mark.parametrize("name", GOOD)
def test_good_names_are_kept_and_stay_as_they_are(name: str) -> None:
    assert relative_name(name) == GOOD[name]
    assert relative_name(GOOD[name]) == GOOD[name]


@pytest.mark.parametrize("name", BAD, ids=lambda name: ascii(name[:24]))
def test_bad_names_are_refused_with_a_reason(name: str) -> None:
    with pytest.raises(ValidationError, match="cannot be used as a name: ") as caught:
        relative_name(name)
    assert caught.value.hint
    assert str(caught.value).isprintable()


def accepted(name: str) -> bool:
    """Tell whether a name is taken, and see that it then stays inside."""
    try:
        clean = relative_name(name)
    except ValidationError:
        return False
    root = Path("/srv/memories")
    parts = clean.split("/")
    assert os.path.normpath(root / clean) == str(root / clean)
    assert fsio.contained(root, clean) == root / clean
    assert clean.endswith(".md")
    assert clean == unicodedata.normalize("NFC", clean) == relative_name(clean)
    assert not any(part.startswith(".") or part != part.strip() for part in parts)
    assert parts[0].casefold() != "indices"
    assert not {*"\\:\0"} & {*unicodedata.normalize("NFKC", clean)}
    assert max(len(part.encode()) for part in parts) <= 200
    return True


PIECES = st.sampled_from(
    [
        "..", ".", "/", "\\", "~", "C:", "a", "é", " ", "\0", "%2e", "．", "／", ".git", "indices",
        "CON", ".md",
    ]
)  # fmt: skip
NAMES = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(st.one_of(PIECES, st.characters()), max_size=12).map("".join),
)


def test_no_name_ever_escapes(tally: Tally) -> None:
    @settings(max_examples=800, database=None)
    @given(NAMES)
    @example("a/../../b")
    def tried(name: str) -> None:
        tally("S1 traversal", tried=1, accepted_and_inside=accepted(name), escapes=0)

    tried()


# --- ways up and out ---

DOTS = (
    "..", ".", "...", "%2e%2e", "%252e%252e", "%c0%ae%c0%ae", "\uff0e\uff0e", "\u2024\u2024",
    "\u2025", "..;", ".. ", " ..", "..\0", "..\u200b", ".\u200d.", "..\u0301", "a/../..", "...",
)  # fmt: skip
SEPARATED = (
    "/", "\\", "//", "%2f", "%5c", "%252f", "\uff0f", "\u2215", "\u2044", "\u29f8", "/./", "\\/",
    ":", "\0/",
)  # fmt: skip
HEADS = (
    "", "/", "a/", "C:", "C:\\", "\\\\host\\share\\", "\\\\?\\", "~", "~root/", "file:///",
    "$HOME/", ".md/",
)  # fmt: skip
TARGETS = ("etc/passwd", "x.md", ".git/config", "CON", ".ssh/authorized_keys\0.md")


def ways_out() -> Iterator[str]:
    """Spell the way to files elsewhere, in every combination of the known tricks."""
    for dots, separator, head, target in itertools.product(DOTS, SEPARATED, HEADS, TARGETS):
        yield f"{head}{dots}{separator}{target}"
        if head in {"", "a/"}:
            yield f"{head}{f'{dots}{separator}' * 8}{target}"


def test_no_way_out_is_taken(tmp_path: Path, tally: Tally) -> None:
    names = list(dict.fromkeys(ways_out()))
    assert len(names) >= 10_000
    root = tmp_path / "project" / ".memories"
    (root / "a").mkdir(parents=True)
    (tmp_path / "project" / "x.md").write_text("outside")
    store = FileStore(root, MEMORY)
    before = everything(tmp_path)
    for number, name in enumerate(names):
        taken = accepted(name)
        tally("S1 traversal", tried=1, accepted_and_inside=taken, escapes=0)
        # The store asks for itself, whatever a caller has checked: one in eight goes there
        # unchecked.
        if number % 8 == 0 and not taken:
            for change in (Put(name, "x"), Discard(name)):
                with pytest.raises(RagdocsError):
                    store.commit([change])
            with pytest.raises(RagdocsError):
                store.read(name)
    assert everything(tmp_path) == before


# --- the tools ---


class Tools:
    """The tools of a project, called as the protocol does."""

    def __init__(self, live: Live, portal: BlockingPortal) -> None:
        self._server = ToolServer(live)
        self._portal = portal

    def call(self, tool: str, /, **arguments: Any) -> Any:
        result = self._portal.call(self._server.call_tool, tool, arguments)
        assert isinstance(result, CallToolResult)
        return result.structured_content

    def error(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must refuse, in words of ours, and return them."""
        with pytest.raises(ToolError) as caught:
            self.call(tool, **arguments)
        assert not isinstance(caught.value, UnexpectedToolError), arguments
        return str(caught.value)


@pytest.fixture
def opened(project: Project) -> Iterator[Tools]:
    """Open the tools of a project with one memory, beside which somebody else has a file."""
    project.memory("here.md", "stays, see [[src/auth.py]]\n")
    project.write("x.md", "outside\n")
    toolsets = "docs,memory,recall,edit,entries,repo"
    live = Live(project.config(**{"watch.enabled": False, "server.toolsets": toolsets}))
    with start_blocking_portal() as portal:
        yield Tools(live, portal)
    live.stop()


# The tool and its arguments; the name comes in where there is nothing.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create_memory", {"filename": None, "content": "x", "tags": []}),
    "read": ("read_memory", {"filename": None}),
    "update": ("update_memory", {"filename": None, "content": "x"}),
    "append": ("append_memory", {"filename": None, "content": "x"}),
    "delete": ("delete_memory", {"filename": None}),
    "edit": ("edit_memory", {"filename": None, "text": "x", "mode": "append"}),
    "history": ("memory_history", {"filename": None}),
    "restore": ("restore_memory", {"filename": None}),
    "rename": ("rename_memory", {"filename": None, "new_name": "new.md"}),
    "rename to": ("rename_memory", {"filename": "here.md", "new_name": None}),
    "merge from": (
        "merge_memories",
        {"source_files": ["here.md", None], "target_file": "new.md", "summary_content": "x"},
    ),
    "merge into": (
        "merge_memories",
        {"source_files": ["here.md"], "target_file": None, "summary_content": "x"},
    ),
}


def refused(opened: Tools, call: str, name: str) -> str:
    """Call a tool with a name that it must refuse, and return what it says."""
    tool, arguments = CALLS[call]
    if call == "history" and not name:
        # Without a name this asks for the history of all memories.
        name = "."
    filled = json.loads(json.dumps(arguments).replace("null", json.dumps(name)))
    return opened.error(tool, **filled)


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files and folders but the index, which a background thread may write at any time."""
    found = [path for path in folder.rglob("*") if "indices" not in path.parts]
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("call", CALLS)
def test_bad_names_are_refused_by_every_tool_and_nothing_changes(
    tmp_path: Path, opened: Tools, tally: Tally, call: str
) -> None:
    assert len(BAD) >= 129
    before = everything(tmp_path)
    for name in BAD:
        message = refused(opened, call, name)
        assert "cannot be used as a name" in message or TOO_LONG in message, name
        assert message.isprintable(), name
        tally("S1 bad names through every tool", calls=1, escapes=0, reserved=0, crashes=0)
    assert everything(tmp_path) == before


def test_bad_names_that_only_ask_are_answered_and_lead_nowhere(
    tmp_path: Path, project: Project, opened: Tools, tally: Tally
) -> None:
    project.doc("a.md", "# A\n")
    before = everything(tmp_path)
    for name in [*BAD, "docs/../x.md", "docs/../../x.md", "x.md", "docs:", "#x"]:
        assert "outside" not in opened.error("read_doc", path=name)
        if len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES:
            assert TOO_LONG in opened.error(
                "search_linked_memories", query="stays", target_document=name
            )
        else:
            found = opened.call("search_linked_memories", query="stays", target_document=name)
            assert found["result"] == [], name
        tally("S1 bad names through every tool", calls=2, escapes=0, reserved=0, crashes=0)
    assert everything(tmp_path) == before


def test_bad_names_of_items_and_paths_lead_nowhere(
    tmp_path: Path, opened: Tools, tally: Tally
) -> None:
    before = everything(tmp_path)
    # The folder of the index is at the top, and items are further down.
    for name in [name for name in BAD if name and "indices" not in name.casefold()]:
        for tool, arguments in (
            ("upsert_note", {"content": "x", "id": name}),
            ("get_repo_memory", {"id": name}),
            ("delete_repo_memory", {"kind": "note", "id": name}),
        ):
            message = opened.error(tool, **arguments)
            assert any(why in message for why in ("cannot be", "there is no item", TOO_LONG)), name
            assert "outside" not in message.removeprefix("there is no item"), name
        tally("S1 bad names through every tool", calls=3, escapes=0, reserved=0, crashes=0)
    assert everything(tmp_path) == before
    for path in BAD_PATHS:
        assert "not a path" in opened.error(
            "upsert_decision", summary="x", rationale="y", impacted_paths=[path]
        )
        assert "not a path" in opened.error("get_repo_memory", path=path)
        assert "not a file" in opened.error("build_context", files=[path])
        tally("S1 bad names through every tool", calls=3, escapes=0, reserved=0, crashes=0)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("call", CALLS)
def test_links_out_of_the_memory_folder_are_not_followed(
    tmp_path: Path, project: Project, opened: Tools, call: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("launch codes\n", encoding="utf-8")
    (project.root / ".memories/folder").symlink_to(outside, target_is_directory=True)
    (project.root / ".memories/file.md").symlink_to(outside / "secret.md")
    (project.root / ".memories/new-file.md").symlink_to(outside / "new.md")
    before = everything(tmp_path)
    for name in ("folder/secret.md", "folder/new.md", "file.md", "new-file.md"):
        assert "launch codes" not in refused(opened, call, name), name
    assert everything(tmp_path) == before
    assert opened.call("search_memories", query="launch codes")["result"] == []


def test_a_name_that_differs_only_in_case_is_not_a_second_file(
    project: Project, opened: Tools
) -> None:
    (project.root / ".memories/here.md").rename(project.root / ".memories/Notes.md")
    for name in ("notes.md", "NOTES", "notes.MD"):
        assert "exists" in opened.error("create_memory", filename=name, content="x", tags=[])
    assert [path.name for path in (project.root / ".memories").glob("*.md")] == ["Notes.md"]


def test_good_names_are_kept_by_the_tools(project: Project, opened: Tools, tally: Tally) -> None:
    opened.call("delete_memory", filename="here.md")
    for name, clean in GOOD.items():
        saved = opened.call("create_memory", filename=name, content="needle", tags=[])
        assert Path(saved["path"]) == project.root / ".memories" / clean
        assert opened.call("read_memory", filename=name)["content"].endswith("needle")
        found = opened.call("search_memories", query="needle")["result"]
        assert [hit["file_path"] for hit in found] == [saved["path"]]
        opened.call("delete_memory", filename=name)
        tally("S1 good names", given=1, kept=1)
    assert opened.call("get_memory_stats")["count"] == 0
