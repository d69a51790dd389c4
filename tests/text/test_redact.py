"""Redaction: every secret here is made at run time, so that none stands in the repository."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.cases import filled, noise, table

from ragdocs.errors import ConfigError
from ragdocs.text.redaction.passes import Redaction
from ragdocs.text.redaction.redact import Redactor
from ragdocs.text.redaction.spans import Finding

CASES = table("redaction")
PATTERNS = CASES["patterns"]
TOKENS = {rule: filled(token) for rule, token in CASES["tokens"].items()}
TOKEN = TOKENS["github-token"]
VALUE = noise(24)
CHOSEN = filled("Gehe<>im12!")
REDACTOR = Redactor({})

of_every_issuer = pytest.mark.parametrize(("rule", "token"), TOKENS.items(), ids=TOKENS)


def rules(text: str) -> list[str]:
    return [finding.rule for finding in REDACTOR.redact(text).findings]


def b64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def pem(kind: str, lines: int = 4) -> str:
    body = "\n".join(noise(64, "base64", seed) for seed in range(lines))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


@of_every_issuer
def test_token_of_a_known_issuer_is_named_in_its_place(rule: str, token: str) -> None:
    redaction = REDACTOR.redact(f"We used {token} for it, until Monday.")
    assert redaction.text == f"We used [redacted:{rule}] for it, until Monday."
    assert redaction.findings == (Finding(rule, 1),)
    # In the string of a program, escapes stand beside it.
    for text in (json.dumps(f"first line\n{token}\n"), repr(f"a\t{token}"), f"x\\r\\n{token}"):
        assert rules(text) == [rule]


@of_every_issuer
def test_mask_in_the_form_of_a_token_is_left_alone(rule: str, token: str) -> None:
    head, tail = token[:8], token[8:]
    mask = head + "".join("x" if character.isalnum() else character for character in tail)
    assert REDACTOR.redact(f"Write {mask} here.") == Redaction(f"Write {mask} here.")


def secret_lines() -> Iterator[tuple[str, str]]:
    for group in CASES["secrets"]:
        for line in group["lines"]:
            yield filled(group["value"]), line


@pytest.mark.parametrize(("secret", "line"), [*secret_lines()])
def test_secret_is_taken_out_and_the_rest_of_its_line_stays(secret: str, line: str) -> None:
    text = line.replace("{}", secret)
    redaction = REDACTOR.redact(text)
    assert secret not in redaction.text
    assert len(redaction.findings) == line.count("{}")
    restored = redaction.text
    for finding in redaction.findings:
        restored = restored.replace(f"[redacted:{finding.rule}]", secret)
    assert restored == text


@pytest.mark.parametrize(
    "text",
    [
        *(filled(text) for texts in CASES["left_alone"].values() for text in texts),
        pem("PUBLIC KEY"),
        pem("CERTIFICATE"),
        f"ca.crt: {b64(pem('CERTIFICATE'))}",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == Redaction(text)


def signed(issuer: str) -> str:
    """Make a token of three parts, as an issuer does."""
    head = json.dumps({"alg": "RS256"})
    claims = json.dumps({"aud": "shop", "iss": issuer, "sub": noise(40)})
    parts = [base64.urlsafe_b64encode(part.encode()).decode() for part in (head, claims)]
    return ".".join([*(part.rstrip("=") for part in parts), noise(80)])


@pytest.mark.parametrize(
    ("text", "secret", "harmless", "rule"),
    [
        ("TOKEN={}", signed("https://login.shop.org"), signed("https://example.com"), "jwt"),
        ("id-token: {}", signed("https://login.shop.org"), signed("https://example.com"), "jwt"),
        ("We used {} for it.", signed("https://login.org"), signed("https://example.com"), "jwt"),
        ("secret: {}", b64(CHOSEN), b64("this is not secret"), "secret"),
        ("token: {}", "18511b.f395accd246ae52d", filled("07401b.f395<>accd246ae52d"), "token"),
        ("It is {} there.", noise(40), noise(40, "letter"), "random"),
        ("tls.pem: {}", b64(pem("RSA PRIVATE KEY")), b64(pem("CERTIFICATE")), "private-key"),
        ("{}", filled("bob:$2b$12$<any 53>"), "bob:$2b$12$", "password-hash"),
        ("{}", filled("bob:$6$<any 8>$<any 86>"), "bob:$6$", "password-hash"),
    ],
    ids=[
        "signed token",
        "signed token of a field",
        "signed token in a sentence",
        "encoded password and encoded phrase",
        "neighbour of a published example",
        "random value that nothing announces",
        "encoded private key and encoded certificate",
        "hash of a password",
        "hash of a password in sha512",
    ],
)
def test_secret_is_told_from_what_only_looks_like_it(
    text: str, secret: str, harmless: str, rule: str
) -> None:
    assert rules(text.replace("{}", secret)) == [rule]
    assert rules(text.replace("{}", harmless)) == []


@pytest.mark.parametrize("length", range(50, 90))
def test_encoded_private_key_of_any_length_is_no_error(length: int) -> None:
    REDACTOR.redact(f"tls.pem: {b64(pem('PRIVATE KEY'))[:length]}")


@pytest.mark.parametrize(
    "kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
)
def test_private_key_goes_as_a_whole_and_later_findings_keep_their_line(kind: str) -> None:
    redaction = REDACTOR.redact(f"before\n{pem(kind)}\nafter\npassword: {CHOSEN}\n")
    assert redaction.text == (
        "before\n[redacted:private-key]\nafter\npassword: [redacted:password]\n"
    )
    assert redaction.findings == (Finding("private-key", 2), Finding("password", 9))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("[[{token}]]", "[[(redacted:github-token)]]"),
        ("[see {token} here](page.md)", "[see (redacted:github-token) here](page.md)"),
        ("[{token}][ref]", "[(redacted:github-token)][ref]"),
        ("[page](a.md?t={token})", "[page](a.md?t=[redacted:github-token])"),
        ("# About {token}", "# About [redacted:github-token]"),
        ("list[{token}] or [x]", "list[[redacted:github-token]] or [x]"),
        ("token={long} end", "token=[redacted:token] end"),
        ('token="{long}" end', 'token="[redacted:token]" end'),
        ('{{"private_key": {key}, "a": 1}}', '{{"private_key": "[redacted:private-key]", "a": 1}}'),
        ("{cut}\n\nNothing follows.", "[redacted:private-key]Nothing follows."),
        ("{putty}\nend", "[redacted:private-key]\nend"),
    ],
)
def test_what_stands_around_a_secret_keeps_its_form(text: str, redacted: str) -> None:
    putty = (
        "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n<any 64>\n<low 64>\n"
        "Private-MAC: <hex 64>"
    )
    values = {
        "token": TOKEN,
        "long": noise(5_000),
        "key": json.dumps(pem("PRIVATE KEY")),
        "cut": pem("RSA PRIVATE KEY").rpartition("\n")[0],
        "putty": filled(putty),
    }
    assert REDACTOR.redact(text.format_map(values)).text == redacted.format()


def test_placeholder_hides_no_secret() -> None:
    assert TOKEN not in REDACTOR.redact(f"[redacted:{TOKEN}] (redacted:{TOKEN})").text


ENVIRONMENT = {
    "STRIPE_KEY": "correct horse 7 battery",
    "DB_PASSWORD": "pa$$ wörd/9",
    "HOME_TOKEN": "/home/bob/token-file",
    "DEPLOY_SECRET": "development",
    "BUILD_KEY": "1234567890",
    "SHORT_TOKEN": "abc123",
    "EDITOR": "a value in no need of care",
}


@pytest.mark.parametrize(
    "spell",
    [str, lambda value: quote(value, safe=""), lambda value: json.dumps(value)[1:-1], b64],
    ids=["plain", "percent", "json", "base64"],
)
@pytest.mark.parametrize("name", ["STRIPE_KEY", "DB_PASSWORD"])
def test_value_of_a_secret_environment_variable_is_taken_out_in_every_spelling(
    spell: Callable[[str], str], name: str
) -> None:
    redaction = Redactor(ENVIRONMENT).redact(f"It was {spell(ENVIRONMENT[name])}, they said.")
    assert redaction.text.startswith(f"It was [redacted:env:{name}]")
    assert redaction.findings == (Finding(f"env:{name}", 1),)


def test_ordinary_values_of_the_environment_are_left_alone() -> None:
    text = " and ".join(list(ENVIRONMENT.values())[2:])
    assert Redactor(ENVIRONMENT).redact(text) == Redaction(text)


def test_users_pattern_is_named_by_its_number() -> None:
    redactor = Redactor({}, [r"ACME-\d{6}", r"(?i)project [a-z]{4,12}fish"])
    redaction = redactor.redact("ACME-123456, Project Swordfish")
    assert redaction.text == "[redacted:pattern-1], [redacted:pattern-2]"
    assert redactor.redact("ACME-12345").findings == ()


@pytest.mark.parametrize("pattern", [*PATTERNS["dangerous"], "a" * 501, "(" * 400])
def test_wrong_or_dangerous_pattern_is_refused_by_its_number(pattern: str) -> None:
    with pytest.raises(ConfigError, match="redaction pattern 2 ") as caught:
        Redactor({}, ["fine", pattern])
    assert caught.value.hint


@pytest.mark.parametrize("pattern", PATTERNS["bounded"])
def test_bounded_pattern_is_accepted(pattern: str) -> None:
    assert Redactor({}, [pattern]).redact("nothing") == Redaction("nothing")


@pytest.mark.parametrize("pattern", PATTERNS["too_greedy"])
def test_a_pattern_that_takes_ordinary_text_is_refused_with_its_number_and_file(
    pattern: str,
) -> None:
    complaint = r"redaction pattern 2 of config\.toml:7 matches \d+% of an ordinary text"
    with pytest.raises(ConfigError, match=complaint):
        Redactor({}, ["fine", pattern], "config.toml:7")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("BEGIN\nall of it", "redaction pattern 2 of config.toml:7"),
        ("see BEGIN", ""),
        ("ACME-123456 is old", ""),
        ("", ""),
        ("nothing", ""),
        (TOKEN, ""),
    ],
)
def test_a_pattern_that_leaves_nothing_of_a_text_is_named(text: str, named: str) -> None:
    redactor = Redactor({}, ["ACME-[0-9]{6}", "(?s)BEGIN.*"], "config.toml:7")
    assert redactor.swallowed_by(text, redactor.redact(text)) == named


def test_secrets_show_in_no_description() -> None:
    hidden = noise(20)
    redactor = Redactor({"A_TOKEN": hidden}, [hidden])
    with pytest.raises(ConfigError) as caught:
        Redactor({}, [f"{hidden}("])
    error = caught.value
    assert error.__cause__ is None
    redaction = redactor.redact(f"token: {hidden}")
    for shown in (redactor, redaction, error, error.hint):
        assert hidden not in f"{shown!r} {shown}"


def test_surest_name_wins_where_findings_overlap() -> None:
    assert rules(f'password = "{TOKEN}"') == ["github-token"]
    redaction = Redactor({"MY_TOKEN": TOKEN}).redact(f"token {TOKEN}")
    assert redaction.findings == (Finding("env:MY_TOKEN", 1),)


def test_placeholders_are_never_touched_again_even_by_the_users_own_rules() -> None:
    redactor = Redactor({"A_SECRET": "github-token"}, ["redacted", "stripe"])
    text = "[redacted:github-token] [redacted:stripe-key] [redacted:env:A_SECRET]"
    assert redactor.redact(text) == Redaction(text)


def test_findings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Finding("rule", 1).rule = "other"  # type: ignore[misc]


NAMES = ("password", "token", "api key", "value", "name", "is", "Bearer", "--token")
MARKS = ("://", " = ", ": ", '": "', *"=:\"'`<>,;&|()[]{}\\ \n\t.-/@#*")
PIECES = st.sampled_from(
    (*TOKENS.values(), *NAMES, *MARKS, VALUE, CHOSEN, pem("PRIVATE KEY", 2), "[redacted:token]")
)
TEXTS = st.lists(PIECES | st.text(max_size=20), max_size=14).map("".join)


@settings(max_examples=400)
@given(TEXTS)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor({"A_TOKEN": VALUE, "B_KEY": "name is value"}, ["tok[a-z]{2,4}", r"\d{4,9}"])
    first = redactor.redact(text)
    assert redactor.redact(first.text) == Redaction(first.text)


@settings(max_examples=400)
@given(TEXTS)
def test_text_changes_exactly_when_something_is_found(text: str) -> None:
    redaction = REDACTOR.redact(text)
    assert (redaction.text == text) == (not redaction.findings)
    assert all(1 <= finding.line <= text.count("\n") + 1 for finding in redaction.findings)
    assert REDACTOR.redact(text) == redaction


@pytest.mark.parametrize("unit", CASES["costly"]["units"])
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * length)[:length]
        start = time.process_time()
        REDACTOR.redact(text)
        return time.process_time() - start

    seconds(10_000)
    small = min(seconds(25_000) for _ in range(2))
    # Eight times the text: a quadratic rule would take sixty-four times as long. A machine with
    # other work may need a second try.
    assert any(seconds(200_000) < 24 * max(small, 0.002) for _ in range(3))
