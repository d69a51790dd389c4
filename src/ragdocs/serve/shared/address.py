"""Which server a window belongs to: that of its project, for this user, version and settings.

For `ragdocs mcp` before it is connected, so little is imported even of the standard library.
"""

from __future__ import annotations

import json
import os
import stat
import sys

try:
    # By way of hashlib, OpenSSL would be loaded for one small hash: a quarter of a window's memory.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from ragdocs import __version__

CONFIG_FILE = "config.toml"
# As in ragdocs.project.folders, which imports more.
MARKERS = (".git", ".memories")
DIRECTORIES = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
    "XDG_DATA_HOME": ".local/share",
}
# The longest path that a Unix socket can have on every system.
LONGEST_ADDRESS = 100
# As in /.sock or /.lock.
LONGEST_ENDING = 6


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
        files.append(os.path.join(directory("XDG_CONFIG_HOME"), "ragdocs", CONFIG_FILE))
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
    directories = [directory(name) for name in DIRECTORIES]
    # Windows share a server only if all of this is the same; what else differs between windows
    # comes with each of them when it connects.
    identity = json.dumps(
        [
            __version__,
            sys.executable,
            start.folder,
            server_arguments(start, arguments),
            settings,
            os.path.expanduser("~"),
            directories,
        ]
    )
    digest = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    for parent in _parents():
        folder = os.path.join(parent, f"ragdocs-{os.getuid()}")
        is_short = len(folder) + len(digest) + LONGEST_ENDING < LONGEST_ADDRESS
        if is_short and _make_private(folder):
            return os.path.join(folder, digest)
    return None


def directory(variable: str) -> str:
    """Return a directory of the XDG specification, which has a relative path ignored."""
    path = os.environ.get(variable, "")
    if os.path.isabs(path):
        return path
    return os.path.join(os.path.expanduser("~"), DIRECTORIES[variable])


def _parents() -> list[str]:
    """List where the folder of the sockets may lie, the best first.

    Some clients pass no variables on, and their windows must come to the same folder.
    """
    parents = [os.environ.get("XDG_RUNTIME_DIR", "")]
    if not parents[0]:
        runtime = f"/run/user/{os.getuid()}"
        if os.path.isdir(runtime):
            parents.append(runtime)
    parents.append(os.environ.get("TMPDIR", ""))
    parents.append("/tmp")  # noqa: S108 - a folder in it is made private
    return list(filter(None, parents))


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
        if folders and _is_shared(folder):
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
    home = os.path.expanduser("~")
    return folder in (home, os.path.realpath(home))


def _is_shared(folder: str) -> bool:
    """Tell whether strangers may put files here, as in /tmp: the sticky bit says so."""
    try:
        return bool(os.stat(folder).st_mode & stat.S_ISVTX)
    except OSError:
        return False


def _make_private(folder: str) -> bool:
    """Make a folder for this user alone; tell whether it is one."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError:
        return False
    is_own_folder = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return is_own_folder and not status.st_mode & 0o077
