"""Tables of a TOML file, changed in place."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import ParseError
from ragdocs.text import toml_tables

NAME = ("mcp_servers", "ragdocs")
TABLE = {"command": "/opt/python", "args": ["-m", "ragdocs"]}
STATEMENTS = st.sampled_from(
    [
        "# a comment\n",
        "\n",
        "  # [mcp_servers.ragdocs]\n",
        'KEY = "x" # [y]\n',
        "KEY = 'a # b'\n",
        'KEY = """\n[mcp_servers.ragdocs]\ncommand = "no"\n"""\n',
        "KEY = '''\n[x]\n'''\n",
        'KEY = [\n  "a", # [b]\n  [1, 2],\n]\n',
        'KEY = { a = 1, b = "]" }\n',
        "KEY.dotted.'q q' = 1\n",
        '"quoted = KEY" = 1979-05-27\n',
    ]
)
HEADERS = st.sampled_from(
    ["[TABLE]", "[ TABLE . sub ] # note", "[[TABLE]]", '["TABLE"."a.b"]', "[mcp_servers.TABLE]"]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Write a file with tables, comments and values over several lines."""
    text = ""
    number = 0
    for position in range(draw(st.integers(0, 4))):
        if position:
            number += 1
            text += draw(HEADERS).replace("TABLE", f"t{number}") + "\n"
        for statement in draw(st.lists(STATEMENTS, max_size=4)):
            number += 1
            text += statement.replace("KEY", f"k{number}")
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text


@given(files())
def test_a_table_is_added_and_taken_back_to_the_byte(text: str) -> None:
    before = tomllib.loads(text)
    changed = toml_tables.put(text, NAME, TABLE)
    assert changed.startswith(text)
    servers = {**before.get("mcp_servers", {}), "ragdocs": TABLE}
    assert tomllib.loads(changed) == {**before, "mcp_servers": servers}
    assert toml_tables.put(changed, NAME, TABLE) == changed
    taken = toml_tables.remove(changed, NAME)
    assert taken == text or taken == text + ("\r\n" if "\r\n" in text else "\n")


@given(files(), files())
def test_other_lines_stay_when_a_table_in_the_middle_changes_or_goes(
    before: str, after: str
) -> None:
    if before and not before.endswith("\n"):
        before += "\n"
    own = '[mcp_servers.ragdocs] # mine\ncommand = "old" # was here\n# kept\ntimeout = 5\n'
    nested = '[mcp_servers.ragdocs.env]\nA = "1"\n'
    following = f"\n# leads to the next\n[last]\n{after.partition('[')[0]}"
    text = before + own + nested + following
    try:
        old = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    changed = toml_tables.put(text, NAME, TABLE)
    entry = {"timeout": 5, "env": {"A": "1"}, **TABLE}
    assert tomllib.loads(changed)["mcp_servers"]["ragdocs"] == entry
    for line in ("# mine", "# was here", "# kept", following):
        assert line in changed
    taken = toml_tables.remove(changed, NAME)
    assert following in taken
    assert taken.startswith(before.removesuffix("\n").removesuffix("\r"))
    left = tomllib.loads(taken)
    del old["mcp_servers"]["ragdocs"]
    left.setdefault("mcp_servers", {})
    assert left == old


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mcp_servers = { ragdocs = { command = 'x' } }\n", "changed safely"),
        ("mcp_servers.ragdocs.command = 'x'\n", "changed safely"),
        ("mcp_servers = { other = {} }\n", "changed safely"),
        ("[[mcp_servers]]\na = 1\n", "is not a table"),
        ("mcp_servers = 1\n", "is not a table"),
        ("[broken\n", "line 1"),
        ("a = 1\na = 2\n", "line 2"),
    ],
)
def test_a_file_that_is_written_in_another_way_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        toml_tables.put(text, NAME, TABLE)
