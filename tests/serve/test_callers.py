"""Two windows with different environments on one server: each is served by its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.plain_git import plain_git
from tests.serve.windows import PATIENCE, Window, servers, until

from ragdocs.caller import Caller, begin
from ragdocs.serve.shared import callers, shim
from ragdocs.system import local_socket
from ragdocs.text import times
from ragdocs.text.redaction.redact import CallersRedactor, Redactor

if TYPE_CHECKING:
    from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("quick_servers")

# No form of token that the redactor would know without the variable.
FIRST, SECOND = "violet-harbour-71-lantern", "copper-meadow-38-thistle"
CONFIG = """\
[memory]
enabled = true
[journal]
enabled = true
[server]
toolsets = ["docs", "memory", "recall", "entries", "repo", "journal"]
"""
# So far apart that they are never on the same day.
EAST, WEST = "Pacific/Kiritimati", "Etc/GMT+12"


@pytest.fixture
def shared(served: Project) -> Project:
    served.write("config.toml", CONFIG)
    plain_git(served.root, "init", "-b", "topic")
    return served


def write_everywhere(window: Window, name: str, text: str) -> None:
    """Call every kind of tool that keeps a text."""
    calls: list[tuple[str, dict[str, Any]]] = [
        (
            "create_memory",
            {"filename": name, "content": f"# A\n\nIt says {text} here.", "tags": []},
        ),
        ("append_memory", {"filename": name, "content": f"And again {text}."}),
        ("remember", {"content": f"Found {text} in the settings."}),
        (
            "memory_add",
            {"content": f"The deployment uses {text}.", "context": text, "source": text},
        ),
        ("append_summary", {"run_id": "r", "step_id": name, "summary": f"Used {text}."}),
        ("upsert_note", {"content": f"The value is {text}."}),
        ("journal_read", {"id": name}),
        ("journal_write", {"path": name, "entry": f"Tried {text}.", "overview": f"# About {text}"}),
        ("search_memories", {"query": text}),
        ("memory_search", {"query": text}),
    ]
    for tool, arguments in calls:
        result = window.call(tool, **arguments)
        assert not result.get("isError"), result


def files_with(text: str, *folders: Path) -> list[str]:
    """List the files below folders that hold a text in any form that is likely."""
    forms = (text.encode(), b64encode(text.encode()).rstrip(b"="), text.encode("utf-16-le"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    # What git keeps is compressed.
    repositories = [
        path.parent for path in files if path.name == "HEAD" and (path.parent / "objects").is_dir()
    ]
    texts = {repository: objects(repository) for repository in repositories}
    texts |= {path: path.read_bytes() for path in files}
    return [str(path) for path, kept in texts.items() if any(form in kept for form in forms)]


def objects(repository: Path) -> bytes:
    command = ["git", f"--git-dir={repository}", "cat-file", "--batch", "--batch-all-objects"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def is_saved(folder: Path, place: str, since: float) -> bool:
    """Tell whether an index in a folder of this name was published since a moment."""
    pointers = folder.rglob(f"{place}/current")
    return any(pointer.stat().st_mtime >= since for pointer in pointers)


def test_secrets_of_each_window_are_kept_out_of_what_it_writes(
    shared: Project, runtime: Path, own_directories: Path
) -> None:
    first = Window(shared, FIRST_API_TOKEN=FIRST).greet()
    second = Window(shared, SECOND_API_TOKEN=SECOND).greet()
    write_everywhere(first, "one", FIRST)
    write_everywhere(second, "two", SECOND)
    error = second.refuse("read_memory", filename=f"missing-{SECOND}")
    assert SECOND not in error
    assert "[redacted:env:SECOND_API_TOKEN]" in (shared.root / ".memories/two.md").read_text()
    written_at = time.time()
    # The indexes of memories and of the journal are saved one after the other.
    for folder, place in ((shared.root, ".memories/indices"), (own_directories, "journal")):
        until(lambda f=folder, p=place: is_saved(f, p, written_at))  # type: ignore[misc]
    for secret in (FIRST, SECOND):
        assert files_with(secret, shared.root, runtime, own_directories) == []
    # The server keeps out the secrets of whoever started it, too; those of the second window are
    # nothing to the first.
    first.call("create_memory", filename="both", content=f"{FIRST} and {SECOND}", tags=[])
    assert (
        "[redacted:env:FIRST_API_TOKEN] and copper"
        in (shared.root / ".memories/both.md").read_text()
    )
    assert len(servers(runtime)) == 1
    assert first.close() == second.close() == 0


def test_each_window_has_its_branch_scope(shared: Project, runtime: Path) -> None:
    first = Window(shared).greet()
    second = Window(shared, MEMORY_BRANCH_SCOPE="sharedRepo").greet()
    for window, name in ((first, "mine"), (second, "everybody's")):
        window.call("upsert_note", content=name)
    folders = {path.parent.parent.name for path in (shared.root / ".memories/repo").rglob("*.md")}
    assert folders == {"topic", "all-branches"}
    assert "everybody's" not in str(first.call("get_repo_memory")["structuredContent"])
    assert "everybody's" in str(second.call("get_repo_memory")["structuredContent"])
    assert len(servers(runtime)) == 1
    assert first.close() == second.close() == 0


def test_the_scope_of_the_first_window_is_not_that_of_all(shared: Project, runtime: Path) -> None:
    first = Window(shared, MEMORY_BRANCH_SCOPE="sharedRepo").greet()
    second = Window(shared).greet()
    second.call("upsert_note", content="mine")
    first.call("upsert_note", content="everybody's")
    assert (shared.root / ".memories/repo/topic").is_dir()
    assert (shared.root / ".memories/repo/all-branches").is_dir()
    assert len(servers(runtime)) == 1
    assert first.close() == second.close() == 0


def test_a_scope_that_ragdocs_was_given_has_the_last_word(
    shared: Project, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGDOCS_MEMORY_BRANCH_SCOPE", "perBranch")
    window = Window(shared, MEMORY_BRANCH_SCOPE="sharedRepo").greet()
    window.call("upsert_note", content="mine")
    assert not (shared.root / ".memories/repo/all-branches").exists()
    assert window.close() == 0


def test_a_window_with_a_wrong_scope_says_so(shared: Project, runtime: Path) -> None:
    window = Window(shared, MEMORY_BRANCH_SCOPE="everything").greet()
    assert "MEMORY_BRANCH_SCOPE" in window.refuse("index_status")
    assert window.close() == 0


def test_each_window_has_its_time_zone(shared: Project, runtime: Path) -> None:
    east, west = Window(shared, TZ=EAST).greet(), Window(shared, TZ=WEST).greet()
    windows = (
        (east, "in the east", timedelta(hours=14)),
        (west, "in the west", timedelta(hours=-12)),
    )
    for window, text, offset in windows:
        before = datetime.now(UTC) + offset
        path = window.call("remember", content=f"Written {text}.")["structuredContent"]["path"]
        window.call("memory_add", content=f"Noted {text}.")
        after = datetime.now(UTC) + offset
        assert Path(path).parent.name in {f"{before:%Y-%m-%d}", f"{after:%Y-%m-%d}"}
        logs = [
            log for log in (shared.root / ".memories/.daily").iterdir() if text in log.read_text()
        ]
        assert [log.stem for log in logs] in ([f"{before:%Y-%m-%d}"], [f"{after:%Y-%m-%d}"])
        window.call("create_memory", filename=text.replace(" ", "-"), content="x", tags=[])
        window.call("delete_memory", filename=text.replace(" ", "-"))
        assert any(
            f"{before:%Y%m%d}" in kept.name for kept in (shared.root / ".memories/.trash").iterdir()
        )
    assert len(servers(runtime)) == 1
    assert east.close() == west.close() == 0


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        (EAST, datetime(2026, 11, 16, 10, tzinfo=UTC)),
        (WEST, datetime(2026, 11, 15, 12, tzinfo=UTC)),
    ],
)
def test_today_begins_on_the_clock_of_the_caller(zone: str, day: datetime) -> None:
    clock = callers.find_zone(zone)
    morning = datetime(2026, 11, 16, 11, tzinfo=UTC).astimezone(clock)
    assert times.start("today", morning) == day
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC).astimezone(clock)
    assert times.start("2026-11-16T11:00Z", noon).hour == 11


def test_hours_are_counted_over_a_change_of_the_clock() -> None:
    now = datetime(2026, 10, 25, 6, tzinfo=UTC)
    local = now.astimezone(callers.find_zone("Europe/Berlin"))
    assert times.start("12h", local) == now - timedelta(hours=12)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Europe/Berlin",
            ":America/New_York",
            "",
            "UTC",
            "EST5EDT",
            "CET-1CEST,M3.5.0,M10.5.0/3",
            "<+03>-3",
        ),
        *(
            "Foo/Bar",
            "../../etc/passwd",
            "/usr/share/zoneinfo/Asia/Tokyo",
            "/etc",
            "/nowhere",
            "x\udc80",
            "Europe",
        ),
    ],
)
def test_a_time_zone_means_what_it_means_to_the_system(text: str) -> None:
    program = (
        "from datetime import datetime, UTC\n"
        "print(*(datetime(2026, month, 5, 12, tzinfo=UTC).astimezone().isoformat() for month in "
        "(1, 7)))"
    )
    environment = {**os.environ, "TZ": text}
    system = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    moments = [datetime(2026, month, 5, 12, tzinfo=UTC) for month in (1, 7)]
    zone = callers.find_zone(text)
    assert [
        moment.astimezone(zone).isoformat() for moment in moments
    ] == system.stdout.decode().split()


def test_what_counts_as_a_secret_is_decided_by_the_redactor() -> None:
    environ = {
        "A_TOKEN": SECOND,
        "A_PASSWORD": "short",
        "PATH": SECOND,
        "B_SECRET": "/a/path/to/it",
        "USER": "me",
    }
    caller = callers.from_environment(environ)
    assert caller.secrets == {"A_TOKEN": SECOND}
    assert caller.name == "me"
    assert SECOND not in repr(caller)
    texts = [f"a {SECOND} b", f"a {b64encode(SECOND.encode()).decode()} b", "a /a/path/to/it b"]
    begin(caller)
    redacted = [CallersRedactor({}).redact(text).text for text in texts]
    begin(Caller())
    assert redacted == [Redactor(environ).redact(text).text for text in texts]
    assert CallersRedactor({}).redact(texts[0]).text == texts[0]


NO_INTRODUCTIONS = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n',
    b"not json\n",
    b"[]\n",
    b'{"environ": 5}\n',
    b'{"environ": {"A": 5}}\n',
    b"[" * 100_000 + b"\n",
    b"\xff\n",
)


def test_a_client_that_does_not_introduce_itself_is_refused(
    shared: Project, runtime: Path, system: str
) -> None:
    window = Window(shared).greet()
    (path,) = runtime.glob(f"*{local_socket.ending()}")
    for line in NO_INTRODUCTIONS:
        with local_socket.connect(str(path), PATIENCE) as client:
            client.sendall(line)
            with client.makefile("rb") as answers:
                assert b"for the windows of ragdocs" in answers.readline(), line
                assert answers.readline() == b""
        assert "result" in window.ask("ping"), line
    assert window.close() == 0


def test_a_window_says_who_it_is_before_anything_else(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD_TOKEN", "caf\udce9-with-a-half")
    line: Any = shim.Line("nowhere", [])
    assert callers.read(line._introduction).secrets["ODD_TOKEN"] == "caf\udce9-with-a-half"
