"""Creating, replacing, extending and deleting memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragdocs.errors import ConflictError, NotFoundError
from ragdocs.system.refs import Head
from ragdocs.text import frontmatter
from ragdocs.text.checks import check_content, check_tags
from ragdocs.text.merge import proposing
from ragdocs.types import Discard, Expect, Put, Source, Written
from ragdocs.verbs import references
from ragdocs.verbs.memories import record
from ragdocs.verbs.memories.find import ReadableMemories

# Two agents appending at once both succeed; this many lost races in a row mean that something else
# is wrong.
APPEND_TRIES = 50


@dataclass(frozen=True, slots=True)
class SavedMemory:
    """A memory that was written: what was done to it, where it is, and what to know about it."""

    status: str
    path: str
    location: str
    written: Written
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Memories(ReadableMemories):
    """What can be asked of the memory lane."""

    # What is checked out where the memories are about.
    head: Callable[[], Head] = lambda: Head("", "")

    def create(
        self,
        filename: str,
        content: str,
        tags: Sequence[str],
        memory_type: str = "journal",
    ) -> SavedMemory:
        """Write a new memory; an existing one is never touched."""
        path = references.new_path(self.corpus, filename)
        record.check_kind(memory_type)
        check_content(content)
        wanted = check_tags(tags)
        fields = record.fields(memory_type, wanted, self.clock()) | record.at_head(self.head())
        text = frontmatter.merge(content, fields)
        if frontmatter.split(content)[0] is not None:
            # Its own block may have tags, which stay.
            text = record.add_tags(text, wanted)
        written = self.corpus.commit([Put(path, text, Expect.ABSENT)])[0]
        return self._saved("created", path, written, record.kind_warnings(memory_type))

    def update(
        self,
        filename: str,
        content: str,
        expected_version: str | None = None,
    ) -> SavedMemory:
        """Replace a memory entirely, as given; the old text is kept in history."""
        path = references.memory_path(self.corpus, filename)
        check_content(content)
        before = self._existing(path)
        put = Put(path, content, expected_version or Expect.PRESENT)
        with proposing(self.corpus.versioned, expected_version):
            written = self.corpus.commit([put])[0]
        warnings = []
        dropped = sorted(set(record.own_fields(before.text)) - set(record.own_fields(content)))
        if dropped:
            names = ", ".join(dropped)
            warnings.append(f"dropped from the frontmatter: {names}; the old text is in history")
        return self._saved("updated", path, written, warnings)

    def append(
        self,
        filename: str,
        content: str,
        expected_version: str | None = None,
    ) -> SavedMemory:
        """Add two newlines and the content to the end of a memory."""
        path = references.memory_path(self.corpus, filename)
        check_content(content)
        for attempt in range(APPEND_TRIES):
            before = self._existing(path)
            text = f"{before.text}\n\n{content}"
            check_content(text)
            put = Put(path, text, expected_version or before.version)
            try:
                with proposing(self.corpus.versioned, expected_version):
                    written = self.corpus.commit([put], "append")[0]
            except ConflictError as error:
                # Whatever stands there now, this goes behind it.
                error.yours, error.merged, error.overlaps = content, error.yours, 0
                if expected_version or attempt == APPEND_TRIES - 1:
                    raise
            else:
                return self._saved("appended", path, written)
        raise AssertionError  # the loop returns or raises

    def _existing(self, path: str) -> Source:
        """Read a memory that is to be changed; where there is none, say which verb writes one."""
        try:
            return self.corpus.store.read(path)
        except NotFoundError as error:
            near = ""
            if error.hint.endswith("?"):
                near = f"{error.hint} "
            error.hint = f"{near}<create a memory> writes a new one"
            raise

    def delete(self, filename: str, expected_version: str | None = None) -> Written:
        """Move a memory to the trash."""
        path = references.memory_path(self.corpus, filename)
        discard = Discard(path, expected_version or Expect.PRESENT)
        return self.corpus.commit([discard], "delete")[0]

    def _saved(
        self,
        status: str,
        path: str,
        written: Written,
        warnings: Sequence[str] = (),
    ) -> SavedMemory:
        return SavedMemory(status, path, self.locate(path), written, warnings)
