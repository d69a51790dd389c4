"""Commands about a project's configuration, its index and its server."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragdocs import caller
from ragdocs import config as configuration
from ragdocs.keys import toml
from ragdocs.serve.cli import listed
from ragdocs.serve.cli.commands import VerbCommand, common_options, format_option
from ragdocs.serve.cli.output import print_answer, print_line, print_text, written
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.cli.project import encode, save
from ragdocs.serve.indexing import duration
from ragdocs.serve.source import load_config
from ragdocs.serve.start import serve_mcp

if TYPE_CHECKING:
    from ragdocs.types import Report

INIT_EXAMPLES = """\
examples:
  ragdocs init              show what there is to index, ask, write config.toml
  ragdocs init --dry-run    only show it; nothing is written
  ragdocs init --yes        write without asking, also on a terminal
  ragdocs init --json       the same for scripts

A config.toml that exists is never changed: init says which globs it lacks.
Without a terminal, as in a script or a pipe, init does not ask.

exit codes: 0 done, 1 failed or declined with nothing changed, 2 wrong usage
"""


def _init(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, dry_run: bool, yes: bool
) -> int:
    from ragdocs.serve.init.project import has_configuration, init, look, preview
    from ragdocs.serve.init.survey import survey

    del settings
    directory = Path(project) if project else Path.cwd()
    proposal = look(directory)
    if not as_json:
        # The question about it comes next, and a pager would take it from the screen.
        print_text(survey(proposal), paged=False)
        click.echo()
    is_asked = not (yes or dry_run or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    if is_asked and not has_configuration(proposal):
        question = "Write config.toml with these?"
        if not click.confirm(question, default=True):
            click.echo("Nothing was written; `ragdocs init --dry-run` shows what would be.")
            return 1
    is_written = not dry_run and not has_configuration(proposal)
    if dry_run:
        messages = preview(proposal)
    else:
        messages = init(directory, proposal=proposal)
    answer = {
        "documentation": proposal.as_json(),
        "written": is_written,
        "messages": messages,
    }
    # Lines to paste must not be broken at the width of the terminal.
    print_line(written(answer, _init_text, as_json=as_json).text)
    return 0


def _init_text(answer: Mapping[str, Any]) -> str:
    return "\n".join(answer["messages"])


def _mcp(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    del as_json
    if sys.stdin.isatty():
        config = load_config(project, settings)
        waiting = "and waits for an MCP client on stdin; Ctrl-C ends it"
        click.echo(f"ragdocs is serving {config.root} {waiting}", err=True)
    serve_mcp(project, settings)
    return 0


def _index(project: str | None, as_json: bool, settings: tuple[str, ...], *, rebuild: bool) -> int:
    from ragdocs.workspace import Workspace

    config = load_config(project, settings)
    if rebuild and config.team.database != configuration.NO_DATABASE:
        from ragdocs.team import Team

        Team(config).forget_indexes()
    workspace = Workspace(config)
    if not rebuild:
        workspace.load()
    began = time.monotonic()
    lanes: dict[str, dict[str, Any]] = {}
    encoded = 0
    with Progress(workspace.config) as progress, caller.maintaining():
        try:
            for name, open_lane in workspace.open_lanes.items():
                report = open_lane.corpus.sync(progress=progress.of(name))
                lanes[name] = _report(report)
            for name, open_lane in workspace.open_lanes.items():
                embedding_began = time.monotonic()
                encoded += encode(workspace, open_lane, progress, name)
                lanes[name]["seconds"] += time.monotonic() - embedding_began
        finally:
            # An interruption keeps what is done.
            save(workspace)
    for name, open_lane in workspace.open_lanes.items():
        lanes[name]["seconds"] = round(lanes[name]["seconds"], 3)
        lanes[name] |= {**open_lane.corpus.counts(), "notes": list(open_lane.corpus.notes())}
    seconds = round(time.monotonic() - began, 3)
    answer = {"lanes": lanes, "encoded": encoded, "seconds": seconds}
    print_answer(answer, _index_text, as_json=as_json)
    return 0


def _report(report: Report) -> dict[str, Any]:
    return {
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "skipped": dict(report.skipped),
        "seconds": report.seconds,
    }


def _index_text(answer: Mapping[str, Any]) -> str:
    from ragdocs.serve.surface.present import sizes

    lines = []
    for name, lane in answer["lanes"].items():
        lines.append(
            f"{name}: {sizes(lane)} ({lane['added']} added, {lane['changed']} changed, "
            f"{lane['removed']} removed, {lane['unchanged']} unchanged, {lane['seconds']:.2f} s)"
        )
        for path, reason in lane["skipped"].items():
            lines.append(f"  skipped {path}: {reason}")
        for note in lane["notes"]:
            lines.append(f"  note: {note}")
    if not lines:
        return "both lanes are switched off; see `ragdocs check-config`"
    lines.append(f"{answer['encoded']} passages embedded; {duration(answer['seconds'])} in all")
    return "\n".join(lines)


def _check_config(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, form: str
) -> int:
    from ragdocs.project.layout import docs_globs
    from ragdocs.text.redaction.redact import Redactor

    config = load_config(project, settings)
    # Patterns are read where they are used; whoever checks wants to know now.
    Redactor({}, config.redaction.patterns, config.origin("redaction.patterns"))
    rows = []
    for key, value, origin in configuration.render_table(config):
        rows.append({"key": key, "value": value, "origin": origin})
        if key == "docs.include" and origin == "default":
            # The default depends on what the project has.
            rows[-1]["value"] = toml(docs_globs(config).include)
    answer = {
        "project": str(config.root),
        "settings": rows,
        "problems": list(config.problems),
        "memory": config.memory.enabled,
    }
    if form in ("md", "table") and not as_json:
        print_answer(rows, str, as_json=False, form=form, columns=("key", "value", "origin"))
    else:
        print_answer(answer, _check_config_text, as_json=as_json or form == "json")
    return 0


def _check_config_text(answer: Mapping[str, Any]) -> str:
    width = max(len(row["key"]) for row in answer["settings"])
    lines = [f"project: {answer['project']}"]
    for row in answer["settings"]:
        lines.append(f"  {row['key']:<{width}} = {row['value']}   ({row['origin']})")
    for problem in answer["problems"]:
        lines.append(f"note: {problem}")
    how = "disabled; write enabled = true under [memory] in config.toml"
    lines.append(f"memory is {'enabled' if answer['memory'] else how}")
    return "\n".join(lines)


def _completion(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, shell: str
) -> int:
    from click.shell_completion import get_completion_class

    del project, as_json, settings
    completion = get_completion_class(shell)
    assert completion is not None
    context = click.get_current_context().find_root()
    click.echo(completion(context.command, {}, "ragdocs", listed.COMPLETION).source())
    return 0


def _command(
    name: str,
    about: str,
    run: Callable[..., int],
    *options: click.Parameter,
    epilog: str | None = None,
) -> click.Command:
    return VerbCommand(
        name, help=about, params=[*options, *common_options()], callback=run, epilog=epilog
    )


COMMANDS = (
    _command(
        "init",
        "find the documentation, write config.toml",
        _init,
        click.Option(
            ["--dry-run"], is_flag=True, help="show what would be indexed, and write nothing"
        ),
        click.Option(["--yes"], is_flag=True, help="write without asking"),
        epilog=INIT_EXAMPLES,
    ),
    _command("mcp", "serve this project to an MCP client over stdio", _mcp),
    _command(
        "index",
        "bring the index up to the files",
        _index,
        click.Option(
            ["--rebuild"], is_flag=True, help="ignore the stored index and build a new one"
        ),
    ),
    _command(
        "completion",
        "print a script for your shell, for example: source <(ragdocs completion bash)",
        _completion,
        click.Argument(["shell"], type=click.Choice(("bash", "zsh", "fish"))),
    ),
    _command(
        "check-config",
        "show every setting, its value and where it came from",
        _check_config,
        format_option(),
    ),
)
