"""JSON with comments, changed in place."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragdocs.errors import ParseError
from ragdocs.text import jsonc

VALUE = {"command": "/opt/python", "args": ["-m", "x"]}
NAMES = st.sampled_from(["mcpServers", "hooks", "other", 'a"b', "ü", "", "ragdocs", "theme"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.sampled_from(["", "x // y", "a, }", 'q"\n'])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
GAPS = st.sampled_from(
    [
        "",
        "",
        " ",
        "\n",
        "\n    ",
        "\n\t",
        " // c\n  ",
        "/* , } */",
        "\r\n",
        "  // {\n\n",
        "\n/* a\n b */\n",
    ]
)


@st.composite
def written(draw: st.DrawFn, value: Any = None) -> tuple[str, Any]:
    """Write a value as somebody might: comments and spaces anywhere, commas at the end."""
    value = draw(st.dictionaries(NAMES, VALUES, max_size=4)) if value is None else value

    def write(item: Any) -> str:
        gap: str = draw(GAPS)
        has_comma: bool = draw(st.booleans())
        parts: list[str]
        if isinstance(item, dict):
            parts = [
                f"{json.dumps(key)}{draw(GAPS)}:{draw(GAPS)}{write(item[key])}" for key in item
            ]
            brackets = "{}"
        elif isinstance(item, list):
            parts = [write(each) for each in item]
            brackets = "[]"
        else:
            return json.dumps(item)
        body = "".join(f"{draw(GAPS)}{part}{draw(GAPS)}," for part in parts)
        if parts and not has_comma:
            body = body[:-1]
        return f"{brackets[0]}{body}{gap}{brackets[1]}"

    return draw(GAPS) + write(value) + draw(GAPS), value


def put_into(value: Any, path: tuple[str, ...], new: Any) -> Any:
    whole = copy.deepcopy(value)
    parent = whole
    for key in path[:-1]:
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            return None
    parent[path[-1]] = new
    return whole


def comments(text: str) -> list[str]:
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    return re.findall(r"//[^\r\n]*|/\*.*?\*/", plain, re.DOTALL)


@given(written())
def test_a_text_is_read_as_it_was_meant(case: tuple[str, Any]) -> None:
    text, value = case
    assert jsonc.loads(text) == value


@given(written(), st.sampled_from([("mcpServers", "ragdocs"), ("theme",), ("a", "b", "c")]))
@example(('{"mcpServers": {} // c\n}', {"mcpServers": {}}), ("mcpServers", "ragdocs"))
def test_a_value_is_put_without_touching_anything_else(
    case: tuple[str, Any], path: tuple[str, ...]
) -> None:
    text, value = case
    expected = put_into(value, path, VALUE)
    if expected is None:
        with pytest.raises(ParseError):
            jsonc.put(text, path, VALUE)
        return
    changed = jsonc.put(text, path, VALUE)
    assert jsonc.loads(changed) == expected
    assert jsonc.put(changed, path, VALUE) == changed
    if jsonc.existing(text, path) < len(path):
        assert comments(changed) == comments(text)
        # Only additions: what was there is there in the same order.
        left = iter(changed)
        assert all(character in left for character in text if not character.isspace())


@given(written(), st.sampled_from([("mcpServers", "ragdocs"), ("new",)]))
def test_what_was_put_into_a_filled_object_is_removed_to_the_byte(
    case: tuple[str, Any], path: tuple[str, ...]
) -> None:
    text, value = case
    parent = value if len(path) == 1 else value.get(path[0])
    if not isinstance(parent, dict) or not parent or path[-1] in parent:
        return
    assert jsonc.remove(jsonc.put(text, path, VALUE), path) == text


@given(written(), st.data())
def test_a_member_is_removed_alone(case: tuple[str, Any], data: st.DataObject) -> None:
    text, value = case
    if not value:
        return
    key = data.draw(st.sampled_from(sorted(value)))
    expected = {name: item for name, item in value.items() if name != key}
    changed = jsonc.remove(text, (key,))
    assert jsonc.loads(changed) == expected


@given(written(), st.integers(0, 2))
def test_a_list_grows_and_shrinks(case: tuple[str, Any], times: int) -> None:
    text, value = case
    if not isinstance(value.get("hooks", {}), dict) or "Start" in value.get("hooks", {}):
        return
    changed = text
    for number in range(times + 1):
        changed = jsonc.append(changed, ("hooks", "Start"), {"n": number})
    assert jsonc.loads(changed)["hooks"]["Start"] == [{"n": each} for each in range(times + 1)]
    assert comments(changed) == comments(text)
    smaller = jsonc.remove(changed, ("hooks", "Start", times))
    assert jsonc.loads(smaller)["hooks"]["Start"] == [{"n": each} for each in range(times)]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{'a': 1}",
        "{a: 1}",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{} {}",
        '{"a": NaN}',
        '{"a": 01}',
        '{"a": "\t"}',
        "[" * 5000,
        '{"a": /* }',
        "{,}",
    ],
)
def test_a_text_that_is_not_understood_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ParseError, match="line 1"):
        jsonc.put(text, ("a",), 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"m": {}, "m": {}}', "twice"),
        ('{"m": []}', "m is not an object"),
        ("[1]", "it is not a JSON object"),
        ('{"m": null}', "m is not an object"),
    ],
)
def test_an_ambiguous_or_odd_container_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        jsonc.put(text, ("m", "x"), 1)


def test_a_new_member_looks_like_its_neighbours() -> None:
    text = '{\r\n\t"a": 1, // one\r\n\t"m": {\r\n\t\t"b": {}\r\n\t} // two\r\n}\r\n'
    changed = jsonc.put(text, ("m", "x"), VALUE)
    assert changed == (
        '{\r\n\t"a": 1, // one\r\n\t"m": {\r\n\t\t"b": {},\r\n\t\t"x": {\r\n'
        '\t\t\t"command": "/opt/python",\r\n\t\t\t"args": ["-m", "x"]\r\n\t\t}\r\n\t} // two\r\n}\r\n'
    )


@pytest.mark.parametrize("text", ["", "  \n", "// nothing yet\n", "/* x */"])
def test_a_text_without_a_value_gets_one_behind_its_comments(text: str) -> None:
    changed = jsonc.put(text, ("m", "x"), 1)
    assert jsonc.loads(changed) == {"m": {"x": 1}}
    assert changed.startswith(text.strip())
