"""Many servers on one project: killed writers, readers beside them, writes that meet."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.ledger import (
    ENTRY,
    MEMORIES,
    Toll,
    difference,
    is_whole,
    paragraph,
    paragraphs,
    torn,
)
from tests.faults.servers import EndedError, HangingError, Line, RefusedError, Yard

from ragdocs.stores.files.history import version_of

# Calls of one writer before it is killed, at most.
LONGEST_LIFE = 30
# A reader that has read enough goes on more slowly until the others have written enough.
AHEAD_SECONDS = 0.01
# What a client is told when it should read again, or just try again.
TOLD = {"changed since version": "conflicts", "was locked by another process": "busy"}
# A shared memory is given up at this size, so that an answer holds it whole.
ENTRIES_IN_A_MEMORY = 60
# So short that this many fit.
WORDS_IN_AN_ENTRY = 12


@dataclass(kw_only=True)
class Crowd(Toll):
    """What many servers did to one project; every method may be called from any thread."""

    root: Path
    written: dict[str, set[int]] = field(default_factory=dict)
    doubtful: dict[str, set[int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def count(self, what: str, count: int = 1) -> None:
        with self.lock:
            self.counts[what] += count

    def complain(self, kind: str, what: str) -> None:
        with self.lock:
            super().complain(kind, what)

    def number(self) -> int:
        with self.lock:
            return next(self.numbers)

    def promise(self, name: str, number: int, *, acknowledged: bool) -> None:
        """Note that an entry of a memory was acknowledged, or that nobody knows."""
        with self.lock:
            (self.written if acknowledged else self.doubtful).setdefault(name, set()).add(number)

    def promised(self, name: str) -> set[int]:
        with self.lock:
            return set(self.written.get(name, ()))

    def settle(self) -> None:
        """Compare the memories with what was acknowledged: every entry once and whole."""
        for name, numbers in self.written.items():
            found = Counter(entries((self.root / MEMORIES / name).read_text()))
            for number in numbers - found.keys():
                self.complain("lost", f"entry {number} of {name}")
            for number, times in found.items():
                if times > 1 or number not in numbers | self.doubtful.get(name, set()):
                    self.complain("lost", f"entry {number} stands {times} times in {name}")
            damaged = torn((self.root / MEMORIES / name).read_text())
            if damaged:
                self.complain("torn", f"{name}: {damaged[:3]}")
        found_difference = difference(self.root)
        if found_difference:
            self.complain("verify differences", found_difference)


def entry(number: int) -> str:
    return paragraph(number, WORDS_IN_AN_ENTRY)


def entries(text: str) -> list[int]:
    return [
        int(found[1])
        for part in paragraphs(text)
        if is_whole(part) and (found := ENTRY.match(part))
    ]


@contextmanager
def servers(yard: Yard, root: Path, count: int) -> Iterator[list[Line]]:
    """Start so many servers on one project and shake hands with each."""
    with ExitStack() as stack:
        lines = [stack.enter_context(yard.start(root)) for _ in range(count)]
        for line in lines:
            line.greet().call("get_memory_stats")
        yield lines


def each(crowd: Crowd, lines: list[Line], work: Callable[[Line, int], None]) -> None:
    """Let every line do its work at the same time; what is refused, ends or hangs is counted."""

    def guarded(pair: tuple[int, Line]) -> None:
        try:
            work(pair[1], pair[0])
        except RefusedError as error:
            crowd.complain("errors", str(error)[:300])
        except (EndedError, HangingError) as error:
            crowd.complain("deadlocks", str(error)[:300])

    with ThreadPoolExecutor(len(lines)) as pool:
        list(pool.map(guarded, enumerate(lines)))


def appends(yard: Yard, processes: Sequence[int], writes: int) -> dict[int, Crowd]:
    """Append to one memory from several servers at once, for each number of servers."""
    root = yard.project("appends")
    crowds = {count: Crowd(root=root) for count in processes}
    with servers(yard, root, max(processes)) as lines:
        for count, crowd in crowds.items():
            _append_together(crowd, lines[:count], f"by-{count}.md", writes)
    for crowd in crowds.values():
        crowd.settle()
    return crowds


def _append_together(crowd: Crowd, lines: list[Line], name: str, writes: int) -> None:
    _begin(crowd, lines[0], name)

    def work(line: Line, _: int) -> None:
        for _ in range(writes):
            number = crowd.number()
            line.call("append_memory", filename=name, content=entry(number))
            crowd.promise(name, number, acknowledged=True)
            crowd.count("acknowledged")

    each(crowd, lines, work)


def updates(yard: Yard, processes: int, writes: int, files: int = 4) -> Crowd:
    """Read, change and write shared memories with the version read, until it works."""
    crowd = Crowd(root=yard.project(f"updates-{processes}"))
    with servers(yard, crowd.root, processes) as lines:
        for file in range(files):
            _begin(crowd, lines[0], f"shared{file}-0.md")

        def work(line: Line, own: int) -> None:
            for turn in range(writes):
                _add_by_update(crowd, line, f"shared{(own + turn) % files}")

        each(crowd, lines, work)
    crowd.settle()
    return crowd


def _begin(crowd: Crowd, line: Line, name: str) -> None:
    number = crowd.number()
    line.call("create_memory", filename=name, content=entry(number), tags=[])
    crowd.promise(name, number, acknowledged=True)


def _add_by_update(crowd: Crowd, line: Line, stem: str) -> None:
    """Add an entry by replacing the whole text of the latest part of a shared memory."""
    number = crowd.number()
    while True:
        with crowd.lock:
            part = max(
                int(name[len(stem) + 1 : -3])
                for name in crowd.written
                if name.startswith(f"{stem}-")
            )
        name = f"{stem}-{part}.md"
        read = line.call("read_memory", filename=name)
        if len(entries(read["content"])) >= ENTRIES_IN_A_MEMORY:
            try:
                _begin(crowd, line, f"{stem}-{part + 1}.md")
            except RefusedError as error:
                if "exists already" not in str(error):
                    raise
            continue
        text = f"{read['content']}\n\n{entry(number)}"
        try:
            line.call(
                "update_memory", filename=name, content=text, expected_version=read["version"]
            )
        except RefusedError as error:
            # Eight writers on a machine with other work may wait longer for their turn than the
            # server lets them.
            told = next((what for words, what in TOLD.items() if words in str(error)), None)
            if told is None:
                raise
            crowd.count(told)
            continue
        crowd.promise(name, number, acknowledged=True)
        crowd.count("acknowledged")
        return


def stale(yard: Yard, rounds: int) -> Crowd:
    """Write with a version that another server has replaced: nothing but an answer results."""
    crowd = Crowd(root=yard.project("stale"))
    with servers(yard, crowd.root, 2) as (one, other):
        for name in ("a.md", "b.md"):
            one.call("create_memory", filename=name, content=entry(crowd.number()), tags=[])
        for turn in range(rounds):
            read = one.call("read_memory", filename="a.md")
            now = other.call("update_memory", filename="a.md", content=entry(crowd.number()))
            text, version = entry(crowd.number()), read["version"]
            late = {"filename": "a.md", "content": text, "expected_version": version}
            merge = {
                "source_files": ["a.md", "b.md"],
                "target_file": "a.md",
                "summary_content": text,
            }
            tool, arguments = (
                ("update_memory", late),
                ("append_memory", late),
                ("merge_memories", {**merge, "expected_version": version}),
            )[turn % 3]
            before = (crowd.root / MEMORIES / "a.md").read_bytes()
            crowd.count("stale writes")
            try:
                one.call(tool, **arguments)
            except RefusedError as error:
                told = "changed since version" in str(error) and now["version"] in str(error)
                crowd.count("told" if told and text in str(error) else "refused without a word")
            else:
                crowd.complain("accepted", f"{tool} with a stale version")
            if (crowd.root / MEMORIES / "a.md").read_bytes() != before or not (
                crowd.root / MEMORIES / "b.md"
            ).exists():
                crowd.complain("accepted", f"{tool} left a trace")
    return crowd


def killed_writers(yard: Yard, reads: int, kills: int, seed: int = 4) -> Crowd:
    """Append from three servers that are killed again and again; read through two others."""
    crowd = Crowd(root=yard.project("writers"))
    done = threading.Event()
    with servers(yard, crowd.root, 2) as readers, ThreadPoolExecutor(3) as pool:
        for stem in "xyz":
            _begin(crowd, readers[0], f"{stem}-0.md")
        try:
            writers = [
                pool.submit(_write_and_die, yard, crowd, done, random.Random(seed + own))
                for own in range(3)
            ]

            def read(line: Line, own: int) -> None:
                for turn in itertools.count():
                    if turn >= reads // 2:
                        if crowd.counts["kills"] >= kills:
                            return
                        time.sleep(AHEAD_SECONDS)
                    _read(crowd, line, turn + own)

            each(crowd, readers, read)
        finally:
            done.set()
        for writer in writers:
            writer.result()
    crowd.settle()
    return crowd


def _write_and_die(yard: Yard, crowd: Crowd, done: threading.Event, rng: random.Random) -> None:
    while not done.is_set():
        line = yard.start(crowd.root)
        try:
            line.greet()
            for _ in range(rng.randrange(LONGEST_LIFE)):
                if done.is_set():
                    break
                _append(crowd, line, rng.choice("xyz"))
            # In the middle of a last one, whose fate nobody knows.
            name, number = _latest(crowd, rng.choice("xyz")), crowd.number()
            crowd.promise(name, number, acknowledged=False)
            line.send_call("append_memory", filename=name, content=entry(number))
            time.sleep(rng.uniform(0, 0.03))
        except (RefusedError, EndedError, HangingError) as error:
            crowd.complain("errors", str(error)[:300])
        line.kill()
        crowd.count("kills")


def _append(crowd: Crowd, line: Line, stem: str) -> None:
    name = _latest(crowd, stem)
    if len(crowd.promised(name)) >= ENTRIES_IN_A_MEMORY // 2:
        try:
            _begin(crowd, line, f"{stem}-{int(name[2:-3]) + 1}.md")
        except RefusedError as error:
            if "exists already" not in str(error):
                raise
        return
    number = crowd.number()
    line.call("append_memory", filename=name, content=entry(number))
    crowd.promise(name, number, acknowledged=True)
    crowd.count("acknowledged")


def _latest(crowd: Crowd, stem: str) -> str:
    with crowd.lock:
        return (
            f"{stem}-{max(int(name[2:-3]) for name in crowd.written if name.startswith(stem))}.md"
        )


def _read(crowd: Crowd, line: Line, turn: int) -> None:
    """Read a memory, which must be whole and hold everything acknowledged before."""
    name = _latest(crowd, "xyz"[turn % 3])
    before = crowd.promised(name)
    answer = line.call("read_memory", filename=name)
    crowd.count("reads")
    text = answer["content"]
    if answer["omitted"] or torn(text) or version_of(text.encode()) != answer["version"]:
        crowd.complain("bad reads", f"{name}: {torn(text)[:3]}")
    elif before - set(entries(text)):
        crowd.complain("bad reads", f"{name} lacks what was acknowledged")


def reads_during_writes(yard: Yard, reads: int, writes: int) -> Crowd:
    """Read a file, also through a server, while two others replace it as fast as they can."""
    crowd = Crowd(root=yard.project("reads"))
    done = threading.Event()
    place = crowd.root / MEMORIES / "a.md"
    seen: set[str] = set()

    def replace(line: Line) -> None:
        while not done.is_set():
            texts = [entry(crowd.number()) for _ in range(20)]
            line.call("update_memory", filename="a.md", content="\n\n".join(texts))
            crowd.count("acknowledged")

    def read(line: Line, own: int) -> None:
        for turn in itertools.count():
            if turn >= reads // 2:
                if crowd.counts["acknowledged"] >= writes:
                    return
                time.sleep(AHEAD_SECONDS)
            # Every tenth through a server; the file itself is read far more often than any server
            # could be asked.
            asked = not own and turn % 10 == 0
            text = (
                line.call("read_memory", filename="a.md")["content"] if asked else place.read_text()
            )
            crowd.count("reads")
            seen.add(text)
            if torn(text):
                crowd.complain("torn", str(torn(text))[:200])

    with servers(yard, crowd.root, 4) as lines, ThreadPoolExecutor(2) as pool:
        lines[0].call("create_memory", filename="a.md", content=entry(crowd.number()), tags=[])
        writers = [pool.submit(replace, line) for line in lines[2:]]
        try:
            each(crowd, lines[:2], read)
        finally:
            done.set()
        for writer in writers:
            writer.result()
    crowd.count("texts seen", len(seen))
    return crowd
