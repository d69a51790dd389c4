"""Answers without what differs between machines and runs, written for review."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ragdocs

WIDTH = 140
# Names of values that are durations, or the time at which a background thread happened to look.
TIMINGS = frozenset({"seconds", "milliseconds", "heartbeat", "calls"})
# Names of values that are made from the path of a project.
KEYS = frozenset({"repoHash"})
KEY = re.compile(r"\b[0-9a-f]{12,64}\b")
# Durations in texts, and the keys that are made from the path of a project.
PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(rf"\bragdocs {re.escape(ragdocs.__version__)}"), "ragdocs <version>"),
    (re.compile(r"\b\d+\.\d+ s\b"), "<time> s"),
    (re.compile(r"\b\d+ s in all"), "<time> s in all"),
    (re.compile(r"(just now, )[\d,]+ calls"), r"\1<count> calls"),
    (re.compile(r"(last seen alive )\d\S+"), r"\1<time>"),
    (re.compile(r"(milliseconds, p50 / p95: ).*"), r"\1<times>"),
    (re.compile(r"\b(\d{4}-\d\d-\d\d by) [^\s\"]+"), r"\1 <user>"),
    (re.compile(r"(?<=repository )[0-9a-f]{32}\b"), "<repository>"),
    (re.compile(r"<home>[\w./-]+"), lambda path: KEY.sub("<key>", path[0])),
)


class Normal:
    """Replaces the folders of this run by names."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        # The longest first: a folder may lie in another one.
        self.folders = dict(sorted(folders.items(), key=lambda pair: -len(pair[0])))

    def text(self, text: str) -> str:
        for path, name in self.folders.items():
            text = text.replace(path, name)
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
        return text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return "<version>" if value == ragdocs.__version__ else self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._named(key, inner) for key, inner in value.items()}
        if isinstance(value, Sequence):
            return [self.value(inner) for inner in value]
        return value

    def _named(self, key: str, value: Any) -> Any:
        if key in TIMINGS and value is not None:
            return "<time>"
        return "<key>" if key in KEYS else self.value(value)


def pretty(value: Any, indent: int = 0) -> str:
    """Write a value as JSON, on one line if it fits, else with a line for each part."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 1)
    outer = " " * indent
    if isinstance(value, list):
        rows = [inner + pretty(one, indent + 1) for one in value]
        return "[\n" + ",\n".join(rows) + f"\n{outer}]"
    rows = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {pretty(one, indent + 1)}"
        for key, one in value.items()
    ]
    return "{\n" + ",\n".join(rows) + f"\n{outer}}}"


def significant(number: float, digits: int) -> float:
    """Round to so many significant digits."""
    return float(f"{number:.{digits}g}")
