"""The `ragdocs` command: every declared verb, and the care of configuration, index and server."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import click

from ragdocs import __version__
from ragdocs.errors import ConflictError, RagdocsError
from ragdocs.serve.cli import listed
from ragdocs.serve.cli.commands import add_verbs
from ragdocs.serve.cli.output import print_error
from ragdocs.serve.surface import VERBS, Verb, hints

ABOUT = "Documentation search and a memory graph for the agents in your IDE."
EXAMPLES = """\
examples:
  ragdocs init                                write config.toml and .memories/
  ragdocs install                             write it into your MCP client
  ragdocs doctor                              what is wrong here, and its fix
  ragdocs mcp                                 serve it to an MCP client
  ragdocs web                                 look at it in your browser
  ragdocs search "how are tokens refreshed"   search documentation and memories
  ragdocs search --lane memory auth           search the memories
  ragdocs memory list --type plan             list memories as a table
  ragdocs memory create plan.md --type plan --tag auth < plan.txt
  ragdocs open plan.md                        in your editor
  ragdocs remember "Chose OAuth2: sessions must be revocable" --tag auth
  ragdocs recall --since yesterday --scope global
  ragdocs status --json                       what is indexed, and what is not
  ragdocs lint                                problems in texts, dead links
  ragdocs lint --secrets                      secrets that are written down
  ragdocs eval                                how well texts are found
  ragdocs verify                              prove that the index is right

exit codes: 0 done, 1 failed or a difference was found, 2 wrong usage
"""
INTERRUPTED = 130
GROUPS = {
    "docs": "search and read the documentation",
    "memory": "create, read, change, find and merge memories",
    "text": "one memory or document whole, with its links and secrets",
    "entry": "single facts with importance, confidence and expiry",
    "repo": "conventions, decisions, notes and summaries of this repository",
    "journal": "overviews of subjects, and the entries that led to them",
}
# The commands as the help lists them: each heading says what somebody wants to do.
SECTIONS = {
    "Set up": ("init", "install", "uninstall", "check-config", "doctor", "completion"),
    "Find": ("search", "docs", "recall", "context", "commits", "explain", "graph"),
    "Write": ("memory", "remember", "entry", "text", "repo", "journal", "open", "import", "export"),
    "Keep it true": ("lint", "drift", "affected", "gaps", "handover", "eval"),
    "Look after the index": ("status", "index", "verify"),
    "Serve": ("mcp", "serve", "web", "token", "clients"),
    "Share with a team": ("team", "push"),
}


class Commands(click.Group):
    """A group that keeps the order of its commands and names the nearest one to a misspelt word."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they were added."""
        del ctx
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that the words name."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            meant = _meant(self, word)
            question = ""
            if meant:
                question = f" Did you mean {' or '.join(map(repr, meant))}?"
            ctx.fail(f"there is no command {word!r}.{question}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its whole description, under the sections of the group."""
        listed_names = self.list_commands(ctx)
        width = max(map(len, listed_names))
        for heading, names in self.sections(listed_names).items():
            rows = []
            for name in names:
                rows.append((name.ljust(width), self.commands[name].help or ""))
            with formatter.section(heading):
                formatter.write_dl(rows)

    def sections(self, names: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the headings under which the commands are listed."""
        return {"Commands": names}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        del ctx
        if self.epilog:
            formatter.write(f"\n{self.epilog}")


class Root(Commands):
    """The command `ragdocs` itself, whose commands are listed by what somebody wants to do."""

    def sections(self, names: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the sections that have commands; a command that none names comes last."""
        sections: dict[str, Sequence[str]] = {}
        left = dict.fromkeys(names)
        for heading, members in SECTIONS.items():
            present = [name for name in members if name in left]
            if present:
                sections[heading] = present
            for name in present:
                del left[name]
        if left:
            sections["More"] = list(left)
        return sections


def _meant(group: click.Group, word: str) -> list[str]:
    """Return the commands that a wrong word may mean: the same word elsewhere, or a near one."""
    elsewhere = []
    for path in _paths(build(), ()):
        if path[-1] == word:
            elsewhere.append(" ".join(("ragdocs", *path)))
    if elsewhere:
        return elsewhere
    import difflib

    return difflib.get_close_matches(word, group.commands, n=1)


def _paths(group: click.Group, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words that lead to each command."""
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from _paths(command, (*above, name))


def build() -> Commands:
    """Return the command with all its commands."""
    from ragdocs.serve.surface.catalog import every

    root = _root()
    *modules, last = _modules()
    for module in modules:
        for command in module.COMMANDS:
            root.add_command(_in_order(command))
    for name in GROUPS:
        root.add_command(_group(name))
    add_verbs(root, every())
    for command in last.COMMANDS:
        root.add_command(command)
    return root


def _modules() -> tuple[Any, ...]:
    """Return the modules of commands that are not verbs."""
    from ragdocs.serve.cli import evaluate, exchanging, installing, machine, network, person, team

    return machine, installing, exchanging, network, team, person, evaluate


def build_for(words: Sequence[str]) -> Commands:
    """Return the command with what the words may call; other commands are not imported."""
    modules: list[str] = []
    if words and listed.COMPLETION not in os.environ:
        modules = listed.modules(words[0])
    if not modules:
        return build()
    hints.DECLARING[:] = [_declare_all]
    root = _root()
    name = words[0]
    if name in GROUPS:
        root.add_command(_group(name))
    for module in modules:
        for command in getattr(import_module(module), "COMMANDS", ()):
            if command.name == name:
                root.add_command(_in_order(command))
        add_verbs(root, _verbs(module, name))
    return root


def _declare_all() -> None:
    """Import the declarations of all verbs, for a sentence that names another one."""
    import_module("ragdocs.serve.surface.catalog")


def _verbs(module: str, name: str) -> Iterator[Verb]:
    """Yield the verbs of a module whose commands begin with a name."""
    for verb in VERBS.values():
        if verb.run.__module__ == module and verb.command.split()[:1] == [name]:
            yield verb


def _root() -> Commands:
    root = Root("ragdocs", help=ABOUT, epilog=EXAMPLES)
    root.params.append(_version_option())
    return root


def _group(name: str) -> Commands:
    return Commands(name, help=GROUPS[name], short_help=GROUPS[name])


def summary() -> dict[str, Any]:
    """Return the help of all commands and the modules of each, as `listed` has them in a file."""
    from ragdocs.serve.surface.catalog import every

    modules: dict[str, list[str]] = {}
    for module in _modules():
        for command in module.COMMANDS:
            modules[command.name] = [module.__name__]
    for verb in every():
        for name in verb.command.split()[:1]:
            declaring = modules.setdefault(name, [])
            if verb.run.__module__ not in declaring:
                declaring.append(verb.run.__module__)
    root = build()
    context = click.Context(root, info_name="ragdocs", terminal_width=listed.COLUMNS - 2)
    return {"help": f"{root.get_help(context)}\n", "modules": modules}


def _in_order(command: click.Command) -> click.Command:
    """Return a group that names near commands; a command as it is."""
    if not isinstance(command, click.Group):
        return command
    return Commands(command.name, help=command.help, commands=command.commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    root = build_for(words)
    if not words and listed.COMPLETION not in os.environ:
        click.echo(root.get_help(click.Context(root, info_name="ragdocs")))
        return 2
    try:
        return int(root.main(words, prog_name="ragdocs", standalone_mode=False) or 0)
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        print_error(message.getvalue().rstrip("\n"))
        code = error.exit_code
        if "--hook" in words:
            # To the host of an agent, 2 would mean that the prompt is to be blocked.
            code = 1
    except RagdocsError as error:
        print_error(explained(error))
        code = 1
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stderr.close()
        code = 0
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    return code


def explained(error: RagdocsError) -> str:
    """Return an error as a person reads it, without secrets: terminals are logged."""
    from ragdocs.text.redaction.redact import CallersRedactor
    from ragdocs.text.visible import visible

    text = f"ragdocs: {error.message}"
    if error.hint:
        text += f"\n  {hints.addressed(error.hint, 'command')}"
    if isinstance(error, ConflictError) and error.theirs:
        text += f"\n--- the text there now (version {error.version}) ---\n{error.theirs}"
        if error.merged:
            heading = f"both changes together, overlapping in {error.overlaps} places"
            text += f"\n--- {heading} ---\n{error.merged}"
    return visible(CallersRedactor(os.environ).redact(text).text)


def _version_option() -> click.Option:
    def show(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            click.echo(f"ragdocs {__version__}")
            ctx.exit()

    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="print the version",
    )
