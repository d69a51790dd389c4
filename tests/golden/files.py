"""Golden files: written when asked for, compared otherwise, with a diff that people can read."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
WRITING = "RAGDOCS_GOLDEN"
ACCEPT = (
    f"python3 tasks.py golden, or {WRITING}=write .venv/bin/python -m pytest tests/test_golden.py"
)
MOST_LINES = 200


def check(name: str, text: str, *, tolerance: float = 0.0) -> None:
    """Compare a text with its golden file, up to a tolerance of numbers, or write that file."""
    path = ROOT / name
    text = text.rstrip("\n") + "\n"
    if os.environ.get(WRITING) == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text == before:
        return
    if before and tolerance and near(json.loads(before), json.loads(text), tolerance):
        return
    lines = list(
        difflib.unified_diff(
            before.splitlines(),
            text.splitlines(),
            f"accepted/{name}",
            f"now/{name}",
            n=2,
            lineterm="",
        )
    )
    shown = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} more lines of difference")
    pytest.fail(
        "\n".join([*shown, "", f"If this change is meant, accept it: {ACCEPT}"]), pytrace=False
    )


def near(before: Any, now: Any, tolerance: float) -> bool:
    """Tell whether two values of JSON are the same up to the last digits of their numbers."""
    if isinstance(before, float) and isinstance(now, int | float):
        return math.isclose(before, now, rel_tol=tolerance, abs_tol=tolerance)
    if type(before) is not type(now):
        return False
    if isinstance(before, dict):
        return before.keys() == now.keys() and all(
            near(before[key], now[key], tolerance) for key in before
        )
    if isinstance(before, list):
        pairs = zip(before, now, strict=False)
        return len(before) == len(now) and all(near(one, other, tolerance) for one, other in pairs)
    return bool(before == now)


def without(folder: str, names: Collection[str]) -> list[str]:
    """List the golden files below a folder without a name here; when writing, remove them."""
    paths = [path for path in sorted((ROOT / folder).glob("*.*")) if path.stem not in names]
    if os.environ.get(WRITING) == "write":
        for path in paths:
            path.unlink()
        return []
    return [path.name for path in paths]
