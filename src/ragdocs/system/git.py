"""git by subprocess, hardened.

Nothing in a repository, its configuration or its names can make it run a program.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile
from typing import IO

from ragdocs.errors import TooSlowError, UnavailableError, ValidationError
from ragdocs.system import git_settings as journal_settings
from ragdocs.system import repository
from ragdocs.system.repository import Repository
from ragdocs.types import GitContext

# A context is worth a moment, never a wait: first for all of it, then for the name of the branch
# alone.
CONTEXT_SECONDS = 0.7
HEAD_SECONDS = 0.2
# Of what decides where something is kept: half an answer would be another place.
PATIENCE_SECONDS = 10.0
# A change of more files is a checkout or a build, and says nothing about what somebody worked on.
MOST_FILES = 100
SHORT_HASH = 10
_HASH = re.compile(r"[0-9a-f]{4,64}")
_REMOTES = r"^remote\..*\.url$"
_CREDENTIALS = re.compile(r"://[^/\s]*@")


def _pairs(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


# An alias cannot take the name of a command that git has itself, and these start no program once
# all below is set.
_COMMANDS = _pairs("""
    cat-file commit-tree config diff-tree fast-import fetch for-each-ref gc hash-object init log ls-files ls-tree
    merge-base mktree push rev-list rev-parse show status symbolic-ref update-index update-ref
""")
_DIFFS = ("--no-ext-diff", "--no-textconv")
_SAFER = {
    "diff-tree": _DIFFS,
    "fetch": ("--no-recurse-submodules", "--upload-pack=git-upload-pack"),
    "hash-object": ("--no-filters",),
    "log": _DIFFS,
    "push": ("--no-verify", "--recurse-submodules=no", "--receive-pack=git-receive-pack"),
    "show": _DIFFS,
    "status": ("--ignore-submodules=all",),
}
# They read files through filters.
_LOOKING = frozenset({"ls-files", "status"})
# What these say does not depend on any object, as long as they are asked about HEAD alone.
_WITHOUT_OBJECTS = frozenset({"config", "rev-parse", "symbolic-ref"})
# The last word on every setting that names a program; a repository's own file, and what it
# includes, comes before.
_SETTINGS = _pairs("""
    commit.gpgSign=false core.alternateRefsCommand=: core.askPass= core.attributesFile=/dev/null core.editor=:
    core.fsmonitor=false core.gitProxy= core.hooksPath=/dev/null core.pager=cat core.sshCommand=ssh
    core.untrackedCache=false credential.helper= diff.external= gc.auto=0 gc.autoDetach=false
    gpg.openpgp.program=/dev/null gpg.program=/dev/null gpg.ssh.defaultKeyCommand= gpg.ssh.program=/dev/null
    gpg.x509.program=/dev/null init.templateDir= log.showSignature=false maintenance.auto=false push.gpgSign=false
    safe.bareRepository=explicit submodule.recurse=false tag.gpgSign=false
""")
# Of several proxies for git:// the first one counts, so only the environment has the last word on
# it.
_ENVIRONMENT = _pairs("""
    GIT_ASKPASS= GIT_ATTR_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_EDITOR=:
    GIT_LITERAL_PATHSPECS=1 GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat GIT_SEQUENCE_EDITOR=:
    GIT_PROXY_COMMAND= GIT_TERMINAL_PROMPT=0 GIT_TRACE2=0 GIT_TRACE2_EVENT=0 GIT_TRACE2_PERF=0 LC_ALL=C
""")
# The parts of a driver that are commands. Drivers have names of their own, so they are looked up
# and emptied.
_DRIVERS = {
    "filter": ("clean", "smudge", "process"),
    "diff": ("command", "textconv"),
    "merge": ("driver",),
}
_MOST_DRIVERS = 100
# How many fields stand before the path, by the kind of entry.
_PATH_FIELD = {"1": 7, "2": 8, "u": 9, "?": 0}
# Configurations of journals that were found harmless, and which state of the file that was.
_HARMLESS: dict[Path, tuple[int, int, int, int]] = {}

logger = logging.getLogger("ragdocs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long a call may take, how much it may say.

    Which exit codes are answers, and what it may touch.
    """

    seconds: float = 1.0
    most: int = 4_000_000
    codes: tuple[int, ...] = (0,)
    # As in GIT_ALLOW_PROTOCOL, such as "https:ssh".
    protocols: str = "none"
    settings: Mapping[str, str] = field(default_factory=dict)
    # Whether the repository must lie in this very folder as a whole, with nothing in its
    # configuration but settings that are known to be harmless: the journal's own, which is written
    # to.
    here: bool = False


def run(
    root: Path,
    options: Sequence[str],
    operands: Sequence[str] = (),
    *,
    paths: Sequence[str] = (),
    stdin: bytes = b"",
    terms: Terms | None = None,
) -> bytes:
    """Return what git prints; `options`, the command first, are our own words.

    Operands and paths may be anyone's.
    """
    terms = terms or Terms()
    command, *rest = options
    if command not in _COMMANDS:
        raise ValueError(command)
    for operand in operands:
        if (
            operand.startswith("-")
            or not operand
            or any(ord(character) < ord(" ") for character in operand)
        ):
            raise ValidationError(f"{operand[:80]!r} is not a name that git can be given")
    words = [program(), "--no-pager", "-C", str(root), *_named_repository(root, command, terms)]
    settings = {**terms.settings, **_SETTINGS}
    if command in _LOOKING:
        started = time.monotonic()
        settings |= _emptied_drivers(root, terms)
        terms = replace(terms, seconds=terms.seconds - (time.monotonic() - started))
    words += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    words += [
        command,
        *_SAFER.get(command, ()),
        *rest,
        *(["--end-of-options", *operands] if operands else []),
    ]
    words += ["--", *paths] if paths else []
    return _finished(words, stdin, terms)


def is_hash(text: str) -> bool:
    """Tell whether a text may be (the beginning of) the name of an object, and nothing else."""
    return bool(_HASH.fullmatch(text))


@cache
def warn(message: str) -> None:
    """Say once in the log why a repository is not used: all else works without."""
    logger.warning("git is not used here: %s", message)


def find(root: Path) -> Repository | None:
    """Return the repository of a folder.

    Or nothing outside of one or where it cannot be believed.
    """
    try:
        return repository.find(root)
    except UnavailableError as error:
        warn(str(error))
        return None


def top(root: Path) -> Path | None:
    """Return the folder of the working tree that this folder belongs to, without asking git."""
    place = find(root)
    return place.top if place else None


def context(root: Path) -> GitContext | None:
    """Return branch, commit and changed files of the project.

    Or nothing outside a repository or without git.
    """
    place = top(root)
    if place is None:
        return None
    inside = root.relative_to(place).as_posix()
    options = [
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=all",
        "--no-renames",
        "-z",
    ]
    try:
        out = run(place, options, paths=[inside], terms=Terms(seconds=CONTEXT_SECONDS))
    except UnavailableError:
        return head(place)
    return _read_status(out.decode(errors="replace"), inside)


def head(root: Path) -> GitContext | None:
    """Return branch and commit alone.

    For where the files do not matter or take too long to look at.
    """
    with contextlib.suppress(UnavailableError):
        out = run(
            root, ["rev-parse", "HEAD", "--abbrev-ref", "HEAD"], terms=Terms(seconds=HEAD_SECONDS)
        )
        commit, branch = out.decode(errors="replace").split("\n")[:2]
        return GitContext("" if branch == "HEAD" else branch, commit[:SHORT_HASH], dirty=False)
    return None


def branch(root: Path) -> str:
    """Return the branch, also one without commits, or else the commit.

    Nothing outside a repository or without git.
    """
    name = _told(root, ["symbolic-ref", "--quiet", "--short", "HEAD"], codes=(0, 1))
    return (name or _told(root, ["rev-parse", "HEAD"])).rstrip("\n")


def common_dir(root: Path) -> Path | None:
    """Return the folder that all worktrees of a repository share, or nothing outside of one.

    Without asking git.
    """
    place = find(root)
    if place is None:
        return None
    try:
        repository.check_contents(place)
    except UnavailableError as error:
        warn(str(error))
        return None
    return place.shared if place.shared.is_dir() else None


def remote(root: Path) -> str:
    """Return the address of origin, else of the first remote, as it is written.

    It may hold a password.
    """
    told = _told(
        root,
        ["config", "--local", "--no-includes", "--null", "--get-regexp", _REMOTES],
        codes=(0, 1),
    )
    pairs = [item.partition("\n") for item in told.split("\0") if item]
    return next(
        (url for name, _, url in pairs if name == "remote.origin.url"), pairs[0][2] if pairs else ""
    )


def _told(root: Path, options: Sequence[str], codes: tuple[int, ...] = (0,)) -> str:
    """Return what git says of a repository, or nothing where there is none.

    That it took too long is an error.
    """
    try:
        terms = Terms(seconds=PATIENCE_SECONDS, codes=codes)
        return os.fsdecode(run(root, options, terms=terms)) if top(root) else ""
    except TooSlowError:
        raise
    except UnavailableError:
        return ""


def _named_repository(root: Path, command: str, terms: Terms) -> list[str]:
    """Return the options that name the repository, so that git never searches for one."""
    if command == "init":
        return [f"--git-dir={root / '.git'}"]
    if terms.here:
        place = repository.own_folder(root)
        _refuse_settings(place.own / "config", terms)
    else:
        found = repository.find(root)
        if found is None:
            raise UnavailableError(f"{root} is in no git repository")
        place = found
        repository.check_contents(place)
        if command not in _WITHOUT_OBJECTS:
            repository.refuse_alternates(place.shared)
    return [f"--git-dir={place.own}", f"--work-tree={place.top}"]


def _refuse_settings(config: Path, terms: Terms) -> None:
    """Raise if the configuration of a journal holds more than settings that are known as harmless."""
    try:
        status = config.stat()
    except FileNotFoundError:
        return
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size)
    if _HARMLESS.get(config) == stamp:
        return
    # Read as a plain file, away from every repository: nothing in it is applied or included.
    words = [program(), "--no-pager", "-C", config.anchor, f"--git-dir={os.devnull}", "config"]
    words += [f"--file={config}", "--no-includes", "--null", "--list"]
    listing = _finished(words, b"", Terms(seconds=terms.seconds)).decode(errors="surrogateescape")
    journal_settings.refuse_unknown(config, listing)
    _HARMLESS[config] = stamp


def _emptied_drivers(root: Path, terms: Terms) -> dict[str, str]:
    """Return settings that take the commands out of all filters and drivers that the configuration names."""
    out = run(
        root, ["config", "--null", "--name-only", "--list"], terms=Terms(seconds=terms.seconds)
    )
    drivers = set()
    for name in out.decode(errors="surrogateescape").split("\0"):
        section, _, rest = name.partition(".")
        driver, _, _ = rest.rpartition(".")
        if section.lower() in _DRIVERS and driver:
            drivers.add((section.lower(), driver))
    # An equals sign would end the name of a setting on the command line, and the driver would keep
    # its command.
    if len(drivers) > _MOST_DRIVERS or any(
        "=" in driver or "\n" in driver for _, driver in drivers
    ):
        raise UnavailableError(
            "the configuration of this repository is not one that git can be run with safely"
        )
    emptied = {
        f"{section}.{driver}.{part}": ""
        for section, driver in drivers
        for part in _DRIVERS[section]
    }
    return emptied | {
        f"filter.{driver}.required": "false" for section, driver in drivers if section == "filter"
    }


def _read_status(out: str, inside: str) -> GitContext:
    """Read the second format of `git status`: headers, then one entry for each changed path."""
    fields = {"branch.oid": "", "branch.head": ""}
    prefix = "" if inside == "." else f"{inside}/"
    changed: list[str] = []
    for entry in out.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            fields[name] = value
        elif kind in _PATH_FIELD:
            path = rest.split(" ", _PATH_FIELD[kind])[-1].removeprefix(prefix)
            # What is written down is no part of what was being worked on.
            if not path.startswith(".memories/"):
                changed.append(path)
    commit, branch = (
        "" if value.startswith("(") else value
        for value in (fields["branch.oid"], fields["branch.head"])
    )
    return GitContext(
        branch, commit[:SHORT_HASH], bool(changed), tuple(changed[:MOST_FILES]), len(changed)
    )


def _search_path() -> str:
    """Return PATH without the entries that are not absolute.

    They would find programs in the repository itself.
    """
    return os.pathsep.join(part for part in os.get_exec_path() if Path(part).is_absolute())


def program() -> str:
    """Return the path of git, or raise that there is none."""
    found = shutil.which("git", path=_search_path())
    if found is None or not Path(found).is_absolute():
        raise UnavailableError(
            "git is not installed", "Install git to use what depends on it; the rest works without"
        )
    return found


def _finished(words: Sequence[str], stdin: bytes, terms: Terms) -> bytes:
    """Run to the end, or kill the whole group of processes when it takes too long or says too much."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "SSH_ASKPASS"))
    }
    environ |= _ENVIRONMENT | {"GIT_ALLOW_PROTOCOL": terms.protocols, "PATH": _search_path()}
    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - what others said stands behind a check and a mark
                words, stdin=PIPE, stdout=PIPE, stderr=errors, env=environ, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise UnavailableError(f"git could not be started: {error}") from error
        out, code = _heard(process, stdin, terms)
        errors.seek(0)
        said = errors.read(10_000).decode(errors="replace").strip().splitlines()
    if code not in terms.codes:
        raise UnavailableError(
            f"git failed: {_CREDENTIALS.sub('://', said[-1])[:300] if said else code}"
        )
    return out


def _heard(process: subprocess.Popen[bytes], stdin: bytes, terms: Terms) -> tuple[bytes, int]:
    """Return what a process said and its exit code; in any case it is over afterwards."""
    deadline = time.monotonic() + terms.seconds
    heard: list[bytes] = []
    assert process.stdin
    assert process.stdout
    feeding = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
    reading = threading.Thread(
        target=_listen, args=(process.stdout, terms.most + 1, heard), daemon=True
    )
    feeding.start()
    reading.start()
    try:
        reading.join(max(0.0, deadline - time.monotonic()))
        if not heard or len(heard[0]) > terms.most:
            raise TooSlowError(
                "git took too long or said too much", "Is the repository very large?"
            )
        return heard[0], process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TooSlowError("git took too long") from None
    finally:
        # While its end was not asked for, its number cannot belong to anybody else.
        if process.returncode is None:
            with contextlib.suppress(OSError):
                process.kill() if sys.platform == "win32" else os.killpg(
                    process.pid, signal.SIGKILL
                )
            process.wait()
        feeding.join(1.0)
        reading.join(1.0)


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError), stream:
        stream.write(data)


def _listen(stream: IO[bytes], most: int, heard: list[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError), stream:
        heard.append(stream.read(most))
