"""A commit to be made, as the stream by which git makes it in one step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be made.

    `files` are pairs of path and content, or None for a file to remove; `merged` is a second
    parent.
    """

    files: tuple[tuple[str, bytes | None], ...]
    message: str
    merged: str = ""

    def stream(self, branch: str, head: str, who: str) -> bytes:
        """Return the stream for git fast-import; cut short anywhere, it makes nothing."""
        lines = [
            b"feature done",
            f"commit {branch}".encode(),
            b"mark :1",
            f"author {who}".encode(),
            f"committer {who}".encode(),
        ]
        lines += _data(self.message.encode())
        if head:
            lines.append(f"from {head}".encode())
        if self.merged:
            lines.append(f"merge {self.merged}".encode())
        for path, content in self.files:
            if content is None:
                lines.append(b"D " + _quoted(path))
            else:
                lines.append(b"M 100644 inline " + _quoted(path))
                lines += _data(content)
        lines += [b"get-mark :1", b"done", b""]
        return b"\n".join(lines)


def _data(content: bytes) -> tuple[bytes, bytes]:
    return f"data {len(content)}".encode(), content


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.encode()
