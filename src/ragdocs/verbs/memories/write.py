"""Writing, reading and finding memories."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import cast

from ragdocs.errors import ConflictError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.search.newest import age_order
from ragdocs.system.names import NAME_BYTES, own_id
from ragdocs.text import frontmatter as metadata
from ragdocs.text import times
from ragdocs.text.merge import proposing
from ragdocs.types import Discard, Expect, Filter, Hit, Probe, Put, Query, Written
from ragdocs.verbs import page as answers
from ragdocs.verbs.references import find, memory_path, new_path
from ragdocs.verbs.shapes import (
    Deleted,
    LinkedHit,
    LinkedHits,
    LinkShape,
    MemoryHit,
    MemoryHits,
    MemoryText,
    Saved,
    Stats,
)

# A memory is a note, not an archive: a longer one would not fit into any agent's context.
LONGEST_MEMORY = 1_000_000
KINDS = ("journal", "plan", "fact", "observation", "reflection")
_KIND = re.compile(r"[^\W\d_][\w-]{0,39}")
# Two agents appending at once both succeed; this many lost races in a row mean that something else
# is wrong.
APPEND_TRIES = 50
# Of one memory in one answer; the text has them all.
MOST_LINKS = 8
# Link kinds that say least come last when one kind has to stand for several links.
_VAGUE = ("mentions", "related_to")


@dataclass(frozen=True, slots=True)
class Memories:
    """What can be asked of the memory lane."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def create(
        self, filename: str, content: str, tags: Sequence[str], memory_type: str = "journal"
    ) -> Saved:
        """Write a new memory; an existing one is never touched."""
        name = new_path(self.corpus, filename)
        check_kind(memory_type)
        check_content(content)
        defaults = {
            "type": memory_type,
            "status": "active",
            "tags": [],
            "created_at": times.stamp(self.clock()),
        }
        text = tagged(metadata.merge(content, defaults), check_tags(tags))
        written = self.corpus.commit([Put(name, text, Expect.ABSENT)])[0]
        unknown = memory_type not in KINDS
        warnings = (
            [f"{memory_type!r} is not one of the usual types: {', '.join(KINDS)}"]
            if unknown
            else []
        )
        return self._saved("created", name, written, warnings)

    def read(self, filename: str, lines: str | None = None) -> MemoryText:
        """Return a memory as it stands in its file, cut to the budget if it is long."""
        name = memory_path(self.corpus, filename)
        source = self.corpus.store.read(name)
        content, shown, omitted = answers.excerpt(
            source.text, 1, answers.parse_lines(lines), self.budget
        )
        path = self.corpus.store.locate(name)
        return MemoryText(
            filename=name,
            content=content,
            path=path,
            version=source.version,
            lines=shown,
            omitted=omitted,
        )

    def update(self, filename: str, content: str, expected_version: str | None = None) -> Saved:
        """Replace a memory entirely, as given; the old text is kept in history."""
        name = memory_path(self.corpus, filename)
        check_content(content)
        before = self.corpus.store.read(name)
        dropped = sorted(_keys(before.text) - _keys(content))
        put = Put(name, content, expected_version or Expect.PRESENT)
        with proposing(self.corpus.versioned, expected_version):
            written = self.corpus.commit([put])[0]
        warnings = (
            [f"dropped from the frontmatter: {', '.join(dropped)}; the old text is in history"]
            if dropped
            else []
        )
        return self._saved("updated", name, written, warnings)

    def append(self, filename: str, content: str, expected_version: str | None = None) -> Saved:
        """Add two newlines and the content to the end of a memory."""
        name = memory_path(self.corpus, filename)
        check_content(content)
        for attempt in range(APPEND_TRIES):
            before = self.corpus.store.read(name)
            text = f"{before.text}\n\n{content}"
            check_content(text)
            try:
                with proposing(self.corpus.versioned, expected_version):
                    written = self.corpus.commit(
                        [Put(name, text, expected_version or before.version)], "append"
                    )[0]
            except ConflictError as error:
                # Whatever stands there now, this goes behind it.
                error.yours, error.merged, error.overlaps = content, error.yours, 0
                if expected_version or attempt == APPEND_TRIES - 1:
                    raise
            else:
                return self._saved("appended", name, written, [])
        raise AssertionError  # the loop returns or raises

    def delete(self, filename: str, expected_version: str | None = None) -> Deleted:
        """Move a memory to the trash."""
        name = memory_path(self.corpus, filename)
        written = self.corpus.commit([Discard(name, expected_version or Expect.PRESENT)], "delete")[
            0
        ]
        return Deleted(status="deleted", filename=name, moved_to=written.moved_to)

    def search(
        self,
        query: str,
        limit: int = 5,
        *,
        tags: Sequence[str] = (),
        kind: str | None = None,
        archived: bool = False,
        explain: bool = False,
    ) -> MemoryHits:
        """Find memories by meaning, words and links, recent ones first among equals."""
        answers.check_limit(limit)
        where = Filter(
            tags=tuple(tags), kinds=(kind,) if kind else (), hidden=("",) if archived else ()
        )
        now = self.clock()
        findings = self.corpus.search(
            Query(probes=(Probe(query),), limit=limit, where=where, floored=True), now
        )

        shaped, omitted, notes = answers.fit(
            findings, lambda hit: self._hit(hit, now, explain=explain), self.budget
        )
        return MemoryHits(result=shaped, omitted=omitted, notes=notes)

    def linked(self, query: str, target_document: str, limit: int = 5) -> LinkedHits:
        """Find the memories that link to a document or source file.

        The best for the query first.
        """
        answers.check_limit(limit)
        now = self.clock()
        names = self._names(target_document)
        if not names:
            return LinkedHits(result=[], omitted=0, notes=[])
        where = Filter(linked_to=names)
        findings = self.corpus.search(Query(probes=(Probe(query),), limit=limit, where=where), now)
        with self.corpus.index.held():
            hits, count = self._filled(findings.hits, where, limit, now)
        chosen = replace(findings, hits=hits, omitted=count - len(hits))
        shaped, omitted, notes = answers.fit(
            chosen, lambda hit: self._linked(hit, now), self.budget
        )
        for hit in hits[: len(shaped)]:
            if len(hit.links) > MOST_LINKS:
                notes.append(
                    f"{hit.document.id} has {len(hit.links) - MOST_LINKS} more links to it"
                )
        return LinkedHits(result=shaped, omitted=omitted, notes=notes)

    def stats(self) -> Stats:
        """Count memories, tags and types."""
        documents = self.corpus.index.documents()
        tags = answers.tally([tag for document in documents for tag in document.tags])
        kinds = answers.tally([document.kind for document in documents])
        shown_tags = dict(answers.within(tags.items(), self.budget // 2))
        shown_kinds = dict(answers.within(kinds.items(), self.budget // 4))
        hidden = {"tags": len(tags) - len(shown_tags), "types": len(kinds) - len(shown_kinds)}
        return Stats(
            count=len(documents),
            total_size=answers.size(sum(document.size for document in documents)),
            tags=shown_tags,
            types=shown_kinds,
            memory_path=self.corpus.store.locate(""),
            notes=[
                f"{count} rarer {what} are not listed" for what, count in hidden.items() if count
            ],
        )

    def _names(self, target: str) -> tuple[str, ...]:
        """Return the ways in which links may name a target that is given by any of its names."""
        name = target.strip()
        root = self.corpus.store.locate("").removesuffix(f"{os.sep}{self.corpus.lane.base}")
        document = find(self.corpus, name) or find(self.corpus, name.partition("#")[0])
        if document is not None:
            return (*spellings(document.path), own_id(document))
        return spellings(name.removeprefix(f"{root}{os.sep}"))

    def _saved(self, status: str, name: str, written: Written, warnings: list[str]) -> Saved:
        path = self.corpus.store.locate(name)
        warnings = warnings + answers.removed(written)
        return Saved(
            status=status, filename=name, path=path, version=written.version, warnings=warnings
        )

    def _filled(
        self, hits: tuple[Hit, ...], where: Filter, limit: int, now: datetime
    ) -> tuple[tuple[Hit, ...], int]:
        """Fill up with linked memories that the query did not find, newest first.

        The link is reason enough.

        Tell also how many memories are linked in all.
        """
        index = self.corpus.index
        linked = index.documents(replace(where, hidden=self.corpus.lane.hidden, alive_at=now))
        found = {hit.document.id for hit in hits}
        others = [
            document
            for document in linked
            if document.id not in found and index.chunks(document.id)
        ]
        others.sort(key=lambda document: age_order(document, now))
        others = others[: limit - len(hits)]
        links = index.links_to(where.linked_to, [document.id for document in others])
        pieces = [
            piece for _, piece in index.load([index.chunks(document.id)[0] for document in others])
        ]
        more = [
            Hit(d, piece, 0.0, (), links.get(d.id, ()))
            for d, piece in zip(others, pieces, strict=True)
        ]
        return (*hits, *more), len(linked)

    def _hit(self, hit: Hit, now: datetime, *, explain: bool) -> MemoryHit:
        document = hit.document
        shaped = MemoryHit(
            memory_id=document.id,
            score=round(hit.score, 3),
            content="",
            type=document.kind,
            status=document.status,
            tags=answers.tags(document),
            file_path=self.corpus.store.locate(document.path),
            header_path=answers.header(hit),
            title=answers.title(document),
            lines=answers.lines(hit),
            created_at=answers.moment(document.created_at),
            age=answers.age(document.created_at, now),
            why=answers.why(hit),
        )
        if explain:
            shaped["signals"] = answers.signals(hit)
        return cast("MemoryHit", {**shaped, **answers.provenance(document)})

    def _linked(self, hit: Hit, now: datetime) -> LinkedHit:
        telling = sorted(hit.links, key=lambda link: link.kind in _VAGUE)
        return LinkedHit(
            memory_id=hit.document.id,
            score=round(hit.score, 3),
            content="",
            anchor_context=telling[0].context if telling else "",
            edge_type=telling[0].kind if telling else "related_to",
            file_path=self.corpus.store.locate(hit.document.path),
            title=answers.title(hit.document),
            lines=answers.lines(hit),
            created_at=answers.moment(hit.document.created_at),
            age=answers.age(hit.document.created_at, now),
            why=answers.why(hit),
            links=[
                LinkShape(edge_type=link.kind, anchor_context=link.context)
                for link in hit.links[:MOST_LINKS]
            ],
            **answers.provenance(hit.document),
        )


def check_kind(kind: str) -> None:
    """Refuse a type that is not one word."""
    if not _KIND.fullmatch(kind):
        raise ValidationError(
            f"{kind[:60]!r} is not a memory type", f"Use one of {', '.join(KINDS)}"
        )


def check_tags(tags: Sequence[str]) -> list[str]:
    """Return tags stripped and without repetitions."""
    if any(not isinstance(tag, str) or "\n" in tag or len(tag) > 100 for tag in tags):  # noqa: PLR2004 - a tag is a word
        raise ValidationError(
            "a tag is not one short line of text", 'Give tags as a list of words, such as ["auth"]'
        )
    stripped = (tag.strip().lstrip("#").strip() for tag in tags)
    return list(
        {tag.casefold(): tag for tag in reversed([tag for tag in stripped if tag])}.values()
    )[::-1]


def check_content(content: str, name: str = "content") -> None:
    """Refuse a text that cannot be meant as a memory."""
    if not content.strip():
        raise ValidationError(f"{name} is empty", "Say what should be remembered")
    if len(content) > LONGEST_MEMORY:
        raise ValidationError(
            f"{name} is longer than {LONGEST_MEMORY} characters", "Split it into several memories"
        )
    if "\x00" in content or any("\ud800" <= character <= "\udfff" for character in content):
        raise ValidationError(
            f"{name} holds characters that no text file can", "Remove NUL and lone surrogates"
        )


def tagged(text: str, tags: Sequence[str]) -> str:
    """Add tags to those that the text's own block has; the block's other lines stay as they are."""
    block, body, _ = metadata.split(text)
    own = metadata.load(block or "")[0].get("tags") or []
    words = own if isinstance(own, list) else metadata.as_text(own).split(",")
    present = check_tags([metadata.as_text(word) for word in words])
    wanted = check_tags([*present, *tags])
    if wanted == present and block is not None:
        return text
    return metadata.set_fields(text, {"tags": wanted}) + body


def _keys(text: str) -> set[str]:
    block = metadata.split(text)[0]
    return set(metadata.load(block)[0]) if block is not None else set()


def spellings(target: str) -> tuple[str, ...]:
    """Return the ways in which a link may name this document.

    With and without its markdown ending, or its folders.
    """
    name = (
        target.strip()
        .removeprefix("ghost:")
        .replace("\\", "/")
        .removeprefix("./")
        .split("#")[0]
        .strip()
    )
    name = name.removeprefix("docs:").removeprefix("memory:").rstrip("/")
    if not name:
        return ()
    plain = name.removesuffix(".md") if name.endswith(".md") else f"{name}.md"
    return (name, plain, *(f"{folder}/*" for folder in _folders(name)))


def _folders(name: str) -> list[str]:
    """List a path and the folders above it, the nearest first, as far as a link can name them.

    No link is longer than `NAME_BYTES`; to spell every folder of a longer path would cost the
    square of its length.
    """
    folder = str(PurePosixPath(name))
    if len(folder) > NAME_BYTES:
        folder = folder[: NAME_BYTES + 1].rpartition("/")[0]
    folders = []
    while folder and folder != ".":
        folders.append(folder)
        folder = folder.rpartition("/")[0]
    return folders
