"""Which git repository a folder belongs to, read from a few small files without running git.

A folder from a stranger may hold a `.git` that leads into another project of this user. So a
repository is believed only if it lies in the folder itself, or if it names the folder back.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.system import files, platform
from ragdocs.system.patterns import later

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
_WORK_TREE = later(r"^[ \t]*worktree[ \t]*=[ \t]*(.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_REF_STORAGE = later(r"refstorage[^\n]*", re.IGNORECASE)
_PLAIN_REF_STORAGE = later(r'refstorage\s*=\s*"?(?:files|reftable)"?\s*', re.IGNORECASE)

# Folders without links: the state of each when it was read, and the folders in it.
_Stamp = tuple[int, int, int]
_WITHOUT_LINKS: dict[tuple[str, frozenset[str]], tuple[_Stamp, tuple[str, ...]]] = {}
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: its working tree, its own git folder, and the one all worktrees share."""

    top: Path
    own: Path
    shared: Path

    @property
    def is_linked(self) -> bool:
        """Whether the working tree is one that `git worktree add` made."""
        return self.own != self.shared


def find(root: Path) -> Repository | None:
    """Return the repository of the nearest folder upward, or raise if it cannot be believed."""
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return _repository_at(folder)
    return None


def own_folder(root: Path) -> Repository:
    """Return the repository in this very folder, which must be whole and without links."""
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
    """Raise unless a folder is a whole bare repository, as the remote of a journal must be."""
    hint = "Make one with `git init --bare FOLDER` and use its address"
    if not is_bare(folder):
        raise UnavailableError(
            f"{folder} is not a bare repository, so it is no remote for a journal", hint
        )
    _refuse_commondir(folder)
    _refuse_links(folder, ignored=_NEVER_READ, deep=_READ_DEEPLY)
    refuse_alternates(folder)


def is_bare(folder: Path) -> bool:
    """Tell whether a folder looks like a bare repository."""
    has_parts = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return has_parts and folder.name != ".git" and not os.path.lexists(folder / ".git")


def bare_folder(folder: Path) -> Repository:
    """Return a bare repository that is read, which must be whole and the user's own."""
    if not is_bare(folder):
        raise UnavailableError(f"{folder} is not a bare repository")
    _refuse_other_owner(folder)
    _refuse_commondir(folder)
    repository = Repository(folder, folder, folder)
    check_contents(repository)
    refuse_alternates(folder)
    return repository


def _repository_at(top: Path) -> Repository:
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
    for path in (pointer, top, own):
        _refuse_other_owner(path)
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
    """Return the folder that all worktrees share, if the repository names `top` as one of them."""
    with suppress(RagdocsError, ValueError):
        if os.path.lexists(own / "commondir"):
            shared = Path(os.path.realpath(own / _line(own / "commondir")))
            pointer = os.path.realpath(own / _line(own / "gitdir"))
            if own.parent == shared / "worktrees" and pointer == str(top / ".git"):
                _refuse_commondir(shared)
                return shared
        elif top in _work_trees(own):
            return own
    hint = (
        "If you have moved a worktree, run `git worktree repair` in the main one; "
        "a git folder that you keep apart must name this folder in its core.worktree"
    )
    raise UnavailableError(f"{top / '.git'} names a repository that does not name it back", hint)


def _work_trees(own: Path) -> Iterator[Path]:
    """Yield the working trees that a configuration names, as that of a submodule does."""
    for name in ("config", "config.worktree"):
        with suppress(NotFoundError):
            text = files.read_bytes(own / name, _CONFIG_BYTES).decode(errors="surrogateescape")
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
    """Raise if a path belongs to another user, as git itself does."""
    user = platform.user_id()
    if user is None:
        return
    users = {user}
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
    """Raise if the configuration names another folder for refs, as newer versions of git allow."""
    with suppress(NotFoundError):
        text = files.read_bytes(config, _CONFIG_BYTES).decode(errors="replace")
        for match in _REF_STORAGE.finditer(text):
            if not _PLAIN_REF_STORAGE.fullmatch(match[0]):
                hint = "Set extensions.refStorage to files or reftable"
                raise UnavailableError(f"{config} keeps refs in a place of its own", hint)


def _refuse_links(folder: Path, *, ignored: frozenset[str], deep: frozenset[str] | None) -> None:
    """Raise if a file in a folder, or below its folders named in `deep`, is a link out of it.

    Without `deep`, all its folders are searched.
    """
    pending = []
    for name in _folders_in(folder, folder, ignored):
        if deep is None or name in deep:
            pending.append(folder / name)
    while pending:
        parent = pending.pop()
        for name in _folders_in(folder, parent, _NOTHING):
            pending.append(parent / name)


def _folders_in(repository: Path, folder: Path, ignored: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the folders in a folder; an unchanged folder is not read again."""
    key = (str(folder), ignored)
    try:
        status = folder.stat()
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        cached_stamp, cached_names = _WITHOUT_LINKS.get(key, (None, ()))
        if cached_stamp == stamp:
            return cached_names
        with os.scandir(folder) as listing:
            entries = list(listing)
    except FileNotFoundError:
        # Packing removes folders of objects at any time.
        return ()
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.is_symlink() and entry.name not in ignored:
            _refuse_leading_out(repository, Path(entry.path))
    names = tuple(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
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
    return files.read_bytes(path, _POINTER_BYTES).decode().strip()
