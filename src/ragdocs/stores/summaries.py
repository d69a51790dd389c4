"""Summaries of steps: a file with one JSON line for each, the oldest dropped over the limits."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ragdocs.errors import NotFoundError, ParseError, RagdocsError, ValidationError
from ragdocs.protocols import Summaries
from ragdocs.system import files
from ragdocs.system.locks import lock
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import AppendedSummary, StepSummary

FILE_NAME = "summaries.jsonl"
# Bytes of one summary: a paragraph has less than a thousand, and a transcript is no summary.
LARGEST = 65_536
LONGEST_ID = 200
APPEND_SECONDS = 1.0
# The limits in the configuration may have been larger when the file was written.
FILE_LIMIT = 200_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How many summaries a context shows, how many the file has, and their size in bytes."""

    shown: int
    entries: int
    size: int


class _TimedLine(NamedTuple):
    """One line of the file, with its time and content."""

    at: datetime
    record: StepSummary
    data: bytes


@dataclass(frozen=True, slots=True)
class SummaryFile:
    """The summaries of one scope.

    The folder is one of the user's own, so that worktrees share it and no checkout removes it.
    """

    folder: Path
    limits: Limits
    redactor: Redactor

    @property
    def path(self) -> Path:
        """The file with the summaries."""
        return self.folder / FILE_NAME

    @property
    def name(self) -> str:
        """The name under which a context pack cites the summaries."""
        return FILE_NAME

    @property
    def shown(self) -> int:
        """The number of summaries that a context pack has at most."""
        return self.limits.shown

    def append(
        self, run_id: str, step_id: str, summary: str, tags: Sequence[str], now: datetime
    ) -> AppendedSummary:
        """Write one summary, durably and without secrets, and drop the oldest over the limits."""
        record = checked_summary(run_id, step_id, summary, tags, now)
        record, rules = without_secrets(record, self.redactor)
        total, pruned = self._append(encoded_line(record))
        return AppendedSummary(record, total, pruned, str(self.path), rules)

    def newest(self, count: int | None = None) -> list[StepSummary]:
        """Return summaries by time, newest first.

        Of the same moment, the one that was written later comes first.
        """
        timed = sorted(self._timed_lines(), key=_time)
        timed.reverse()
        return [line.record for line in timed[:count]]

    def take(self, other: Summaries) -> int:
        """Add the summaries of another scope that are not here yet, and return their number."""
        incoming = other.newest()
        if not incoming:
            return 0
        files.make_directories(self.folder, 0o700)
        with lock(self.folder, timeout=APPEND_SECONDS):
            own = self._timed_lines()
            existing = {line.record for line in own}
            added = []
            # In the order in which they were written, so that those of one moment stay in it.
            for record in reversed(incoming):
                if record not in existing:
                    existing.add(record)
                    line = _TimedLine(moment_of(record.timestamp), record, encoded_line(record))
                    added.append(line)
            merged = sorted([*added, *own], key=_time)
            self._replace([line.data for line in merged])
        return len(added)

    def _timed_lines(self) -> list[_TimedLine]:
        """Return the lines with their time and content, in the order of the file."""
        timed = []
        for number, data in enumerate(self._lines(), start=1):
            timed.append(_decoded(self.path, number, data))
        return timed

    def _lines(self) -> list[bytes]:
        """Return the lines with summaries.

        Needs no lock: a writer appends a line or replaces the file as a whole.
        """
        return [line for line in self._data().split(b"\n") if line.strip()]

    def _data(self) -> bytes:
        """Return the file without a torn last line.

        A killed process or a full disk left it; it was never acknowledged.
        """
        try:
            data = files.read_bytes(self.path, FILE_LIMIT)
        except NotFoundError:
            return b""
        last = data.rpartition(b"\n")[2]
        if last and not _is_summary(last):
            return data.removesuffix(last)
        return data

    def _append(self, line: bytes) -> tuple[int, int]:
        """Append a line and prune, under the lock; return how many lines stay and how many left."""
        files.make_directories(self.folder, 0o700)
        with lock(self.folder, timeout=APPEND_SECONDS):
            size = len(self._data())
            files.cut(self.path, size)
            try:
                files.append_line(self.path, line, mode=0o600)
            except RagdocsError:
                # A line that could be written in part only; if this fails, the next writer does it.
                with contextlib.suppress(RagdocsError):
                    files.cut(self.path, size)
                raise
            return self._prune()

    def _prune(self) -> tuple[int, int]:
        """Drop the oldest lines over the limits; return how many lines stay and how many left."""
        lines = self._lines()
        excess = len(lines) - len(_newest_within(lines, self.limits))
        if not excess:
            return len(lines), 0
        try:
            self._replace(lines)
        except RagdocsError:
            # The summary is written; the excess leaves with the next one.
            return len(lines), 0
        return len(lines) - excess, excess

    def _replace(self, lines: Sequence[bytes]) -> None:
        """Write the file anew with the newest of these lines."""
        newest = _newest_within(lines, self.limits)
        files.write_atomic(self.path, b"\n".join([*newest, b""]), mode=0o600)


def checked_summary(
    run_id: str, step_id: str, summary: str, tags: Sequence[str], now: datetime
) -> StepSummary:
    """Return a summary as it is to be written, or refuse it."""
    if len(summary.encode()) > LARGEST:
        raise ValidationError(
            f"summary is larger than {LARGEST // 1024} KB", "Say it in one paragraph"
        )
    run_id = _one_line("run_id", run_id)
    step_id = _one_line("step_id", step_id)
    return StepSummary(run_id, step_id, _iso(now), summary, tuple(tags))


def without_secrets(record: StepSummary, redactor: Redactor) -> tuple[StepSummary, tuple[str, ...]]:
    """Return a summary without secrets, and the rules by which they were replaced."""
    clean = []
    rules: set[str] = set()
    for text in (record.run_id, record.step_id, record.text, *record.tags):
        redaction = redactor.redact(text)
        clean.append(redaction.text)
        rules.update(finding.rule for finding in redaction.findings)
    run_id, step_id, body, *tags = clean
    clean_record = StepSummary(run_id, step_id, record.timestamp, body, tuple(tags))
    return clean_record, tuple(sorted(rules))


def _newest_within(lines: Sequence[bytes], limits: Limits) -> Sequence[bytes]:
    """Return the last lines that fit into the limits; the newest stays whatever its size."""
    room = limits.size
    count = 0
    for line in reversed(lines[-limits.entries :]):
        room -= len(line) + 1
        if room < 0 and count:
            break
        count += 1
    return lines[len(lines) - count :]


def encoded_line(record: StepSummary) -> bytes:
    """Return the line of a file that a summary is, without its end."""
    fields = {
        "runId": record.run_id,
        "stepId": record.step_id,
        "timestamp": record.timestamp,
        "summary": record.text,
        "tags": record.tags,
    }
    return json.dumps(fields, ensure_ascii=False).encode()


def _time(line: _TimedLine) -> datetime:
    return line.at


def _decoded(path: Path, number: int, line: bytes) -> _TimedLine:
    """Return a line with its time and content, or refuse it."""
    try:
        fields = json.loads(line)
        record = StepSummary(
            run_id=fields["runId"],
            step_id=fields["stepId"],
            timestamp=fields["timestamp"],
            text=fields["summary"],
            tags=tuple(fields.get("tags", [])),
        )
        at = moment_of(record.timestamp)
        texts = (record.run_id, record.step_id, record.text, *record.tags)
        is_text = all(isinstance(text, str) for text in texts)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        is_text = False
    if not is_text:
        hint = "Mend or remove that line; the file is untouched"
        raise ParseError(f"line {number} of {path} is not a summary", hint)
    return _TimedLine(at, record, line)


def _is_summary(line: bytes) -> bool:
    try:
        _decoded(Path(), 0, line)
    except ParseError:
        return False
    return True


def _one_line(name: str, text: str) -> str:
    line = " ".join(text.split())
    if len(line) > LONGEST_ID:
        raise ValidationError(
            f"{name} is longer than {LONGEST_ID} characters", "Give a short name of the run or step"
        )
    return line


def moment_of(timestamp: str) -> datetime:
    """Read a time of a line; one without a zone is in UTC."""
    moment = datetime.fromisoformat(timestamp)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
