"""Which documents are one page in several languages or versions, as real projects lay them out."""

from __future__ import annotations

import pytest

from ragdocs.project.variants import Families

# (paths of one page, the main one first), as in fastapi, kubernetes, VitePress, Docusaurus, and
# beside each other.
LAYOUTS = {
    "a folder for each language": (
        "docs/en/docs/tutorial/body.md",
        "docs/de/docs/tutorial/body.md",
        "docs/zh-hant/docs/tutorial/body.md",
    ),
    "languages below content": (
        "content/en/docs/concepts/pods.md",
        "content/pt-br/docs/concepts/pods.md",
    ),
    "the main language outside": ("docs/guide/setup.md", "docs/zh/guide/setup.md"),
    "a folder of translations": ("docs/setup.md", "docs/i18n/de/setup.md"),
    "endings": ("README.md", "README.ja.md", "README.de.md"),
    "versions beside docs": (
        "website/docs/api/cli.md",
        "website/versioned_docs/version-1.0/api/cli.md",
        "website/versioned_docs/version-2.0/api/cli.md",
    ),
    "a translated site with versions": (
        "docs/cli.md",
        "versioned_docs/version-1.0/cli.md",
        "i18n/fr/docusaurus-plugin-content-docs/current/cli.md",
        "i18n/fr/docusaurus-plugin-content-docs/version-1.0/cli.md",
    ),
    "the newest of versions": ("docs/v2.10/cli.md", "docs/v2.9/cli.md"),
    "a folder called latest": ("docs/latest/cli.md", "docs/1.4/cli.md", "docs/1.5/cli.md"),
    "trees with versions of their own": ("zod@3.10.0/README.md", "zod@3.9.1/README.md"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_page_is_shown_and_the_others_are_its_siblings(layout: str) -> None:
    main, *others = LAYOUTS[layout]
    families = Families(LAYOUTS[layout])
    assert families.hidden() == set(others)
    assert {sibling.path for sibling in families.siblings(main)} == set(others)


@pytest.mark.parametrize(
    "paths",
    [
        ("docs/guide/setup.md", "docs/api/setup.md"),
        # Two letters are not always a language, and two pages in one language are two pages.
        ("docs/is/setup.md", "docs/setup.md"),
        ("docs/de/one.md", "docs/en/two.md"),
        ("one.md", "two.md"),
    ],
)
def test_other_pages_are_no_siblings(paths: tuple[str, ...]) -> None:
    families = Families(paths)
    assert not families.hidden()
    assert not families.siblings(paths[0])


def test_the_language_and_the_version_that_are_asked_for_win_where_they_exist() -> None:
    families = Families(LAYOUTS["a translated site with versions"])
    whole = set(LAYOUTS["a translated site with versions"])
    fr = "i18n/fr/docusaurus-plugin-content-docs"

    def shown(**wanted: str) -> set[str]:
        return whole - families.hidden(**wanted)

    assert shown(language="fr") == {f"{fr}/current/cli.md"}
    assert shown(language="fr", version="1.0") == {f"{fr}/version-1.0/cli.md"}
    assert shown(version="v1.0") == {"versioned_docs/version-1.0/cli.md"}
    assert shown(language="ja", version="9.9") == {"docs/cli.md"}
    # Whoever names a folder sees what is in it.
    assert shown(prefix="versioned_docs/") >= {"versioned_docs/version-1.0/cli.md"}


def test_a_question_may_name_a_version() -> None:
    families = Families(LAYOUTS["versions beside docs"])
    assert families.named_version("which flags does version-1.0 have") == "1.0"
    assert families.named_version("flags in v2.0?") == "2.0"
    assert families.named_version("what happens after 30 days") == ""
    assert families.named_version("new in 3.0") == ""
