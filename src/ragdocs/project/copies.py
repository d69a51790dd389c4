"""Which documents are no originals: translations, old versions, generated files and test data.

Names and counts alone decide; no file is opened.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ragdocs.project.documentation import BUILT, documentation_format, is_in_docs_folder
from ragdocs.system.patterns import later

Kind = Literal["translation", "version", "generated", "test data", "release notes", "no prose"]

_LANGUAGES = frozenset(
    [
        "ar",
        "az",
        "be",
        "bg",
        "bn",
        "bs",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "en",
        "eo",
        "es",
        "et",
        "eu",
        "fa",
        "fi",
        "fr",
        "ga",
        "gl",
        "he",
        "hi",
        "hr",
        "hu",
        "hy",
        "id",
        "is",
        "it",
        "ja",
        "ka",
        "kk",
        "km",
        "kn",
        "ko",
        "lt",
        "lv",
        "mk",
        "ml",
        "mn",
        "mr",
        "ms",
        "my",
        "nb",
        "ne",
        "nl",
        "no",
        "pa",
        "pl",
        "pt",
        "ro",
        "ru",
        "si",
        "sk",
        "sl",
        "sq",
        "sr",
        "sv",
        "sw",
        "ta",
        "te",
        "th",
        "tl",
        "tr",
        "uk",
        "ur",
        "uz",
        "vi",
        "zh",
    ]
)
# Languages whose two letters hardly mean anything else: one such folder alone is a translation.
_UNMISTAKABLE = frozenset(
    [
        "ar",
        "bn",
        "cs",
        "de",
        "el",
        "es",
        "fa",
        "fr",
        "hu",
        "ja",
        "ko",
        "nl",
        "pl",
        "pt",
        "ro",
        "ru",
        "sv",
        "th",
        "tr",
        "uk",
        "vi",
        "zh",
    ]
)
# What people write behind a README for a language that has other letters.
COUNTRIES = frozenset(["br", "cn", "jp", "kr", "tw", "ua"])
_REGION = later(r"([a-z]{2})[-_](?:[a-z]{2}|hans|hant|latn|cyrl|419)", re.IGNORECASE)
SUFFIXED = later(r"(.+?)([._-])([A-Za-z]{2}(?:[-_][A-Za-z]{2,4})?)")
TRANSLATED_FOLDERS = frozenset(
    {"i18n", "l10n", "locale", "locales", "lang", "translations", "translated"}
)
VERSION = later(
    r"(?:v|version-|release-)?\d+(?:\.\d+)*\.(?:\d+|x)|(?:v|version-|release-)\d+",
    re.IGNORECASE,
)
# Names of the copy that readers are sent to, the best one first.
_CURRENT = ("latest", "current", "stable")
VERSIONED_FOLDER = "versioned_docs"

_ALWAYS_GENERATED = frozenset(
    {*BUILT, "autosummary", "apidoc", "apidocs", "doxygen", "generated", "javadoc", "typedoc"}
)
# Outside of documentation these are other people's files, or the output of a build.
_FOREIGN = frozenset({"vendor", "third_party", "third-party", "dist", "coverage", "htmlcov"})
# Folders that are either written by hand or by a site generator: pages in HTML tell.
_PERHAPS_GENERATED = frozenset({"site", "public", "build", "out"})
_TESTS = frozenset(
    {"test", "tests", "__tests__", "fixtures", "__fixtures__", "testdata", "test-data"}
)
# Text files for programs and lawyers, which lie among documentation, too.
_NO_PROSE = later(
    r"(?:requirements|constraints|robots|cmakelists|licen[cs]e|copying).*\.txt", re.IGNORECASE
)
# An original has at least this share of the files of its largest translation or version.
_ORIGINAL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Copy:
    """Why a document is not an original, and the folder (or the file) that makes it one."""

    kind: Kind
    path: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class VariantFolder:
    """A folder that stands for a language or a version, among others with the same documents."""

    kind: Literal["translation", "version"]
    label: str
    # Whether it holds the main language, or the version that readers are sent to.
    is_original: bool


class Copies:
    """The documents of a project that are no originals."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._sorted = sorted(self._paths)
        self._below: Counter[str] = Counter()
        self._html: Counter[str] = Counter()
        children: defaultdict[str, set[str]] = defaultdict(set)
        # There are far fewer folders than documents.
        counts: Counter[tuple[str, bool]] = Counter()
        for path in self._paths:
            counts[path.rpartition("/")[0], _is_web_page(path)] += 1
        for (folder, is_html), count in counts.items():
            counter = self._html if is_html else self._below
            parent = ""
            for name in filter(None, folder.split("/")):
                children[parent].add(name)
                counter[parent] += count
                parent = _join(parent, name)
            counter[parent] += count
        self._folders: dict[str, Copy] = {}
        # Also those of originals, where these have a folder of their own.
        self.variant_folders: dict[str, VariantFolder] = {}
        for parent, names in sorted(children.items()):
            self._find_translations(parent, names)
            self._find_versions(parent, names)

    def find(self, path: str) -> Copy | None:
        """Return why a document is not an original, or nothing for one that is."""
        *folders, name = path.split("/")
        for depth, folder in enumerate(folders, start=1):
            parent = "/".join(folders[:depth])
            if parent in self._folders:
                return self._folders[parent]
            kind = self._kind_of_folder(folder, parent, folders[: depth - 1])
            if kind is not None:
                return Copy(kind, parent, folder)
        if folders and _is_release_notes(name) and not is_in_docs_folder(folders):
            return Copy("release notes", path, name)
        if _NO_PROSE.fullmatch(name):
            return Copy("no prose", path, name)
        return self.translated_file(path)

    def _kind_of_folder(self, name: str, path: str, above: Sequence[str]) -> Kind | None:
        if name in _ALWAYS_GENERATED:
            return "generated"
        if is_in_docs_folder(above):
            return None
        if name in _FOREIGN:
            return "generated"
        if name in _PERHAPS_GENERATED and self._html[path] > self._below[path]:
            return "generated"
        if name in _TESTS:
            return "test data"
        return None

    def _find_translations(self, parent: str, names: Iterable[str]) -> None:
        """Note the folders of a parent that hold the same documents in other languages."""
        languages = {}
        for name in names:
            language = language_of(name)
            if language:
                languages[name] = language
        if not self._is_language_set(parent, languages):
            return
        original = self._original_language(parent, languages)
        for name in languages:
            path = _join(parent, name)
            is_original = name == original
            self.variant_folders[path] = VariantFolder("translation", name, is_original)
            if not is_original:
                self._folders[path] = Copy("translation", path, name)

    def _is_language_set(self, parent: str, languages: Mapping[str, str]) -> bool:
        recognised = set(languages.values()) & (_UNMISTAKABLE | {"en"})
        if len(languages) > 1:
            return bool(recognised)
        is_for_languages = parent.rpartition("/")[2].casefold() in TRANSLATED_FOLDERS
        return bool(recognised & _UNMISTAKABLE or (recognised and is_for_languages))

    def _original_language(self, parent: str, languages: Mapping[str, str]) -> str:
        """Return the folder of the main language, or nothing if it lies outside all of them."""
        english = [name for name, language in languages.items() if language == "en"]
        if english:
            return min(english, key=lambda name: (len(name), name))
        if parent.rpartition("/")[2].casefold() in TRANSLATED_FOLDERS:
            counted_in = parent.rpartition("/")[0]
        else:
            counted_in = parent
        return self._largest_unless_outside(counted_in, parent, languages)

    def _largest_unless_outside(self, around: str, parent: str, names: Iterable[str]) -> str:
        """Return the folder with the most documents, unless nearly as many lie outside of all."""
        counts = {name: self._below[_join(parent, name)] for name in names}
        largest = max(counts, key=lambda name: (counts[name], name))
        outside = self._below[around] - sum(counts.values())
        if outside >= _ORIGINAL_SHARE * counts[largest]:
            return ""
        return largest

    def _find_versions(self, parent: str, names: Iterable[str]) -> None:
        """Note the folders of a parent that hold the same documents for other releases."""
        versions = sorted(filter(VERSION.fullmatch, names), key=version_order)
        current = [name for name in _CURRENT if name in names]
        if not versions:
            return
        is_repeated = self._repeats(parent, versions)
        is_for_versions = parent.rpartition("/")[2] == VERSIONED_FOLDER
        is_alone = len(versions) + len(current) == 1
        if is_alone and not is_repeated and not is_for_versions:
            return
        if is_for_versions:
            above = parent.rpartition("/")[0]
            original = versions[-1]
            if self._below[_join(above, "docs")]:
                original = ""
        elif current:
            original = current[0]
        elif is_repeated:
            original = ""
        else:
            original = versions[-1]
        for name in (*versions, *current):
            path = _join(parent, name)
            is_original = name == original
            self.variant_folders[path] = VariantFolder("version", name, is_original)
            if not is_original:
                self._folders[path] = Copy("version", path, name)

    def _repeats(self, parent: str, versions: Sequence[str]) -> bool:
        """Tell whether the newest version has the same file names as the folder around it."""
        prefix = f"{_join(parent, versions[-1])}/"
        count = 0
        repeated = 0
        for path in islice(self._sorted, bisect_left(self._sorted, prefix), None):
            if not path.startswith(prefix):
                break
            count += 1
            repeated += _join(parent, path.removeprefix(prefix)) in self._paths
        return repeated >= _ORIGINAL_SHARE * count

    def translated_file(self, path: str) -> Copy | None:
        """Return why a file is a translation of the one beside it, as README.ja.md is."""
        folder, slash, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        match = SUFFIXED.fullmatch(stem)
        if match is None:
            return None
        original, separator, ending = match.groups()
        language = language_of(ending)
        if separator != ".":
            is_language = language in _UNMISTAKABLE or ending.casefold() in COUNTRIES
        else:
            is_language = bool(language) or ending.casefold() in COUNTRIES
        if not is_language or language == "en":
            return None
        for beside in (original, f"{original}{separator}en"):
            if f"{folder}{slash}{beside}{dot}{suffix}" in self._paths:
                return Copy("translation", path, ending)
        return None


def _is_web_page(path: str) -> bool:
    if not path.casefold().endswith((".html", ".htm")):
        return False
    kind = documentation_format(path)
    return kind is not None and kind.name == "HTML"


def _join(parent: str, name: str) -> str:
    if parent:
        return f"{parent}/{name}"
    return name


def language_of(name: str) -> str:
    """Return the language that a folder or an ending is named after, or nothing."""
    code = name.casefold()
    region = _REGION.fullmatch(code)
    if region:
        code = region[1]
    if code in _LANGUAGES:
        return code
    return ""


def version_order(name: str) -> tuple[int, ...]:
    """Return what versions are sorted by, the newest last."""
    return tuple(map(int, re.findall(r"\d+", name)))


def _is_release_notes(name: str) -> bool:
    return name.casefold().startswith("changelog.")
