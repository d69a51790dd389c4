"""Thousands of files that change at once, and a kernel that gives out no file events."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.faults.ledger import Toll, difference
from tests.faults.nursery import ENCODED
from tests.faults.servers import PATIENCE, Line, RefusedError, Yard

# So many files take a while to index for the first time on a busy machine.
LONG = 10 * PATIENCE
# Edits are looked for every two seconds, or at once; this is many times that.
SOON = 20.0
FOLDERS = 20
# Of these, files that really change after the storm.
TENTH = 10


def shake_files(yard: Yard, files: int) -> Toll:
    """Touch, rewrite, remove and restore a tree under a server, then really change a tenth."""
    toll = Toll()
    root = yard.project("storm")
    places = [root / f"docs/f{n % FOLDERS}/{n}.md" for n in range(files)]
    for number, place in enumerate(places):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_page(number))
    counted = yard.work / "encoded.txt"
    counted.touch()
    with yard.start(root, environment={ENCODED: str(counted)}) as line:
        line.greet()
        _converge(line, files)
        encoded = _encoded(counted)
        toll.counts["encoded at first"] = encoded
        for shake in (_touch, _save_again, _check_out, _move_away):
            shake(root, places, toll)
            _converge(line, files)
            toll.counts["events survived"] += files
        toll.counts["unchanged texts encoded again"] = _encoded(counted) - encoded
        _change_a_tenth(places, toll)
        _converge(line, files)
        toll.counts["changed texts encoded"] = _encoded(counted) - encoded
        for number in range(0, files, max(1, files // 50)):
            _find(line, number, toll)
        line.close()
    found = difference(root)
    if found:
        toll.complain("verify differences", found)
    return toll


def _page(number: int, edition: str = "first") -> str:
    return f"# Page {number}\n\nthe {edition} edition speaks of subject{number}x\n"


def _touch(_: Path, places: list[Path], __: Toll) -> None:
    for place in places:
        os.utime(place)


def _save_again(_: Path, places: list[Path], __: Toll) -> None:
    """Save everything by rename with the text it had, as a formatter that finds nothing does."""
    for place in places:
        temporary = place.with_suffix(".new")
        temporary.write_bytes(place.read_bytes())
        temporary.replace(place)


def _check_out(root: Path, places: list[Path], _: Toll) -> None:
    """Remove everything and write it again, as a checkout of another branch and back does."""
    texts = [place.read_bytes() for place in places]
    shutil.rmtree(root / "docs")
    for place, text in zip(places, texts, strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)


def _move_away(root: Path, _: list[Path], toll: Toll) -> None:
    """Take the folder away for so long that its absence is believed, then bring it back."""
    away = root / "away"
    (root / "docs").rename(away)
    time.sleep(1.5)
    away.rename(root / "docs")
    toll.counts["absences"] += 1


def _change_a_tenth(places: list[Path], toll: Toll) -> None:
    for number in range(0, len(places), TENTH):
        places[number].write_text(_page(number, "second"))
        toll.counts["really changed"] += 1


def _converge(line: Line, files: int) -> None:
    """Wait until a server has indexed exactly what is there, vectors included."""

    def settled() -> bool:
        state = next(lane for lane in line.call("index_status")["lanes"] if lane["lane"] == "docs")
        return (state["documents"], state["vectors"], state["notes"]) == (
            files,
            state["chunks"],
            [],
        )

    until(settled, LONG, "the index is what the files are")


def until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Look until something is so, or fail with what was waited for."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never: {what}")
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def _encoded(counted: Path) -> int:
    return sum(map(int, counted.read_text().split()))


def _find(line: Line, number: int, toll: Toll) -> None:
    edition = "second" if number % TENTH == 0 else "first"
    answer = line.call("search_docs", query=f"{edition} edition subject{number}x", limit=1)
    toll.counts["searched"] += 1
    hits = answer["result"]
    if (
        not hits
        or not hits[0]["path"].endswith(f"/{number}.md")
        or edition not in hits[0]["content"]
    ):
        toll.complain("missed", f"page {number}: {str(hits)[:200]}")


# In a namespace of its own a process may lower what the kernel gives to its user.
LIMITED = """
echo "$1" > /proc/sys/user/max_inotify_watches && echo "$2" > /proc/sys/user/max_inotify_instances
shift 2 && exec "$@"
"""
# Watches and instances; the last is enough at the start, and not for the folders that come later.
LIMITS = {
    "few watches": (3, 128),
    "no watches": (0, 128),
    "no instances": (10_000, 0),
    "one instance": (10_000, 1),
    "used up later": (40, 128),
}
FOLDERS_AT_FIRST, FOLDERS_LATER = 8, 40


def low_limits(yard: Yard, limits: Mapping[str, tuple[int, int]]) -> Toll:
    """Serve a project where the kernel refuses file events; every edit is found."""
    toll = Toll()
    for name, (watches, instances) in limits.items():
        root = yard.project(f"limit-{name.replace(' ', '-')}")
        for folder in range(FOLDERS_AT_FIRST):
            _note(root, folder, "early")
        numbers = [str(watches), str(instances)]
        within = ["unshare", "--user", "--map-root-user", "sh", "-c", LIMITED, "sh", *numbers]
        with yard.start(root, within=within) as line:
            line.greet().call("index_status")
            toll.counts["limits"] += 1
            for word in ("later", "again"):
                for folder in range(FOLDERS_LATER):
                    _note(root, folder, word)
                for folder in range(FOLDERS_LATER):
                    _wait_for(line, "search_docs", f"{word}{folder}x", toll)
                    _wait_for(line, "search_memories", f"{word}{folder}x", toll)
            _tells(line, name, toll)
            line.close()
    return toll


def _note(root: Path, folder: int, word: str) -> None:
    for place in (root / f"docs/f{folder}/a.md", root / f".memories/f{folder}/a.md"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# Note\n\nan edit with {word}{folder}x\n")


def _tells(line: Line, name: str, toll: Toll) -> None:
    state = line.call("index_status")["watcher"]
    # The log is wrapped to the width of a terminal.
    said = " ".join(line.log.read_text().split())
    if state != "polling" or "looking at the files every two seconds" not in said:
        toll.complain("silent", f"{name}: status says {state}, the log {said[-200:]}")


def _wait_for(line: Line, tool: str, word: str, toll: Toll) -> None:
    toll.counts["edits"] += 1
    try:
        until(lambda: word in str(line.call(tool, query=word, limit=1)["result"]), SOON, word)
    except (TimeoutError, RefusedError) as error:
        toll.complain("missed", f"{word}: {error}")


def namespaces_work() -> bool:
    """Tell whether this kernel lets us make such a namespace."""
    program = shutil.which("unshare")
    command = [program or "", "--user", "--map-root-user", "--mount", "true"]
    return (
        program is not None
        and subprocess.run(command, check=False, capture_output=True).returncode == 0
    )
