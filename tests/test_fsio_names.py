from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragdocs import fsio
from ragdocs.errors import ValidationError
from ragdocs.fsio import relative_name

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
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F),
        *(0x2028, 0x2029, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2060, 0x2061, 0x2066, 0x2067, 0x2068, 0x2069),
        *(0x206A, 0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFE, 0xE000, 0xE0001, 0xE0041, 0xE0100),
        *(0xD800, 0xDFFF, 0x00A0, 0x2003, 0x3000, 0x1680),
    )
]
SEPARATORS = [
    f"..{chr(code)}etc" if code % 2 else f"a{chr(code)}b"
    for code in (
        *(0xFF0F, 0xFF3C, 0xFF0E, 0xFF1A, 0x2024, 0x2025, 0x2026, 0xFE52, 0xFE55, 0xFE68, 0x2044, 0x2215, 0x29F8),
        *(0x2216, 0x29F5, 0x29F9, 0x2236, 0xA789, 0x2571, 0x2572, 0x2100, 0x2105, 0x2488, 0x1F100, 0xFE13, 0xFE30),
    )
]
DEVICES = [
    *("CON", "con", "Con.md", "PRN", "AUX", "aux.txt", "NUL", "nul.tar.gz", "COM1", "com9.md", "LPT1", "lpt9", "COM0"),
    *("COM¹", "LPT².md", "CONIN$", "CONOUT$", "CLOCK$", "notes/CON/a.md", "a/nul", "CON .md", "ＣＯＮ", "NUL..md"),
]
TRAVERSALS = [
    *("..", ".", "../a", "../../etc/passwd", "a/..", "a/../b", "a/../../b", "./a", "a/./b", "a/.", "...", "..../a"),
    *("/etc/passwd", "/", "//", "//server/share/a", "\\\\server\\share\\a", "\\a", "a\\b", "..\\a", "a\\..\\..\\b"),
    *(
        "C:\\a",
        "C:/a",
        "c:a",
        "C:",
        "file:///etc/passwd",
        "\\\\?\\C:\\a",
        "\\\\.\\pipe\\a",
        "~",
        "~/a",
        "~root/a",
        "~a",
    ),
    *("a//b", "a/", "/a/", "a///b", " /a", "a/ /b", "", " ", "\t", "   ", "a.", "a. ", "a ", " a", "a/b /c", "a./b"),
    *("..%2fa", "%2e%2e/a", "%2e%2e%2fetc", "..%5ca", "a%2f..%2fb", "a%00.md", "%252e%252e", "a%5Cb", "..;/a", "..%c0"),
    *(".md", ".trash/a", ".history/x", ".git/config", ".git", "a/.git/hooks/x", ".hidden", ".ssh/id", "a/.b/c", "..a"),
    *("indices", "indices/a", "INDICES/a", "Indices/live/x.md", "indiceſ/a", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b"),
    *("a:b", "a.md:stream", "a::$DATA", "\u0301a", "a/\u0338b", "x" * 198, "ü" * 99, "a/" * 600 + "b", "😀" * 50 + "x"),
    *("$(x)/../a", "`x`/../../a", "a/b/../../../c", "..\0/a", "..\n/a", "a\r\n..", "../" * 50 + "etc/passwd", ". ./a"),
]
BAD = [*CONTROLS, *INVISIBLE, *SEPARATORS, *DEVICES, *TRAVERSALS]


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


def test_there_are_enough_bad_names() -> None:
    assert len(set(BAD)) >= 150


PIECES = st.sampled_from(
    ["..", ".", "/", "\\", "~", "C:", "a", "é", " ", "\0", "%2e", "．", "／", ".git", "indices", "CON", ".md"]
)
NAMES = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(st.one_of(PIECES, st.characters()), max_size=12).map("".join),
)


@settings(max_examples=3000, deadline=None, database=None)
@given(NAMES)
@example("a/../../b")
def test_no_name_ever_escapes(name: str) -> None:
    try:
        clean = relative_name(name)
    except ValidationError:
        return
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
