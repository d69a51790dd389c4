"""The benchmark of commands measures every row, with and without a server."""

from __future__ import annotations

from tests.test_bench import run

ROWS = (
    "python -c pass",
    "import click",
    "import click, numpy",
    "--help",
    "search, alone",
    "hook, alone",
    "lint, 3 memories",
    "imports of lint",
    "recall, 3 memories",
    "imports of recall",
    "search, warm server",
    "hook, warm server",
)


def test_commands_measures_each_command_alone_and_through_a_server() -> None:
    lines = run("commands", "--documents", "5", "--memories", "3", "--repeats", "1").splitlines()[
        1:
    ]
    cpu = {}
    for line in lines:
        name, figures = line[:24].strip(), line[24:].split()
        cpu[name] = float(figures[2])
    assert tuple(cpu) == ROWS
    assert cpu["search, warm server"] < cpu["search, alone"] / 2
    assert cpu["hook, warm server"] < cpu["hook, alone"] / 2
