"""The language of a question, among the languages that there are."""

from __future__ import annotations

import pytest

from ragdocs.text.query_language import query_language

LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "pt", "ru", "uk", "zh")


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "how do I declare a request body"),
        ("de", "Wie deklariere ich einen Request Body?"),
        ("fr", "comment déclarer les paramètres de requête"),
        ("es", "cómo se declara el cuerpo de una petición"),
        ("pt", "como declarar o corpo da requisição"),
        ("ja", "リクエストボディを宣言する方法"),
        ("zh", "如何声明请求体"),
        ("ko", "요청 본문을 선언하는 방법"),
        ("ru", "как объявить тело запроса"),
        ("uk", "як оголосити тіло запиту"),
        # Names in code are in no language.
        ("", "OAuth2PasswordBearer tokenUrl"),
        ("", "ελληνικά"),
    ],
)
def test_letters_and_small_words_tell_the_language(language: str, question: str) -> None:
    assert query_language(question, LANGUAGES) == language


def test_only_languages_that_there_are_count() -> None:
    assert query_language("Wie deklariere ich einen Body?", ("en", "fr")) == ""
    assert query_language("漢字", ("ja", "en")) == "ja"
    assert query_language("anything", ()) == ""
