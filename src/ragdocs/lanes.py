"""A lane is data: what to include, how to cut, how to rank, whether one may write."""

from __future__ import annotations

from dataclasses import dataclass, field


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

    # Of a cosine, and of a keyword score where 1.0 is every word of the query once: neither depends
    # on what else is found. In documentation meaning and words find about the same;
    # bench/quality.py prints both alone.
    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    # What the better of the passages before and after says beside a passage itself.
    context_weight: float = 0.2
    # What a passage loses that is one of several, where the best of them speaks for the document.
    crowd_discount: float = 0.0
    # What the second-best passage of its document says beside a passage: a page on a matter
    # mentions it more than once.
    support_weight: float = 0.0
    # Of what is missing to 1.0, given to what the best documents link to.
    graph_weight: float = 0.1
    # Of what is missing to 1.0, given to texts of the time that a query names: "last week", "two
    # months ago".
    time_weight: float = 0.0
    recency_days: int = 0
    recency_factor: float = 1.0
    # Where a score fades: a text this old is half as easy to reach. Fresh ones need `easiest`, old
    # ones what is asked.
    half_life_days: float = 0.0
    easiest: float = 0.0
    # Hits of one document in one answer.
    per_document: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One corpus's rules; nothing in the program asks for its name."""

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
    chunking: Chunking = field(default_factory=Chunking)
    ranking: Ranking = field(default_factory=Ranking)


DOCS = Lane(
    name="docs",
    include=("docs/**/*.md", "docs/**/*.txt", "docs/**/*.rst", "README.md"),
    gitignore=True,
    default_kind="document",
    ranking=Ranking(support_weight=0.2),
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

# What was learned, commit by commit: an entry never changes, so nothing of it can be written to.
JOURNAL = Lane(
    name="journal",
    include=("**/*.md",),
    default_kind="entry",
    ranking=Ranking(
        graph_weight=0.0, context_weight=0.0, per_document=1, half_life_days=30.0, easiest=0.1
    ),
)

COMMITS = Lane(
    name="commits",
    include=("**/*.md",),
    default_kind="commit",
    ranking=Ranking(graph_weight=0.0, context_weight=0.0, per_document=1),
)
