"""Secrets that are written down already.

In texts that people wrote by hand, in earlier texts, in the trash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypedDict

from ragdocs.errors import RagdocsError
from ragdocs.search.corpus import Corpus
from ragdocs.system import files as fsio

# Where a lane that is written to keeps what is no longer there.
KEPT = (".trash", ".history")
# Not having looked is no proof that there is nothing.
UNREAD = "cannot be read"


class Leak(TypedDict):
    """Where a secret stands and what kind it is, never the secret; line 0 is the file's name."""

    path: str
    line: int
    rule: str


def secrets(corpus: Corpus) -> list[Leak]:
    """Look for secrets in every text of a lane and in those that it keeps from before."""
    redact = corpus.redactor.redact
    leaks = []
    for path, read in _texts(corpus):
        name = redact(path)
        found = [(0, finding.rule) for finding in name.findings]
        try:
            found += [(finding.line, finding.rule) for finding in redact(read()).findings]
        except RagdocsError:
            found.append((0, UNREAD))
        leaks += [Leak(path=name.text, line=line, rule=rule) for line, rule in found]
    return leaks


def _texts(corpus: Corpus) -> Iterator[tuple[str, Callable[[], str]]]:
    store = corpus.store
    scan = store.scan()
    for path in sorted({*scan.stamps, *scan.unreadable}):
        yield store.locate(path), partial(_read, corpus, path)
    for folder in KEPT if corpus.lane.writable else ():
        for place, _, names in os.walk(Path(store.locate(""), folder)):
            for name in sorted(names):
                yield str(Path(place, name)), partial(_kept, Path(place, name))


def _read(corpus: Corpus, path: str) -> str:
    return corpus.store.read(path).text


def _kept(path: Path) -> str:
    return fsio.read_bytes(path).decode(errors="replace")
