"""Bring the fixture project to life.

Weeks of work by people and agents, done with the program itself.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.golden import rims
from tests.golden.still import START
from tests.golden.world import World, git, write_files

# (hours before the start, words of the command)
WORK: tuple[tuple[float, tuple[str, ...]], ...] = (
    (
        480,
        (
            *("journal", "write", "project/api", "--work-context", "designing the client"),
            *(
                "--entry",
                "Retries need a jitter, because all clients come back at once after an outage.",
            ),
            *("--overview", "# API client\n\nThe client retries with jitter.\n"),
        ),
    ),
    (
        240,
        (
            *("journal", "write", "project/api", "--work-context", "debugging the client"),
            *(
                "--summary",
                "limit of three",
                "--entry",
                "Three attempts are enough; a fourth never helped in the logs.",
            ),
            *("--overview", "# API client\n\nThe client retries three times with jitter.\n"),
        ),
    ),
    (
        200,
        (
            "journal",
            "write",
            "project/web",
            "--entry",
            "The calendar counts weeks as ISO 8601 does.",
        ),
    ),
    (
        100,
        (
            "journal",
            "write",
            "ops",
            "--work-context",
            "release",
            "--entry",
            "Deploy before noon, never on Friday.",
        ),
    ),
    (
        5,
        (
            "journal",
            "write",
            "project/api",
            "--work-context",
            "debugging the client",
            "--entry",
            "Timeouts are 5 s now.",
        ),
    ),
    (
        192,
        (
            "remember",
            "Chose sessions over JWT: they can be revoked, see [[src/auth.py]]",
            "--tag",
            "auth",
        ),
    ),
    (
        26,
        (
            "remember",
            "The berth calendar was wrong in week 53; fixed in [[web/app.ts]]",
            "--tag",
            "calendar",
        ),
    ),
    (
        2,
        (
            "remember",
            "# Mooring fees\n\nFees are paid in advance.\n\nNobody wants invoices.",
            "--tag",
            "billing",
        ),
    ),
    (
        150,
        (
            "repo",
            "convention",
            "Use make for everything",
            "--content",
            "make test, make lint.",
            "--tag",
            "build",
        ),
    ),
    (
        140,
        (
            *(
                "repo",
                "decision",
                "Sessions instead of JWT",
                "--content",
                "Sessions can be revoked at once.",
            ),
            *("--path", "src/auth.py", "--path", "docs/auth.md"),
        ),
    ),
    (
        130,
        ("repo", "note", "--content", "The integration tests need Redis 7.", "--source", "agent"),
    ),
    (
        120,
        (
            "repo",
            "summary",
            "--run",
            "release-7",
            "--step",
            "1-plan",
            "--content",
            "Planned the release.",
        ),
    ),
    (
        110,
        (
            "repo",
            "summary",
            "--run",
            "release-7",
            "--step",
            "2-test",
            "--content",
            "All tests pass.",
            "--tag",
            "ci",
        ),
    ),
    (
        90,
        (
            "memory",
            "create",
            "wrong.md",
            "--content",
            "A memory that was a mistake about dredging.",
            "--tag",
            "x",
        ),
    ),
    (80, ("memory", "append", "auth-plan.md", "--content", "- The login page is done")),
    (70, ("memory", "edit", "auth-plan.md", "--field", "status=active", "--field", "owner=ada")),
    (60, ("memory", "delete", "wrong.md")),
)
ENTRIES = (
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


def build(base: Path) -> World:
    """Make the fixture project below a folder and save it."""
    world = World(base)
    write_files(world)
    with world.entered("build"):
        for hours, words in sorted(WORK, key=lambda work: -work[0]):
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
