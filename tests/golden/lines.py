"""Lines of every command, in scenarios that begin with the fixture project as it was made.

Each line of lines.txt runs twice, in two fresh copies of the project: as it is, and with --json.
It is cut into words as a shell does it; a word that begins with `stdin:` is piped in.
"""

from __future__ import annotations

from pathlib import Path

# A heading names the command whose lines follow; \\n stands for the end of a line.
FILE = Path(__file__).with_name("lines.txt")
# The scenario that belongs to no command.
BESIDE = "ragdocs"


def _scenarios() -> dict[str, list[str]]:
    scenarios: dict[str, list[str]] = {}
    for row in FILE.read_text(encoding="utf-8").splitlines():
        if row.startswith("# "):
            lines = scenarios.setdefault(row.removeprefix("# "), [])
        elif row:
            lines.append(row.removeprefix("ragdocs").lstrip(" ").replace("\\n", "\n"))
    return scenarios


SCENARIOS = _scenarios()
COMMANDS = SCENARIOS.keys() - {BESIDE}
