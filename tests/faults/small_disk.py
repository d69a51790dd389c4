"""A disk that is full and a project that is read-only, on a file system of its own."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from tests.faults.ledger import MEMORIES, Toll, paragraph
from tests.faults.servers import Line, RefusedError, Yard

# A server in a namespace of its own sees this folder as a small file system; others see it through
# /proc.
MOUNTED = 'mount -t tmpfs -o size="$1" none "$2" && mkdir "$2/docs" "$2/.memories" && shift 2 && exec "$@"'
SIZE = "3m"


def fill_and_lock(yard: Yard, rounds: int = 3) -> Toll:
    """Fill the disk under a server, free it, make it read-only, and writable again."""
    toll = Toll()
    root = yard.work / "hard"
    root.mkdir()
    within = [
        "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "sh", SIZE,
        str(root),
    ]  # fmt: skip
    with yard.start(root, within=within) as line:
        line.greet()
        _write(line, 0, toll)
        inside = Path(f"/proc/{line.pid}/root{root}")
        for turn in range(rounds):
            _full(line, inside, turn, toll)
            _read_only(line, inside, root, turn, toll)
        memories = inside / MEMORIES
        left = [place.name for place in memories.rglob("*.ragdocs-tmp")]
        if left:
            toll.complain("torn", f"left behind: {left}")
        line.close()
    return toll


def _full(line: Line, inside: Path, turn: int, toll: Toll) -> None:
    filler = inside / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as hole:
        while hole.write(b"x" * 4096):
            pass
    toll.counts["disk full"] += 1
    _live_on(line, 2 * turn + 1, toll, ("space", "Free some space"))
    filler.unlink()
    _write(line, 2 * turn + 1, toll)


def _read_only(line: Line, inside: Path, root: Path, turn: int, toll: Toll) -> None:
    _remount(line, root, "ro")
    toll.counts["read-only"] += 1
    _live_on(line, 2 * turn + 2, toll, ("ead-only", "permissions"))
    _remount(line, root, "rw")
    _write(line, 2 * turn + 2, toll)
    assert (inside / MEMORIES / f"{2 * turn + 2}.md").exists()


def _live_on(line: Line, number: int, toll: Toll, reasons: tuple[str, ...]) -> None:
    """Search and read as before, be told why nothing is written, find every file as it was."""
    hits = line.call("search_memories", query=f"entry {number - 1}", limit=1)["result"]
    texts = line.call("read_memory", filename=f"{number - 1}.md")["content"]
    found = bool(hits) and paragraph(number - 1, 12) in texts
    toll.counts["searched and read"] += found
    if not found:
        toll.complain("silent", f"searching and reading ended: {hits}")
    for tool, arguments in _attempts(number):
        toll.counts["writes refused"] += 1
        try:
            line.call(tool, **arguments)
        except RefusedError as error:
            if not any(reason in str(error) for reason in reasons):
                toll.complain("silent", f"{tool} says only: {error}")
        else:
            toll.complain("silent", f"{tool} was acknowledged")
    if line.call("read_memory", filename=f"{number - 1}.md")["content"] != texts:
        toll.complain("torn", f"{number - 1}.md changed")


def _attempts(number: int) -> list[tuple[str, dict[str, object]]]:
    text = paragraph(number + 1000, 600)
    before = f"{number - 1}.md"
    return [
        ("create_memory", {"filename": f"{number}.md", "content": text, "tags": []}),
        ("update_memory", {"filename": before, "content": text}),
        ("append_memory", {"filename": before, "content": text}),
        (
            "merge_memories",
            {"source_files": [before], "target_file": "merged.md", "summary_content": text},
        ),
    ]


def _write(line: Line, number: int, toll: Toll) -> None:
    try:
        line.call("create_memory", filename=f"{number}.md", content=paragraph(number, 12), tags=[])
        toll.counts["written afterwards"] += 1
    except RefusedError as error:
        toll.complain("silent", f"writing did not come back: {error}")


def _remount(line: Line, root: Path, mode: str) -> None:
    enter = ["nsenter", "--target", str(line.pid), "--user", "--mount", "--preserve-credentials"]
    subprocess.run([*enter, "mount", "-o", f"remount,{mode}", str(root)], check=True)
