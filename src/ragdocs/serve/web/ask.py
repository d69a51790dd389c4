"""A page asks as everybody does: through the declared verbs."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import anyio

from ragdocs.caller import current
from ragdocs.serve.live import Live
from ragdocs.serve.surface import Ask, Verb, call
from ragdocs.serve.surface.catalog import every
from ragdocs.text.visible import framed


@cache
def _verbs() -> dict[str, Verb]:
    return {verb.name: verb for verb in every()}


async def ask(live: Live, verb_name: str, **arguments: Any) -> Any:
    """Return the answer of a verb, in a thread of its own."""
    return await anyio.to_thread.run_sync(partial(ask_now, live, verb_name, **arguments))


def ask_now(live: Live, verb_name: str, *, wait: bool = True, **arguments: Any) -> Any:
    """Return the answer of a verb; what is not given has its default.

    Without waiting, it is about what is indexed now.
    """
    verb = _verbs()[verb_name]
    whole = dict(arguments)
    for param in verb.params_for("api"):
        if not param.required:
            whole.setdefault(param.name, param.default)
    workspace = live.indexed(verb) if wait else live.workspace()
    request = Ask(workspace=workspace, caller=current(), state=live.state())
    return framed(call.answer(verb, request, whole))
