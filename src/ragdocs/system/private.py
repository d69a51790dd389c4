"""Whose files and folders these are, and who else may write there.

`ragdocs mcp` uses this before it is connected, so little is imported.
"""

from __future__ import annotations

import os
import stat

from ragdocs.system import platform

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(folder: str) -> bool:
    """Make a folder for this user alone; tell whether it is one."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if platform.user_id() is None:
        # On Windows a folder inherits who may enter it; the caller names one in the user's profile.
        return True
    return status.st_uid == platform.user_id() and not status.st_mode & _OTHERS


def is_shared(folder: str) -> bool:
    """Tell whether strangers may put files here, as in /tmp: the sticky bit says so."""
    try:
        return bool(os.stat(folder).st_mode & stat.S_ISVTX)
    except OSError:
        return False


def others_can_read(path: str) -> bool:
    """Tell whether the permissions of a file let other users in."""
    if platform.user_id() is None:
        return False
    try:
        return bool(os.stat(path).st_mode & _OTHERS)
    except OSError:
        return False


def is_of_another_user(status: os.stat_result) -> bool:
    """Tell whether a file belongs to somebody else, which nothing does for the superuser."""
    user = platform.user_id()
    return user not in (None, 0, status.st_uid)


def is_read_only(path: str) -> bool:
    """Tell whether a file is marked as one that is not to be changed, whoever asks."""
    return not os.stat(path).st_mode & stat.S_IWUSR or not os.access(path, os.W_OK)


def runtime_parents() -> list[str]:
    """List where the folder of the servers may lie, the best first.

    Some clients pass no variables on, and their windows must come to the same folder.
    """
    if platform.is_windows():
        profile = os.environ.get("LOCALAPPDATA", "")
        return [os.path.join(profile, "ragdocs")] if os.path.isabs(profile) else []
    parents = [os.environ.get("XDG_RUNTIME_DIR", "")]
    if not parents[0]:
        runtime = f"/run/user/{platform.user_id()}"
        if os.path.isdir(runtime):
            parents.append(runtime)
    parents.append(os.environ.get("TMPDIR", ""))
    parents.append("/tmp")  # noqa: S108 - a folder in it is made private
    return list(filter(None, parents))
