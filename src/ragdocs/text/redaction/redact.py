"""Takes secrets out of a text before it is kept anywhere, and says what was taken and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.text.redaction.assigned import assigned_values
from ragdocs.text.redaction.block import has_block, mended_block
from ragdocs.text.redaction.context import announced_values
from ragdocs.text.redaction.environment import Spellings, longest_first, spellings
from ragdocs.text.redaction.forms import logins, private_keys, tokens
from ragdocs.text.redaction.patterns import compiled
from ragdocs.text.redaction.spans import (
    OWN,
    Finding,
    Span,
    joined,
    replaced,
    with_copies,
    without_placeholders,
)

# A replacement can lay bare what its neighbour hid; nothing sane needs more than two passes.
_PASSES = 6


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and what was taken out of it, in order."""

    text: str
    findings: tuple[Finding, ...] = ()


class Redactor:
    """Knows the forms of tokens, the secrets of this environment and the user's own patterns."""

    __slots__ = ("_names", "_patterns", "_values")

    def __init__(
        self, environ: Mapping[str, str], patterns: Sequence[str] = (), origin: str = ""
    ) -> None:
        self._values = spellings(environ)
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        self._names: dict[str, str] = {}
        suffix = f" of {origin}" if origin else ""
        for number, pattern in enumerate(patterns, 1):
            # Never by its text, which may be a secret.
            name = f"redaction pattern {number}{suffix}"
            rule = f"pattern-{number}"
            self._patterns.append((rule, compiled(pattern, name)))
            self._names[rule] = name

    def redact(self, text: str) -> Redaction:
        """Put a placeholder in the place of every secret; text without any comes back as it is."""
        redaction = self._redacted(text)
        if not redaction.findings or not has_block(text):
            return redaction
        # A block that no longer says the same is written anew, and looked at once more.
        mended = mended_block(text, redaction.text, lambda leaf: self._redacted(leaf).text)
        if not mended:
            return redaction
        return Redaction(self._redacted(mended).text, redaction.findings)

    def source(self, finding: Finding) -> str:
        """Name what took a secret out: the user's pattern by its number and file, or the rule."""
        return self._names.get(finding.rule, finding.rule)

    def swallowed_by(self, text: str, redaction: Redaction) -> str:
        """Name the user's pattern that left nothing of a text but placeholders, or nothing."""
        own = [finding for finding in redaction.findings if finding.rule in self._names]
        if not own or not text.strip() or without_placeholders(redaction.text).strip():
            return ""
        return self.source(own[0])

    def _redacted(self, text: str) -> Redaction:
        findings: list[Finding] = []
        numbers: Sequence[int] = range(1, text.count("\n") + 2)
        rules: dict[str, str] = {}
        for _ in range(_PASSES):
            spans = joined(text, self._spans(text))
            if not spans:
                break
            spans = with_copies(text, spans, rules)
            text, numbers = replaced(text, spans, numbers, findings)
        findings.sort(key=lambda finding: finding.line)
        return Redaction(text, tuple(findings))

    def _spans(self, text: str) -> Iterator[Span]:
        return chain(
            self._own_spans(text),
            tokens(text),
            logins(text),
            private_keys(text),
            assigned_values(text),
            announced_values(text),
        )

    def _own_spans(self, text: str) -> Iterator[Span]:
        """Yield what the user's patterns match, and the values that are secret here."""
        for rule, pattern in self._patterns:
            for match in pattern.finditer(text):
                if match[0]:
                    yield Span(*match.span(), OWN, rule)
        for value, rule in self._secrets():
            start = text.find(value)
            while start >= 0:
                stop = start + len(value)
                yield Span(start, stop, OWN, rule)
                start = text.find(value, stop)

    def _secrets(self) -> Spellings:
        """Return the values that are secret by their variables."""
        return self._values


class CallersRedactor(Redactor):
    """A redactor of a server for several callers: it knows the secrets of the current one, too."""

    __slots__ = ("_by_caller",)

    def __init__(
        self, environ: Mapping[str, str], patterns: Sequence[str] = (), origin: str = ""
    ) -> None:
        super().__init__(environ, patterns, origin)
        # Gone with the caller.
        self._by_caller: WeakKeyDictionary[Caller, Spellings] = WeakKeyDictionary()

    def _secrets(self) -> Spellings:
        current = caller.current()
        if not current.secrets:
            return self._values
        values = self._by_caller.get(current)
        if values is None:
            own = dict(spellings(current.secrets))
            values = longest_first(own | dict(self._values))
            self._by_caller[current] = values
        return values
