"""Changes without the secrets that somebody put into them."""

from __future__ import annotations

from dataclasses import replace

from ragdocs.errors import ValidationError
from ragdocs.text import frontmatter as metadata
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import Change, Put


def clean(redactor: Redactor, change: Change) -> tuple[Change, tuple[str, ...]]:
    """Take secrets out of what is to be written; tell what was taken and from which line."""
    if not isinstance(change, Put):
        return change, ()
    if findings := redactor.redact(change.path).findings:
        source = redactor.source(findings[0])
        raise ValidationError(
            f"the name of the file holds a secret, says {source}", "Choose another name"
        )
    text = redactor.redact(change.text)
    note = redactor.redact(change.note)
    if text.findings:
        _refuse_swallowed(redactor, metadata.split(change.text)[1])
    if note.findings:
        _refuse_swallowed(redactor, change.note)
    removed = tuple(f"{finding.rule} in line {finding.line}" for finding in text.findings)
    removed += tuple(
        f"{finding.rule} in line {finding.line} of the entry" for finding in note.findings
    )
    return replace(change, text=text.text, note=note.text), removed


def _refuse_swallowed(redactor: Redactor, text: str) -> None:
    """Refuse a text of which a pattern of the configuration would leave nothing."""
    if source := redactor.swallowed_by(text, redactor.redact(text)):
        hint = "Nothing was written. Make the pattern match the secret alone"
        raise ValidationError(
            f"nothing would be left of the text: {source} matches all of it", hint
        )
