"""What a link says about the two that it joins."""

from __future__ import annotations

MENTIONS = "mentions"
RELATED_TO = "related_to"
TOUCHES = "touches"
IMPACTS = "impacts"
# A memory says with these that another one no longer holds, or says the opposite.
SUPERSEDES = "supersedes"
SUPERSEDED_BY = ("superseded_by", "superseded-by")
CONTRADICTS = "contradicts"
