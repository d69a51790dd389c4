"""Random values that no sign joins to a name: the words before them on their line tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragdocs.system.patterns import later
from ragdocs.text.redaction.look import (
    DENSE_NAMED,
    KEY_NUMBER,
    is_dense,
    is_fake,
    is_mixed,
    is_reference,
    longest_run,
)
from ragdocs.text.redaction.names import is_public, words
from ragdocs.text.redaction.spans import NEARBY, Span, has_digit

# A run long enough to be random without a sign of assignment before it.
_LONE = later(r"(?<![\w+/=.%~&#?@$-])[A-Za-z0-9_+/-]{16,200}+=*+(?![\w.%@])", re.ASCII)
# How much of a line is read before a value.
_BEFORE = 100
# What may stand before the first word of a line.
_INDENT = " \t\r\"'`>*#|-"
# How a line ends whose value is on the next.
_LEADS = (":", "=", ">", "KEY", "TOKEN", "SECRET", "PRIVATE")
# How far a word may stand before the value that it announces.
_CLOSE = 60
# Words that make a secret of a random value after them; the last one names it.
_ANNOUNCING = later(
    r"(?i)(?P<password>passw|passphrase|\bpwd\b|\bpw\b)"
    r"|(?P<token>token|bearer)"
    r"|(?P<secret>secret|credential|\bcreds?\b|api[ _-]?key)"
    r"|(?P<key>key|\bapi\b|(?-i:ACCESS|PRIVATE)|\baccess\b|\bprivate\b)"
)
# The same word glued to the value, as in shop-token-<value>.
_GLUED = later(r"(?i)(?:secret|token|key|access|private)[a-z0-9]{0,20}[-_](?=[a-z0-9-]{20,}\Z)")
# Words that say that a random value after them may be seen.
_OPEN = later(
    r"(?i)sha-?\d|md5|hash|digest|commit|checksum|revision|fingerprint|public|\bpub|cert|integrity"
    r"|image|cache|u?uid|guid|(?-i:[a-z]I|\bi|\bI|_i)ds?\b|_ID\b|identifier|ssh-|://|\bkid\b|etag"
    r"|version|nonce|key_?frame|signature|[cx]srf|authenticity|alphabet|chars|\bENC\["
)
_LAST_NAME = later(r"[\w.-]{1,100}+[^\w]{0,12}\Z")
_HEX = later(r"(?i)[0-9a-f-]+")

# What no word announces must be more random still, and of a length that tokens have: lines of
# encoded files are longer, and identifiers of one case with digits are common up to 26 characters.
_DENSE_ALONE = 2.6
_LEAST_ALONE = 22
_LEAST_OF_ONE_CASE = 32
_MOST_ALONE = 63
# The longest prefix of a token; a longer one is the word that names a numbered thing.
_LONGEST_PREFIX = 5

_has_letter = re.compile(r"[A-Za-z]").search


def announced_values(text: str) -> Iterator[Span]:
    """Yield random values that the words before them, or chance alone, make secrets."""
    for match in _LONE.finditer(text):
        if not has_digit(match[0]) or not _has_letter(match[0]):
            continue
        start = match.start() + own_name(match[0])
        stop = match.end()
        rule = announced(_words_before(text, start), text[start:stop])
        if rule and text[stop : stop + 1] != "(":
            yield Span(start, stop, NEARBY, rule)


def announced(before: str, value: str) -> str:
    """Name the secret that a random value is, by the words before it; empty if it is none."""
    if not (is_dense(value, DENSE_NAMED) or is_mixed(value)):
        return ""
    if is_open(before) or _names_something_open(before) or is_fake(value) or is_reference(value):
        return ""
    kind = ""
    for match in _ANNOUNCING.finditer(before[-_CLOSE:]):
        kind = match.lastgroup or ""
    if not kind and not before.endswith(":") and _is_random_alone(value):
        return "random"
    if kind == "key" and KEY_NUMBER.fullmatch(value):
        return ""
    return kind


def own_name(value: str) -> int:
    """Return the length of the name that a value carries in front of itself."""
    glued = _GLUED.search(value)
    if not glued:
        return 0
    return glued.end()


def is_open(before: str) -> bool:
    """Tell whether the words before a value say that it may be seen."""
    return _OPEN.search(before) is not None


def _words_before(text: str, start: int) -> str:
    """Return the words before a value: of its line, or of the line above if it begins its line."""
    *above, line = text[max(0, start - _BEFORE) : start].split("\n")
    if line.strip(_INDENT):
        return line
    for heading in reversed(above):
        if heading.strip():
            is_lead = heading.rstrip().endswith(_LEADS)
            return heading if is_lead else ""
    return ""


def _names_something_open(before: str) -> bool:
    """Tell whether the name right before a value speaks of something that may be seen."""
    name = _LAST_NAME.search(before)
    if not name:
        return False
    parts = words(name[0])
    return bool(parts) and is_public(parts)


def _is_random_alone(value: str) -> bool:
    """Tell a value that nothing but chance explains."""
    run = longest_run(value)
    least = _LEAST_ALONE
    if run.islower() or run.isupper():
        least = _LEAST_OF_ONE_CASE
    if not least <= len(run) <= _MOST_ALONE or _HEX.fullmatch(run):
        return False
    is_part = "/" in value or "+" in value or value.index(run) > _LONGEST_PREFIX
    return not is_part and is_dense(value, _DENSE_ALONE)
