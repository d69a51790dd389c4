"""Redaction: every secret here is made at run time, so that none stands in the repository."""

import base64
import json
import random
import string
import time
from dataclasses import FrozenInstanceError
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.errors import ConfigError
from ragdocs.text.redaction.redact import Redaction, Redactor
from ragdocs.text.redaction.spans import Finding

HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ANY = string.ascii_letters + string.digits
REDACTOR = Redactor({})


def noise(length: int, alphabet: str = ANY, seed: int = 7) -> str:
    """Make a run that mixes letters and digits like a token does."""
    chosen = random.Random(seed)
    return "".join(chosen.choice(alphabet) for _ in range(length))


def glued(*parts: str) -> str:
    return "".join(parts)


def b64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def rules(text: str) -> list[str]:
    return [finding.rule for finding in REDACTOR.redact(text).findings]


def is_gone(secret: str, text: str) -> bool:
    assert secret in text
    return secret not in REDACTOR.redact(text).text


TOKENS = {
    "aws-access-key": glued("AK", "IA", noise(16, UPPER)),
    "github-token": glued("gh", "p_", noise(36)),
    "gitlab-token": glued("gl", "pat-", noise(20)),
    "slack-token": glued(
        "xo", "xb-", noise(12, string.digits), "-", noise(12, string.digits), "-", noise(24)
    ),
    "slack-webhook": glued(
        "hooks.", "slack.com/services/T", noise(8, UPPER), "/B", noise(8, UPPER), "/", noise(24)
    ),
    "discord-webhook": glued(
        "discord.com/api/", "webhooks/", noise(18, string.digits), "/", noise(60)
    ),
    "telegram-token": glued(noise(9, string.digits), ":A", noise(34)),
    "stripe-key": glued("sk", "_live_", noise(24)),
    "square-key": glued("sq0", "csp-", noise(43)),
    "shopify-token": glued("shp", "at_", noise(32, HEX)),
    "google-key": glued("AI", "zaSy", noise(33)),
    "anthropic-key": glued("sk-", "ant-api03-", noise(93), "AA"),
    "openai-key": glued("sk", "-proj-", noise(48)),
    "huggingface-token": glued("hf", "_", noise(34)),
    "npm-token": glued("npm", "_", noise(36)),
    "pypi-token": glued("pypi", "-AgEIcHlwaS5vcmc", noise(60)),
    "rubygems-token": glued("ruby", "gems_", noise(48, HEX)),
    "docker-token": glued("dckr", "_pat_", noise(27)),
    "digitalocean-token": glued("dop", "_v1_", noise(64, HEX)),
    "vault-token": glued("hv", "s.", noise(40)),
    "databricks-token": glued("da", "pi", noise(32, HEX)),
    "grafana-token": glued("gl", "sa_", noise(32), "_", noise(8, HEX)),
    "sendgrid-key": glued("SG", ".", noise(22), ".", noise(43)),
    "twilio-key": glued("S", "K", noise(32, HEX)),
    "azure-secret": glued("abc8", "Q~", noise(34)),
    "jwt": glued("ey", noise(20), ".ey", noise(40), ".", noise(43)),
    "token": glued("duffel", "_test_", noise(43)),
}


@pytest.mark.parametrize(("rule", "token"), TOKENS.items(), ids=TOKENS)
def test_token_of_a_known_issuer_is_named_in_its_place(rule: str, token: str) -> None:
    redaction = REDACTOR.redact(f"We used {token} for it, until Monday.")
    assert redaction.text == f"We used [redacted:{rule}] for it, until Monday."
    assert redaction.findings == (Finding(rule, 1),)


@pytest.mark.parametrize(("rule", "token"), TOKENS.items(), ids=TOKENS)
def test_token_in_the_string_of_a_program_is_taken_out(rule: str, token: str) -> None:
    for text in (json.dumps(f"first line\n{token}\n"), repr(f"a\t{token}"), f"x\\r\\n{token}"):
        assert token in text
        assert rules(text) == [rule]


@pytest.mark.parametrize(("rule", "token"), TOKENS.items(), ids=TOKENS)
def test_mask_in_the_form_of_a_token_is_left_alone(rule: str, token: str) -> None:
    head, tail = token[:8], token[8:]
    mask = head + "".join("x" if character.isalnum() else character for character in tail)
    assert REDACTOR.redact(f"Write {mask} here.") == Redaction(f"Write {mask} here.")


@pytest.mark.parametrize(
    "text",
    [
        "glossary-branch-is-not-necessarily-active",
        "sk-learn-contrib-something-else-entirely",
        "test_node_postmortem_metadata_and_more.cc",
        "see commit " + noise(40, HEX),
        "sha256:" + noise(64, HEX),
        'integrity "sha512-' + noise(86) + '=="',
        "request 123e4567-e89b-12d3-a456-426614174000 failed",
        glued("AK", "IAIOSFODNN7", "EXAMPLE"),
        "data:image/png;base64," + noise(200),
        "TODAYIN" + glued("AS", "IA") + "ASACKOFRICEFELLOVER",
    ],
)
def test_ordinary_long_words_hashes_and_identifiers_are_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == Redaction(text)


VALUE = noise(24)
CHOSEN = glued("Gehe", "im", "12!")


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "{}"',
        "api_key={}",
        "apiKey: '{}'",
        'const apiKey: string = "{}";',
        'var authToken string = "{}"',
        "AUTH_TOKEN := `{}`",
        '{{"client_secret": "{}"}}',
        '{{"config.ini": "API_TOKEN={}\\nDEBUG=true"}}',
        "  'secret_key' => '{}',",
        'System.setProperty("API_TOKEN", "{}")',
        'os.environ["API_KEY"] = "{}"',
        "export SERVICE_SECRET={}",
        "ENV API_TOKEN {}",
        "tool --api-key {} run",
        "tool --token={} run",
        "<apiToken>\n    {}\n</apiToken>",
        '<add key="ApiToken" value="{}" />',
        "- name: API_TOKEN\n  value: {}",
        "X-Api-Key: {}",
        "Authorization: Bearer {}",
        "curl -H 'Authorization: Token {}' host",
        "https://host/path?access_token={}&page=2",
        "//registry.host/:_authToken={}",
        "AccountKey={};EndpointSuffix=core",
        "The API key is {}.",
        "| token | {} |",
        "**Access token:** `{}`",
        "api_key: |\n  {}",
    ],
)
def test_random_value_of_a_secret_name_is_taken_out(line: str) -> None:
    text = line.format(VALUE)
    redaction = REDACTOR.redact(text)
    assert VALUE not in redaction.text
    assert len(redaction.findings) == 1
    assert redaction.text.replace(f"[redacted:{redaction.findings[0].rule}]", VALUE) == text


@pytest.mark.parametrize(
    "line",
    [
        'password = "{}"',
        "db_password: {}",
        "DB_PASS={}",
        "the password is {}",
        "| password | {} |",
        "tool --password {} run",
        "Server=host;User Id=sa;Password={};",
        "<password>{}</password>",
        'if password == "{}":',
        'account.setPassword("{}")',
        "machine host login bob password {}",
        "curl -u bob:{} https://host",
        "curl --user 'bob:{}' https://host",
        "mysql -h host -u root -p{} shop",
        "sshpass -p {} ssh host",
        "postgres://bob:{}@host/shop",
        "redis://:{}@host:6379/0",
    ],
)
def test_chosen_password_is_taken_out(line: str) -> None:
    assert is_gone(CHOSEN, line.format(CHOSEN))


MIXED = noise(32, string.ascii_lowercase + string.digits)


@pytest.mark.parametrize(
    "text",
    [
        "[INFO] Sending request to the shop API\n[DEBUG] Using Key={}\n",
        "https://api.shop.org/v1/users?key={}",
        "<secret>{{shop AQAAABAAA {}}}</secret>",
        "shop SECRET {}",
        "shop-token-{}",
        "the following password is needed once:\n\n{}\n",
        "api key:\n    {}",
        "shop token = '{}' | '{}'",
        "printed twice: token={} and then {}.",
        "Login: password={}",
    ],
)
def test_random_value_is_taken_out_wherever_words_announce_it(text: str) -> None:
    assert is_gone(MIXED, text.format(*([MIXED] * text.count("{}"))))


def test_random_value_that_nothing_announces_is_taken_out_unless_it_may_be_seen() -> None:
    value = noise(40)
    assert rules(f"We copied {value} from the old machine.") == ["random"]
    for word in ("commit", "sha256", "fingerprint", "image", "request id", "public key"):
        assert rules(f"The {word} {value} was copied.") == []
    assert rules(f"The node {noise(25, string.ascii_lowercase + string.digits)} is ready.") == []


@pytest.mark.parametrize(
    "line",
    [
        "password = hunter2hunter2",
        "passwd: Secret123",
        "PSWD={}",
        "CREATE USER bob IDENTIFIED BY '{}';",
        "ALTER USER bob IDENTIFIED WITH native BY '{}';",
        '#define PASSWORD "{}"',
        "ConvertTo-SecureString -String {}",
        "mysql://bob:bobSecret2024@db.shop.org/x",
    ],
)
def test_weak_password_of_a_clear_name_is_taken_out(line: str) -> None:
    assert len(rules(line.format(CHOSEN))) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<td colspan="2">--storage-driver-password string&nbsp;&nbsp;&nbsp;&nbsp;Default: "root"</td>',
        "--docker-password string&nbsp;",
        "* `password`: Einige der Kapitel werden das behandeln.",
        "* `password`: \u6b21\u306e\u7ae0\u3067\u306f\u3001\u4f8b\u3092\u7d39\u4ecb\u3057\u307e\u3059\u3002",
        "* **Day Pass:** Allows you to use the plan.",
        'if credentials.password == "swordfish":',
        "docker login --password-stdin localhost:5000",
        "    --- PASS: TestIntMinTableDriven/0,1 (0.00s)",
        "storeSecrets: shop2-test-1208358310",
        glued("xo", "xp-572370529330-573807301142-572331691188-####"),
        glued("nt", "n_12345678901aBcDeFgHiJkLmNoPqRsT1234567890abcde"),
        '<input name="authenticity_token" value="' + noise(60) + '">',
        "gpg --recv-keys " + noise(40, "0123456789ABCDEF"),
    ],
)
def test_tables_of_flags_prose_and_samples_are_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == Redaction(text)


def test_published_example_is_left_alone_and_its_neighbour_is_not() -> None:
    example = glued("0740", "1b.f395", "accd246ae52d")
    assert rules(f"token: {example}") == []
    assert rules(f"token: {example.replace('0740', '1851')}") == ["token"]


def test_hash_of_a_password_is_taken_out() -> None:
    assert rules(glued("bob:$2", "b$12$", noise(53))) == ["password-hash"]
    assert rules(glued("bob:$6", "$", noise(8), "$", noise(86))) == ["password-hash"]


@pytest.mark.parametrize("length", range(50, 90))
def test_encoded_private_key_of_any_length_is_no_error(length: int) -> None:
    encoded = b64(pem("PRIVATE KEY"))[:length]
    REDACTOR.redact(f"tls.pem: {encoded}")


def test_placeholder_hides_no_secret() -> None:
    token = TOKENS["github-token"]
    assert is_gone(token, f"[redacted:{token}] (redacted:{token})")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("[[{}]]", "[[(redacted:github-token)]]"),
        ("[see {} here](page.md)", "[see (redacted:github-token) here](page.md)"),
        ("[{}][ref]", "[(redacted:github-token)][ref]"),
        ("[page](a.md?t={})", "[page](a.md?t=[redacted:github-token])"),
        ("# About {}", "# About [redacted:github-token]"),
        ("list[{}] or [x]", "list[[redacted:github-token]] or [x]"),
    ],
)
def test_links_stay_links(text: str, redacted: str) -> None:
    assert REDACTOR.redact(text.format(TOKENS["github-token"])).text == redacted


def test_password_that_is_a_plain_word_is_taken_out_where_it_is_assigned() -> None:
    assert REDACTOR.redact('password = "swordfish"').text == 'password = "[redacted:password]"'
    assert rules("the password is checked against a swordfish") == []


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "<your-api-key>"',
        "api_key = xxxxxxxxxxxxxxxxxxxxxxxx",
        'password = "changeme"',
        "password: ********",
        "password = ${DB_PASSWORD}",
        "password: {{ .Values.password }}",
        "token = process.env.API_TOKEN",
        'token = os.environ["API_TOKEN"]',
        "token = settings.auth.token_value",
        "password = getpass.getpass()",
        'password="%s"',
        "password: string",
        "password: required",
        "Password = new-password",
        "token: /run/secrets/token1",
        "The password is checked against the hash of 2 words.",
        "secretName: my-tls-secret-2024",
        "max_tokens=4096",
        "token_count: 1234567890123456789",
        "cache_key = " + noise(40, HEX),
        "public_key: " + noise(44),
        "primary_key=" + noise(20),
        "next_token = " + noise(40),
        "monkey: " + noise(24, string.ascii_lowercase[:12]),
        "csrf_token=" + noise(40),
        "postgres://user:password@host/shop",
        "https://bob:" + noise(9) + "@example.com/",
        "[badge](https://host/badge.svg?token=" + noise(10, UPPER) + ")",
        'Authorization: Bearer "$(print-access-token)"',
        "curl -u user:password https://host",
        "kubectl --user=system:kube-proxy",
        "openssl rsa -in a.key -passin pass:abcde12345",
    ],
)
def test_placeholder_reference_or_prose_is_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == Redaction(text)


def test_value_that_encodes_a_phrase_is_left_alone_and_one_that_encodes_a_password_is_not() -> None:
    phrase = base64.b64encode(b"this is not secret").decode()
    hidden = base64.b64encode(CHOSEN.encode()).decode()
    assert rules(f"secret: {phrase}") == []
    assert rules(f"secret: {hidden}") == ["secret"]


def signed(issuer: str) -> str:
    head, claims = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "RS256"}, {"aud": "shop", "iss": issuer, "sub": noise(40)})
    )
    return f"{head}.{claims}.{noise(80)}"


@pytest.mark.parametrize("text", ["TOKEN={}", "id-token: {}", "We used {} for it."])
def test_signed_token_is_taken_out_unless_an_example_issued_it(text: str) -> None:
    assert rules(text.format(signed("https://login.shop.org"))) == ["jwt"]
    assert rules(text.format(signed("https://example.com"))) == []


def pem(kind: str, lines: int = 4) -> str:
    body = "\n".join(noise(64, ANY + "+/", seed) for seed in range(lines))
    return glued("-----BE", f"GIN {kind}-----\n", body, "\n-----EN", f"D {kind}-----")


@pytest.mark.parametrize(
    "kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
)
def test_private_key_goes_as_a_whole_and_later_findings_keep_their_line(kind: str) -> None:
    redaction = REDACTOR.redact(f"before\n{pem(kind)}\nafter\npassword: {CHOSEN}\n")
    assert (
        redaction.text == "before\n[redacted:private-key]\nafter\npassword: [redacted:password]\n"
    )
    assert redaction.findings == (Finding("private-key", 2), Finding("password", 9))


def test_private_key_in_a_json_string_is_taken_out() -> None:
    text = json.dumps({"private_key": pem("PRIVATE KEY") + "\n", "client": "bob"})
    assert json.loads(REDACTOR.redact(text).text) == {
        "private_key": "[redacted:private-key]\n",
        "client": "bob",
    }


def test_putty_key_is_taken_out() -> None:
    text = glued(
        "PuTTY-User-",
        "Key-File-3: ssh-rsa\nPrivate-Lines: 2\n",
        noise(64),
        "\n",
        noise(64, seed=8),
        "\n",
    )
    assert (
        REDACTOR.redact(f"{text}Private-MAC: {noise(64, HEX)}\nend").text
        == "[redacted:private-key]\nend"
    )


def test_private_key_without_its_end_is_taken_out() -> None:
    cut = pem("RSA PRIVATE KEY").rpartition("\n")[0]
    assert (
        REDACTOR.redact(f"{cut}\n\nNothing follows.").text
        == "[redacted:private-key]Nothing follows."
    )


def test_encoded_private_key_is_taken_out_and_an_encoded_certificate_is_not() -> None:
    key = base64.b64encode(pem("RSA PRIVATE KEY").encode()).decode()
    certificate = base64.b64encode(pem("CERTIFICATE").encode()).decode()
    assert rules(f"tls.pem: {key}") == ["private-key"]
    assert rules(f"ca.crt: {certificate}") == []


@pytest.mark.parametrize(
    "text",
    [
        "A key starts with -----BEGIN RSA PRIVATE KEY----- and ends so.",
        "-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----",
        pem("PUBLIC KEY"),
        pem("CERTIFICATE"),
    ],
)
def test_talk_of_keys_and_public_keys_are_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) == Redaction(text)


def test_long_value_is_taken_out_to_its_end() -> None:
    secret = noise(5_000)
    assert REDACTOR.redact(f"token={secret} end").text == "token=[redacted:token] end"
    assert REDACTOR.redact(f'token="{secret}" end').text == 'token="[redacted:token]" end'


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
def test_value_of_a_secret_environment_variable_is_taken_out_in_every_spelling(
    spell: object,
) -> None:
    assert callable(spell)
    redactor = Redactor(ENVIRONMENT)
    for name in ("STRIPE_KEY", "DB_PASSWORD"):
        redaction = redactor.redact(f"It was {spell(ENVIRONMENT[name])}, they said.")
        assert redaction.text.startswith(f"It was [redacted:env:{name}]")
        assert redaction.findings == (Finding(f"env:{name}", 1),)


def test_ordinary_values_of_the_environment_are_left_alone() -> None:
    text = " and ".join(
        value for name, value in ENVIRONMENT.items() if name not in {"STRIPE_KEY", "DB_PASSWORD"}
    )
    assert Redactor(ENVIRONMENT).redact(text) == Redaction(text)


def test_users_pattern_is_named_by_its_number() -> None:
    redactor = Redactor({}, [r"ACME-\d{6}", r"(?i)project [a-z]{4,12}fish"])
    assert (
        redactor.redact("ACME-123456, Project Swordfish").text
        == "[redacted:pattern-1], [redacted:pattern-2]"
    )
    assert redactor.redact("ACME-12345").findings == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|aa)+$",
        "[a-z]+!",
        "[a-z]++!",
        ".*secret",
        "(?=.*x)y",
        r"(a)\1",
        "(a{1,40})(a{1,40})b",
        "(?:[a-z]{1,3}){20,}",
        "(?:a?){20}a{20}",
        "x*",
        "[",
        "a" * 501,
        "(" * 400,
    ],
)
def test_wrong_or_dangerous_pattern_is_refused_by_its_number(pattern: str) -> None:
    with pytest.raises(ConfigError, match="redaction pattern 2 ") as caught:
        Redactor({}, ["fine", pattern])
    assert caught.value.hint


@pytest.mark.parametrize(
    "pattern",
    [
        "ACME-[a-z0-9]+",
        r"\b[A-Z]{2,5}-\d{3,8}\b",
        "foo|bar[0-9]+",
        "(?:[0-9a-f]{2}:){15}[0-9a-f]{2}",
    ],
)
def test_bounded_pattern_is_accepted(pattern: str) -> None:
    assert REDACTOR.redact("nothing") == Redactor({}, [pattern]).redact("nothing")


@pytest.mark.parametrize(
    "pattern",
    [r"[\s\S]+", ".+", r"\w+", "[a-z0-9]+", r"(?s).", "[^\n]{1,90}", r"\S{3,60}", "[aeiounrst]"],
)
def test_a_pattern_that_takes_ordinary_text_is_refused_with_its_number_and_file(
    pattern: str,
) -> None:
    with pytest.raises(
        ConfigError, match=r"redaction pattern 2 of config\.toml:7 matches \d+% of an ordinary text"
    ):
        Redactor({}, ["fine", pattern], "config.toml:7")


def test_a_pattern_that_leaves_nothing_of_a_text_is_named() -> None:
    redactor = Redactor({}, ["ACME-[0-9]{6}", "(?s)BEGIN.*"], "config.toml:7")
    swallowed = "BEGIN\nall of it"
    assert (
        redactor.swallowed_by(swallowed, redactor.redact(swallowed))
        == "redaction pattern 2 of config.toml:7"
    )
    for text in ("see BEGIN", "ACME-123456 is old", "", "nothing"):
        assert redactor.swallowed_by(text, redactor.redact(text)) == ""
    token = TOKENS["github-token"]
    assert redactor.swallowed_by(token, redactor.redact(token)) == ""


def test_secrets_show_in_no_description() -> None:
    hidden = noise(20)
    pattern = f"{hidden}("
    redactor = Redactor({"A_TOKEN": hidden}, [hidden])
    redaction = redactor.redact(f"token: {hidden}")
    with pytest.raises(ConfigError) as caught:
        Redactor({}, [pattern])
    assert caught.value.__cause__ is None
    shown = [
        repr(redactor),
        str(redactor),
        repr(redaction),
        str(caught.value),
        repr(caught.value),
        caught.value.hint,
    ]
    assert not any(hidden in description for description in shown)


def test_surest_name_wins_where_findings_overlap() -> None:
    token = TOKENS["github-token"]
    assert rules(f'password = "{token}"') == ["github-token"]
    assert [
        each.rule for each in Redactor({"MY_TOKEN": token}).redact(f"token {token}").findings
    ] == ["env:MY_TOKEN"]


def test_placeholders_are_never_touched_again_even_by_the_users_own_rules() -> None:
    redactor = Redactor({"A_SECRET": "github-token"}, ["redacted", "stripe"])
    text = "[redacted:github-token] [redacted:stripe-key] [redacted:env:A_SECRET]"
    assert redactor.redact(text) == Redaction(text)


def test_findings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Finding("rule", 1).rule = "other"  # type: ignore[misc]


NAMES = (
    "password",
    "token",
    "api key",
    "value",
    "name",
    "is",
    "Bearer",
    "--token",
    "://",
    " = ",
    ": ",
    '": "',
)
MARKS = tuple("=:\"'`<>,;&|()[]{}\\ \n\t.-/@#*")
PIECES = st.sampled_from(
    (*TOKENS.values(), *NAMES, *MARKS, VALUE, CHOSEN, pem("PRIVATE KEY", 2), "[redacted:token]")
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=14).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor({"A_TOKEN": VALUE, "B_KEY": "name is value"}, ["tok[a-z]{2,4}", r"\d{4,9}"])
    first = redactor.redact(text)
    assert redactor.redact(first.text) == Redaction(first.text)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=14).map("".join))
def test_text_changes_exactly_when_something_is_found(text: str) -> None:
    redaction = REDACTOR.redact(text)
    assert (redaction.text == text) == (not redaction.findings)
    assert all(1 <= finding.line <= text.count("\n") + 1 for finding in redaction.findings)
    assert REDACTOR.redact(text) == redaction


@pytest.mark.parametrize(
    "unit",
    ["a", "QUJD+/8", "\"'`", '\\"', "ey-", "a.b-", "token=", 'token="', "password ", "key:", "://a:", "-u a:", "sk-",
     "name: token value: ", "eyJhbGciOi.", "-----BEGIN PRIVATE KEY-----\n", "[redacted:", "| token ", "token=x9Kd8",
     "key=x9Kd8 ", "[[token x9Kd8", "$6$a$", "password:\n", "IDENTIFIED BY ", "PASS: a ",
     "-----\nkey a1B2c3D4e5F6g7H8i9J0k1L2 "],
)  # fmt: skip
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * length)[:length]
        start = time.process_time()
        REDACTOR.redact(text)
        return time.process_time() - start

    seconds(10_000)
    small = min(seconds(50_000) for _ in range(3))
    # Eight times the text: a quadratic rule would take sixty-four times as long.
    assert min(seconds(400_000) for _ in range(2)) < 24 * max(small, 0.002)
