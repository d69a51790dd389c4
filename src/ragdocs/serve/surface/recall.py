"""Remember and recall: a note in passing, and what was done when, here or everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.flags import flags_of
from ragdocs.serve.surface.layouts import recall as layout_recall
from ragdocs.serve.surface.parameters import AnyTag, Limit, Since, Superseded, Tags
from ragdocs.serve.surface.present import recall as present_recall
from ragdocs.serve.surface.shapes import Recalled, Remembered


@verb(
    command="remember",
    toolset="recall",
    title="Remember",
    situation="a single note, unasked, once something is done, decided or understood",
    effect="add",
    role="writer",
    lanes=("memory",),
    text=present_recall.remembered,
    about="write a note without choosing a file name",
    examples=(
        {
            "content": "Chose OAuth2 over JWT: sessions must be revocable at once, see …",
            "tags": ["auth"],
        },
    ),
    shell_examples=("git log -1 --format=%B | ragdocs remember --tag release",),
)
def remember(
    ask: Ask,
    content: Annotated[str, Arg(help="markdown", positional=True, text=True)],
    tags: Tags = None,
) -> Remembered:
    """Save one note. Call it unasked when a task is done, a choice is made or a bug's cause is
    found. Write what, why, what was rejected, which files.

    The next session starts from these notes. Time, branch, commit and changed files are added, and
    no file name is needed.
    """
    return layout_recall.remembered(ask.workspace.recall.remember(content, tags or ()))


def _terminal_text(answer: Any, arguments: Mapping[str, Any]) -> str:
    """Write by day and project, unless the best matches were asked for."""
    if arguments["query"] and not arguments["timeline"]:
        return present_recall.recalled(answer)
    grouped = answer["result"]
    if not arguments["timeline"]:
        grouped = present_recall.days(grouped)
    return present_recall.by_day(grouped, answer["omitted"], answer["notes"])


@verb(
    command="recall",
    toolset="recall",
    title="Recall",
    situation="what happened last, when a session starts",
    effect="read",
    lanes=("memory",),
    text=present_recall.recalled,
    terminal=_terminal_text,
    about="list the latest memories, of this project or of all",
    examples=({}, {"query": "auth"}, {"scope": "global", "since": "yesterday"}),
    shell_examples=("ragdocs recall --since 1w --limit 50 --json",),
)
def recall(
    ask: Ask,
    query: Annotated[
        str | None, Arg(help="what to look for; else the latest", positional=True, words=True)
    ] = None,
    tags: AnyTag = None,
    since: Since = None,
    limit: Limit = 10,
    scope: Annotated[
        Literal["project", "global"], Arg(help="global: all your projects")
    ] = "project",
    superseded: Superseded = False,
    timeline: Annotated[
        bool, Arg(help="group by day and project, also with a query", only="command")
    ] = False,
) -> Recalled:
    """List what happened last in this project. Call it when a session starts.

    Without arguments it returns the latest memories, with `query` the best matches, typos included.
    The scope "global" covers all your projects. Each memory says how old it is and on which branch
    it was written: check old ones against the code.
    """
    recollection = ask.workspace.recall.recall(
        query or "",
        tags=tags or (),
        since=since or "",
        limit=limit,
        scope=scope,
        superseded=superseded,
    )
    own = [memory.hit.document for memory in recollection.memories if memory.bank.home]
    flags = flags_of(ask, own)
    answer = layout_recall.recalled(recollection, ask.room, ask.now, flags)
    if timeline:
        grouped: Any = {**answer, "result": present_recall.days(answer["result"])}
        answer = grouped
    return answer
