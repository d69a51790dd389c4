"""Patterns that are compiled when a text first needs them.

Compiling them takes a twentieth of what a short command takes, which uses few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Later:
    """Stands for a pattern until somebody asks anything of it."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Whatever is asked for is kept here, so that each is asked for once.
        method = getattr(re.compile(*self._source), name)
        setattr(self, name, method)
        return method


def later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    Not for patterns that a match is compared with: its `re` is the compiled one.
    """
    return cast("re.Pattern[str]", _Later(pattern, flags))
