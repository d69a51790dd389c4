"""One text as a person reads and writes it: whole, with its links, its secrets and its merges."""

from __future__ import annotations

from typing import Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.layouts import texts as layout_texts
from ragdocs.serve.surface.present import texts as present_texts
from ragdocs.serve.surface.shapes import ComparedTexts, SecretsFound, TextLinks, TextShape

# Not called `lane`: a command opens only the lane of that name, and links lead to others.
TextLane = Annotated[
    Literal["docs", "sources", "memory"],
    Arg(help="whether it is documentation or a memory", flag="--lane"),
]
TextPath = Annotated[str, Arg(help="its path, as a result names it", positional=True)]


@verb(
    command="text show",
    toolset="memory",
    title="Show a whole text",
    effect="read",
    tool=False,
    page=True,
    lanes=("docs", "sources", "memory"),
    text=present_texts.text,
    about="print a memory or a document whole, with its fields",
    examples=({"path": "plan.md"}, {"path": "docs/guide.md", "text_lane": "docs"}),
)
def show_text(ask: Ask, path: TextPath, text_lane: TextLane = "memory") -> TextShape:
    """Return a memory or a document whole, with its version and the fields of its front matter."""
    return layout_texts.text(ask.workspace.texts.read(text_lane, path), ask.now)


@verb(
    command="text links",
    toolset="memory",
    title="List the links of a text",
    effect="read",
    tool=False,
    page=True,
    lanes=("docs", "sources", "memory"),
    meaning=True,
    text=present_texts.links,
    about="list what a text links to, what links to it, and similar memories",
    examples=({"path": "plan.md"},),
)
def text_links(ask: Ask, path: TextPath, text_lane: TextLane = "memory") -> TextLinks:
    """List the links of a memory or a document with where they lead, the sentences that link to it,
    and memories that say something alike.
    """
    near = ask.workspace.texts.neighbourhood(text_lane, path)
    answer = layout_texts.links(near, ask.room, ask.now)
    states = ask.workspace.living.drift.states(near.document)
    layout_texts.add_states(answer, states)
    return answer


@verb(
    command="text draft",
    toolset="memory",
    title="List the links of a draft",
    effect="read",
    tool=False,
    page=True,
    lanes=("docs", "sources", "memory"),
    text=present_texts.links,
    about="list what a text would link to if it was saved",
    shell_examples=("ragdocs text draft plan.md < plan.md",),
)
def draft_links(
    ask: Ask,
    path: TextPath,
    content: Annotated[str, Arg(help="the text, in markdown", text=True)],
    text_lane: TextLane = "memory",
) -> TextLinks:
    """List the links that a text would have if it was saved at a path, with where they lead."""
    outward = ask.workspace.texts.draft_links(text_lane, path, content)
    return layout_texts.draft_links(outward, ask.room)


@verb(
    command="text secrets",
    toolset="memory",
    title="Find secrets in a text",
    effect="read",
    tool=False,
    page=True,
    lanes=("memory",),
    current=False,
    text=present_texts.secrets,
    about="list the secrets that would be removed from a text",
    shell_examples=("ragdocs text secrets < notes.md",),
)
def check_secrets(
    ask: Ask, content: Annotated[str, Arg(help="the text, in markdown", text=True)]
) -> SecretsFound:
    """Tell which lines of a text hold secrets that would be replaced if it was saved."""
    redactor = ask.workspace.redactor
    return layout_texts.secrets(content, redactor.redact(content), redactor.source)


@verb(
    command="text compare",
    toolset="memory",
    title="Compare three texts",
    effect="read",
    tool=False,
    page=True,
    lanes=("memory",),
    current=False,
    text=present_texts.compared,
    about="compare two changes of one text",
    examples=({"base": "one", "theirs": "one, two", "yours": "one"},),
)
def compare_texts(
    ask: Ask,
    base: Annotated[str, Arg(help="the text that both started from")],
    theirs: Annotated[str, Arg(help="one change of it")],
    yours: Annotated[str, Arg(help="the other change")],
) -> ComparedTexts:
    """Lay two changes of one text side by side, region by region, with a proposal for each."""
    del ask
    return layout_texts.compared(base, theirs, yours)
