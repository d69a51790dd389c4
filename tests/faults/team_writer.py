"""A server that writes groups of three texts into a team database until it is killed.

It says on its standard output what it begins and what was acknowledged.
"""

from __future__ import annotations

import sys

from ragdocs.engines.postgres.index import PostgresIndex
from ragdocs.lanes import MEMORY
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system.postgres.database import Database
from ragdocs.types import Expect, Put

BEGUN, MADE = "begun", "made"


def served(database: Database, scope: int) -> Corpus:
    """Return the memories of a scope, which are written, indexed and encoded at once."""
    encoder = HashEncoder()
    index = PostgresIndex(database, scope, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    store = RowStore(database, scope, MEMORY, writable=True)
    return Corpus(MEMORY, store, index, encoder)


def text_of(group: str) -> str:
    """Return the text of a group, which has a word of its own."""
    number = int(group.rpartition("-")[2])
    return f"group word{group.replace('-', 'x')} " * (1 + number % 40)


def say(what: str, group: str) -> None:
    """Tell whoever keeps the books."""
    sys.stdout.write(f"{what} {group}\n")
    sys.stdout.flush()


def main() -> None:
    """Write for ever."""
    address, scope, name = sys.argv[1:]
    corpus = served(Database(address, connections=2), int(scope))
    number = 0
    while True:
        number += 1
        group = f"{name}-{number}"
        say(BEGUN, group)
        texts = [Put(f"{group}-{part}.md", text_of(group), Expect.ABSENT) for part in "abc"]
        corpus.commit(texts)
        say(MADE, group)


if __name__ == "__main__":
    main()
