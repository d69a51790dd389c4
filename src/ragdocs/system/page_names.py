"""The names that a page has on the site that is made of its folder.

A link between pages names the page as a reader's browser asks for it: without the ending of its
file, without the folders above the site, and by the address that its metadata give it. Site
generators differ in which of these they accept, so a page has the names of all of them. Which other
files there are is not known here: a page keeps its names whatever comes and goes beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# Endings of files that become pages.
_ENDINGS = (
    ".md",
    ".markdown",
    ".mdx",
    ".rst",
    ".txt",
    ".adoc",
    ".asciidoc",
    ".org",
    ".ipynb",
    ".html",
    ".htm",
)
# The page of a whole folder, by whose name it is asked for.
_FOLDER_PAGES = frozenset({"index", "_index", "readme"})
# Folders below which a site begins.
_SITE_FOLDERS = frozenset(
    {
        "content",
        "contents",
        "doc",
        "docs",
        "documentation",
        "pages",
        "site",
        "source",
        "src",
        "website",
    }
)
# The language that most sites leave out of their addresses.
_LANGUAGE = "en"
# Generators take these out of the name of a file: the number that sorts it, the day of a post, and
# the mark of a folder of pages.
_ORDER = re.compile(r"(?<![^/])(?:\d{4}-\d\d-\d\d-|\d{1,4}[-_.](?=[a-z])|_(?=[a-z]))")
# Keys of metadata with an address from the top of the site, and with a name beside other files.
_ADDRESSES = ("permalink", "url", "slug")
_OWN_NAMES = ("slug", "id")
_LONGEST_ADDRESS = 300


def page_names(path: str, metadata: Mapping[str, object]) -> list[str]:
    """Return the names of a page on its site in lower case; a file that is no page has none."""
    lowered = path.lower()
    if not lowered.endswith(_ENDINGS):
        return []
    page, dot, ending = lowered.rpartition(".")
    names = list(_addresses(metadata))
    for address in _below_sites(page):
        names += [*_as_asked_for(address), f"{address}{dot}{ending}"]
    for renamed in _renamed(page, metadata):
        for address in _below_sites(renamed):
            names += _as_asked_for(address)
    return list(dict.fromkeys(names))


def _addresses(metadata: Mapping[str, object]) -> Iterator[str]:
    """Yield the addresses that are written in the metadata; patterns with a colon are none."""
    for key in _ADDRESSES:
        value = metadata.get(key)
        if isinstance(value, str) and value[:1] == "/" and ":" not in value:
            address = value[:_LONGEST_ADDRESS].lower().strip("/")
            if address:
                yield address


def _renamed(page: str, metadata: Mapping[str, object]) -> Iterator[str]:
    """Yield the path with the name that the metadata give the page."""
    for key in _OWN_NAMES:
        value = metadata.get(key)
        if isinstance(value, str) and value and not value.startswith("/"):
            folder, slash, _ = page.rpartition("/")
            yield f"{folder}{slash}{value[:_LONGEST_ADDRESS].lower()}"


def _below_sites(page: str) -> Iterator[str]:
    """Yield a path, and the rest of it behind each folder in which a site may begin."""
    yield page
    steps = page.split("/")
    for position, folder in enumerate(steps[:-1], start=1):
        if folder in _SITE_FOLDERS:
            yield "/".join(steps[position:])
            if steps[position] == _LANGUAGE and position + 1 < len(steps):
                yield "/".join(steps[position + 1 :])


def _as_asked_for(page: str) -> Iterator[str]:
    """Yield a path as links have it: also without numbers, and a folder for its own page."""
    ordered = page
    if _ORDER.search(page):
        ordered = "/".join([_ORDER.sub("", step, count=1) for step in page.split("/")])
    for name in dict.fromkeys((page, ordered)):
        if name:
            yield name
        folder, _, last = name.rpartition("/")
        if folder and last in _FOLDER_PAGES:
            yield folder
            yield f"{folder}/index"
