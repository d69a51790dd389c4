"""Links in documents that lead nowhere: to a file or a heading that does not exist.

A link leads somewhere if its file exists, or if a text goes by the name that it has, as in the
graph of links. Addresses in the network, and paths that begin at the top of a site, may mean
something that is not known here.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ragdocs.errors import NotFoundError, RagdocsError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import link_key, link_keys
from ragdocs.system.patterns import later
from ragdocs.text import links

# Most documents need no outline.
if TYPE_CHECKING:
    from ragdocs.text.sections import Section

# More of the same complaint helps nobody.
MOST_OF_DOCUMENT = 20
# Pages whose sections are kept: those that others link to come again and again.
MOST_OUTLINES = 256
MARKDOWN = (".md", ".markdown", ".mdx")
# What a site generator makes pages of.
SOURCES = (".md", ".rst", ".mdx", ".ipynb")
_WIKI_HEADING = later(r"#(?P<heading>[^|\]\n]+)")
_HEADING = later(r"(?:\?[^\s()#]*)?#(?P<heading>[^\s()<>\"']+)")
_OWN_HEADING = later(r"\]\((?P<any>#)?#(?P<heading>[^\s()<>\"']+)\)")
# Each way to write a link or to define where it leads has one of these.
_MARKS = ("[[", "](", "]:")
# A file, or a part of one, that becomes a part of this text: its headings are there, too.
_INSERTED = later(
    r"^import [^\n]{1,200}\.mdx?[\"']|^<script|\{\{[<%] *(?:include|readfile|partial)\b"
    r"|\{%-? *include|--8<--|<!-- *@include|\{\{#include",
    re.MULTILINE,
)
# A text that is only a part of others, by its name or its folder.
_PARTS = later(r"(?:^|/)_(?!index\.)")
# What has an id like a heading: the term of a definition, and a heading in a quotation.
_TERM = later(
    r"^(?:(?P<term>\S[^\n]{0,200})\n(?:\n)?:[ \t]|>[> ]{0,10}#{1,6}[ \t](?P<quoted>[^\n]{1,200}))",
    re.MULTILINE,
)
_NUMBERED = later(r"-\d{1,3}$")
# Documents that have a bare word for a destination: then it is a notation of the site.
_NOTATION = 10
# How generators name a part that is not a heading: a figure, an equation, an option, a footnote.
_PART_NAME = r"(?:\b(?:id|name|label)[\"']?[=:][ \t]*[\"']?|^\(|\$\$ \(|[{{ ]#|\[\^){}(?![\w-])"
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
        from ragdocs.text.formats.reading import read

        page = read(text, path)
        prose = links.visible(page.body, page.blocks)
        dead = []
        for start, reason in islice(sorted(self._dead(prose, path)), MOST_OF_DOCUMENT):
            line = page.first_line + prose.count("\n", 0, start)
            dead.append(DeadLink(line, reason))
        return dead

    def _dead(self, prose: str, path: str) -> Iterator[tuple[int, str]]:
        """Yield where each dead link stands and why it is one."""
        full_path = posixpath.join(self.corpus.lane.base, path)
        for start, stop, target, is_wiki in links.written_names(prose, full_path):
            written = prose[start:stop]
            pattern = _HEADING
            if is_wiki:
                pattern = _WIKI_HEADING
            heading = pattern.match(prose, stop)
            if not self._leads_somewhere(written, target, full_path):
                yield start, f"the link to {written} leads to no file"
            elif heading and not self._has_heading(target, heading["heading"]):
                yield start, f"{written} has no heading {heading['heading']!r}"
        for match in _OWN_HEADING.finditer(prose):
            heading_name = match["heading"]
            is_elsewhere = bool(match["any"]) and self._is_label(heading_name)
            if not is_elsewhere and not self._has_heading(full_path, heading_name):
                yield match.start(), f"there is no heading {heading_name!r} in this document"

    def _leads_somewhere(self, written: str, target: str, path: str) -> bool:
        """Tell whether a link in the document at a path leads to a file or to a text."""
        if written.startswith(("/", "@")):
            # Which folder is the top of a site is not known here.
            return True
        # Where every page has a folder of its own, links begin in that.
        from_page, _ = links.destination(written, f"{posixpath.splitext(path)[0]}/page")
        for name in (target, from_page):
            if name and (self._is_known(name) or self._exists(name)):
                return True
        return written in self._notations

    @cached_property
    def _notations(self) -> Collection[str]:
        """Bare words to which many documents link: hooks of the site make something of them."""
        documents: Counter[str] = Counter()
        for document in self.corpus.documents():
            words = set()
            for link in document.links:
                word = link.target.rpartition("/")[2]
                if word.isalpha():
                    words.add(word)
            documents.update(words)
        return {word for word, count in documents.items() if count >= _NOTATION}

    def _exists(self, target: str) -> bool:
        """Tell whether a path from the root is a file or a folder, also one that becomes a page."""
        path = self.root / target.removesuffix("/*")
        candidates = [path, path.with_name(f"{path.name}.md")]
        if path.suffix in ("", ".html"):
            candidates += [path.with_suffix(suffix) for suffix in SOURCES]
        return any(map(_is_there, candidates))

    def _is_label(self, name: str) -> bool:
        """Tell whether a name is a label of some text; those of other projects are not known."""
        return "." in name or ":" in name or self._is_known(name)

    def _is_known(self, target: str) -> bool:
        return link_key(target) in self._names

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The names by which links may mean a document or a memory, or a part of one.

        Each with the path of the document, if it is the only one and in this lane.
        """
        paths: dict[str, str] = {}
        for corpus in self.corpora:
            is_own = corpus.lane.name == self.corpus.lane.name
            for document in corpus.documents():
                name = link_key(PurePosixPath(document.path).name)
                for key in {name, *link_keys(document)}:
                    is_only = is_own and key not in paths
                    paths[key] = ""
                    if is_only:
                        paths[key] = document.path
        return paths

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

        name = unquote(heading)
        if _PARTS.search(file) or _INSERTED.search(text) or _names_part(text, name):
            return True
        try:
            sections.find(outline, name, anchor=True)
        except NotFoundError:
            return False
        except ValidationError:
            # There are several of this name.
            return True
        return True

    @cached_property
    def _outlined(self) -> Callable[[str], tuple[str, list[Section]]]:
        """Return the text and the sections of a file; a page that many link to is read once."""
        remembered = lru_cache(maxsize=MOST_OUTLINES)
        return remembered(self._outline)

    def _outline(self, path: str) -> tuple[str, list[Section]]:
        from ragdocs.text import sections
        from ragdocs.text.formats.reading import read

        text = self._text(path)
        page = read(text, path)
        return text, sections.outline(page.body, page.blocks)

    def _markdown_file(self, target: str) -> str:
        """Return the one document of this lane that a target means, if it is markdown."""
        name = target
        if self.corpus.lane.base:
            name = target.removeprefix(f"{self.corpus.lane.base}/")
        for path in (name, f"{name}.md"):
            if path.endswith(MARKDOWN) and path in self.corpus.stamps([path]):
                return path
        path = self._names.get(link_key(name), "")
        if path.endswith(MARKDOWN):
            return path
        return ""

    def _text(self, path: str) -> str:
        text = self.corpus.store.read(path).text
        return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _names_part(text: str, name: str) -> bool:
    """Tell whether a text gives a part of it this name, other than by the title of a heading."""
    from ragdocs.text.formats.page import caption
    from ragdocs.text.sections import slug_of

    part = re.compile(_PART_NAME.format(re.escape(name.removeprefix("fn:"))), re.MULTILINE)
    if part.search(text):
        return True
    slug = slug_of(name)
    wanted = {slug, _NUMBERED.sub("", slug)}
    for term in _TERM.finditer(text):
        if slug_of(caption(term["term"] or term["quoted"])) in wanted:
            return True
    # Hooks of generators make an id of a word in a comment.
    word = re.escape(name.lstrip("+"))
    comment = re.compile(rf"<!-- [^\n]{{0,200}}(?<![\w.]){word}(?![\w.])")
    return comment.search(text) is not None


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
