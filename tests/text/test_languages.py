"""Which language a text is in, and the terms that its words become."""

from __future__ import annotations

import random

import pytest
from whoosh.lang import porter2

from ragdocs.search import bm25
from ragdocs.text import languages
from ragdocs.text.irregular import OTHER_SPELLINGS, PLAIN_FORMS
from ragdocs.text.terms import meaningful, terms

SENTENCES = {
    "en": "The tokens of a session are kept in memory and they are gone when you restart it.",
    "de": "Die Tokens einer Sitzung werden im Speicher gehalten und sind nach dem Neustart weg.",
    "fr": "Les jetons de la session sont gardés en mémoire et ne sont pas écrits sur le disque.",
    "es": "Los tokens de la sesión se guardan en la memoria y no se escriben en el disco.",
    "it": "I token della sessione sono tenuti in memoria e non vengono scritti sul disco.",
    "pt": "Os tokens da sessão são mantidos na memória e não são gravados no disco.",
    "nl": "De tokens van een sessie worden in het geheugen bewaard en zijn daarna weg.",
    "pl": "Tokeny sesji są przechowywane w pamięci, ale nie są zapisywane na dysku, jeśli nie "
    "jest to potrzebne.",
    "ru": "Токены сеанса хранятся в памяти и пропадают после перезапуска.",
    "uk": "Токени сеансу зберігаються в пам'яті, і їх немає після перезапуску.",
    "zh": "会话的令牌保存在内存中，重启后就没有了。",
    "ja": "セッションのトークンはメモリに保存され、再起動すると消えます。",
    "ko": "세션 토큰은 메모리에 보관되며 다시 시작하면 사라집니다.",
    "th": "โทเค็นของเซสชันถูกเก็บไว้ในหน่วยความจำ",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language: str) -> None:
    assert languages.detect(SENTENCES[language]) == language


@pytest.mark.parametrize(
    "text",
    ["", "429", "max_chars", "kubectl get pods", "* PR #12 by @someone", "if x in y: do(z)"],
)
def test_names_and_code_tell_no_language(text: str) -> None:
    assert languages.detect(text) == ""


def test_code_in_a_text_does_not_count() -> None:
    code = "\n```\nthe code that you can see here and there\n```\n"
    assert languages.detect(SENTENCES["de"] + code) == "de"


def test_a_passage_needs_more_words_to_be_in_another_language_than_its_document() -> None:
    counts = languages.evidence("Les jetons et la session dans un serveur")
    assert languages.decide(counts) == "fr"
    assert languages.decide(counts, unless="de") == "de"
    assert languages.decide(languages.evidence(2 * SENTENCES["fr"]), unless="de") == "fr"


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("de", "Abhängigkeit", "Abhängigkeiten"),
        ("fr", "paramètre", "paramètres"),
        ("es", "configuración", "configuraciones"),
        ("ru", "зависимость", "зависимостями"),
        ("en", "dependency", "dependencies"),
        ("sv", "inställning", "inställningar"),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, first: str, second: str) -> None:
    assert list(terms(first, language)) == list(terms(second, language))


def test_words_in_latin_letters_in_a_russian_text_are_english() -> None:
    assert list(terms("зависимости dependencies", "ru"))[1] == "depend"


@pytest.mark.parametrize(
    ("written", "plain"),
    [("Größe", "gross"), ("Łódź", "lodz"), ("smørrebrød", "smorrebrod"), ("œuvre", "oeuvr")],
)
def test_accents_make_no_difference(written: str, plain: str) -> None:
    assert list(terms(written)) == [plain]


def test_signs_that_make_a_word_stay_in_it() -> None:
    assert list(terms("हिन्दी में")) == ["हिन्दी", "में"]
    assert list(terms("がか")) == ["がか"]
    assert list(terms("パス")) != list(terms("ハス"))


def test_languages_without_spaces_are_cut_into_overlapping_pieces() -> None:
    assert list(terms("数据库")) == ["数据", "据库"]
    assert list(terms("ภาษาไทย")) == ["ภาษ", "าษา", "ษาไ", "าไท", "ไทย"]
    assert list(terms("ខ្មែរ")) == ["ខ្ម", "្មែ", "មែរ"]
    assert list(terms("ພາສາລາວ")) == ["ພາສ", "າສາ", "ສາລ", "າລາ", "ລາວ"]
    assert list(terms("API数据 v2")) == ["api", "数据", "v2"]


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        # The end of a word, shown to programs or not.
        ("ພາສາ\u200bລາວ", "ພາສາລາວ"),
        ("ភាសា\u200bខ្មែរ", "ភាសាខ្មែរ"),
        ("ស្រី\u200dៗ", "ស្រីៗ"),
        ("ข้อ\u200bมูล", "ข้อมูล"),
        # The tone on one half of a vowel or the other, and the vowel as one letter.
        ("ນ້ຳ", "ນໍ້າ"),
        ("ສຳຮອງ", "ສໍາຮອງ"),
        ("น้ำ", "นํ้า"),
        # Letters that are written as one or as two.
        ("ໜັງສື", "ຫນັງສື"),
        # Digits of the language and of all others.
        ("ມາດຕາ ໑໒", "ມາດຕາ 12"),
        ("មាត្រា ១២", "មាត្រា 12"),
    ],
)
def test_spellings_that_look_alike_have_the_same_terms(written: str, otherwise: str) -> None:
    assert written != otherwise
    assert list(terms(written)) == list(terms(otherwise))


@pytest.mark.parametrize(
    ("sentence", "word", "other"),
    [
        ("ການສຳຮອງຖານຂໍ້ມູນອັດຕະໂນມັດ", "ຖານຂໍ້ມູນ", "ລະຫັດຜ່ານ"),
        ("ຜູ້ໃຊ້ຕ້ອງປ່ຽນລະຫັດຜ່ານທຸກປີ", "ລະຫັດຜ່ານ", "ຖານຂໍ້ມູນ"),
        ("ការបម្រុងទុកទិន្នន័យដោយស្វ័យប្រវត្តិ", "ទិន្នន័យ", "ពាក្យសម្ងាត់"),
        ("អ្នកប្រើត្រូវប្តូរពាក្យសម្ងាត់រៀងរាល់ឆ្នាំ", "ពាក្យសម្ងាត់", "ទិន្នន័យ"),
        ("រឿងផ្សេងៗទៀត", "ផ្សេងៗ", "ពាក្យ"),
    ],
)
def test_a_word_within_a_sentence_of_lao_or_khmer_has_its_terms_there(
    sentence: str, word: str, other: str
) -> None:
    assert set(terms(word)) <= set(terms(sentence))
    assert not set(terms(other)) & set(terms(sentence))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("ສຳຮອງຂໍ້ມູນແນວໃດ", list(terms("ສຳຮອງຂໍ້ມູນ"))),
        ("ລະຫັດຜ່ານຢູ່ໃສ", list(terms("ລະຫັດຜ່ານ"))),
        ("ប្តូរពាក្យសម្ងាត់ដូចម្តេច", list(terms("ប្តូរពាក្យសម្ងាត់"))),
        ("ហេតុអ្វីបម្រុងទុក", list(terms("បម្រុងទុក"))),
        ("如何更新 tokens", ["更新", "token"]),
        ("怎麼更新", ["更新"]),
        ("どうやって更新", ["更新"]),
        ("อัปเดตอย่างไร", list(terms("อัปเดต"))),
    ],
)
def test_question_words_are_cut_out_of_questions_without_spaces(
    question: str, expected: list[str]
) -> None:
    assert list(meaningful(question)) == expected
    assert list(terms(question)) != expected


@pytest.mark.parametrize("text", SENTENCES.values())
def test_a_text_has_as_many_terms_in_any_language(text: str) -> None:
    counts = {len(list(terms(text, language))) for language in languages.STEMMED}
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("query", "passages", "expected"),
    [
        ("wie werden Tokens erneuert", {}, ("en",)),
        ("wie werden Tokens erneuert", {"de": 3}, ("de", "en")),
        ("how are tokens renewed", {"de": 40}, ("en",)),
        ("how are tokens renewed", {"de": 90}, ("en", "de")),
        ("Token", {"de": 40, "fr": 30, "nl": 1}, ("de", "en", "fr")),
        ("Token", {"de": 40, "fr": 30, "it": 9, "es": 8}, ("de", "fr", "it", "en")),
        ("如何更新 tokens", {"de": 40}, ("en",)),
        ("обновить токены", {"de": 40, "ru": 5}, ("ru", "en")),
        ("interdire les cookies", {"fr": 90, "es": 1}, ("fr", "en")),
        ("les cookies prohibidas por la red", {"fr": 90, "es": 1}, ("es", "en")),
    ],
)
def test_a_query_is_looked_for_in_its_language_or_in_those_of_the_passages(
    query: str, passages: dict[str, int], expected: tuple[str, ...]
) -> None:
    found = languages.of_query(query, passages, 100)
    assert set(found) == set(expected)
    assert found[0] == expected[0]


def test_english_stems_are_those_of_whoosh() -> None:
    chooser = random.Random(7)
    endings = (*languages._STEP_2, *languages._LATER_STEPS, "ied", "sses", "eedly", "ingly", "s")
    words = {*OTHER_SPELLINGS, *PLAIN_FORMS, *porter2.exceptional_forms, "proceed", "youyou"}
    for ending in endings:
        for size in (*range(1, 8), 9):
            words.add("".join(chooser.choices("aeiouyslltnrbc", k=size)) + ending)
    for word in filter(_is_stemmed, words):
        assert languages.porter(word) == porter2.stem(word), word


def _is_stemmed(word: str) -> bool:
    return len(word) >= languages._LEAST_STEMMED and word.isascii() and word.isalpha()


def test_every_stemmed_language_has_joining_words() -> None:
    for language in languages.STEMMED:
        words = " ".join(languages.stop_words(language))
        assert len(words.split()) > 30, language
        # English has a list of its own: its pronouns are words of a query.
        if language != "en":
            assert not list(meaningful(words, (language,))), language


def test_a_stem_that_is_a_joining_word_is_kept_where_the_word_is_none() -> None:
    # "entrée" has the stem "entre", which joins words in French and in Spanish.
    assert "entre" in bm25.query_terms("modèle d'entrée", ("fr", "es", "en"))
    assert "entre" not in bm25.query_terms("modelo entre nodos", ("es", "fr", "en"))


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Les conteneurs et les images", "fr"),
        ("Sorgt dafür, dass unsere Server laufen", "de"),
    ],
)
def test_joining_words_that_the_lists_of_whoosh_lack_tell_a_language(
    sentence: str, language: str
) -> None:
    assert languages.detect(f"{sentence} {sentence}") == language
