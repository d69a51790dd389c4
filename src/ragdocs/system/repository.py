"""Which git repository a folder belongs to.

Settled by reading a few small files and never by git's own search.

A folder from a stranger may hold a `.git` that leads into another project of this user. So a
repository is believed only if it lies in the folder itself, or if it names the folder back.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.system import files as fsio

_POINTER_BYTES = 4_096
_CONFIG_BYTES = 1_000_000
_ROOT_USER = 0
# Folders and files of a repository that no command of ours reads, and that people do link
# elsewhere.
_NEVER_READ = frozenset(
    {"annex", "description", "hooks", "lfs", "logs", "modules", "rr-cache", "worktrees"}
)
# Folders whose whole content git reads.
_READ_DEEPLY = frozenset({"info", "objects", "refs", "reftable"})
# Files by which git reads the objects of another repository.
_ALTERNATES = ("objects/info/alternates", "objects/info/http-alternates")
# Folders of an old layout: a file in them gives a remote another address.
_OLD_REMOTES = ("branches", "remotes")
_WORK_TREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_REF_STORAGE = re.compile(r"refstorage[^\n]*", re.IGNORECASE)
_PLAIN_REF_STORAGE = re.compile(r'refstorage\s*=\s*"?(?:files|reftable)"?\s*', re.IGNORECASE)

# Of folders without links: which folder it was, when its entries last changed, and the folders in
# it.
_Stamp = tuple[int, int, int]
_WITHOUT_LINKS: dict[tuple[str, frozenset[str]], tuple[_Stamp, tuple[str, ...]]] = {}
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: the top of its working tree, the folder of this worktree.

    And the one that all worktrees share.
    """

    top: Path
    own: Path
    shared: Path

    @property
    def is_linked(self) -> bool:
        """Whether the working tree is one that `git worktree add` made."""
        return self.own != self.shared


def find(root: Path) -> Repository | None:
    """Return the repository of the nearest folder upward that has one.

    Raise if that one cannot be believed.
    """
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return _settled(folder)
    return None


def own_folder(root: Path) -> Repository:
    """Return the repository in this very folder.

    Which must have all its files in `.git` and nothing linked.
    """
    folder = root / ".git"
    try:
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
    except OSError as error:
        raise UnavailableError(f"there is no repository in {root} ({error.strerror})") from error
    if not is_folder:
        hint = "Give the journal a folder of its own: set journal.path to an empty or new folder"
        raise UnavailableError(
            f"{folder} is not a folder, and may lead to another project's repository", hint
        )
    _refuse_commondir(folder)
    _refuse_links(folder, ignored=_NOTHING, deep=None)
    refuse_alternates(folder)
    for name in _OLD_REMOTES:
        _refuse_filled(folder / name)
    return Repository(root, folder, folder)


def check_contents(repository: Repository) -> None:
    """Raise if files of a repository that git reads lie in another one."""
    for folder in {repository.own, repository.shared}:
        _refuse_links(folder, ignored=_NEVER_READ, deep=_READ_DEEPLY)
    _refuse_ref_storage(repository.shared / "config")


def refuse_alternates(folder: Path) -> None:
    """Raise if a repository reads the objects of another one."""
    for name in _ALTERNATES:
        if os.path.lexists(folder / name):
            hint = f"Run `git repack -a -d` there, then delete {folder / name}"
            raise UnavailableError(
                f"{folder / name} makes git read the objects of another repository", hint
            )


def check_bare(folder: Path) -> None:
    """Raise unless a folder is a bare repository that lies there as a whole.

    As the remote of a journal is to.
    """
    hint = "Make one with `git init --bare FOLDER` and use its address"
    has_parts = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    if folder.name == ".git" or os.path.lexists(folder / ".git") or not has_parts:
        raise UnavailableError(
            f"{folder} is not a bare repository, so it is no remote for a journal", hint
        )
    _refuse_commondir(folder)
    _refuse_links(folder, ignored=_NEVER_READ, deep=_READ_DEEPLY)
    refuse_alternates(folder)


def _settled(top: Path) -> Repository:
    """Return the repository that the `.git` of a folder is or names."""
    pointer = top / ".git"
    real = Path(os.path.realpath(top))
    try:
        mode = pointer.lstat().st_mode
    except OSError as error:
        raise UnavailableError(f"{pointer} cannot be read: {error.strerror}") from error
    if stat.S_ISLNK(mode):
        hint = "Replace it by the folder itself, or make a worktree with `git worktree add`"
        raise UnavailableError(
            f"{pointer} is a symbolic link, and may lead to another project's repository", hint
        )
    if stat.S_ISDIR(mode):
        own = shared = real / ".git"
        _refuse_commondir(own)
    else:
        own = _named_by(pointer)
        shared = _shared_folder(own, real)
    for place in (pointer, top, own):
        _refuse_other_owner(place)
    return Repository(top, own, shared)


def _named_by(pointer: Path) -> Path:
    """Return the folder that a `.git` file names."""
    with suppress(RagdocsError, ValueError):
        text = _line(pointer)
        own = Path(os.path.realpath(pointer.parent / text.removeprefix("gitdir:").strip()))
        if text.startswith("gitdir:") and own.is_dir():
            return own
    raise UnavailableError(
        f"{pointer} names no repository", "Run `git worktree repair` in the main worktree"
    )


def _shared_folder(own: Path, top: Path) -> Path:
    """Return the folder that all worktrees share.

    If the repository knows `top` as a working tree of its own.
    """
    with suppress(RagdocsError, ValueError):
        if not os.path.lexists(own / "commondir"):
            if top in _work_trees(own):
                return own
        else:
            shared = Path(os.path.realpath(own / _line(own / "commondir")))
            returned = os.path.realpath(own / _line(own / "gitdir"))
            if own.parent == shared / "worktrees" and returned == str(top / ".git"):
                _refuse_commondir(shared)
                return shared
    hint = (
        "If you have moved a worktree, run `git worktree repair` in the main one; "
        "a git folder that you keep apart must name this folder in its core.worktree"
    )
    raise UnavailableError(f"{top / '.git'} names a repository that does not name it back", hint)


def _work_trees(own: Path) -> Iterator[Path]:
    """Yield the working trees that the configuration of a repository names.

    As that of a submodule does.
    """
    for name in ("config", "config.worktree"):
        with suppress(NotFoundError):
            text = fsio.read_bytes(own / name, _CONFIG_BYTES).decode(errors="surrogateescape")
            for match in _WORK_TREE.finditer(text):
                value = re.sub(r"\\(.)", r"\1", match[1].strip('"'))
                yield Path(os.path.realpath(own / value))


def _refuse_commondir(folder: Path) -> None:
    if os.path.lexists(folder / "commondir"):
        hint = (
            f"Delete {folder / 'commondir'}: only worktrees have one, and they have no .git folder"
        )
        raise UnavailableError(f"{folder} says that it is part of another repository", hint)


def _refuse_filled(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()):
        hint = "Move the addresses into the configuration with `git remote add`, then delete it"
        raise UnavailableError(f"{folder} may give a remote another address", hint)


def _refuse_other_owner(path: Path) -> None:
    """Raise if a path belongs to another user.

    As git itself does when it searches for a repository.
    """
    if sys.platform == "win32":
        return
    users = {os.geteuid()}
    if users == {_ROOT_USER} and os.environ.get("SUDO_UID", "").isdigit():
        users.add(int(os.environ["SUDO_UID"]))
    try:
        owner = path.lstat().st_uid
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
    if owner not in users:
        hint = "Work on a copy of your own, or change the owner of the folder"
        raise UnavailableError(
            f"{path} belongs to another user, who could set traps in the repository", hint
        )


def _refuse_ref_storage(config: Path) -> None:
    """Raise if the configuration names another folder for refs.

    Which newer versions of git allow.
    """
    with suppress(NotFoundError):
        text = fsio.read_bytes(config, _CONFIG_BYTES).decode(errors="replace")
        for match in _REF_STORAGE.finditer(text):
            if not _PLAIN_REF_STORAGE.fullmatch(match[0]):
                hint = "Set extensions.refStorage to files or reftable"
                raise UnavailableError(f"{config} keeps refs in a place of its own", hint)


def _refuse_links(folder: Path, *, ignored: frozenset[str], deep: frozenset[str] | None) -> None:
    """Raise if a file in a folder, or below those of its folders that are named.

    Is a link that leads out of it.
    """
    waiting = [
        folder / name
        for name in _folders_in(folder, folder, ignored)
        if deep is None or name in deep
    ]
    while waiting:
        place = waiting.pop()
        waiting += [place / name for name in _folders_in(folder, place, _NOTHING)]


def _folders_in(repository: Path, folder: Path, ignored: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the folders in a folder.

    What is known of an unchanged folder is not read again.
    """
    key = (str(folder), ignored)
    try:
        status = folder.stat()
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        known = _WITHOUT_LINKS.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        with os.scandir(folder) as entries:
            present = list(entries)
    except FileNotFoundError:
        # Packing removes folders of objects at any time.
        return ()
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
    for entry in present:
        if entry.is_symlink() and entry.name not in ignored:
            _refuse_leading_out(repository, Path(entry.path))
    names = tuple(entry.name for entry in present if entry.is_dir(follow_symlinks=False))
    _WITHOUT_LINKS[key] = (stamp, names)
    return names


def _refuse_leading_out(repository: Path, link: Path) -> None:
    target = Path(os.path.realpath(link))
    if not target.is_relative_to(os.path.realpath(repository)):
        hint = "Replace the link by what it leads to"
        raise UnavailableError(
            f"{link} is a symbolic link, and may lead to another project's repository", hint
        )


def _line(path: Path) -> str:
    return fsio.read_bytes(path, _POINTER_BYTES).decode().strip()
