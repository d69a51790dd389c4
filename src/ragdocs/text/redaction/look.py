"""What the look of a value tells: a secret, a word, a reference to a secret, or an example."""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64decode
from itertools import pairwise

from ragdocs.system.patterns import later
from ragdocs.text.redaction.names import words


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


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
KEY_NUMBER = later(r"(?i)[0-9a-f]{64}|(?-i:[0-9A-F]{40})")
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
SIGHT = 400
_PIECES = later(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS = later(r"[A-Za-z0-9]+")
# Short words and a number, as in shop-test2-20240131.
_NUMBERED = later(r"(?:[a-z]{1,8}\d?[-_]){1,6}\d{1,12}")
_UUID = later(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The pairs of letters that make up nine tenths of technical English; of random letters they make up
# three tenths.
_PAIRS = _set("""
    ab ac ad ag ai al am an ap ar as at au av ay ba be bi bl bo bu ca cc ce ch ci ck cl co cr ct
    cu da de di do ds du ea ec ed ee ef eg el em en ep er es et ev ex fa fe ff fi fo ga ge gi gn
    gr gu ha he hi ho ia ib ic id ie if ig il im in io ip ir is it iv iz ke ki la ld le li ll lo
    ls lt lu ly ma me mi mm mo mp na nc nd ne nf ng ni nn no ns nt ob oc od og ok ol om on oo op
    or os ot ou ov ow pa pe pi pl po pp pr pt pu qu ra rc rd re ri rk rm rn ro rr rs rt ru rv ry
    sa sc se sh si so sp ss st su sy ta tc te th ti tl to tr ts tt tu ty ua ub uc ue ui ul um un
    up ur us ut va ve vi wa we wi wo xp yp ze
""")
# The share of such pairs below which letters are random; few letters need the clearer sign.
_WORDLIKE = 0.6
_WORDLIKE_SHORT = 0.4
_DIGEST = later(
    r"(?i)[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}"
)
# How a private key in its text form begins once more encoded.
_ENCODED = "LS0tLS1CRUdJTi"
# So much of an encoded key says which kind of key it is.
_ENCODED_HEAD = 80
_BASE64 = later(r"[A-Za-z0-9+/]{8,200}={0,2}")
_PHRASE = later(r"[^\W\d_]+(?:[ ,.?!-]+[^\W\d_]+)+[.?!]?\s*")
_SELF = later(r"(?i)pass|secret|login|user")
# Letters and digits, as in a password that is told in a sentence or in a table.
_MIXED = later(r"(?=[^\d]{0,40}\d)(?=[^A-Za-z]{0,40}[A-Za-z])[^\s-]{6,40}")
_SYMBOL = later(r"[^\w.:/-]")
_LETTERS = later(r"[a-z]{2,}")
# A value that stands for another one: an expression, a variable, a template, a path, an address.
_REFERENCE = later(
    r"[$%@&!*]?[({\[<]|-|[$%&]\w+%?\Z|\.{0,2}/|~/|[A-Za-z]:\\|[a-z][\w+.-]{0,20}://"
    r"|(?:ENC|arn|data|env|file|md5|op|secretsmanager|sha\d+|ssm|vault)[:\[-]"
)
_CHAIN = later(r"(?:[A-Za-z_]\w*+[.:/]{1,2})++[A-Za-z_]\w*+")
_EXPRESSION = later(r"\$\{|\$\(|\{\{|%\(\w|[A-Za-z_]\w\(|->|::|\w\[")
_FAKE = later(
    r"(?i)[x*.#•]{4}|\.\.\.|…|example|sample|placeholder|change.?(?:me|it)|replace|insert|dummy"
    r"|redacted|removed|hidden|your?[_ -]|todo|fixme"
    # In order after the prefix of an issuer it is a sample; after a name alone it may be a secret.
    r"|\A[a-z]{2,10}[-_](?:abcdefgh|0?123456789)|abcdefghijklmnopqrstuvwxyz0123456789"
)
# Letters or digits in their order mark the sample of a manual where the form alone makes a token.
_SAMPLE = later(r"(?i)abcdefgh|0123456789|1234567890")
# A value of these words alone is nobody's secret.
_MEANINGLESS = _set("""
    abc abcd access admin api app argument attribute auth bar basic baz bearer client correct
    credential credentials db default demo dev empty encoded encrypted fake false field file foo
    foobar from get given guest hash hello here hunter id if in invalid is it key keys like
    local login mine mock mongo my mysql name new none not null of old on only option or pass
    passphrase passwd password passwords plain postgres private prod production pwd qwerty
    random raw redis required root sa secret secrets secure service setting some something
    staging str string strong super supersecret sys test tester testing text that the this tiger
    to token tokens top true type undefined user username users valid value very weak with word
    world wrong you your
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


def is_secret(kind: str, value: str) -> bool:
    """Tell whether this may be the value of a name that promises this kind of secret."""
    value = value[:SIGHT]
    if len(value) < _LEAST or len(value.split(None, 1)) > 1:
        return False
    return _has_look(kind, value) and not is_reference(value) and not is_fake(value)


def _has_look(kind: str, value: str) -> bool:
    """Tell whether a value looks as secrets of this kind do."""
    if kind == "service":
        return is_random(value) and len(value) >= _LONG and not _DIGEST.fullmatch(value)
    if kind == "bare":
        is_long = len(value) >= _COUNTED and not KEY_NUMBER.fullmatch(value)
        return is_long and (is_dense(value, DENSE_NAMED) or is_mixed(value))
    if kind == "key" and (len(value) < _LONG or KEY_NUMBER.fullmatch(value)):
        return False
    if is_random(value) or is_mixed(value):
        return True
    if kind == "password":
        return is_chosen(value)
    return kind == "spoken" and bool(_MIXED.fullmatch(value))


def is_mixed(value: str) -> bool:
    """Tell a long run of letters and digits: even in the order of the alphabet it is no word."""
    run = longest_run(value)
    digits = sum(map(str.isdigit, run))
    letters = len(run) - digits
    return len(run) >= _COUNTED and min(digits, letters) >= _LEAST_OF_BOTH


def is_dense(value: str, most: float) -> bool:
    """Tell a value whose runs of small letters, of capitals and of digits are short.

    A run has `most` characters on average, or fewer.
    """
    if _UUID.fullmatch(value) or _DIGEST.fullmatch(value):
        return True
    if value.count("/") > 2 + len(value) // _COUNTED:
        # A path.
        return False
    is_hyphened = "-" in value[1:-1] and len(value) < _COUNTED
    if is_hyphened or len(longest_run(value)) < _LEAST_DENSE:
        return False
    pieces = _PIECES.findall(value)
    length = sum(map(len, pieces))
    return length <= most * len(pieces)


def longest_run(value: str) -> str:
    """Return the longest run of letters and digits in a value."""
    return max(_RUNS.findall(value), key=len, default="")


def is_token(value: str) -> bool:
    """Tell a token of a known form from a name that happens to begin like one."""
    if value.startswith(_ENCODED):
        head = value[:_ENCODED_HEAD]
        return b"PRIVATE" in b64decode(head[: len(head) // 4 * 4])
    if value.startswith("AGE-"):
        return True
    digits = sum(map(str.isdigit, value))
    looks_random = is_random(value) or digits * 5 >= len(value)
    return looks_random and not is_fake(value) and not _SAMPLE.search(value)


def is_reference(value: str) -> bool:
    """Tell a value that only points at the secret: code, a variable, a path, an address."""
    if _REFERENCE.match(value) or _EXPRESSION.search(value):
        return True
    return bool(_CHAIN.fullmatch(value)) and not is_random(value)


def is_published(value: str) -> bool:
    """Tell a value that a manual prints as its example, so that everybody has it."""
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:12] in _PUBLISHED_DIGESTS


def is_fake(value: str) -> bool:
    """Tell a placeholder, a mask or a documented example from a real secret."""
    if is_published(value) or _is_mask(value) or is_counted(value):
        return True
    if _is_issued_by_an_example(value) or _FAKE.search(value):
        return True
    return _is_meaningless(value) or _is_phrase(_decoded(value))


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
    limit = _WORDLIKE_SHORT
    if length >= _LONG:
        limit = _WORDLIKE
    elif not digits and (value.islower() or value.isupper()):
        return False
    return _share_of_pairs_is_below(limit, value)


def _share_of_pairs_is_below(limit: float, value: str) -> bool:
    """Tell whether fewer of a value's pairs of letters are those of words."""
    total = common = 0
    for run in _LETTERS.findall(value.lower()):
        total += len(run) - 1
        for first, second in pairwise(run):
            common += first + second in _PAIRS
    return common < limit * total


def is_chosen(value: str) -> bool:
    """Tell what somebody may have chosen as a password from a word that only says what it is."""
    if any(map(str.isdigit, value)) or _SYMBOL.search(value):
        return any(map(str.isalpha, value))
    # Documentation writes in capitals what the reader shall replace.
    return not value.isupper() and not _SELF.search(value)


def is_counted(value: str) -> bool:
    """Tell a few keys pressed in the order of the alphabet, as in abcde12345."""
    if not 1 < len(value) < _COUNTED:
        return False
    steps = sum(ord(after) - ord(before) == 1 for before, after in pairwise(value))
    return steps * 4 >= (len(value) - 1) * 3


def _is_mask(value: str) -> bool:
    """Tell a value whose runs repeat few characters, as in xxxx-xxxx."""
    runs = [run for run in _RUNS.findall(value) if len(run) >= _LEAST - 2]
    return bool(runs) and all(map(_is_monotonous, runs))


def _is_monotonous(run: str) -> bool:
    characters = set(run)
    most_frequent = max(map(run.count, characters))
    return most_frequent * 5 >= len(run) * 2 or len(characters) * 8 <= min(len(run), 48)


def _is_issued_by_an_example(value: str) -> bool:
    """Tell a signed token whose text names one of the hosts that exist for examples."""
    if not value.startswith("ey") or "." not in value:
        return False
    claims = value.split(".", 2)[1]
    try:
        return b"://example." in urlsafe_b64decode(claims[: len(claims) // 4 * 4])
    except ValueError:
        return False


def _is_meaningless(value: str) -> bool:
    """Tell a value of words that mean nothing and at most one short number."""
    numbers = []
    others = []
    for word in words(value):
        if word.isdigit():
            numbers.append(word)
        else:
            others.append(word)
    if len(numbers) > 1 or len("".join(numbers)) >= _WEAK_DIGITS:
        return False
    return bool(others) and _MEANINGLESS.issuperset(others)


def _is_phrase(text: str) -> bool:
    """Tell a text that is a sentence, an example or nothing but words without meaning."""
    if _FAKE.search(text) or "abcdefgh" in text or _PHRASE.fullmatch(text):
        return True
    return _is_meaningless(text)


def _decoded(value: str) -> str:
    """Return the text that a value is in base64, empty if it is none."""
    if len(value) % 4 or not _BASE64.fullmatch(value):
        return ""
    try:
        return b64decode(value).decode()
    except ValueError:
        return ""
