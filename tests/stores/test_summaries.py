"""Summaries of steps: limits, order, secrets, many or killed writers, damaged lines."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ragdocs.errors import LockAcquisitionError, ParseError
from ragdocs.stores.summaries import Limits, SummaryFile
from ragdocs.system import locks
from ragdocs.text.redaction.redact import Redactor

from .summaries_contract import LIMITS, NOW, Open, SummariesContract


def store(folder: Path, limits: Limits = LIMITS) -> SummaryFile:
    return SummaryFile(folder, limits, Redactor({}))


def lines(summaries: SummaryFile) -> list[dict[str, object]]:
    return [json.loads(line) for line in summaries.path.read_text().splitlines()]


def test_a_summary_is_one_json_line_with_the_fields_of_its_document(tmp_path: Path) -> None:
    summaries = store(tmp_path / "a")
    assert summaries.newest() == []
    assert not (tmp_path / "a").exists()
    answer = summaries.append(
        "run-1", "step-1", "Added tool caching.\nNext: tests.", ["cache"], NOW
    )
    assert (answer.total, answer.pruned, answer.path) == (1, 0, str(summaries.path))
    assert summaries.path.read_bytes().endswith(b"}\n")
    (line,) = lines(summaries)
    assert line.pop("timestamp") == "2026-11-16T12:00:00.000Z"
    text = "Added tool caching.\nNext: tests."
    assert line == {"runId": "run-1", "stepId": "step-1", "summary": text, "tags": ["cache"]}


class TestSummaryFile(SummariesContract):
    @pytest.fixture
    def open_summaries(self, tmp_path: Path) -> Open:
        return lambda name, limits: store(tmp_path / name, limits)


def test_the_file_stays_within_its_size(tmp_path: Path) -> None:
    small = store(tmp_path, replace(LIMITS, size=1000))
    for number in range(20):
        small.append("r", str(number), "y" * 100, (), NOW)
        assert small.path.stat().st_size <= 1000


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'"x"',
        b'{"runId": "r"}',
        b'{"runId": 1, "stepId": "", "timestamp": "2026-01-01", "summary": ""}',
        b'{"runId": "", "stepId": "", "timestamp": "soon", "summary": ""}',
        b'{"runId": "", "stepId": "", "timestamp": "0001-01-01T00:00:00+23:00", "summary": ""}',
        b"\xff",
    ],
)
def test_a_damaged_line_is_a_parse_error_and_the_file_stays_untouched(
    tmp_path: Path, line: bytes
) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "1", "x", (), NOW)
    before = summaries.path.read_bytes() + line + b"\n"
    summaries.path.write_bytes(before)
    with pytest.raises(ParseError, match="line 2 of"):
        summaries.newest()
    other = store(tmp_path / "other")
    with pytest.raises(ParseError, match="line 2 of"):
        other.take(summaries)
    assert summaries.path.read_bytes() == before
    assert not other.path.exists()


@pytest.mark.parametrize("torn", [b'\n{"runId": "to', b""], ids=["torn", "whole"])
def test_a_last_line_without_its_end_is_kept_if_it_is_whole_and_gone_if_not(
    tmp_path: Path, torn: bytes
) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "1", "x", (), NOW)
    summaries.path.write_bytes(summaries.path.read_bytes().rstrip() + torn)
    assert [record.step_id for record in summaries.newest()] == ["1"]
    summaries.append("r", "2", "y", (), NOW)
    assert [line["stepId"] for line in lines(summaries)] == ["1", "2"]


def test_a_lock_that_is_held_for_a_second_is_named(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    with locks.lock(tmp_path), pytest.raises(LockAcquisitionError, match="1 seconds"):
        summaries.append("r", "s", "x", (), NOW)


WRITER = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from ragdocs.errors import LockAcquisitionError
from ragdocs.stores.summaries import Limits, SummaryFile
from ragdocs.text.redaction.redact import Redactor
folder, run, count = sys.argv[1:]
summaries = SummaryFile(Path(folder), Limits(10, 10_000, 100_000_000), Redactor({}))
turn = 0
while turn < int(count):
    try:
        summaries.append(run, str(turn), "done " * 40, (), datetime.now(UTC))
    except LockAcquisitionError:  # after a second, on a busy machine: callers try again
        continue
    print(".", end="", flush=True)
    turn += 1
"""


def writer(folder: Path, run: str, count: int) -> subprocess.Popen[bytes]:
    """Start a process that appends and says so each time."""
    command = [sys.executable, "-c", WRITER, str(folder), run, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_eight_writers_lose_nothing(tmp_path: Path) -> None:
    writers = [writer(tmp_path, f"run {number}", 25) for number in range(8)]
    assert [one.communicate()[0] for one in writers] == [b"." * 25] * 8
    found = {(record.run_id, record.step_id) for record in store(tmp_path).newest()}
    assert len(found) == len(lines(store(tmp_path))) == 200


def test_a_killed_writer_leaves_whole_lines_and_no_lock(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    for number in range(4):
        one = writer(tmp_path, f"run {number}", 100_000)
        assert one.stdout
        said = one.stdout.read(5 + number)
        one.kill()
        said += one.communicate()[0]
        found = [line for line in lines(summaries) if line["runId"] == f"run {number}"]
        assert len(said) <= len(found) <= len(said) + 1, "whatever was acknowledged is there, whole"
        assert summaries.path.read_bytes().endswith(b"\n")
    summaries.append("after", "1", "still works", (), NOW)
