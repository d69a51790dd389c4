"""Which documents are one page in several languages or versions; their paths alone decide."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragdocs.lanes import NEWEST
from ragdocs.project.copies import (
    SUFFIXED,
    TRANSLATED_FOLDERS,
    VERSIONED_FOLDER,
    Copies,
    language_of,
    version_order,
)
from ragdocs.types import Variant

# Where Docusaurus keeps the translation of docs/.
_TRANSLATED_DOCS = "docusaurus-plugin-content-docs"
# A tree with a version of its own: its first folder is called name@version.
_VERSIONED_TREE = re.compile(r"(?P<name>[^/@]+)@(?P<version>[^/]+)")
_VERSION_MARK = re.compile(r"(?:v|version-|release-)(?=\d)", re.IGNORECASE)
_NAMED_VERSION = re.compile(r"(?<![\w.-])(?:v|version-|release-)?\d+(?:\.\w+)*", re.IGNORECASE)
# Choices that are remembered: each differs by folder, language or version.
_MOST_CHOICES = 64


@dataclass(frozen=True, slots=True)
class _Member:
    """A document of a family, and how near it is to the original."""

    variant: Variant
    # The two letters of its language, or nothing for that of the original.
    language: str
    is_original_language: bool
    is_original_version: bool

    def order(self, language: str, version: str) -> tuple[object, ...]:
        """Return what members are sorted by, the one that is shown first."""
        own_version = plain_version(self.variant.version)
        is_asked = bool(version) and own_version == version
        newest_first = [-number for number in version_order(own_version)]
        return (
            not (language and self.language == language),
            not self.is_original_language,
            not is_asked,
            not self.is_original_version,
            newest_first,
            self.variant.path,
        )


class Families:
    """The documents of a corpus that are one page in several languages or versions."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths = frozenset(paths)
        self._families: dict[str, Sequence[_Member]] = {}
        self._family_of: dict[str, str] = {}
        members: defaultdict[str, list[_Member]] = defaultdict(list)
        copies = Copies(self._paths)
        is_possible = copies.variant_folders or any(map(_is_marked, self._paths))
        for path in sorted(self._paths) if is_possible else ():
            key, member = _read(path, copies)
            members[key].append(member)
        for key, same in members.items():
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
                yield member.language or "en"

    def _all_versions(self) -> Iterator[str]:
        for family in self._families.values():
            for member in family:
                if member.variant.version:
                    yield plain_version(member.variant.version)


def plain_version(label: str) -> str:
    """Return a version without the letters that people write before it."""
    if label == NEWEST:
        return ""
    return _VERSION_MARK.sub("", label.strip().casefold(), count=1)


def _is_marked(path: str) -> bool:
    """Tell whether a path alone may say that there are other languages or versions of it."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    is_in_tree = _VERSIONED_TREE.match(path) is not None
    return is_in_tree or SUFFIXED.fullmatch(stem) is not None


def _read(path: str, copies: Copies) -> tuple[str, _Member]:
    """Return a path without its language and version, and what these are."""
    labels: dict[str, str] = {}
    is_original = {"translation": True, "version": True}
    common: list[str] = []
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders, start=1):
        place = "/".join(folders[:depth])
        variant = copies.variant_folders.get(place)
        tree = _VERSIONED_TREE.fullmatch(folder)
        if variant is not None:
            labels[variant.kind] = variant.label
            is_original[variant.kind] = variant.is_original
            _drop_parent(common)
        elif depth == 1 and tree is not None:
            labels["version"] = tree["version"]
            common.append(f"{tree['name']}@")
        elif folder == _TRANSLATED_DOCS:
            common.append("docs")
        elif folder != "current" or folders[depth - 2] != _TRANSLATED_DOCS:
            common.append(folder)
    suffix = _suffix_language(path, copies)
    if suffix:
        stem, _, ending = name.rpartition(".")
        name = f"{stem[: -len(suffix) - 1]}.{ending}"
        labels["translation"] = suffix
        is_original["translation"] = language_of(suffix) == "en"
    language = labels.get("translation", "")
    member = _Member(
        Variant(path, language, labels.get("version", "")),
        language_of(language),
        is_original["translation"],
        is_original["version"],
    )
    return "/".join((*common, name)), member


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
