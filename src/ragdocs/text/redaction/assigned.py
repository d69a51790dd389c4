"""Values that are secrets by the name before them: assigned, given to an option, or spoken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from ragdocs.system.patterns import later
from ragdocs.text.redaction.context import is_open
from ragdocs.text.redaction.look import SIGHT, is_secret
from ragdocs.text.redaction.names import QUALIFIERS, kind_of
from ragdocs.text.redaction.spans import NAMED, Span

# How far `value` may stand from the name it belongs to, and a word that qualifies a key.
_NEAR = 100
# How far before a token the address of a badge begins.
_BADGE_REACH = 60
# A value may stand in quotes. It is looked at before it is passed over: it can hold a name and a
# value of its own.
_AHEAD = r"(?P<quote>[bBrRuUfFL@$]{0,2}\\?[\"'`]|)(?=[^\s\"'`<>,;\\]{4})"
_ASSIGNED = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,100}+)\\?[\"'`\]*]{0,3}+"
    r"(?:[ \t]{1,4}(?:string|String|str)(?=[ \t]{0,8}=)"
    # A type; but in `login: password=` it is a name.
    r"|:[ \t]?(?!\w{0,20}?(?i:pass|pw|token|secret|key|auth|cred))[A-Za-z]{2,20}(?=[ \t]{0,8}=))?+"
    r"(?P<sign>[ \t]{0,20}+(?:[!?.+|:]{0,3}={1,3}>?|:|->|\u2192"
    r"|[(,](?=[ \t]{0,9}[\"'`])|(?<=[ \t])\|(?=[ \t]))"
    r"|>|[ \t](?:is|was|-|\u2013)(?=[ \t]))"
    r"\*{0,2}(?:(?<=>)\s{0,60}+|[ \t]{0,40}+(?:[|>][-+]?\n[ \t]{1,40}+|\n[ \t]{1,40}+(?=[\"']))?+)"
    + _AHEAD
)
_FLAG = later(r"-(?<![\w.-]-)-?(?P<name>[A-Za-z][\w-]{2,60}+)[ \t]{1,4}" + _AHEAD)
_VARIABLE = later(r"(?:ENV|set|setenv|setx)[ \t]{1,4}(?P<name>\w{3,80}+)[ \t]{1,4}" + _AHEAD)
_SPOKEN = re.compile(
    r"(?P<name>Bearer|bearer|Basic|basic|Token|token|ApiKey|Apikey|apikey|Api-Token|SSWS"
    r"|password|Password|PASSWORD)[ \t]{1,4}" + _AHEAD
)
# Only a sign of assignment makes a password of what might be a word.
_SIGNS = ("=", ":", ">")
_COMPARISONS = frozenset({"==", "!=", "===", "!=="})
_RUN = later(rf"[^\s\"'`<>,;\\]{{1,{SIGHT}}}+")
_REST = later(r"[^\s\"'`<>,;\\&]*+")
_NEXT_PARAMETER = later(r"&(?:[\w.-]{1,40}=|\Z)")
_ENTITY = later(r"&(?:[A-Za-z]{2,8}|#\d{1,5})\Z")
_NESTED = later(r"(?P<name>[\w.-]{2,100}+)[ \t]{0,4}[:=](?=[^\s=\"',;])")
_WORD_BEFORE = later(r"([A-Za-z]{2,20})[ _-]\Z")
_WORDS_ONLY = later(r"[^\W\d_]+(?:[^\w\s]{0,2}[^\W\d_]+)*+[^\w\s]{0,2}")
_NEXT_WORD = later(r"[ \t]+[^\W\d_]")
# The name of a name, whose value is called `value`.
_LABELS = frozenset({"name", "key", "id", "variable"})
_NOT_SECRET = frozenset({"", "label", "value"})
# Kinds whose placeholder has another name.
_RULE_NAMES = {"service": "token", "bare": "key"}

# A name before a value, and the kind of secret that the name promises.
_Candidate = tuple[re.Match[str], str]
_Judge = Callable[[str, str], bool]


class _Kinds(dict[str, str]):
    """Remembers what each name promises."""

    def __missing__(self, name: str) -> str:
        self[name] = kind = self._kind(name)
        return kind

    @staticmethod
    def _kind(name: str) -> str:
        if name == "PASS":
            # What a test runner prints before the name of a test.
            return "secret"
        plain = name.lower()
        if plain in _LABELS:
            return "label"
        if plain == "value":
            return "value"
        return kind_of(name)


def assigned_values(text: str) -> Iterator[Span]:
    """Yield values that follow a name which promises a secret."""
    kinds = _Kinds()
    # Text that repeats itself is judged once; the memory ends with this call.
    judge = lru_cache(maxsize=4_096)(is_secret)
    candidates = _assignments(text, kinds)
    yield from _secrets(text, candidates, kinds, judge)
    for pattern in (_FLAG, _VARIABLE, _SPOKEN):
        candidates = _followed(text, pattern, kinds)
        yield from _secrets(text, candidates, kinds, judge)


def _secrets(
    text: str,
    candidates: Iterator[_Candidate],
    kinds: _Kinds,
    judge: _Judge,
) -> Iterator[Span]:
    done = 0
    for match, kind in candidates:
        start = match.end()
        if kind in _NOT_SECRET or match.start() < done:
            continue
        if _is_nested(text, start, kinds):
            continue
        value, stop = _value(text, match)
        look = kind
        if kind == "password":
            if _is_prose(text, match, value, stop):
                continue
            if _is_spoken(match):
                look = "spoken"
        if text[stop : stop + 1] != "(" and judge(look, value):
            done = _end(text, start, stop)
            rule = _RULE_NAMES.get(kind, kind)
            yield Span(start, done, NAMED, rule)
        elif not match["quote"]:
            # No run of a text is judged twice.
            done = stop


def _followed(text: str, pattern: re.Pattern[str], kinds: _Kinds) -> Iterator[_Candidate]:
    """Yield every name of a pattern that a value follows without a sign between them."""
    for match in pattern.finditer(text):
        yield match, kinds[match["name"]]


def _assignments(text: str, kinds: _Kinds) -> Iterator[_Candidate]:
    """Yield every name that is given a value, and the kind of secret that it promises."""
    label: re.Match[str] | None = None
    for match in _ASSIGNED.finditer(text):
        kind = kinds[match["name"]]
        if not kind:
            continue
        start = match.start()
        if kind == "value" and label and _is_labelled(text, label.end(), start):
            kind = kinds[_value(text, label)[0]]
        elif kind == "label":
            label = match
            kind = ""
            if match["name"].lower() == "key":
                kind = _kind_of_key(text, start, kinds)
        if not _is_seen(text, start):
            yield match, kind


def _is_labelled(text: str, label_end: int, start: int) -> bool:
    """Tell whether the word `value` belongs to the label before it."""
    return start - label_end < _NEAR and ">" not in text[label_end:start]


def _is_seen(text: str, start: int) -> bool:
    """Tell whether a name is part of a placeholder or of a badge's address, made to be seen."""
    if text.endswith(("redacted:", ":env:"), 0, start):
        return True
    return "badge" in text[max(0, start - _BADGE_REACH) : start]


def _kind_of_key(text: str, start: int, kinds: _Kinds) -> str:
    """Tell what the word `key` alone promises, by the words before it on its line."""
    mark = text[start - 1 : start]
    if mark in {" ", "_", "-"}:
        before = _WORD_BEFORE.search(text, max(0, start - 22), start)
        if before and before[1].lower() in QUALIFIERS:
            return kinds[f"{before[1]}_key"]
    before_key = text[max(0, start - _NEAR) : start]
    line = before_key.rpartition("\n")[2]
    if mark in {"?", "&"} or not is_open(line):
        return "bare"
    return ""


def _is_nested(text: str, start: int, kinds: _Kinds) -> bool:
    """Tell whether a value begins with a name that has a value and promises a secret."""
    nested = _NESTED.match(text, start)
    return nested is not None and kinds[nested["name"]] not in _NOT_SECRET


def _is_spoken(match: re.Match[str]) -> bool:
    """Tell whether a value stands in a sentence or a table, not behind a sign of assignment."""
    if match.re is _ASSIGNED:
        return not match["sign"].endswith(_SIGNS)
    return match.re is _SPOKEN


def _is_prose(text: str, match: re.Match[str], value: str, stop: int) -> bool:
    """Tell a word of a sentence, or one that a program compares with, from a password."""
    if not _WORDS_ONLY.fullmatch(value):
        return False
    if match.re is _ASSIGNED and match["sign"].strip() in _COMPARISONS:
        return True
    if not match["quote"] and _NEXT_WORD.match(text, stop):
        return True
    return not value.isascii()


def _value(text: str, match: re.Match[str]) -> tuple[str, int]:
    """Return as much of a value as tells what it is, and where that ends."""
    start = match.end()
    mark = match["quote"][-1:]
    if mark:
        stop = text.find(mark, start, start + 10 * SIGHT)
        if stop >= 0 and text.find("\n", start, stop) < 0:
            stop -= text[stop - 1] == "\\"
            return text[start:stop], stop
    run = _RUN.match(text, start)
    if run is None:
        return "", start
    written = run[0]
    if text[run.end() : run.end() + 1] == ";":
        # A character of HTML, as in string&nbsp;, ends the value.
        written = _ENTITY.sub("", written)
    first_parameter = _NEXT_PARAMETER.split(written, maxsplit=1)[0]
    value = first_parameter.rstrip(")]}.|*:")
    return value, start + len(value)


def _end(text: str, start: int, stop: int) -> int:
    """Return where a value ends of which no more than `SIGHT` characters were judged."""
    if stop - start < SIGHT:
        return stop
    rest = _REST.match(text, stop)
    if rest is None:
        return stop
    return rest.end()
