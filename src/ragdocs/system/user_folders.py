"""The folders of a user: those of the XDG specification, or of the profile on Windows.

`ragdocs mcp` uses this before it is connected, so little is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ragdocs.system import platform


class Kind:
    """A folder: the variable that names it, where it is below the home, and on Windows."""

    def __init__(self, variable: str, below_home: str, windows: str, below: str) -> None:
        self.variable = variable
        self.below_home = below_home
        self.windows_variable = windows
        self.below = below


CONFIG = Kind("XDG_CONFIG_HOME", ".config", "APPDATA", "")
CACHE = Kind("XDG_CACHE_HOME", ".cache", "LOCALAPPDATA", "cache")
STATE = Kind("XDG_STATE_HOME", ".local/state", "LOCALAPPDATA", "state")
DATA = Kind("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA", "data")
KINDS = (CONFIG, CACHE, STATE, DATA)


def home(environ: Mapping[str, str]) -> str:
    """Return the user's home, or nothing where the system knows none."""
    variable = "HOME"
    if platform.is_windows():
        variable = "USERPROFILE"
    folder = environ.get(variable, "")
    if os.path.isabs(folder):
        return folder
    # Clients may start us without HOME.
    folder = os.path.expanduser("~")
    if os.path.isabs(folder):
        return folder
    return ""


def find(kind: Kind, environ: Mapping[str, str]) -> str:
    """Return the folder of ragdocs of a kind, or nothing where the home is not known.

    The XDG specification has a relative path ignored.
    """
    named = environ.get(kind.variable, "")
    if os.path.isabs(named):
        return os.path.join(named, "ragdocs")
    if platform.is_windows():
        profile = environ.get(kind.windows_variable, "")
        if profile:
            return os.path.normpath(os.path.join(profile, "ragdocs", kind.below))
    user = home(environ)
    if not user:
        return ""
    return os.path.join(user, kind.below_home, "ragdocs")
