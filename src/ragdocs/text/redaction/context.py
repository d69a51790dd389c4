"""What the words before a random value say about it.

That it is a secret, that it may be seen, or nothing.
"""

from __future__ import annotations

import re

from ragdocs.text.redaction.rules import (
    ABOUT,
    DENSE_NAMED,
    KEY_NUMBER,
    PUBLIC,
    is_dense,
    is_fake,
    is_mixed,
    is_reference,
    longest_run,
    words,
)

# How far a word may stand before the value that it announces.
_CLOSE = 60
# Words that make a secret of a random value after them; the last one names it.
_ANNOUNCING = re.compile(
    r"(?i)(?P<password>passw|passphrase|\bpwd\b|\bpw\b)"
    r"|(?P<token>token|bearer)"
    r"|(?P<secret>secret|credential|\bcreds?\b|api[ _-]?key)"
    r"|(?P<key>key|\bapi\b|(?-i:ACCESS|PRIVATE)|\baccess\b|\bprivate\b)"
)
# The same word glued to the value, as in shop-token-<value>.
_GLUED = re.compile(
    r"(?i)(?:secret|token|key|access|private)[a-z0-9]{0,20}[-_](?=[a-z0-9-]{20,}\Z)"
)
# Words that say that a random value after them may be seen.
_OPEN = re.compile(
    r"(?i)sha-?\d|md5|hash|digest|commit|checksum|revision|fingerprint|public|\bpub|cert|integrity"
    r"|image|cache|u?uid|guid|(?-i:[a-z]I|\bi|\bI|_i)ds?\b|_ID\b|identifier|ssh-|://|\bkid\b|etag"
    r"|version|nonce|key_?frame|signature|[cx]srf|authenticity|alphabet|chars|\bENC\["
)
_LAST_NAME = re.compile(r"[\w.-]{1,100}+[^\w]{0,12}\Z")
_HEX = re.compile(r"(?i)[0-9a-f-]+")

# What no word announces must be more random still, and of a length that tokens have: lines of
# encoded files are longer, and identifiers of one case with digits are common up to 26 characters.
_DENSE_ALONE = 2.6
_LEAST_ALONE = 22
_LEAST_OF_ONE_CASE = 32
_MOST_ALONE = 63
# The longest prefix of a token; a longer one is the word that names a numbered thing.
_LONGEST_PREFIX = 5


def announced(before: str, value: str) -> str:
    """Name the secret that a random value is, by the words before it; empty if it is none."""
    if not (is_dense(value, DENSE_NAMED) or is_mixed(value)):
        return ""
    if is_open(before) or _names_something_open(before) or is_fake(value) or is_reference(value):
        return ""
    kinds = [match.lastgroup or "" for match in _ANNOUNCING.finditer(before[-_CLOSE:])]
    if not kinds:
        return "random" if _is_random_alone(value) and not before.endswith(":") else ""
    is_number = kinds[-1] == "key" and KEY_NUMBER.fullmatch(value)
    return "" if is_number else kinds[-1]


def own_name(value: str) -> int:
    """Return the length of the name that a value carries in front of itself.

    0 if it carries none.
    """
    glued = _GLUED.search(value)
    return glued.end() if glued else 0


def is_open(before: str) -> bool:
    """Tell whether the words before a value say that it may be seen."""
    return _OPEN.search(before) is not None


def _names_something_open(before: str) -> bool:
    """Tell whether the name right before a value speaks of something that may be seen."""
    name = _LAST_NAME.search(before)
    parts = words(name[0]) if name else []
    return bool(parts) and (parts[-1] in ABOUT or not PUBLIC.isdisjoint(parts))


def _is_random_alone(value: str) -> bool:
    """Tell a value that nothing but chance explains."""
    run = longest_run(value)
    is_of_one_case = run.islower() or run.isupper()
    least = _LEAST_OF_ONE_CASE if is_of_one_case else _LEAST_ALONE
    if not least <= len(run) <= _MOST_ALONE or _HEX.fullmatch(run):
        return False
    is_part = "/" in value or "+" in value or value.index(run) > _LONGEST_PREFIX
    return not is_part and is_dense(value, _DENSE_ALONE)
