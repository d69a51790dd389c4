"""Writing all memories for another tool: one file or one new folder, whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import AlreadyExistsError, NotFoundError, RagdocsError, ValidationError
from ragdocs.lanes import document_id
from ragdocs.search.corpus import Corpus
from ragdocs.system import files
from ragdocs.types import Revision
from ragdocs.verbs.exchange.detect import WRITERS
from ragdocs.verbs.exchange.exported import Exported
from ragdocs.verbs.exchange.formats import Format
from ragdocs.verbs.exchange.note import EarlierText


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was exported: how many memories, into how many files, and which were left out."""

    format: str
    target: str
    memories: int
    files: int
    secrets: int
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class Export:
    """Exports of the memory lane."""

    corpus: Corpus

    def run(self, form: Format, target: Path) -> ExportReport:
        """Write every memory, without secrets; a file or folder that exists is not touched."""
        if target.exists() and not _is_empty(target, is_file=form.is_file):
            raise AlreadyExistsError(f"{target} exists already", "Name a new file or folder")
        if target.resolve().is_relative_to(self.corpus.store.locate("")):
            raise ValidationError(f"{target} is in the folder of the memories", "Name another one")
        earlier: dict[str, list[Revision]] = {}
        if form.has_history:
            earlier = self._revisions()
        memories, secrets, left_out = self._read(earlier)
        if not memories:
            raise NotFoundError("there are no memories to export", "<create a memory> writes one")
        written = list(WRITERS[form.name](memories))
        if form.is_file:
            _write_file(target, written[0][1])
        else:
            _write_folder(target, written)
        return ExportReport(form.name, str(target), len(memories), len(written), secrets, left_out)

    def _revisions(self) -> dict[str, list[Revision]]:
        """Return the revisions of every memory, oldest first."""
        revisions: dict[str, list[Revision]] = {}
        for revision in reversed(self.corpus.versioned.history()):
            revisions.setdefault(revision.path, []).append(revision)
        return revisions

    def _earlier(self, revisions: Sequence[Revision]) -> list[EarlierText]:
        """Return the texts of revisions, without secrets; one that is not kept is left out."""
        texts = []
        for revision in revisions:
            with contextlib.suppress(RagdocsError):
                text = self.corpus.versioned.recover(revision.version)
                clean = self.corpus.redactor.redact(text).text
                texts.append(EarlierText(clean, revision.at, revision.verb, revision.author))
        return texts

    def _read(
        self, revisions: Mapping[str, Sequence[Revision]]
    ) -> tuple[list[Exported], int, list[str]]:
        memories = []
        left_out = []
        secrets = 0
        for path in sorted(self.corpus.stamps()):
            document = self.corpus.get(document_id(self.corpus.lane, path))
            try:
                text = self.corpus.store.read(path).text
            except RagdocsError as error:
                left_out.append(f"{path}: {error.message}")
                continue
            if document is None:
                left_out.append(f"{path}: not indexed")
                continue
            redaction = self.corpus.redactor.redact(text)
            secrets += len(redaction.findings)
            earlier = self._earlier(revisions.get(path, ()))
            memories.append(Exported(document, redaction.text, earlier))
        return memories, secrets, left_out


def _is_empty(target: Path, *, is_file: bool) -> bool:
    return not is_file and target.is_dir() and not any(target.iterdir())


def _write_file(target: Path, text: str) -> None:
    with files.explained("write", target):
        files.make_directories(target.absolute().parent)
        if not files.create(target.absolute(), text.encode()):
            raise AlreadyExistsError(f"{target} exists already", "Name a new file")


def _write_folder(target: Path, written: Sequence[tuple[str, str]]) -> None:
    """Write a folder beside its place, and move it there when it is complete."""
    target = target.absolute()
    with files.explained("write", target):
        files.make_directories(target.parent)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            for name, text in written:
                path = draft / name
                files.make_directories(path.parent)
                path.write_bytes(text.encode())
            if target.exists():
                target.rmdir()
            draft.rename(target)
        finally:
            # It is gone if it was moved.
            shutil.rmtree(draft, ignore_errors=True)
