"""Does knowledge belong to a branch or to the whole repository? That decides its folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import ValidationError
from ragdocs.system import git
from ragdocs.system.patterns import later

PER_BRANCH, SHARED = POLICIES = ("perBranch", "sharedRepo")
FOLDER = "repo"
# The folder of what belongs to all branches; a branch of this name gets another one.
EVERYWHERE = "all-branches"
# Of a branch's name in the name of a folder, and of the digest that tells alike ones apart.
_LONGEST = 60
_DIGITS = 6
_PLAIN = later(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)\Z)[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Scope:
    """A repository's knowledge: its hash, its branch or commit, and its folder."""

    identity: str
    branch: str
    policy: str
    folder: str


def find_scope(
    root: Path,
    policy: str,
    identify: Callable[[str], str],
    *,
    own_bank: bool,
    branch: str | None = None,
) -> Scope:
    """Return the scope of the branch that is checked out, or of another one.

    `identify` names the repository with a branch.

    Memories that lie in the project are those of its repository already, so the branch alone names
    their folder, and clones of a teammate agree. A bank for many projects tells them apart by the
    hash.
    """
    if policy not in POLICIES:
        raise ValidationError(
            f"{policy[:40]!r} is not a branch scope", f"Use {' or '.join(POLICIES)}"
        )
    name = ""
    if policy == PER_BRANCH and branch is not None:
        name = branch
    elif policy == PER_BRANCH:
        name = git.branch(root)
    identity = identify(name)
    folder = label(name) if own_bank else identity
    return Scope(identity, name, policy, f"{FOLDER}/{folder}")


def label(branch: str) -> str:
    """Return the name of a branch's folder: readable, and never that of two branches."""
    if not branch:
        return EVERYWHERE
    plain = "-".join(re.findall("[a-z0-9]+", branch.casefold()))[:_LONGEST].rstrip("-")
    if branch == plain and branch != EVERYWHERE and _PLAIN.fullmatch(branch):
        return plain
    data = branch.encode(errors="surrogateescape")
    digest = hashlib.blake2b(data, digest_size=_DIGITS // 2).hexdigest()
    return f"{plain}-{digest}".lstrip("-")
