"""One call of a verb, whichever rim it comes from: may the caller, what is the answer, whose words
are used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ragdocs.caller import author
from ragdocs.errors import ConflictError, ForbiddenError, RagdocsError
from ragdocs.serve.surface import Ask, Verb, hints
from ragdocs.serve.surface.clients import CLIENTS

# Told the name of each verb that was called, how long it took, and whether it failed.
OBSERVERS: list[Callable[[str, float, bool], None]] = []


def answer(verb: Verb, ask: Ask, arguments: Mapping[str, Any]) -> Any:
    """Run a verb for a caller who may, and tell observers how it went."""
    CLIENTS.note(ask.caller, str(ask.workspace.config.root), verb.name)
    writing = author.set(CLIENTS.author(ask.caller))
    started = time.perf_counter()
    failed = True
    try:
        result = _answer(verb, ask, arguments)
        failed = False
        return result
    finally:
        author.reset(writing)
        seconds = time.perf_counter() - started
        for observe in OBSERVERS:
            observe(verb.name, seconds, failed)


def _answer(verb: Verb, ask: Ask, arguments: Mapping[str, Any]) -> Any:
    """Run a verb, and address its answer or its error to the caller."""
    # Whatever is asked for, a caller whom the team does not know is refused.
    role = ask.role
    if verb.role == "writer" and role == "reader":
        raise ForbiddenError(
            f"{verb.title.casefold()} is for writers, and you are a reader",
            "Ask whoever runs the server for the role of a writer",
        )
    try:
        return hints.in_answer(verb.run(ask, **arguments), ask.rim)
    except RagdocsError as error:
        error.hint = hints.addressed(error.hint, ask.rim)
        if isinstance(error, ConflictError):
            error.again = hints.addressed(error.again, ask.rim)
            error.reader = hints.addressed(error.reader, ask.rim)
        raise
