"""Which documents are one page in several languages or versions; their paths alone decide."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ragdocs.lanes import NEWEST
from ragdocs.project.copies import (
    SUFFIXED,
    TRANSLATED_FOLDERS,
    VERSION,
    VERSIONED_FOLDER,
    Copies,
    language_of,
    version_order,
)
from ragdocs.system.patterns import later
from ragdocs.types import Variant

# Where Docusaurus keeps the translation of docs/.
_TRANSLATED_DOCS = "docusaurus-plugin-content-docs"
# A tree with a version of its own: its first folder is called name@version.
_VERSIONED_TREE = later(r"(?P<name>[^/@]+)@(?P<version>[^/]+)")
_VERSION_MARK = later(r"(?:v|version-|release-)(?=\d)", re.IGNORECASE)
_NAMED_VERSION = later(r"(?<![\w.-])(?:v|version-|release-)?\d+(?:\.\w+)*", re.IGNORECASE)
# The ending of a name that may be a language, as in README.ja.md and index.pt-br.md.
_SUFFIX = later(r"[._-][A-Za-z]{2}(?:[-_][A-Za-z]{2,4})?\.[^./]+$")
# Choices that are remembered: each differs by folder, language or version.
_MOST_CHOICES = 64


@dataclass(frozen=True, slots=True)
class _Member:
    """A document of a family, and how near it is to the original."""

    variant: Variant
    place: _Place

    def order(self, language: str, version: str) -> tuple[object, ...]:
        """Return what members are sorted by, the one that is shown first."""
        place = self.place
        return (
            not (language and place.language == language),
            not place.is_original_language,
            not (version and place.version == version),
            not place.is_original_version,
            place.newest_first,
            self.variant.path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What the folders of a document, and the ending of its name, say about it."""

    # Without languages and versions.
    common: str
    language_label: str = ""
    version_label: str = ""
    # The two letters of the language, or nothing for that of the original.
    language: str = ""
    version: str = ""
    newest_first: tuple[int, ...] = ()
    is_original_language: bool = True
    is_original_version: bool = True


class Families:
    """The documents of a corpus that are one page in several languages or versions."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths = frozenset(paths)
        self._families: dict[str, Sequence[_Member]] = {}
        self._family_of: dict[str, str] = {}
        for key, same in _by_page(self._paths).items():
            family = _distinct(same)
            if len(family) > 1:
                self._families[key] = family
                for member in family:
                    self._family_of[member.variant.path] = key
        self.languages = frozenset(self._all_languages())
        self.versions = frozenset(self._all_versions())
        self._choose = lru_cache(_MOST_CHOICES)(self._chosen)

    def of(self, paths: Collection[str]) -> Families:
        """Return the families of these paths; the same ones if no path came or went."""
        if self._paths == paths:
            return self
        return Families(paths)

    def siblings(self, path: str) -> tuple[Variant, ...]:
        """Return the other languages and versions of a page."""
        family = self._families.get(self._family_of.get(path, ""), ())
        return tuple(member.variant for member in family if member.variant.path != path)

    def variant(self, path: str) -> Variant | None:
        """Return which language and version a page is, if there are several."""
        for member in self._families.get(self._family_of.get(path, ""), ()):
            if member.variant.path == path:
                return member.variant
        return None

    def family(self, path: str) -> str:
        """Return what all variants of a page have in common, or the path of one without any."""
        return self._family_of.get(path, path)

    def hidden(self, prefix: str = "", language: str = "", version: str = "") -> frozenset[str]:
        """Return the pages of which another language or version is shown.

        Only pages below the prefix are compared, so whoever names a folder sees what is in it.
        """
        if not self._families:
            return frozenset()
        return self._choose(prefix, language, plain_version(version))

    def named_version(self, text: str) -> str:
        """Return the version that a question names, if there is such a one here."""
        if not self.versions:
            return ""
        for match in _NAMED_VERSION.finditer(text):
            word = match.group()
            is_marked = "." in word or _VERSION_MARK.match(word)
            if is_marked and plain_version(word) in self.versions:
                return plain_version(word)
        return ""

    def _chosen(self, prefix: str, language: str, version: str) -> frozenset[str]:
        hidden: list[str] = []
        for family in self._families.values():
            below = [member for member in family if member.variant.path.startswith(prefix)]
            below.sort(key=lambda member: member.order(language, version))
            hidden += [member.variant.path for member in below[1:]]
        return frozenset(hidden)

    def _all_languages(self) -> Iterator[str]:
        for family in self._families.values():
            for member in family:
                # A page outside of all folders of languages is hardly ever in one of those.
                yield member.place.language or "en"

    def _all_versions(self) -> Iterator[str]:
        for family in self._families.values():
            for member in family:
                if member.place.version:
                    yield member.place.version


def plain_version(label: str) -> str:
    """Return a version without the letters that people write before it."""
    if label == NEWEST:
        return ""
    return _VERSION_MARK.sub("", label.strip().casefold(), count=1)


def _by_page(paths: frozenset[str]) -> dict[str, list[_Member]]:
    """Map each page to its documents; nothing where no name speaks of languages or versions."""
    pages: defaultdict[str, list[_Member]] = defaultdict(list)
    folders = {path.rpartition("/")[0] for path in paths}
    has_trees = any(map(_VERSIONED_TREE.match, folders))
    has_suffixes = any(map(_SUFFIX.search, paths))
    if not has_trees and not has_suffixes and not any(map(_is_marked, folders)):
        return pages
    copies = Copies(paths)
    if not has_trees and not has_suffixes and not copies.variant_folders:
        return pages
    places: dict[str, _Place] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        if folder not in places:
            places[folder] = _place(folder, copies)
        place = places[folder]
        suffix = _suffix_language(path, copies)
        if suffix:
            name, place = _without_suffix(name, place, suffix)
        variant = Variant(path, place.language_label, place.version_label)
        pages[f"{place.common}/{name}"].append(_Member(variant, place))
    return pages


def _is_marked(folder: str) -> bool:
    """Tell whether a name on the way to a folder may be that of a language or a version."""
    for name in folder.split("/"):
        if language_of(name) or VERSION.fullmatch(name):
            return True
    return False


def _place(folder: str, copies: Copies) -> _Place:
    """Return a folder without languages and versions, and which these are."""
    labels = {"translation": "", "version": ""}
    is_original = {"translation": True, "version": True}
    common: list[str] = []
    names = folder.split("/")
    for depth, name in enumerate(names, start=1):
        variant = copies.variant_folders.get("/".join(names[:depth]))
        tree = _VERSIONED_TREE.fullmatch(name)
        if variant is not None:
            labels[variant.kind] = variant.label
            is_original[variant.kind] = variant.is_original
            _drop_parent(common)
        elif depth == 1 and tree is not None:
            labels["version"] = tree["version"]
            common.append(f"{tree['name']}@")
        elif name == _TRANSLATED_DOCS:
            common.append("docs")
        elif name != "current" or names[depth - 2] != _TRANSLATED_DOCS:
            common.append(name)
    version = plain_version(labels["version"])
    return _Place(
        common="/".join(common),
        language_label=labels["translation"],
        version_label=labels["version"],
        language=language_of(labels["translation"]),
        version=version,
        newest_first=tuple(-number for number in version_order(version)),
        is_original_language=is_original["translation"],
        is_original_version=is_original["version"],
    )


def _without_suffix(name: str, place: _Place, suffix: str) -> tuple[str, _Place]:
    """Return a name without the language at its end, and the place with that language."""
    stem, _, ending = name.rpartition(".")
    language = language_of(suffix)
    translated = replace(
        place,
        language_label=suffix,
        language=language,
        is_original_language=language == "en",
    )
    return f"{stem[: -len(suffix) - 1]}.{ending}", translated


def _drop_parent(folders: list[str]) -> None:
    """Forget a folder that is there only to hold translations or versions."""
    if not folders:
        return
    if folders[-1].casefold() in TRANSLATED_FOLDERS:
        folders.pop()
    elif folders[-1] == VERSIONED_FOLDER:
        folders[-1] = "docs"


def _suffix_language(path: str, copies: Copies) -> str:
    """Return the language at the end of a file's name, as in README.ja.md and index.en.md."""
    if not _SUFFIX.search(path):
        return ""
    copy = copies.translated_file(path)
    if copy is not None:
        return copy.label
    stem = path.rpartition("/")[2].rpartition(".")[0]
    match = SUFFIXED.fullmatch(stem)
    if match is not None and match[2] == "." and language_of(match[3]) == "en":
        return match[3]
    return ""


def _distinct(members: Sequence[_Member]) -> Sequence[_Member]:
    """Leave out documents that would be the same language and version of one page."""
    distinct: dict[tuple[str, str], _Member] = {}
    for member in members:
        distinct.setdefault((member.variant.language, member.variant.version), member)
    return tuple(distinct.values())
