from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import NotFoundError, ParseError, RagdocsError, ValidationError
from ragdocs.text import frontmatter as metadata
from ragdocs.verbs.memories.revise import Edit, revise

PLAN = """\
---
# who and when
type: plan   # not a journal
tags: [auth, "two words"]
steps:
- one
- two

note: |
  several

  lines
created_at: 2026-02-04T12:00:00Z
---

# Plan

Ship in May.

## Progress

- login
- logout

### Details

Small print.

## Open

```sh
# Progress
echo in May
```
"""


def revised(source: str = PLAN, /, **edit: Any) -> str:
    return revise(source, Edit(**edit)).text


PROGRESS = "- login\n- logout\n\n### Details\n\nSmall print.\n"
# An edit of the plan, and the passage of it that becomes another one.
CHANGES: list[tuple[dict[str, Any], str, str]] = [
    ({"find": "Ship in May", "text": "Ship in June"}, "Ship in May", "Ship in June"),
    ({"find": "- logout\n", "text": ""}, "- logout\n", ""),
    ({"find": "- login", "text": "\n- re", "mode": "append"}, "- login\n", "- login\n- re\n"),
    ({"find": "- login", "text": "- first\n", "mode": "prepend"}, "- login", "- first\n- login"),
    ({"find": "in May", "text": "in June", "mode": "replace_all"}, "in May", "in June"),
    ({"find": "in May", "text": "now", "section": "Plan > Open"}, "echo in May", "echo now"),
    # A section grows at its end above its subsections, or at its top.
    ({"section": "Progress", "mode": "append", "text": "- x"}, "logout\n", "logout\n- x\n"),
    ({"section": "plan › progress", "mode": "append", "text": "\n- x\n"}, "ut\n", "ut\n- x\n"),
    ({"section": "## Progress", "mode": "append", "text": "Done."}, "ut\n", "ut\n\nDone.\n"),
    ({"section": "Progress", "mode": "prepend", "text": "- start"}, "- login", "- start\n- login"),
    # A subsection goes behind the other subsections.
    ({"section": "Progress", "mode": "append", "text": "### Z"}, "print.\n", "print.\n\n### Z\n"),
    # A section is replaced with its subsections but not its heading.
    ({"section": "Progress", "text": "Nothing yet."}, PROGRESS, "Nothing yet.\n"),
    ({"section": "Progress", "text": ""}, f"\n{PROGRESS}", ""),
    # A field is set, and the lines of others stay.
    ({"fields": {"type": "fact"}}, "type: plan   #", "type: fact   #"),
    ({"fields": {"tags": ["x", "y"]}}, 'tags: [auth, "two words"]', "tags: [x, y]"),
    ({"fields": {"status": "old"}}, "12:00:00Z\n", "12:00:00Z\nstatus: old\n"),
    # A field goes with all its lines.
    ({"fields": {"steps": None}}, "steps:\n- one\n- two\n", ""),
    ({"fields": {"note": None}}, "note: |\n  several\n\n  lines\n", ""),
    ({"fields": {"absent": None}}, "", ""),
]


@pytest.mark.parametrize(("edit", "old", "new"), CHANGES)
def test_what_is_named_changes_and_nothing_else(edit: dict[str, Any], old: str, new: str) -> None:
    assert revised(**edit) == PLAN.replace(old, new)
    # Lines that end in two characters are found and kept.
    windows = PLAN.replace("\n", "\r\n")
    assert revised(windows, **edit) == PLAN.replace(old, new).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("edit", "error", "says"),
    [
        (
            {"find": "in May"},
            ValidationError,
            '"in May" occurs in the text 2 times, in lines 18, 33',
        ),
        ({"find": "Ship in Mai."}, NotFoundError, "   | 18: Ship in May."),
        ({"find": "Ship  in\nMay"}, NotFoundError, "Line 18 differs from it only in spaces"),
        ({"find": "type: plan"}, NotFoundError, "It is in the frontmatter: use fields"),
        ({"find": "nothing like this at all"}, NotFoundError, "<read a memory> shows the text"),
        (
            {"find": "Ship in May", "section": "Progress"},
            NotFoundError,
            "It is in line 18: name that section, or none",
        ),
        ({"section": "echo"}, NotFoundError, "Sections here: Plan; Plan › Progress; "),
    ],
)
def test_what_is_not_there_or_twice_is_answered_with_what_is(
    edit: dict[str, Any], error: type[RagdocsError], says: str
) -> None:
    with pytest.raises(error) as caught:
        revised(**edit, text="x")
    assert says in str(caught.value)


def test_matches_that_overlap_are_not_one() -> None:
    with pytest.raises(ValidationError, match="more than once in line 1"):
        revised("x aaa y\n", find="aa", text="b")


def test_one_of_several_sections_of_a_name_is_chosen_by_its_path() -> None:
    text = "# A\n\n## Notes\n\na\n\n# B\n\n## Notes\n\nb\n"
    with pytest.raises(ValidationError, match=r"2 sections are called \"Notes\": A › Notes .*; B"):
        revised(text, section="Notes", text="x")
    assert revised(text, section="B > Notes", text="x") == text.replace("\nb\n", "\nx\n")


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("text", ["# H", "# H\n\nold", "Title\n=====\nold"])
def test_the_end_of_a_file_stays_as_it_was(text: str, end: str) -> None:
    section = "H" if text.startswith("#") else "Title"
    for mode in ("append", "prepend", "replace"):
        changed = revised(text + end, section=section, mode=mode, text="new")
        assert changed.endswith("\n") == bool(end)
        assert "new" in changed.split("\n")


def test_the_ends_of_a_body_can_be_added_to() -> None:
    block = "---\na: 1\n---\n\n"
    assert revised(f"{block}body\n", text="top", mode="prepend") == f"{block}top\n\nbody\n"
    assert revised("body", text="end", mode="append") == "body\n\nend"
    assert revised("- a\n", text="- b", mode="append") == "- a\n- b\n"


@pytest.mark.parametrize(
    "edit",
    [
        {},
        {"text": "x"},
        {"find": "login"},
        {"section": "Progress"},
        {"find": "", "text": "x"},
        {"text": "x", "mode": "replace_all"},
        {"text": "x", "section": "Progress", "mode": "replace_all"},
        {"text": "x", "find": "login", "mode": "delete"},
        {"text": "x", "section": ""},
        {"fields": {"x": 1e300}},
    ],
)
def test_an_edit_that_cannot_be_meant_is_refused(edit: dict[str, Any]) -> None:
    with pytest.raises(RagdocsError) as caught:
        revised(**edit)
    assert caught.value.hint


# --- fields ---


def test_a_text_without_a_block_gets_one() -> None:
    assert revised("Body", fields={"status": "active"}) == "---\nstatus: active\n---\nBody"
    assert revised("---\n\nrule", fields={"a": 1}) == "---\na: 1\n---\n---\n\nrule"
    assert revised("---\na: 1\n---\n---\nx", fields={"a": None}) == "---\n---\n---\nx"


def test_body_and_fields_change_in_one_edit() -> None:
    changed = revised(find="Ship in May", text="Shipped", fields={"status": "done"})
    assert "status: done\n---\n" in changed
    assert "Shipped." in changed


def test_a_block_in_another_style_is_written_anew_with_the_same_fields() -> None:
    changed = revised("---\n{type: plan, tags: [a]}\n---\nBody\n", fields={"status": "done"})
    block, body, _ = metadata.split(changed)
    assert metadata.load(block or "")[0] == {"type": "plan", "tags": ["a"], "status": "done"}
    assert body == "Body\n"


def test_a_block_that_cannot_be_read_is_left_alone() -> None:
    broken = "---\na: [\n---\nBody\n"
    with pytest.raises(ParseError, match="frontmatter"):
        revised(broken, fields={"a": 1})
    assert revised(broken, find="Body", text="Text") == "---\na: [\n---\nText\n"


KEYS = st.sampled_from(["type", "status", "tags", "note", "a b", "Ü"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12),
    st.lists(st.sampled_from(["x", "3.10", "no", "a: b", "#tag", "'q'"]), max_size=3),
)
PIECES = st.sampled_from(["\n", "\r\n", "# H\n", "text ", "---\n", "a: b\n", "```\n", "- x\n"])
BODIES = st.lists(PIECES, max_size=12).map("".join)


@given(
    st.dictionaries(KEYS, VALUES), BODIES, st.dictionaries(KEYS, VALUES, min_size=1), st.booleans()
)
def test_fields_change_without_a_byte_of_the_body_and_back(
    before: dict[str, Any], body: str, fields: dict[str, Any], crlf: bool
) -> None:
    text = metadata.render(before, body) if before else body
    text = text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else text
    loaded, problems = metadata.load(metadata.split(text)[0] or "")
    if problems and not loaded:
        return
    changed = revised(text, fields=fields)
    block, rest, _ = metadata.split(changed)
    assert rest == metadata.split(text)[1]
    removed = {key for key, value in fields.items() if value is None}
    kept = {key: value for key, value in {**loaded, **fields}.items() if key not in removed}
    assert metadata.load(block or "")[0] == kept
    if crlf and "\r\n" in text:
        assert "\n" not in changed.replace("\r\n", "")


@given(BODIES, st.sampled_from(["append", "prepend"]), st.sampled_from(["new", "- new", "## new"]))
def test_the_body_changes_without_a_byte_of_the_block(body: str, mode: str, text: str) -> None:
    block = '---\ntags:   [ "a" ]\n#\n---\n'
    changed = revised(block + body, text=text, mode=mode)
    assert changed.startswith(block)
    left = changed.removeprefix(block).replace(text, "")
    assert sorted(left.split()) == sorted(body.replace(text, "").split())


def test_a_passage_of_several_lines_is_found_whatever_ends_them() -> None:
    text = PLAN.replace("\n", "\r\n")
    changed = revised(text, find="- login\n- logout", text="- both\n- more")
    assert changed == text.replace("- login\r\n- logout", "- both\r\n- more")
