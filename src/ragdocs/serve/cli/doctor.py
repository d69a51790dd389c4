"""What `ragdocs doctor` looks at: the installation, the project, its index and its servers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragdocs import __version__
from ragdocs.errors import RagdocsError
from ragdocs.project import folders
from ragdocs.serve.cli import clients
from ragdocs.serve.start import load_config
from ragdocs.serve.surface.hints import addressed
from ragdocs.system import local_socket, platform, private

if TYPE_CHECKING:
    from ragdocs.config import Config
    from ragdocs.workspace import Workspace

State = Literal["ok", "warning", "broken"]
OK: State = "ok"
WARNING: State = "warning"
BROKEN: State = "broken"

OLDEST_PYTHON = (3, 11)
MEGABYTE = 1_000_000
# A write needs the new text beside the old one; a large index takes some hundred megabytes.
LEAST_FREE = 50 * MEGABYTE
LITTLE_FREE = 500 * MEGABYTE
# Each folder that is listened at takes one.
FEW_WATCHES = 8_192
CONNECT_SECONDS = 0.5
MAKE_ROOM = "Make room; indexes in the cache folder can be deleted, they are built anew"
INSTALL = "Install ragdocs again: pip install --force-reinstall ragdocs"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, in which state it is, and how to mend it."""

    name: str
    state: State
    message: str
    fix: str = ""


def examine(project: str | None, settings: Sequence[str]) -> list[Check]:
    """Look at everything that ragdocs needs, and change nothing."""
    checks = [*_installation(), *_python()]
    config = None
    try:
        config = load_config(project, settings)
    except RagdocsError as error:
        checks.append(_failed("project", error))
    if config is not None:
        checks += _of_project(config)
    for name, look in MACHINE.items():
        try:
            checks += look(config)
        except RagdocsError as error:
            checks.append(_failed(name, error))
    return checks


def text(answer: Mapping[str, Any]) -> str:
    """Write one check a line, with its fix below it."""
    lines = []
    for check in answer["checks"]:
        lines.append(f"{check['state']:<8} {check['name']}: {check['message']}")
        if check["fix"]:
            lines.append(f"         fix: {check['fix']}")
    warnings = sum(check["state"] == WARNING for check in answer["checks"])
    lines += ["", f"{answer['broken']} broken, {warnings} to look at"]
    return "\n".join(lines)


def _failed(name: str, error: RagdocsError) -> Check:
    return Check(name, BROKEN, error.message, addressed(error.hint, "command"))


# --- the installation ---


def _installation() -> Iterator[Check]:
    yield Check("ragdocs", OK, f"{__version__} in {Path(__file__).parents[2]}")
    missing = []
    for package in _required():
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        yield Check("packages", BROKEN, f"not installed: {', '.join(missing)}", INSTALL)
    else:
        yield Check("packages", OK, "all that ragdocs needs are installed")
    program = shutil.which("ragdocs")
    if program is None:
        yield Check(
            "command",
            WARNING,
            "`ragdocs` is not on your PATH",
            f"Add {Path(sys.executable).parent} to PATH, or install with pipx",
        )
    else:
        yield Check("command", OK, program)
    if shutil.which("git") is None:
        yield Check(
            "git",
            WARNING,
            "git is not on your PATH: commits and the journal need it",
            "Install git",
        )


def _required() -> list[str]:
    """Return the packages that ragdocs declares, without those of its extras."""
    names = []
    try:
        declared = metadata.requires("ragdocs") or []
    except metadata.PackageNotFoundError:
        # It runs from a folder of sources.
        return []
    for requirement in declared:
        words, _, marker = requirement.partition(";")
        if not marker.strip():
            names.append(_package(words))
    return names


def _package(requirement: str) -> str:
    name = requirement.strip()
    for mark in "[<>=!~ (":
        name = name.partition(mark)[0]
    return name


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Check("python", BROKEN, f"{version} is too old", "Use Python 3.11 or newer")
    else:
        yield Check("python", OK, f"{version} at {sys.executable}")


# --- the project ---


def _of_project(config: Config) -> Iterator[Check]:
    from ragdocs.workspace import Workspace

    yield Check("project", OK, str(config.root))
    for problem in config.problems:
        yield Check("configuration", WARNING, problem, "See `ragdocs check-config`")
    if not config.problems:
        yield Check("configuration", OK, "no problems; `ragdocs check-config` shows it")
    try:
        workspace = Workspace(config)
        workspace.load()
    except RagdocsError as error:
        yield _failed("index", error)
        return
    yield _model(workspace)
    for name, reason in workspace.closed.items():
        yield _failed(f"{name} lane", reason)
    for name in workspace.places:
        yield _lane(workspace, name)
    if not config.memory.enabled:
        yield Check(
            "memory lane",
            WARNING,
            "switched off",
            "Write enabled = true under [memory] in config.toml",
        )


def _model(workspace: Workspace) -> Check:
    model = workspace.config.embedding.model
    if model == "none":
        return Check("model", OK, "switched off; searches go by words")
    if workspace.encoder is None:
        return Check("model", BROKEN, workspace.embedding_unavailable, INSTALL)
    try:
        workspace.encoder.prepare()
    except RagdocsError as error:
        return _failed("model", error)
    return Check("model", OK, f"{model} is loaded")


def _lane(workspace: Workspace, name: str) -> Check:
    """Compare the index of a lane with its files."""
    from ragdocs.verbs.quality import health
    from ragdocs.verbs.quality.problems import reasons_by_path

    corpus = workspace.places[name].corpus
    label = f"{name} lane"
    try:
        paths = health.behind(corpus, health.MOST_READ)
    except RagdocsError as error:
        return _failed(label, error)
    info = corpus.info()
    counted = f"{info.documents:,} documents"
    if info.documents == 1:
        counted = "1 document"
    if paths.unreadable:
        path, reason = next(iter(paths.unreadable.items()))
        return Check(label, BROKEN, f"{path}: {reason}", "Mend the file, or exclude it")
    if paths.count:
        return Check(
            label, WARNING, f"{counted}; {paths.count} files are not indexed", "Run `ragdocs index`"
        )
    if info.vectors < info.passages and not corpus.embedding_unavailable:
        message = f"{counted}; {info.passages - info.vectors} passages have no vector yet"
        return Check(label, WARNING, message, "Run `ragdocs index`")
    problems = len(reasons_by_path(corpus))
    if problems:
        return Check(label, WARNING, f"{counted}; {problems} with problems", "See `ragdocs lint`")
    return Check(label, OK, f"{counted}, all indexed")


# --- the machine ---


def _folders(config: Config | None) -> Iterator[Check]:
    """Check that folders can be written to, and that secrets are read by their owner only."""
    wanted: dict[str, Callable[[], Path]] = {
        "cache": folders.cache_dir,
        "state": folders.state_dir,
        "data": folders.data_dir,
    }
    if config is not None and config.memory.enabled:
        from ragdocs.project.layout import memory_root

        wanted["memories"] = lambda: memory_root(config)
    for name, find in wanted.items():
        try:
            folder = find()
        except RagdocsError as error:
            yield _failed(f"{name} folder", error)
            continue
        existing = _existing(folder)
        if os.access(existing, os.W_OK | os.X_OK):
            yield Check(f"{name} folder", OK, str(folder))
        else:
            yield Check(
                f"{name} folder", BROKEN, f"{existing} is not writable", f"chmod u+rwx {existing}"
            )
    for name in ("index.key", "tokens.json"):
        yield from _secret(folders.state_dir() / name)


def _secret(file: Path) -> Iterator[Check]:
    if private.others_can_read(str(file)):
        yield Check("permissions", BROKEN, f"others can read {file}", f"chmod 600 {file}")


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _disk(config: Config | None) -> Iterator[Check]:
    wanted = [folders.cache_dir()]
    if config is not None:
        wanted.append(config.root)
    devices = set()
    for folder in map(_existing, wanted):
        device = folder.stat().st_dev
        if device in devices:
            continue
        devices.add(device)
        free = shutil.disk_usage(folder).free
        message = f"{free // MEGABYTE:,} MB free at {folder}"
        if free >= LITTLE_FREE:
            yield Check("disk", OK, message)
        elif free >= LEAST_FREE:
            yield Check("disk", WARNING, message, MAKE_ROOM)
        else:
            yield Check("disk", BROKEN, message, MAKE_ROOM)


def _watcher(config: Config | None) -> Iterator[Check]:
    if config is not None and not config.watch.enabled:
        yield Check(
            "watcher",
            WARNING,
            "switched off: servers see changes late",
            "Remove enabled = false under [watch]",
        )
        return
    limit = platform.watch_limit()
    if limit is None:
        return
    if limit < FEW_WATCHES:
        yield Check(
            "watcher",
            WARNING,
            f"this machine allows {limit:,} watched folders; beyond that files are polled",
            "sudo sysctl fs.inotify.max_user_watches=524288",
        )
    else:
        yield Check("watcher", OK, f"{limit:,} watched folders are allowed")


def _servers(_config: Config | None) -> Iterator[Check]:
    """Count the servers of this user that answer, and what killed ones left."""
    from ragdocs.serve.shared.address import address

    own = address([])
    if own is None:
        yield Check(
            "servers",
            WARNING,
            "there is no private folder for sockets, so each window has a server of its own",
            "Set XDG_RUNTIME_DIR to a folder that is yours alone",
        )
        return
    running = 0
    dead = []
    for path in sorted(Path(own).parent.glob(f"*{local_socket.ending()}")):
        if _answers(path):
            running += 1
        else:
            dead.append(path)
    yield Check("servers", OK, f"{running} running, with sockets in {Path(own).parent}")
    if dead:
        yield Check(
            "stale files",
            WARNING,
            f"{len(dead)} sockets of servers that were killed, such as {dead[0]}",
            "Nothing to do: the next server removes them after an hour",
        )


def _answers(path: Path) -> bool:
    try:
        local_socket.connect(str(path), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _clients(config: Config | None) -> Iterator[Check]:
    root = None
    if config is not None:
        root = config.root
    findings = clients.examine(root)
    for finding in findings:
        if finding.problem:
            yield Check("client", BROKEN, f"{finding.file}: {finding.problem}", finding.fix)
        else:
            yield Check("client", OK, finding.file)
    if not findings:
        yield Check(
            "client",
            WARNING,
            "no client is configured to start ragdocs",
            "`ragdocs install` writes ragdocs into the settings of your clients",
        )


MACHINE: dict[str, Callable[[Config | None], Iterator[Check]]] = {
    "folders": _folders,
    "disk": _disk,
    "watcher": _watcher,
    "servers": _servers,
    "clients": _clients,
}
