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
    return revise(source, "plan.md", Edit(**edit)).text


# --- passages ---


def test_one_passage_is_replaced_and_nothing_else() -> None:
    assert revised(find="Ship in May", text="Ship in June") == PLAN.replace(
        "Ship in May", "Ship in June"
    )
    assert revised(find="- logout\n", text="") == PLAN.replace("- logout\n", "")


def test_text_goes_before_or_behind_a_passage() -> None:
    assert "- login\n- refresh\n- logout" in revised(
        find="- login", text="\n- refresh", mode="append"
    )
    assert "- first\n- login" in revised(find="- login", text="- first\n", mode="prepend")


def test_a_passage_that_stands_twice_is_refused_with_its_lines_unless_all_are_meant() -> None:
    with pytest.raises(
        ValidationError, match=r"\"in May\" stands in the text 2 times, in lines 18, 33"
    ):
        revised(find="in May", text="in June")
    assert revised(find="in May", text="in June", mode="replace_all") == PLAN.replace(
        "in May", "in June"
    )
    assert "Ship in June" in revised(find="in May", text="in June", section="Plan > Open").replace(
        "echo in", "Ship in"
    )


def test_matches_that_overlap_are_not_one() -> None:
    with pytest.raises(ValidationError, match="more than once in line 1"):
        revised("x aaa y\n", find="aa", text="b")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("Ship in Mai.", "   | 18: Ship in May."),
        ("Ship  in\nMay", 'Line 18 differs from it only in spaces: "Ship in May"'),
        ("type: plan", "It stands in the frontmatter: use fields"),
        ("nothing like this at all", "<read a memory> shows the text"),
    ],
)
def test_a_passage_that_is_not_there_is_answered_with_what_is(wanted: str, says: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        revised(find=wanted, text="x")
    assert "0 places match" in str(caught.value)
    assert says in str(caught.value)


def test_a_passage_of_another_section_is_named() -> None:
    with pytest.raises(NotFoundError, match="It stands in line 18: name that section, or none"):
        revised(find="Ship in May", text="x", section="Progress")


# --- sections ---


def test_a_section_grows_at_its_end_above_its_subsections() -> None:
    expected = PLAN.replace("- logout\n", "- logout\n- refresh\n")
    assert revised(section="Progress", mode="append", text="- refresh") == expected
    assert revised(section="plan › progress", mode="append", text="\n- refresh\n") == expected
    assert revised(section="## Progress", mode="append", text="Done.") == PLAN.replace(
        "logout\n", "logout\n\nDone.\n"
    )


def test_a_subsection_goes_behind_the_other_subsections() -> None:
    expected = PLAN.replace("Small print.\n", "Small print.\n\n### Later\n\nMore.\n")
    assert revised(section="Progress", mode="append", text="### Later\n\nMore.") == expected


def test_a_section_grows_at_its_top() -> None:
    assert revised(section="Progress", mode="prepend", text="- start") == PLAN.replace(
        "- login", "- start\n- login"
    )


def test_a_section_is_replaced_with_its_subsections_but_not_its_heading() -> None:
    old = "- login\n- logout\n\n### Details\n\nSmall print.\n"
    assert revised(section="Progress", text="Nothing yet.") == PLAN.replace(old, "Nothing yet.\n")
    assert revised(section="Progress", text="") == PLAN.replace(f"\n{old}", "")


def test_a_heading_in_code_is_none() -> None:
    assert revised(section="Progress", mode="append", text="- x").index("- x") < PLAN.index(
        "## Open"
    )
    with pytest.raises(NotFoundError, match=r"Sections here: .*Plan › Open"):
        revised(section="echo", text="x")


def test_one_of_several_sections_of_a_name_is_chosen_by_its_path() -> None:
    text = "# A\n\n## Notes\n\na\n\n# B\n\n## Notes\n\nb\n"
    with pytest.raises(
        ValidationError, match=r"2 sections are called \"Notes\": A › Notes .*; B › Notes"
    ):
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
    assert (
        revised("---\na: 1\n---\n\nbody\n", text="top", mode="prepend")
        == "---\na: 1\n---\n\ntop\n\nbody\n"
    )
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


def test_a_field_is_set_and_the_lines_of_others_stay() -> None:
    assert revised(fields={"type": "fact"}) == PLAN.replace("type: plan   #", "type: fact   #")
    assert revised(fields={"tags": ["x", "y"]}) == PLAN.replace(
        'tags: [auth, "two words"]', "tags: [x, y]"
    )
    assert revised(fields={"status": "archived"}) == PLAN.replace(
        "12:00:00Z\n", "12:00:00Z\nstatus: archived\n"
    )


def test_a_field_goes_with_all_its_lines() -> None:
    assert revised(fields={"steps": None}) == PLAN.replace("steps:\n- one\n- two\n", "")
    assert revised(fields={"note": None}) == PLAN.replace("note: |\n  several\n\n  lines\n", "")
    assert revised(fields={"absent": None}) == PLAN
    assert revised("---\na: 1\n---\n---\nx", fields={"a": None}) == "---\n---\n---\nx"


def test_a_text_without_a_block_gets_one() -> None:
    assert revised("Body", fields={"status": "active"}) == "---\nstatus: active\n---\nBody"
    assert revised("---\n\nrule", fields={"a": 1}) == "---\na: 1\n---\n---\n\nrule"


def test_body_and_fields_change_in_one_edit() -> None:
    changed = revised(find="Ship in May", text="Shipped", fields={"status": "done"})
    assert "status: done\n---\n" in changed
    assert "Shipped." in changed


def test_a_block_in_another_style_is_written_anew_with_the_same_fields() -> None:
    changed = revised("---\n{type: plan, tags: [a]}\n---\nBody\n", fields={"status": "done"})
    assert metadata.load(metadata.split(changed)[0] or "")[0] == {
        "type": "plan",
        "tags": ["a"],
        "status": "done",
    }
    assert metadata.split(changed)[1] == "Body\n"


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
    wanted = {
        key: value
        for key, value in {**loaded, **fields}.items()
        if value is not None or key not in fields
    }
    assert metadata.load(block or "")[0] == wanted
    if crlf and "\r\n" in text:
        assert "\n" not in changed.replace("\r\n", "")


@given(BODIES, st.sampled_from(["append", "prepend"]), st.sampled_from(["new", "- new", "## new"]))
def test_the_body_changes_without_a_byte_of_the_block(body: str, mode: str, text: str) -> None:
    block = '---\ntags:   [ "a" ]\n#\n---\n'
    changed = revised(block + body, text=text, mode=mode)
    assert changed.startswith(block)
    left = (
        changed.removeprefix(block).replace(text, "", 1)
        if mode == "prepend"
        else changed.removeprefix(block)
    )
    assert sorted(left.replace(text, "").split()) == sorted(body.replace(text, "").split())


def test_lines_that_end_in_two_characters_are_found_and_kept() -> None:
    text = PLAN.replace("\n", "\r\n")
    assert revised(text, find="- login\n- logout", text="- both\n- more") == (
        PLAN.replace("- login\n- logout", "- both\n- more").replace("\n", "\r\n")
    )
    for edit in (
        {"section": "Progress", "mode": "append", "text": "- a\n- b"},
        {"fields": {"type": "x", "n": 1}},
    ):
        assert revised(text, **edit) == revised(**edit).replace("\n", "\r\n")
