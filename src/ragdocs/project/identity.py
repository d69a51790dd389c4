"""The identity of a repository, which its worktrees share."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.system import git
from ragdocs.system.patterns import later

# No remote has a longer address; cutting one could leave half a password.
LONGEST_ADDRESS = 2000
# Ports that may be left out, by scheme. The port of ssh is always left out, because the short form
# of an address cannot name one.
DEFAULT_PORTS = {"http": "80", "https": "443", "git": "9418"}

_HOST = r"\[[0-9a-fA-F:.]+\]"
_HOST_AND_PORT = later(rf"([\w.-]*|{_HOST})(?::(\d*))?")
_HOST_AND_PATH = later(rf"([\w.-]{{2,}}|{_HOST}):(.*)")
_SCHEME = later("[a-z][a-z0-9+.-]*")
# As in helper::address, where a program named git-remote-helper carries the data.
_REMOTE_HELPER = later(r"\A[\w-]+::")


def repository_id(root: Path, branch: str = "") -> str:
    """Return a name for a repository, made of its folder, its remote and, if given, a branch."""
    folder = os.path.realpath(root)
    repository = git.find(root)
    if repository:
        main = repository.shared
        if main.name == ".git":
            main = main.parent
        # Not resolved again: a link below the main worktree could lead to another project.
        folder = str(main / root.relative_to(repository.top))
    parts = json.dumps([folder, clean_address(git.remote(root)), branch])
    return hashlib.blake2b(parts.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def shared_name(root: Path, names: Sequence[str] = ()) -> str:
    """Return the name by which all clones of a repository know a project.

    It is the address of the remote without its scheme, because one person clones by ssh and
    another by https, or the name that the user gives to the folder.
    """
    for pair in names:
        folder, equals, name = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(
                f"team.projects holds {pair!r}", 'Write each as "/path/of/the/folder=NAME"'
            )
        configured = Path(folder.strip()).expanduser()
        if os.path.realpath(configured) == os.path.realpath(root):
            return name.strip()
    address = clean_address(git.remote(root))
    top = git.top(root)
    if not address or top is None:
        raise UnavailableError(
            f"{root} has no git remote by which a team could know it",
            f'Name it in your own configuration, under [team]: projects = ["{root}=NAME"]',
        )
    scheme, _, rest = address.partition("://")
    name = address if scheme == "file" else rest
    inside = root.relative_to(top).as_posix()
    if inside == ".":
        return name
    # Two projects may share a repository.
    return f"{name}#{inside}"


def clean_address(address: str) -> str:
    """Return the address of a remote in one spelling, without credentials, query and ending.

    An address that cannot be read becomes empty, because any part of it may be a password.
    """
    if len(address) > LONGEST_ADDRESS:
        return ""
    text = "".join(filter(str.isprintable, address)).replace("\\", "/").strip()
    without_helper = _REMOTE_HELPER.sub("", text)
    scheme, mark, rest = without_helper.partition("://")
    if mark:
        return _full_address(scheme.lower(), rest)
    if without_helper != text:
        # A program reads the rest, which may be anything.
        return ""
    return _short_address(text)


def _full_address(scheme: str, rest: str) -> str:
    """Return an address that has a scheme."""
    if "ssh" in scheme:
        scheme = "ssh"
    authority, _, path = _without_user(rest).partition("/")
    host_and_port, *query = re.split("[?#;]", authority, maxsplit=1)
    match = _HOST_AND_PORT.fullmatch(host_and_port)
    if match is None or not _SCHEME.fullmatch(scheme):
        return ""
    host = match[1].lower()
    port = match[2]
    if not host and scheme != "file":
        return ""
    if port and scheme != "ssh" and port != DEFAULT_PORTS.get(scheme):
        host = f"{host}:{port}"
    if query:
        # The address ended before any path.
        path = ""
    return f"{scheme}://{host}{_clean_path(path)}"


def _without_user(text: str) -> str:
    """Return what follows the user and the password.

    A password may hold any sign that it should not, so the last @ ends it, unless no password can
    stand before it.
    """
    before, _, after = text.rpartition("@")
    if ":" in before or "/" not in before:
        return after
    return text


def _short_address(text: str) -> str:
    """Return an address that has no scheme: host:path, or a folder."""
    # The last @ ends the user. A path with another @ is lost, which is better than a password.
    tail = text.rpartition("@")[2]
    match = _HOST_AND_PATH.fullmatch(tail)
    if match:
        return f"ssh://{match[1].lower()}{_clean_path(match[2])}"
    if text and tail == text:
        return f"file://{_clean_path(text)}"
    return ""


def _clean_path(text: str) -> str:
    """Return a path in one spelling: no query, no parameters, no empty steps, no ending."""
    without_query = re.split("[?#]", text)[0]
    steps = []
    for step in without_query.split("/"):
        name = step.partition(";")[0]
        if name:
            steps.append(name)
    path = "/".join(steps).removesuffix(".git").rstrip("/")
    if path:
        return f"/{path}"
    return ""
