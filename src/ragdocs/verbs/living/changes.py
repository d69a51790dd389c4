"""What a diff changes: files, and inside them headings and definitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragdocs import caller
from ragdocs.errors import RagdocsError, UnavailableError, ValidationError
from ragdocs.project.formats import suffix_of
from ragdocs.system import git
from ragdocs.system.git import Terms
from ragdocs.system.refs import Refs
from ragdocs.text import outline, parts
from ragdocs.text.parts import Part
from ragdocs.verbs.living.past import Past
from ragdocs.verbs.living.targets import Targets

# Files of one diff that are looked into; of more, only the names count.
MOST_PARSED = 500
MOST_FILES = 10_000
_TERMS = Terms(seconds=20.0, most=32_000_000)
# The commit before the first one.
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SUBMODULE = "160000"
# The index names the commit of a submodule; git does not look into it.
_SUBMODULES = "--ignore-submodules=dirty"
_NO_BLOB = re.compile("0+")
_RANGE = re.compile(r"(?P<first>.*?)(?P<dots>\.\.\.?)(?P<last>.*)")
_HINT = "Give one as main..HEAD, v1.2...HEAD or HEAD~3"
HEAD = "HEAD"
# Behind the heading of the first section of several.
_FIRST = " (1)"
# A word of code, or an option of a command.
_WORD = re.compile(rb"--[a-z][a-z0-9-]{1,60}|[A-Za-z_][A-Za-z0-9_]{3,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file in a diff: its path, the one it had before, and the parts of it that changed.

    `changed` are headings or definitions with another text, `gone` those that are not there any
    more, `fresh` those that are new, `kept` those with the same text, `renamed` maps a gone one to
    the name it has now. `is_whole` says that all of it counts. `words` stand on changed lines,
    which are `share` of all lines.
    """

    path: str
    before: str
    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    renamed: tuple[tuple[str, str], ...] = ()
    is_whole: bool = True
    is_code: bool = False
    words: frozenset[str] = frozenset()
    share: float = 1.0

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the file, before and after."""
        return tuple(dict.fromkeys((self.before, self.path)))


@dataclass(frozen=True, slots=True)
class Diff:
    """Changed files, and the commit before the change."""

    files: Sequence[FileChange]
    base: str = HEAD


@dataclass(frozen=True, slots=True)
class _Entry:
    """One file of git's raw diff: paths and contents before and after, "" for none.

    What is only in the working tree has no content that git knows, and is not gone.
    """

    before: str
    path: str
    old: str
    new: str
    is_gone: bool = False
    is_submodule: bool = False


class Diffs:
    """Reads diffs of a project's repository."""

    def __init__(self, root: Path, past: Past, targets: Targets) -> None:
        self._root = root
        self._past = past
        self._targets = targets
        self._prefix = git.prefix(root)

    def between(self, revisions: str) -> Diff:
        """Return what changed between two revisions: A..B, A...B, or A for A..HEAD."""
        written = _RANGE.fullmatch(revisions.strip())
        first, dots, last = revisions.strip(), "..", "HEAD"
        if written:
            first = written["first"] or "HEAD"
            dots = written["dots"]
            last = written["last"] or "HEAD"
        old = self._commit(first)
        new = self._commit(last)
        if dots == "...":
            base = self._run(["merge-base"], [old, new], codes=(0, 1))
            old = base.decode().strip() or _EMPTY_TREE
        options = ["diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev"]
        return Diff(self._changes(self._run(options, [old, new])), old)

    def staged(self) -> Diff:
        """Return what the next commit would change; in a hook, the one that is being made."""
        options = ["diff-index", "--cached", "-M", "--raw", "-z", "--no-abbrev", _SUBMODULES]
        index = git.index_of_hook(self._root, caller.git_index())
        return Diff(self._changes(self._run(options, [self._head()], index=index)))

    def uncommitted(self) -> Diff:
        """Return what differs from the last commit, new files included."""
        options = ["diff-index", "-M", "--raw", "-z", "--no-abbrev"]
        changes = self._changes(self._run(options, [self._head()]))
        options = ["ls-files", "--others", "--exclude-standard", "-z"]
        names = self._run(options).decode(errors="surrogateescape").split("\0")
        for name in filter(None, names[:MOST_FILES]):
            data = None
            if len(changes) < MOST_PARSED:
                data = self._present(name)
            changes.append(_change(_Entry(name, name, "", ""), None, data))
        return Diff(changes)

    def named(self, files: Sequence[str]) -> Diff:
        """Return these files as if all of them changed."""
        changes = []
        for name in files:
            relative = name
            if Path(name).is_absolute():
                if not Path(name).is_relative_to(self._root):
                    raise ValidationError(
                        f"{name[:80]!r} is outside the project", "Name files such as src/auth.py"
                    )
                relative = Path(name).relative_to(self._root).as_posix()
            clean = relative.replace("\\", "/").removeprefix("./")
            changes.append(FileChange(path=clean, before=clean))
        return Diff(changes)

    def _head(self) -> str:
        options = ["rev-parse", "--verify", "--quiet", "HEAD"]
        return self._run(options, codes=(0, 1)).decode().strip() or _EMPTY_TREE

    def _commit(self, revision: str) -> str:
        """Return the commit that a revision names; it is never taken for an option or a path."""
        if not revision or revision.startswith("-"):
            raise ValidationError(f"{revision[:80]!r} is not a revision", _HINT)
        try:
            output = self._run(["rev-parse", "--verify", "--quiet"], [f"{revision}^{{commit}}"])
        except UnavailableError as error:
            if git.find(self._root) is None:
                raise
            raise ValidationError(
                f"there is no commit {revision[:80]!r} in this repository",
                f"{_HINT}; a clone in CI may need its whole history (fetch-depth: 0)",
            ) from error
        # git may repeat the mark before the operands.
        return output.decode().split()[-1]

    def _run(
        self,
        options: Sequence[str],
        operands: Sequence[str] = (),
        codes: tuple[int, ...] = (0,),
        index: str = "",
    ) -> bytes:
        if git.top(self._root) is None:
            raise UnavailableError(
                f"{self._root} is not in a git repository", "Name the files that changed instead"
            )
        terms = replace(_TERMS, codes=codes, index=index)
        return git.run(self._root, options, operands, terms=terms)

    def _changes(self, raw: bytes) -> list[FileChange]:
        changes = []
        entries = []
        for entry in self._entries(raw.decode(errors="surrogateescape")):
            if entry.is_submodule:
                changes += self._in_submodule(entry)
            else:
                entries.append(entry)
        looked = entries[:MOST_PARSED]
        names = []
        for entry in looked:
            names += [entry.old, entry.new]
        blobs = self._past.blobs(names)
        for position, entry in enumerate(looked):
            old = blobs[2 * position]
            new = blobs[2 * position + 1]
            if not entry.new and not entry.is_gone:
                # Changed in the working tree only.
                new = self._present(entry.path)
            if not _is_same(entry, old, new):
                changes.append(_change(entry, old, new))
        for entry in entries[MOST_PARSED:MOST_FILES]:
            changes.append(FileChange(path=entry.path, before=entry.before))
        return changes

    def _present(self, path: str) -> bytes | None:
        """Return a file of the working tree; what cannot be read counts as a whole."""
        try:
            return self._targets.read(path)
        except RagdocsError:
            return None

    def _in_submodule(self, entry: _Entry) -> list[FileChange]:
        """Return a submodule with another commit as a change, and the files that it changes."""
        changes = [FileChange(path=entry.path, before=entry.before)]
        root = self._root / entry.path
        if not entry.old or git.top(root) != root:
            return changes
        diffs = Diffs(root, Past(root, Refs(root)), self._targets)
        try:
            inner = diffs.between(f"{entry.old}..{entry.new}")
        except RagdocsError:
            # Commits that were not fetched.
            return changes
        for change in inner.files:
            path = f"{entry.path}/{change.path}"
            before = f"{entry.path}/{change.before}"
            changes.append(replace(change, path=path, before=before))
        return changes

    def _entries(self, raw: str) -> list[_Entry]:
        fields = iter(raw.split("\0"))
        entries = []
        for header in fields:
            if not header.startswith(":"):
                continue
            _, mode, old, new, status = header.split(" ")
            before = path = next(fields)
            if status[0] in "RC":
                path = next(fields)
            if status[0] == "C":
                before = path
            if path.startswith(self._prefix) or before.startswith(self._prefix):
                before = before.removeprefix(self._prefix)
                path = path.removeprefix(self._prefix)
                is_submodule = mode == _SUBMODULE
                entry = _Entry(before, path, _blob(old), _blob(new), status == "D", is_submodule)
                entries.append(entry)
        return entries


def _blob(name: str) -> str:
    return "" if _NO_BLOB.fullmatch(name) else name


def _is_same(entry: _Entry, old: bytes | None, new: bytes | None) -> bool:
    """Tell whether a file has its name and text still; line ends do not count."""
    if entry.before != entry.path:
        return False
    if entry.old == entry.new:
        # Another mode.
        return bool(entry.old)
    if old is None or new is None or entry.is_gone:
        return False
    if entry.new and old == new:
        # Large files are told apart by their size alone.
        return False
    return old.replace(b"\r\n", b"\n") == new.replace(b"\r\n", b"\n")


def _change(entry: _Entry, old: bytes | None, new: bytes | None) -> FileChange:
    """Compare the sections or definitions of a file before and after."""
    before = _parts(entry.before, old)
    after = _parts(entry.path, new)
    changed: set[str] = set()
    gone = set()
    renamed = []
    fresh = [part for name, part in after.items() if name not in before]
    for name, part in before.items():
        same = after.get(name)
        if same is None:
            gone.add(name)
            now = parts.alike(part.signature, fresh)
            if now is not None:
                renamed.append((name, now.name))
        elif same.digest != part.digest:
            changed.add(name)
    names = frozenset(after.keys() - before.keys())
    words, share = _changed_words(old or b"", new or b"")
    return FileChange(
        path=entry.path,
        before=entry.before,
        changed=frozenset(changed) | names,
        gone=frozenset(gone),
        fresh=names,
        kept=frozenset(before) - changed - gone,
        renamed=tuple(renamed),
        is_whole=not before and not after,
        is_code=suffix_of(entry.path) in outline.GRAMMARS,
        words=words,
        share=share,
    )


def _changed_words(old: bytes, new: bytes) -> tuple[frozenset[str], float]:
    """Return the words on lines that came or went, and the share of these lines."""
    before = Counter(old.splitlines())
    after = Counter(new.splitlines())
    changed = (before - after) + (after - before)
    words: set[bytes] = set()
    for line in changed:
        words.update(_WORD.findall(line))
    share = changed.total() / max(1, before.total() + after.total())
    return frozenset(word.decode() for word in words), share


def _parts(path: str, data: bytes | None) -> dict[str, Part]:
    if data is None:
        return {}
    by_name = {part.name: part for part in parts.all_parts(path, data)}
    # The first of several sections has a number as long as there are others.
    named = {}
    for name, part in by_name.items():
        plain = name.removesuffix(_FIRST)
        if plain in by_name:
            plain = name
        named[plain] = part
    return named
