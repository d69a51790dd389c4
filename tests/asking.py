"""Calls of declared verbs as a rim makes them, for tests of what an answer looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragdocs.serve.surface import VERBS, Ask
from ragdocs.serve.surface.call import answer
from ragdocs.serve.surface.catalog import every

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

# The declarations are made when their modules are imported, which the catalog does.
assert list(every())


def ask(workspace: Workspace, verb: str, **arguments: Any) -> Any:
    """Return the answer of a verb to an agent that connected just now."""
    return answer(VERBS[verb], Ask(workspace=workspace, session={}), arguments)
