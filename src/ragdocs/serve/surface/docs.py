"""Documentation: searching and reading it, and the project's own commits."""

from __future__ import annotations

from typing import Annotated

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.layouts import docs as layout_docs
from ragdocs.serve.surface.parameters import AnyTag, Explain, Limit, Lines, Query, Since, Source
from ragdocs.serve.surface.present import docs as present_docs
from ragdocs.serve.surface.present import journal as present_journal
from ragdocs.serve.surface.shapes.docs import DocHits, DocText, SourceList
from ragdocs.serve.surface.shapes.journal import CommitHits
from ragdocs.verbs.page import parse_lines


@verb(
    command="docs search",
    toolset="docs",
    title="Search documentation",
    situation="a question about the project or a change to its code",
    effect="read",
    lanes=("docs", "sources"),
    meaning=True,
    text=present_docs.documents,
    columns=("path", "lines", "score", "header_path"),
    about="find passages of the documentation",
    examples=({"query": "how are tokens refreshed"},),
)
def search_docs(
    ask: Ask,
    query: Query,
    limit: Limit = 5,
    path: Annotated[str, Arg(help="only below this folder")] = "",
    tags: AnyTag = None,
    source: Source = "",
    explain: Explain = False,
    language: Annotated[
        str, Arg(help="of pages in several languages, such as de", metavar="CODE", only="people")
    ] = "",
) -> DocHits:
    """Find passages of the documentation. Call it before you answer questions about the project or
    change code.

    Passages match by meaning and by words. Each has its path, heading, lines, score, the reason why
    it matched, and as much of its section as there is room for. A source is documentation beyond
    the project; "project" is its own.
    """
    documents = ask.workspace.documents
    findings = documents.search(
        query, limit, path=path, tags=tags or (), source=source, language=language
    )
    if not any((path, tags, source, language)):
        ask.note_question(query, findings.hits)
    surroundings = documents.surroundings(findings.hits)
    answer = layout_docs.passages(findings, surroundings, ask.room, explain=explain)
    if not answer["result"] and not source:
        for name, reason in documents.unreadable_sources().items():
            answer["notes"].append(f"the source {name} cannot be read: {reason}")
        from ragdocs.serve import outside

        # A command ends with its answer, a server must not keep its callers waiting.
        answer["notes"] += outside.empty_notes(ask.workspace, wait=ask.rim == "command")
    return answer


@verb(
    command="docs read",
    toolset="docs",
    title="Read a document",
    situation="the text around a result",
    effect="read",
    lanes=("docs", "sources"),
    text=present_docs.document,
    about="print a document, a section or some lines of it",
    examples=(
        {"path": "docs/guide.md", "heading": "Tokens"},
        {"path": "docs/guide.md", "lines": "10-40"},
    ),
)
def read_doc(
    ask: Ask,
    path: Annotated[str, Arg(help="as a result names it", positional=True)],
    heading: Annotated[str | None, Arg(help="only this section")] = None,
    lines: Lines = None,
) -> DocText:
    """Read a document that search_docs found, one section or some lines of it.

    Returns the text, its lines, and how to get what was left out.
    """
    reading = ask.workspace.documents.read(path, heading or "", parse_lines(lines))
    return layout_docs.document(reading, ask.room)


@verb(
    command="docs sources",
    toolset="docs",
    title="List sources",
    effect="read",
    tool=False,
    page=True,
    lanes=("sources",),
    current=False,
    text=present_docs.sources,
    columns=("name", "version", "documents", "location"),
    about="list the documentation beyond the project: versions, documents, what cannot be read",
)
def list_sources(ask: Ask) -> SourceList:
    """List the documentation beyond the project that you have configured, each source with its
    version, the number of its documents, or why it cannot be read.
    """
    return layout_docs.sources(ask.workspace.sources())


@verb(
    command="commits",
    toolset="commits",
    title="Search commits",
    situation="why the code is as it is",
    effect="read",
    lanes=("commits",),
    settings={"docs.commits": True},
    meaning=True,
    text=present_journal.commits,
    columns=("commit", "age", "author", "subject"),
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
    commits = ask.workspace.commits
    findings = commits.search(query, paths or (), since or "", author or "", limit)
    return layout_docs.commits(findings, ask.now, ask.room)
