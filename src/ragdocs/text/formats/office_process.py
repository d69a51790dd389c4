"""The process that converts one document: bytes on standard input, text on standard output.

Pages of a PDF and slides become sections of markdown. A text document and a book become HTML, which
has their headings already.
"""

from __future__ import annotations

import html
import io
import posixpath
import re
import sys
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from ragdocs.system import processes

# What one process may take and give.
_MEMORY_BYTES = 2_000_000_000
_CPU_SECONDS = 30
_LONGEST_TEXT = 5_000_000
_MOST_PAGES = 3_000
# The parts of an archive, all together and unpacked.
_UNPACKED_BYTES = 100_000_000
_MOST_PARTS = 5_000

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")
_DECK = "ppt/presentation.xml"
_DECK_LINKS = "ppt/_rels/presentation.xml.rels"
_RELATION = re.compile(r"<Relationship\b([^<>]{0,2000})>")
_SLIDE_ID = re.compile(r"<p:sldId\b[^<>]{0,500}\br:id=\"([^\"]{1,100})\"")
_BLOCK_END = re.compile(r"(</(?:p|h[1-6]|li|tr|table|ul|ol|pre)>)")
_BODY = re.compile(r"<body\b[^<>]{0,2000}>(.*?)(?:</body|\Z)", re.DOTALL | re.IGNORECASE)
_ITEM = re.compile(r"<(?:\w+:)?item\b([^<>]{0,2000})>")
_SPINE = re.compile(r"<(?:\w+:)?itemref\b([^<>]{0,2000})>")
_ROOT = re.compile(r"full-path=\"([^\"]{1,500})\"")
_VALUE = re.compile(r"\b(id|href|idref|Id|Target)=\"([^\"]{1,500})\"")
_TITLE = re.compile(r"<dc:title\b[^<>]{0,500}>([^<>]{1,500})<")


class RefusedError(Exception):
    """A document that cannot or must not be converted."""


def main() -> int:
    """Convert the document on standard input; the argument is the ending of its file."""
    processes.limit(_MEMORY_BYTES, _CPU_SECONDS)
    suffix = sys.argv[1]
    convert = {".pdf": _pdf, ".docx": _docx, ".pptx": _pptx, ".epub": _epub}[suffix]
    try:
        text = convert(sys.stdin.buffer.read())
    except MemoryError:
        sys.stderr.write("it needs too much memory\n")
        return 1
    except (RefusedError, zipfile.BadZipFile, ET.ParseError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    clean = text.replace("\r\n", "\n").replace("\0", "")
    sys.stdout.buffer.write(clean[:_LONGEST_TEXT].encode(errors="replace"))
    return 0


def _pdf(data: bytes) -> str:
    """Return the pages of a PDF; one that has a heading of its own still begins with its number."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        sections = []
        for number in range(min(len(document), _MOST_PAGES)):
            page = document[number]
            text = page.get_textpage().get_text_range()
            sections.append(f"## Page {number + 1}\n\n{_paragraphs(text)}")
            page.close()
    except pypdfium2.PdfiumError as error:
        raise RefusedError(str(error)) from None
    return "\n\n".join(sections)


def _paragraphs(text: str) -> str:
    """Return the text of a page without marks of markdown at the beginning of lines."""
    # A word that is divided at the end of a line has this character in it.
    joined = text.replace("\r\n", "\n").replace("\ufffe", "").replace("\x02", "")
    return re.sub(r"^(?=[#>`~=-])", r"\\", joined, flags=re.MULTILINE)


def _docx(data: bytes) -> str:
    """Return a text document as HTML, without its pictures."""
    import mammoth

    _archive(data).close()
    try:
        result = mammoth.convert_to_html(
            io.BytesIO(data), convert_image=mammoth.images.img_element(_no_image)
        )
    except (KeyError, ValueError, AttributeError, RecursionError, OSError) as error:
        raise RefusedError(f"it is damaged ({type(error).__name__})") from None
    # One block a line, so that line numbers say something.
    body = _BLOCK_END.sub("\\1\n", result.value)
    return f"<!doctype html>\n<html><body>\n{body}\n</body></html>\n"


def _no_image(image: object) -> dict[str, str]:  # noqa: ARG001 - mammoth's signature
    return {}


def _archive(data: bytes) -> zipfile.ZipFile:
    """Open an archive, unless it would unfold to more than a document needs."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    parts = archive.infolist()
    if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > _UNPACKED_BYTES:
        raise RefusedError(f"it unpacks to more than {_UNPACKED_BYTES // 1_000_000} MB")
    if any(part.flag_bits & 1 for part in parts):
        raise RefusedError("it is encrypted")
    return archive


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError:
        raise RefusedError(f"it has no {name}") from None
    except (NotImplementedError, OSError, EOFError, ValueError) as error:
        raise RefusedError(f"{name} cannot be unpacked ({type(error).__name__})") from None


def _pptx(data: bytes) -> str:
    """Return the slides of a presentation."""
    archive = _archive(data)
    slides = _slides(archive)
    if not slides:
        raise RefusedError("it has no slides")
    sections = []
    for number, name in enumerate(slides, 1):
        root = ET.fromstring(_part(archive, name))  # noqa: S314 - bounded
        lines = list(_slide_lines(root))
        title = _slide_title(root)
        heading = f"## Slide {number}"
        if title:
            heading += f": {title}"
        sections.append("\n\n".join([heading, *lines]))
    return "\n\n".join(sections)


def _slides(archive: zipfile.ZipFile) -> list[str]:
    """Return the slides in the order in which they are shown, or in that of their names."""
    numbered = {}
    for name in archive.namelist():
        match = _SLIDE.fullmatch(name)
        if match:
            numbered[int(match[1])] = name
    in_file = [numbered[number] for number in sorted(numbered)]
    if not {_DECK, _DECK_LINKS} <= set(archive.namelist()):
        return in_file
    targets = {}
    for tag in _RELATION.finditer(_part(archive, _DECK_LINKS).decode(errors="replace")):
        values = dict(_VALUE.findall(tag[1]))
        targets[values.get("Id", "")] = f"ppt/{values.get('Target', '')}"
    slides = []
    for identifier in _SLIDE_ID.findall(_part(archive, _DECK).decode(errors="replace")):
        if targets.get(identifier) in in_file:
            slides.append(targets[identifier])
    return slides or in_file


def _slide_title(root: ET.Element) -> str:
    for shape in root.iter(f"{_SLIDES}sp"):
        for placeholder in shape.iter(f"{_SLIDES}ph"):
            if placeholder.get("type") in {"title", "ctrTitle"}:
                return " ".join(" ".join(_words(shape)).split())
    return ""


def _slide_lines(root: ET.Element) -> Iterator[str]:
    """Yield the paragraphs of a slide in the order of the file."""
    for paragraph in root.iter(f"{_DRAWING}p"):
        line = "".join(_words(paragraph)).strip()
        if line:
            yield _paragraphs(line)


def _words(element: ET.Element) -> Iterator[str]:
    for part in element.iter():
        if part.tag == f"{_DRAWING}t":
            yield part.text or ""
        elif part.tag == f"{_DRAWING}br":
            yield " "


def _epub(data: bytes) -> str:
    """Return the chapters of a book as one page of HTML."""
    archive = _archive(data)
    container = _part(archive, "META-INF/container.xml").decode(errors="replace")
    root = _ROOT.search(container)
    if not root:
        raise RefusedError("it does not name its contents")
    package = _part(archive, root[1]).decode(errors="replace")
    folder = posixpath.dirname(root[1])
    files = {}
    for item in _ITEM.finditer(package):
        values = dict(_VALUE.findall(item[1]))
        files[values.get("id", "")] = values.get("href", "")
    title = _TITLE.search(package)
    pages = ["<!doctype html>", f"<html><title>{title[1] if title else ''}</title><body>"]
    for item in _SPINE.finditer(package):
        href = files.get(dict(_VALUE.findall(item[1])).get("idref", ""), "")
        if href:
            name = posixpath.normpath(posixpath.join(folder, html.unescape(href)))
            page = _part(archive, name).decode(errors="replace")
            body = _BODY.search(page)
            pages.append(body[1] if body else "")
    return "\n".join([*pages, "</body></html>\n"])


if __name__ == "__main__":
    sys.exit(main())
