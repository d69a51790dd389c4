"""Commands about a project's configuration, its index and its server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ragdocs import config as configuration
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.cli.project import open_workspace, save
from ragdocs.serve.start import load_config, serve_mcp


def _init(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.serve.init import init

    del settings
    lines = init(Path(project) if project else Path.cwd())
    print_answer(lines, "\n".join, as_json=as_json)
    return 0


def _mcp(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    del as_json
    config = load_config(project, settings)
    if sys.stdin.isatty():
        waiting = "and waits for an MCP client on stdin; Ctrl-C ends it"
        click.echo(f"ragdocs is serving {config.root} {waiting}", err=True)
    serve_mcp(config)
    return 0


def _index(project: str | None, as_json: bool, settings: tuple[str, ...], *, rebuild: bool) -> int:
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(project, settings))
    if not rebuild:
        workspace.load()
    with Progress() as progress:
        reports = workspace.sync(progress.show)
        encoded = workspace.embed(progress.show)
    save(workspace)
    lanes = {}
    for name, report in reports.items():
        place = workspace.places[name]
        lanes[name] = {
            "added": report.added,
            "changed": report.changed,
            "removed": report.removed,
            "unchanged": report.unchanged,
            "skipped": dict(report.skipped),
            "seconds": round(report.seconds, 3),
            **place.index.counts(),
            "notes": list(place.corpus.notes()),
        }
    print_answer({"lanes": lanes, "encoded": encoded}, _index_text, as_json=as_json)
    return 0


def _index_text(answer: Mapping[str, Any]) -> str:
    lines = []
    for name, lane in answer["lanes"].items():
        lines.append(
            f"{name}: {lane['documents']} documents, {lane['chunks']} passages, "
            f"{lane['vectors']} vectors ({lane['added']} added, {lane['changed']} changed, "
            f"{lane['removed']} removed, {lane['unchanged']} unchanged, {lane['seconds']:.2f} s)"
        )
        for path, reason in lane["skipped"].items():
            lines.append(f"  skipped {path}: {reason}")
        for note in lane["notes"]:
            lines.append(f"  note: {note}")
    return "\n".join(lines) or "both lanes are switched off; see `ragdocs check-config`"


def _lint(project: str | None, as_json: bool, settings: tuple[str, ...], *, secrets: bool) -> int:
    if secrets:
        return _lint_secrets(project, settings, as_json=as_json)
    from ragdocs.verbs.quality.health import problems

    workspace = open_workspace(project, settings, embed=False)
    findings = {}
    for place in workspace.places.values():
        for path, reasons in problems(place.corpus).items():
            findings[place.store.locate(path)] = list(reasons)
    print_answer(findings, _lint_text, as_json=as_json)
    return int(bool(findings))


def _lint_text(findings: Mapping[str, list[str]]) -> str:
    rows = []
    for path, reasons in findings.items():
        rows += [f"{path}: {reason}" for reason in reasons]
    return "\n".join(rows) or "no problems found"


def _lint_secrets(project: str | None, settings: tuple[str, ...], *, as_json: bool) -> int:
    from ragdocs.verbs.quality.health import secrets
    from ragdocs.workspace import Workspace

    leaks = []
    for place in Workspace(load_config(project, settings)).places.values():
        leaks += secrets(place.corpus)
    print_answer(leaks, _secrets_text, as_json=as_json)
    return int(bool(leaks))


def _secrets_text(leaks: list[dict[str, Any]]) -> str:
    rows = [f"{leak['path']}:{leak['line']}: {leak['rule']}" for leak in leaks]
    return "\n".join(rows) or "no secrets found"


def _check_config(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.text.redaction.redact import Redactor

    config = load_config(project, settings)
    # Patterns are read where they are used; whoever checks wants to know now.
    Redactor({}, config.redaction.patterns, config.origin("redaction.patterns"))
    rows = []
    for key, value, origin in configuration.render_table(config):
        rows.append({"key": key, "value": value, "origin": origin})
    answer = {
        "project": str(config.root),
        "settings": rows,
        "problems": list(config.problems),
        "memory": config.memory.enabled,
    }
    print_answer(answer, _check_config_text, as_json=as_json)
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
    click.echo(completion(context.command, {}, "ragdocs", "_RAGDOCS_COMPLETE").source())
    return 0


def _command(
    name: str, about: str, run: Callable[..., int], *options: click.Parameter
) -> click.Command:
    return VerbCommand(name, help=about, params=[*options, *common_options()], callback=run)


COMMANDS = (
    _command("init", "write config.toml and .memories/", _init),
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
        "lint",
        "list what is wrong with documents and memories, by file and line",
        _lint,
        click.Option(
            ["--secrets"], is_flag=True, help="look for secrets, in earlier and deleted texts too"
        ),
    ),
    _command(
        "completion",
        "print a script for your shell, for example: source <(ragdocs completion bash)",
        _completion,
        click.Argument(["shell"], type=click.Choice(("bash", "zsh", "fish"))),
    ),
    _command("check-config", "show every setting, its value and where it came from", _check_config),
)
