"""Documentation: searching and reading it, and the project's own commits."""

from __future__ import annotations

from typing import Annotated

from ragdocs.serve.surface import Arg, Ask, present_docs, present_journal, verb
from ragdocs.serve.surface.parameters import AnyTag, Explain, Limit, Lines, Query, Since
from ragdocs.verbs.journal_shapes import CommitHits
from ragdocs.verbs.shapes import DocHits, DocText


@verb(
    command="docs search",
    toolset="docs",
    title="Search documentation",
    effect="read",
    lanes=("docs",),
    meaning=True,
    text=present_docs.documents,
    about="find passages of the documentation",
    examples=({"query": "how are tokens refreshed"},),
)
def search_docs(
    ask: Ask,
    query: Query,
    limit: Limit = 5,
    path: Annotated[str, Arg(help="only below this folder, such as docs/api")] = "",
    tags: AnyTag = None,
    explain: Explain = False,
) -> DocHits:
    """Find passages of this project's documentation by meaning and by words. Call it before
    answering a question about the project or changing its code. Returns passages with path,
    heading, lines, score and why they matched.
    """
    return ask.workspace.documents.search(query, limit, path=path, tags=tags or (), explain=explain)


@verb(
    command="docs read",
    toolset="docs",
    title="Read a document",
    effect="read",
    lanes=("docs",),
    text=present_docs.document,
    about="print a document, a section or some lines of it",
    examples=(
        {"path": "docs/guide.md", "heading": "Tokens"},
        {"path": "docs/guide.md", "lines": "10-40"},
    ),
)
def read_doc(
    ask: Ask,
    path: Annotated[str, Arg(help="the document, as a result names it", positional=True)],
    heading: Annotated[str | None, Arg(help="only the section under this heading")] = None,
    lines: Lines = None,
) -> DocText:
    """Read a document found by search_docs, or only one section or some lines of it.
    Returns the text, its lines, and how to get what was left out.
    """
    return ask.workspace.documents.read(path, heading, lines)


@verb(
    command="commits",
    toolset="commits",
    title="Search commits",
    effect="read",
    lanes=("commits",),
    settings={"docs.commits": True},
    meaning=True,
    text=present_journal.commits,
    about="search the project's own commits",
    examples=({"query": "why are retries few", "paths": ["src/net"]},),
)
def search_commits(
    ask: Ask,
    query: Annotated[
        str,
        Arg(
            help="what to look for; empty for the newest",
            positional=True,
            words=True,
            command_default="",
        ),
    ],
    paths: Annotated[
        list[str] | None,
        Arg(help="only commits that changed these files or folders", flag="--path"),
    ] = None,
    since: Since = None,
    author: Annotated[str | None, Arg(help="a part of a name or an address")] = None,
    limit: Annotated[int, Arg(help="how many results", command_default=10)] = 5,
) -> CommitHits:
    """Find out why something is as it is: commits of this project by what their messages say and
    which files they changed. With an empty query the newest come first.
    """
    return ask.workspace.commits.search(query, paths or (), since or "", author or "", limit)
