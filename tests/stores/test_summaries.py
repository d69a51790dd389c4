"""Summaries of steps: limits, order, secrets, many writers at once, a killed writer.

Damaged lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.errors import LockAcquisitionError, ParseError, ValidationError
from ragdocs.stores.summaries import FILE_NAME, Limits, SummaryFile
from ragdocs.system import locks
from ragdocs.text.redaction.redact import Redactor

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LIMITS = Limits(shown=10, entries=100, size=1_000_000)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def store(folder: Path, limits: Limits = LIMITS) -> SummaryFile:
    return SummaryFile(folder, limits, Redactor({}))


def lines(summaries: SummaryFile) -> list[dict[str, object]]:
    return [json.loads(line) for line in summaries.path.read_text().splitlines()]


def test_a_summary_is_one_json_line_with_the_fields_of_its_document(tmp_path: Path) -> None:
    summaries = store(tmp_path / "a")
    answer = summaries.append(
        "run-1", "step-1", "Added tool caching.\nNext: tests.", ["cache"], NOW
    )
    assert (answer.total, answer.pruned, answer.path) == (1, 0, str(summaries.path))
    assert summaries.path.read_bytes().endswith(b"}\n")
    assert lines(summaries) == [
        {
            "runId": "run-1",
            "stepId": "step-1",
            "timestamp": "2026-11-16T12:00:00.000Z",
            "summary": "Added tool caching.\nNext: tests.",
            "tags": ["cache"],
        }
    ]


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert store(tmp_path / "none").newest() == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("r", "s", "x" * 65_537, ()), "larger than 64 KB"),
        (("r", "s", "ä" * 32_769, ()), "larger than 64 KB"),
        (("r", "s" * 201, "x", ()), "step_id is longer"),
    ],
)
def test_what_is_no_summary_is_refused(
    tmp_path: Path, arguments: tuple[str, str, str, tuple[()]], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        store(tmp_path).append(*arguments, NOW)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_summary_of_exactly_the_largest_size_is_kept(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "s", "x" * 65_536, (), NOW)
    assert len(summaries.newest()[0].text) == 65_536


def test_the_oldest_leave_when_there_are_too_many_or_too_much(tmp_path: Path) -> None:
    few = store(tmp_path / "few", replace(LIMITS, entries=3))
    for number in range(5):
        answer = few.append("r", str(number), "x", (), NOW)
    assert (answer.total, answer.pruned) == (3, 1)
    assert [line["stepId"] for line in lines(few)] == ["2", "3", "4"]
    small = store(tmp_path / "small", replace(LIMITS, size=1000))
    for number in range(20):
        small.append("r", str(number), "y" * 100, (), NOW)
        assert small.path.stat().st_size <= 1000
    assert lines(small)[-1]["stepId"] == "19"
    small.append("r", "large", "z" * 5000, (), NOW)
    assert [line["stepId"] for line in lines(small)] == ["large"], (
        "the newest stays, whatever its size"
    )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.text(min_size=1, max_size=20).filter(str.strip)),
        max_size=12,
    )
)
def test_the_newest_come_first_and_none_is_lost(steps: list[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        summaries = store(Path(folder))
        written = []
        for number, (minutes, text) in enumerate(steps):
            if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
                continue
            summaries.append("r", str(number), text, (), NOW + timedelta(minutes=minutes))
            written.append((minutes, number))
        found = [(one.timestamp, int(one.step_id)) for one in summaries.newest()]
        assert [number for _, number in found] == [
            number for _, number in sorted(written, reverse=True)
        ]
        assert summaries.newest(2) == summaries.newest()[:2]


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    answer = summaries.append(f"run {SECRET}", SECRET, f"used {SECRET}", [SECRET], NOW)
    assert SECRET not in summaries.path.read_text()
    assert SECRET not in repr(answer)
    assert answer.redacted


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


def test_what_a_killed_writer_left_of_a_line_is_passed_over_and_then_gone(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "1", "x", (), NOW)
    with summaries.path.open("ab") as file:
        file.write(b'{"runId": "to')
    assert [record.step_id for record in summaries.newest()] == ["1"]
    summaries.append("r", "2", "y", (), NOW)
    assert [line["stepId"] for line in lines(summaries)] == ["1", "2"]


def test_a_last_line_without_its_end_is_kept_if_it_is_whole(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "1", "x", (), NOW)
    summaries.path.write_bytes(summaries.path.read_bytes().rstrip())
    assert len(summaries.newest()) == 1
    summaries.append("r", "2", "y", (), NOW)
    assert [line["stepId"] for line in lines(summaries)] == ["1", "2"]


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    summaries.append("r", "1", "x", (), NOW)
    before = summaries.path.read_bytes()
    script = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom datetime import datetime, UTC\n"
        "from ragdocs.text.redaction.redact import Redactor\nfrom ragdocs.stores.summaries import Limits, SummaryFile\n"
        "from ragdocs.errors import StorageError\n"
        "summaries = SummaryFile(Path(sys.argv[1]), Limits(10, 100, 1_000_000), Redactor({}))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))\n"
        "try:\n    summaries.append('r', '2', 'y' * 5000, (), datetime.now(UTC))\nexcept StorageError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(len(before) + 50)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "cannot append" in run.stdout
    assert summaries.path.read_bytes() == before


def test_a_lock_that_is_held_for_a_second_is_named(tmp_path: Path) -> None:
    summaries = store(tmp_path)
    with locks.lock(tmp_path), pytest.raises(LockAcquisitionError, match="1 seconds"):
        summaries.append("r", "s", "x", (), NOW)


def writer(folder: Path, run: str, count: int) -> subprocess.Popen[bytes]:
    """Start a process that appends and says so each time.

    One that imports no more than it needs.
    """
    script = (
        "import sys\nfrom pathlib import Path\nfrom datetime import datetime, UTC\n"
        "from ragdocs.errors import LockAcquisitionError\n"
        "from ragdocs.text.redaction.redact import Redactor\nfrom ragdocs.stores.summaries import Limits, SummaryFile\n"
        "folder, run, count = sys.argv[1:]\n"
        "summaries = SummaryFile(Path(folder), Limits(10, 10_000, 100_000_000), Redactor({}))\n"
        "for turn in range(int(count)):\n"
        "    while True:\n"
        "        try:\n"
        "            summaries.append(run, str(turn), 'done ' * 40, (), datetime.now(UTC))\n"
        "        except LockAcquisitionError:  # after a second, on a busy machine: callers try again\n"
        "            continue\n"
        "        print('.', end='', flush=True)\n"
        "        break\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder), run, str(count)], stdout=subprocess.PIPE
    )


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


def test_what_another_branch_has_comes_in_the_order_of_time(tmp_path: Path) -> None:
    one, other = store(tmp_path / "one"), store(tmp_path / "other", replace(LIMITS, entries=3))
    for number in range(3):
        one.append("one", str(number), "x", (), NOW + timedelta(minutes=2 * number))
        other.append("other", str(number), "x", (), NOW + timedelta(minutes=2 * number + 1))
    assert other.take(one) == 3
    order = [(record.run_id, record.step_id) for record in other.newest()]
    assert order == [("other", "2"), ("one", "2"), ("other", "1")], (
        "the oldest leave, whoever had them"
    )
