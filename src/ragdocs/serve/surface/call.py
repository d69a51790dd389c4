"""One call of a verb, whichever rim it comes from: may the caller, what is the answer, whose words
are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragdocs.errors import ConflictError, RagdocsError, UnavailableError
from ragdocs.serve.surface import Ask, Verb, hints


def answer(verb: Verb, ask: Ask, arguments: Mapping[str, Any]) -> Any:
    """Run a verb for a caller who may, and address its answer or its error to that caller."""
    if verb.role == "writer" and ask.caller.role == "reader":
        raise UnavailableError(
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
