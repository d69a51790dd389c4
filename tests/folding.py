"""A file system that ignores case and Unicode form, for this process: as those of macOS and Windows.

Every name that a call of `os` gets is looked up among the names that are there; one that is equal
but for case and form stands for the file, under the name that the file was given first.
"""

from __future__ import annotations

import functools
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Calls with one path, and with two.
ONE = ("open", "stat", "lstat", "mkdir", "unlink", "rmdir", "listdir", "scandir", "access", "utime")
TWO = ("rename", "replace", "link")


def fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def existing(path: str, root: str, listdir: Callable[[str], list[str]]) -> str:
    """Return a path as the file system spells it, as far as it exists."""
    if not path.startswith(f"{root}/"):
        return path
    folder = root
    for name in path.removeprefix(f"{root}/").split("/"):
        try:
            names = listdir(folder)
        except OSError:
            names = []
        alike = [other for other in names if fold(other) == fold(name)]
        folder = f"{folder}/{alike[0] if alike else name}"
    return folder


def install(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Make everything below a folder so, for calls that name paths: set RAGDOCS_PORTABLE too."""
    listdir = os.listdir
    top = str(root)

    def wrap(call: Callable[..., Any], paths: int) -> Callable[..., Any]:
        @functools.wraps(call)
        def folding(*arguments: Any, **options: Any) -> Any:
            words = list(arguments)
            for position in range(min(paths, len(words))):
                if isinstance(words[position], str | os.PathLike):
                    words[position] = existing(os.fspath(words[position]), top, listdir)
            return call(*words, **options)

        return folding

    for names, paths in ((ONE, 1), (TWO, 2)):
        for name in names:
            monkeypatch.setattr(os, name, wrap(getattr(os, name), paths))
