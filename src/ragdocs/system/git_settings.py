"""The settings of git that the repository of a journal may have.

They name no program, no file and no other address.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from ragdocs.errors import UnavailableError
from ragdocs.system.patterns import later

# Settings by section, in lower case as git lists them; a star stands for the name of a branch or a
# remote.
_HARMLESS = {
    "advice": "detachedhead",
    "branch.*": "description merge pushremote rebase remote vscode-merge-base",
    "color": "ui",
    "commit": "gpgsign",
    "core": (
        "abbrev autocrlf bare compression eol filemode ignorecase logallrefupdates longpaths "
        "loosecompression precomposeunicode protecthfs protectntfs quotepath "
        "repositoryformatversion safecrlf sharedrepository symlinks"
    ),
    "diff": "algorithm",
    "extensions": "compatobjectformat objectformat preciousobjects refstorage relativeworktrees",
    "gc": "auto autodetach autopacklimit",
    "init": "defaultbranch",
    "merge": "conflictstyle ff",
    "pull": "ff rebase",
    "push": "autosetupremote default",
    "rebase": "autostash",
    "remote.*": "fetch prune pushurl tagopt url",
    "tag": "gpgsign",
    "user": "email name signingkey useconfigonly",
}
# Newer versions of git take an address here, too, which may be a folder anywhere.
_REF_STORAGES = frozenset({"files", "reftable"})
# A remote named like an address would take the place of that address.
_REMOTE_NAME = later(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def refuse_unknown(config: Path, listing: str) -> None:
    """Raise if a configuration, listed by `git config --null`, has an unknown setting."""
    for item in listing.split("\0"):
        name, _, value = item.partition("\n")
        if name and not _is_harmless(name, value):
            words = shlex.join(["git", "config", "--file", str(config), "--unset-all", name])
            raise UnavailableError(
                f"{config} sets {name[:200]}, which a journal is not used with: it may make git "
                "run programs, read or write other files, or meet other addresses",
                f"Look at it, then remove it with `{words}`, and try again",
            )


def _is_harmless(name: str, value: str) -> bool:
    section, _, rest = name.partition(".")
    subsection, _, key = rest.rpartition(".")
    if name == "extensions.refstorage":
        return value in _REF_STORAGES
    if section == "remote" and not _REMOTE_NAME.fullmatch(subsection):
        return False
    if subsection:
        section = f"{section}.*"
    return key in _HARMLESS.get(section, "").split()
