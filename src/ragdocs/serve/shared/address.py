"""Which server a window belongs to: that of its project, for this user, version and settings.

For `ragdocs mcp` before it is connected, so little is imported even of the standard library.
"""

from __future__ import annotations

import json
import os
import sys

try:
    # By way of hashlib, OpenSSL would be loaded for one small hash: a quarter of a window's memory.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from ragdocs import __version__
from ragdocs.system import local_socket, platform, private, user_folders

CONFIG_FILE = "config.toml"
# As in ragdocs.project.folders, which imports more.
MARKERS = (".git", ".memories")


class Start:
    """The folder that a project is looked for in, and whether it is that folder for certain."""

    def __init__(self, folder: str, *, exact: bool) -> None:
        self.folder = folder
        # Otherwise a config.toml further up may count, so the project is found by the server.
        self.exact = exact

    def states(self) -> list[list[object]]:
        """List what a change of the configuration changes: the files that may count."""
        folders = [self.folder]
        if not self.exact:
            folders = _ancestors(self.folder)
        files = [os.path.join(folder, CONFIG_FILE) for folder in folders]
        files.append(os.path.join(directory(user_folders.CONFIG), CONFIG_FILE))
        states: list[list[object]] = [[self.folder, os.path.isdir(self.folder)]]
        for file in files:
            try:
                status = os.stat(file)
            except OSError:
                continue
            states.append([file, status.st_mtime_ns, status.st_size, status.st_ino])
        return states

    def config_files(self) -> list[str]:
        """List the configuration files that are there."""
        return [str(state[0]) for state in self.states()[1:]]

    def may_be_project(self) -> bool:
        """Tell whether the folder can be one; a home directory or a missing folder cannot."""
        is_top = self.folder == os.path.dirname(self.folder)
        return not is_top and not _is_home(self.folder) and os.path.isdir(self.folder)


def find_start(arguments: list[str]) -> Start:
    """Return where the project of a window begins; subfolders of a project share its server."""
    named = _option_project(arguments)
    if named:
        return Start(os.path.realpath(named), exact=True)
    try:
        folder = os.getcwd()
    except OSError:
        return Start("", exact=True)
    ancestors = _ancestors(folder)
    configured = _with_any(ancestors, (CONFIG_FILE,))
    marked = _with_any(ancestors, MARKERS)[:1]
    # The deepest folder that has anything to say: below it, all folders mean the same project.
    start = max([*configured, *marked], key=len, default=folder)
    # A config.toml may be that of another program; then a folder further up is the project.
    return Start(start, exact=not {*configured, *marked} - {start})


def server_arguments(start: Start, arguments: list[str]) -> list[str]:
    """Return the arguments with which the server of a window is started in its folder."""
    settings = []
    skipped = False
    for argument in arguments:
        if skipped:
            skipped = False
        elif argument == "--project":
            skipped = True
        elif argument != "--json" and not argument.startswith("--project="):
            settings.append(argument)
    if start.exact:
        return ["--project", start.folder, *settings]
    return settings


def address(arguments: list[str]) -> str | None:
    """Return the path of the server for these arguments, or nothing without a private folder."""
    start = find_start(arguments)
    settings = []
    for name, value in sorted(os.environ.items()):
        if name.startswith("RAGDOCS_"):
            settings.append((name, value))
    directories = [directory(kind) for kind in user_folders.KINDS]
    # Windows share a server only if all of this is the same; what else differs between windows
    # comes with each of them when it connects.
    identity = json.dumps(
        [
            __version__,
            sys.executable,
            start.folder,
            server_arguments(start, arguments),
            settings,
            _home(),
            directories,
        ]
    )
    digest = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    user = platform.user_id()
    for parent in private.runtime_parents():
        folder = os.path.join(parent, "run" if user is None else f"ragdocs-{user}")
        path = os.path.join(folder, digest)
        is_short = local_socket.is_short_enough(f"{path}{local_socket.ending()}")
        if is_short and private.make_folder(folder):
            return path
    return None


def directory(kind: user_folders.Kind) -> str:
    """Return a folder of this user, which nobody has who has no home."""
    return user_folders.find(kind, os.environ)


def _home() -> str:
    return user_folders.home(os.environ)


def _option_project(arguments: list[str]) -> str:
    """Return the folder of the option --project; the last one counts."""
    folder = ""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--project" and equals:
            folder = value
        elif name == "--project":
            folder = "".join(arguments[position + 1 : position + 2])
    return folder


def _ancestors(folder: str) -> list[str]:
    """List the folders, from this one upward, whose files may configure a project."""
    folders: list[str] = []
    while folder != os.path.dirname(folder) and not _is_home(folder):
        if folders and private.is_shared(folder):
            break
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _with_any(folders: list[str], names: tuple[str, ...]) -> list[str]:
    """List the folders that hold a file of one of the names."""
    matches = []
    for folder in folders:
        for name in names:
            if os.path.lexists(os.path.join(folder, name)):
                matches.append(folder)
                break
    return matches


def _is_home(folder: str) -> bool:
    home = _home()
    return bool(home) and folder in (home, os.path.realpath(home))
