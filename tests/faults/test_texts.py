"""Hostile files and queries: none is fatal, none is slow, no file is touched."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.asking import ask
from tests.engines.reads import ANYTHING, get, listed, matching
from tests.hostile import queries

from ragdocs.errors import ValidationError
from ragdocs.lanes import MEMORY
from ragdocs.search import chunk, parse
from ragdocs.stores.files.store import SIZE_LIMIT
from ragdocs.types import Source
from ragdocs.verbs.quality.health import lane_state
from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

# What the scoreboard allows, in seconds of processor time, and how much more a busy machine may
# make of it.
QUICK = 0.5
LARGE = 2.0
SLACK = 3


@dataclass(frozen=True)
class Case:
    """A file, words that find it, and what status says of it: nothing if it is fine."""

    data: bytes
    words: Sequence[str] = ("needle",)
    problem: str = ""
    found: bool = True


def front(block: str, body: str = "needle\n") -> bytes:
    return f"---\n{block}\n---\n\n{body}".encode()


CASES = {
    "bad utf-8": Case(b"# Title\n\nneedle caf\xe9 after\n", ("needle", "after"), "UTF-8.*line 3"),
    "utf-16": Case("needle".encode("utf-16"), problem="NUL", found=False),
    "latin-1 only": Case("größe needle".encode("latin-1"), problem="UTF-8"),
    "utf-16 without a mark": Case("needle".encode("utf-16-be"), problem="NUL", found=False),
    "utf-32": Case("needle".encode("utf-32"), problem="NUL", found=False),
    "shift-jis": Case("needle 日本語".encode("shift-jis"), problem="UTF-8"),
    "cut inside a character": Case("needle größ".encode()[:-1], problem="UTF-8"),
    "bom": Case(b"\xef\xbb\xbf---\ntags: [bomtag]\n---\n\nneedle\n", ("needle", "bomtag")),
    "crlf": Case(
        b"---\r\ntags: [crlftag]\r\n---\r\n\r\n# Title\r\n\r\nneedle\r\n",
        ("needle", "crlftag", "title"),
    ),
    "carriage returns only": Case(b"# Title\rneedle\r"),
    "mixed line ends": Case(b"# A\r\n\nneedle\r\n## B\nother\r", ("needle", "other")),
    "no newline at the end": Case(b"needle"),
    "empty": Case(b"", ("empty",)),
    "white space only": Case(b" \n\t\n\r\n", ("white",)),
    "binary": Case(b"\x89PNG\r\n\x1a\n\0\0needle", problem="NUL", found=False),
    "only a byte order mark": Case(b"\xef\xbb\xbf", ("mark",)),
    "unclosed yaml": Case(front("tags: [a, b"), problem="frontmatter: line"),
    "yaml with a tab": Case(front("tags:\n\t- a"), problem="frontmatter: line 3"),
    "unclosed block": Case(b"---\ntags: [a]\n\nneedle\n"),
    "alias": Case(front("a: &x [1]\nb: *x"), problem="anchors and aliases"),
    "billion laughs": Case(
        front("a: &a [x]\n" + "\n".join(f"b{n}: &b{n} [*a, *a, *a]" for n in range(30))),
        problem="anchors and aliases",
    ),
    "python tag": Case(front("a: !!python/object/apply:os.system [echo]"), problem="tag"),
    "own tag": Case(front("a: !mine 1"), problem="tag"),
    "dates": Case(
        front("created_at: 2026-02-04\ntags: [2026-02-04, 12:30:45, no, on, 3.10]"),
        ("needle", "3.10"),
    ),
    "unreadable date": Case(front("created_at: next tuesday"), problem="created_at"),
    "date out of range": Case(front("created_at: 0001-01-01T00:00:00+14:00"), problem="created_at"),
    "duplicate keys": Case(
        front("tags: [first]\ntags: [second]"), ("needle", "second"), "duplicate key 'tags'"
    ),
    "a list": Case(front("- a\n- b"), problem="not a mapping"),
    "a word": Case(front("justaword"), ("needle", "justaword"), "not a mapping"),
    "a number": Case(front("42"), problem="not a mapping"),
    "null": Case(front("null"), problem="not a mapping"),
    "an empty block": Case(b"---\n---\n\nneedle\n"),
    "a comment only": Case(front("# nothing"), problem="not a mapping"),
    "deep": Case(front("a: " + "[" * 30_000), problem="nested deeper"),
    "large block": Case(front("a: " + "x" * 70_000), problem="larger than 64 kB"),
    "many values": Case(front("a: [" + "1, " * 21_000 + "1]"), problem="more than 20000 values"),
    "two documents": Case(b"---\na: 1\n---\nneedle\n---\nb: 2\n---\n"),
    "control characters": Case(front("a: \x01"), problem="frontmatter"),
    "wrong types": Case(
        front("type: [a]\ntags: {a: 1}\nimportance: high\ngit: 1\nstatus: {}"),
        problem="type.*tags.*importance|tags",
    ),
    "unknown type": Case(front("type: Banana"), problem="unknown type 'Banana'"),
    "keys that are not words": Case(
        front("1: a\ntrue: b\nnull: c\n? [x]\n: d"), problem="frontmatter"
    ),
    "half a character": Case(b'---\ntitle: "\\ud800"\n---\n\nneedle\n', problem=".*"),
    "unclosed fence": Case(b"# Title\n\n```python\nneedle = 1\n"),
    "a long line": Case(b"needle " + b"x" * 500_000),
    "many links": Case(b"needle " + b"[[a" * 60_000),
    "many headings": Case(b"# a\n" * 20_000 + b"needle\n"),
    "html": Case(b"<!-- hidden needle --><script>x</script>\n"),
    "right to left": Case("\u202eneedle\u202c עברית".encode(), ("needle", "עברית")),
}
# What has no answer that everybody would expect is only asked to do no harm.
LENIENT = {
    "control characters",
    "keys that are not words",
    "half a character",
    "null",
    "a comment only",
}


@pytest.fixture(scope="module")
def planted() -> dict[str, bytes]:
    return {f"{name.replace(' ', '-')}.md": case.data for name, case in CASES.items()}


# --- how long one text takes ---

# Texts over which a careless pattern would brood.
UNITS = (
    "[[a", "[[", "[", "]]", "![", "[a](", "[a][", "[[a]]", "]:", "`", "` ``", "``` ", "<!--",
    "<a ", "\\", "*a", "**", "# ", "#\n", "> ", "- ", "1. ", "| a |\n", "=\n", "---\n", "~~~\n",
    "```\n", "    x\n", "\t", "a\r", "&#x0;", "{#",
)  # fmt: skip
# The same for the readers of other formats.
UNITS_OF_FORMATS = {
    "a.mdx": ("<A b={", "<A>", "{/*", "import a from 'b'\n", "export const a = {\n", ":::\n", "    !!! a\n", "```{note}\n"),
    "a.md": ("{{< a ", "{{< a >}}", "{%", "!!! a\n", "/// a\n", "+++\n", "{{< highlight >}}\n", "<style>\n", "&nbsp;", "<A\n", "::a\n", "::a{b='\n---\n", ":a[", "{a}`b", "(a)=\n", "# a {/*\n", ":material-a", "```{toctree}\n", "```{toctree} a b\n", "{ref}`a <b>`", "(a)=\n[](#b)", "(a)=\n](a", "a\n: b\n", "a\n\n: b\n\n", ":name: a\n{eq}`a`\n"),
    "a.rst": (".. a::\n", ".. _a:\n", "..\n", "a::\n\n x\n", ":ref:`a", "`a <b>`_", "a\n=\n\n", "a\n a\n", "a\n\n a\n\n", "+--+\n", "=====\na\n"),
    "a.adoc": ("= a\n", "{a}", ":a: {a}\n", "<<a,", "xref:a[", "----\n", "////\n", "[[a]]\n", "[source]\n", "include::a[]\n", "a::\n\n", "a::\n", "xref:a@b:c$", "--\n"),
    "a.org": ("* a\n", "#+begin_src\n", ":PROPERTIES:\n", ": a\n", "[[a][", "#+a: b\n", ":LOGBOOK:\n", ":a:\n", "* a :TOC:\n", "* :a:", "<<a", "[[a.b::*", "#+include: a\n"),
    "a.ipynb": ("[", "[]", '{"cells":[', '"', '\\"', '"a":', '{"cells":[{"source":["a\\n"]},'),
    "a.html": ("<", "<a ", "<a href='", "<a \"'>", "<!--", "<!-- >", "<![", "</", "<p>", "<div>", "<pre>", "<nav>", "&#1", "<td>", "<dd>", "<dt>a<dd>"),
    "docs/a.txt": ("a\n", "= a\n", "a::\n", "*a.txt*\n", " >\n", "=" * 20 + "\n", "|a", "*a* "),
}  # fmt: skip


def cost(data: bytes, path: str = "a.md") -> float:
    """Return the processor time of reading one text and cutting it into passages."""
    text = data.decode("utf-8", "replace")
    source = Source(path, text, "v", "s", len(data), datetime(2026, 2, 4, tzinfo=UTC))
    started = time.process_time()
    assert chunk.chunk(parse.parse(source, MEMORY), MEMORY.chunking)
    return time.process_time() - started


def test_no_hostile_file_takes_long(tally: Tally) -> None:
    yaml = [
        case.data for case in CASES.values() if case.data.startswith((b"---", b"\xef\xbb\xbf---"))
    ]
    encoded = [
        case.data for case in CASES.values() if "UTF-8" in case.problem or "NUL" in case.problem
    ]
    others = [case.data for case in CASES.values() if case.data not in (*yaml, *encoded)]
    units = [(unit * (100_000 // len(unit))).encode() for unit in UNITS]
    assert len(yaml) >= 26
    assert len(encoded) >= 6
    worst = max(map(cost, [*yaml, *encoded, *others, *units]))
    counts = {
        "yaml": len(yaml),
        "encodings": len(encoded),
        "patterns": len(units),
        "others": len(others),
    }
    tally("S3 hostile files", **counts, deaths=0, worst_ms=round(1000 * worst))
    assert worst < QUICK * SLACK


@pytest.mark.parametrize("path", UNITS_OF_FORMATS)
def test_no_hostile_file_of_any_format_takes_long(tally: Tally, path: str) -> None:
    units = UNITS_OF_FORMATS[path]
    costs = [cost((unit * (100_000 // len(unit))).encode(), path) for unit in units]
    tally("S3 hostile formats", texts=len(units), deaths=0, worst_ms=round(1000 * max(costs)))
    assert max(costs) < QUICK * SLACK


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("a.mdx", "<A>"),
        ("a.rst", ":ref:`a"),
        ("a.adoc", "{a}"),
        ("a.org", "* a\n"),
        ("a.ipynb", "[]"),
        ("a.html", "<a class=b>"),
    ],
)
def test_ten_megabytes_of_any_format_take_seconds(tally: Tally, path: str, unit: str) -> None:
    taken = cost((unit * (10_000_000 // len(unit))).encode(), path)
    tally("S3 ten megabytes of formats", texts=1, deaths=0, worst_ms=round(1000 * taken))
    assert taken < LARGE * SLACK


@pytest.mark.parametrize("unit", ["[[", "#", "`", "#\n"])
def test_ten_megabytes_of_marks_take_seconds(tally: Tally, unit: str) -> None:
    taken = cost((unit * (10_000_000 // len(unit))).encode())
    tally("S3 ten megabytes of marks", texts=1, deaths=0, worst_ms=round(1000 * taken))
    assert taken < LARGE * SLACK


def test_a_file_of_nothing_but_different_words_holds_up_no_other(project: Project) -> None:
    project.doc(
        "words.md", " ".join(f"{number * 7919 % 10_000_019:08}w" for number in range(990_000))
    )
    project.doc("small.md", "# Harbour\n\nA needle.")
    started = time.process_time()
    workspace = project.open()
    corpus = workspace.open_lanes["docs"].corpus
    assert time.process_time() - started < LARGE * SLACK
    assert "different words" in corpus.skipped["docs/words.md"]
    state = lane_state(corpus, "none")
    assert "different words" in state.problems["docs/words.md"]
    assert not any("not indexed yet" in note for note in state.notes)
    assert listed(corpus.index) == ["docs/small.md"]
    # It is not tried again until it changes, and not forgotten.
    started = time.process_time()
    report = corpus.sync()
    assert time.process_time() - started < 1
    assert "different words" in report.skipped["docs/words.md"]
    project.doc("words.md", "few words")
    assert corpus.sync().skipped == {}
    assert listed(corpus.index) == ["docs/small.md", "docs/words.md"]


def test_what_stands_below_too_many_headings_is_found_as_text() -> None:
    text = "# a\n" * 40_000 + "\nneedle at the end\n"
    source = Source("a.md", text, "v", "s", len(text), datetime(2026, 2, 4, tzinfo=UTC))
    pieces = chunk.chunk(parse.parse(source, MEMORY), MEMORY.chunking)
    assert pieces[-1].text.endswith("needle at the end")
    assert pieces[-1].end_line == 40_002


# --- hostile queries ---


def test_no_query_raises_or_takes_long(project: Project, tally: Tally) -> None:
    for number in range(8):
        project.doc(
            f"{number}.md", f"# Page {number}\n\nA needle and word{number} of the harbour.\n"
        )
        project.memory(
            f"{number}.md", f"A needle, word{number}, and the lantern [[src/auth.py]].\n"
        )
    workspace = project.open(**{"embedding.model": "all-MiniLM-L6-v2"})
    searches: list[Callable[[str], object]] = [
        workspace.documents.search,
        workspace.memories.search,
        lambda query: workspace.memories.linked(query, "src/auth.py"),
    ]
    worst = 0.0
    for query in queries().values():
        for search in searches:
            started = time.process_time()
            try:
                search(query)
            except ValidationError:
                # Nothing to look for is refused; everything else is answered.
                assert not query.strip()
            worst = max(worst, time.process_time() - started)
    count = len(queries())
    tally(
        "S4 hostile queries",
        queries=count,
        searches=len(searches) * count,
        errors=0,
        worst_ms=round(1000 * worst),
    )
    assert count >= 42
    assert worst < QUICK * SLACK


# --- files as they are found ---


def problems(workspace: Workspace) -> dict[str, str]:
    # status shows as many as fit; the rest are counted there.
    corpus = workspace.open_lanes["memory"].corpus
    with corpus.index.snapshot() as snapshot:
        documents = snapshot.list(ANYTHING)
    named = {card.path: "; ".join(card.problems) for card in documents if card.problems}
    return {**named, **corpus.skipped}


def test_odd_files_are_indexed_as_far_as_possible_and_stay_as_they_are(
    project: Project, planted: dict[str, bytes]
) -> None:
    for name, data in planted.items():
        project.memory(name, "").write_bytes(data)
    project.memory("fine.md", "plain needle")
    workspace = project.open()
    told = problems(workspace)
    index = workspace.open_lanes["memory"].index
    for name, case in CASES.items():
        path = f"{name.replace(' ', '-')}.md"
        assert (project.root / ".memories" / path).read_bytes() == case.data, name
        assert (get(index, path) is not None) == case.found, name
        if name in LENIENT:
            continue
        assert bool(case.problem) == (path in told), (name, told.get(path))
        assert re.search(case.problem, told.get(path, ""), re.DOTALL), (name, told.get(path))
    assert "fine.md" not in told
    for name, case in CASES.items():
        if case.found and name not in LENIENT:
            for word in case.words:
                path = f"{name.replace(' ', '-')}.md"
                assert path in matching(index, word, k=1000), (name, word)


def test_status_names_files_with_problems_and_counts_those_it_does_not_name(
    project: Project,
) -> None:
    project.doc("binary.md", "").write_bytes(b"\0\0")
    project.doc("good.md", "fine")
    for number in range(200):
        project.memory(f"{number}.md", "").write_bytes(b"caf\xe9")
    status = ask(project.open(), "index_status")
    lanes = {lane["lane"]: lane for lane in status["lanes"]}
    assert list(lanes["docs"]["problems"]) == ["docs/binary.md"]
    assert (lanes["docs"]["documents"], lanes["memory"]["documents"]) == (1, 200)
    named = len(lanes["memory"]["problems"])
    assert 10 < named < 200
    note = f"{200 - named} more files have problems; `ragdocs lint` lists them all"
    assert note in lanes["memory"]["notes"]


def test_five_megabytes_are_searched_to_the_last_line(project: Project) -> None:
    line = "Plain words about harbours, lanterns and rivers in the evening.\n"
    body = "".join(f"## Part {n}\n\n{line * 100}\n" for n in range(800))
    data = f"# Large\n\nfirstneedle\n\n{body}\nlastneedle\n".encode()
    project.doc("large.md", "").write_bytes(data)
    workspace = Workspace(project.config(), project.clock)
    workspace.sync()
    assert len(data) > 5_000_000
    for word in ("firstneedle", "lastneedle"):
        assert workspace.documents.search(word).hits[0].document.path == "docs/large.md"
    assert (project.root / "docs/large.md").read_bytes() == data


def test_a_file_beyond_the_limit_is_named_and_left_out(project: Project) -> None:
    # So deep that the whole path is longer than the room for a reason.
    project.root /= "deep" * 40
    project.doc("huge.md", "").write_bytes(b"x" * (SIZE_LIMIT + 1))
    project.doc("small.md", "needle")
    workspace = project.open()
    status = ask(workspace, "index_status")
    lane = next(lane for lane in status["lanes"] if lane["lane"] == "docs")
    assert "10 MB" in lane["problems"]["docs/huge.md"]
    assert lane["documents"] == 1


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_file_whose_name_is_not_text_hurts_nobody(project: Project) -> None:
    project.doc("good.md", "good needle")
    folder = os.fsencode(project.root / "docs")
    with open(folder + b"/caf\xe9.md", "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(b"# Odd\n\nodd needle\n")
    workspace = project.open()
    workspace.save()
    hits = workspace.documents.search("needle").hits
    assert any(hit.document.path == "docs/good.md" for hit in hits)
    again = project.open()
    assert again.open_lanes["docs"].index.info() == workspace.open_lanes["docs"].index.info()
