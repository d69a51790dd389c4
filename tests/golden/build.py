"""Bring the fixture project to life by weeks of work with the program itself."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

from tests.golden import rims
from tests.golden.still import START
from tests.golden.world import World, git, write_files

# On each line hours before the start and a command, with \\n for the end of a line.
WORK = Path(__file__).parent / "fixture" / "work.txt"
ENTRIES: tuple[dict[str, object], ...] = (
    {
        "content": "Ada prefers dark mode",
        "entryType": "preference",
        "importance": 7,
        "tags": ["ui"],
    },
    {
        "content": "The harbour master calls on Mondays",
        "entryType": "event",
        "context": "weekly call",
        "source": "chat",
    },
    {
        "content": "Renew the certificate",
        "entryType": "task",
        "expiresAt": "2025-05-20T00:00:00+00:00",
    },
    {
        "content": "Berth 12 is closed for repairs",
        "confidence": 0.6,
        "expiresAt": "2025-05-13T00:00:00+00:00",
    },
)


def build(base: Path, world: World | None = None) -> World:
    """Make the fixture project below a folder and save it."""
    world = world or World(base)
    write_files(world)
    with world.entered("build"):
        world.move_in()
        for hours, words in work():
            world.clock.put(START - timedelta(hours=hours))
            ended = rims.command(words)
            assert ended.code == 0, ended.err
        add_entries(world)
        tell_elsewhere(world)
        disagree_with_teammate(world)
        world.clock.put(START - timedelta(hours=1))
        assert rims.command(["index"]).code == 0
    world.save()
    return world


def work() -> list[tuple[int, list[str]]]:
    """Return the commands of the past weeks, the earliest first."""
    commands = []
    for line in WORK.read_text(encoding="utf-8").splitlines():
        hours, _, command = line.partition(" ")
        commands.append((int(hours), shlex.split(command.replace("\\n", "\n"))))
    return sorted(commands, reverse=True)


def add_entries(world: World) -> None:
    """Add entries over MCP, for which there is no command."""
    world.clock.put(START - timedelta(days=3))
    with rims.connect(world.project, {}) as connection:
        for entry in ENTRIES:
            answer = connection.call("memory_add", entry)
            assert not answer.failed, answer.text
            world.clock.advance(60)


def disagree_with_teammate(world: World) -> None:
    """Share the journal, and let a teammate and the user change the same section after that."""
    git(world.project / "journal-data", "remote", "add", "origin", str(world.remote))
    world.clock.put(START - timedelta(hours=4))
    assert rims.command(["journal", "sync"]).code == 0
    git(world.teammate, "clone", "-q", "--template=", str(world.remote), "journal-data")
    theirs = ["--project", str(world.teammate)]
    overview = "# API client\n\nThe client retries {} times with jitter.\n"
    for section, words in (("ops", ()), ("project/api", ("--overview", overview.format("four")))):
        world.clock.advance(60)
        ended = rims.command(
            ["journal", "write", section, "--entry", "Seen by Ben.", *words, *theirs]
        )
        assert ended.code == 0, ended.err
    assert rims.command(["journal", "sync", *theirs]).code == 0
    world.clock.advance(60)
    mine = [
        "journal", "write", "project/api", "--entry", "Five it is.", "--overview",
        overview.format("five"),
    ]  # fmt: skip
    assert rims.command(mine).code == 0


def tell_elsewhere(world: World) -> None:
    """Remember something in the other project, which makes it known to this user's projects."""
    world.clock.put(START - timedelta(hours=20))
    words = ["remember", "The lamp was cleaned; the harbour sees it again", "--tag", "ops"]
    assert rims.command([*words, "--project", str(world.other)]).code == 0
    assert rims.command(["index", "--project", str(world.other)]).code == 0
