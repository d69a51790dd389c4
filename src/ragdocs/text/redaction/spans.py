"""The stretches of a text that are secrets, and the placeholders that are put in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ragdocs.text.redaction.block import block_end
from ragdocs.text.redaction.look import SIGHT

# How much a name may be doubted: the user's own is the surest, then an issuer's, then what the
# words around a value say. A placeholder is no secret at all.
PLACEHOLDER = 0
OWN = 1
ISSUED = 2
LOGIN = 3
NAMED = 4
NEARBY = 5

_RULE_NAME = r"(?:env:\w{1,100}+|[a-z]{2,20}+(?:-[a-z0-9]{1,20}+){0,3})(?::\d{1,3})?"
_PLACEHOLDERS = re.compile(rf"\[redacted:{_RULE_NAME}\]|\(redacted:{_RULE_NAME}\)")
# A value that is a secret once is a secret wherever it stands.
_LEAST_COPY = 16
_COPY = re.compile(rf"[\w+/.~@%-]{{{_LEAST_COPY},{SIGHT}}}+=*+")
_LINK_CLOSE = re.compile(r"[^\[\]\n]{0,200}+\]([(\[\]])")
# How far before a secret the text of a link may begin.
_LINK_REACH = 100

has_digit = re.compile(r"\d").search


@dataclass(frozen=True, slots=True)
class Finding:
    """What kind of secret stood on which line; never the secret."""

    rule: str
    line: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The offsets of a secret, how much its name may be doubted, and the rule that found it."""

    start: int
    stop: int
    doubt: int
    rule: str


def joined(text: str, spans: Iterable[Span]) -> list[Span]:
    """Join what overlaps under its surest name; leave out what touches a placeholder."""
    candidates = list(spans)
    if not candidates:
        return []
    for match in _PLACEHOLDERS.finditer(text):
        candidates.append(Span(*match.span(), PLACEHOLDER, ""))
    separate: list[Span] = []
    for span in sorted(candidates):
        if separate and span.start < separate[-1].stop:
            separate[-1] = _union(separate[-1], span)
        else:
            separate.append(span)
    return [span for span in separate if span.rule]


def _union(first: Span, second: Span) -> Span:
    surest = first
    if second.doubt < first.doubt:
        surest = second
    stop = max(first.stop, second.stop)
    return Span(first.start, stop, surest.doubt, surest.rule)


def with_copies(text: str, spans: list[Span], rules: dict[str, str]) -> list[Span]:
    """Add every other occurrence of a random value that is a secret once in the text.

    `rules` maps the values of this and earlier passes to their rules; new ones are added to it.
    """
    for span in spans:
        if span.doubt <= OWN:
            continue
        value = text[span.start : span.stop][:SIGHT]
        if len(value) >= _LEAST_COPY and has_digit(value):
            rules.setdefault(value, span.rule)
    if not rules:
        return spans
    copies = []
    for match in _COPY.finditer(text):
        start = match.start()
        run = match[0]
        for value in (run, run.rstrip(".")):
            if value in rules:
                stop = start + len(value)
                copies.append(Span(start, stop, NAMED, rules[value]))
    return joined(text, chain(spans, copies))


def replaced(
    text: str,
    spans: list[Span],
    numbers: Sequence[int],
    findings: list[Finding],
) -> tuple[str, Sequence[int]]:
    """Return the text with placeholders, and for each of its lines the number it had at first.

    What was replaced is added to `findings`.
    """
    pieces: list[str] = []
    dropped: set[int] = set()
    block_stop = block_end(text)
    done = line = 0
    for span in spans:
        line += text.count("\n", done, span.start)
        findings.append(Finding(span.rule, numbers[line]))
        pieces.append(text[done : span.start])
        pieces.append(_placeholder(text, span, block_stop))
        last_line = line + text.count("\n", span.start, span.stop)
        dropped.update(range(line + 1, last_line + 1))
        line = last_line
        done = span.stop
    pieces.append(text[done:])
    if dropped:
        numbers = [number for index, number in enumerate(numbers) if index not in dropped]
    return "".join(pieces), numbers


def without_placeholders(text: str) -> str:
    """Return what is left of a redacted text besides placeholders."""
    return _PLACEHOLDERS.sub("", text)


def _placeholder(text: str, span: Span, block_stop: int) -> str:
    # In YAML and in the text of a link, a bracket would begin a list or another link.
    if span.start < block_stop or _is_in_link(text, span):
        return f"(redacted:{span.rule})"
    return f"[redacted:{span.rule}]"


def _is_in_link(text: str, span: Span) -> bool:
    """Tell whether a span is part of the text of a link, as in [[name]] or [name](target)."""
    reach = max(0, span.start - _LINK_REACH)
    opening = max(text.rfind(mark, reach, span.start) for mark in "[]\n")
    if opening < 0 or text[opening] != "[":
        return False
    closing = _LINK_CLOSE.match(text, span.stop)
    if closing is None:
        return False
    return closing[1] != "]" or text[opening - 1 : opening] == "["
