"""Summaries of steps: one JSON line each, appended whole.

The oldest leaving when there are too many.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.errors import NotFoundError, ParseError, RagdocsError, ValidationError
from ragdocs.system import files as fsio
from ragdocs.system.locks import lock
from ragdocs.text.checks import check_content, check_tags
from ragdocs.text.redaction.redact import Redactor
from ragdocs.verbs.context.shapes import Appended, Summary

FILE_NAME = "summaries.jsonl"
# Bytes of one summary: a paragraph has less than a thousand, and a transcript is no summary.
LARGEST = 65_536
LONGEST_ID = 200
APPEND_SECONDS = 1.0
# Whatever the limits are now, they may have been larger.
FILE_LIMIT = 200_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How many summaries are shown in a context, and how many, of which size together, are kept."""

    shown: int
    entries: int
    size: int


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of one scope.

    Their folder is the user's, so that worktrees share it and a checkout spares it.
    """

    folder: Path
    limits: Limits
    redactor: Redactor

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / FILE_NAME

    def append(
        self, run_id: str, step_id: str, summary: str, tags: Sequence[str], now: datetime
    ) -> Appended:
        """Write one summary, durably and without secrets, and drop the oldest beyond the limits."""
        check_content(summary, "summary")
        if len(summary.encode()) > LARGEST:
            raise ValidationError(
                f"summary is larger than {LARGEST // 1024} KB", "Say it in one paragraph"
            )
        words = (_line("run_id", run_id), _line("step_id", step_id), summary, *check_tags(tags))
        cleaned = [self.redactor.redact(text) for text in words]
        run, step, said, *labels = [one.text for one in cleaned]
        record = Summary(runId=run, stepId=step, timestamp=_iso(now), summary=said, tags=labels)
        kept, pruned = self._append(json.dumps(record, ensure_ascii=False).encode())
        rules = sorted({finding.rule for one in cleaned for finding in one.findings})
        return Appended(
            runId=run,
            stepId=step,
            timestamp=record["timestamp"],
            kept=kept,
            pruned=pruned,
            path=str(self.path),
            warnings=[f"a secret was replaced by a placeholder: {rule}" for rule in rules],
        )

    def newest(self, count: int | None = None) -> list[Summary]:
        """Return summaries by time, newest first.

        Of the same moment the one that was written later comes first.
        """
        records = [
            _record(self.path, number, line) for number, line in enumerate(self._lines(), start=1)
        ]
        return [record for _, record in sorted(records, key=lambda pair: pair[0])][::-1][:count]

    def take(self, other: Summaries) -> int:
        """Add what another scope has and this one has not, in the order of time.

        Return how many those are.
        """
        lines = other._lines()
        times = {
            line: _record(other.path, number, line)[0] for number, line in enumerate(lines, start=1)
        }
        if not lines:
            return 0
        fsio.make_directories(self.folder, 0o700)
        with lock(self.folder, timeout=APPEND_SECONDS):
            own = self._lines()
            times |= {
                line: _record(self.path, number, line)[0]
                for number, line in enumerate(own, start=1)
            }
            merged = sorted(times, key=lambda line: times[line])
            fsio.write_atomic(
                self.path, b"\n".join([*_within(merged, self.limits), b""]), mode=0o600
            )
        return len(times) - len(own)

    def _lines(self) -> list[bytes]:
        """Return the summaries.

        Without the lock, because a writer appends a line or replaces the file as a whole.
        """
        return [line for line in self._data().split(b"\n") if line.strip()]

    def _data(self) -> bytes:
        """Return the file without what a killed process or a full disk left of a line.

        That was never acknowledged.
        """
        try:
            data = fsio.read_bytes(self.path, FILE_LIMIT)
        except NotFoundError:
            return b""
        torn = data.rpartition(b"\n")[2]
        return data.removesuffix(torn) if torn and not _is_record(torn) else data

    def _append(self, line: bytes) -> tuple[int, int]:
        """Append a line and prune, under the lock.

        One that could be written in part only is taken back.
        """
        fsio.make_directories(self.folder, 0o700)
        with lock(self.folder, timeout=APPEND_SECONDS):
            whole = len(self._data())
            fsio.cut(self.path, whole)
            try:
                fsio.append_line(self.path, line, mode=0o600)
            except RagdocsError:
                # If even this fails, whoever comes next does it.
                with contextlib.suppress(RagdocsError):
                    fsio.cut(self.path, whole)
                raise
            every = self._lines()
            kept = _within(every, self.limits)
            pruned = len(every) - len(kept)
            if pruned:
                try:
                    fsio.write_atomic(self.path, b"\n".join([*kept, b""]), mode=0o600)
                except RagdocsError:
                    # The summary is written; what is too much now leaves with the next one.
                    pruned = 0
        return len(every) - pruned, pruned


def _within(lines: Sequence[bytes], limits: Limits) -> Sequence[bytes]:
    """Return the last lines that stay within the limits; the newest stays whatever its size."""
    room, count = limits.size, 0
    for line in reversed(lines[-limits.entries :]):
        room -= len(line) + 1
        if room < 0 and count:
            break
        count += 1
    return lines[len(lines) - count :]


def _record(path: Path, number: int, line: bytes) -> tuple[datetime, Summary]:
    """Return a line's time and what it says, or refuse it."""
    try:
        found = json.loads(line)
        run, step, timestamp, said = (
            found[name] for name in ("runId", "stepId", "timestamp", "summary")
        )
        tags = list(found.get("tags", []))
        at = datetime.fromisoformat(timestamp)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        is_text = all(isinstance(text, str) for text in (run, step, said, *tags))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        is_text = False
    if not is_text:
        hint = "Mend or remove that line; the file is untouched"
        raise ParseError(f"line {number} of {path} is not a summary", hint)
    return at, Summary(runId=run, stepId=step, timestamp=timestamp, summary=said, tags=tags)


def _is_record(line: bytes) -> bool:
    try:
        _record(Path(), 0, line)
    except ParseError:
        return False
    return True


def _line(name: str, text: str) -> str:
    check_content(text, name)
    said = " ".join(text.split())
    if len(said) > LONGEST_ID:
        raise ValidationError(
            f"{name} is longer than {LONGEST_ID} characters", "Give a short name of the run or step"
        )
    return said


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
