"""`ragdocs repo …` and `ragdocs context`: what the repository knows about itself, and packs of it for hooks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.serve.cli import app as cli
from ragdocs.serve.cli.memory import read_content

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

EXAMPLES = """\
examples:
  ragdocs repo convention "Use pnpm workspaces" --content "All packages live under packages/." --tag build
  ragdocs repo decision "Sessions instead of JWT" --path src/auth/ < why.md
  ragdocs repo note --content "The integration tests need Redis 7"
  ragdocs repo show                             everything that this branch knows
  ragdocs repo show --path src/auth/login.py    the decisions about a file, and about the folders it is in
  ragdocs repo delete note note-3f2a9b8c
  ragdocs repo summary --run release-42 --step 2-tests --content "Fixed the race in the lock."
  ragdocs repo copy feature/oauth main          what one branch knows, for another one too

exit codes: 0 done, 1 failed or refused with nothing changed, 2 wrong usage
"""

CONTEXT = """\
examples:
  ragdocs context                               for a hook whose output is read as it is
  ragdocs context --hook SessionStart           for a hook that answers with JSON
  ragdocs context "revoke sessions on logout" --file src/auth/login.py --max-chars 4000
  ragdocs context --json | jq -r '.omitted[]'   what was left out, and how to get it

exit codes: 0 done, 1 failed, 2 wrong usage
"""

Verb = Callable[["Workspace", argparse.Namespace], Any]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    repo = commands.add_parser(
        "repo",
        help="conventions, decisions, notes and summaries of this repository",
        epilog=EXAMPLES,
    )
    verbs = repo.add_subparsers(title="repo commands", metavar="VERB", required=True)

    def verb(name: str, help_text: str, run: Verb, text: str) -> argparse.ArgumentParser:
        command = verbs.add_parser(name, parents=[common], help=help_text)
        command.set_defaults(run=lambda options: _run(options, run, text))
        return command

    _add_writing(verb)
    _add_reading(verb)
    command = commands.add_parser(
        "context",
        parents=[common],
        help="print what an agent should know when a run or a step begins",
        epilog=CONTEXT,
    )
    command.add_argument("task", nargs="*", help="what is about to be done, in plain words (default: anything)")
    command.add_argument("--file", action="append", default=[], help="a file it is about; may be repeated")
    command.add_argument("--max-chars", type=int, default=8000, help="the size of the pack (default: 8000)")
    command.add_argument("--hook", metavar="EVENT", help="print it as the JSON that a hook of this event answers with")
    _add_scope(command)
    command.set_defaults(run=_context)


def _add_writing(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("convention", "write a convention, or change the one of this title", _convention, "saved")
    command.add_argument("title", help="what it is called")
    _add_content(command)
    command.add_argument("--tag", action="append", help="a tag; may be repeated (default: those it has)")
    command.add_argument("--id", default="", help="the convention to change, whatever its title")
    command = verb("decision", "write a decision, or change the one of this summary", _decision, "saved")
    command.add_argument("summary", help="what was decided, on one line; the reasons are the text")
    _add_content(command)
    command.add_argument("--path", action="append", help="a file or folder that it is about; may be repeated")
    command.add_argument("--id", default="", help="the decision to change, whatever its summary")
    command = verb("note", "write a note", _note, "saved")
    _add_content(command)
    command.add_argument("--source", default="manual", help="manual, agent or tool (default: manual)")
    command.add_argument("--id", default="", help="the note to change")
    command = verb("summary", "append a summary of a step", _summary, "appended")
    command.add_argument("--run", dest="run_id", required=True, help="the run, such as release-42")
    command.add_argument("--step", required=True, help="the step of the run")
    command.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    _add_content(command)
    command = verb("delete", "move a convention, decision or note to the trash", _delete, "deleted")
    command.add_argument("kind", choices=("convention", "decision", "note"), help="what it is")
    command.add_argument("id", help="its id, from `ragdocs repo show`")
    _add_scope(command)
    command = verb("copy", "copy what one branch knows to another", _copy, "copied")
    command.add_argument("source", help="the branch to copy from")
    command.add_argument("target", help="the branch to copy to; what it has already stays")


def _add_reading(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("show", "list what this branch knows, or a part of it", _show, "repository")
    command.add_argument("--kind", default="", help="convention, decision, note or summary (default: all)")
    command.add_argument("--id", default="", help="one item, whole")
    command.add_argument("--path", default="", help="the decisions about a file or folder")
    _add_scope(command)


def _add_content(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group()
    group.add_argument("--content", help="the text")
    group.add_argument("--file", type=Path, help="a file with the text (default: standard input)")
    _add_scope(command)


def _add_scope(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--branch-scope", choices=("perBranch", "sharedRepo"), help="whose it is, if not as configured"
    )


def _run(options: argparse.Namespace, run: Verb, text: str) -> int:
    from ragdocs.serve.surface import present_repo as render_repo

    workspace = cli.open_workspace(options, embed=False)
    answer = run(workspace, options)
    cli.save(workspace)
    return cli.show(options, answer, getattr(render_repo, text))


def _convention(workspace: Workspace, options: argparse.Namespace) -> Any:
    content = read_content(options)
    return workspace.repository.upsert_convention(options.title, content, options.tag, options.id, options.branch_scope)


def _decision(workspace: Workspace, options: argparse.Namespace) -> Any:
    content = read_content(options)
    return workspace.repository.upsert_decision(
        options.summary, content, options.path, options.id, options.branch_scope
    )


def _note(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.repository.upsert_note(read_content(options), options.source, options.id, options.branch_scope)


def _summary(workspace: Workspace, options: argparse.Namespace) -> Any:
    content = read_content(options)
    return workspace.repository.append_summary(options.run_id, options.step, content, options.tag, options.branch_scope)


def _show(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.repository.get(options.kind, options.id, options.path, options.branch_scope)


def _delete(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.repository.delete(options.kind, options.id, options.branch_scope)


def _copy(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.repository.copy(options.source, options.target)


def _context(options: argparse.Namespace) -> int:
    # A hook waits for this: what has no vector yet is found by its words.
    workspace = cli.open_workspace(options, embed=False)
    pack = workspace.packs.build(options.max_chars, " ".join(options.task), options.file, options.branch_scope)
    if options.hook:
        answer = {"hookSpecificOutput": {"hookEventName": options.hook, "additionalContext": pack["context"]}}
        return cli.show(options, answer, json.dumps)
    return cli.show(options, pack, lambda shown: str(shown["context"]).rstrip("\n"))
