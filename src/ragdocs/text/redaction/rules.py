"""The forms of tokens by their issuers, one rule for each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

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
_PREFIXES = """
    CCIPAT_ CFPAT- aio_ bkua_ duffel_live_ duffel_test_ fio-u- fw_ gsk_ ico- live_ live_pub_
    lsv2_pt_ lsv2_sk_ napi_ nfp_ nvapi- pcsk_ pnu_ pplx- pul- r8_ rdme_ rnd_ s-s4t2af- s-s4t2ud-
    sbp_ shippo_live_ shippo_test_ sm_aat_ sm_pat_ sm_sat_ test_ test_pub_ tfp_ tgp_v1_ tk-us-
    tskey- xai- ak_live_ apify_api_ e2b_ odt_ pgar_ pgaw_ phx_ rpa_ scp-live- spu- tvly- vca_
    vci_ vck_ vcp_ vcr_
"""
# Only a word that starts here and is long enough is tried at all: one pass for all issuers costs
# little in prose. In a string of a program or of JSON, n, r or t may belong to an escaped end of
# the line and not to the word.
_START = r"(?<![A-Za-moqsu-z0-9+])(?<!(?<!\\)[nrt])(?=[\w.:~+/=@%|-]{16})"
# How a form may begin: with one of several letters, or with one letter or digit.
_FIRST = re.compile(r"\[(?P<letters>[A-Za-z]+)\](?!\{)|[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of token: the name that its placeholder shows, the kind of issuer, and the form."""

    name: str
    family: str
    shape: str


def _listed_rules(rows: str) -> Iterator[Rule]:
    family = ""
    for row in filter(None, rows.splitlines()):
        if row.startswith("["):
            family = row.strip("[]")
            continue
        name, shape = row.split()
        yield Rule(name, family, shape)


def _prefix_rule(prefix: str) -> Rule:
    before = rf"(?:(?<![\w./-]{prefix})|(?<=\\[nrt]{prefix}))"
    return Rule("token", "prefix", rf"{prefix}{before}[\w=-]{{16,}}+")


def _joined(rules: Sequence[Rule]) -> str:
    """Join the forms so that a wrong first character rules out all of its group at once."""
    groups: dict[str, list[str]] = defaultdict(list)
    others: list[str] = []
    for rule in rules:
        first = _FIRST.match(rule.shape)
        if not first:
            others.append(rule.shape)
            continue
        for character in first["letters"] or first[0]:
            groups[character].append(rule.shape[first.end() :])
    alternatives = []
    for character, shapes in groups.items():
        choices = "|".join(shapes)
        alternatives.append(f"{character}(?:{choices})")
    return "|".join(alternatives + others)


RULES = (*_listed_rules(_FORMATS), *map(_prefix_rule, sorted(_PREFIXES.split())))
# What a placeholder's name belongs to: an issuer's form, a name before a value, or the look of the
# value alone.
FAMILIES = {
    **{rule.name: rule.family for rule in RULES},
    "password": "named",
    "token": "named",
    "secret": "named",
    "key": "named",
    "url-password": "login",
    "url-token": "login",
    "password-hash": "login",
    "random": "look",
}


@cache
def any_format() -> re.Pattern[str]:
    """Return the pattern of all forms; many commands end before a text is searched for them."""
    return re.compile(f"{_START}(?:{_joined(RULES)})", re.ASCII)


def format_name(text: str, start: int) -> str:
    """Name the issuer's format that stands at this offset."""
    return next(rule.name for rule in RULES if _format(rule).match(text, start))


@cache
def _format(rule: Rule) -> re.Pattern[str]:
    return re.compile(rule.shape, re.ASCII)
