"""The files that links lead to, as they are in the working copy now."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.lanes import document_id
from ragdocs.project import registry
from ragdocs.search.corpus import Corpus
from ragdocs.system import files
from ragdocs.system.refs import Stamp, file_stamp
from ragdocs.text import parts
from ragdocs.text.link_kinds import TOUCHES
from ragdocs.text.parts import Part
from ragdocs.types import Document, Link
from ragdocs.verbs.living.past import LARGEST, MOST_FILES, Past, blob_name, only_size

# Links of one memory that are compared; one with more is a list.
MOST_LINKS = 50
# A smaller file has the content of many others.
LEAST_MOVED = 32
# Files that changed since a memory was written, in which a part of another one is looked for.
MOST_CHANGED = 500
# Folders whose files nobody links to, where git does not say what is ignored.
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
# Contents that stay in memory, by path and name of the part.
_MOST_CACHED = 20_000


@dataclass(frozen=True, slots=True)
class Content:
    """A part of a file: what it is by digest, and the whole file by git's name and size."""

    kind: str
    name: str
    digest: str
    signature: bytes
    blob: str
    size: int


class Targets:
    """Reads linked files; the content of a file that did not change is not read again."""

    def __init__(self, root: Path, corpora: Callable[[], Mapping[str, Corpus]], past: Past) -> None:
        self.root = root
        self._real_root = Path(os.path.realpath(root))
        self._corpora = corpora
        self._past = past
        self._contents: dict[tuple[str, str], tuple[Stamp, Content | None]] = {}

    def links(self, document: Document) -> list[Link]:
        """Return the links of a memory that name files, one for each target and heading.

        Files that were only being changed, folders, and other memories are not compared.
        """
        return self.links_of([document])[document.id]

    def links_of(self, documents: Sequence[Document]) -> dict[str, list[Link]]:
        """Map memories to their links that name files; the index is asked once for all of them."""
        named = {}
        targets = set()
        for document in documents:
            links = self._named(document)
            named[document.id] = links
            for link in links:
                targets.add(link.target)
        memories = self._memories(targets)
        own: dict[str, list[Link]] = {}
        for memory, links in named.items():
            own[memory] = []
            for link in links:
                if link.target not in memories:
                    own[memory].append(link)
        return own

    def _named(self, document: Document) -> list[Link]:
        """Return the links of a memory that may name files."""
        if not self._is_own(document):
            return []
        links: dict[tuple[str, str], Link] = {}
        for link in document.links:
            if len(links) >= MOST_LINKS:
                break
            is_listed = link.kind == TOUCHES or link.target.endswith("/*")
            if not is_listed and self._names_file(link.target):
                links.setdefault((link.target, link.heading), link)
        return list(links.values())

    def path(self, target: str) -> str:
        """Return the file that a target names; one that is not there may have lost its ending."""
        for path in (target, f"{target}.md"):
            status = self.stamp(path)
            if status is not None:
                return path
        return target

    def stamp(self, path: str) -> Stamp | None:
        """Return what changes whenever a file does, or None where there is none."""
        return file_stamp(f"{self.root}{os.sep}{path}")

    def is_folder(self, path: str) -> bool:
        """Tell whether a target is a folder, of which only the name can be compared."""
        return (self.root / path).is_dir()

    def content(self, path: str, name: str) -> Content | None:
        """Return a part of a file, or None where there is no such file or part.

        A file that cannot be read is an error, never an absence.
        """
        stamp = self.stamp(path)
        if stamp is None:
            return None
        cached = self._contents.get((path, name))
        if cached is not None and cached[0] == stamp:
            return cached[1]
        data = self.read(path)
        content = None
        if data is not None:
            content = content_of(path, data, name)
        if len(self._contents) >= _MOST_CACHED:
            self._contents.clear()
        self._contents[path, name] = stamp, content
        return content

    def read(self, path: str) -> bytes | None:
        """Return a file of the project, or None where there is none; nothing outside is read."""
        if path.partition("/")[0].casefold() == ".git":
            return None
        real = files.contained(self._real_root, path)
        try:
            size = real.stat().st_size
            if size > LARGEST:
                return only_size(size)
            return files.read_bytes(real, LARGEST)
        except NotFoundError:
            return None
        except OSError as error:
            raise files.explain(error, "read", real) from error

    def parts(self, path: str) -> list[Part]:
        """Return the sections or definitions of a file."""
        data = self.read(path)
        if data is None:
            return []
        return parts.all_parts(path, data)

    def finder(self) -> Finder:
        """Return what looks for a content in all files as they are now."""
        return Finder(self, self._past)

    def _names_file(self, target: str) -> bool:
        """Tell whether a target is meant as a file, and not as the title of a text."""
        name = target.rpartition("/")[2]
        return "/" in target or "." in name

    def _memories(self, targets: Collection[str]) -> set[str]:
        """Return the names of memories among these targets."""
        memories: set[str] = set()
        if not targets:
            return memories
        for corpus in self._corpora().values():
            if not corpus.lane.writable:
                continue
            base = f"{corpus.lane.base}/"
            ids = []
            for target in targets:
                ids.append(document_id(corpus.lane, target))
                ids.append(document_id(corpus.lane, f"{target}.md"))
                if corpus.lane.base and target.startswith(base):
                    memories.add(target)
            for document in corpus.named(ids).values():
                memories.add(document.path)
                memories.add(document.path.removesuffix(".md"))
        return memories

    def _is_own(self, document: Document) -> bool:
        """Tell whether a memory is of this project; the user's bank has those of others too."""
        corpus = self._corpora().get(document.lane)
        if corpus is None or not corpus.lane.writable:
            return False
        if corpus.lane.base:
            return True
        owner = document.extra.get("project")
        return owner is None or owner == registry.main_worktree(self.root).name


class Finder:
    """Looks for contents under other names, with one look at the sizes of all files."""

    def __init__(self, targets: Targets, past: Past) -> None:
        self._targets = targets
        self._past = past
        self._by_size: dict[int, list[str]] | None = None
        self._changed_since: dict[str, list[str]] = {}

    def same(self, path: str, blob: str, size: int) -> str:
        """Return the one other file with this content; of several, the one of the same name."""
        if size < LEAST_MOVED:
            return ""
        if self._by_size is None:
            self._by_size = self._sizes()
        matches = []
        for candidate in self._by_size.get(size, ()):
            if candidate != path and self._has(candidate, blob):
                matches.append(candidate)
        name = path.rpartition("/")[2]
        named = [match for match in matches if match.rpartition("/")[2] == name]
        chosen = named or matches
        if len(chosen) == 1:
            return chosen[0]
        return ""

    def part(self, kind: str, name: str, signature: bytes, commit: str) -> tuple[str, Part] | None:
        """Return where a section or a definition is now, if one file that changed has it.

        It must have its name there, and its lines or most of them.
        """
        own_name = parts.own_name(kind, name)
        candidates = []
        for path in self._changed(commit):
            named = []
            for part in self._parts(path, own_name):
                if part.kind == kind and parts.own_name(kind, part.name) == own_name:
                    named.append(part)
            same = parts.alike(signature, named)
            if same is not None:
                candidates.append((path, same))
        if len(candidates) == 1:
            return candidates[0]
        return None

    def _changed(self, commit: str) -> Sequence[str]:
        """Return the files that changed since a commit; of very many nobody looks for a part."""
        if commit not in self._changed_since:
            self._changed_since[commit] = self._past.changed_since(commit)
        paths = self._changed_since[commit]
        if len(paths) > MOST_CHANGED:
            return ()
        return paths

    def _parts(self, path: str, name: str) -> list[Part]:
        """Return the parts of a file that has a name somewhere."""
        try:
            data = self._targets.read(path)
        except RagdocsError:
            return []
        if data is None or name.encode() not in data:
            return []
        return parts.all_parts(path, data)

    def _has(self, path: str, blob: str) -> bool:
        try:
            data = self._targets.read(path)
        except RagdocsError:
            return False
        return data is not None and blob_name(data) == blob

    def _sizes(self) -> dict[int, list[str]]:
        sizes: dict[int, list[str]] = defaultdict(list)
        names: Sequence[str] = self._past.files() or list(self._walk())
        for name in names:
            stamp = self._targets.stamp(name)
            if stamp is not None:
                sizes[stamp[1]].append(name)
        return sizes

    def _walk(self) -> Iterator[str]:
        """Yield the files of a project without git, as many as are looked at."""
        count = 0
        for folder, folders, names in os.walk(self._targets.root):
            folders[:] = sorted(filter(_is_looked_into, folders))
            for name in sorted(names):
                count += 1
                if count > MOST_FILES:
                    return
                path = os.path.relpath(f"{folder}{os.sep}{name}", self._targets.root)
                yield path.replace(os.sep, "/")


def content_of(path: str, data: bytes, name: str) -> Content | None:
    """Describe a part of a file, or return None if it has no such part."""
    part = parts.find(path, data, name)
    if part is None:
        return None
    make = partial(Content, blob=blob_name(data), size=len(data))
    return make(part.kind, part.name, part.digest, part.signature)


def _is_looked_into(folder: str) -> bool:
    return not folder.startswith(".") and folder not in _PASSED_OVER
