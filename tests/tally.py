"""What was tried and what survived, counted by tests and printed when the run ends."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

Tally = Callable[..., None]
Counts = dict[str, dict[str, float]]
COUNTS = pytest.StashKey[Counts]()
PROPERTY = "counted"


def pytest_configure(config: pytest.Config) -> None:
    counts: Counts = defaultdict(dict)
    config.stash[COUNTS] = counts
    config.pluginmanager.register(Ledger(counts))


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Iterator[Tally]:
    """Count under a line of the scoreboard: `tally("R1 kill at any call", points=1, survived=1)`.

    Counts of one line are added up over all tests; of a count whose name begins with `worst` the
    largest stays.
    """
    counts: Counts = defaultdict(dict)
    yield functools.partial(add, counts)
    # Properties reach the process that prints, whichever ran the test.
    record_property(PROPERTY, json.dumps(counts))


def add(counts: Counts, line: str, **more: float) -> None:
    for name, number in more.items():
        before = counts[line].get(name, 0)
        counts[line][name] = max(before, number) if name.startswith("worst") else before + number


class Ledger:
    """Adds up what the tests counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name == PROPERTY:
                for line, numbers in json.loads(str(value)).items():
                    add(self._counts, line, **numbers)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = config.stash[COUNTS]
    if counts:
        terminalreporter.section("counted")
    for line, numbers in sorted(counts.items()):
        words = (f"{name.replace('_', ' ')} {number:,g}" for name, number in numbers.items())
        terminalreporter.write_line(f"{line}: {', '.join(words)}")
