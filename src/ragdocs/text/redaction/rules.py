"""What secrets look like: token formats by issuer, and the words by which people name a secret."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, urlsafe_b64decode
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# One form of token a line, after the name that its placeholder shows, under the family of its
# issuer. Two laws keep the search linear: an unbounded run stands at the end, where it cannot fail,
# and every other repetition is bounded.
_FORMATS = r"""
[cloud]
aws-access-key      A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?!\w)
aws-bedrock-key     ABSK[A-Za-z0-9+/]{60,}+=*+
aws-bedrock-key     bedrock-api-key-[\w+/=-]{20,}+
google-key          AIzaSy[\w-]{33}(?![\w-])
google-key          GOCSPX-[\w-]{20,}+
google-key          ya29\.[\w-]{20,}+
google-key          1//0[\w-]{30,}+
digitalocean-token  do[oprt]_v1_[a-f0-9]{64,}+
heroku-key          HRKU-[\w-]{36,}+
fly-token           fo1_[\w-]{40,}+
fly-token           fm[12][ar]?_[A-Za-z0-9+/]{60,}+=*+
planetscale-token   pscale_[a-z]{2,6}_[\w=.-]{32,}+
doppler-token       dp\.[a-z]{2,5}\.[\w.-]{40,}+
terraform-token     atlasv1\.[\w-]{40,}+
vault-token         hv[brs]\.[\w-]{24,}+
vault-token         s\.(?=[A-Za-z]{0,24}\d)(?=[A-Z\d]{0,24}[a-z])[A-Za-z0-9]{24}(?!\w)
databricks-token    dapi[a-fA-F0-9]{32}(?:-\d)?(?!\w)
dropbox-token       sl\.[\w-]{100,}+
azure-token         [A-Za-z0-9]{74,76}AZDO[A-Za-z0-9]{4}(?!\w)
swarm-token         SWM(?:TKN|KEY)-\d-[\w+/-]{40,}+
cloudflare-key      v1\.0-[a-f0-9]{24}-[a-f0-9]{140,}+
azure-secret        [\w~.]{3}\dQ~[\w~.-]{31,}+
alibaba-key         LTAI[A-Za-z0-9]{12,24}(?!\w)
tencent-key         AKID[A-Za-z0-9]{32}(?!\w)
yandex-key          AQVN[\w-]{35,}+
yandex-key          t1\.[A-Z0-9a-z_-]{4,400}={0,2}\.[\w-]{86,}+=*+
yandex-key          YC[\w-]{38}(?![\w-])
openshift-token     sha256~[\w-]{43}(?![\w-])
clickhouse-key      4b1d[A-Za-z0-9]{38}(?!\w)
octopus-key         API-[A-Z0-9]{25,28}(?!\w)

[code]
github-token        gh[oprsu]_[A-Za-z0-9]{36,}+
github-token        github_pat_\w{36,}+
gitlab-token        gl[a-z]{1,7}-[\w-]{20,}+(?:\.[\w.]++)?
gitlab-token        GR1348941[\w-]{20,}+
gitlab-session      _gitlab_session=[0-9a-z]{32}(?!\w)
npm-token           npm_[A-Za-z0-9]{36,}+
pypi-token          pypi-Ag[EN][\w-]{50,}+
rubygems-token      rubygems_[a-f0-9]{48,}+
docker-token        dckr_[a-z]{3}_[\w-]{20,}+
clojars-token       CLOJARS_[a-z0-9]{60,}+
nuget-key           oy2[a-z0-9]{43}(?!\w)
jfrog-token         AKCp\w{60,}+
jfrog-token         cmVmd[A-Za-z0-9]{59}(?!\w)
sonar-token         sq[apu]_[A-Za-z0-9]{40}(?!\w)
sourcegraph-token   sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}(?!\w)
postman-key         PMAK-[a-f0-9]{24}-[a-f0-9]{30,}+
atlassian-token     AT[AC]TT3[\w=-]{60,}+
atlassian-token     ATBB[A-Za-z0-9]{28,}+
launchdarkly-key    (?:sdk|api|mob)-[a-z0-9]{8}(?:-[a-z0-9]{4}){3}-[a-z0-9]{12}(?![\w-])
harness-key         [ps]at\.[\w-]{22}\.[a-f0-9]{24}\.\w{20,}+
docker-login        eyJhdXRocyI6[A-Za-z0-9+/]{16,}+=*+

[chat]
slack-token         xox[a-z](?:\.xox[a-z])?-[\w-]{16,}+
slack-token         xapp-\d-[\w-]{16,}+
slack-webhook       hooks\.slack\.com/[a-z]{7,9}/[\w/+-]{30,}+
discord-webhook     discord(?:app)?\.com/api/webhooks/\d{10,20}/[\w-]{40,}+
discord-token       [MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+
teams-webhook       webhook\.office\.com/webhookb2/[\w@/-]{60,}+
telegram-token      \d{5,16}:A[\w-]{34}(?![\w-])
facebook-token      EAA[A-Za-z0-9]{80,}+
facebook-token      \d{15,16}(?:\||%7[cC])[\w-]{27,40}(?![\w-])
twitter-token       AA{19,30}[\w%-]{60,}+
teams-webhook       outlook\.office\.com/webhook/[\w@/-]{60,}+

[payment]
stripe-key          [rs]k_(?:test|live|prod)_[A-Za-z0-9]{10,}+
stripe-key          whsec_[A-Za-z0-9+/]{24,}+=*+
square-key          sq0[a-z]{3}-[\w-]{22,}+
square-key          EAAA[\w-]{60}(?![\w-])
shopify-token       shp[a-z]{2}_[a-fA-F0-9]{32,}+
flutterwave-key     FLW[A-Z]{4}(?:_TEST)?-[\w-]{12,}+
easypost-key        EZ[AT]K[A-Za-z0-9]{54,}+
braintree-token     access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}(?!\w)

[models]
anthropic-key       sk-ant-[a-z0-9]{3,10}-[\w-]{90,}+(?<=AA)
openai-key          sk-(?!ant-)[\w-]{20,}+
huggingface-token   hf_[A-Za-z0-9]{30,}+
huggingface-token   api_org_[A-Za-z0-9]{30,}+
elevenlabs-key      sk_[a-f0-9]{48}(?!\w)
langfuse-key        sk-lf-[a-f0-9-]{36}(?!\w)

[watching]
grafana-token       glc_[A-Za-z0-9+/]{32,}+=*+
grafana-token       glsa_\w{32,}+
grafana-token       eyJrIjoi[A-Za-z0-9+/]{60,}+=*+
newrelic-key        NR(?:AK|AL|JS|II|RA|SP)-[\w-]{19,}+
sentry-token        sntryu_[a-f0-9]{64}(?!\w)
sentry-token        sntrys_eyJ[\w+/=-]{40,}+
dynatrace-token     dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{60,}+

[office]
airtable-token      pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?!\w)
notion-token        ntn_\w{40,}+
notion-token        secret_[A-Za-z0-9]{43}(?!\w)
linear-token        lin_[a-z]{2,6}_\w{30,}+
figma-token         fig[a-z]_[\w-]{40,}+
mapbox-token        [pst]k\.ey[\w-]{20,500}\.[\w-]{20,}+
hubspot-token       pat-[a-z]{2}\d-[a-f0-9-]{36,}+

[mail]
sendgrid-key        SG\.[\w-]{16,32}\.[\w-]{40,}+
mailgun-key         key-[a-f0-9]{32}(?!\w)
mail-service-key    [a-f0-9]{32}-(?:us\d{1,2}|[a-f0-9]{8}-[a-f0-9]{8})(?![\w-])
brevo-key           x(?:key|smtp)sib-[a-f0-9]{64}-\w{16,}+
twilio-key          SK[0-9a-f]{32}(?!\w)

[identity]
authress-key        sc_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}+
onepassword-key     A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}(?!\w)
onepassword-key     ops_ey[\w+/=-]{100,}+
private-key         LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}+=*+
age-key             AGE-SECRET-KEY-1[A-Z0-9]{50,}+
jwt                 ey(?:(?<![\w-]ey)|(?<=\\[nrt]ey))[\w-]{8,}+\.ey[\w-]{8,}+(?:\.[\w-]*+)*+
"""
# Issuers whose tokens are a prefix of their own and a run of any form.
_PREFIXES = _set("""
    CCIPAT_ CFPAT- aio_ bkua_ duffel_live_ duffel_test_ fio-u- fw_ gsk_ ico- live_ live_pub_ lsv2_pt_ lsv2_sk_
    napi_ nfp_ nvapi- pcsk_ pnu_ pplx- pul- r8_ rdme_ rnd_ s-s4t2af- s-s4t2ud- sbp_ shippo_live_ shippo_test_
    sm_aat_ sm_pat_ sm_sat_ test_ test_pub_ tfp_ tgp_v1_ tk-us- tskey- xai-
    ak_live_ apify_api_ e2b_ odt_ pgar_ pgaw_ phx_ rpa_ scp-live- spu- tvly- vca_ vci_ vck_ vcp_ vcr_
""")


def _by_first_character(patterns: list[str]) -> str:
    """Join alternatives so that a mismatch in the first character rules out all of its group at once."""
    groups = defaultdict(list)
    for pattern in patterns:
        choice = re.match(r"\[([A-Za-z]+)\](?!\{)|[A-Za-z0-9]", pattern)
        for first in (choice[1] or choice[0]) if choice else [""]:
            groups[first].append(pattern[choice.end() :] if choice else pattern)
    anything = groups.pop("", [])
    return "|".join([f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items()] + anything)


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of token: the name that its placeholder shows, the kind of issuer, and the form."""

    name: str
    family: str
    shape: str


def _table(rows: str) -> Iterator[Rule]:
    family = ""
    for row in filter(None, rows.splitlines()):
        if row.startswith("["):
            family = row.strip("[]")
        else:
            name, shape = row.split()
            yield Rule(name, family, shape)


def _prefixed(prefix: str) -> Rule:
    before = rf"(?:(?<![\w./-]{prefix})|(?<=\\[nrt]{prefix}))"
    return Rule("token", "prefix", rf"{prefix}{before}[\w=-]{{16,}}+")


RULES = (*_table(_FORMATS), *map(_prefixed, sorted(_PREFIXES)))
# What a placeholder's name belongs to: an issuer's form, a name before a value, or the look of the
# value alone.
FAMILIES = {
    **{rule.name: rule.family for rule in RULES},
    **dict.fromkeys(("password", "token", "secret", "key"), "named"),
    **dict.fromkeys(("url-password", "url-token", "password-hash"), "login"),
    "random": "look",
}
_NAMED = [(rule.name, re.compile(rule.shape, re.ASCII)) for rule in RULES]
# Only a word that starts here and is long enough is tried at all: one pass for all issuers costs
# little in prose. In a string of a program or of JSON, n, r or t may belong to an escaped end of
# the line and not to the word.
_START = r"(?<![A-Za-moqsu-z0-9+])(?<!(?<!\\)[nrt])(?=[\w.:~+/=@%|-]{16})"
FORMATS = re.compile(f"{_START}(?:{_by_first_character([rule.shape for rule in RULES])})", re.ASCII)


def format_name(text: str, start: int) -> str:
    """Name the issuer's format that stands at this place."""
    return next(name for name, pattern in _NAMED if pattern.match(text, start))


# How people name what must not be seen. A password may be anything; the other kinds are told by
# their look.
_PASSWORDS = _set("""
    pass passcode passphrase passwd password passwords passwort passwrd paswd pasword paswrd psswd psswrd
    psswrd pssword psw pswd pswrd psword pw pwd
""")
_SECRETS = _set("""
    apikey apitoken auth authorization authtoken basic bearer credential credentials creds jwt login otp pat sas
    secret secrets seed sig tokens
""")
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase")
_SECRET_ENDINGS = ("secret", "apikey", "accesskey", "secretkey", "privatekey", "authkey")
_KEYS = frozenset({"key", "keys"})
# Words that make a secret of the word `key` after them.
QUALIFIERS = _set("""
    access account admin api app auth client deploy encryption licence license master private secret service
    shared signing storage subscription
""")
# With one of these in it, a name speaks of something that may be seen.
PUBLIC = _set("""
    authenticity cache column composite context csrf data dict fingerprint foreign hash host hot i18n
    idempotency index json keyboard known map next object page partition primary pub public query registry
    routing row search shortcut sort sub table translation unique verifying xsrf
""")
# With one of these at its end, a name speaks about a secret.
ABOUT = _set("""
    algorithm alphabet arn chars charset contains count dir directory enabled endpoint expiration
    expires expiry field file filename format header hint id ids input kind label length limit name
    names namespace param parameter path policy prefix property provider ref reference regex
    required reset scope size startswith status stdin store strategy suffix template title ttl type
    types uri url usage version
""")
# Issuers whose tokens have no form of their own: next to such a name, only a random value is one.
_SERVICES = _set("""
    adafruit airtable algolia artifactory asana atlassian auth0 beamer bitbucket cloudflare codecov cohere
    coinbase confluent contentful datadog discord dropbox etsy fastly finnhub flickr gitter heroku intercom
    jfrog jira kraken kucoin launchdarkly linkedin looker mailgun mattermost meraki messagebird netlify newrelic
    nytimes okta plaid rapidapi sendbird snyk sonar sourcegraph squarespace sumologic travis trello twilio
    twitch twitter typeform yandex zendesk
""")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

# No secret is shorter, whatever its name says.
_LEAST = 6
# What is too short for an issuer's token without a form of its own.
_LONG = 16
# From here on, even the order of the alphabet is no sign of an example after a name that promises a
# secret.
_COUNTED = 20
# So many letters and so many digits make a mixture of a long run.
_LEAST_OF_BOTH = 4
# The shortest run whose changes are counted.
_LEAST_DENSE = 12
# How many characters of one kind follow each other, on average, in a value that some word
# announces.
DENSE_NAMED = 3.0
# What is more often the number of a key than a key.
KEY_NUMBER = re.compile(r"(?i)[0-9a-f]{64}|(?-i:[0-9A-F]{40})")
# So many digits make somebody's password of words that mean nothing.
_WEAK_DIGITS = 3
# The shortest run of letters and digits in which chance can be told from words.
_LEAST_RUN = 8
# An identifier of digits alone; telephone numbers and times are shorter.
_LEAST_NUMBER = 15
# Random letters and digits change between small, capital and digit every two characters or so;
# words do not.
_PIECE = 3.4
# No more of a value is looked at.
_SIGHT = 400
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS = re.compile(r"[A-Za-z0-9]+")
# Short words and a number, as in shop-test2-20240131.
_NUMBERED = re.compile(r"(?:[a-z]{1,8}\d?[-_]){1,6}\d{1,12}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The pairs of letters that make up nine tenths of technical English; of random letters they make up
# three tenths.
_PAIRS = _set("""
    ab ac ad ag ai al am an ap ar as at au av ay ba be bi bl bo bu ca cc ce ch ci ck cl co cr ct cu da de di do
    ds du ea ec ed ee ef eg el em en ep er es et ev ex fa fe ff fi fo ga ge gi gn gr gu ha he hi ho ia ib ic id
    ie if ig il im in io ip ir is it iv iz ke ki la ld le li ll lo ls lt lu ly ma me mi mm mo mp na nc nd ne nf
    ng ni nn no ns nt ob oc od og ok ol om on oo op or os ot ou ov ow pa pe pi pl po pp pr pt pu qu ra rc rd re
    ri rk rm rn ro rr rs rt ru rv ry sa sc se sh si so sp ss st su sy ta tc te th ti tl to tr ts tt tu ty ua ub
    uc ue ui ul um un up ur us ut va ve vi wa we wi wo xp yp ze
""")
# The share of such pairs below which letters are random; few letters need the clearer sign.
_WORDLIKE = 0.6
_WORDLIKE_SHORT = 0.4
_DIGEST = re.compile(
    r"(?i)[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}"
)
# How a private key in its text form begins once more encoded.
_ENCODED = "LS0tLS1CRUdJTi"
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,200}={0,2}")
_PHRASE = re.compile(r"[^\W\d_]+(?:[ ,.?!-]+[^\W\d_]+)+[.?!]?\s*")
_SELF = re.compile(r"(?i)pass|secret|login|user")
# Letters and digits, as in a password that is told in a sentence or in a table.
_MIXED = re.compile(r"(?=[^\d]{0,40}\d)(?=[^A-Za-z]{0,40}[A-Za-z])[^\s-]{6,40}")
_SYMBOL = re.compile(r"[^\w.:/-]")
_LETTERS = re.compile(r"[a-z]{2,}")
# A value that stands for another one: an expression, a variable, a template, a path, an address.
_REFERENCE = re.compile(
    r"[$%@&!*]?[({\[<]|-|[$%&]\w+%?\Z|\.{0,2}/|~/|[A-Za-z]:\\|[a-z][\w+.-]{0,20}://"
    r"|(?:ENC|arn|data|env|file|md5|op|secretsmanager|sha\d+|ssm|vault)[:\[-]"
)
_CHAIN = re.compile(r"(?:[A-Za-z_]\w*+[.:/]{1,2})++[A-Za-z_]\w*+")
_EXPRESSION = re.compile(r"\$\{|\$\(|\{\{|%\(\w|[A-Za-z_]\w\(|->|::|\w\[")
_FAKE = re.compile(
    r"(?i)[x*.#•]{4}|\.\.\.|…|example|sample|placeholder|change.?(?:me|it)|replace|insert|dummy|redacted|removed|hidden"
    r"|your?[_ -]|todo|fixme"
    # In order after the prefix of an issuer it is a sample; after a name alone it may be a secret.
    r"|\A[a-z]{2,10}[-_](?:abcdefgh|0?123456789)|abcdefghijklmnopqrstuvwxyz0123456789"
)
# Letters or digits in their order mark the sample of a manual where the form alone makes a token.
_SAMPLE = re.compile(r"(?i)abcdefgh|0123456789|1234567890")
# A value of these words alone is nobody's secret.
_MEANINGLESS = _set("""
    abc abcd access admin api app argument attribute auth bar basic baz bearer client correct credential
    credentials db default demo dev empty encoded encrypted fake false field file foo foobar from get given
    guest hash hello here hunter id if in invalid is it key keys like local login mine mock mongo my mysql name
    new none not null of old on only option or pass passphrase passwd password passwords plain postgres private
    prod production pwd qwerty random raw redis required root sa secret secrets secure service setting some
    something staging str string strong super supersecret sys test tester testing text that the this tiger to
    token tokens top true type undefined user username users valid value very weak with word world wrong you
    your
""")


# Examples that widely read manuals print, by the first 12 hexadecimal digits of their SHA-256. They
# are public, and a note that quotes a manual should stay readable. Only values of 12 characters or
# more that nobody would choose: a weak password of a manual may be somebody's password.
_PUBLISHED = {
    "the manual of Kubernetes": _set("""
    13fe7a38a57c 19bc25153019 28d296be3bf5 2d5dc0f4fdf6 3002888f967a 3442c7c2cbfd 35f60b53e095
    3efafe12de7a 53e588e3b7dc 6ffd33b07589 85cf2543739f 8ddc460cc29f a2b460bac40b a42a366ef43d
    a7b580d711ef a896cf457140 ba5130e96b2c c0db4afb1775 d9f5032d168b dc9b5db8c9b0 e25641fa6f7a
    e823ff4404e3
    """),
    "the front page of jwt.io": _set("7f75367e7881"),
    "the emulators of Azure Storage and of Cosmos DB": _set("0011cc25eb43 aa6547439583"),
}
_PUBLISHED_DIGESTS = frozenset().union(*_PUBLISHED.values())


def words(name: str) -> list[str]:
    """Cut a name at its humps and marks, in small letters."""
    return [word.lower() for word in _WORDS.findall(name)]


def kind_of(name: str) -> str:
    """Tell what a name promises: a password, a token, a secret, a key, something of a service.

    Or nothing.
    """
    parts = words(name)
    while parts and parts[-1].isdigit():
        parts.pop()
    if not parts or parts[-1] in ABOUT or not PUBLIC.isdisjoint(parts):
        return ""
    joined = "".join(parts)
    promises = (
        ("password", not _PASSWORDS.isdisjoint(parts) or joined.endswith(_PASSWORD_ENDINGS)),
        ("token", "token" in parts or joined.endswith("token")),
        ("secret", not _SECRETS.isdisjoint(parts) or joined.endswith(_SECRET_ENDINGS)),
        ("key", not _KEYS.isdisjoint(parts[-2:]) and len(parts) > 1),
        ("service", not _SERVICES.isdisjoint(parts)),
    )
    return next((kind for kind, is_promised in promises if is_promised), "")


def is_secret(kind: str, value: str) -> bool:
    """Tell whether this may be the value of a name that promises this kind of secret."""
    value = value[:_SIGHT]
    if len(value) < _LEAST or len(value.split(None, 1)) > 1:
        return False
    looks_secret = is_random(value) or is_mixed(value)
    if kind == "password":
        looks_secret = looks_secret or is_chosen(value)
    elif kind == "spoken":
        looks_secret = looks_secret or bool(_MIXED.fullmatch(value))
    elif kind == "bare":
        looks_secret = is_dense(value, DENSE_NAMED) or is_mixed(value)
        looks_secret = looks_secret and len(value) >= _COUNTED and not KEY_NUMBER.fullmatch(value)
    elif kind == "key":
        looks_secret = looks_secret and len(value) >= _LONG and not KEY_NUMBER.fullmatch(value)
    elif kind == "service":
        looks_secret = is_random(value) and len(value) >= _LONG and not _DIGEST.fullmatch(value)
    return looks_secret and not is_reference(value) and not is_fake(value)


def is_mixed(value: str) -> bool:
    """Tell a long run of letters and digits: even in the order of the alphabet it is no word."""
    run = longest_run(value)
    digits = sum(map(str.isdigit, run))
    return len(run) >= _COUNTED and min(digits, len(run) - digits) >= _LEAST_OF_BOTH


def is_dense(value: str, most: float) -> bool:
    """Tell a value that changes between small.

    Capital and digit every `most` characters or more often.
    """
    if _UUID.fullmatch(value) or _DIGEST.fullmatch(value):
        return True
    is_path = value.count("/") > 2 + len(value) // _COUNTED
    is_hyphened = "-" in value[1:-1] and len(value) < _COUNTED
    if is_path or is_hyphened or len(longest_run(value)) < _LEAST_DENSE:
        return False
    pieces = _PIECES.findall(value)
    return sum(map(len, pieces)) <= most * len(pieces)


def longest_run(value: str) -> str:
    """Return the longest run of letters and digits in a value."""
    return max(_RUNS.findall(value), key=len, default="")


def is_token(value: str) -> bool:
    """Tell a token of a known form from a name that happens to begin like one."""
    if value.startswith(_ENCODED):
        return b"PRIVATE" in b64decode(value[: min(len(value), 80) // 4 * 4])
    digits = sum(map(str.isdigit, value))
    looks_random = is_random(value) or digits * 5 >= len(value)
    is_sample = is_fake(value) or _SAMPLE.search(value) is not None
    return value.startswith("AGE-") or (looks_random and not is_sample)


def is_reference(value: str) -> bool:
    """Tell a value that only points at the secret.

    Code, a variable, a template, a path, an address.
    """
    is_chain = _CHAIN.fullmatch(value) and not is_random(value)
    return bool(_REFERENCE.match(value) or _EXPRESSION.search(value) or is_chain)


def is_published(value: str) -> bool:
    """Tell a value that a manual prints as its example, so that everybody has it."""
    return (
        hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        in _PUBLISHED_DIGESTS
    )


def is_fake(value: str) -> bool:
    """Tell a placeholder, a mask or a documented example from a real secret."""
    if is_published(value):
        return True
    runs = [run for run in _RUNS.findall(value) if len(run) >= _LEAST - 2]
    is_mask = bool(runs) and all(map(_is_monotonous, runs))
    is_told = is_counted(value) or _is_issued_by_an_example(value) or bool(_FAKE.search(value))
    return is_mask or is_told or _is_meaningless(value) or _is_phrase(_decoded(value))


def is_random(value: str) -> bool:
    """Tell letters and digits nobody would write from words, dates and versions."""
    if _UUID.fullmatch(value) or (_DIGEST.fullmatch(value) and not value.isdigit()):
        return True
    if len(longest_run(value)) < _LEAST_RUN or _NUMBERED.fullmatch(value):
        return False
    pieces = _PIECES.findall(value)
    length = sum(map(len, pieces))
    digits = sum(map(str.isdigit, value))
    if digits >= length:
        return length >= _LEAST_NUMBER
    if digits and length <= _PIECE * len(pieces):
        return True
    if length < _LONG and not digits and (value.islower() or value.isupper()):
        return False
    runs = _LETTERS.findall(value.lower())
    pairs = [run[index : index + 2] for run in runs for index in range(len(run) - 1)]
    limit = _WORDLIKE if length >= _LONG else _WORDLIKE_SHORT
    return sum(pair in _PAIRS for pair in pairs) < limit * len(pairs)


def is_chosen(value: str) -> bool:
    """Tell what somebody may have chosen as a password from a word that only says what it is."""
    if any(map(str.isdigit, value)) or _SYMBOL.search(value):
        return any(map(str.isalpha, value))
    # Documentation writes in capitals what the reader shall replace.
    return not value.isupper() and not _SELF.search(value)


def _is_monotonous(run: str) -> bool:
    kinds = set(run)
    return max(map(run.count, kinds)) * 5 >= len(run) * 2 or len(kinds) * 8 <= min(len(run), 48)


def is_counted(value: str) -> bool:
    """Tell a few keys pressed in the order of the alphabet, as in abcde12345."""
    steps = sum(ord(after) - ord(before) == 1 for before, after in pairwise(value))
    return 1 < len(value) < _COUNTED and steps * 4 >= (len(value) - 1) * 3


def _is_issued_by_an_example(value: str) -> bool:
    """Tell a signed token whose own text says that it comes from one of the hosts that exist for examples."""
    claims = value.split(".", 2)[1] if value.startswith("ey") and "." in value else ""
    try:
        return b"://example." in urlsafe_b64decode(claims[: len(claims) // 4 * 4])
    except ValueError:
        return False


def _is_meaningless(value: str) -> bool:
    parts = words(value)
    numbers = [word for word in parts if word.isdigit()]
    meant = [word for word in parts if not word.isdigit()]
    is_chosen_well = len(numbers) > 1 or len("".join(numbers)) >= _WEAK_DIGITS
    return bool(meant) and not is_chosen_well and _MEANINGLESS.issuperset(meant)


def _is_phrase(text: str) -> bool:
    is_example = bool(_FAKE.search(text)) or "abcdefgh" in text
    return bool(text) and (is_example or bool(_PHRASE.fullmatch(text)) or _is_meaningless(text))


def _decoded(value: str) -> str:
    if len(value) % 4 or not _BASE64.fullmatch(value):
        return ""
    try:
        return b64decode(value).decode()
    except ValueError:
        return ""
