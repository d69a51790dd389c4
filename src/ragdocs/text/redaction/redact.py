"""Takes secrets out of a text before it is kept anywhere, and says what was taken and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.text.redaction.environment import Spellings, longest_first, spellings

# What secrets are known by is imported with the first text: a command that only reads has none.
if TYPE_CHECKING:
    from ragdocs.text.redaction.passes import Redaction
    from ragdocs.text.redaction.spans import Finding


class Redactor:
    """Knows the forms of tokens, the secrets of this environment and the user's own patterns."""

    __slots__ = ("_names", "_patterns", "_values")

    def __init__(
        self, environ: Mapping[str, str], patterns: Sequence[str] = (), origin: str = ""
    ) -> None:
        self._values = spellings(environ)
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        self._names: dict[str, str] = {}
        if not patterns:
            return
        from ragdocs.text.redaction.patterns import compiled

        suffix = f" of {origin}" if origin else ""
        for number, pattern in enumerate(patterns, 1):
            # Never by its text, which may be a secret.
            name = f"redaction pattern {number}{suffix}"
            rule = f"pattern-{number}"
            self._patterns.append((rule, compiled(pattern, name)))
            self._names[rule] = name

    def redact(self, text: str) -> Redaction:
        """Put a placeholder in the place of every secret; text without any comes back as it is."""
        from ragdocs.text.redaction.passes import redacted

        return redacted(text, self._own_matches)

    def source(self, finding: Finding) -> str:
        """Name what took a secret out: the user's pattern by its number and file, or the rule."""
        return self._names.get(finding.rule, finding.rule)

    def swallowed_by(self, text: str, redaction: Redaction) -> str:
        """Name the user's pattern that left nothing of a text but placeholders, or nothing."""
        from ragdocs.text.redaction.spans import without_placeholders

        own = [finding for finding in redaction.findings if finding.rule in self._names]
        if not own or not text.strip() or without_placeholders(redaction.text).strip():
            return ""
        return self.source(own[0])

    def _own_matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield what the user's patterns match, and the values that are secret here."""
        for rule, pattern in self._patterns:
            for match in pattern.finditer(text):
                if match[0]:
                    yield *match.span(), rule
        for value, rule in self._secrets():
            start = text.find(value)
            while start >= 0:
                stop = start + len(value)
                yield start, stop, rule
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
