"""In which language a question is asked, as far as its letters and its smallest words tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

# Letters of one script, and the languages that are written in it, the most usual one first.
_SCRIPTS = (
    ("\u0370-\u03ff", ("el",)),
    ("\u0400-\u04ff", ("ru", "uk", "bg", "sr", "be", "mk", "kk", "mn")),
    ("\u0530-\u058f", ("hy",)),
    ("\u0590-\u05ff", ("he",)),
    ("\u0600-\u06ff", ("ar", "fa", "ur")),
    ("\u0900-\u097f", ("hi", "mr", "ne")),
    ("\u0980-\u09ff", ("bn",)),
    ("\u0b80-\u0bff", ("ta",)),
    ("\u0e00-\u0e7f", ("th",)),
    ("\u10a0-\u10ff", ("ka",)),
    ("\u1780-\u17ff", ("km",)),
    ("\uac00-\ud7af", ("ko",)),
    # Kana before Han: Japanese is written in both.
    ("\u3040-\u30ff", ("ja",)),
    ("\u3400-\u9fff", ("zh", "ja")),
)
# Letters that only some languages of a script have.
_TELLING = {
    "uk": "їєіґ",
    "ru": "ыэъё",
    "fa": "پچژگ",
    "de": "ßäöü",
    "es": "ñ¿¡",
    "pt": "ãõ",
    "fr": "èêàçœù",
    "pl": "łąęśżź",
    "cs": "řůěž",
    "tr": "ğışİ",
    "vi": "ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "sv": "å",
    "hu": "őű",
    "ro": "țșă",
}
# The words that people ask with; none that two of these languages share and English has, too.
_WORDS = {
    "en": "how the is are what does do i to of in a an and with can when why where which for my it",
    "de": "wie der die das ist ein eine ich und mit von für nicht kann man wird was wo warum "
    "zu im auf den dem einen einer einem werden ohne beim",
    "fr": "comment le la les des une un est et je avec pour dans quoi quel quelle sur puis du au "
    "aux ne pas qui que où pourquoi",
    "es": "cómo como el la los las una un es y con para qué que por en del se puedo dónde cuál no "
    "al mi sin",
    "pt": "como o os as uma um é e com para que em do da no na não posso onde qual por meu sem",
    "it": "come il lo la gli le una un è con per che di nel della del sono posso dove quale non",
    "nl": "hoe de het een is en met van voor niet kan ik wat waar waarom wordt welke zonder",
    "pl": "jak to jest i z w na do nie czy gdzie co dlaczego się przez",
    "tr": "nasıl ve bir bu için ile ne nerede neden mi olarak",  # noqa: RUF001 - Turkish
    "sv": "hur är en ett och med för inte kan jag vad var varför av till",
    "id": "bagaimana yang dan di ke dari untuk dengan apa adalah cara tidak",
    "vi": "là và của cho với như thế nào không trong các một làm",
}
_VOCABULARY = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")
# A letter that only some languages have tells as much as two words.
_LETTER_WEIGHT = 2


def query_language(text: str, among: Collection[str]) -> str:
    """Return in which of these languages a text is written, or nothing where that is not sure.

    Languages are two letters of ISO 639-1.
    """
    lowered = text.casefold()
    for letters, languages in _SCRIPTS:
        if re.search(f"[{letters}]", lowered):
            return _of_script(lowered, [each for each in languages if each in among])
    scores: Counter[str] = Counter()
    words = _WORD.findall(lowered)
    for language in among:
        vocabulary = _VOCABULARY.get(language, frozenset())
        scores[language] = sum(word in vocabulary for word in words)
        scores[language] += _LETTER_WEIGHT * _has_letter(lowered, language)
    ranked = scores.most_common(2)
    if not ranked:
        return ""
    best, most = ranked[0]
    second = 0
    if len(ranked) > 1:
        second = ranked[1][1]
    if most == second:
        return ""
    return best


def _of_script(text: str, languages: Collection[str]) -> str:
    """Return the language of a script whose own letters a text has, or the most usual one."""
    for language in languages:
        if _has_letter(text, language):
            return language
    return next(iter(languages), "")


def _has_letter(text: str, language: str) -> bool:
    return not set(_TELLING.get(language, "")).isdisjoint(text)
