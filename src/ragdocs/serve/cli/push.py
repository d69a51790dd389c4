"""Commands that bring texts into a team database, and out of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragdocs import caller
from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.source import load_config
from ragdocs.serve.surface.present import sizes

if TYPE_CHECKING:
    from ragdocs.open_lanes import OpenLane
    from ragdocs.stores.postgres.exchange import Transfer
    from ragdocs.stores.postgres.push import PushPlan
    from ragdocs.text.redaction.redact import Redactor
    from ragdocs.workspace import Workspace

PUSH_EXAMPLES = """\
examples:
  ragdocs push                              the documentation of the branch that is checked out
  ragdocs push --dry-run                    what would be pushed
  ragdocs push --branch "$CI_COMMIT_BRANCH" in a job, where no branch is checked out

Files that are as they were are not sent. A push that was interrupted goes on where it was.

exit codes: 0 done, 1 failed, 2 wrong usage
"""
EXCHANGE_EXAMPLES = """\
examples:
  ragdocs team import .memories     texts of a folder become memories of the team
  ragdocs team import notes --as-is also texts in which there seems to be a secret
  ragdocs team export backup        every memory becomes a file

Texts come in byte for byte, or not at all: one with a secret is skipped. Nothing that exists is
overwritten. If texts differ or have secrets, they are reported, and the exit code is 1.
"""
LISTED = 20


def _push(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    branch: str | None,
    dry_run: bool,
) -> int:
    from ragdocs.stores.files.store import FileStore
    from ragdocs.stores.postgres.push import Push
    from ragdocs.workspace import Workspace

    config = load_config(project, settings)
    workspace = Workspace(config, lanes=())
    name = branch or _checked_out(config.root)
    open_lane = workspace.pushed(name, is_trial=dry_run)
    lane = open_lane.corpus.lane
    store: Any = open_lane.store
    push = Push(FileStore(config.root, lane), store, lane.largest)
    with Progress(config) as progress:
        plan = push.compare(progress.of("docs"))
        if not dry_run:
            push.send(plan, progress.of("docs"))
            _index(open_lane, progress)
            _note_default(workspace, name)
    answer = {**_plan(plan), "project": workspace.team.identity, "branch": name, "pushed": True}
    if dry_run:
        answer["pushed"] = False
    else:
        answer |= open_lane.corpus.counts()
    print_answer(answer, _push_text, as_json=as_json)
    return 0


def _checked_out(root: Path) -> str:
    from ragdocs.system import git

    name = git.branch(root)
    if not name or git.is_hash(name):
        raise ValidationError("no branch is checked out", "Name one with --branch")
    return name


def _index(open_lane: OpenLane, progress: Progress) -> None:
    """Make what was pushed findable; whatever is left, servers do."""
    with caller.maintaining():
        open_lane.corpus.sync(progress=progress.of("docs"))
        open_lane.corpus.embed(progress.of("docs"))
        open_lane.index.save()


def _note_default(workspace: Workspace, branch: str) -> None:
    """Remember the default branch of the remote, or else the first that was pushed."""
    from ragdocs.system import git

    team = workspace.team
    default = git.default_branch(workspace.config.root)
    if not default and not team.project.default_branch:
        default = branch
    if default and default != team.project.default_branch:
        team.projects.set_default_branch(team.project.number, default)


def _plan(plan: PushPlan) -> dict[str, Any]:
    return {
        "changed": list(plan.changed),
        "removed": list(plan.removed),
        "unchanged": plan.unchanged,
        "skipped": dict(plan.skipped),
    }


def _push_text(answer: Mapping[str, Any]) -> str:
    verb = "would push"
    if answer["pushed"]:
        verb = "pushed"
    counts = f"{len(answer['changed'])} changed and {len(answer['removed'])} removed files"
    where = f"{answer['project']}, branch {answer['branch']}"
    lines = [f"{verb} {counts} of {where}; {answer['unchanged']} are as they were"]
    if answer["pushed"]:
        lines.append(sizes(answer))
    else:
        for path in answer["changed"][:LISTED]:
            lines.append(f"  changed {path}")
        for path in answer["removed"][:LISTED]:
            lines.append(f"  removed {path}")
    for path, reason in answer["skipped"].items():
        lines.append(f"  skipped {path}: {reason}")
    return "\n".join(lines)


def _import(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, folder: str, as_is: bool
) -> int:
    from ragdocs.stores.postgres.exchange import import_texts

    workspace, open_lane = _memories(project, settings)
    root = Path(folder)
    if not root.is_dir():
        raise ValidationError(f"{folder} is not a folder", "Name one, such as .memories")
    with Progress(workspace.config) as progress:
        show = progress.of("memory")
        store: Any = open_lane.store
        transfer = import_texts(
            store,
            root,
            open_lane.corpus.lane,
            lambda done, total: show("importing", done, total),
            lambda text: "" if as_is else _secret(workspace.redactor, text),
        )
        with caller.maintaining():
            open_lane.corpus.sync(progress=show)
            open_lane.corpus.embed(show)
            open_lane.index.save()
    return _print_transfer(transfer, "imported", as_json=as_json)


def _secret(redactor: Redactor, text: str) -> str:
    """Say that there is a secret in a text, if there is one."""
    findings = redactor.redact(text).findings
    if not findings:
        return ""
    return (
        f"there seems to be a secret in line {findings[0].line} ({findings[0].rule});"
        " take it out, or use --as-is"
    )


def _export(project: str | None, as_json: bool, settings: tuple[str, ...], *, folder: str) -> int:
    from ragdocs.stores.postgres.exchange import export_texts

    workspace, open_lane = _memories(project, settings)
    with Progress(workspace.config) as progress:
        show = progress.of("memory")
        store: Any = open_lane.store
        transfer = export_texts(
            store, Path(folder), lambda done, total: show("exporting", done, total)
        )
    return _print_transfer(transfer, "exported", as_json=as_json)


def _memories(project: str | None, settings: tuple[str, ...]) -> tuple[Workspace, OpenLane]:
    """Open the memories of this project in the team database."""
    from ragdocs.team import connect
    from ragdocs.workspace import Workspace

    needed = {"memory.enabled": True}
    config = load_config(project, settings, needed)
    connect(config)
    workspace = Workspace(config, lanes=("memory",))
    if "memory" not in workspace.shared_lanes:
        raise UnavailableError(
            "the memories of this project are your own bank",
            'Set storage_strategy = "project" under [memory] in your own configuration',
        )
    workspace.corpus("memory")
    workspace.role()
    return workspace, workspace.open_lanes["memory"]


def _print_transfer(transfer: Transfer, verb: str, *, as_json: bool) -> int:
    answer = {
        "copied": transfer.copied,
        "unchanged": transfer.unchanged,
        "conflicts": transfer.conflicts,
        "skipped": transfer.skipped,
    }

    def text(answer: Mapping[str, Any]) -> str:
        lines = [f"{verb} {len(answer['copied'])} texts; {answer['unchanged']} were there already"]
        for path, reason in answer["conflicts"].items():
            lines.append(f"  conflict {path}: {reason}")
        for path, reason in answer["skipped"].items():
            lines.append(f"  skipped {path}: {reason}")
        return "\n".join(lines)

    print_answer(answer, text, as_json=as_json)
    return int(bool(transfer.conflicts or transfer.skipped))


def _command(
    name: str, about: str, run: Any, *options: click.Parameter, epilog: str
) -> click.Command:
    params = [*options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


PUSH = _command(
    "push",
    "send the documentation of a branch to the team database",
    _push,
    click.Option(["--branch"], metavar="NAME", help="the branch (default: as checked out)"),
    click.Option(["--dry-run"], is_flag=True, help="show what would be sent, and send nothing"),
    epilog=PUSH_EXAMPLES,
)
IMPORT = _command(
    "import",
    "bring memories from a folder into the team database",
    _import,
    click.Argument(["folder"], metavar="DIR"),
    click.Option(["--as-is"], is_flag=True, help="bring in texts with secrets, too"),
    epilog=EXCHANGE_EXAMPLES,
)
EXPORT = _command(
    "export",
    "write the memories of the team as files",
    _export,
    click.Argument(["folder"], metavar="DIR"),
    epilog=EXCHANGE_EXAMPLES,
)
