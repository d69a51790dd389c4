"""git as a person runs it, away from the settings of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRON = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
SETTINGS = {
    "user.name": "Ada",
    "user.email": "ada@example.org",
    "init.defaultBranch": "main",
    "protocol.file.allow": "always",
}


def plain_git(root: Path, *words: str, check: bool = True, **environ: str) -> str:
    """Run plain git in a folder and return what it prints."""
    command = ["git", "-C", str(root)]
    for name, value in SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    own = {**ENVIRON, "HOME": str(root.parent), **environ}
    done = subprocess.run([*command, *words], env=own, check=check, capture_output=True, text=True)
    return done.stdout.strip()
