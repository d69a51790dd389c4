"""A page in several languages or versions is one result that names the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.serve.surface.present import docs as present_docs

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

# What each language says about the same code, as in the documentation of fastapi.
BODIES = {
    "de": "Der OAuth2PasswordBearer holt den Token. Wie man ihn prüft, steht hier.",
    "en": "The OAuth2PasswordBearer reads the token. This is how to check it.",
    "fr": "Le OAuth2PasswordBearer lit le jeton. Voici comment le vérifier.",
    "ja": "OAuth2PasswordBearer はトークンを読み取ります。",
    "ru": "OAuth2PasswordBearer читает токен. Вот как его проверить.",
    "zh": "OAuth2PasswordBearer 读取令牌。如何检查它。",
}
PAGES = ("security", "tutorial/first-steps", "tutorial/dependencies", "advanced/scopes")


@pytest.fixture
def translated(project: Project) -> Workspace:
    for language, body in BODIES.items():
        for page in PAGES:
            topic = page.rpartition("/")[2]
            text = f"# {topic}\n\n{body} OAuth2PasswordBearer in {topic}.\n"
            project.write(f"docs/{language}/docs/{page}.md", text)
    return project.open()


def paths(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [hit["path"] for hit in answer["result"]]


def test_the_limit_counts_pages_and_not_their_translations(translated: Workspace) -> None:
    answer = ask(translated, "search_docs", query="OAuth2PasswordBearer", limit=4)
    assert sorted(paths(answer)) == sorted(f"docs/en/docs/{page}.md" for page in PAGES)
    for hit in answer["result"]:
        page = hit["path"].removeprefix("docs/en/")
        others = [{"path": f"docs/{code}/{page}", "language": code} for code in BODIES]
        assert hit["siblings"] == [other for other in others if other["language"] != "en"]
    assert "   also: de docs/de/docs/" in present_docs.documents(answer)


@pytest.mark.parametrize(
    ("language", "query"),
    [
        ("de", "wie prüft man den OAuth2PasswordBearer"),
        ("ja", "OAuth2PasswordBearer はトークン"),
        ("zh", "如何检查 OAuth2PasswordBearer"),
        ("ru", "как проверить OAuth2PasswordBearer"),
    ],
)
def test_the_language_of_the_question_wins(
    translated: Workspace, language: str, query: str
) -> None:
    found = paths(ask(translated, "search_docs", query=query, limit=4))
    assert found
    assert all(path.startswith(f"docs/{language}/") for path in found)


def test_a_folder_that_is_named_shows_what_is_in_it(translated: Workspace) -> None:
    query = "how to check the OAuth2PasswordBearer"
    found = paths(ask(translated, "search_docs", query=query, path="docs/fr"))
    assert found
    assert all(path.startswith("docs/fr/") for path in found)
    answer = ask(translated, "search", query=query, lane=["all"], path="docs/fr/docs/security.md")
    assert paths(answer) == ["docs/fr/docs/security.md"]
    assert len(answer["result"][0]["siblings"]) == 5


def test_a_language_that_is_named_wins_over_that_of_the_question(translated: Workspace) -> None:
    query = "how to check the OAuth2PasswordBearer"
    for language in ("ru", "ru-RU"):
        found = paths(ask(translated, "search_docs", query=query, language=language))
        assert found
        assert all(path.startswith("docs/ru/") for path in found)


def test_an_untranslated_page_is_found_in_any_language(
    translated: Workspace, project: Project
) -> None:
    project.write("docs/en/docs/websockets.md", "# Websockets\n\nZebra sockets for OAuth2.\n")
    translated.sync()
    found = ask(translated, "search_docs", query="wie geht Zebra sockets")["result"]
    assert found[0]["path"] == "docs/en/docs/websockets.md"
    assert "siblings" not in found[0]


def test_a_translation_that_comes_or_goes_is_noticed(
    translated: Workspace, project: Project
) -> None:
    (project.root / "docs/en/docs/security.md").unlink()
    translated.sync()
    found = paths(ask(translated, "search_docs", query="OAuth2PasswordBearer in security"))
    assert sum(path.endswith("/security.md") for path in found) == 1


def test_a_page_that_is_left_out_for_another_says_so(translated: Workspace) -> None:
    told = ask(
        translated,
        "explain_search",
        query="how to check the OAuth2PasswordBearer",
        path="docs/de/docs/security.md",
    )
    assert told["stage"] == "filtered"
    assert told["why"].endswith("version: docs/en/docs/security.md")


def test_tags_find_a_page_whose_main_language_has_none(project: Project) -> None:
    project.doc("en/guide.md", "# Guide\n\nzebra crossing")
    project.doc("de/guide.md", "---\ntags: [rare]\n---\n# Guide\n\nzebra crossing")
    answer = ask(project.open(), "search_docs", query="zebra crossing", tags=["rare"])
    assert paths(answer) == ["docs/de/guide.md"]


VERSIONS = ("docs/cli.md", *(f"versioned_docs/version-{number}/cli.md" for number in (1.0, 2.0)))


def versioned(project: Project) -> None:
    for path in VERSIONS:
        project.write(path, f"# Flags\n\nThe zebra flag of the command line, as in {path}.\n")


@pytest.mark.parametrize(
    ("query", "version", "shown"),
    [
        ("zebra flag", "newest", "docs/cli.md"),
        ("zebra flag", "1.0", "versioned_docs/version-1.0/cli.md"),
        ("zebra flag in v2.0", "1.0", "versioned_docs/version-2.0/cli.md"),
        ("zebra flag", "7.0", "docs/cli.md"),
    ],
)
def test_one_version_of_a_page_is_shown(
    project: Project, query: str, version: str, shown: str
) -> None:
    versioned(project)
    include = ["docs/**/*.md", "versioned_docs/**/*.md"]
    workspace = project.open(**{"docs.include": include, "docs.version": version})
    answer = ask(workspace, "search_docs", query=query)
    assert paths(answer) == [shown]
    siblings = {sibling["path"] for sibling in answer["result"][0]["siblings"]}
    assert siblings == set(VERSIONS) - {shown}
