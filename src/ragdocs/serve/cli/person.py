"""Commands for people rather than scripts: open a text in an editor, and look what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragdocs.errors import UnavailableError
from ragdocs.lanes import DOCS
from ragdocs.serve.cli import completing
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.project import catch_up, open_workspace

if TYPE_CHECKING:
    from ragdocs.verbs.references import Location
    from ragdocs.workspace import Workspace

OPEN_EXAMPLES = """\
examples:
  ragdocs open auth-plan.md           a memory, by its file name, id or title
  ragdocs open docs/guide.md:40       a document, at a line
  ragdocs open mem_3f2a9b8c7d6e
  ragdocs open guide --print          only print where it is

The editor is the one in VISUAL or EDITOR. Without one, path:line is printed.

exit codes: 0 done, 1 not found, ambiguous, or the editor failed, 2 wrong usage
"""
DOCTOR_EXAMPLES = """\
examples:
  ragdocs doctor                      what is in order, what is not, and how to mend it
  ragdocs doctor --json | jq '.checks[] | select(.state == "broken")'

exit codes: 0 nothing is broken, 1 something is broken, 2 wrong usage
"""


def _open(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    name: str,
    only_print: bool,
) -> int:
    from ragdocs.serve.cli import editors
    from ragdocs.verbs.references import locate

    workspace = open_workspace(project, settings, lanes=("docs", "memory"))
    catch_up(workspace, embed=False)
    corpora = [open_lane.corpus for open_lane in workspace.open_lanes.values()]
    location = _local(locate(corpora, name), workspace)
    editor = editors.find(os.environ)
    if as_json or only_print or not editor:
        print_answer(asdict(location), _location_text, as_json=as_json)
        return 0
    code = editors.run(editor, location.path, location.line)
    if code:
        click.echo(f"ragdocs: {editor[0]} ended with code {code}", err=True)
    return int(code != 0)


def _local(location: Location, workspace: Workspace) -> Location:
    """Return where a file is on this machine: a text of a team may be no file here."""
    if Path(location.path).is_absolute():
        return location
    address = workspace.open_lanes[location.lane].store.locate("")
    file = workspace.config.root / location.path.removeprefix(f"{address}/")
    if location.lane == DOCS.name and file.is_file():
        return replace(location, path=str(file))
    raise UnavailableError(
        f"{location.path} is in the team database and not in a file",
        "Read it with <read a memory>",
    )


def _location_text(location: Mapping[str, Any]) -> str:
    if location["line"] is None:
        return str(location["path"])
    return f"{location['path']}:{location['line']}"


def _doctor(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.serve.cli import doctor

    checks = doctor.examine(project, settings)
    broken = sum(check.state == doctor.BROKEN for check in checks)
    answer = {"broken": broken, "checks": [asdict(check) for check in checks]}
    print_answer(answer, doctor.text, as_json=as_json)
    return int(broken > 0)


def _command(
    name: str, about: str, run: Callable[..., int], *options: click.Parameter, epilog: str
) -> click.Command:
    params = [*options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


COMMANDS = (
    _command(
        "open",
        "open a document or a memory in your editor",
        _open,
        click.Argument(
            ["name"], metavar="NAME[:LINE]", shell_complete=completing.complete("open", "name")
        ),
        click.Option(["--print", "only_print"], is_flag=True, help="only print where it is"),
        epilog=OPEN_EXAMPLES,
    ),
    _command(
        "doctor",
        "check the installation, the project and its servers, and say how to mend them",
        _doctor,
        epilog=DOCTOR_EXAMPLES,
    ),
)
