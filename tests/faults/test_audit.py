"""What the kernel saw of a server: at every answer nothing was left unsynced."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.windows import HELLO

from .window import SETTINGS

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None,
    reason="strace is not installed; the recorded calls of test_calls.py prove the same",
)

OPENING = {"open", "openat", "openat2", "creat"}
WRITING = {
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "truncate", "fallocate",
    "sendfile",
}  # fmt: skip
WRITING |= {"copy_file_range", "splice"}
SYNCING = {"fsync", "fdatasync"}
NAMING = {
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "mkdir",
    "mkdirat",
}  # fmt: skip
REMOVING = {"unlink", "unlinkat", "rmdir"}
DRESSING = {"chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "utimensat"}
HANDLED = WRITING | SYNCING | {"fchmod", "fchown"}
TRACED = OPENING | WRITING | SYNCING | NAMING | REMOVING | DRESSING
# Each is behind a function of `os` at which the tests of every call strike.
STRUCK = {
    "openat", "write", "fsync", "rename", "mkdir", "unlink", "unlinkat", "rmdir", "fchmod",
    "ftruncate",
}  # fmt: skip
STRUCK |= {"renameat", "mkdirat"}

LINE = re.compile(r"(?P<pid>\d+) +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
CUT = re.compile(r"(?P<pid>\d+) +(?P<head>.*) <unfinished \.\.\.>$")
REST = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<tail>.*)$")
HANDLE = re.compile(r"\d+<([^>]*)>")
NAME = re.compile(r'(?:\w+<([^>]*)>, )?"([^"]*)"')


@dataclass
class Audit:
    """The files below some folders in a trace, and what of them is not synced."""

    folders: Sequence[str]
    answers: str
    unsynced: set[str] = field(default_factory=set)
    unnamed: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    synced: int = 0
    acknowledged: int = 0
    published: int = 0
    lost: list[str] = field(default_factory=list)

    def follow(self, trace: Path) -> Audit:
        for call, arguments in completed(trace):
            handle = HANDLE.match(arguments) if call in HANDLED else None
            places = (
                [handle[1]]
                if handle
                else [self._resolved(*found) for found in NAME.findall(arguments)]
            )
            if call in WRITING and places and places[0] == self.answers:
                self.acknowledged += 1
                self.lost += [
                    f"answer {self.acknowledged}: {path}"
                    for path in self.pending()
                    if "/indices/" not in path
                ]
            mine = [place for place in places if place.startswith(tuple(self.folders))]
            if mine:
                self._record(call, mine)
        self.lost += [f"end: {path}" for path in self.pending()]
        return self

    def _resolved(self, base: str, name: str) -> str:
        return os.path.normpath(os.path.join(self.folders[0], base, name))  # noqa: PTH118

    def pending(self) -> set[str]:
        # An unfinished write of another thread is not there under a name that anybody reads.
        paths = (self.unsynced | self.unnamed).difference(self.folders)
        return {path for path in paths if not path.endswith(".ragdocs-tmp")}

    def _record(self, call: str, places: list[str]) -> None:
        path = places[-1]
        if call in OPENING and path not in self.known and not Path(path).is_dir():
            self.known.add(path)
            self.unnamed.add(path)
        elif call in WRITING:
            self.unsynced.add(path)
        elif call in SYNCING:
            self.synced += 1
            self.unsynced.discard(path)
            self.unnamed -= {other for other in self.unnamed if os.path.dirname(other) == path}  # noqa: PTH120
        elif call in NAMING:
            self.known.add(path)
            self.unnamed.add(path)
            if call.startswith("rename"):
                self._rename(places[0], path)
        elif call in REMOVING:
            self._forget(path)
        self.calls.add(call)

    def _rename(self, source: str, target: str) -> None:
        moved = source in self.unsynced
        self._forget(source)
        if moved:
            self.unsynced.add(target)
        if os.path.basename(target) == "current":  # noqa: PTH119
            # From here on a start may read the generation: all of it must be on the disk.
            self.published += 1
            self.lost += [f"published: {path}" for path in self.pending() - {target}]

    def _forget(self, path: str) -> None:
        for paths in (self.unsynced, self.unnamed, self.known):
            paths.discard(path)


def completed(trace: Path) -> Iterator[tuple[str, str]]:
    """Yield the calls that changed something, with arguments, in the order of their ends."""
    begun: dict[str, str] = {}
    for line in trace.read_text(errors="replace").splitlines():
        text = line
        if cut := CUT.match(line):
            begun[cut["pid"]] = cut["head"]
            continue
        if rest := REST.match(line):
            text = f"{rest['pid']} {begun.pop(rest['pid'])}{rest['tail']}"
        found = LINE.match(text)
        if found and int(found["result"]) >= 0:
            creates = any(flag in found["arguments"] for flag in ("O_CREAT", "O_TRUNC"))
            if creates or found["call"] not in OPENING:
                yield found["call"], found["arguments"]


def traced(command: list[str], trace: Path, **options: Any) -> subprocess.Popen[bytes]:
    strace = [
        "strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "0", "-o", str(trace), "-e",
        "signal=none",
    ]  # fmt: skip
    kinds = ",".join(f"?{name}" for name in sorted(TRACED))
    return subprocess.Popen(
        [*strace, "-e", f"trace={kinds}", *command], stdout=subprocess.PIPE, **options
    )


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("create_memory", {"filename": "a", "content": "first", "tags": []}),
    ("create_memory", {"filename": "folder/b", "content": "second", "tags": ["t"]}),
    ("update_memory", {"filename": "a", "content": "changed"}),
    ("append_memory", {"filename": "a", "content": "and more"}),
    (
        "merge_memories",
        {"source_files": ["a", "folder/b"], "target_file": "all", "summary_content": "both"},
    ),
    ("create_memory", {"filename": "c", "content": "third", "tags": []}),
    ("delete_memory", {"filename": "c"}),
]


def test_every_answer_of_a_server_is_on_the_disk_before_it_is_given(
    project: Project, tmp_path: Path, own_directories: Path, tally: Tally
) -> None:
    project.doc("a.md", "# A\n\nWords to be indexed.\n")
    command = [
        sys.executable, "-P", "-m", "ragdocs", "mcp", "--project", str(project.root), *SETTINGS,
    ]  # fmt: skip
    with traced(
        command, tmp_path / "trace", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin
        assert server.stdout
        pipe = f"pipe:[{os.fstat(server.stdout.fileno()).st_ino}]"
        requests = [("initialize", HELLO)]
        requests += [
            ("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in CALLS
        ]
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != number:
                pass
            assert not answer["result"].get("isError"), answer
        server.stdin.close()
        assert server.stdout.read() == b""
    audit = Audit([str(project.root), str(own_directories / "cache")], pipe).follow(
        tmp_path / "trace"
    )
    alive = [path for path in audit.known if Path(path).exists()]
    tally(
        "R9 durability by strace",
        acknowledged=len(CALLS),
        snapshots=audit.published,
        alive=len(alive),
        syncs=audit.synced,
        unsynced=len(audit.lost),
    )
    assert audit.lost == []
    assert audit.acknowledged > len(CALLS)
    assert audit.published >= 2
    assert len(alive) > 30
    assert audit.calls <= STRUCK


@pytest.mark.parametrize(
    ("program", "lost"),
    [
        ("open('a', 'w').write('x')", {"a"}),
        ("f = open('a', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno())", {"a"}),
        ("open('a', 'w').write('x'); os.replace('a', 'b'); os.fsync(os.open('.', 0))", {"b"}),
        ("os.mkdir('d'); os.fsync(os.open('d', 0))", {"d"}),
        (
            "f = open('a', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno()); os.fsync(os.open('.', 0))",
            set(),
        ),
        ("open('a', 'w').write('x'); os.unlink('a')", set()),
    ],
)
def test_the_audit_notices_what_was_not_synced(
    tmp_path: Path, program: str, lost: set[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-S", "-c", f"import os; {program}; print()"]
    with traced(command, tmp_path / "trace", cwd=folder) as process:
        assert process.stdout
        pipe = f"pipe:[{os.fstat(process.stdout.fileno()).st_ino}]"
        process.stdout.read()
    audit = Audit([str(folder)], pipe).follow(tmp_path / "trace")
    assert audit.acknowledged == 1
    assert {line.rpartition("/")[2] for line in audit.lost} == lost
