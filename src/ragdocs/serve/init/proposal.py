"""What to index of a project: the documentation that was found, and globs that choose among it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ragdocs.keys import LIST_LIMIT
from ragdocs.lanes import DOCS
from ragdocs.project.copies import Copies, Copy
from ragdocs.project.documentation import (
    DOCS_FOLDERS,
    EVERYWHERE,
    Listing,
    common_folder,
    documentation_format,
    escaped,
    file_size,
    is_readable,
    list_documentation,
    patterns,
    suffixes_of,
    top_folder,
)
from ragdocs.project.formats import Format
from ragdocs.stores.files.globs import Rules
from ragdocs.text.formats.reading import format_of_text

# Measured on five documentation trees: 490 to 670 bytes a passage.
PASSAGE_BYTES = 650
# Measured on a book of 67 notebooks, most of whose bytes are pictures: 11,300 bytes a passage.
NOTEBOOK_BYTES = 11_000
# Measured on one core: seconds to index a passage by words, and to encode it.
WORDS_SECONDS = 0.0006
MEANING_SECONDS = 0.053
# More folders than this are not named one by one: the notes of a vault lie anywhere.
MOST_FOLDERS = 12
# Files of a group that are opened to see which format plain text is in.
SAMPLED_FILES = 5
SAMPLED_BYTES = 20_000
# A configuration takes only so many globs.
MOST_GLOBS = LIST_LIMIT - 4
# Folders that have no name of their own, as the table shows them.
FOLDER_NAMES = {"": "(top folder)", EVERYWHERE: "(all folders)"}
# Lines of the configuration that are only offered.
MOST_OFFERED = 40
# Copies that somebody may want to search instead of the originals.
OFFERED = frozenset({"translation", "version"})
# Kinds of which a file is told by its own name, not by that of a folder.
NAMED_FILES = frozenset({"release notes", "no prose"})
ANY_DEPTH = "/**/"
# How the table shows the names of formats.
SHORT_NAMES = {"reStructuredText": "RST", "plain text": "text"}


@dataclass(frozen=True, slots=True)
class Group:
    """Documents of one format in one folder, and why they are indexed or not."""

    folder: str
    format: str
    paths: tuple[str, ...]
    bytes: int
    verdict: str
    chosen: bool = False
    # Of a translation or a version: its name, such as "fr".
    label: str = ""
    # How the files are chosen, and how they are kept out of what others choose.
    include: tuple[str, ...] = ()
    exclude: str = ""


@dataclass(frozen=True, slots=True)
class Glob:
    """A line of the configuration: a glob, why it is there, and whether it is in force."""

    glob: str
    remark: str
    active: bool = True


@dataclass(frozen=True, slots=True)
class Proposal:
    """The documentation of a project, and which of it to index."""

    root: Path
    listing: Listing
    groups: tuple[Group, ...]
    include: tuple[Glob, ...]
    exclude: tuple[Glob, ...]
    # The files that the globs choose, and their size together.
    paths: tuple[str, ...] = ()
    bytes: int = 0

    @property
    def passages(self) -> int:
        """About how many passages the chosen files have."""
        notebooks = 0
        for group in self.groups:
            if group.chosen and group.format == "notebooks":
                notebooks += group.bytes
        texts = max(0, self.bytes - notebooks)
        passages = texts / PASSAGE_BYTES + notebooks / NOTEBOOK_BYTES
        return max(len(self.paths), math.ceil(passages))

    @property
    def seconds_by_words(self) -> float:
        """About how long it takes until all of it is found by words."""
        return self.passages * WORDS_SECONDS

    @property
    def seconds_by_meaning(self) -> float:
        """About how long it takes until all of it is found by meaning."""
        return self.passages * MEANING_SECONDS

    def as_json(self) -> dict[str, Any]:
        """Return the proposal as plain data."""
        groups = []
        for group in self.groups:
            groups.append(
                {
                    "folder": group.folder,
                    "files": len(group.paths),
                    "format": group.format,
                    "bytes": group.bytes,
                    "indexed": group.chosen,
                    "verdict": group.verdict,
                    "label": group.label,
                }
            )
        return {
            "project": str(self.root),
            "found": groups,
            "include": list(in_force(self.include)),
            "exclude": list(in_force(self.exclude)),
            "files": len(self.paths),
            "bytes": self.bytes,
            "passages": self.passages,
            "seconds_by_words": round(self.seconds_by_words, 1),
            "seconds_by_meaning": round(self.seconds_by_meaning, 1),
        }


@dataclass(slots=True)
class _Tally:
    """Files that share a folder, a format and a verdict."""

    paths: list[str] = field(default_factory=list)
    bytes: int = 0

    def add(self, path: str, size: int) -> None:
        """Count one more file."""
        self.paths.append(path)
        self.bytes += size


@dataclass(frozen=True, slots=True)
class _Documents:
    """The regular files of a listing: their sizes, and why some are no originals."""

    sizes: dict[str, int] = field(default_factory=dict)
    copies: dict[str, Copy | None] = field(default_factory=dict)


def in_force(globs: Iterable[Glob]) -> tuple[str, ...]:
    """Return the globs that are not only offered."""
    return tuple(glob.glob for glob in globs if glob.active)


def rules_of(include: Sequence[str], exclude: Sequence[str] = ()) -> Rules:
    """Return the rules by which globs choose files."""
    return Rules(replace(DOCS, include=tuple(include), exclude=tuple(exclude)))


def propose(root: Path) -> Proposal:
    """Look at the documentation of a project and choose what to index."""
    listing = list_documentation(root)
    copies = Copies(listing.paths)
    documents = _Documents()
    for path in listing.paths:
        size = file_size(root, path)
        if size is not None:
            documents.sizes[path] = size
            documents.copies[path] = copies.find(path)
    originals = _originals(root, documents)
    copied = _copied(documents)
    include = _include(originals)
    candidates = rules_of(in_force(include))
    included = set(filter(candidates.lists, documents.sizes))
    exclude = _exclude(copied, included)
    include += _offers(copied, included)
    rules = rules_of(in_force(include), in_force(exclude))
    chosen = tuple(filter(rules.lists, sorted(included)))
    return Proposal(
        root=root,
        listing=listing,
        groups=(*originals, *copied, *_unread(documents)),
        include=tuple(include),
        exclude=tuple(exclude),
        paths=chosen,
        bytes=sum(map(documents.sizes.__getitem__, chosen)),
    )


# --- what is there ---


def _originals(root: Path, documents: _Documents) -> list[Group]:
    """Group the documents that are read and are no copies, by their folder and format."""
    by_top: defaultdict[str, list[str]] = defaultdict(list)
    tops_with_copies = set()
    for path, copy in documents.copies.items():
        top = top_folder(path)
        if copy is None and is_readable(path):
            by_top[top].append(path)
        elif copy is not None and copy.kind in OFFERED:
            tops_with_copies.add(top)
    by_folder: defaultdict[str, list[str]] = defaultdict(list)
    is_vault = (root / ".obsidian").is_dir()
    for top, paths in by_top.items():
        folder = _anchor(top, paths, has_copies=top in tops_with_copies)
        if is_vault or len(by_top) > MOST_FOLDERS:
            folder = EVERYWHERE
        by_folder[folder] += paths
    groups = []
    # The files of the top folder come last.
    for folder in sorted(by_folder, key=lambda name: (name == "", name)):
        for name, tally in _by_format(by_folder[folder], documents).items():
            groups.append(_original(root, folder, name, tally))
    return groups


def _anchor(top: str, paths: Sequence[str], *, has_copies: bool) -> str:
    """Return the folder that the globs of these documents begin with."""
    # New pages may come anywhere below docs/, unless some folders of it are left out.
    if top.casefold() in DOCS_FOLDERS and not has_copies:
        return top
    return common_folder(paths)


def _by_format(paths: Iterable[str], documents: _Documents) -> dict[str, _Tally]:
    tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
    for path in paths:
        tallies[_format(path).name].add(path, documents.sizes[path])
    return dict(tallies)


def _original(root: Path, folder: str, name: str, tally: _Tally) -> Group:
    verdict = "index"
    if not _format(tally.paths[0]).has_headings:
        kind = _sniffed(root, tally.paths)
        if kind.has_headings:
            name = f"{SHORT_NAMES.get(kind.name, kind.name)} in .txt"
        else:
            verdict = "index, without headings"
    return Group(
        folder=FOLDER_NAMES.get(folder, folder),
        format=name,
        paths=tuple(tally.paths),
        bytes=tally.bytes,
        verdict=verdict,
        chosen=True,
        include=tuple(patterns(escaped(folder), suffixes_of(tally.paths))),
    )


def _sniffed(root: Path, paths: Sequence[str]) -> Format:
    """Return the format that most of the first files are written in, whatever their ending."""
    kinds: Counter[Format] = Counter()
    for path in paths[:SAMPLED_FILES]:
        try:
            with (root / path).open("rb") as file:
                text = file.read(SAMPLED_BYTES).decode(errors="replace")
        except OSError:
            continue
        kinds[format_of_text(text, path)] += 1
    if not kinds:
        return _format(paths[0])
    return kinds.most_common(1)[0][0]


def _copied(documents: _Documents) -> list[Group]:
    """Group the documents that are copies, or were written by programs."""
    tallies: defaultdict[tuple[str, str, str], _Tally] = defaultdict(_Tally)
    for path, copy in documents.copies.items():
        if copy is not None and is_readable(path):
            tallies[copy.kind, _folder_of(copy), copy.label].add(path, documents.sizes[path])
    groups = []
    for (kind, folder, label), tally in sorted(tallies.items()):
        include: tuple[str, ...] = ()
        exclude = f"{_as_glob(folder)}/**"
        if folder in tally.paths:
            include = (escaped(folder),)
            exclude = escaped(folder)
        elif kind in NAMED_FILES:
            exclude = _as_glob(folder)
        elif kind in OFFERED:
            include = tuple(patterns(escaped(folder), suffixes_of(tally.paths)))
        group = Group(
            folder=folder,
            format=_format(tally.paths[0]).name,
            paths=tuple(tally.paths),
            bytes=tally.bytes,
            verdict=kind,
            label=label,
            include=include,
            exclude=exclude,
        )
        groups.append(group)
    return groups


def _folder_of(copy: Copy) -> str:
    """Return where copies are; folders of test data and the like are named once for each top."""
    if copy.kind in OFFERED or "/" not in copy.path:
        return copy.path
    return f"{top_folder(copy.path)}{ANY_DEPTH}{copy.label}"


def _as_glob(folder: str) -> str:
    """Return a folder as a glob, with the part that stands for any folders."""
    top, any_depth, name = folder.partition(ANY_DEPTH)
    return f"{escaped(top)}{any_depth}{escaped(name)}"


def _unread(documents: _Documents) -> list[Group]:
    """Group the documents in formats that are not read with what is installed."""
    tallies: defaultdict[tuple[str, str], _Tally] = defaultdict(_Tally)
    for path, copy in documents.copies.items():
        if copy is None and not is_readable(path):
            tallies[top_folder(path), _format(path).name].add(path, documents.sizes[path])
    groups = []
    for (folder, name), tally in sorted(tallies.items()):
        group = Group(
            folder=FOLDER_NAMES.get(folder, folder),
            format=name,
            paths=tuple(tally.paths),
            bytes=tally.bytes,
            verdict=f"needs ragdocs[{_format(tally.paths[0]).extra}]",
        )
        groups.append(group)
    return groups


def _format(path: str) -> Format:
    kind = documentation_format(path)
    assert kind is not None
    return kind


# --- what to choose ---


def _include(originals: Sequence[Group]) -> list[Glob]:
    """Return the globs of the originals, each with how many files it chooses."""
    globs = []
    suffixes = set()
    for group in originals:
        for glob in group.include:
            suffix = suffixes_of([glob])[0]
            suffixes.add(suffix)
            count = sum(path.endswith(suffix) for path in group.paths)
            remark = f"{files_in_words(count)}, {group.format}"
            globs.append(Glob(glob, remark + group.verdict.removeprefix("index")))
    if len(globs) <= MOST_GLOBS:
        return globs
    return [Glob(glob, "everywhere") for glob in patterns(EVERYWHERE, sorted(suffixes))]


def _exclude(copied: Sequence[Group], included: AbstractSet[str]) -> list[Glob]:
    """Return the globs that keep copies out, where they lie among the originals."""
    globs: list[Glob] = []
    for group in copied:
        if not included.isdisjoint(group.paths):
            globs.append(Glob(group.exclude, _why(group), active=len(globs) < MOST_GLOBS))
    return globs


def _offers(copied: Sequence[Group], included: AbstractSet[str]) -> list[Glob]:
    """Return the globs of copies that somebody may want instead."""
    globs = []
    for group in copied:
        if included.isdisjoint(group.paths):
            for glob in group.include:
                globs.append(Glob(glob, _why(group), active=False))
    return globs[:MOST_OFFERED]


def _why(group: Group) -> str:
    words = f"{files_in_words(len(group.paths))}, {group.verdict}"
    if group.verdict in OFFERED:
        words += f": {group.label}"
    return words


def files_in_words(count: int) -> str:
    """Return a number of files with its noun."""
    if count == 1:
        return "1 file"
    return f"{count:,} files"
