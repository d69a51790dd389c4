"""The names that people give to secrets, and the kind of secret that a name promises."""

from __future__ import annotations

from ragdocs.system.patterns import later


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# How people name what must not be seen. A password may be anything; the other kinds are told by
# their look.
_PASSWORDS = _set("""
    pass passcode passphrase passwd password passwords passwort passwrd paswd pasword paswrd
    psswd psswrd pssword psw pswd pswrd psword pw pwd
""")
_SECRETS = _set("""
    apikey apitoken auth authorization authtoken basic bearer credential credentials creds jwt
    login otp pat sas secret secrets seed sig tokens
""")
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase")
_SECRET_ENDINGS = ("secret", "apikey", "accesskey", "secretkey", "privatekey", "authkey")
_KEYS = frozenset({"key", "keys"})
# Words that make a secret of the word `key` after them.
QUALIFIERS = _set("""
    access account admin api app auth client deploy encryption licence license master private
    secret service shared signing storage subscription
""")
# With one of these in it, a name speaks of something that may be seen.
PUBLIC = _set("""
    authenticity cache column composite context csrf data dict fingerprint foreign hash host hot
    i18n idempotency index json keyboard known map next object page partition primary pub public
    query registry routing row search shortcut sort sub table translation unique verifying xsrf
""")
# With one of these at its end, a name speaks about a secret.
ABOUT = _set("""
    algorithm alphabet arn chars charset contains count dir directory enabled endpoint
    expiration expires expiry field file filename format header hint id ids input kind label
    length limit name names namespace param parameter path policy prefix property provider ref
    reference regex required reset scope size startswith status stdin store strategy suffix
    template title ttl type types uri url usage version
""")
# Issuers whose tokens have no form of their own: next to such a name, only a random value is one.
_SERVICES = _set("""
    adafruit airtable algolia artifactory asana atlassian auth0 beamer bitbucket cloudflare
    codecov cohere coinbase confluent contentful datadog discord dropbox etsy fastly finnhub
    flickr gitter heroku intercom jfrog jira kraken kucoin launchdarkly linkedin looker mailgun
    mattermost meraki messagebird netlify newrelic nytimes okta plaid rapidapi sendbird snyk
    sonar sourcegraph squarespace sumologic travis trello twilio twitch twitter typeform yandex
    zendesk
""")
_WORDS = later(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def words(name: str) -> list[str]:
    """Cut a name at its humps and marks, in small letters."""
    return [word.lower() for word in _WORDS.findall(name)]


def is_public(parts: list[str]) -> bool:
    """Tell whether a name of these words speaks of something that may be seen."""
    return parts[-1] in ABOUT or not PUBLIC.isdisjoint(parts)


def kind_of(name: str) -> str:
    """Tell which kind of secret a name promises; empty if it promises none."""
    parts = words(name)
    while parts and parts[-1].isdigit():
        parts.pop()
    if not parts or is_public(parts):
        return ""
    return _kind(parts)


def _kind(parts: list[str]) -> str:
    joined = "".join(parts)
    if not _PASSWORDS.isdisjoint(parts) or joined.endswith(_PASSWORD_ENDINGS):
        return "password"
    if "token" in parts or joined.endswith("token"):
        return "token"
    if not _SECRETS.isdisjoint(parts) or joined.endswith(_SECRET_ENDINGS):
        return "secret"
    if len(parts) > 1 and not _KEYS.isdisjoint(parts[-2:]):
        return "key"
    if not _SERVICES.isdisjoint(parts):
        return "service"
    return ""
