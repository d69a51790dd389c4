"""One text looked through for secrets, again and again until there is none left.

With everything that secrets are known by, which is imported with the first text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ragdocs.text.redaction.assigned import assigned_values
from ragdocs.text.redaction.block import has_block, mended_block
from ragdocs.text.redaction.context import announced_values
from ragdocs.text.redaction.forms import logins, private_keys, tokens
from ragdocs.text.redaction.spans import (
    OWN,
    Finding,
    Span,
    joined,
    replaced,
    with_copies,
)

# A replacement can lay bare what its neighbour hid; nothing sane needs more than two passes.
_PASSES = 6

# Returns where a text has values that are secret for its owner, and by which rule.
OwnMatches = Callable[[str], Iterable[tuple[int, int, str]]]


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and what was taken out of it, in order."""

    text: str
    findings: tuple[Finding, ...] = ()


def redacted(text: str, own: OwnMatches) -> Redaction:
    """Put a placeholder in the place of every secret; text without any comes back as it is."""
    redaction = _redacted(text, own)
    if not redaction.findings or not has_block(text):
        return redaction
    # A block that no longer says the same is written anew, and looked at once more.
    mended = mended_block(text, redaction.text, lambda leaf: _redacted(leaf, own).text)
    if not mended:
        return redaction
    return Redaction(_redacted(mended, own).text, redaction.findings)


def _redacted(text: str, own: OwnMatches) -> Redaction:
    findings: list[Finding] = []
    numbers: Sequence[int] = range(1, text.count("\n") + 2)
    rules: dict[str, str] = {}
    for _ in range(_PASSES):
        spans = joined(text, _spans(text, own))
        if not spans:
            break
        spans = with_copies(text, spans, rules)
        text, numbers = replaced(text, spans, numbers, findings)
    findings.sort(key=lambda finding: finding.line)
    return Redaction(text, tuple(findings))


def _spans(text: str, own: OwnMatches) -> Iterator[Span]:
    return chain(
        (Span(start, stop, OWN, rule) for start, stop, rule in own(text)),
        tokens(text),
        logins(text),
        private_keys(text),
        assigned_values(text),
        announced_values(text),
    )
