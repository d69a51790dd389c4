"""Every format is read with its structure, and at the lines that it has in its file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.asking import ask
from tests.text.format_cases import CASES, NOTEBOOK, Case, line_of

from ragdocs.lanes import DOCS, Chunking
from ragdocs.project.formats import FORMATS
from ragdocs.search.chunk import CODE, chunk
from ragdocs.search.parse import parse
from ragdocs.text import sections
from ragdocs.text.formats.reading import format_of_text, read
from ragdocs.types import Chunk, Parsed, Source

if TYPE_CHECKING:
    from tests.conftest import Project

of_every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
SUFFIXES = [".md", ".mdx", ".rst", ".adoc", ".org", ".ipynb", ".html", ".txt", ".other"]
_WORD = re.compile(r"\w+")


def parsed(path: str, text: str) -> Parsed:
    return parse(Source(path, text, "v", "s", len(text)), DOCS)


def passages(path: str, text: str) -> tuple[Chunk, ...]:
    return chunk(parsed(path, text), Chunking(40, 60))


@of_every_case
def test_a_text_has_its_format_title_headings_links_and_ids(case: Case) -> None:
    document = parsed(case.path, case.text).document
    assert document.format == case.format
    assert document.title == case.title
    assert document.problems == ()
    assert [link.target for link in document.links] == list(case.links)
    assert document.anchors == tuple(case.anchors)
    page = read(case.text, case.path)
    assert [section.path for section in sections.outline(page.body, page.blocks)] == list(
        case.headings
    )


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("a.md", "# Using `Box<T>` to point {#box}\n", "Using Box<T> to point"),
        ("a.md", "# `<Transition>` {#transition}\n", "<Transition>"),
        ("a.md", "# \\<script setup> \\*\n", "<script setup> *"),
        ("a.md", '# [`map<K>`](m.md) <sup class="new" />\n', "map<K>"),
        ("a.md", "# C:\\temp and a `\n", "C:\\temp and a"),
        ("a.rst", "``QuerySet``\\s are lazy\n=====================\n", "QuerySets are lazy"),
    ],
)
def test_headings_keep_code_and_escaped_characters(path: str, text: str, title: str) -> None:
    page = read(f"{text}\nWords.\n", path)
    assert [section.path for section in sections.outline(page.body, page.blocks)] == [title]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ('# 9.7.0 <small>June 3</small> { id="9.7.0" }\n', "9.7.0 June 3"),
        ("# Changes to `*.html` { data-search-exclude }\n", "Changes to *.html"),
        ("# Title {: title='x y' }\n", "Title"),
        ("# <!-- md:setting listing.shadow -->\n", "md:setting listing.shadow"),
        ("# GET {item}\n", "GET {item}"),
        ("# f {a=b}\n", "f {a=b}"),
        ("# load({content})\n", "load({content})"),
    ],
)
def test_attributes_of_a_heading_are_no_words_of_it(written: str, seen: str) -> None:
    page = read(f"{written}\nWords.\n", "a.md")
    assert [block.title for block in page.blocks if block.title] == [seen]


def test_a_heading_is_found_by_an_id_that_is_written_as_html_writes_it() -> None:
    text = '# T\n\n## Nine { id="9.7.0" }\n\nWords.\n'
    page = read(text, "a.md")
    outline = sections.outline(page.body, page.blocks)
    assert sections.find(outline, "9.7.0", anchor=True).block.title == "Nine"


@pytest.mark.parametrize(
    ("path", "written", "seen"),
    [
        ("a.adoc", "See linkgit:git-remote[1].", "See git-remote(1)."),
        ("a.adoc", "Use javadoc:org.A[format=full] or configprop:a.b[].", "Use org.A or a.b."),
        ("a.adoc", "Press kbd:[Ctrl+C] at image:logo.png[Logo,30].", "Press Ctrl+C at Logo."),
        ("a.adoc", "include-code::MyBean[]", "MyBean"),
        ("a.adoc", "See {spring}/cors.html#x[the controls].", "See the controls."),
        ("a.adoc", "Type std{two-colons}map and {unknown}.", "Type std::map and {unknown}."),
        ("a.adoc", "Note: rows[1] and a value:", "Note: rows[1] and a value:"),
        ("a.org", "Press {{{kbd(M-RET)}}}.", "Press M-RET."),
        ("a.org", "See [[*The\nsection][that]].", "See that\n."),
    ],
)
def test_macros_are_read_as_the_words_that_people_see(path: str, written: str, seen: str) -> None:
    assert read(f"{written}\n", path).body.rstrip() == seen


RST_REFERENCE = """\
See :ref:`set-up`, :ref:`this <set-up>` and :ref:`far`.

.. _set-up:

First steps
===========
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.adoc", "See <<set-up>>, <<set-up,this>> and <<far>>.\n\n[[set-up]]\n== First steps\n"),
        ("a.rst", RST_REFERENCE),
    ],
)
def test_a_reference_without_words_has_the_title_of_its_section(path: str, text: str) -> None:
    assert read(text, path).body.startswith("See First steps, this and far.\n")


def test_a_link_with_an_unknown_attribute_leads_nowhere() -> None:
    text = ":docs: guide\n\n{docs}/a.adoc[here], {other}/b.adoc[there]\n"
    assert [link.target for link in parsed("a.adoc", text).document.links] == ["guide/a.adoc"]


def test_an_underlined_title_may_begin_with_a_mark() -> None:
    text = "Title\n=====\n\n`text`\n~~~~~~\n\nWords.\n\n------\ncode\n------\n"
    page = read(text, "a.adoc")
    assert [block.title for block in page.blocks if block.title] == ["Title", "text"]
    assert [block.kind for block in page.blocks] == ["heading", "heading", "text", "code"]


SHORTCODES = """\
# Settings

{{< code-toggle file=hugo >}}
# A comment
[[polls]]
{{< /code-toggle >}}

{{< code-toggle config=cache />}}

{{< highlight go "linenos=table" >}}
a := `b`
{{< /highlight >}}

{% highlight ruby %}
# Ruby
{% endhighlight %}

{{< highlight go >}}
Never closed.
"""


def test_code_within_a_shortcode_is_code_and_neither_headings_nor_links() -> None:
    page = read(SHORTCODES, "a.md")
    code = [page.body[block.start : block.stop] for block in page.blocks if block.kind in CODE]
    assert code == [
        "```\n# A comment\n[[polls]]\n```",
        "```go\na := `b`\n```",
        "```ruby\n# Ruby\n```",
    ]
    assert [block.title for block in page.blocks if block.title] == ["Settings"]
    assert "Never closed." in page.body
    assert parsed("a.md", SHORTCODES).document.links == ()


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("a&nbsp;b&mdash;c &#8212; &lt;d&gt; `&nbsp;`", "a b—c — &lt;d&gt; `&nbsp;`"),
        ('Loads {{<\n glossary_tooltip text="plane" >}} now', "Loads plane\n now"),
        ('Press <button data-x="1">lime</button>, --in <input>', "Press lime, --in <input>"),
        ("<style>\n.a {}\n\n.b {}\n</style>\nWords", "\n\n\n\n\nWords"),
        ("<script>run</script>\nWords", "\nWords"),
        ("<script> in a sentence", "<script> in a sentence"),
        ("<style>\n```html\n</style>\n```", "<style>\n```html\n</style>\n```"),
        ('--8<-- "docs/part.md"', "docs/part.md"),
        ("{* ../src/main.py hl[1] *}", "../src/main.py"),
        ("<<< @/snippets/a.js{2}", "@/snippets/a.js"),
        ("The {* a and b *} sign", "The {* a and b *} sign"),
        ("Click :material-check:{ .ok } it", "Click it"),
        ('=== ":octicons-file-16: Setup"', "Setup"),
        ("[Go](a.md){ .md-button } or [off](b.md){target=_blank}", "[Go](a.md) or [off](b.md)"),
        ("Use f(x){y} at 10:30, std::map and x[:n]", "Use f(x){y} at 10:30, std::map and x[:n]"),
        ("`:badge[x]{y}` and `{ref}`", "`:badge[x]{y}` and `{ref}`"),
        ('::: {.callout-note title="Mind"}', "callout-note: Mind"),
        (':::image source="a.png" alt-text="The dialog":::', "image: The dialog"),
        ('{% tab title="npm" %}', "npm"),
        ('{% assign title = "npm" %}', ""),
        ('<Tabs>\n<TabItem value="npm">\nRun it', "\nnpm\nRun it"),
        ("Where <T> is\n<File> or more", "Where <T> is\n<File> or more"),
    ],
)
def test_html_and_marks_of_sites_are_no_words(written: str, seen: str) -> None:
    assert read(f"{written}\n", "a.md").body == f"{seen}\n"


def test_a_file_that_is_included_in_markdown_is_linked() -> None:
    text = "{{#include part.md:3:5}}\n\n<!--@include: ./other.md{2,}-->\n"
    assert [link.target for link in parsed("a.md", text).document.links] == ["part.md", "other.md"]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("## Headings\n\n<h1>One</h1>\n<h2>Two</h2>\n<h3>Three</h3>\n", ["Headings"]),
        ("# Page\n\n## Example\n\n<h1>Shown</h1>\n\nWords.\n", ["Page", "Example"]),
        ("<h1>Title</h1>\n<h3>Below</h3>\n\n## Part\n", ["Title", "Below", "Part"]),
        ("# Page\n\n<h2>Part</h2>\n\nWords.\n", ["Page", "Part"]),
    ],
)
def test_a_title_in_an_example_of_html_is_no_heading(text: str, headings: list[str]) -> None:
    page = read(text, "a.md")
    assert [block.title for block in page.blocks if block.title] == headings


def test_an_item_of_a_list_in_html_begins_with_its_mark() -> None:
    text = (
        "<ul>\n<li>\n  <p>One\n  goes on</p>\n<li><p></p></li><li><pre>two</pre></li>\n</ul>\nEnd"
    )
    page = read(f"<html>\n{text}</html>", "a.html")
    assert page.body == "- One\ngoes on\n\ntwo\n\nEnd\n"
    assert page.numbers[0] == 4


def test_a_title_has_the_characters_that_its_entities_stand_for() -> None:
    page = read("# Q&amp;A of `&amp;` &lt;b&gt;\n\nWords.\n", "a.md")
    assert [block.title for block in page.blocks if block.title] == ["Q&A of &amp; <b>"]


def test_html_in_a_notebook_is_taken_out_at_its_lines() -> None:
    text = """{"cells": [{"cell_type": "markdown", "source": [
        "# Title\\n",
        "<div class='x'>\\n",
        "Some <b>words</b>\\n",
        "</div>"]}], "nbformat": 4}"""
    pieces = passages("a.ipynb", text)
    everything = "\n".join(piece.text for piece in pieces)
    assert "Some words" in everything
    assert "div" not in everything
    assert pieces[-1].end_line <= line_of(text, "</div>")


@of_every_case
def test_passages_have_the_words_that_a_reader_sees_at_their_lines(case: Case) -> None:
    pieces = passages(case.path, case.text)
    for words, line in case.words:
        holders = [piece for piece in pieces if words in piece.text]
        assert holders, words
        assert any(piece.start_line <= line <= piece.end_line for piece in holders), words
    everything = "\n".join(piece.text for piece in pieces)
    for words in case.unread:
        assert words not in everything


@of_every_case
def test_code_is_a_block_of_its_own(case: Case) -> None:
    page = read(case.text, case.path)
    code = [page.body[block.start : block.stop] for block in page.blocks if block.kind in CODE]
    assert code == list(case.code)


@of_every_case
def test_a_section_is_at_the_lines_of_its_heading(case: Case) -> None:
    page = read(case.text, case.path)
    lines = case.text.split("\n")
    outline = sections.outline(
        page.body, page.blocks, first_line=page.first_line, numbers=page.numbers
    )
    for section in outline:
        assert section.block.title in lines[section.line - 1]
        assert section.line <= section.last_line <= len(lines)


def test_every_format_of_the_table_is_tried_here() -> None:
    tried = {case.format for case in CASES}
    assert tried == {kind.name for kind in FORMATS if not kind.extra}


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("a.txt", "Title\n=====\n\nWords.\n", "reStructuredText"),
        ("a.txt", "Words of :doc:`other`.\n", "reStructuredText"),
        ("a.txt", "= Title\n\n== Part\n\nWords.\n", "AsciiDoc"),
        ("a.txt", "<!DOCTYPE html><title>x</title><p>y", "HTML"),
        ("a.txt", "Name  Value\n-----------\n1  2\n", "reStructuredText"),
        ("a.txt", "*a.txt*\tA plugin\n\nSee |a-setup|.\n", "Vim help"),
        ("a.txt", "*a.txt* is the file\n\nWords.\n", "plain text"),
        ("a.txt", "words --- and more\n\n---- \n", "plain text"),
        ("README", "# Title\n\nWords.\n", "Markdown"),
        ("README", "Title\n=====\n\n.. note:: x\n", "reStructuredText"),
        ("a.log", "12:00 started\n12:01 stopped\n", "plain text"),
        ("a.RST", "no title", "reStructuredText"),
        ("a.md", "Title\n=====\n\n.. note:: x\n", "Markdown"),
    ],
)
def test_the_format_is_told_by_the_ending_or_by_the_text(path: str, text: str, name: str) -> None:
    assert format_of_text(text, path).name == name


def test_a_notebook_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    for length in range(0, len(NOTEBOOK), 7):
        text = NOTEBOOK[:length]
        everything = "".join(piece.text for piece in passages("a.ipynb", text))
        assert "cell_type" not in everything
    assert "import numpy" in everything


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", "not JSON at all", '{"cells": []}'])
def test_what_is_no_notebook_is_named_and_not_read(text: str) -> None:
    document = parsed("a.ipynb", text)
    assert "no cells" in document.document.problems[0]
    assert document.body == ""


def test_an_old_notebook_has_its_cells_in_worksheets() -> None:
    text = """{"worksheets": [{"cells": [
        {"cell_type": "code", "input": ["x = 1\\n", "y = 2"], "outputs": []},
        {"cell_type": "markdown", "source": ["# Old"]}]}], "nbformat": 3}"""
    page = read(text, "a.ipynb")
    assert "x = 1\ny = 2" in page.body
    assert [block.title for block in page.blocks if block.title] == ["Old"]


@pytest.mark.parametrize(
    ("block", "problem"),
    [("a = [", "frontmatter"), ("a = " + "[" * 5_000, "frontmatter"), ("a = 1 2", "line 1")],
    ids=["unclosed", "deep", "malformed"],
)
def test_broken_toml_above_a_text_is_named_and_searched_as_text(block: str, problem: str) -> None:
    document = parsed("a.md", f"+++\n{block}\n+++\n\n# Title\n")
    assert problem in document.document.problems[0]
    assert block in document.body


# --- whatever the text ---

_MARKS = [
    "# One", "## Two", "= One", "== Two", "* One", "** Two", "One", "===", "---", "~~~", "", "", "  ", "```",
    "```{note}", "::: tip Title", ":::", '!!! note "Title"', "    indented words", "   * deeper", "/// tab | x", "///",
    "import a from 'b'", "export const x = {", "};", "<Tabs a={1}>", "</Tabs>", "{/* words */}", '{{< ref "a.md" >}}',
    '{{< tab name="x" >}}', ".. note:: words", ".. code-block:: py", "   :option: value", ".. _label:", "words::", "..",
    ":ref:`words <label>` and", ":doc:`page`", "`text <url>`_", "``code``", "[[anchor]]", "[source,py]", "----", "....",
    "|===", "|a |b", "////", "include::x.adoc[]", "xref:a.adoc[words]", "<<id,words>>", ":attr: value", "NOTE: words",
    "#+begin_src py", "#+end_src", ":PROPERTIES:", ":END:", "#+TITLE: words", "[[file:a.org][words]]", ": code",
    "<h1>One</h1>", "<p>words <a href='x'>more</a>", "<pre>", "</pre>", "<script>", "</script>", "<nav>", "</nav>",
    "<!-- words -->", "&amp; words", '{"cells": [{"cell_type": "code", "source": ["words\\n"', "]}", "]", "\u2028",
    "+++", 'title = "x"', "words in a row that make a line", "日本語の文", "\t\x0c", "a\r",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_MARKS), max_size=30).map("\n".join) | st.text(max_size=200)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(SUFFIXES))
def test_the_lines_of_a_passage_have_its_words(text: str, suffix: str) -> None:
    path = f"docs/page{suffix}"
    document = parsed(path, text)
    pieces = chunk(document, Chunking(40, 60))
    lines = text.replace("\r\n", "\n").split("\n")
    assert pieces == chunk(document, Chunking(40, 60))
    starts = [piece.start_line for piece in pieces]
    assert starts == sorted(starts)
    for piece in pieces:
        assert 1 <= piece.start_line <= piece.end_line <= len(lines)
        if piece.text == document.document.title or suffix == ".adoc":
            # A document without text is found by its title; AsciiDoc has values of attributes.
            continue
        source = "\n".join(lines[piece.start_line - 1 : piece.end_line]).casefold()
        own = piece.text.casefold()
        if suffix == ".ipynb":
            own = re.sub(r"\(cell \d+\)|```.*", "", own)
        if "&" in source or "\\" in source:
            # Characters that are written by their names.
            continue
        for word in _WORD.findall(own):
            assert word in source


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(SUFFIXES))
def test_blocks_are_in_order_and_hold_all_that_is_read(text: str, suffix: str) -> None:
    page = read(text, f"page{suffix}")
    done = 0
    for block in page.blocks:
        assert done <= block.start < block.stop <= len(page.body)
        assert not page.body[done : block.start].strip()
        assert all(block.start <= joint <= block.stop for joint in block.joints)
        done = block.stop
    assert not page.body[done:].strip()
    if page.numbers:
        assert len(page.numbers) == page.body.count("\n") + 1
        assert list(page.numbers) == sorted(page.numbers)
    for reference in page.references or ():
        assert 0 <= reference.start <= reference.stop <= len(page.body)


# --- through the tools ---


def test_a_notebook_and_a_page_are_found_and_read_as_people_see_them(project: Project) -> None:
    for case in CASES:
        project.doc(case.path.partition("/")[2], case.text)
    workspace = project.open()
    hit = workspace.documents.search("import numpy hello").hits[0]
    assert hit.document.path == "docs/study.ipynb"
    lines = f"{hit.chunk.start_line}-{hit.chunk.end_line}"
    answer = ask(workspace, "read_doc", path="docs/study.ipynb", lines=lines)
    assert "```python cell 2\nimport numpy\n" in answer["content"]
    section = ask(workspace, "read_doc", path="docs/study.ipynb#deep")
    assert section["content"].startswith("## Deep\n(cell 3)")
    assert int(section["lines"].partition("-")[0]) == line_of(NOTEBOOK, "## Deep")
    page = ask(workspace, "read_doc", path="docs/page.html", heading="Setup")
    assert page["content"].startswith("Setup\n\n- one")
    text = ask(workspace, "show_text", path="docs/page.html", text_lane="docs")
    assert "hiddenword" not in text["content"]


def test_a_label_leads_to_the_document_that_has_it(project: Project) -> None:
    project.doc("a.rst", "A\n=\n\nSee :ref:`the-place`.\n")
    project.doc("b.rst", "B\n=\n\n.. _the-place:\n\nPlace\n-----\n\nWords.\n")
    corpus = project.open().corpus("docs")
    links = corpus.links(["the-place"])
    assert [source for source, found in links.items() if found] == ["docs:docs/a.rst"]


def test_status_names_what_is_read_as_plain_text(project: Project) -> None:
    project.doc("a.md", "# A")
    for number in range(7):
        project.doc(f"{number}.txt", "only words")
    status = ask(project.open(), "index_status")
    notes = next(lane["notes"] for lane in status["lanes"] if lane["lane"] == "docs")
    assert notes[0].startswith("7 documents are read as plain text, without headings: docs/0.txt")
    assert notes[0].endswith("and 2 more")


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("xref:b.adoc[B]", "docs/modules/one/pages/b.adoc"),
        ("xref:a/b.adoc#c[B]", "docs/modules/one/pages/a/b.adoc"),
        ("xref:./b.adoc[B]", "docs/modules/one/pages/deep/b.adoc"),
        ("xref:two:b.adoc[B]", "docs/modules/two/pages/b.adoc"),
        ("xref:2.0@two:b.adoc[B]", "docs/modules/two/pages/b.adoc"),
        ("xref:two:page$b.adoc[B]", "docs/modules/two/pages/b.adoc"),
        # Where another component is, nobody knows.
        ("xref:other:two:a/b.adoc[B]", "a/b.adoc"),
        ("xref:other::b.adoc[B]", "b.adoc"),
        ("include::partial$b.adoc[]", "docs/modules/one/partials/b.adoc"),
        ("include::two:example$b.sh[]", "docs/modules/two/examples/b.sh"),
        ("include::b.adoc[]", "docs/modules/one/pages/deep/b.adoc"),
        ("xref:some-id[B]", "some-id"),
    ],
)
def test_a_name_in_a_module_of_antora_begins_at_the_pages_of_the_module(
    written: str, target: str
) -> None:
    document = parsed("docs/modules/one/pages/deep/x.adoc", f"= X\n\n{written}\n").document
    assert [link.target for link in document.links] == [target]


@pytest.mark.parametrize("written", ["xref:{name}.adoc[B]", "include::{dir}/partial$b.adoc[]"])
def test_a_name_with_an_unknown_attribute_leads_nowhere(written: str) -> None:
    assert parsed("modules/one/pages/x.adoc", f"= X\n\n{written}\n").document.links == ()


ORG_FILE = """\
:PROPERTIES:
:ID: file-1
:END:
#+TITLE: Lamps

* Contents :TOC:
- [[#install][Install]]
  - [[#deep][Deep]]

* Install
:LOGBOOK:
CLOCK: [2026-01-01 Thu 10:00]--[2026-01-01 Thu 11:00] =>  1:00
:END:
:NOTES:
Mind the <<gap>>, see [[file:b.org::*Head][b]] and [[#deep]].
:END:
#+INCLUDE: "./c.org::#part" :minlevel 1
#+INCLUDE: d.org
"""


def test_org_is_read_without_records_and_tables_of_contents() -> None:
    read_as = parsed("docs/a.org", ORG_FILE)
    seen = " ".join(read_as.body.split())
    assert seen == "Lamps Install Mind the gap, see b and deep. ./c.org d.org"
    links = [(link.target, link.heading) for link in read_as.document.links]
    assert links == [("docs/b.org", "Head"), ("docs/c.org", "part"), ("docs/d.org", "")]
    # Notes are linked by the id of their file.
    assert read_as.document.anchors == ("file-1",)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("{{#rustdoc_include ../x/main.rs:here}}", "../x/main.rs"),
        ('--8<-- "x/main.py:2:4"', "x/main.py:2:4"),
        ('println!("{{#if x}}");', 'println!("{{#if x}}");'),
    ],
)
def test_code_has_the_name_of_a_file_that_is_inserted_into_it(written: str, seen: str) -> None:
    page = read(f"# T\n\n```rust\n{written}\n```\n\n::: tip\n:::\n", "a.md")
    assert page.body.split("\n")[3] == seen
