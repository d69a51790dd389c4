"""A server process and one client of it, as an IDE window, with a log to search for secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.serve import windows

SETTINGS = ("--set=embedding.model=hash", "--set=memory.enabled=true", "--set=watch.enabled=false")


class Window(windows.Window):
    """The standard input and output of a server, and the log it keeps."""

    def __init__(
        self,
        root: Path,
        log: Path,
        settings: Sequence[str] = SETTINGS,
        *,
        command: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> None:
        command = command or [*windows.RAGDOCS, "mcp", "--project", str(root)]
        with log.open("w", encoding="utf-8") as stderr:
            self.start([*command, *settings], stderr, cwd, {})

    def __enter__(self) -> Self:
        return self.greet()

    def __exit__(self, *_: object) -> None:
        self.close()
