"""Which documents are translations, old versions, generated or test data, by their names."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from ragdocs.project.copies import Copies


def kinds(paths: Iterable[str]) -> dict[str, str]:
    """Map the documents that are no originals to the reason."""
    paths = list(paths)
    copies = Copies(paths)
    reasons: dict[str, str] = {}
    for path in paths:
        copy = copies.find(path)
        if copy is not None:
            reasons[path] = copy.kind
    return reasons


@pytest.mark.parametrize(
    ("originals", "translations"),
    [
        (["docs/en/a.md"], ["docs/de/a.md", "docs/fr/a.md"]),
        (["docs/a.md", "docs/b.md"], ["docs/zh-cn/a.md"]),
        (["docs/a.md"], ["i18n/fr/current/a.md"]),
        (["content/en-us/a.md"], ["content/pt-BR/a.md", "content/zh_Hans/a.md"]),
        (["README.md"], ["README.ja.md", "README-zh_CN.md", "README_CN.md"]),
        (["posts/index.en.md"], ["posts/index.fr.md"]),
        (["content/ja/a.md", "content/ja/b.md"], ["content/ko/a.md"]),
    ],
)
def test_translations_are_told_from_the_main_language(
    originals: list[str], translations: list[str]
) -> None:
    reasons = kinds([*originals, *translations])
    assert reasons == dict.fromkeys(translations, "translation")


@pytest.mark.parametrize(
    "paths",
    [
        ["docs/go/a.md", "docs/js/a.md"],
        ["docs/it/a.md", "docs/a.md"],
        ["docs/zh/a.md", "docs/zh/b.md", "docs/zh/c.md", "README.md"],
        ["a-de.md", "b.md"],
        ["docs/setup-it.md", "docs/setup.md"],
        ["docs/01-app/a.md", "docs/02-pages/a.md"],
        ["blog/2023/a.md", "blog/2024/a.md"],
        ["docs/v2/a.md", "docs/b.md"],
        ["docs/tests/a.md", "docs/vendor/b.md"],
        ["site/content/a.md", "public/notes.md"],
        ["CHANGELOG.md", "docs/changelog.md"],
    ],
)
def test_other_short_names_are_no_reason(paths: list[str]) -> None:
    assert kinds(paths) == {}


@pytest.mark.parametrize(
    ("original", "versions"),
    [
        ("v1.10/a.md", ["v1.2/a.md", "v1.9/a.md"]),
        ("docs/latest/a.md", ["docs/v1/a.md", "docs/v2/a.md"]),
        ("docs/a.md", ["versioned_docs/version-1.0/a.md"]),
        ("docs/a.md", ["docs/1.x/a.md", "docs/v2/a.md"]),
        ("versioned_docs/version-2.0/a.md", ["versioned_docs/version-1.0/a.md"]),
    ],
)
def test_the_newest_version_or_the_one_without_a_number_is_the_original(
    original: str, versions: list[str]
) -> None:
    assert kinds([original, *versions]) == dict.fromkeys(versions, "version")


def test_output_of_builds_and_test_data_are_named_as_such() -> None:
    paths = [
        "docs/_build/a.md",
        "vendor/lib/README.md",
        "packages/a/tests/page.md",
        "packages/a/CHANGELOG.md",
        "public/index.html",
        "public/page.html",
        "public/text.md",
        "docs/page.md",
        "docs/requirements-dev.txt",
    ]
    reasons = kinds(paths)
    assert reasons["docs/requirements-dev.txt"] == "no prose"
    assert reasons["docs/_build/a.md"] == "generated"
    assert reasons["vendor/lib/README.md"] == "generated"
    assert reasons["packages/a/tests/page.md"] == "test data"
    assert reasons["packages/a/CHANGELOG.md"] == "release notes"
    assert "docs/page.md" not in reasons


def test_fifty_thousand_documents_are_classified_in_linear_time() -> None:
    def seconds(count: int) -> float:
        paths = [f"p{number % 97}/v{number % 11}.0/fr/x/{number}.md" for number in range(count)]
        started = time.process_time()
        kinds(paths)
        return time.process_time() - started

    small = max(seconds(5_000), 0.005)
    assert seconds(50_000) < 40 * small
