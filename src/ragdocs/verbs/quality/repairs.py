"""Repairs of memories that are safe: what was meant is known, and one undo takes them back."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from ragdocs.errors import RagdocsError
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import link_key
from ragdocs.system.patterns import later
from ragdocs.text import frontmatter, links, tags, times
from ragdocs.text.formats import markdown
from ragdocs.types import Document, Put, Source
from ragdocs.verbs.memories.record import field_tags

# To plan repairs takes none of these.
if TYPE_CHECKING:
    from ragdocs.verbs.living.ledger import Target
    from ragdocs.verbs.living.living import Living
    from ragdocs.verbs.memories.preview import Difference

_RELATIVE = ("./", "../")
_BARE_WIKI = later(r"\[\[(?P<name>\.{1,2}/[^\[\]|#\n]{1,500})(?=[\]|#])")
# Fields that have a date already.
_DATES = ("created_at", "date", "created")


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of a memory: in which line, by which rule, and what it does."""

    path: str
    line: int
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Repaired:
    """Repairs that were made, or that would be; `version` is one of the texts that were written."""

    repairs: Sequence[Repair]
    differences: Sequence[Difference]
    version: str = ""


@dataclass
class Repairs:
    """Safe repairs of the memory lane."""

    corpus: Corpus
    # All lanes: a link may lead into any of them.
    corpora: Sequence[Corpus]
    root: Path
    # Old names of files, and those that they have today.
    renamed: Callable[[], Mapping[str, str]]
    # When the files of the lane were first committed, by their paths from the root.
    committed: Callable[[], Mapping[str, datetime]]
    # Has what links are compared with, which a repair does not change.
    living: Callable[[], Living]

    def plan(self) -> list[tuple[Source, str, list[Repair]]]:
        """Return each memory that needs repairs, with its new text and what changes in it."""
        planned = []
        for document in self.corpus.documents():
            if not self._may_need(document):
                continue
            try:
                source = self.corpus.store.read(document.path)
                text, repairs = self._repaired(document, source)
            except RagdocsError:
                # A text that cannot be read or has a broken block is a problem of its own.
                continue
            if repairs:
                planned.append((source, text, repairs))
        return planned

    def make(self, *, dry_run: bool) -> Repaired:
        """Repair everything at once, as one change, or only show what would change."""
        from ragdocs.verbs.memories.preview import changed_by

        planned = self.plan()
        puts = []
        sources = {}
        repairs: list[Repair] = []
        for source, text, own in planned:
            puts.append(Put(source.path, text, source.version))
            sources[source.path] = source
            repairs += own
        differences = changed_by(self.corpus, puts, sources)
        if dry_run or not puts:
            return Repaired(repairs, differences)
        moved = {path: self._moves(path) for path in sources}
        written = self.living().drift.rewrite(self.corpus, puts, moved)
        return Repaired(repairs, differences, written[0].version)

    def _moves(self, path: str) -> dict[Target, Target]:
        """Map the targets of a memory that were renamed to those that they are now."""
        moves: dict[Target, Target] = {}
        document = self.corpus.get(path)
        if document is None:
            return moves
        for link in document.links:
            new = self._moved(link.target)
            if new:
                moves[link.target, link.heading] = new, link.heading
        return moves

    # --- what needs a look, by the index alone ---

    def _may_need(self, document: Document) -> bool:
        has_variant = any(self._spelling(tag) != tag for tag in document.tags)
        has_relative = any("[[." in problem for problem in document.problems)
        has_moved = any(self._moved(link.target) for link in document.links)
        return has_variant or has_relative or has_moved or document.created_at is None

    @cached_property
    def _spellings(self) -> Mapping[str, str]:
        """The spelling that most memories use, by the letters of a tag."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for document in self.corpus.documents():
            for tag in document.tags:
                counts[tags.letters(tag)][tag] += 1
        spellings = {}
        for letters, variants in counts.items():
            by_use = []
            for tag, count in variants.items():
                by_use.append((-count, tag))
            spellings[letters] = min(by_use)[1]
        return spellings

    def _spelling(self, tag: str) -> str:
        return self._spellings.get(tags.letters(tag), tag)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Old names of files by the key of a link; git is asked only if a link leads nowhere."""
        names = {}
        for old, new in self.renamed().items():
            names[link_key(old)] = new
        return names

    def _moved(self, target: str) -> str:
        """Return what a file is called today that a link no longer reaches."""
        is_path = "/" in target or "." in target.rpartition("/")[2]
        if not is_path or target.endswith("/*") or self._is_there(target):
            return ""
        return self._names.get(link_key(target), "")

    @cached_property
    def _existing(self) -> dict[str, bool]:
        return {}

    def _is_there(self, target: str) -> bool:
        """Tell whether a file or a text of this name exists."""
        if target not in self._existing:
            is_file = False
            # No file can have such a name.
            with contextlib.suppress(OSError, ValueError):
                is_file = (self.root / target).exists()
            self._existing[target] = is_file or self._is_text(target)
        return self._existing[target]

    def _is_text(self, target: str) -> bool:
        return any(corpus.get(target) is not None for corpus in self.corpora)

    # --- the repairs of one text ---

    def _repaired(self, document: Document, source: Source) -> tuple[str, list[Repair]]:
        repairs: list[Repair] = []
        start = 0
        block = markdown.front(source.text)
        if block:
            start = block[2]
        header = source.text[:start]
        body = source.text[start:]
        first_line = 1 + header.count("\n")
        new_body = body
        for begin, stop, new, rule in sorted(self._link_repairs(body, document.path), reverse=True):
            written = body[begin:stop]
            line = first_line + body.count("\n", 0, begin)
            repairs.append(Repair(document.path, line, rule, f"{written} becomes {new}"))
            new_body = new_body[:begin] + new + new_body[stop:]
        repairs.reverse()
        text = header + new_body
        fields = dict(self._field_repairs(document, source))
        if fields:
            for name, value in fields.items():
                repairs.append(Repair(document.path, 1, _rule(name), _words(name, value)))
            text = frontmatter.merge(text, {}, fields)
        return text, repairs

    def _field_repairs(self, document: Document, source: Source) -> Iterator[tuple[str, object]]:
        own = {}
        block = frontmatter.split(source.text)[0]
        if block is not None:
            own = frontmatter.load(block)[0]
        written = field_tags(own.get("tags"))
        spelled = list(dict.fromkeys(map(self._spelling, written)))
        if spelled != written:
            yield "tags", spelled
        has_date = any(own.get(name) for name in _DATES)
        if document.created_at is None and not has_date and source.modified_at is not None:
            yield "created_at", times.stamp(self._first_written(document, source.modified_at))

    def _first_written(self, document: Document, modified_at: datetime) -> datetime:
        """Return the earliest moment that is known of a memory."""
        moments = [modified_at]
        path = posixpath.join(self.corpus.lane.base, document.path)
        if path in self._commits:
            moments.append(self._commits[path])
        for revision in self.corpus.versioned.history(document.path):
            moments.append(revision.at)
        return min(moments)

    @cached_property
    def _commits(self) -> Mapping[str, datetime]:
        return self.committed()

    def _link_repairs(self, body: str, path: str) -> Iterator[tuple[int, int, str, str]]:
        """Yield where a link is written anew, how, and by which rule."""
        plain = body.replace("\r\n", " \n")
        visible = links.visible(plain, markdown.blocks(plain))
        here = posixpath.join(self.corpus.lane.base, path)
        for start, stop, target, is_wiki in links.places(visible, here):
            new = self._moved(target)
            if not new:
                continue
            if not is_wiki:
                new = quote(posixpath.relpath(new, posixpath.dirname(here) or "."))
            yield start, stop, new, "renamed-file"
        for match in _BARE_WIKI.finditer(visible):
            new = self._meant(match["name"], path)
            if new:
                yield match.start("name"), match.end("name"), new, "relative-link"

    def _meant(self, written: str, path: str) -> str:
        """Return what a relative wikilink means, if exactly one text or file can be meant."""
        base = self.corpus.lane.base
        folder = PurePosixPath(path).parent
        candidates = []
        beside = posixpath.normpath(str(folder / written))
        if not beside.startswith("..") and self.corpus.get(beside) is not None:
            candidates.append(beside)
        in_project = posixpath.normpath(posixpath.join(base, str(folder), written))
        from_root = posixpath.normpath(re.sub(r"^(?:\.{1,2}/)+", "", written))
        for target in dict.fromkeys((in_project, from_root)):
            is_inside = not target.startswith((*_RELATIVE, "/", f"{base}/" if base else "\0"))
            if is_inside and target not in candidates and self._is_there(target):
                candidates.append(target)
        if len(candidates) == 1:
            return candidates[0]
        return ""


def _words(field: str, value: object) -> str:
    """Say what a field becomes, as it is written in a memory."""
    if isinstance(value, list):
        return f"{field} become [{', '.join(value)}]"
    return f"{field} becomes {value}"


def _rule(field: str) -> str:
    if field == "tags":
        return "tag-spelling"
    return "missing-date"
