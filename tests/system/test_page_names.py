"""A page is known by the addresses that a site gives it, whatever generator makes the site."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ragdocs.system.names import link_key, link_keys
from ragdocs.system.page_names import page_names
from ragdocs.types import Document


@pytest.mark.parametrize(
    ("path", "metadata", "link"),
    [
        # VitePress: from the top of the site, with the ending of the page or without one.
        ("src/guide/list.md", {}, "/guide/list"),
        ("src/guide/list.md", {}, "/guide/list.html"),
        ("src/guide/list.md", {}, "/guide/list.md"),
        # mdBook: the page that is made of a file beside this one.
        ("src/ch17-01-futures.md", {}, "src/ch17-01-futures.html"),
        # Hugo: the page of a folder, in a language that the address leaves out.
        ("content/en/functions/_index.md", {}, "/functions/"),
        ("content/en/functions/Math.md", {}, "/functions/math/"),
        # Starlight and Docusaurus: no ending, numbers that only sort, names of their own.
        ("docs/src/content/docs/guides/pages.mdx", {}, "/guides/pages/"),
        ("website/docs/02-guides/01-start.mdx", {}, "/docs/guides/start"),
        ("website/docs/intro.md", {"slug": "/welcome"}, "/welcome"),
        ("website/docs/a/intro.md", {"slug": "first"}, "/docs/a/first"),
        ("website/docs/a/intro.md", {"id": "first"}, "/docs/a/first"),
        # Jekyll: collections, and addresses in the metadata.
        ("docs/_docs/usage.md", {}, "/docs/usage/"),
        ("docs/_docs/index.md", {"permalink": "/docs/home/"}, "/docs/home/"),
        # A folder, as code hosts show it, and a name of reStructuredText without its ending.
        ("packages/tool/README.md", {}, "packages/tool"),
        ("doc/usage/intro.rst", {}, "doc/usage/intro"),
    ],
)
def test_a_page_has_the_name_that_links_to_it_use(
    path: str, metadata: Mapping[str, object], link: str
) -> None:
    document = Document(
        id="docs:x", lane="docs", path=path, title="Title", version="v", extra=metadata
    )
    assert link_key(link) in link_keys(document)


@pytest.mark.parametrize(
    ("path", "metadata", "name"),
    [
        # Another language has addresses of its own.
        ("content/de/start.md", {}, "content/start"),
        # What is below no folder of a site has its whole path.
        ("lib/guide/x.md", {}, "guide/x"),
        # A pattern is no address.
        ("_posts/x.md", {"permalink": "/:year/:title"}, ":year/:title"),
        ("a/x.md", {"slug": ["b"]}, "a/b"),
    ],
)
def test_a_page_has_no_name_that_may_be_another_ones(
    path: str, metadata: Mapping[str, object], name: str
) -> None:
    assert name not in page_names(path, metadata)


def test_a_file_that_is_no_page_has_no_names_of_one() -> None:
    assert page_names("docs/a.py", {}) == []
    assert page_names("docs/md", {}) == []
