"""Commands that tell the clients on this machine about ragdocs, and make them forget it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.project import folders
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_line, print_text, written
from ragdocs.serve.install.clients import CLIENTS, Client, Machine, Scope, machine

if TYPE_CHECKING:
    from ragdocs.serve.install.parts import Part
    from ragdocs.serve.install.plan import Change

NAMES = ", ".join(CLIENTS)
OUTCOMES = {
    "written": "Wrote",
    "removed": "Removed",
    "planned": "Would write",
    "unchanged": "Unchanged",
}
INSTALL_EXAMPLES = f"""\
examples:
  ragdocs install                        every client that is found; shows the change and asks
  ragdocs install claude-code cursor     these only
  ragdocs install --dry-run              only show it; nothing is written
  ragdocs install codex --scope user     for all your projects
  ragdocs install --hooks --rules        with hooks, and a paragraph for agents
  ragdocs install zed --yes --json       without asking, for scripts

clients: {NAMES}

Comments and other settings stay as they are. A file that cannot be read is left alone, and the
lines to paste are printed. `ragdocs uninstall` with the same words takes it back.
Without a terminal, as in a script or a pipe, it does not ask.

exit codes: 0 done, 1 a file was refused or you declined, 2 wrong usage
"""
UNINSTALL_EXAMPLES = f"""\
examples:
  ragdocs uninstall                      from every client of this project
  ragdocs uninstall codex --dry-run      only show it; nothing is written
  ragdocs uninstall --scope user         what was written for all your projects

clients: {NAMES}

Your own settings stay, also those that you made since. Memories and indexes are not touched.

exit codes: 0 done, 1 a file was refused or you declined, 2 wrong usage
"""


def _install(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    clients: tuple[str, ...],
    scope: Scope,
    **flags: bool,
) -> int:
    from ragdocs.serve.install import command, plan
    from ragdocs.serve.install.parts import parts

    del settings
    machine = _machine(project, scope)
    chosen = _chosen(clients, machine)
    wanted = {"server"}
    for kind in ("hooks", "rules"):
        if flags.pop(kind):
            wanted.add(kind)
    python = command.lasting_interpreter()
    added: list[Part] = []
    for client in chosen:
        for part in parts(client, scope, machine, python):
            if part.kind in wanted:
                added.append(part)
    changes = plan.installing(added)
    code = _carry_out(changes, as_json=as_json, is_install=True, **flags)
    if not as_json and not flags["dry_run"]:
        _print_notes(chosen, changes, scope)
    return code


def _uninstall(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    clients: tuple[str, ...],
    scope: Scope,
    **flags: bool,
) -> int:
    del settings
    machine = _machine(project, scope)
    names = clients or tuple(CLIENTS)
    changes = _removals(names, scope, machine)
    if not changes and not as_json:
        click.echo("No client has anything of ragdocs here; nothing was changed.")
        elsewhere = _removals(names, "user", machine) if scope == "project" else []
        if elsewhere:
            click.echo("What was written for all your projects stays: ", nl=False)
            click.echo("`ragdocs uninstall --scope user` takes it back.")
        return 0
    return _carry_out(changes, as_json=as_json, is_install=False, **flags)


def _removals(names: Sequence[str], scope: Scope, machine: Machine) -> list[Change]:
    """Return what would be taken back from these clients in a scope."""
    from ragdocs.serve.install import plan
    from ragdocs.serve.install.parts import parts

    taken: list[Part] = []
    for name in names:
        for part in parts(CLIENTS[name], scope, machine, [sys.executable]):
            if not _is_of_another_project(part, machine):
                taken.append(part)
    return plan.uninstalling(taken)


def _machine(project: str | None, scope: Scope) -> Machine:
    directory = Path.cwd()
    if project:
        directory = Path(project)
    try:
        root = folders.nearest_marked(folders.settled(directory))
        return machine(folders.checked_root(root))
    except RagdocsError:
        if scope == "user":
            return machine(None)
        raise


def _chosen(names: Sequence[str], machine: Machine) -> list[Client]:
    if names:
        return [CLIENTS[name] for name in names]
    present = [client for client in CLIENTS.values() if machine.has(client)]
    if not present:
        raise NotFoundError("no known client was found on this machine", f"Name one: {NAMES}")
    return present


def _is_of_another_project(part: Part, machine: Machine) -> bool:
    """Tell whether a client that serves one project at a time serves another one than this."""
    from ragdocs.serve.install.clients import NAMED
    from ragdocs.serve.install.parts import NAME, words_of
    from ragdocs.text import jsonc

    is_shared = part.kind == "server" and part.file == machine.first(part.client.user_files)
    if not is_shared or part.client.user_project != NAMED:
        return False
    try:
        settings = jsonc.loads(part.file.read_text(encoding="utf-8-sig"))
        words = words_of(settings[part.client.key][NAME])
        return words[words.index("--project") + 1] != str(machine.root)
    except (OSError, ValueError, KeyError, TypeError, IndexError, RagdocsError):
        return False


def _carry_out(
    changes: Sequence[Change], *, as_json: bool, dry_run: bool, yes: bool, is_install: bool
) -> int:
    """Show the changes, ask, and write them."""
    from ragdocs.serve.install import plan

    if not as_json:
        # The question about it comes next, and a pager would take it from the screen.
        print_text(_redacted(_preview(changes)), paged=False)
    to_write = [change for change in changes if change.is_needed or change.others]
    is_asked = not (yes or dry_run or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    if to_write and is_asked and not click.confirm("Write this?", default=True):
        click.echo("Nothing was written.")
        return 1
    states: dict[int, str] = {}
    for change in to_write:
        if dry_run:
            continue
        try:
            plan.write(change, is_install=is_install)
            states[id(change)] = "written"
            if change.after is None:
                states[id(change)] = "removed"
        except RagdocsError as error:
            change.reason, change.hint = error.message, error.hint
    rows = []
    for change in changes:
        row = _row(change, states.get(id(change), ""))
        if change.is_refused:
            row |= {"hint": _advice(change.hint, is_install=is_install), "lines": change.lines()}
        rows.append(row)
    answer = {"changes": rows}
    # Lines to paste must not be broken at the width of the terminal.
    print_line(written(answer, _outcome, as_json=as_json).text)
    return int(any(change.is_refused for change in changes))


def _row(change: Change, state: str) -> dict[str, Any]:
    if change.is_refused:
        state = "refused"
    elif change.others:
        state = "kept"
    elif not change.is_needed:
        state = "unchanged"
    elif not state:
        state = "planned"
    return {
        "file": str(change.file),
        "clients": change.clients,
        "parts": change.kinds(),
        "state": state,
        "diff": _redacted(change.diff()),
        "backup": change.backup,
        "others": change.others,
        "reason": change.reason,
        "hint": "",
        "lines": "",
    }


def _advice(hint: str, *, is_install: bool) -> str:
    """Say what to do with the lines of a file that was left alone."""
    advice = "take lines like these out by hand"
    if is_install:
        advice = "put these lines there by hand"
    if hint:
        return f"{hint}, or {advice}"
    return advice.capitalize()


def _redacted(text: str) -> str:
    """Return a text without secrets: a diff shows lines near to ours, and terminals are logged."""
    from ragdocs.text.redaction.redact import CallersRedactor

    return CallersRedactor(os.environ).redact(text).text


def _preview(changes: Sequence[Change]) -> str:
    diffs = [change.diff() for change in changes if change.is_needed]
    if not diffs and not any(change.is_refused for change in changes):
        return "No file needs a change."
    return "\n".join(diffs)


def _outcome(answer: Mapping[str, Any]) -> str:
    lines = []
    for row in answer["changes"]:
        what = f"{row['file']} ({', '.join(row['parts'])})"
        if row["state"] == "refused":
            lines += [f"Refused: {row['reason']}", f"  {row['hint']}:", "", row["lines"], ""]
        elif row["state"] == "kept":
            lines.append(f"Kept {what}: {', '.join(row['others'])} reads it, too")
        elif row["state"] in ("written", "removed"):
            lines.append(f"{OUTCOMES[row['state']]} {what}")
            if row["backup"]:
                lines.append(f"  its text before: {row['backup']}")
        else:
            lines.append(f"{OUTCOMES[row['state']]} {what}")
    return "\n".join(lines)


def _print_notes(clients: Sequence[Client], changes: Sequence[Change], scope: Scope) -> None:
    """Say what is left to do for what was written."""
    written = set()
    for change in changes:
        for part in change.parts:
            if change.is_needed:
                written.add((part.client.name, part.kind))
    for client in clients:
        note = client.note
        if scope == "user" and client.user_note:
            note = client.user_note
        if (client.name, "server") in written:
            click.echo(f"{client.title}: {note}")
        if (client.name, "hooks") in written and client.hooks_note:
            click.echo(f"{client.title}: {client.hooks_note}")


def _options() -> list[click.Parameter]:
    return [
        click.Argument(
            ["clients"],
            nargs=-1,
            type=click.Choice(list(CLIENTS)),
            metavar="[CLIENT]...",
        ),
        click.Option(
            ["--scope"],
            type=click.Choice(get_args(Scope)),
            default="project",
            metavar="SCOPE",
            help="project or user: this project's files, or yours for all (default: project)",
        ),
        click.Option(["--dry-run"], is_flag=True, help="show the change, and write nothing"),
        click.Option(["--yes"], is_flag=True, help="write without asking"),
    ]


def _command(
    name: str, about: str, run: Callable[..., int], *options: click.Parameter, epilog: str
) -> click.Command:
    params = [*_options(), *options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


COMMANDS = (
    _command(
        "install",
        "write ragdocs into the settings of your MCP clients",
        _install,
        click.Option(["--hooks"], is_flag=True, help="also hooks that give agents a context pack"),
        click.Option(
            ["--rules"], is_flag=True, help="also a paragraph that says when to call what"
        ),
        epilog=INSTALL_EXAMPLES,
    ),
    _command(
        "uninstall",
        "take back what install wrote",
        _uninstall,
        epilog=UNINSTALL_EXAMPLES,
    ),
)
