"""Lanes: which files belong to a corpus, how they are cut and ranked, and who may write."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from ragdocs.project.formats import BY_SUFFIX, FORMATS

# The version that is shown where none is named: the one that readers are sent to.
NEWEST = "newest"


def _readmes() -> list[str]:
    """Return the names of a project's first page, with the usual ending of each format."""
    names = []
    for kind in FORMATS:
        # Nobody's first page is a notebook.
        if not kind.only_in_docs and kind.reader != "notebook":
            names.append(f"README{kind.suffixes[0]}")
    return names


@dataclass(frozen=True, slots=True)
class Chunking:
    """How a body is cut, in characters."""

    # all-MiniLM-L6-v2 reads 256 tokens, about 1,000 characters of English prose: more would not be
    # embedded.
    target: int = 900
    # A paragraph may run over the target rather than be cut in the middle.
    limit: int = 1400


@dataclass(frozen=True, slots=True)
class Ranking:
    """How signals become one score."""

    # Weights of the cosine and of the keyword score, where 1.0 is every word of the query once.
    # Neither depends on other candidates. In documentation both alone find about the same;
    # bench/quality.py prints the figures.
    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    # Weight of the better of the passages before and after a passage.
    context_weight: float = 0.2
    # Lowers passages of long documents, because more passages mean more chances to match.
    crowd_discount: float = 0.0
    # Weight of the second-best passage of the same document: a page on a matter mentions it more
    # than once.
    support_weight: float = 0.0
    # Share of what is missing to 1.0 that documents get to which the best ones link.
    graph_weight: float = 0.1
    # Share of what is missing to 1.0 that texts get from a time that the query names, such as "last
    # week" or "two months ago".
    time_weight: float = 0.0
    recency_days: int = 0
    recency_factor: float = 1.0
    # Where scores fade: the threshold rises with age, from `fresh_min_score` to the `min_score` of
    # the query; after this many days it is half way.
    half_life_days: float = 0.0
    fresh_min_score: float = 0.0
    # Hits of one document in one answer.
    per_document: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The rules of one corpus; no code depends on its name."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    gitignore: bool = False
    writable: bool = False
    # Where the lane's root is below the project's: markdown links such as ../src/auth.py are
    # written from there.
    base: str = ""
    default_kind: str = ""
    # Bytes of a file. Nobody writes ten megabytes of prose by hand, and cutting them would hold up
    # every search.
    largest: int = 10_000_000
    # Statuses left out of a search unless asked for.
    hidden: tuple[str, ...] = ()
    # Whether the texts are those of the user who runs this process, whoever else may ask.
    is_personal: bool = False
    # Whether a page in several languages or versions is one result, and the version that is shown.
    has_variants: bool = False
    version: str = NEWEST
    chunking: Chunking = field(default_factory=Chunking)
    ranking: Ranking = field(default_factory=Ranking)


DOCS = Lane(
    name="docs",
    # Where there is no documentation in docs/, `project.documentation.default_globs` says what is
    # read.
    include=(*(f"docs/**/*{suffix}" for suffix in BY_SUFFIX), *_readmes()),
    gitignore=True,
    has_variants=True,
    default_kind="document",
    ranking=Ranking(support_weight=0.2),
)

# Documentation beyond the project: a store of its own says which files.
SOURCES = replace(
    DOCS,
    name="sources",
    include=tuple(f"**/*{suffix}" for suffix in BY_SUFFIX),
    is_personal=True,
)

MEMORY = Lane(
    name="memory",
    include=("**/*.md",),
    writable=True,
    base=".memories",
    default_kind="journal",
    hidden=("archived",),
    # Memories are short, and names and numbers matter more in them than in prose: words alone find
    # more than meaning alone.
    ranking=Ranking(
        vector_weight=0.35,
        keyword_weight=0.65,
        # A long memory has as many chances to match as it has passages.
        crowd_discount=0.1,
        time_weight=0.4,
        recency_days=7,
        recency_factor=1.2,
        per_document=1,
    ),
)

# Entries of the journal are commits, which never change, so the lane is not writable.
JOURNAL = Lane(
    name="journal",
    include=("**/*.md",),
    default_kind="entry",
    ranking=Ranking(
        graph_weight=0.0,
        context_weight=0.0,
        per_document=1,
        half_life_days=30.0,
        fresh_min_score=0.1,
    ),
)

COMMITS = Lane(
    name="commits",
    include=("**/*.md",),
    default_kind="commit",
    ranking=Ranking(graph_weight=0.0, context_weight=0.0, per_document=1),
)


def document_id(lane: Lane, path: str) -> str:
    """Return the id of the document at a path.

    Without .md, and with a dot behind a name that has no ending at all.
    """
    name = path.removesuffix(".md")
    if not PurePosixPath(path).suffix:
        name += "."
    return f"{lane.name}:{name}"
