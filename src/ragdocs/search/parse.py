"""From the text of a file to its card and its body."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from ragdocs.lanes import Lane, document_id
from ragdocs.text import frontmatter as metadata
from ragdocs.text import links
from ragdocs.text.formats import markdown
from ragdocs.text.formats.page import Page, caption
from ragdocs.text.formats.reading import read
from ragdocs.text.link_kinds import IMPACTS, TOUCHES
from ragdocs.types import (
    ENTRY_KINDS,
    ITEM_KINDS,
    MEMORY_KINDS,
    Document,
    GitContext,
    Link,
    Parsed,
    Source,
)

KNOWN_KINDS = tuple(dict.fromkeys((*MEMORY_KINDS, *ITEM_KINDS, *ENTRY_KINDS)))

# More of the same complaint helps nobody.
_LINT_LIMIT = 20
# A first line longer than this is a sentence, not a title.
_TITLE_LINE = 80
# A file that was named by a clock, or by the digest of its text.
_MADE_UP = re.compile(r"\d{6}_[0-9a-f]{4}|mem_[0-9a-f]{12}")
_COUNT = re.compile("[0-9]{1,9}")
# Characters of a description that are searched, how many of them tell it from the text, and in how
# much of the text they are looked for.
_DESCRIPTION = 600
_SAME = 60
_REPEATED = 2_000
_CARD_KEYS = frozenset(
    (
        "title",
        "type",
        "status",
        "tags",
        "aliases",
        "created_at",
        "expires_at",
        "importance",
        "confidence",
        "source",
        "git",
    )
)


def parse(source: Source, lane: Lane) -> Parsed:
    """Read a text: its metadata, its title, its links, and what is wrong with it."""
    page = read(source.text, source.path, source.card)
    body, blocks, first_line = page.body, page.blocks, page.first_line
    problems = list(page.problems)
    card = _Card(page.card, problems)
    title = caption(card.text("title")) or _title(page, source.path)
    above = _above(card, body)
    if above and page.references is None:
        body, first_line = _with_above(above, body, first_line)
        blocks = markdown.blocks(body)
    visible = ""
    if page.references is None:
        visible = links.visible(body, blocks)
        written_links = links.find(visible, body, source.path, lane.base)
    else:
        written_links = links.referred(page.references, body, source.path, lane.base)
    git = card.git()
    document = Document(
        id=document_id(lane, source.path),
        lane=lane.name,
        path=source.path,
        title=title,
        version=source.version,
        kind=card.text("type") or lane.default_kind,
        status=card.text("status") or "active",
        tags=card.words("tags", mark="#"),
        aliases=card.words("aliases"),
        created_at=card.created(),
        modified_at=source.modified_at,
        expires_at=card.time("expires_at"),
        links=(
            *islice(written_links, links.LINK_LIMIT),
            *_touched(git),
            *_impacted(title, card.words("impacted_paths")),
        ),
        importance=card.number("importance"),
        confidence=card.number("confidence"),
        source=card.text("source"),
        git=git,
        size=source.size,
        extra={key: value for key, value in page.card.items() if key not in _CARD_KEYS},
        format=page.format,
        anchors=page.anchors,
    )
    if lane.writable:
        problems += _habits(document, visible, first_line)
    document = replace(document, problems=(*source.problems, *problems))
    return Parsed(document, body, blocks, first_line, page.numbers)


def _above(card: _Card, body: str) -> str:
    """Return what the metadata say about the text that is searched like it: one line."""
    sentences = []
    if context := card.text("context"):
        sentences.append(f"Context: {context}")
    beginning = _letters(body[:_REPEATED])
    for key in ("description", "summary"):
        written = card.text(key)[:_DESCRIPTION]
        # Many a generator copies the first paragraph.
        if written and _letters(written)[:_SAME] not in beginning:
            sentences.append(written)
    return " ".join(sentences)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _with_above(above: str, body: str, first_line: int) -> tuple[str, int]:
    """Put what metadata say before a body, and return the number of its first line.

    It is searched like the text below it. It stands in the block, so it takes the numbers of the
    block's last lines.
    """
    between = "\n\n"
    if body.startswith("\n"):
        between = "\n"
    return f"{above}{between}{body}", first_line - len(between)


def _habits(document: Document, visible: str, first_line: int) -> list[str]:
    """Name what a writer of this text probably meant otherwise."""
    problems = list(islice(links.lint(visible, first_line), _LINT_LIMIT))
    if document.kind.casefold() not in KNOWN_KINDS:
        problems.append(f"unknown type {document.kind[:60]!r}; known are {', '.join(KNOWN_KINDS)}")
    if len(document.links) >= links.LINK_LIMIT:
        problems.append(f"more than {links.LINK_LIMIT} links; the rest are not followed")
    return problems


def _title(page: Page, path: str) -> str:
    """Return the title that a page has, or its first main heading.

    Or the file's name made readable.
    """
    titled = [block for block in page.blocks if block.title]
    title = page.title
    for block in titled:
        if block.level == 1:
            title = title or block.title
            break
    if not title and _MADE_UP.fullmatch(PurePosixPath(path).stem):
        # Neither a time nor a digest is a title; what was remembered begins with what it is about.
        title = _first_words(page.body)
        if titled:
            title = titled[0].title
    if title:
        return caption(title)
    name = " ".join(re.split(r"[\s_-]+", PurePosixPath(path).stem)).strip() or path
    return name[0].upper() + name[1:]


def _first_words(body: str) -> str:
    """Return the first line if it is short; else its beginning, if it has several words."""
    first_line = body.lstrip().partition("\n")[0].strip()
    if len(first_line) <= _TITLE_LINE:
        return first_line
    beginning, space, _ = first_line[:_TITLE_LINE].rpartition(" ")
    if not space:
        return ""
    return f"{beginning}…"


def _touched(git: GitContext | None) -> list[Link]:
    """Return a link to each file that was being changed when the text was written."""
    if git is None:
        return []
    state = ""
    if git.branch:
        state += f" on {git.branch}"
    if git.commit:
        state += f" at {git.commit}"
    touched = []
    for path in git.files_changed:
        touched.append(Link(path, TOUCHES, f"{path} was being changed{state}"))
    return touched


def _impacted(title: str, paths: Sequence[str]) -> list[Link]:
    """Return a link to each path that a decision is about.

    A folder stands for all that is below it.
    """
    impacted = []
    for path in paths[: links.LINK_LIMIT]:
        target = links.clean_target(path)
        if not target:
            continue
        if path.endswith("/"):
            target += "/*"
        impacted.append(Link(target, IMPACTS, f"{title} (impacts {target})"))
    return impacted


class _Card:
    """Reads loaded metadata key by key, and notes what it cannot read."""

    def __init__(self, loaded: Mapping[str, Any], problems: list[str]) -> None:
        self.loaded = loaded
        self.problems = problems

    def text(self, key: str) -> str:
        """Return a scalar as text."""
        value = self.loaded.get(key)
        if isinstance(value, list | dict):
            self._complain(key, "is not a single value")
            return ""
        if value is None:
            return ""
        return " ".join(metadata.as_text(value).split())

    def words(self, key: str, mark: str = "") -> tuple[str, ...]:
        """Return a list, or a comma-separated string, without repetitions.

        `mark` is dropped from their front.
        """
        value = self.loaded.get(key)
        if isinstance(value, dict):
            self._complain(key, "is not a list")
            return ()
        items: list[Any] = []
        if isinstance(value, list):
            items = value
        elif value is not None:
            items = metadata.as_text(value).split(",")
        if any(isinstance(item, list | dict) for item in items):
            self._complain(key, "has an item that is not a single value")
        distinct: dict[str, str] = {}
        for item in items:
            if item is not None and not isinstance(item, list | dict):
                word = " ".join(metadata.as_text(item).strip().lstrip(mark or None).split())
                distinct.setdefault(word.casefold(), word)
        distinct.pop("", None)
        return tuple(distinct.values())

    def time(self, key: str) -> datetime | None:
        """Return an ISO 8601 time with its offset; one without an offset means UTC."""
        written = self.text(key)
        if not written:
            return None
        try:
            # YAML allows a space before the offset, ISO 8601 does not.
            time = datetime.fromisoformat(re.sub(r" (?=[+-]\d|[zZ]$)", "", written))
            if time.tzinfo is None:
                time = time.replace(tzinfo=UTC)
            # The first and last days of the calendar cannot be compared across offsets.
            time.astimezone(UTC)
        except (ValueError, OverflowError):
            self._complain(key, f"{written[:60]!r} is not an ISO 8601 time")
            return None
        return time

    def created(self) -> datetime | None:
        """Return when the text was written.

        Under any of the names that people and programs use for that.
        """
        for key in ("created_at", "date", "created"):
            if key in self.loaded:
                return self.time(key)
        seconds = self.number("timestamp")
        if seconds is None:
            return None
        with contextlib.suppress(ValueError, OverflowError, OSError):
            return datetime.fromtimestamp(seconds, UTC)
        return None

    def number(self, key: str) -> float | None:
        """Return a finite number."""
        written = self.text(key)
        try:
            number = float(written or "nan")
        except ValueError:
            number = math.nan
        if written and not math.isfinite(number):
            self._complain(key, f"{written[:60]!r} is not a number")
        if not math.isfinite(number):
            return None
        return number

    def git(self) -> GitContext | None:
        """Return the state of the working tree that was noted with the text."""
        block = self.loaded.get("git")
        if block is None:
            return None
        if not isinstance(block, dict):
            self._complain("git", "is not a mapping")
            return None
        inner = _Card(block, self.problems)
        files = dict.fromkeys(filter(None, map(links.clean_target, inner.words("files_changed"))))
        files_total = 0
        total = inner.text("files_total")
        if _COUNT.fullmatch(total):
            files_total = int(total)
        return GitContext(
            branch=inner.text("branch"),
            commit=inner.text("commit"),
            dirty=inner.text("dirty").casefold() in {"true", "yes", "on", "1"},
            files_changed=tuple(islice(files, links.LINK_LIMIT)),
            files_total=files_total,
        )

    def _complain(self, key: str, what: str) -> None:
        self.problems.append(f"frontmatter: {key}: {what}")
