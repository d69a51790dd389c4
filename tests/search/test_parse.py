from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.lanes import DOCS, MEMORY, Lane
from ragdocs.search.parse import parse
from ragdocs.types import Document, GitContext, Parsed, Source


def read(text: str, path: str = "notes/auth-plan.md", lane: Lane = MEMORY) -> Parsed:
    return parse(
        Source(path, text, "v1", "s1", len(text), datetime(2025, 1, 1, tzinfo=UTC), ("bad UTF-8",)),
        lane,
    )


def card(text: str, path: str = "notes/auth-plan.md", lane: Lane = MEMORY) -> Document:
    return read(text, path, lane).document


def problems(text: str, lane: Lane = MEMORY) -> list[str]:
    return list(card(text, lane=lane).problems[1:])


def test_everything_in_the_frontmatter_is_optional() -> None:
    document = card("Words.")
    assert (document.kind, document.status, document.tags, document.created_at) == (
        "journal",
        "active",
        (),
        None,
    )
    assert card("Words.", lane=DOCS).kind == "document"


def test_only_the_markdown_suffix_is_dropped_from_an_id() -> None:
    assert [card("x", path).id for path in ("a.md", "a.txt", "a.MD", "a")] == [
        "memory:a",
        "memory:a.txt",
        "memory:a.MD",
        "memory:a.",
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Given\n---\n# Heading", "Given"),
        ("---\ntitle: 3.10\n---\n# Heading", "3.10"),
        ("intro\n\n## Two\n\n# One ##\n", "One"),
        ("One\n===\n\n# Other", "One"),
        ("```\n# code\n```\n\n# Real", "Real"),
        ("<!--\n# hidden\n-->\n# Real", "Real"),
        ("# `Code` and [a link](x.md) **bold** <img src=x> {#id}", "Code and a link bold"),
        ("#hashtag\n\nno heading", "Auth plan"),
        ("#\n", "Auth plan"),
        ("", "Auth plan"),
        ("# C#\n", "C#"),
    ],
)
def test_a_title_is_given_or_the_main_heading_or_the_file_name(text: str, title: str) -> None:
    assert card(text).title == title


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("a/some_notes.txt", "\n  A short line\nmore", "A short line"),
        ("a/some_notes.txt", "word " * 40, "Some notes"),
        ("a/some_notes.txt", "---\ntitle: x\n---\n", "---"),
        ("a/guide.rst", "=====\nGuide\n=====\n\nPart\n----\n", "Guide"),
        ("a/guide.rst", "Intro\n\nThe Part\n--------\n", "The Part"),
        ("a/guide.rst", "# not markdown\n", "Guide"),
    ],
)
def test_plain_text_finds_its_title_in_its_own_way(path: str, text: str, title: str) -> None:
    assert card(text, path).title == title


def test_plain_text_has_no_links_and_no_metadata() -> None:
    document = card("---\ntype: plan\n---\n[[x]] and [y](z.md)", "a.txt")
    assert (document.links, document.kind, document.problems) == ((), "journal", ("bad UTF-8",))


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("[Auth, auth, ' refactor ', '#bug']", ("Auth", "refactor", "bug")),
        ("auth, refactor,, auth", ("auth", "refactor")),
        (
            "[no, on, 12:30:45, 3.10, 2025-01-10, 7, true, ~]",
            ("no", "on", "12:30:45", "3.10", "2025-01-10", "7", "true"),
        ),
        ("single", ("single",)),
        ("5", ("5",)),
        ("", ()),
        ("[]", ()),
    ],
)
def test_tags_are_what_the_author_wrote_without_repetitions(
    written: str, tags: tuple[str, ...]
) -> None:
    document = card(f"---\ntags: {written}\n---\n")
    assert (document.tags, document.problems) == (tags, ("bad UTF-8",))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2025-01-10", datetime(2025, 1, 10, tzinfo=UTC)),
        ("2025-01-10 10:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10T10:00:00Z", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        (
            "2025-01-10 10:00:00.5 +02:00",
            datetime(2025, 1, 10, 10, 0, 0, 500_000, timezone(timedelta(hours=2))),
        ),
        ("20250110", datetime(2025, 1, 10, tzinfo=UTC)),
        ('"2025-01-10T10:00:00"', datetime(2025, 1, 10, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_aware_however_it_was_written(written: str, expected: datetime) -> None:
    document = card(f"---\ncreated_at: {written}\nexpires_at: {written}\n---\n")
    assert document.created_at is not None
    assert document.created_at == document.expires_at == expected
    assert document.created_at.utcoffset() == expected.utcoffset()


def test_a_date_stands_in_for_created_at_and_stays_in_extra() -> None:
    document = card("---\ndate: 2025-01-10\n---\n")
    assert document.created_at == datetime(2025, 1, 10, tzinfo=UTC)
    assert document.extra == {"date": "2025-01-10"}
    assert card("---\ncreated_at: 2025-01-11\ndate: 2025-01-10\n---\n").created_at == datetime(
        2025, 1, 11, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "written", ["soon", "2025-13-01", "0001-01-01T00:00:00+05:00", "[2025]", "true"]
)
def test_an_unreadable_time_is_none_and_reported(written: str) -> None:
    assert card(f"---\ncreated_at: {written}\n---\n").created_at is None
    (problem,) = problems(f"---\ncreated_at: {written}\n---\n")
    assert problem.startswith("frontmatter: created_at: ")


@pytest.mark.parametrize(
    ("written", "number"), [("7", 7.0), ("0.50", 0.5), ('"3"', 3.0), ("-1", -1.0)]
)
def test_importance_is_a_number(written: str, number: float) -> None:
    assert card(f"---\nimportance: {written}\n---\n").importance == number


@pytest.mark.parametrize("written", ["high", ".inf", "nan", "true", "[1]"])
def test_importance_that_is_no_finite_number_is_reported(written: str) -> None:
    text = f"---\nimportance: {written}\n---\n"
    assert card(text).importance is None
    assert len(problems(text)) == 1


def test_files_that_were_being_changed_are_touched_by_the_memory() -> None:
    document = card(
        "---\ngit:\n  branch: main\n  commit: 0012345\n  dirty: true\n"
        "  files_changed: [src/a.py, src\\b.py, src/a.py, ../out.py]\n---\n[[c]]"
    )
    assert document.git == GitContext(
        "main", "0012345", dirty=True, files_changed=("src/a.py", "src/b.py")
    )
    assert [(link.target, link.kind) for link in document.links] == [
        ("c", "related_to"),
        ("src/a.py", "touches"),
        ("src/b.py", "touches"),
    ]
    assert document.links[1].context == "src/a.py was being changed on main at 0012345"


def test_unknown_metadata_is_kept_as_plain_values() -> None:
    document = card(
        "---\ncertainty: 0.9\nnested: {when: 2025-01-10, list: [1, no]}\nsource: manual\naliases: A, B\n---\n"
    )
    assert document.extra == {"certainty": 0.9, "nested": {"when": "2025-01-10", "list": [1, "no"]}}
    assert json.loads(json.dumps(document.extra)) == document.extra
    assert (document.source, document.aliases) == ("manual", ("A", "B"))


def test_an_unknown_type_is_kept_and_reported_only_where_one_may_write() -> None:
    text = "---\ntype: Idea\n---\n"
    assert card(text).kind == card(text, lane=DOCS).kind == "Idea"
    assert "unknown type 'Idea'" in problems(text)[0]
    assert problems(text, DOCS) == []
    assert problems("---\ntype: Plan\n---\n") == []


@pytest.mark.parametrize(
    "block", ["tags: [a", "- a\n- b", "a: &x 1\nb: *x", "[" * 100_000, "x: " + "y" * 70_000]
)
def test_a_refused_block_is_reported_and_stays_in_the_body(block: str) -> None:
    text = f"---\n# not a title\n{block}\n---\n# Title\n"
    parsed = read(text)
    assert parsed.body == text
    assert (parsed.first_line, parsed.document.title) == (1, "Title")
    assert len(parsed.document.problems) == 2
    assert parsed.document.problems[1].startswith("frontmatter: ")


def test_a_description_is_searched_above_the_text_unless_the_text_begins_with_it() -> None:
    text = "---\ntitle: Pods\ndescription: What runs\n  together.\n---\n\nWords.\n"
    parsed = read(text)
    assert parsed.body == "What runs together.\n\nWords.\n"
    assert parsed.first_line == 5
    copied = "---\nsummary: Words *stand* here.\n---\n# Pods\n\nWords stand here.\n"
    assert read(copied).body == "# Pods\n\nWords stand here.\n"
    assert read("---\ndescription: [a]\n---\nWords.\n").body == "Words.\n"


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("title: {#each ...}", "{#each ...}"),
        ("title: {let/const}", "{let/const}"),
        ("title: use: and more", "use: and more"),
        ("tags: [a\ntitle: 'Plain'", "Plain"),
    ],
)
def test_a_title_that_is_no_yaml_is_read_as_it_is_written(written: str, title: str) -> None:
    assert card(f"---\n{written}\n---\n\nWords.\n", lane=DOCS).title == title
    assert card(f"---\n{written}\n---\n\n# Main\n", lane=DOCS).title == "Main"


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    text = "---\ntype: plan\n---\n# Title\n\n[[x]]\n"
    plain, windows = read(text), read("\ufeff" + text.replace("\n", "\r\n"))
    assert windows.body == plain.body
    assert windows.first_line == plain.first_line
    assert (windows.document.title, windows.document.links) == (
        plain.document.title,
        plain.document.links,
    )


def test_a_generated_file_has_no_more_links_than_can_be_followed() -> None:
    document = card("[[a]] " * 6_000)
    assert len(document.links) == 5_000
    assert "more than 5000 links" in document.problems[-1]


@given(st.text(max_size=400), st.sampled_from(["a.md", "b/c.txt", "d.rst", "-.md", ".md"]))
def test_any_text_becomes_a_card_with_a_title(text: str, path: str) -> None:
    for written in (text, f"---\n{text}\n---\n{text}"):
        document = card(written, path)
        assert document.title
        assert "\n" not in document.title
        json.dumps(dict(document.extra))
