"""Many at once: windows of one server, and searches while files are indexed and saved."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench._corpora import SECTIONS, Corpus, Writer
from bench._measure import Row, Sample, each, figure
from bench._servers import command
from bench._window import Window
from tests.faults.processes import process_seconds
from tests.serve.windows import servers

WINDOWS = (1, 2, 3, 4, 8)
# Windows that may still be answered within three times the time of one: one more than cores.
FEW_WINDOWS = 3
# A window may take so many times as long as another one: each waits for its share only.
UNFAIR = 1.5
# Seconds between two looks at an index that is saved.
PAUSE = 0.0005
# Passages that are indexed in one step while others search.
APPLIED = 1_600


def windows(corpus: Corpus, searches: int) -> Iterator[Row]:
    """Ask new questions in several windows at once, each as soon as its last is answered."""
    rates: dict[int, float] = {}
    slowest: dict[int, float] = {}
    unfairness: dict[int, float] = {}
    for count in WINDOWS:
        with ExitStack() as opened:
            lines = [opened.enter_context(Window(command(corpus), corpus.root))]
            for _ in range(count - 1):
                lines.append(opened.enter_context(Window(command(corpus), corpus.root)))
            for line in lines:
                line.greet()
                line.call("search_docs", query="open the index and the model")
            running = servers(_sockets())
            before = _seconds(running)
            rates[count], samples = _asked(corpus, lines, searches)
            cpu = (_seconds(running) - before) / (count * searches) * 1000
        sample = Sample(wall=[seconds for own in samples for seconds in own.wall])
        slowest[count] = sample.wall_ms(0.95)
        unfairness[count] = max(map(_middle, samples)) / min(map(_middle, samples))
        note = f"wall p50 {sample.wall_ms():.1f} ms, p95 {slowest[count]:.1f} ms"
        note += f"; server's cpu {cpu:.1f} ms a search"
        name = f"searches a second, {count} windows"
        yield figure("many", name, corpus, rates[count], "/s", note=note)
    most = max(WINDOWS)
    ratio = rates[most] / rates[1]
    yield figure("many", f"{most} windows / one", corpus, ratio, "x", least=1.8)
    name = f"p50 of the slowest window / the fastest, {most} windows"
    yield figure("many", name, corpus, unfairness[most], "x", most=UNFAIR)
    for count in WINDOWS[1:]:
        # Each of n windows that never pause waits n / throughput: 8 at 1.8 times wait 4.4 times.
        ratio = slowest[count] / slowest[1]
        goal = 3 if count <= FEW_WINDOWS else None
        yield figure("many", f"p95 of {count} windows / one", corpus, ratio, "x", most=goal)


def _sockets() -> Path:
    return Path(os.environ["XDG_RUNTIME_DIR"]) / f"ragdocs-{os.getuid()}"


def _seconds(processes: Sequence[int]) -> float:
    return sum(map(process_seconds, processes))


def _middle(sample: Sample) -> float:
    return sample.wall_ms()


def _asked(corpus: Corpus, lines: Sequence[Window], searches: int) -> tuple[float, list[Sample]]:
    """Return the searches a second of all windows, and the times of each."""
    questions = corpus.queries(searches * len(lines), seed=time.time_ns())
    samples = [Sample() for _ in lines]

    def ask(line: Window, sample: Sample, own: Sequence[str]) -> None:
        for question in own:
            sample.take(partial(line.call, "search_docs", query=question))

    threads = []
    for number, line in enumerate(lines):
        own = questions[number * searches : (number + 1) * searches]
        threads.append(threading.Thread(target=ask, args=(line, samples[number], own)))
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(questions) / (time.perf_counter() - started), samples


def while_indexing(corpus: Corpus, searches: int) -> Iterator[Row]:
    """Search in the process that indexes files and then saves."""
    search = corpus.workspace.documents.search
    queries = corpus.queries(searches, seed=31)
    each(search, queries)
    alone = each(search, queries)
    _write_more(corpus)
    with _beside(corpus.open_lane.corpus.sync) as is_running:
        applying = _repeated(search, queries, is_running)
    corpus.open_lane.corpus.embed()
    ratio = applying.wall_ms() / alone.wall_ms()
    note = f"{alone.note()} alone; {applying.note()}"
    name = f"search while {APPLIED:,} passages are indexed / alone"
    yield figure("many", f"{name}, p50", corpus, ratio, "x", most=2, note=note)
    slowest = applying.wall_ms(0.95) / alone.wall_ms(0.95)
    yield figure("many", f"{name}, p95", corpus, slowest, "x", most=2)

    held = Sample()

    def read() -> None:
        with corpus.open_lane.index.snapshot():
            pass

    with _beside(corpus.open_lane.index.save) as is_running:
        while is_running():
            held.take(read)
            # Whoever asks without a pause never sees how long others keep the interpreter.
            time.sleep(PAUSE)
    note = f"processor time of the process meanwhile {held.cpu_ms(1):.1f} ms"
    longest = held.wall_ms(1)
    yield figure("many", "longest wait for a save", corpus, longest, "ms", most=20, note=note)


def _write_more(corpus: Corpus) -> None:
    writer = Writer(seed=23)
    for number in range(APPLIED // SECTIONS["docs"]):
        text = writer.document("docs", number, corpus.chunks)
        path = corpus.root / "docs" / f"more-{number:05}.md"
        path.write_text(text, encoding="utf-8")


@contextmanager
def _beside(action: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Do something in another thread, and tell whether it still goes on."""
    thread = threading.Thread(target=action)
    thread.start()
    yield thread.is_alive
    thread.join()


def _repeated(
    action: Callable[[str], object], arguments: Sequence[str], goes_on: Callable[[], bool]
) -> Sample:
    sample = Sample()
    count = 0
    while goes_on():
        sample.take(partial(action, arguments[count % len(arguments)]))
        count += 1
    return sample
