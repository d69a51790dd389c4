"""git as a subprocess, hardened.

Nothing in a repository, its configuration or its names can make git run a program.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ragdocs.errors import RagdocsError, TooSlowError, UnavailableError, ValidationError
from ragdocs.system import files, git_settings, processes, repository
from ragdocs.system.patterns import later
from ragdocs.system.repository import Repository
from ragdocs.types import GitContext

if TYPE_CHECKING:
    import subprocess

# How long to wait for the state of the working tree, and then for the name of the branch alone.
CONTEXT_SECONDS = 0.7
HEAD_SECONDS = 0.2
# How long to wait for an answer that decides where something is kept: without it, the folder would
# be another one.
PATIENCE_SECONDS = 10.0
# A change of more files is a checkout or a build, and says nothing about what somebody worked on.
MOST_FILES = 100
SHORT_HASH = 10
_HASH = later(r"[0-9a-f]{4,64}")
_REMOTES = r"^remote\..*\.url$"
_CREDENTIALS = later(r"://[^/\s]*@")


def _pairs(text: str) -> dict[str, str]:
    """Read words of the form name=value."""
    pairs = {}
    for word in text.split():
        name, _, value = word.partition("=")
        pairs[name] = value
    return pairs


# An alias cannot take the name of a command that git has itself, and these start no program once
# all below is set.
_COMMANDS = frozenset(
    [
        "cat-file",
        "commit-tree",
        "config",
        "diff-index",
        "diff-tree",
        "fast-import",
        "fetch",
        "for-each-ref",
        "gc",
        "hash-object",
        "init",
        "log",
        "ls-files",
        "ls-tree",
        "merge-base",
        "mktree",
        "push",
        "rev-list",
        "rev-parse",
        "show",
        "status",
        "symbolic-ref",
        "update-index",
        "update-ref",
    ]
)
_DIFFS = ("--no-ext-diff", "--no-textconv")
_SAFER = {
    "diff-index": (*_DIFFS, "--ignore-submodules=all"),
    "diff-tree": _DIFFS,
    "fetch": ("--no-recurse-submodules", "--upload-pack=git-upload-pack"),
    "hash-object": ("--no-filters",),
    "log": _DIFFS,
    "push": ("--no-verify", "--recurse-submodules=no", "--receive-pack=git-receive-pack"),
    "show": _DIFFS,
    "status": ("--ignore-submodules=all",),
}
# Commands that read files through filters.
_FILTERING = frozenset({"diff-index", "ls-files", "status"})
# Commands that read no object, as long as they are asked about HEAD alone.
_WITHOUT_OBJECTS = frozenset({"config", "rev-parse", "symbolic-ref"})
# The last word on every setting that names a program; a repository's own file, and what it
# includes, comes before.
_SETTINGS = _pairs("""
    commit.gpgSign=false core.alternateRefsCommand=: core.askPass= core.attributesFile=/dev/null
    core.editor=: core.fsmonitor=false core.gitProxy= core.hooksPath=/dev/null core.pager=cat
    core.sshCommand=ssh core.untrackedCache=false credential.helper= diff.external= gc.auto=0
    gc.autoDetach=false gpg.openpgp.program=/dev/null gpg.program=/dev/null
    gpg.ssh.defaultKeyCommand= gpg.ssh.program=/dev/null gpg.x509.program=/dev/null
    init.templateDir= log.showSignature=false maintenance.auto=false push.gpgSign=false
    safe.bareRepository=explicit submodule.recurse=false tag.gpgSign=false
""")
# Of several proxies for git:// the first one counts, so only the environment has the last word on
# it.
_ENVIRONMENT = _pairs("""
    GIT_ASKPASS= GIT_ATTR_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    GIT_EDITOR=: GIT_LITERAL_PATHSPECS=1 GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat
    GIT_SEQUENCE_EDITOR=: GIT_PROXY_COMMAND= GIT_TERMINAL_PROMPT=0 GIT_TRACE2=0 GIT_TRACE2_EVENT=0
    GIT_TRACE2_PERF=0 LC_ALL=C
""")
# The parts of a driver that are commands. Drivers have names of their own, so they are looked up
# and emptied.
_DRIVERS = {
    "filter": ("clean", "smudge", "process"),
    "diff": ("command", "textconv"),
    "merge": ("driver",),
}
_MOST_DRIVERS = 100
# How many fields come before the path in the output of `git status`, by the kind of entry.
_PATH_FIELD = {"1": 7, "2": 8, "u": 9, "?": 0}
# The configurations of journals that are harmless, by path, with the state of the file then.
_HARMLESS: dict[Path, tuple[int, int, int, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The limits of a call: time, size of the output, exit codes, protocols and settings."""

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
    # Whether the folder is a bare repository itself.
    bare: bool = False
    # The file of another index than that of the repository.
    index: str = ""


def run(
    root: Path,
    options: Sequence[str],
    operands: Sequence[str] = (),
    *,
    paths: Sequence[str] = (),
    stdin: bytes = b"",
    terms: Terms | None = None,
) -> bytes:
    """Return what git prints.

    The options, the command first, are our own words; operands and paths may be anyone's.
    """
    terms = terms or Terms()
    command, *rest = options
    if command not in _COMMANDS:
        raise ValueError(command)
    for operand in operands:
        _check_operand(operand)
    words = [program(), "--no-pager", "-C", str(root), *_named_repository(root, command, terms)]
    settings = {**terms.settings, **_SETTINGS}
    if command in _FILTERING:
        started = time.monotonic()
        settings |= _emptied_drivers(root, terms)
        terms = replace(terms, seconds=terms.seconds - (time.monotonic() - started))
    for name, value in settings.items():
        words += ["-c", f"{name}={value}"]
    words += [command, *_SAFER.get(command, ()), *rest]
    if operands:
        words += ["--end-of-options", *operands]
    if paths:
        words += ["--", *paths]
    return _output(words, stdin, terms)


def _check_operand(operand: str) -> None:
    has_controls = min(operand, default="") < " "
    if has_controls or operand.startswith("-"):
        raise ValidationError(f"{operand[:80]!r} is not a name that git can be given")


def is_hash(text: str) -> bool:
    """Tell whether a text may be (the beginning of) the name of an object, and nothing else."""
    return bool(_HASH.fullmatch(text))


@cache
def warn(message: str) -> None:
    """Log once why a repository is not used; everything else works without it."""
    import logging

    logging.getLogger("ragdocs").warning("git is not used here: %s", message)


def find(root: Path) -> Repository | None:
    """Return the repository of a folder, or nothing if there is none that can be believed."""
    try:
        return repository.find(root)
    except UnavailableError as error:
        warn(str(error))
        return None


def top(root: Path) -> Path | None:
    """Return the folder of the working tree that this folder belongs to, without asking git."""
    repository = find(root)
    if repository is None:
        return None
    return repository.top


def prefix(root: Path) -> str:
    """Return where a folder is in its repository, with a slash; "" at the top or without one."""
    tree = top(root)
    if tree is None or tree == root:
        return ""
    return f"{root.relative_to(tree).as_posix()}/"


def index_of_hook(root: Path, name: str) -> str:
    """Return the file of an index that git made for a hook, or "" if it is none of its files."""
    repository = find(root)
    if not name or repository is None:
        return ""
    path = Path(os.path.normpath(repository.top / name))
    if path.parent != repository.own or not path.is_file():
        return ""
    return str(path)


def context(root: Path) -> GitContext | None:
    """Return branch, commit and changed files of a project, or nothing without a repository."""
    tree = top(root)
    if tree is None:
        return None
    inside = root.relative_to(tree).as_posix()
    options = [
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=all",
        "--no-renames",
        "-z",
    ]
    try:
        output = run(tree, options, paths=[inside], terms=Terms(seconds=CONTEXT_SECONDS))
    except UnavailableError:
        return head(tree)
    return _read_status(output.decode(errors="replace"), inside)


def head(root: Path) -> GitContext | None:
    """Return branch and commit alone, where the files do not matter or take too long."""
    options = ["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]
    try:
        output = run(root, options, terms=Terms(seconds=HEAD_SECONDS))
    except UnavailableError:
        return None
    commit, name = output.decode(errors="replace").split("\n")[:2]
    if name == "HEAD":
        # No branch is checked out.
        name = ""
    return GitContext(name, commit[:SHORT_HASH], dirty=False)


def branch(root: Path) -> str:
    """Return the branch, also one without commits, or else the commit, or nothing without git."""
    name = _answer(root, ["symbolic-ref", "--quiet", "--short", "HEAD"], codes=(0, 1))
    if not name:
        name = _answer(root, ["rev-parse", "HEAD"])
    return name.rstrip("\n")


def common_dir(root: Path) -> Path | None:
    """Return the folder that all worktrees of a repository share, without asking git."""
    found = find(root)
    if found is None or not found.shared.is_dir():
        return None
    try:
        repository.check_contents(found)
    except UnavailableError as error:
        warn(str(error))
        return None
    return found.shared


def exclude_file(root: Path) -> Path | None:
    """Return where a repository has ignore patterns of its own, which all worktrees share.

    Only the way to this file is looked at: a search for links in the whole repository would cost
    more than the read of the document that it is for.
    """
    repository = find(root)
    if repository is None:
        return None
    try:
        return files.contained(Path(os.path.realpath(repository.shared)), "info/exclude")
    except RagdocsError as error:
        warn(str(error))
        return None


def remote(root: Path) -> str:
    """Return the address of origin, else of the first remote, which may hold a password."""
    options = ["config", "--local", "--no-includes", "--null", "--get-regexp", _REMOTES]
    urls = []
    for item in _answer(root, options, codes=(0, 1)).split("\0"):
        name, _, url = item.partition("\n")
        if name == "remote.origin.url":
            return url
        urls.append(url)
    return urls[0]


def default_branch(root: Path) -> str:
    """Return the branch that a clone of origin checks out, or nothing if that is not known."""
    options = ["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]
    name = _answer(root, options, codes=(0, 1)).rstrip("\n")
    return name.removeprefix("origin/")


def _answer(root: Path, options: Sequence[str], codes: tuple[int, ...] = (0,)) -> str:
    """Return what git prints about a repository, or nothing where there is none.

    A timeout is an error, because an empty answer would be a wrong one.
    """
    if top(root) is None:
        return ""
    try:
        terms = Terms(seconds=PATIENCE_SECONDS, codes=codes)
        return os.fsdecode(run(root, options, terms=terms))
    except TooSlowError:
        raise
    except UnavailableError:
        return ""


def _named_repository(root: Path, command: str, terms: Terms) -> list[str]:
    """Return the options that name the repository, so that git never searches for one."""
    if command == "init":
        return [f"--git-dir={root / '.git'}"]
    if terms.here:
        found = repository.own_folder(root)
        _refuse_settings(found.own / "config", terms)
    elif terms.bare:
        found = repository.bare_folder(root)
    else:
        found = _checked_repository(root, command)
    return [f"--git-dir={found.own}", f"--work-tree={found.top}"]


def _checked_repository(root: Path, command: str) -> Repository:
    found = repository.find(root)
    if found is None:
        raise UnavailableError(f"{root} is not in a git repository")
    repository.check_contents(found)
    if command not in _WITHOUT_OBJECTS:
        repository.refuse_alternates(found.shared)
    return found


def _refuse_settings(config: Path, terms: Terms) -> None:
    """Raise if the configuration of a journal holds a setting that may do harm."""
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
    listing = _output(words, b"", Terms(seconds=terms.seconds)).decode(errors="surrogateescape")
    git_settings.refuse_unknown(config, listing)
    _HARMLESS[config] = stamp


def _emptied_drivers(root: Path, terms: Terms) -> dict[str, str]:
    """Return settings that empty the commands of all filters and drivers in the configuration."""
    options = ["config", "--null", "--name-only", "--list"]
    output = run(root, options, terms=Terms(seconds=terms.seconds))
    drivers = set()
    for name in output.decode(errors="surrogateescape").split("\0"):
        section, _, rest = name.partition(".")
        driver, _, _ = rest.rpartition(".")
        if section.lower() in _DRIVERS and driver:
            drivers.add((section.lower(), driver))
    names = "".join(driver for _, driver in drivers)
    # An equals sign would end the name of a setting on the command line, and the driver would keep
    # its command.
    if len(drivers) > _MOST_DRIVERS or "=" in names or "\n" in names:
        raise UnavailableError(
            "the configuration of this repository is not one that git can be run with safely"
        )
    settings = {}
    for section, driver in drivers:
        for part in _DRIVERS[section]:
            settings[f"{section}.{driver}.{part}"] = ""
        if section == "filter":
            settings[f"filter.{driver}.required"] = "false"
    return settings


def _read_status(output: str, inside: str) -> GitContext:
    """Read the second format of `git status`: headers, then one entry for each changed path."""
    fields = {"branch.oid": "", "branch.head": ""}
    prefix = f"{inside}/"
    if inside == ".":
        prefix = ""
    changed: list[str] = []
    for entry in output.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            fields[name] = value
        elif kind in _PATH_FIELD:
            path = rest.split(" ", _PATH_FIELD[kind])[-1].removeprefix(prefix)
            # Memories are no part of the work that they are about.
            if not path.startswith(".memories/"):
                changed.append(path)
    return GitContext(
        branch=_name_or_nothing(fields["branch.head"]),
        commit=_name_or_nothing(fields["branch.oid"])[:SHORT_HASH],
        dirty=bool(changed),
        files_changed=tuple(changed[:MOST_FILES]),
        files_total=len(changed),
    )


def _name_or_nothing(field: str) -> str:
    """Return a field of `git status`, which for a missing name is a word in brackets."""
    if field.startswith("("):
        return ""
    return field


def _search_path() -> str:
    """Return PATH without its relative entries, which would find programs in the repository."""
    return os.pathsep.join(part for part in os.get_exec_path() if Path(part).is_absolute())


def program() -> str:
    """Return the path of git, or raise that there is none."""
    import shutil

    path = shutil.which("git", path=_search_path())
    if path is None or not Path(path).is_absolute():
        raise UnavailableError(
            "git is not installed", "Install git to use what depends on it; the rest works without"
        )
    return path


def _output(words: Sequence[str], stdin: bytes, terms: Terms) -> bytes:
    """Run git to its end and return what it prints; kill it when it takes or prints too much."""
    import subprocess
    from tempfile import TemporaryFile

    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - words of others follow a check and a mark
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(terms),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UnavailableError(f"git could not be started: {error}") from error
        output, code = _communicate(process, stdin, terms)
        errors.seek(0)
        messages = errors.read(10_000).decode(errors="replace").strip().splitlines()
    if code not in terms.codes:
        reason = str(code)
        if messages:
            reason = _CREDENTIALS.sub("://", messages[-1])[:300]
        raise UnavailableError(f"git failed: {reason}")
    return output


def _environment(terms: Terms) -> dict[str, str]:
    """Return our environment without the variables that steer git, and with those that must be."""
    environ = {}
    for name, value in os.environ.items():
        if not name.startswith(("GIT_", "SSH_ASKPASS")):
            environ[name] = value
    environ |= _ENVIRONMENT
    environ["GIT_ALLOW_PROTOCOL"] = terms.protocols
    environ["PATH"] = _search_path()
    if terms.index:
        environ["GIT_INDEX_FILE"] = terms.index
    return environ


def _communicate(process: subprocess.Popen[bytes], stdin: bytes, terms: Terms) -> tuple[bytes, int]:
    """Return the output of a process and its exit code; in any case it has ended afterwards."""
    import subprocess

    deadline = time.monotonic() + terms.seconds
    output: list[bytes] = []
    assert process.stdin
    assert process.stdout
    writing = threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True)
    reading = threading.Thread(
        target=_read, args=(process.stdout, terms.most + 1, output), daemon=True
    )
    writing.start()
    reading.start()
    try:
        reading.join(max(0.0, deadline - time.monotonic()))
        if not output or len(output[0]) > terms.most:
            megabytes = f"{terms.most / 1_000_000:g} MB"
            raise TooSlowError(
                f"git timed out or printed more than {megabytes}", "Is the repository very large?"
            )
        return output[0], process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TooSlowError("git timed out") from None
    finally:
        # Until its exit code is read, its number cannot belong to another process.
        if process.returncode is None:
            processes.kill_group(process)
        writing.join(1.0)
        reading.join(1.0)


def _write(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError), stream:
        stream.write(data)


def _read(stream: IO[bytes], most: int, output: list[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError), stream:
        output.append(stream.read(most))
