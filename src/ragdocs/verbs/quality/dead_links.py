"""Links in documents that lead nowhere: to a file or a heading that does not exist.

Only files are looked at. Addresses in the network, and paths that begin at the top of a site, mean
something that is not known here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ragdocs.errors import NotFoundError, RagdocsError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.system.patterns import later
from ragdocs.text import frontmatter, links
from ragdocs.text.formats import markdown

# Most documents need no outline.
if TYPE_CHECKING:
    from ragdocs.text.sections import Section

# More of the same complaint helps nobody.
MOST_OF_DOCUMENT = 20
# Documents whose sections are kept while links are looked at.
MOST_OUTLINES = 256
MARKDOWN = (".md", ".markdown", ".mdx")
# What a site generator makes pages of.
SOURCES = (".md", ".rst", ".mdx", ".ipynb")
_WIKI_HEADING = later(r"#(?P<heading>[^|\]\n]+)")
_HEADING = later(r"(?:\?[^\s()#]*)?#(?P<heading>[^\s()<>\"']+)")
_OWN_HEADING = later(r"\]\(#(?P<heading>[^\s()<>\"']+)\)")
# Each way to write a link or to define where it leads has one of these.
_MARKS = ("[[", "](", "]:")
# A line of a source file, as code hosts name it, and a text to find, as browsers do.
_NO_HEADING = later(r"L\d+(?:-L?\d+)?|:~:.*")


@dataclass(frozen=True, slots=True)
class DeadLink:
    """A link that leads nowhere, by its line."""

    line: int
    reason: str


@dataclass(frozen=True)
class DeadLinks:
    """Finds the dead links of one lane; wikilinks may also lead to what `corpora` hold."""

    root: Path
    corpus: Corpus
    corpora: Sequence[Corpus]

    def find(self, path: str) -> list[DeadLink]:
        """Return the dead links of one document, by line."""
        if not path.endswith(MARKDOWN):
            return []
        try:
            text = self._text(path)
        except RagdocsError:
            # That it cannot be read is a problem of its own.
            return []
        if not any(mark in text for mark in _MARKS):
            return []
        _, body, first_line = frontmatter.split(text)
        blocks = markdown.blocks(body, top=first_line == 1)
        prose = links.visible(body, blocks)
        dead = []
        for start, reason in islice(sorted(self._dead(prose, path)), MOST_OF_DOCUMENT):
            line = first_line + prose.count("\n", 0, start)
            dead.append(DeadLink(line, reason))
        return dead

    def _dead(self, prose: str, path: str) -> Iterator[tuple[int, str]]:
        """Yield where each dead link stands and why it is one."""
        full_path = posixpath.join(self.corpus.lane.base, path)
        for start, stop, target, is_wiki in links.places(prose, full_path):
            written = prose[start:stop]
            if is_wiki:
                heading = _WIKI_HEADING.match(prose, stop)
                exists = self._is_known(target) or self._exists(target)
            else:
                heading = _HEADING.match(prose, stop)
                # Which folder is the top of a site is not known here.
                exists = written.startswith("/") or self._exists(target)
            if not exists:
                yield start, f"the link to {written} leads to no file"
            elif heading and not self._has_heading(target, heading["heading"]):
                yield start, f"{written} has no heading {heading['heading']!r}"
        for match in _OWN_HEADING.finditer(prose):
            if not self._has_heading(full_path, match["heading"]):
                yield match.start(), f"there is no heading {match['heading']!r} in this document"

    def _exists(self, target: str) -> bool:
        """Tell whether a path from the root is a file or a folder, also one that becomes a page."""
        path = self.root / target.removesuffix("/*")
        candidates = [path, path.with_name(f"{path.name}.md")]
        if path.suffix in ("", ".html"):
            candidates += [path.with_suffix(suffix) for suffix in SOURCES]
        return any(map(_is_there, candidates))

    def _is_known(self, target: str) -> bool:
        return target.casefold() in self._names

    @cached_property
    def _names(self) -> Collection[str]:
        """The names by which wikilinks may mean a document or a memory."""
        names: set[str] = set()
        for corpus in self.corpora:
            for document in corpus.documents():
                file = PurePosixPath(document.path)
                names.update((document.path, str(file.with_suffix("")), file.name, file.stem))
                names.update((document.title, *document.aliases))
                names.add(str(document.extra.get("id") or document.path))
        return {name.casefold() for name in names}

    def _has_heading(self, target: str, heading: str) -> bool:
        """Tell whether a markdown file has a heading; of other files that is not known."""
        file = self._markdown_file(target)
        if not file or _NO_HEADING.fullmatch(heading):
            return True
        try:
            text, outline = self._outlined(file)
        except RagdocsError:
            return True
        from ragdocs.text import sections

        if re.search(rf"\b(?:id|name)=[\"']?{re.escape(heading)}\b", text):
            return True
        try:
            sections.find(outline, unquote(heading), anchor=True)
        except NotFoundError:
            return False
        except ValidationError:
            # There are several of this name.
            return True
        return True

    @cached_property
    def _outlined(self) -> Callable[[str], tuple[str, list[Section]]]:
        """Return the text and the sections of a file; a page that many link to is read once."""
        return lru_cache(maxsize=MOST_OUTLINES)(self._outline)

    def _outline(self, path: str) -> tuple[str, list[Section]]:
        from ragdocs.text import sections
        from ragdocs.text.formats.reading import read

        text = self._text(path)
        page = read(text, path)
        return text, sections.outline(page.body, page.blocks)

    def _markdown_file(self, target: str) -> str:
        """Return the document of this lane that a target means, if it is markdown."""
        name = target
        if self.corpus.lane.base:
            name = target.removeprefix(f"{self.corpus.lane.base}/")
        for path in (name, f"{name}.md"):
            if path.endswith(MARKDOWN) and path in self.corpus.stamps([path]):
                return path
        return ""

    def _text(self, path: str) -> str:
        text = self.corpus.store.read(path).text
        return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # No file can have such a name.
        return False


def dead_links(root: Path, corpus: Corpus, corpora: Sequence[Corpus]) -> dict[str, list[DeadLink]]:
    """Map the documents of a lane that have dead links to these."""
    finder = DeadLinks(root, corpus, corpora)
    documents = {}
    for path in sorted(corpus.stamps()):
        dead = finder.find(path)
        if dead:
            documents[path] = dead
    return documents
