"""What is taken out of a text, what is left alone, and how much that may cost."""

import re
import string
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import ConfigError
from ragdocs.pipeline.redact import Redactor

REDACTOR = Redactor({})


def random_text(length: int, alphabet: str = string.ascii_letters + string.digits, seed: int = 1) -> str:
    """Make a value that no scanner finds in this file."""
    chooser = Random(seed)
    return "".join(chooser.choice(alphabet) for _ in range(length))


UPPER = string.ascii_uppercase + "234567"
SECRETS = {
    "github": "ghp_" + random_text(36),
    "aws": "AKIA" + random_text(16, UPPER),
    "slack": "xoxb-" + "-".join((random_text(12, string.digits), random_text(12, string.digits), random_text(24))),
    "jwt": ".".join(("eyJ" + random_text(30), "eyJ" + random_text(60), random_text(43))),
    "password": random_text(18, string.ascii_letters + string.digits + "!%&*"),
    "key": random_text(40, seed=2),
}


@pytest.mark.parametrize(
    "text",
    [
        "the token {github} was used",
        "key id {aws} in us-east-1",
        "SLACK={slack}",
        "Authorization: Bearer {jwt}",
        'password = "{password}"',
        "db_password: {password}",
        '{{"api_key": "{key}"}}',
        "export SECRET_TOKEN={key}",
        "postgres://admin:{github}@db.internal/app",
        "curl -u admin:{github} https://example.com",
    ],
)
def test_a_secret_is_replaced_by_what_it_was(text: str) -> None:
    redaction = REDACTOR.redact(text.format(**SECRETS))
    assert not [secret for secret in SECRETS.values() if secret in redaction.text]
    assert re.search(r"\[redacted:[\w:.-]+\]", redaction.text)
    assert [finding.line for finding in redaction.findings] == [1]


def test_a_private_key_is_taken_out_whole() -> None:
    body = "\n".join(random_text(64, seed=n) for n in range(8))
    marks = [f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END")]
    redaction = REDACTOR.redact(f"before\n{marks[0]}\n{body}\n{marks[1]}\nafter\n")
    assert redaction.text.startswith("before\n[redacted:")
    assert redaction.text.endswith("]\nafter\n")
    assert redaction.findings[0].line == 2


@pytest.mark.parametrize(
    "text",
    [
        "The password is checked by the server before the token expires.",
        "password = <your-password>",
        "api_key: ${API_KEY}",
        'token = os.environ["TOKEN"]',
        "secret: ********",
        "commit 3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "sha256-" + "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "def authenticate(token: str, password: str) -> bool:",
        "Set `API_KEY` in the environment; see [[docs/configuration.md]].",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert REDACTOR.redact(text).text == text


def test_values_of_secret_variables_are_known_by_name() -> None:
    value = random_text(20)
    redactor = Redactor({"STRIPE_SECRET_KEY": value, "HOME": "/home/someone", "EDITOR_TOKEN": "vim"})
    assert redactor.redact(f"we used {value}, vim and /home/someone").text == (
        "we used [redacted:env:STRIPE_SECRET_KEY], vim and /home/someone"
    )


def test_a_persons_patterns_are_numbered_and_checked() -> None:
    redactor = Redactor({}, ["ACME-[0-9]{6}"])
    assert redactor.redact("ticket ACME-123456.").text == "ticket [redacted:pattern-1]."
    for bad in ("[", "(a+)+$", "(x*)*y"):
        with pytest.raises(ConfigError):
            Redactor({}, [bad])


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once.text).text == once.text
    assert once.findings or once.text == text


def test_findings_never_hold_the_secret() -> None:
    redaction = REDACTOR.redact(f"a\nb {SECRETS['github']}\n")
    assert SECRETS["github"] not in repr(redaction)
    assert [(finding.rule, finding.line) for finding in redaction.findings] == [("github-token", 2)]


@pytest.mark.parametrize("piece", ["a", "key=", "A1b2C3d4", '"token": "', "-----BEGIN ", "://a:", "\\n", "= "])
def test_cost_grows_with_the_length_and_no_faster(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        started = time.process_time()
        REDACTOR.redact(text)
        return time.process_time() - started

    seconds(10_000)
    # Eight times the text may cost eight times as much; a square would cost sixty-four times.
    assert seconds(800_000) < 24 * max(seconds(100_000), 0.01)
