"""Which language a text is in, what its joining words are, and the stems of its words."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from ragdocs.system.patterns import later
from ragdocs.text.irregular import OTHER_SPELLINGS, PLAIN_FORMS

# Whoosh is older than some rules of the language, and Python says so where it compiles it.
with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
    from whoosh.lang import porter2, stemmer_for_language
    from whoosh.lang.stopwords import stoplists

ENGLISH = "en"
# The languages whose words are stemmed; in all others they stay as they are written.
STEMMED = (
    *("da", "de", ENGLISH, "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv"),
)
# Joining words of languages that Whoosh has no list of, enough to know them by, and such that its
# lists lack.
_MORE_WORDS = {
    "cs": "a aby ale ani by být co do i jak jako je jeho jejich již jsem jsou když která které "
    "který ktoré lze mezi může na není nebo než od pak po podle pokud pomocí pro proto před při se "
    "si svůj tak také tato tento této to tohoto v ve však více z za ze že",
    "da": "både fordi før hvem hver hvilke hvilken hvilket hvordan hvorfor hvornår ingen kan kun "
    "mellem må nogen samme så uden ved vores",
    "de": "dass unsere unserem unseren unseres",
    "es": "vosotras vosotros",
    "fr": "cet cette comme elles entre être ils les où plus si très",
    "id": "ada adalah agar akan anda atau bahwa beberapa bisa dalam dan dapat dari dengan di harus "
    "hanya ini itu jika juga karena ke ketika lebih maka melakukan memiliki menggunakan menjadi "
    "oleh pada sebagai sebuah semua setelah seperti sudah tersebut tidak untuk yang",
    "pl": "aby ale być były była było co czy dla do gdy i ich ile innych jak jako jego jej jest "
    "jeśli już każdy które którego której który lub można może na nie nich niż od oraz po przed "
    "przez przy są się tak także tego tej ten to tych tylko tym w we wszystkie z za ze że żeby",
    "pt": "é estar haver ser",
    "ro": "a acest această aceste al ale am ar are au ca că când care ce cel cu cum dacă de din "
    "doar după este fi fie fost în între la le lor mai nu o pe pentru poate prin sa sau să se și "
    "sunt te toate un una unei unor unui va vă",
    "tr": "ancak bir bunu bunun değil gerekir göre kadar olan olarak olduğu olur sonra tarafından "
    "üzere üzerinde var veya yeni",
    "uk": "або але без був була були було бути в вам ви від вона вони він для до його за з зі і й "
    "ій її їх коли ми може на не ні об один по потім при про та так також там те ти то тому тут у "
    "усі це цей ці чи що щоб як яка яке який які якщо",
    "vi": "bạn bị bởi các cho có của cùng cũng đã đang để đến đó được hoặc khi không là làm lại "
    "một này nếu như nhưng những phải ra sau sẽ sử tại thể theo thì trên trong trước từ và vào về "
    "với",
}
# English words that are in the code and the names of any project, which say nothing about the prose
# around them. Some are words of other languages too: "by" in lists of changes is not Czech.
_CODE_WORDS = (
    "all and any as at be by do for from has if in is me new no not of off on only or other own "
    "same set so some this through to until up we where which while with"
)
# A language is believed from so many joining words on, of which so many are different, if English
# has fewer by this factor. A passage in another language than its document has more.
LEAST_WORDS = 3
LEAST_UNEXPECTED = 8
LEAST_DIFFERENT = 2
LEAST_LEAD = 1.5
# More of a text says nothing new about its language.
_LOOKED_AT = 6000
# Languages that a query is looked for in where nothing tells which one it is in.
MOST_LANGUAGES = 4
# A language of fewer passages counts only for a query that is in it.
LEAST_SHARE = 0.02
_WORD = later(r"[^\W\d_]{2,}")
# Code between marks.
_CODE = later(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`", re.DOTALL)

# Scripts that are not Latin, each with the language that is meant by it first of all; a letter of
# the first three says as much as two of others.
_SCRIPTS = {
    "ja": "\u3040-\u30ff\u31f0-\u31ff",
    "zh": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "ko": "\uac00-\ud7af\u1100-\u11ff",
    "ru": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "ar": "\u0600-\u06ff\u0750-\u077f",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f",
    "km": "\u1780-\u17ff",
    "": "\u0530-\u058f\u0700-\u074f\u0780-\u08ff\u0980-\u0dff\u0f00-\u0fff\u10a0-\u10ff"
    "\u1200-\u139f",
}
_OTHER_SCRIPT = later(f"[{''.join(_SCRIPTS.values())}]")
_LETTER_SETS = {language: later(f"[{letters}]") for language, letters in _SCRIPTS.items()}
_WIDE = ("ja", "zh", "ko")
_LATIN = later("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
# A Japanese text has at least this share of syllables among its letters; the rest is as in Chinese.
_LEAST_KANA = 0.1
_UKRAINIAN = later("[іїєґІЇЄҐ]")
_CYRILLIC = later("[\u0400-\u052f]")

# Letters that are no base letter with a mark, as people write them without.
_SPECIAL_LETTERS = str.maketrans(
    {
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ð": "d",
        "Ð": "D",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "þ": "th",
        "Þ": "Th",
        "\u0131": "i",
        "ß": "ss",
        "ħ": "h",
        "Ħ": "H",
    }
)
# Marks above and below letters of Latin, Greek, Cyrillic, Hebrew and Arabic. Those of other
# scripts are vowels or tell consonants apart.
_ACCENTS = later(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff]+"
)
LONGEST_STEM = 64
# The endings that the steps of a stemmer look for.
_STEP_1B = ("ed", "ing", "edly", "ingly")
_STEP_1C = ("y", "Y")
_STEP_2 = tuple(ending for ending, *_ in porter2.s2_triples)
_STEP_3 = tuple(ending for ending, *_ in porter2.s3_triples)
_LATER_STEPS = (*_STEP_3, *porter2.s4_delete_list, "sion", "tion", "l", "e")
# No English suffix leaves less.
_LEAST_STEMMED = 3
_REMEMBERED = 16384


def detect(text: str) -> str:
    """Return the language of a text as a code of two letters, or "" if nothing tells it."""
    return decide(evidence(text))


def evidence(text: str) -> Counter[str]:
    """Count what speaks for each language; those of several texts may be added.

    A script speaks with all its letters, a language in Latin letters with its joining words. The
    keys with a colon count the different words.
    """
    text = text[:_LOOKED_AT]
    if "`" in text or "~~~" in text:
        text = _CODE.sub(" ", text)
    counts: Counter[str] = Counter()
    if not text.isascii() and _OTHER_SCRIPT.search(text):
        script = _script(text)
        if script is not None:
            counts[script] = len(text)
            counts[f"{script}:"] = len(text)
            return counts
    joining_words = _joining_words()
    words = Counter(filter(joining_words.__contains__, text.lower().split()))
    total = counts.get
    for word, count in words.items():
        for language, different in joining_words[word]:
            counts[language] = total(language, 0) + count
            counts[different] = total(different, 0) + 1
    return counts


def decide(counts: Mapping[str, int], unless: str = "") -> str:
    """Return the language that most speaks for, or `unless` if too little does.

    More must speak for another language than for the one that is expected.
    """
    best = ""
    most = 0
    for language, count in counts.items():
        if ":" not in language and (count, language) > (most, best):
            best = language
            most = count
    least = LEAST_UNEXPECTED if unless else LEAST_WORDS
    rival = counts.get(unless or ENGLISH, 0)
    if best == unless or most < least or counts[f"{best}:"] < LEAST_DIFFERENT:
        return unless
    if best != ENGLISH and most < LEAST_LEAD * rival:
        return unless or (ENGLISH if rival >= LEAST_WORDS else "")
    return best


def is_certain(counts: Mapping[str, int]) -> bool:
    """Tell whether a text is in the same language whatever language is expected."""
    # Nothing speaks for "other", as for every language that is not counted here.
    expected = {ENGLISH, "other"}
    expected.update(language for language in counts if ":" not in language)
    decisions = {decide(counts, unless=language) for language in expected}
    return len(decisions) == 1


def _script(text: str) -> str | None:
    """Return the language of a text whose letters are mostly not Latin, or None."""
    counts = {}
    for language, letters in _LETTER_SETS.items():
        count = len(letters.findall(text))
        if language in _WIDE:
            count *= 2
        counts[language] = count
    if len(_LATIN.findall(text)) > sum(counts.values()):
        return None
    asian = counts["ja"] + counts["zh"]
    if asian and counts["ja"] >= _LEAST_KANA * asian and asian >= counts["ko"]:
        return "ja"
    best = max(counts, key=lambda language: counts[language])
    if best == "ru" and _UKRAINIAN.search(text):
        return "uk"
    return best


@cache
def _joining_words() -> dict[str, tuple[tuple[str, str], ...]]:
    """Map each joining word to the languages that have it, with the keys of their words."""
    languages: dict[str, list[tuple[str, str]]] = {}
    ignored = frozenset(_CODE_WORDS.split())
    for language in sorted({*stoplists, *_MORE_WORDS}):
        for word in stop_words(language):
            # Letters by themselves are names in code and formulas.
            if len(word) > 1 and word not in ignored:
                languages.setdefault(word, []).append((language, f"{language}:"))
    return {word: tuple(having) for word, having in languages.items()}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the joining words of a language, in lower case."""
    words = frozenset(stoplists.get(language, ()))
    more = _MORE_WORDS.get(language, "")
    return words.union(more.split())


def fold(word: str) -> str:
    """Return a word without accents, with other letters as people write them for want of them."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word.translate(_SPECIAL_LETTERS))
    # Recomposing brings Hangul syllables and voiced kana back together.
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def porter(word: str) -> str:
    """Return the stem of an English word of letters, as Whoosh's own function makes it.

    That tries some fifty endings one by one, which most words have none of.
    """
    if word in porter2.exceptional_forms:
        return str(porter2.exceptional_forms[word])
    whole = word
    if "y" in word:
        whole = word = porter2.capitalize_consonant_ys(word)
    r1 = porter2.get_r1(word)
    word = porter2.step_1a(word)
    if word in porter2.exceptional_early_exit_post_1a:
        return word
    if word.endswith(_STEP_1B):
        word = porter2.step_1b(word, r1)
    if word.endswith(_STEP_1C):
        word = porter2.step_1c(word)
    if word.endswith(_STEP_2):
        word = porter2.step_2(word, r1)
    if word.endswith(_LATER_STEPS):
        r2 = porter2.get_r2(whole)
        word = porter2.step_3(word, r1, r2)
        word = porter2.step_4(word, r2)
        word = porter2.step_5(word, r1, r2)
    return word.replace("Y", "y")


@cache
def _stem_spellings() -> dict[str, str]:
    """Map the stems of British words to those of American ones: their endings are regular."""
    return {porter(british): porter(american) for british, american in OTHER_SPELLINGS.items()}


@lru_cache(maxsize=_REMEMBERED)
def stem(word: str) -> str:
    """Return the English stem of a word of ASCII letters; other words are folded only."""
    word = fold(word)
    if len(word) < _LEAST_STEMMED or not word.isascii() or not word.isalpha():
        return word[:LONGEST_STEM]
    stemmed = str(porter(PLAIN_FORMS.get(word, word)))
    return _stem_spellings().get(stemmed, stemmed)[:LONGEST_STEM]


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return what makes a stem of a word in lower case; it remembers what it has made."""
    if language == ENGLISH or language not in STEMMED:
        return stem
    snowball = stemmer_for_language(language)
    is_cyrillic = language == "ru"

    @lru_cache(maxsize=_REMEMBERED)
    def stem_word(word: str) -> str:
        if len(word) < _LEAST_STEMMED or not word.isalpha():
            return fold(word)[:LONGEST_STEM]
        if is_cyrillic and not _CYRILLIC.search(word):
            # What is written in Latin letters is mostly English.
            return stem(word)
        return fold(str(snowball(word)))[:LONGEST_STEM]

    return stem_word


def of_query(text: str, passages: Mapping[str, int], count: int) -> tuple[str, ...]:
    """Return the languages by whose stems the words of a query are looked for, at most four.

    `passages` has the number of passages in each language but English, `count` that of all. The
    first is the language of the query, where that can be told.
    """
    if not passages:
        return (ENGLISH,)
    counts = _query_evidence(text)
    sizes = {ENGLISH: count - sum(passages.values()), **passages}
    if len(counts) == 1 and sizes.keys().isdisjoint(counts):
        # It is in a script of its own, and its words in Latin letters are mostly English.
        return (ENGLISH,)
    most = max(counts[language] for language in sizes)
    likely: list[str] = []
    for language in sorted(sizes, key=lambda language: (-sizes[language], language)):
        if counts[language] != most:
            continue
        # Without any evidence a word may be of any language that there is much of; evidence for
        # several languages is none for those that there is little of.
        if sizes[language] >= LEAST_SHARE * count or (most and not likely):
            likely.append(language)
    if likely == [ENGLISH] and sizes[ENGLISH] < max(passages.values()):
        # Documentation in another language has English words too.
        likely.append(max(passages, key=lambda language: (passages[language], language)))
    if ENGLISH not in likely[:MOST_LANGUAGES]:
        return (*likely[: MOST_LANGUAGES - 1], ENGLISH)
    return tuple(likely[:MOST_LANGUAGES])


def _query_evidence(text: str) -> Counter[str]:
    """Count the joining words of each language in a query, those that code has as well included."""
    text = text[:_LOOKED_AT].lower()
    counts: Counter[str] = Counter()
    if not text.isascii() and _OTHER_SCRIPT.search(text):
        script = _script(text)
        if script is not None:
            counts[script] = len(text)
            return counts
    words = set(_WORD.findall(text))
    for language in (*STEMMED, *_MORE_WORDS):
        counts[language] = len(words & stop_words(language))
    return counts
