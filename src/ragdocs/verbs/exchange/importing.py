"""Taking memories over from another tool: a plan first, then one change set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import cast, get_args

from ragdocs.errors import NotFoundError, RagdocsError, ValidationError
from ragdocs.lanes import document_id
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import SKIPPED, link_key, relative_name
from ragdocs.text import frontmatter, times
from ragdocs.text.checks import check_content
from ragdocs.types import Expect, Put, Revision, Verb
from ragdocs.verbs.context.items import FOLDERS
from ragdocs.verbs.context.scope import Scope
from ragdocs.verbs.exchange.detect import READERS
from ragdocs.verbs.exchange.formats import Format
from ragdocs.verbs.exchange.note import KEPT, NEW, PRESENT, REFUSED, Note, digest, usable_path
from ragdocs.verbs.exchange.source import MOST_NOTES
from ragdocs.verbs.memories import record

# The field that names where a memory came from; a second import knows it by that.
ORIGIN = "imported_from"

# Takes earlier texts, and the new texts by their paths.
Adopt = Callable[[Sequence[tuple[Revision, str]], Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class PlannedMemory:
    """What becomes of one note: the path, the outcome and why, and the text where it is new."""

    path: str
    outcome: str
    reason: str = ""
    # What names it in its source, and the type that it has here.
    origin: str = ""
    kind: str = ""
    text: str = ""
    secrets: int = 0
    # How many earlier texts come with it.
    revisions: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, or would be."""

    format: str
    source: str
    memories: Sequence[PlannedMemory]
    is_written: bool
    # How many notes the source has of each project, if it has those of several.
    projects: Mapping[str, int]

    def count(self, outcome: str) -> int:
        """Return how many notes had this outcome."""
        return sum(memory.outcome == outcome for memory in self.memories)


@dataclass(frozen=True, slots=True)
class _Present:
    """What there is already."""

    paths: Mapping[str, str]
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Import:
    """Imports into the memory lane."""

    corpus: Corpus
    clock: Callable[[], datetime]
    scope: Callable[[], Scope]
    # Puts earlier texts into the history; none where a store keeps no history of others.
    adopt: Adopt | None = None

    def run(
        self,
        form: Format,
        path: Path,
        into: str | None = None,
        tags: Sequence[str] = (),
        *,
        from_project: str = "",
        dry_run: bool = False,
    ) -> ImportReport:
        """Write what is new in one change set, with these tags; nothing that exists is touched.

        With `from_project`, only what the other tool noted for that project.
        """
        folder = form.folder
        if into is not None:
            folder = relative_name(into.rstrip("/"), "") if into.strip("./") else ""
        notes, projects = _notes(form, path, from_project)
        notes = [replace(note, tags=(*note.tags, *tags)) for note in notes]
        planned = self._plan(form, notes, folder)
        earlier = []
        for note, memory in zip(notes, planned, strict=True):
            if memory.outcome == NEW:
                earlier += self._earlier(note, memory.path)
        puts = []
        for memory in planned:
            if memory.outcome == NEW:
                puts.append(Put(memory.path, memory.text, Expect.ABSENT))
        if puts and not dry_run:
            if earlier and self.adopt:
                self.adopt(earlier, {put.path: self._clean(put.text) for put in puts})
            self.corpus.commit(puts, "create")
        is_written = bool(puts) and not dry_run
        return ImportReport(form.name, str(path), planned, is_written, dict(projects))

    def _earlier(self, note: Note, path: str) -> list[tuple[Revision, str]]:
        """Return the earlier texts of a memory as revisions, without secrets."""
        revisions = []
        for earlier in note.earlier:
            check_content(earlier.text, f"an earlier text of {path}")
            text = self.corpus.redactor.redact(earlier.text).text
            verb = earlier.verb if earlier.verb in get_args(Verb) else "update"
            author = self._clean(earlier.author)
            revision = Revision(path, "", earlier.at, cast("Verb", verb), 0, author=author)
            revisions.append((revision, text))
        return revisions

    def _plan(self, form: Format, notes: Sequence[Note], folder: str) -> list[PlannedMemory]:
        present = self._present()
        used: set[str] = set()
        planned = []
        for note in notes:
            path = _unused(self._path(note, folder), note, used)
            used.add(link_key(path))
            memory = self._planned(form, note, path, present)
            origin = self._clean(note.key or note.name)
            kind = record.own_fields(note.text).get("type") or note.item or note.kind
            revisions = len(note.earlier) if memory.outcome == NEW and self.adopt else 0
            planned.append(replace(memory, origin=origin, kind=str(kind), revisions=revisions))
        return planned

    def _present(self) -> _Present:
        paths = {}
        origins = {}
        for path in self.corpus.stamps():
            paths[link_key(path)] = path
            document = self.corpus.get(document_id(self.corpus.lane, path))
            if document is not None and isinstance(document.extra.get(ORIGIN), str):
                origins[str(document.extra[ORIGIN])] = path
        return _Present(paths, origins)

    def _path(self, note: Note, folder: str) -> str:
        name = note.name
        # A secret in a title must not become the name of a file.
        if self.corpus.redactor.redact(name).findings:
            name = f"note-{digest(name)}"
        if note.item:
            item_id = usable_path(name).replace("/", "-").replace(" ", "-")
            return f"{self.scope().folder}/{FOLDERS[note.item]}/{item_id}"
        return usable_path(f"{folder}/{name}".lstrip("/"))

    def _planned(self, form: Format, note: Note, path: str, present: _Present) -> PlannedMemory:
        origin = f"{form.name}:{note.key}"
        if note.problem:
            return PlannedMemory(path, REFUSED, note.problem)
        skipped = SKIPPED.intersection(path.split("/"))
        if skipped:
            return PlannedMemory(path, REFUSED, f"no search looks into {min(skipped)}/")
        try:
            text = self._text(note, path, origin)
        except RagdocsError as error:
            return PlannedMemory(path, REFUSED, error.message)
        if note.key and self._clean(origin) in present.origins:
            return self._against(path, text, present.origins[self._clean(origin)])
        return self._against(path, text, present.paths.get(link_key(path)))

    def _against(self, path: str, text: str, taken: str | None) -> PlannedMemory:
        """Compare a text with the one that has its origin or its name, if there is one."""
        redaction = self.corpus.redactor.redact(text)
        pattern = self.corpus.redactor.swallowed_by(_body(text), redaction)
        if pattern:
            return PlannedMemory(path, REFUSED, f"{pattern} leaves nothing of its text")
        if taken is None:
            return PlannedMemory(path, NEW, text=text, secrets=len(redaction.findings))
        if self._body_at(taken) == _body(redaction.text):
            return PlannedMemory(taken, PRESENT)
        return PlannedMemory(taken, KEPT, "its text is another one")

    def _text(self, note: Note, path: str, origin: str) -> str:
        """Return the text of a new memory as every other one has it."""
        check_content(note.text)
        tags = [tag[:80] for tag in note.tags]
        if note.is_whole and not tags:
            return note.text
        if note.is_whole:
            return record.add_tags(note.text, tags)
        kind = note.item or note.kind
        record.check_kind(kind)
        now = self.clock()
        fields = {**record.fields(kind, [], note.created or now), **note.fields}
        if note.key:
            fields[ORIGIN] = origin
        if note.item:
            fields |= self._item_fields(path, now)
        text = frontmatter.merge(note.text, fields)
        return record.add_tags(text, tags)

    def _item_fields(self, path: str, now: datetime) -> dict[str, object]:
        fields: dict[str, object] = {
            "id": path.rpartition("/")[2].removesuffix(".md"),
            "updated_at": times.stamp(now),
        }
        branch = self.scope().branch
        if branch:
            fields["branch"] = branch
        return fields

    def _clean(self, text: str) -> str:
        return self.corpus.redactor.redact(text).text

    def _body_at(self, path: str) -> str:
        try:
            return _body(self.corpus.store.read(path).text)
        except RagdocsError:
            # It is there, and not to be read: nothing is the same as that.
            return "\x00"


def _notes(form: Format, path: Path, from_project: str) -> tuple[list[Note], Counter[str]]:
    """Read the notes of a source, and count those of each project in it."""
    projects: Counter[str] = Counter()
    notes = []
    for note in READERS[form.name](path):
        if note.project:
            projects[note.project] += 1
        if from_project in ("", note.project):
            notes.append(note)
    hint = "Import a part of it"
    if projects:
        hint = f"Name one project of the source: {', '.join(projects)}"
    if len(notes) > MOST_NOTES:
        raise ValidationError(f"{path} holds more than {MOST_NOTES} memories", hint)
    if from_project and not notes:
        raise NotFoundError(f"{path} holds nothing of the project {from_project}", hint)
    return notes, projects


def _unused(path: str, note: Note, used: AbstractSet[str]) -> str:
    """Return a path that no note before this one has, the same in the next import."""
    if link_key(path) not in used:
        return path
    stem = f"{path.removesuffix('.md')}-{digest(note.key or note.name)}"
    path = f"{stem}.md"
    count = 1
    while link_key(path) in used:
        count += 1
        path = f"{stem}-{count}.md"
    return path


def without_texts(report: ImportReport) -> ImportReport:
    """Return a report that names memories only."""
    memories = [replace(memory, text="") for memory in report.memories]
    return replace(report, memories=memories)


def _body(text: str) -> str:
    return frontmatter.split(text)[1].replace("\r\n", "\n").strip()
