"""The `ragdocs` command: what the tools do, and the care of configuration and index, from a terminal."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs import __version__
from ragdocs import config as configuration
from ragdocs.config import Config
from ragdocs.errors import ConfigError, ConflictError, LockAcquisitionError, RagdocsError
from ragdocs.serve import bounds
from ragdocs.serve.framing import framed, visible

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

EXAMPLES = """\
examples:
  ragdocs init                                  write config.toml and .memories/ here
  ragdocs mcp                                   serve this project to an MCP client over stdio
  ragdocs search "how are tokens refreshed"     search the documentation
  ragdocs search --lane memory auth --explain   search the memories and show why each was found
  ragdocs memory create plan.md --type plan --tag auth < plan.txt
  ragdocs remember "Chose OAuth2: sessions must be revocable" --tag auth
  ragdocs recall --since yesterday --scope global    a stand-up: what was done where, in all projects
  ragdocs status --json                         what is indexed, what is not, and why
  ragdocs lint                                  broken frontmatter, unknown types, links that are none
  ragdocs lint --secrets                        tokens, keys and passwords that are written down already
  ragdocs eval                                  how well this project's texts are found
  ragdocs verify                                prove that the index equals one built from the files alone

exit codes: 0 done, 1 failed or a difference was found, 2 wrong usage
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        bounds.check_options(vars(options))
        return int(options.run(options) or 0)
    except RagdocsError as error:
        print(_explained(error), file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


def _explained(error: RagdocsError) -> str:
    """Return an error as a person reads it, without secrets: terminals are logged."""
    from ragdocs.pipeline.redact import Redactor

    text = f"ragdocs: {error.message}" + (f"\n  {error.hint}" if error.hint else "")
    if isinstance(error, ConflictError) and error.theirs:
        text += f"\n--- the text there now (version {error.version}) ---\n{error.theirs}"
        if error.merged:
            text += f"\n--- both changes together, overlapping in {error.overlaps} places ---\n{error.merged}"
    return visible(Redactor(os.environ).redact(text).text)


class _Parser(argparse.ArgumentParser):
    """Keeps the lines of examples as they are; the parsers of all commands are of this class too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    from ragdocs.serve import cli_eval, cli_explain, cli_journal, cli_memory, cli_recall, cli_repo

    description = "Documentation search and a memory graph for the agents in your IDE."
    parser: argparse.ArgumentParser = _Parser(prog="ragdocs", description=description, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"ragdocs {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    common = _common()
    add = commands.add_parser
    command = add("init", parents=[common], help="write config.toml and .memories/")
    command.set_defaults(run=_init)
    command = add("mcp", parents=[common], help="serve this project to an MCP client over stdio")
    command.set_defaults(run=_mcp)
    command = add("index", parents=[common], help="bring the index up to the files")
    command.add_argument("--rebuild", action="store_true", help="ignore the stored index and build a new one")
    command.set_defaults(run=_index)
    command = add("search", parents=[common], help="search the documentation or the memories")
    command.add_argument("query", nargs="+", help="what to look for, in plain words")
    command.add_argument("--lane", choices=("docs", "memory"), default="docs", help="where to look (default: docs)")
    command.add_argument("--limit", type=int, default=5, help="how many results (default: 5)")
    command.add_argument("--tag", action="append", default=[], help="only what has one of these tags; may be repeated")
    command.add_argument("--type", help="only memories of this type")
    command.add_argument("--path", default="", help="only documents below this folder")
    command.add_argument("--archived", action="store_true", help="archived memories too")
    command.add_argument("--explain", action="store_true", help="show every contribution to each score")
    command.set_defaults(run=_search)
    command = add("status", parents=[common], help="what is indexed, what is not, and why")
    command.set_defaults(run=_status)
    command = add("lint", parents=[common], help="list what is wrong with documents and memories, by file and line")
    command.add_argument("--secrets", action="store_true", help="look for secrets, in earlier and deleted texts too")
    command.set_defaults(run=_lint)
    command = add("verify", parents=[common], help="prove that the index equals one built from the files alone")
    command.set_defaults(run=_verify)
    command = add("check-config", parents=[common], help="show every setting, its value and where it came from")
    command.set_defaults(run=_check_config)
    for family in (cli_memory, cli_recall, cli_repo, cli_journal, cli_eval, cli_explain):
        family.add(commands, common)
    return parser


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--project", type=Path, metavar="DIR", help="the project's folder (default: found from here)")
    common.add_argument("--json", action="store_true", help="print JSON for scripts")
    common.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting, e.g. embedding.model=none"
    )
    return common


def load_config(options: argparse.Namespace) -> Config:
    """Return the configuration that the options ask for."""
    flags = {}
    for pair in options.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} is not KEY=VALUE", "Write it as --set embedding.model=none")
        flags[key.strip()] = value
    return configuration.load(Path.cwd(), project=options.project, flags=flags)


def open_workspace(options: argparse.Namespace, *, rebuild: bool = False, embed: bool = True) -> Workspace:
    """Open the project's workspace and bring it up to its files, with a progress bar where that takes a while."""
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(options))
    if not rebuild:
        workspace.load()
    bar = Bar()
    workspace.sync(bar.show)
    if embed:
        workspace.embed(bar.show)
    bar.clear()
    save(workspace)
    return workspace


def save(workspace: Workspace) -> None:
    """Keep the index for the next start; a project that cannot be written to is still searched."""
    try:
        workspace.save()
    except LockAcquisitionError:
        pass
    except RagdocsError as error:
        print(f"ragdocs: the index was not saved: {error}", file=sys.stderr)


def show(options: argparse.Namespace, value: Any, text: Callable[[Any], str]) -> int:
    """Print an answer as JSON or as text, with nothing hidden in it."""
    value = framed(value)
    print(json.dumps(value, indent=2, ensure_ascii=False) if options.json else text(value))
    return 0


class Bar:
    """A progress bar on standard error, drawn only for a person who is watching."""

    def __init__(self) -> None:
        self._drawn = False

    def show(self, stage: str, done: int, total: int) -> None:
        """Draw the state of a stage."""
        if sys.stderr.isatty() and total:
            filled = 30 * done // total
            print(f"\r{stage:>10} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total} ", end="", file=sys.stderr)
            self._drawn = True

    def clear(self) -> None:
        """Remove the bar."""
        if self._drawn:
            print("\r" + " " * 70 + "\r", end="", file=sys.stderr)


def _init(options: argparse.Namespace) -> int:
    from ragdocs.serve.init import init

    lines = init(options.project or Path.cwd())
    return show(options, lines, "\n".join)


def _mcp(options: argparse.Namespace) -> int:
    config = load_config(options)
    if sys.stdin.isatty():
        print(f"ragdocs is serving {config.root} and waits for an MCP client on stdin; Ctrl-C ends it", file=sys.stderr)
    from ragdocs.serve.server import serve

    serve(config)
    return 0


def _index(options: argparse.Namespace) -> int:
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(options))
    if not options.rebuild:
        workspace.load()
    bar = Bar()
    reports = workspace.sync(bar.show)
    encoded = workspace.embed(bar.show)
    bar.clear()
    save(workspace)
    lanes = {
        name: {
            "added": report.added,
            "changed": report.changed,
            "removed": report.removed,
            "unchanged": report.unchanged,
            "skipped": dict(report.skipped),
            "seconds": round(report.seconds, 3),
            **workspace.places[name].index.counts(),
            "notes": list(workspace.places[name].corpus.notes()),
        }
        for name, report in reports.items()
    }
    return show(options, {"lanes": lanes, "encoded": encoded}, _index_text)


def _index_text(answer: dict[str, Any]) -> str:
    lines = []
    for name, lane in answer["lanes"].items():
        lines.append(
            f"{name}: {lane['documents']} documents, {lane['chunks']} passages, {lane['vectors']} vectors "
            f"({lane['added']} added, {lane['changed']} changed, {lane['removed']} removed, "
            f"{lane['unchanged']} unchanged, {lane['seconds']:.2f} s)"
        )
        lines += [f"  skipped {path}: {reason}" for path, reason in lane["skipped"].items()]
        lines += [f"  note: {note}" for note in lane["notes"]]
    return "\n".join(lines) or "both lanes are switched off; see `ragdocs check-config`"


def _search(options: argparse.Namespace) -> int:
    from ragdocs.serve import render

    workspace = open_workspace(options)
    query = " ".join(options.query)
    if options.lane == "docs":
        documents = workspace.documents.search(
            query, options.limit, path=options.path, tags=options.tag, explain=options.explain
        )
        return show(options, documents, render.documents)
    memories = workspace.memories.search(
        query,
        options.limit,
        tags=options.tag,
        kind=options.type,
        archived=options.archived,
        explain=options.explain,
    )
    return show(options, memories, render.memories)


def _status(options: argparse.Namespace) -> int:
    from ragdocs.serve import render
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(options))
    workspace.load()
    return show(options, workspace.status(), render.status)


def _lint(options: argparse.Namespace) -> int:
    from ragdocs.verbs.lint import secrets
    from ragdocs.verbs.status import problems
    from ragdocs.workspace import Workspace

    if options.secrets:
        places = Workspace(load_config(options)).places.values()
        leaks = [leak for place in places for leak in secrets(place.corpus)]
        show(options, leaks, _secrets_text)
        return 1 if leaks else 0
    workspace = open_workspace(options, embed=False)
    found = {
        place.store.locate(path): list(reasons)
        for place in workspace.places.values()
        for path, reasons in problems(place.corpus).items()
    }
    show(options, found, _lint_text)
    return 1 if found else 0


def _lint_text(found: dict[str, list[str]]) -> str:
    rows = [f"{path}: {reason}" for path, reasons in found.items() for reason in reasons]
    return "\n".join(rows) or "nothing to complain about"


def _secrets_text(leaks: list[dict[str, Any]]) -> str:
    return "\n".join(f"{leak['path']}:{leak['line']}: {leak['rule']}" for leak in leaks) or "no secrets found"


def _verify(options: argparse.Namespace) -> int:
    from ragdocs.verbs.verify import compare

    workspace = open_workspace(options)
    bar = Bar()
    answers = {}
    for name, place in workspace.places.items():
        answers[name] = compare(place.index.contents(), workspace.rebuilt(name, bar.show).contents())
        bar.clear()
    show(options, answers, _verify_text)
    return 1 if any(answer["difference"] for answer in answers.values()) else 0


def _verify_text(answers: dict[str, Any]) -> str:
    lines = []
    for name, answer in answers.items():
        counts = ", ".join(f"{count} {what}" for what, count in answer["compared"].items())
        lines.append(f"{name}: {'DIFFERENT' if answer['difference'] else 'identical'} ({counts})")
        if answer["difference"]:
            lines.append(f"  first difference: {answer['difference']}")
    return "\n".join(lines)


def _check_config(options: argparse.Namespace) -> int:
    from ragdocs.pipeline.redact import Redactor

    config = load_config(options)
    # Patterns are read where they are used; whoever checks wants to know now.
    Redactor({}, config.redaction.patterns, config.origin("redaction.patterns"))
    settings = [
        {"key": key, "value": value, "origin": origin} for key, value, origin in configuration.render_table(config)
    ]
    answer = {"project": str(config.root), "settings": settings, "problems": list(config.problems)}
    return show(options, answer, _check_config_text)


def _check_config_text(answer: dict[str, Any]) -> str:
    settings = answer["settings"]
    width = max(len(setting["key"]) for setting in settings)
    enabled = next(setting["value"] for setting in settings if setting["key"] == "memory.enabled") == "true"
    return "\n".join(
        [
            f"project: {answer['project']}",
            *(f"  {s['key']:<{width}} = {s['value']}   ({s['origin']})" for s in settings),
            *(f"note: {problem}" for problem in answer["problems"]),
            f"memory is {'enabled' if enabled else 'disabled; write enabled = true under [memory] in config.toml'}",
        ]
    )
