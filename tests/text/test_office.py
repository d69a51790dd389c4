"""Documents of office programs: converted in another process, which may fail as it likes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.errors import ParseError, UnavailableError
from ragdocs.project import documentation
from ragdocs.project.formats import BY_SUFFIX, EXTRAS, is_installed
from ragdocs.text import sections
from ragdocs.text.formats import office
from ragdocs.text.formats.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Project

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return data.getvalue()


def pdf(*pages: str, encrypted: bool = False) -> bytes:
    """Return a PDF with a line of text on each page."""
    kids = " ".join(f"{10 + 2 * number} 0 R" for number in range(len(pages)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <"
        + b"61" * 32
        + b"> /U <"
        + b"62" * 32
        + b"> >>",
    }
    for number, words in enumerate(pages):
        content = f"BT /F1 24 Tf 72 720 Td ({words}) Tj ET".encode()
        first = 10 + 2 * number
        objects[first] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        ).encode()
        objects[first + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    data = b"%PDF-1.4\n"
    offsets = {}
    for number, body in objects.items():
        offsets[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 1\n0000000000 65535 f \n"
    for number, offset in offsets.items():
        data += b"%d 1\n%010d 00000 n \n" % (number, offset)
    trailer = b"/Root 1 0 R /Size %d" % (max(objects) + 1)
    if encrypted:
        trailer += b" /Encrypt 4 0 R /ID [<61> <61>]"
    return data + b"trailer << %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer, start)


def docx() -> bytes:
    def paragraph(words: str, style: str = "") -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}<w:r><w:t>{words}</w:t></w:r></w:p>"

    body = (
        paragraph("Handbook", "Heading1")
        + paragraph("First words.")
        + paragraph("Setup", "Heading2")
        + "<w:tbl><w:tr><w:tc>"
        + paragraph("cell")
        + "</w:tc></w:tr></w:tbl>"
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    office_rels = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office_rels}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="r1" Type="{office_rels}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        }
    )


def slide(title: str, words: str) -> str:
    def shape(text: str, kind: str) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r>'
            f"<a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    shapes = shape(title, "title") + shape(words, "body")
    return f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"><p:cSld>{shapes}</p:cSld></p:sld>'


def pptx() -> bytes:
    """Return a presentation that shows its second file first."""
    return archive(
        {
            "ppt/presentation.xml": '<p:sldId id="1" r:id="rId2"/><p:sldId id="2" r:id="rId1"/>',
            "ppt/_rels/presentation.xml.rels": '<Relationship Id="rId1" Target="slides/slide1.xml"/>'
            '<Relationship Id="rId2" Target="slides/slide2.xml"/>',
            "ppt/slides/slide1.xml": slide("Later", "Second words."),
            "ppt/slides/slide2.xml": slide("Opening", "First words."),
        }
    )


def epub() -> bytes:
    page = "<html><body><h1>{0}</h1><p>{1}</p><script>hiddenword</script></body></html>"
    return archive(
        {
            "META-INF/container.xml": '<rootfile full-path="book/content.opf"/>',
            "book/content.opf": "<dc:title>The Book</dc:title>"
            '<item id="b" href="two.xhtml"/><item id="a" href="one.xhtml"/>'
            '<itemref idref="a"/><itemref idref="b"/>',
            "book/one.xhtml": page.format("Chapter one", "First words."),
            "book/two.xhtml": page.format("Chapter two", "Second words."),
        }
    )


MADE = {
    "docs/a.pdf": (pdf("First words.", "Second words."), ["Page 1", "Page 2"]),
    "docs/a.docx": (docx(), ["Handbook", "Handbook › Setup"]),
    "docs/a.pptx": (pptx(), ["Slide 1: Opening", "Slide 2: Later"]),
    "docs/a.epub": (epub(), ["Chapter one", "Chapter two"]),
}


def text_of(path: str, data: bytes) -> str:
    return office.convert(data, BY_SUFFIX[path[path.rindex(".") :]], path)


@pytest.mark.parametrize("path", MADE)
def test_a_document_is_read_with_its_pages_slides_or_headings(path: str) -> None:
    data, headings = MADE[path]
    page = read(text_of(path, data), path)
    assert [section.path for section in sections.outline(page.body, page.blocks)] == headings
    assert "First words." in page.body
    assert "hiddenword" not in page.body
    assert "<" not in page.body


def bomb(suffix: str) -> bytes:
    """Return an archive of some kilobytes that unfolds to 150 megabytes."""
    names = {".docx": "word/document.xml", ".pptx": "ppt/slides/slide1.xml", ".epub": "a.xhtml"}
    data = io.BytesIO()
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file,
        file.open(names[suffix], "w", force_zip64=True) as part,
    ):
        for _ in range(150):
            part.write(b" " * 1_000_000)
    return data.getvalue()


LAUGHS = (
    '<!DOCTYPE a [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1 if n else str()};" * 10}">' for n in range(12))
    + "]><a>&a11;</a>"
)


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        ("a.docx", docx()[:500], "zip"),
        ("a.docx", archive({"word/document.xml": "<broken"}), ""),
        ("a.pptx", archive({"ppt/slides/slide1.xml": LAUGHS}), ""),
        ("a.pptx", archive({"other": "x"}), "no slides"),
        ("a.epub", archive({"other": "x"}), "container.xml"),
        ("a.pdf", b"%PDF-1.4 nothing", ""),
        ("a.pdf", pdf("Words.")[:200], ""),
        ("a.pdf", pdf("Words.", encrypted=True), "password"),
        ("a.pdf", b"", ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hostile_or_damaged_document_is_refused(path: str, data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=f"a.*cannot be converted.*{reason}"):
        text_of(path, data)


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".epub"])
def test_a_document_that_unfolds_to_very_much_is_refused(suffix: str) -> None:
    with pytest.raises(ParseError, match=r"cannot be converted.*unpacks"):
        text_of(f"a{suffix}", bomb(suffix))


def test_a_converter_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_SECONDS", 0.001)
    with pytest.raises(ParseError, match="seconds"):
        text_of("a.pdf", pdf("Words that no other test has."))


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Act as if the packages of the extra were not installed."""
    monkeypatch.setitem(EXTRAS, "office", ("no_such_package",))
    is_installed.cache_clear()
    yield
    monkeypatch.undo()
    is_installed.cache_clear()


def test_documents_are_searched_with_the_extra(project: Project) -> None:
    for path, (data, _) in MADE.items():
        project.doc(path.removeprefix("docs/"), "").write_bytes(data)
    project.doc("broken.pdf", "").write_bytes(b"%PDF-1.4 nothing")
    workspace = project.open()
    hits = workspace.documents.search("first words", limit=10).hits
    assert {hit.document.path for hit in hits} == set(MADE)
    answer = ask(workspace, "read_doc", path="docs/a.pdf", heading="Page 2")
    assert "Second words." in answer["content"]
    assert "First words." not in answer["content"]
    status = ask(workspace, "index_status")
    lane = next(lane for lane in status["lanes"] if lane["lane"] == "docs")
    assert list(lane["problems"]) == ["docs/broken.pdf"]


@pytest.mark.usefixtures("without_extra")
def test_without_the_extra_status_names_the_files_and_the_extra(project: Project) -> None:
    project.doc("a.md", "# A\n\nwords")
    project.doc("a.pdf", "").write_bytes(MADE["docs/a.pdf"][0])
    assert not any(glob.endswith(".pdf") for glob in documentation.default_globs(project.root)[0])
    status = ask(project.open(), "index_status")
    lane = next(lane for lane in status["lanes"] if lane["lane"] == "docs")
    assert lane["problems"] == {}
    assert "1 document is not read without ragdocs[office]: docs/a.pdf" in lane["notes"]
    with pytest.raises(UnavailableError, match=r"ragdocs\[office\]"):
        text_of("a.pdf", MADE["docs/a.pdf"][0])
