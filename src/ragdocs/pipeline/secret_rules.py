"""What secrets look like: token formats by issuer, and the words by which people name a secret."""

from __future__ import annotations

import re
from collections import defaultdict

# One form of token a line, after the name that its placeholder shows. Two laws keep the search linear: an unbounded run
# stands at the end, where it cannot fail, and every other repetition is bounded.
_FORMATS = r"""
aws-access-key      A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?!\w)
aws-bedrock-key     ABSK[A-Za-z0-9+/]{60,}+=*+
aws-bedrock-key     bedrock-api-key-[\w+/=-]{20,}+
github-token        gh[oprsu]_[A-Za-z0-9]{36,}+
github-token        github_pat_\w{36,}+
gitlab-token        gl[a-z]{1,7}-[\w-]{20,}+(?:\.[\w.]++)?
gitlab-token        GR1348941[\w-]{20,}+
gitlab-session      _gitlab_session=[0-9a-z]{32}(?!\w)
slack-token         xox[a-z](?:\.xox[a-z])?-[\w-]{16,}+
slack-token         xapp-\d-[\w-]{16,}+
slack-webhook       hooks\.slack\.com/[a-z]{7,9}/[\w/+-]{30,}+
discord-webhook     discord(?:app)?\.com/api/webhooks/\d{10,20}/[\w-]{40,}+
discord-token       [MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+
teams-webhook       webhook\.office\.com/webhookb2/[\w@/-]{60,}+
telegram-token      \d{5,16}:A[\w-]{34}(?![\w-])
stripe-key          [rs]k_(?:test|live|prod)_[A-Za-z0-9]{10,}+
stripe-key          whsec_[A-Za-z0-9+/]{24,}+=*+
square-key          sq0[a-z]{3}-[\w-]{22,}+
square-key          EAAA[\w-]{60}(?![\w-])
shopify-token       shp[a-z]{2}_[a-fA-F0-9]{32,}+
flutterwave-key     FLW[A-Z]{4}(?:_TEST)?-[\w-]{12,}+
easypost-key        EZ[AT]K[A-Za-z0-9]{54,}+
google-key          AIza[\w-]{35}(?![\w-])
google-key          GOCSPX-[\w-]{20,}+
google-key          ya29\.[\w-]{20,}+
google-key          1//0[\w-]{30,}+
anthropic-key       sk-ant-[a-z0-9]{3,10}-[\w-]{80,}+
openai-key          sk-[\w-]{20,}+
huggingface-token   hf_[A-Za-z0-9]{30,}+
huggingface-token   api_org_[A-Za-z0-9]{30,}+
npm-token           npm_[A-Za-z0-9]{36,}+
pypi-token          pypi-Ag[EN][\w-]{50,}+
rubygems-token      rubygems_[a-f0-9]{48,}+
docker-token        dckr_[a-z]{3}_[\w-]{20,}+
clojars-token       CLOJARS_[a-z0-9]{60,}+
nuget-key           oy2[a-z0-9]{43}(?!\w)
jfrog-token         AKCp\w{60,}+
jfrog-token         cmVmd[A-Za-z0-9]{59}(?!\w)
digitalocean-token  do[oprt]_v1_[a-f0-9]{64,}+
heroku-key          HRKU-[\w-]{36,}+
fly-token           fo1_[\w-]{40,}+
fly-token           fm[12][ar]?_[A-Za-z0-9+/]{60,}+=*+
planetscale-token   pscale_[a-z]{2,6}_[\w=.-]{32,}+
doppler-token       dp\.[a-z]{2,5}\.[\w.-]{40,}+
terraform-token     atlasv1\.[\w-]{40,}+
vault-token         hv[brs]\.[\w-]{24,}+
vault-token         s\.(?=[A-Za-z]{0,24}\d)(?=[A-Z\d]{0,24}[a-z])[A-Za-z0-9]{24}(?!\w)
databricks-token    dapi[a-f0-9]{32}(?:-\d)?(?!\w)
grafana-token       glc_[A-Za-z0-9+/]{32,}+=*+
grafana-token       glsa_\w{32,}+
grafana-token       eyJrIjoi[A-Za-z0-9+/]{60,}+=*+
newrelic-key        NR(?:AK|AL|JS|II|RA|SP)-[\w-]{19,}+
sentry-token        sntry[a-z]_[\w+/=-]{40,}+
sonar-token         sq[apu]_[A-Za-z0-9]{40}(?!\w)
sourcegraph-token   sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}(?!\w)
postman-key         PMAK-[a-f0-9]{24}-[a-f0-9]{30,}+
atlassian-token     AT[AC]TT3[\w=-]{60,}+
atlassian-token     ATBB[A-Za-z0-9]{28,}+
airtable-token      pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?!\w)
notion-token        ntn_\w{40,}+
notion-token        secret_[A-Za-z0-9]{43}(?!\w)
linear-token        lin_[a-z]{2,6}_\w{30,}+
figma-token         fig[a-z]_[\w-]{40,}+
sendgrid-key        SG\.[\w-]{16,32}\.[\w-]{40,}+
mailgun-key         key-[a-f0-9]{32}(?!\w)
mailgun-key         [a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![\w-])
mailchimp-key       [a-f0-9]{32}-us\d{1,2}(?!\w)
brevo-key           x(?:key|smtp)sib-[a-f0-9]{64}-\w{16,}+
twilio-key          SK[0-9a-f]{32}(?!\w)
dropbox-token       sl\.[\w-]{100,}+
facebook-token      EAA[A-Za-z0-9]{80,}+
facebook-token      \d{15,16}(?:\||%7[cC])[\w-]{27,40}(?![\w-])
twitter-token       AA{19,30}[\w%-]{60,}+
mapbox-token        [pst]k\.ey[\w-]{20,500}\.[\w-]{20,}+
dynatrace-token     dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{60,}+
harness-key         [ps]at\.[\w-]{22}\.[a-f0-9]{24}\.\w{20,}+
authress-key        (?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}+
hubspot-token       pat-[a-z]{2}\d-[a-f0-9-]{36,}+
cloudflare-key      v1\.0-[a-f0-9]{24}-[a-f0-9]{140,}+
azure-secret        [\w~.]{3}\dQ~[\w~.-]{31,}+
alibaba-key         LTAI[A-Za-z0-9]{12,24}(?!\w)
tencent-key         AKID[A-Za-z0-9]{32}(?!\w)
yandex-key          AQVN[\w-]{35,}+
yandex-key          t1\.[A-Z0-9a-z_-]{4,400}={0,2}\.[\w-]{86,}+=*+
yandex-key          YC[\w-]{38}(?![\w-])
openshift-token     sha256~[\w-]{43}(?![\w-])
clickhouse-key      4b1d[A-Za-z0-9]{38}(?!\w)
octopus-key         API-[A-Z0-9]{25,32}(?!\w)
onepassword-key     A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}(?!\w)
onepassword-key     ops_ey[\w+/=-]{100,}+
age-key             AGE-SECRET-KEY-1[A-Z0-9]{50,}+
jwt                 ey(?<![\w-]ey)[\w-]{8,}+\.ey[\w-]{8,}+(?:\.[\w-]*+)*+
"""
# Issuers whose tokens are a prefix of their own and a run of any form.
_PREFIXES = (
    "aio bkua CCIPAT CFPAT duffel_live duffel_test fio-u fw gsk ico lsv2_pt lsv2_sk live live_pub napi nfp nvapi pcsk "
    "pnu pplx pul r8 rdme rnd s-s4t2af s-s4t2ud sbp shippo_live shippo_test sm_aat sm_pat sm_sat test test_pub tfp tgp_v1 "
    "tk-us tskey xai"
).split()


def _by_first_character(patterns: list[str]) -> str:
    """Join alternatives so that a mismatch in the first character rules out all of its group at once."""
    groups = defaultdict(list)
    for pattern in patterns:
        groups[pattern[0] if pattern[0].isalnum() else ""].append(pattern)
    literal = [f"{first}(?:{'|'.join(rest[1:] for rest in group)})" for first, group in groups.items() if first]
    return "|".join([*literal, *groups[""]])


_RULES = [line.split() for line in _FORMATS.strip().splitlines()]
_RULES += [["token", rf"{prefix}[_-][\w=-]{{20,}}+"] for prefix in _PREFIXES]
_NAMED = [(name, re.compile(pattern, re.ASCII)) for name, pattern in _RULES]
# Only a word that starts here and is long enough is tried at all: one pass for all issuers costs little in prose.
FORMATS = re.compile(
    rf"(?<![A-Za-z0-9])(?=[\w.:~+/=@%|-]{{16}})(?:{_by_first_character([pattern for _, pattern in _RULES])})", re.ASCII
)


def format_name(text: str, start: int) -> str:
    """Name the issuer's format that stands at this place."""
    return next(name for name, pattern in _NAMED if pattern.match(text, start))
