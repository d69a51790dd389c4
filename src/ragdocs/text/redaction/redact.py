"""Takes secrets out of a text before it is kept anywhere, and says what was taken and where."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import chain
from json import dumps
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.errors import ConfigError
from ragdocs.text.redaction.block import block_end, has_block, mended_block
from ragdocs.text.redaction.context import announced, is_open, own_name
from ragdocs.text.redaction.rules import (
    FORMATS,
    QUALIFIERS,
    format_name,
    is_chosen,
    is_fake,
    is_random,
    is_reference,
    is_secret,
    is_token,
    kind_of,
)

# A replacement can lay bare what its neighbour hid; nothing sane needs more than two passes.
_PASSES = 6
_RULE_NAME = r"(?:env:\w{1,100}+|[a-z]{2,20}+(?:-[a-z0-9]{1,20}+){0,3})(?::\d{1,3})?"
_PLACEHOLDER = re.compile(rf"\[redacted:{_RULE_NAME}\]|\(redacted:{_RULE_NAME}\)")
_LINK_CLOSE = re.compile(r"[^\[\]\n]{0,200}+\]([(\[\]])")
# Shorter values of environment variables stand in ordinary text by chance.
_LEAST_VALUE = 8
# What is looked at to decide whether a value is a secret; what is taken out may be longer.
_SIGHT = 400
# How far `value` may stand from the name it belongs to.
_NEAR = 100

_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:"
)
_BLOCK_END = re.compile(
    r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC:[ \t]*+[0-9a-fA-F]*+"
)
# The longest key in use, RSA of 16,384 bits, has 12,700 characters.
_BLOCK_LIMIT = 20_000
# What is left of a key whose end was cut off.
_BLOCK_LINES = re.compile(
    r"(?:[\s>#*|\"']|\\[nr])*+(?:[A-Za-z0-9+/=]{20,}+(?:[\s>#*|\"',]|\\[nr])*+)++"
)
_MATERIAL = re.compile(r"[A-Za-z0-9+/=]{20,}+")
# The shortest private key, of Ed25519, has 64 characters; less is an example that somebody cut
# short.
_LEAST_MATERIAL = 60

_ADDRESS = re.compile(
    r"://[^\s/@:\"'`<>\\]{0,200}+:(?P<value>[^\s/\"'`<>\\]{3,200})@(?P<host>[\w.-]{0,80}+)"
)
_ADDRESS_TOKEN = re.compile(r"://(?P<value>[\w.~%-]{16,300}+)(?::x-oauth-basic)?@")
_LOGINS = (
    re.compile(
        r"-(?<![\w-]-)(?:u|-(?:proxy-)?user)[ =]{0,2}[\"']?[^\s\"':/]{0,100}+[\"']?:[\"']?(?P<value>[^\s\"'`]{3,200}+)"
    ),
    re.compile(r"login[ \t]{1,9}\S{1,80}+\s{1,9}password[ \t]{1,9}(?P<value>\S{3,200}+)"),
    re.compile(
        r"[Ii](?:dentified|DENTIFIED)[ \t]{1,4}(?:(?i:with)[ \t]{1,4}\w{1,40}+[ \t]{1,4})?(?i:by)[ \t]{1,4}"
        r"\\?[\"']?(?P<value>[^\s\"'`;)\\]{3,200}+)"
    ),
    re.compile(
        r"ConvertTo-SecureString[ \t]{1,4}(?:-[A-Za-z]{1,20}[ \t]{1,4}){0,3}"
        r"\\?[\"']?(?P<value>[^\s\"'`\\]{3,200}+)"
    ),
    re.compile(r"(?:mysql|mariadb|sshpass)[^\n|]{0,80}? -p ?[\"']?(?P<value>[^\s\"'`]{3,200}+)"),
)

# What a system keeps of a password: enough to guess a weak one.
_HASHES = re.compile(
    r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}(?![\w./])"
    r"|\$[1568]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,20}\$[./A-Za-z0-9]{20,}+"
    r"|\$argon2(?:id|i|d)\$[\w=,$]{8,60}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{20,}+"
    r"|\$krb5asrep\$\d\d\$[^\s$]{8,200}\$[0-9a-f]{32,}+"
)
# A value may stand in quotes. It is looked at before it is passed over: it can hold a name and a
# value of its own.
_AHEAD = r"(?P<quote>[bBrRuUfFL@$]{0,2}\\?[\"'`]|)(?=[^\s\"'`<>,;\\]{4})"
_ASSIGNED = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,100}+)\\?[\"'`\]*]{0,3}+"
    r"(?:[ \t]{1,4}(?:string|String|str)(?=[ \t]{0,8}=)"
    # A type; but in `login: password=` it is a name.
    r"|:[ \t]?(?!\w{0,20}?(?i:pass|pw|token|secret|key|auth|cred))[A-Za-z]{2,20}(?=[ \t]{0,8}=))?+"
    r"(?P<sign>[ \t]{0,20}+(?:[!?.+|:]{0,3}={1,3}>?|:|->|\u2192|[(,](?=[ \t]{0,9}[\"'`])|(?<=[ \t])\|(?=[ \t]))"
    r"|>|[ \t](?:is|was|-|\u2013)(?=[ \t]))"
    r"\*{0,2}(?:(?<=>)\s{0,60}+|[ \t]{0,40}+(?:[|>][-+]?\n[ \t]{1,40}+|\n[ \t]{1,40}+(?=[\"']))?+)"
    + _AHEAD
)
_FLAG = re.compile(r"-(?<![\w.-]-)-?(?P<name>[A-Za-z][\w-]{2,60}+)[ \t]{1,4}" + _AHEAD)
_VARIABLE = re.compile(r"(?:ENV|set|setenv|setx)[ \t]{1,4}(?P<name>\w{3,80}+)[ \t]{1,4}" + _AHEAD)
_SPOKEN = re.compile(
    r"(?P<name>Bearer|bearer|Basic|basic|Token|token|ApiKey|Apikey|apikey|Api-Token|SSWS"
    r"|password|Password|PASSWORD)[ \t]{1,4}" + _AHEAD
)
# Only a sign of assignment makes a password of what might be a word.
_SIGNS = ("=", ":", ">")
_RUN = re.compile(rf"[^\s\"'`<>,;\\]{{1,{_SIGHT}}}+")
_REST = re.compile(r"[^\s\"'`<>,;\\&]*+")
_NEXT_PARAMETER = re.compile(r"&(?:[\w.-]{1,40}=|\Z)")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,5})\Z")
_NESTED = re.compile(r"(?P<name>[\w.-]{2,100}+)[ \t]{0,4}[:=](?=[^\s=\"',;])")
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,20})[ _-]\Z")
# The name of a name, whose value is called `value`.
_LABELS = frozenset({"name", "key", "id", "variable"})
_NOT_SECRET = frozenset({"", "label", "value"})
# Kinds whose placeholder shows another name.
_SHOWN = {"service": "token", "bare": "key"}

# A value that is a secret once is a secret wherever it stands.
_LEAST_COPY = 16
_COPY = re.compile(rf"[\w+/.~@%-]{{{_LEAST_COPY},{_SIGHT}}}+=*+")
# A run long enough to be random without a sign of assignment before it.
_LONE = re.compile(r"(?<![\w+/=.%~&#?@$-])[A-Za-z0-9_+/-]{16,200}+=*+(?![\w.%@])", re.ASCII)
_WORDS_ONLY = re.compile(r"[^\W\d_]+(?:[^\w\s]{0,2}[^\W\d_]+)*+[^\w\s]{0,2}")
_NEXT_WORD = re.compile(r"[ \t]+[^\W\d_]")
_COMPARISONS = frozenset({"==", "!=", "===", "!=="})
_INDENT = " \t\r\"'`>*#|-"
# How a line ends whose value is on the next.
_LEADS = (":", "=", ">", "KEY", "TOKEN", "SECRET", "PRIVATE")
_has_digit = re.compile(r"\d").search
_has_letter = re.compile(r"[A-Za-z]").search

# The most steps that a user's pattern may take at one place of a text.
_STEPS = 1_000
_LONGEST_PATTERN = 500
_UNBOUNDED = float("inf")
# The spellings of secrets with the name of their rule, the longest first.
_Spellings = tuple[tuple[str, str], ...]
# What people and agents write every day. A pattern that takes more than this share of it would take
# everything.
_PROBE = """\
---
type: plan
status: active
tags: [auth, sessions]
created_at: 2026-02-04T14:30:52Z
---

# Sessions instead of tokens

We chose sessions over JWT because they can be revoked at once; see [[src/auth/login.py]] and docs/auth-plan.md.
The old code kept 3 retries and a timeout of 250 ms, which was too short on slow networks:

- `refresh_token(user_id, 3600)` returned None after the 2nd call
- commit 3f2a9b8c7d6e changed MAX_RETRIES = 5 in config.toml

Ask Ada <ada@example.org> before 2026-05-01. Next: write the migration, then remove `legacy_auth.py` (issue #4711).
Die Größe der Tabelle ist noch offen. 次の手順を確認する。
"""
_LARGEST_SHARE = 0.25
_ORDINARY = re.compile(r"(?s)[A-Za-z]{0,15}|[\d.,:_-]*|(?:~|\.{0,2}/|[A-Za-z]:\\).*|\w+://[^@]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """What kind of secret stood on which line; never the secret."""

    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and what was taken out of it, in order."""

    text: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    stop: int
    # The surest name of a place wins: the user's own, then an issuer's, then what the words around
    # it say.
    doubt: int
    rule: str


class Redactor:
    """Knows what is secret here.

    The forms of tokens, this environment's values, the user's own patterns.
    """

    __slots__ = ("_names", "_patterns", "_values")

    def __init__(
        self, environ: Mapping[str, str], patterns: Sequence[str] = (), origin: str = ""
    ) -> None:
        self._values = _spellings(environ)
        place = f" of {origin}" if origin else ""
        # Never by their text, which may be a secret.
        names = [f"redaction pattern {number}{place}" for number in range(1, len(patterns) + 1)]
        self._patterns = tuple(map(_compiled, patterns, names))
        self._names = {f"pattern-{number}": name for number, name in enumerate(names, 1)}

    def redact(self, text: str) -> Redaction:
        """Put a placeholder in the place of every secret; text without any comes back as it is."""
        redaction = self._redacted(text)
        if not redaction.findings or not has_block(text):
            return redaction
        # A block that no longer says the same is written anew, and looked at once more.
        mended = mended_block(text, redaction.text, lambda leaf: self._redacted(leaf).text)
        return Redaction(self._redacted(mended).text, redaction.findings) if mended else redaction

    def _redacted(self, text: str) -> Redaction:
        findings: list[Finding] = []
        numbers: Sequence[int] = range(1, text.count("\n") + 2)
        known: dict[str, str] = {}
        for _ in range(_PASSES):
            spans = _merged(text, chain(self._own(text), self._shaped(text)))
            if not spans:
                break
            spans = _with_copies(text, spans, known)
            text, numbers = _replaced(text, spans, numbers, findings)
        return Redaction(text, tuple(sorted(findings, key=lambda finding: finding.line)))

    def source(self, finding: Finding) -> str:
        """Name what took a secret out: the user's pattern by its number and file, or the rule."""
        return self._names.get(finding.rule, finding.rule)

    def swallowed_by(self, text: str, redaction: Redaction) -> str:
        """Name the user's pattern that left nothing of a text but placeholders, or nothing."""
        own = [finding for finding in redaction.findings if finding.rule in self._names]
        if not own or not text.strip() or _PLACEHOLDER.sub("", redaction.text).strip():
            return ""
        return self.source(own[0])

    @staticmethod
    def _shaped(text: str) -> Iterator[_Span]:
        return chain(_tokens(text), _logins(text), _blocks(text), _named(text), _nearby(text))

    def _own(self, text: str) -> Iterator[_Span]:
        for number, pattern in enumerate(self._patterns, 1):
            yield from (
                _Span(*match.span(), 1, f"pattern-{number}")
                for match in pattern.finditer(text)
                if match[0]
            )
        for value, rule in self._secrets():
            start = text.find(value)
            while start >= 0:
                yield _Span(start, start + len(value), 1, rule)
                start = text.find(value, start + len(value))

    def _secrets(self) -> _Spellings:
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
        self._by_caller: WeakKeyDictionary[Caller, _Spellings] = WeakKeyDictionary()

    def _secrets(self) -> _Spellings:
        asking = caller.current()
        if not asking.secrets:
            return self._values
        values = self._by_caller.get(asking)
        if values is None:
            own = dict(_spellings(asking.secrets))
            values = _longest_first(own | dict(self._values))
            self._by_caller[asking] = values
        return values


def secret_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment whose values must not be kept."""
    return {name: value for name, value in environ.items() if _is_secret_variable(name, value)}


def _merged(text: str, spans: Iterator[_Span]) -> list[_Span]:
    """Join what overlaps under its surest name.

    And leave placeholders and what touches them alone.
    """
    found = sorted(spans)
    if not found:
        return []
    kept = (_Span(*match.span(), 0, "") for match in _PLACEHOLDER.finditer(text))
    merged: list[_Span] = []
    for span in sorted(chain(found, kept)):
        if merged and span.start < merged[-1].stop:
            last = merged.pop()
            surest = min(last, span, key=lambda each: each.doubt)
            merged.append(_Span(last.start, max(last.stop, span.stop), surest.doubt, surest.rule))
        else:
            merged.append(span)
    return [span for span in merged if span.rule]


def _with_copies(text: str, spans: list[_Span], known: dict[str, str]) -> list[_Span]:
    """Add every further place of a random value that is a secret at one place of the text."""
    for span in spans:
        value = text[span.start : min(span.stop, span.start + _SIGHT)]
        if span.doubt > 1 and len(value) >= _LEAST_COPY and _has_digit(value):
            known.setdefault(value, span.rule)
    if not known:
        return spans
    copies = (
        _Span(match.start(), match.start() + len(value), 4, known[value])
        for match in _COPY.finditer(text)
        for value in (match[0], match[0].rstrip("."))
        if value in known
    )
    return _merged(text, chain(spans, copies))


def _replaced(
    text: str, spans: list[_Span], numbers: Sequence[int], findings: list[Finding]
) -> tuple[str, Sequence[int]]:
    """Return the text with placeholders.

    And for each of its lines the number that it had at first.
    """
    pieces: list[str] = []
    dropped: set[int] = set()
    block_stop = block_end(text)
    done = line = 0
    for span in spans:
        line += text.count("\n", done, span.start)
        findings.append(Finding(span.rule, numbers[line]))
        # In YAML and in the text of a link, a bracket would begin a list or another link.
        has_meaning = span.start < block_stop or _is_in_link(text, span)
        placeholder = f"(redacted:{span.rule})" if has_meaning else f"[redacted:{span.rule}]"
        pieces += (text[done : span.start], placeholder)
        last = line + text.count("\n", span.start, span.stop)
        dropped.update(range(line + 1, last + 1))
        line, done = last, span.stop
    if dropped:
        numbers = [number for index, number in enumerate(numbers) if index not in dropped]
    return "".join((*pieces, text[done:])), numbers


def _is_in_link(text: str, span: _Span) -> bool:
    """Tell whether a span is part of the text of a link, as in [[name]] or [name](target)."""
    opening = max(text.rfind(mark, max(0, span.start - _NEAR), span.start) for mark in "[]\n")
    if opening < 0 or text[opening] != "[":
        return False
    closing = _LINK_CLOSE.match(text, span.stop)
    return closing is not None and (closing[1] != "]" or text[opening - 1 : opening] == "[")


def _tokens(text: str) -> Iterator[_Span]:
    """Yield tokens whose form tells their issuer."""
    for match in FORMATS.finditer(text):
        # A mask goes on where the form ends.
        if is_token(match[0][:_SIGHT]) and not text.startswith("####", match.end()):
            yield _Span(*match.span(), 2, format_name(text, match.start()))


def _logins(text: str) -> Iterator[_Span]:
    """Yield passwords that stand beside a user, in an address or in a command."""
    for match in _ADDRESS.finditer(text):
        value = match["value"]
        is_example = is_fake(value) or is_reference(value) or match["host"].startswith("example.")
        if not is_example and (is_random(value) or is_chosen(value)):
            yield _Span(*match.span("value"), 3, "url-password")
    yield from (_Span(*match.span(), 2, "password-hash") for match in _HASHES.finditer(text))
    for match in _ADDRESS_TOKEN.finditer(text):
        if is_secret("token", match["value"]):
            yield _Span(*match.span("value"), 3, "url-token")
    for match in chain.from_iterable(pattern.finditer(text) for pattern in _LOGINS):
        if is_secret("spoken", match["value"]):
            yield _Span(*match.span("value"), 3, "password")


def _blocks(text: str) -> Iterator[_Span]:
    """Yield private keys, whole or cut off."""
    begins = list(_BLOCK.finditer(text))
    starts = [begin.start() for begin in begins] + [len(text)]
    for begin, following in zip(begins, starts[1:], strict=True):
        limit = min(following, begin.end() + _BLOCK_LIMIT)
        rest = _BLOCK_END.search(text, begin.end(), limit) or _BLOCK_LINES.match(
            text, begin.end(), limit
        )
        if rest:
            material = "".join(
                run for run in _MATERIAL.findall(text, begin.end(), rest.end()) if not is_fake(run)
            )
            if len(material) >= _LEAST_MATERIAL:
                yield _Span(begin.start(), rest.end(), 2, "private-key")


def _named(text: str) -> Iterator[_Span]:
    """Yield values that follow a name which promises a secret."""
    kinds = _Kinds()
    # Text that repeats itself is judged once; the memory ends with this call.
    judge = lru_cache(maxsize=4_096)(is_secret)
    followers = (
        ((match, kinds[match["name"]]) for match in each.finditer(text))
        for each in (_FLAG, _VARIABLE, _SPOKEN)
    )
    for candidates in (_assignments(text, kinds), *followers):
        done = 0
        for match, kind in candidates:
            if kind in _NOT_SECRET or match.start() < done or _is_nested(text, match.end(), kinds):
                continue
            value, stop = _value(text, match)
            if kind == "password" and _is_prose(text, match, value, stop):
                continue
            is_told = match.re is _SPOKEN or (
                match.re is _ASSIGNED and not match["sign"].endswith(_SIGNS)
            )
            look = "spoken" if is_told and kind == "password" else kind
            if text[stop : stop + 1] != "(" and judge(look, value):
                rest = _REST.match(text, stop) if stop - match.end() >= _SIGHT else None
                done = rest.end() if rest else stop
                yield _Span(match.end(), done, 4, _SHOWN.get(kind, kind))
            elif not match["quote"]:
                # No run of a text is judged twice.
                done = stop


def _nearby(text: str) -> Iterator[_Span]:
    """Yield random values that no sign joins to a name.

    The words before them on their line tell.
    """
    for match in _LONE.finditer(text):
        if not _has_digit(match[0]) or not _has_letter(match[0]):
            continue
        start = match.start() + own_name(match[0])
        value = text[start : match.end()]
        rule = announced(_before(text, start), value)
        if rule and text[match.end() : match.end() + 1] != "(":
            yield _Span(start, match.end(), 5, rule)


def _is_prose(text: str, match: re.Match[str], value: str, stop: int) -> bool:
    """Tell the first word of a sentence, or a word that a program compares with.

    From a password.
    """
    if not _WORDS_ONLY.fullmatch(value):
        return False
    is_compared = match.re is _ASSIGNED and match["sign"].strip() in _COMPARISONS
    follows = not match["quote"] and bool(_NEXT_WORD.match(text, stop))
    return is_compared or follows or not value.isascii()


def _before(text: str, start: int) -> str:
    """Return what stands before a place on its line.

    Or on the line above if the place begins its line.
    """
    *above, line = text[max(0, start - _NEAR) : start].split("\n")
    if line.strip(_INDENT):
        return line
    headings = [heading for heading in above if heading.strip()]
    return headings[-1] if headings and headings[-1].rstrip().endswith(_LEADS) else ""


class _Kinds(dict[str, str]):
    """Remembers what each name promises."""

    def __missing__(self, name: str) -> str:
        plain = name.lower()
        kind = self[name] = (
            "label" if plain in _LABELS else "value" if plain == "value" else kind_of(name)
        )
        if name == "PASS":
            # What a test runner prints before the name of a test.
            kind = self[name] = "secret"
        return kind


def _assignments(text: str, kinds: _Kinds) -> Iterator[tuple[re.Match[str], str]]:
    """Yield every name that is given a value, and the kind of secret that it promises."""
    labelled: re.Match[str] | None = None
    for match in _ASSIGNED.finditer(text):
        kind = kinds[match["name"]]
        if not kind:
            continue
        start = match.start()
        if (
            kind == "value"
            and labelled
            and start - labelled.end() < _NEAR
            and ">" not in text[labelled.end() : start]
        ):
            kind = kinds[_value(text, labelled)[0]]
        elif kind == "label":
            labelled = match
            is_key = match["name"].lower() == "key"
            kind = _kind_of_key(text, start, kinds) if is_key else ""
        # The token in the address of a badge is there to be seen.
        if (
            not text.endswith(("redacted:", ":env:"), 0, start)
            and "badge" not in text[max(0, start - 60) : start]
        ):
            yield match, kind


def _kind_of_key(text: str, start: int, kinds: _Kinds) -> str:
    """Tell what the word `key` alone promises, by the words before it on its line."""
    mark = text[start - 1 : start]
    before = (
        _WORD_BEFORE.search(text, max(0, start - 22), start) if mark in {" ", "_", "-"} else None
    )
    if before and before[1].lower() in QUALIFIERS:
        return kinds[f"{before[1]}_key"]
    line = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    return "bare" if mark in {"?", "&"} or not is_open(line) else ""


def _is_nested(text: str, start: int, kinds: _Kinds) -> bool:
    """Tell whether a value begins with a name that is itself given a value and promises a secret."""
    nested = _NESTED.match(text, start)
    return nested is not None and kinds[nested["name"]] not in _NOT_SECRET


def _value(text: str, match: re.Match[str]) -> tuple[str, int]:
    """Return as much of a value as tells what it is, and where that ends."""
    start = match.end()
    mark = match["quote"][-1:]
    stop = text.find(mark, start, start + 10 * _SIGHT) if mark else -1
    if stop >= 0 and text.find("\n", start, stop) < 0:
        stop -= text[stop - 1] == "\\"
        return text[start:stop], stop
    run = _RUN.match(text, start)
    shown = run[0] if run else ""
    if text[start + len(shown) : start + len(shown) + 1] == ";":
        # A character of HTML, as in string&nbsp;, ends the value.
        shown = _ENTITY.sub("", shown)
    value = _NEXT_PARAMETER.split(shown, maxsplit=1)[0].rstrip(")]}.|*:")
    return value, start + len(value)


def _is_secret_variable(name: str, value: str) -> bool:
    """Tell whether the value of a variable is a secret."""
    return (
        kind_of(name) not in {"", "service"}
        and len(value) >= _LEAST_VALUE
        and not _is_ordinary(value)
    )


def _spellings(environ: Mapping[str, str]) -> _Spellings:
    """Return the secrets of an environment in every spelling."""
    spellings: dict[str, str] = {}
    for name, value in sorted(secret_variables(environ).items()):
        rule = "env:" + re.sub(r"\W", "_", name)[:100]
        encoded = b64encode(value.encode("utf-8", "surrogateescape")).decode()
        for spelling in (value, quote(value, safe=""), dumps(value)[1:-1], encoded.rstrip("=")):
            spellings.setdefault(spelling, rule)
    return _longest_first(spellings)


def _longest_first(spellings: Mapping[str, str]) -> _Spellings:
    return tuple(sorted(spellings.items(), key=lambda item: (-len(item[0]), item)))


def _is_ordinary(value: str) -> bool:
    """Tell values that stand in texts without being meant: words, numbers, paths, addresses."""
    return bool(_ORDINARY.fullmatch(value))


def _compiled(pattern: str, name: str) -> re.Pattern[str]:
    """Compile a user's pattern, unless it is wrong, takes everything.

    Or some text could make it crawl.
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise ConfigError(f"{name} is too long", f"Use at most {_LONGEST_PATTERN} characters.")
    try:
        compiled = re.compile(pattern)
        tree = import_module("re._parser").parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"{name} is not a regular expression: {error}", "Check it with Python's re.compile."
        ) from None
    if compiled.search(""):
        raise ConfigError(
            f"{name} matches the empty text", "Make it demand at least one character."
        )
    if _steps(list(tree), is_last=True)[0] > _STEPS:
        raise ConfigError(
            f"{name} could take too long on some text",
            "Bound its repetitions, as in {1,40}; only the last may be open.",
        )
    share = sum(len(match[0]) for match in compiled.finditer(_PROBE)) / len(_PROBE)
    if share > _LARGEST_SHARE:
        raise ConfigError(
            f"{name} matches {share:.0%} of an ordinary text",
            "Make it match the secret alone, as in ACME-[0-9]{6}.",
        )
    return compiled


def _steps(items: Sequence[tuple[Any, Any]], *, is_last: bool) -> tuple[float, float]:
    """Return how many steps a pattern may take from one place and in how many ways it may match there, at most."""
    steps, ways = 1.0, 1.0
    for index, (operator, argument) in enumerate(items):
        cost, choices = _cost(str(operator), argument, is_last=is_last and index == len(items) - 1)
        steps += ways * cost
        ways *= choices
    return steps, ways


def _cost(operator: str, argument: Any, *, is_last: bool) -> tuple[float, float]:
    """Return the same of one part of a pattern.

    Only a repetition at its very end, which cannot fail, may be open.
    """
    if operator in {"LITERAL", "NOT_LITERAL", "IN", "ANY", "AT", "CATEGORY"}:
        return 1, 1
    if operator in {"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
        inside = argument if operator == "ATOMIC_GROUP" else argument[-1]
        steps, ways = _steps(list(inside), is_last=is_last and operator == "SUBPATTERN")
        return steps, ways if operator == "SUBPATTERN" else 1
    if operator == "BRANCH":
        branches = [_steps(list(branch), is_last=is_last) for branch in argument[1]]
        return sum(steps for steps, _ in branches), sum(ways for _, ways in branches)
    if operator not in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        # A reference back to a group, or a condition: no bound is known.
        return _UNBOUNDED, 1
    least, most, inside = argument
    steps, ways = _steps(list(inside), is_last=False)
    times = min(least + 1 if is_last else most, _STEPS)
    paths = ways ** min(times, 64)
    return times * steps * paths, 1 if is_last or operator == "POSSESSIVE_REPEAT" else (
        times - least + 1
    ) * paths
