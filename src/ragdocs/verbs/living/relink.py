"""Links of memories to files that moved, written anew."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ragdocs.errors import NotFoundError
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter, links
from ragdocs.text.formats import markdown
from ragdocs.text.headings import STEP
from ragdocs.types import Document, Put, Written
from ragdocs.verbs import references
from ragdocs.verbs.living.drift import MOVED, Drift
from ragdocs.verbs.living.ledger import Target

# The heading of a wikilink, after its name.
_HEADING = re.compile(r"#(?P<heading>[^\[\]|\n]{1,500})(?=[\]|])")
IMPACTED = "impacted_paths"


@dataclass(frozen=True, slots=True)
class Relinked:
    """A memory whose links were written anew: each as it was and as it is."""

    document: Document
    links: Sequence[tuple[str, str]]
    # None where no link had moved.
    written: Written | None


class Relinks:
    """Writes links anew whose targets moved."""

    def __init__(self, corpora: Callable[[], Mapping[str, Corpus]], drift: Drift) -> None:
        self._corpora = corpora
        self._drift = drift

    def update(self, filename: str, lane: str, expected_version: str = "") -> Relinked:
        """Let all links of a memory that moved lead to where their targets are now."""
        corpus = self._corpora()[lane]
        path = references.memory_path(corpus, filename)
        source = corpus.store.read(path)
        document = corpus.get(path)
        if document is None or document.version != source.version:
            raise NotFoundError(f"{path} is not indexed yet", "Ask again in a few seconds")
        moved = self._moved(document)
        text = _rewritten(source.text, posixpath.join(corpus.lane.base, path), moved)
        version = expected_version or source.version
        if text == source.text and version == source.version:
            return Relinked(document, (), None)
        put = Put(path, text, version)
        written = self._drift.rewrite(corpus, [put], {path: moved})[0]
        pairs = [(_name(*old), _name(*new)) for old, new in moved.items()]
        return Relinked(document, pairs, written)

    def _moved(self, document: Document) -> dict[Target, Target]:
        """Map targets that moved to those that they are now."""
        moved = {}
        for state in self._drift.states(document):
            if state.state == MOVED:
                path, _, part = state.moved_to.partition("#")
                heading = part.rpartition(STEP)[2] or state.link.heading
                moved[state.link.target, state.link.heading] = (path, heading)
        return moved


def _name(target: str, heading: str) -> str:
    if heading:
        return f"{target}#{heading}"
    return target


def _rewritten(text: str, here: str, moved: Mapping[Target, Target]) -> str:
    """Return a text with new names in its links, and in the paths that it impacts."""
    start = 0
    block = markdown.front(text)
    if block:
        start = block[2]
    body = text[start:]
    for begin, stop, name in sorted(_replacements(body, here, moved), reverse=True):
        body = body[:begin] + name + body[stop:]
    text = text[:start] + body
    fields = frontmatter.load(frontmatter.split(text)[0] or "")[0]
    paths = fields.get(IMPACTED)
    if isinstance(paths, list):
        renamed = []
        for path in paths:
            target = (str(path), "")
            renamed.append(moved.get(target, target)[0])
        if renamed != paths:
            text = frontmatter.merge(text, {}, {IMPACTED: renamed})
    return text


def _replacements(
    body: str, here: str, moved: Mapping[Target, Target]
) -> Iterator[tuple[int, int, str]]:
    """Yield what is written anew in a text: from where to where, and what."""
    plain = body.replace("\r\n", " \n")
    visible = links.visible(plain, markdown.blocks(plain))
    for start, stop, target, is_wiki in links.written_names(visible, here):
        heading = ""
        end = stop
        written = _HEADING.match(visible, stop)
        if is_wiki and written:
            heading = written["heading"].strip()
            end = written.end()
        new = moved.get((target, heading))
        if new is None and not is_wiki:
            # The anchor of a path stays as it is.
            new = _by_target(moved).get(target)
        if new is None:
            continue
        if is_wiki:
            yield start, end, _name(*new)
        else:
            yield start, stop, quote(posixpath.relpath(new[0], posixpath.dirname(here) or "."))


def _by_target(moved: Mapping[Target, Target]) -> dict[str, Target]:
    return {target: new for (target, _), new in moved.items() if new[0] != target}
