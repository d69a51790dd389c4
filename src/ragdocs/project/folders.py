"""Where a project begins, and where its memories, its caches and the user's own files live."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.system import private, user_folders

Environ = Mapping[str, str]

MEMORIES = ".memories"
# The presence of either marks the top of a project that has no config.toml.
MARKERS = (".git", MEMORIES)
NO_ROOT_HINT = (
    "Run it in the project's folder, or name that folder with --project; in the settings of an "
    "MCP client, name it by its absolute path or set cwd"
)


def data_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what the user would miss."""
    return _directory(environ, user_folders.DATA)


def cache_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what can be computed again."""
    return _directory(environ, user_folders.CACHE)


def state_dir(environ: Environ | None = None) -> Path:
    """Return the directory for what belongs to this machine."""
    return _directory(environ, user_folders.STATE)


def config_dir(environ: Environ | None = None) -> Path:
    """Return the directory of the user's own configuration."""
    return _directory(environ, user_folders.CONFIG)


def home(environ: Environ | None = None) -> Path | None:
    """Return the user's home, or nothing where the system knows none."""
    folder = user_folders.home(_variables(environ))
    if not folder:
        return None
    return Path(folder)


def user_name() -> str:
    """Return the name of the user who runs this process, or nothing where it has none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def _directory(environ: Environ | None, kind: user_folders.Kind) -> Path:
    folder = user_folders.find(kind, _variables(environ))
    if not folder:
        raise ConfigError(
            "the user's home directory is not known",
            f"Set HOME or {kind.variable} to an absolute path",
        )
    return Path(folder)


def _variables(environ: Environ | None) -> Environ:
    if environ is None:
        return os.environ
    return environ


def settled(directory: Path) -> Path:
    """Return an existing directory as an absolute path without links."""
    try:
        path = directory.resolve(strict=True)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no folder {str(directory)!r}", NO_ROOT_HINT) from error
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
    """Yield the directories, from `start` upward, whose files may configure a project."""
    for directory in (start, *start.parents):
        if directory == directory.parent or _is_home(directory, environ):
            return
        if directory != start and private.is_shared(str(directory)):
            return
        yield directory


def nearest_marked(start: Path, environ: Environ | None = None) -> Path:
    """Return the nearest directory upward that holds a marker of a project, else `start`."""
    for directory in ancestors(start, environ):
        for marker in MARKERS:
            if os.path.lexists(directory / marker):
                return directory
    return start


def _is_home(directory: Path, environ: Environ | None) -> bool:
    user = home(environ)
    return user is not None and directory in {user, Path(os.path.realpath(user))}


def resolved(path: Path) -> Path:
    """Follow the links in one of the user's own paths, because no write follows a link later."""
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
    path = os.path.realpath(root)
    digest = hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()
    name = Path(path).name.casefold()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:40]
    if slug:
        return f"{slug}-{digest}"
    return digest
