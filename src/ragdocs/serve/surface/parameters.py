"""Parameters that several verbs have, so that each is described in one way."""

from __future__ import annotations

from typing import Annotated, Literal

from ragdocs.serve.surface import Arg

BranchScope = Literal["perBranch", "sharedRepo"]

Query = Annotated[str, Arg(help="what to look for", positional=True, words=True)]
Limit = Annotated[int, Arg(help="how many")]
Tags = Annotated[list[str] | None, Arg(help="its tags", flag="--tag")]
AnyTag = Annotated[list[str] | None, Arg(help="any of these tags", flag="--tag")]
Source = Annotated[str, Arg(help="such as zod", metavar="NAME")]
Explain = Annotated[bool, Arg(help="parts of each score")]
Lines = Annotated[str | None, Arg(help="such as 10-40")]
Filename = Annotated[str, Arg(help="file name or id", positional=True)]
ExpectedVersion = Annotated[
    str | None,
    Arg(help="refuse any other", flag="--expect", metavar="VERSION"),
]
MemoryType = Annotated[str | None, Arg(help="of this type", flag="--type")]
Since = Annotated[
    str | None,
    Arg(help="1d, last week, 2026-02-04", metavar="TIME"),
]
Superseded = Annotated[bool, Arg(help="superseded ones too")]
Scope = Annotated[
    BranchScope | None,
    Arg(help="if not as configured", flag="--branch-scope"),
]
