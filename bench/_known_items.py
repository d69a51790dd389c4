"""Known-item sets out of translated documentation: a heading or a sentence, and its page."""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._labelled import Item, Labelled

# Pages of one language lie in a folder of its name, in `docs/<language>/` of this archive.
ARCHIVE = "fastapi.tar.gz"
# Questions of each kind that one page gives at most.
HEADINGS, SENTENCES = 3, 2
# Sentences of so many characters, or of half as many where a character is a syllable or a word.
SHORTEST, LONGEST = 50, 220
WIDE = frozenset({"zh", "ja", "ko"})

_HEADING = re.compile(r"(#{1,4})\s+(.+?)\s*(?:\{[^{}]*\})?\s*#*$")
_FENCE = ("```", "~~~")
_TAGS = re.compile(r"<[^<>]{1,500}>|\{[^{}]{1,200}\}|[*_`]|!?\[|\]\([^()]{0,500}\)")
# Where a sentence ends: the marks of East Asian languages need no space after them.
_END = re.compile("(?<=[.!?])\\s+|(?<=[\u3002\uff01\uff1f])")
# The beginnings of lines that are no prose.
_MARKS = ("#", "/", "{", "|", "-", "*", ">", "<", "!", ":", "[", "=", "+")
FRONT = "---"


@dataclass(slots=True)
class Page:
    """A page without the headings and sentences that questions were made of."""

    path: str
    title: str = ""
    lines: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def texts(source: Path) -> dict[str, dict[str, str]]:
    """Return the pages of each language by path, out of an archive or a folder."""
    if source.is_dir():
        pages = {}
        for file in sorted(filter(Path.is_file, source.glob("*/**/*.md"))):
            pages[file.relative_to(source).as_posix()] = file.read_text(encoding="utf-8")
    else:
        pages = dict(_unpacked(source))
    by_language: dict[str, dict[str, str]] = {}
    for path, text in pages.items():
        language, _, rest = path.partition("/")
        by_language.setdefault(language, {})[rest] = text
    return by_language


def _unpacked(source: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(source) as archive:
        for member in archive:
            _, _, path = member.name.partition("/docs/")
            opened = archive.extractfile(member)
            if opened is not None and path.endswith(".md"):
                yield path.replace("/docs/", "/"), opened.read().decode("utf-8")


def labelled(language: str, pages: Mapping[str, str]) -> Labelled:
    """Return the set of one language; its questions are in none of its pages."""
    counts: Counter[str] = Counter()
    for text in pages.values():
        counts.update(heading for _, _, heading in _headings(text))
    documents = []
    questions: list[Item] = []
    grades = {}
    for path, text in sorted(pages.items()):
        page = _page(path, text, counts, language)
        name = f"{language}/{path.removesuffix('.md')}"
        documents.append(Item(name, page.title, "\n".join(page.lines), {}))
        for kind, found in (("heading", page.headings), ("sentence", page.sentences)):
            for question in found:
                asked = Item(f"{language}-{len(questions)}", "", question, {"kind": kind})
                questions.append(asked)
                grades[asked.id] = {name: 1}
    return Labelled(language, documents, questions, grades)


def joined(sets: Sequence[Labelled]) -> Labelled:
    """Return one set of the pages of all languages; its questions are those of each."""
    documents: list[Item] = []
    questions: list[Item] = []
    grades: dict[str, Mapping[str, int]] = {}
    for one in sets:
        documents += one.documents
        questions += one.questions
        grades |= one.grades
    return Labelled("together", documents, questions, grades)


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the number of the line, the level and the words of each heading."""
    in_code = False
    for number, line in enumerate(text.split("\n")):
        if line.lstrip().startswith(_FENCE):
            in_code = not in_code
        match = _HEADING.match(line)
        if match and not in_code:
            yield number, len(match[1]), _plain(match[2])


def _page(path: str, text: str, counts: Mapping[str, int], language: str) -> Page:
    page = Page(path)
    removed = set()
    for number, level, heading in _headings(text):
        if level == 1 and not page.title:
            page.title = heading
            removed.add(number)
        elif counts[heading] == 1 and len(page.headings) < HEADINGS and _says_something(heading):
            page.headings.append(heading)
            removed.add(number)
    in_code = in_front = False
    for number, line in enumerate(text.split("\n")):
        if line.strip() == FRONT:
            in_front = not in_front if number == 0 or in_front else False
            continue
        if in_front and line.startswith("title:"):
            page.title = line.removeprefix("title:").strip(" \"'")
        if line.lstrip().startswith(_FENCE):
            in_code = not in_code
        if number in removed or in_front:
            continue
        page.lines.append(line if in_code else _without_sentence(line, page, language))
    return page


def _without_sentence(line: str, page: Page, language: str) -> str:
    """Return a line without its first sentence, if that makes a question."""
    if not line or line.startswith((*_MARKS, " ")) or len(page.sentences) == SENTENCES:
        return line
    first, *rest = _END.split(line, maxsplit=1)
    question = _plain(first)
    scale = 2 if language in WIDE else 1
    # A paragraph of one sentence stays: without it a short page would say nothing.
    if rest and rest[0] and SHORTEST <= scale * len(question) <= LONGEST:
        page.sentences.append(question)
        return rest[0]
    return line


def _says_something(heading: str) -> bool:
    return len(heading.split()) > 1 or (len(heading) >= 4 and not heading.isascii())


def _plain(text: str) -> str:
    return " ".join(_TAGS.sub("", text).split())
