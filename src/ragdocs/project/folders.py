"""Where a project begins, and where its memories, its caches and the user's own files live."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.system import git

Environ = Mapping[str, str]

MEMORIES = ".memories"
# The presence of either marks the top of a project that has no config.toml.
MARKERS = (".git", MEMORIES)
KEY_BYTES = 32
# No remote has a longer address; cutting one could leave half a password.
LONGEST = 2000
# A port that says nothing, by scheme; that of ssh never does, because the short form of an address
# cannot name one.
DEFAULT_PORTS = {"http": "80", "https": "443", "git": "9418"}
NO_ROOT_HINT = (
    "Name the project in the client's configuration: add --project with its absolute path to the arguments, "
    "or set cwd there"
)

_log = logging.getLogger(__name__)


def data_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what the user would miss."""
    return _directory(environ, "XDG_DATA_HOME", ".local/share", "LOCALAPPDATA", "data")


def cache_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what can be computed again."""
    return _directory(environ, "XDG_CACHE_HOME", ".cache", "LOCALAPPDATA", "cache")


def state_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what belongs to this machine."""
    return _directory(environ, "XDG_STATE_HOME", ".local/state", "LOCALAPPDATA", "state")


def config_dir(environ: Environ | None = None) -> Path:
    """Return the directory of the user's own configuration."""
    return _directory(environ, "XDG_CONFIG_HOME", ".config", "APPDATA", "")


def home(environ: Environ | None = None) -> Path | None:
    """Return the user's home, or nothing where the system knows none.

    Clients may start us without HOME.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
    if named and Path(named).is_absolute():
        return Path(named)
    try:
        return Path.home()
    except RuntimeError:
        return None


def _directory(
    environ: Environ | None, variable: str, below_home: str, windows_variable: str, below: str
) -> Path:
    environ = os.environ if environ is None else environ
    named = environ.get(variable, "")
    # The XDG specification: a relative path is invalid and to be ignored.
    if named and Path(named).is_absolute():
        return Path(named) / "ragdocs"
    named = environ.get(windows_variable, "") if sys.platform == "win32" else ""
    if named:
        return Path(named) / "ragdocs" / below
    user = home(environ)
    if user is None:
        raise ConfigError(
            "the user's home directory is not known", f"Set HOME or {variable} to an absolute path"
        )
    return user / below_home / "ragdocs"


def settled(directory: Path) -> Path:
    """Return an existing directory as an absolute path without links."""
    try:
        path = directory.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"{str(directory)!r} cannot be used as a project: {error}", NO_ROOT_HINT
        ) from error
    if not path.is_dir():
        raise ConfigError(f"{str(directory)!r} is not a directory", NO_ROOT_HINT)
    return path


def checked_root(root: Path, environ: Environ | None = None) -> Path:
    """Return the root unless it is the home directory or the top of the file system."""
    if root == root.parent:
        raise ConfigError(f"{root} is the top of the file system, not a project", NO_ROOT_HINT)
    if _is_home(root, environ):
        raise ConfigError(f"{root} is your home directory, not a project", NO_ROOT_HINT)
    return root


def ancestors(start: Path, environ: Environ | None = None) -> Iterator[Path]:
    """Yield the directories, from `start` upward, whose files may speak for a project."""
    for directory in (start, *start.parents):
        if directory == directory.parent or _is_home(directory, environ):
            return
        if directory != start and _is_shared(directory):
            return
        yield directory


def nearest_marked(start: Path, environ: Environ | None = None) -> Path:
    """Return the nearest directory upward that holds a marker of a project, else `start`."""
    for directory in ancestors(start, environ):
        if any(os.path.lexists(directory / marker) for marker in MARKERS):
            return directory
    return start


def _is_home(directory: Path, environ: Environ | None) -> bool:
    user = home(environ)
    return user is not None and directory in {user, Path(os.path.realpath(user))}


def _is_shared(directory: Path) -> bool:
    """Tell whether strangers may put files here, as in /tmp: the sticky bit says so."""
    try:
        return bool(directory.stat().st_mode & stat.S_ISVTX)
    except OSError:
        return False


def resolved(path: Path) -> Path:
    """Follow the links in one of the user's own paths.

    Because nothing is written through a link later.
    """
    return Path(os.path.realpath(path))


def not_linked(path: Path) -> Path:
    """Return a path unless it is a link, which may have come with a clone and lead anywhere."""
    if path.is_symlink():
        raise UnavailableError(
            f"{path} is a symbolic link, and a cloned repository could point it anywhere",
            "Replace it by a directory, or set storage_strategy to user in your own configuration",
        )
    return path


def project_key(root: Path) -> str:
    """Return a name for a project that is readable and never shared by two paths."""
    resolved = os.path.realpath(root)
    slug = re.sub(r"[^a-z0-9]+", "-", Path(resolved).name.casefold()).strip("-")[:40]
    digest = hashlib.blake2b(os.fsencode(resolved), digest_size=6).hexdigest()
    return f"{slug}-{digest}" if slug else digest


def identity(root: Path, branch: str = "") -> str:
    """Return a name for a repository that its worktrees share.

    Of its place, its remote and, if given, a branch.
    """
    place, repository = os.path.realpath(root), git.find(root)
    if repository:
        shared = repository.shared
        main = shared.parent if shared.name == ".git" else shared
        # Not resolved again: a link below the main worktree could lead to another project.
        place = str(main / root.relative_to(repository.top))
    parts = json.dumps([place, sanitised(git.remote(root)), branch])
    return hashlib.blake2b(parts.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def sanitised(address: str) -> str:
    """Return the address of a remote without credentials, query and ending.

    What cannot be read becomes nothing.
    """
    text = (
        "".join(filter(str.isprintable, address)).replace("\\", "/").strip()
        if len(address) <= LONGEST
        else ""
    )
    address = re.sub(r"\A[\w-]+::", "", text)
    scheme, mark, rest = address.partition("://")
    if not mark:
        # What stands behind the name of a program that carries the text elsewhere may be anything.
        return _short(text) if address == text else ""
    scheme = "ssh" if "ssh" in scheme.lower() else scheme.lower()
    before, _, after = rest.rpartition("@")
    # A password may hold any sign that it should not, so the last @ ends it, unless no password can
    # stand before it.
    authority, _, path = (after if ":" in before or "/" not in before else rest).partition("/")
    found = re.fullmatch(
        r"([\w.-]*|\[[0-9a-fA-F:.]+\])(?::(\d*))?", re.split("[?#;]", authority)[0]
    )
    if (
        not found
        or not re.fullmatch("[a-z][a-z0-9+.-]*", scheme)
        or (not found[1] and scheme != "file")
    ):
        return ""
    port = (
        ""
        if scheme == "ssh" or found[2] in {None, "", DEFAULT_PORTS.get(scheme)}
        else f":{found[2]}"
    )
    path = "" if authority != re.split("[?#;]", authority)[0] else path
    return f"{scheme}://{found[1].lower()}{port}{_path(path)}"


def _short(text: str) -> str:
    """Return the address of a remote that has no scheme: host:path, or a folder."""
    # The last @ ends the user, and what looks like a user again in the path is not worth a
    # password.
    tail = text.rpartition("@")[2]
    found = re.fullmatch(r"([\w.-]{2,}|\[[0-9a-fA-F:.]+\]):(.*)", tail)
    if found:
        return f"ssh://{found[1].lower()}{_path(found[2])}"
    return f"file://{_path(text)}" if text and tail == text else ""


def _path(text: str) -> str:
    """Return a path in one spelling: no query, no parameters, no empty steps, no ending."""
    steps = (step.partition(";")[0] for step in re.split("[?#]", text)[0].split("/"))
    path = "/".join(filter(None, steps)).removesuffix(".git").rstrip("/")
    return f"/{path}" if path else ""


def signing_key(environ: Environ | None = None) -> bytes:
    """Return this user's secret for signing indexes, made on first use."""
    path = state_dir(environ) / "index.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _read_key(path) or _make_key(path)
    except OSError as error:
        # Without a lasting key nothing saved is trusted at the next start: slower, never wrong.
        _log.warning(
            "%s cannot be kept (%s): indexes will be built anew at every start", path, error
        )
        return secrets.token_bytes(KEY_BYTES)


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) == KEY_BYTES else None


def _make_key(path: Path) -> bytes:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    key = _read_key(path)
    if key is None:
        raise OSError(0, "the key vanished while it was made", str(path))
    return key


def _publish(draft: Path, path: Path) -> None:
    """Give a whole draft its final name; of two processes that do so at once the first one wins."""
    try:
        os.link(draft, path)
    except FileExistsError:
        if _read_key(path) is None:  # a damaged key stands in the way
            draft.replace(path)
    except OSError:  # a file system without hard links
        draft.replace(path)
