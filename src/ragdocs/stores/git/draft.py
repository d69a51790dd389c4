"""A commit to be made, as the stream by which git makes it in one step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be made: its files as (path, content or nothing), its message.

    And what else it descends from.
    """

    files: tuple[tuple[str, bytes | None], ...]
    message: str
    merged: str = ""

    def stream(self, branch: str, head: str, who: str) -> bytes:
        """Return the stream for git fast-import; cut short anywhere, it makes nothing."""
        lines = [b"feature done", f"commit {branch}".encode(), b"mark :1"]
        lines += [
            f"author {who}".encode(),
            f"committer {who}".encode(),
            *_data(self.message.encode()),
        ]
        lines += [f"from {head}".encode()] if head else []
        lines += [f"merge {self.merged}".encode()] if self.merged else []
        for path, data in self.files:
            lines += (
                [b"D " + _quoted(path)]
                if data is None
                else [b"M 100644 inline " + _quoted(path), *_data(data)]
            )
        return b"\n".join([*lines, b"get-mark :1", b"done", b""])


def _data(content: bytes) -> Iterator[bytes]:
    yield f"data {len(content)}".encode()
    yield content


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.encode()
