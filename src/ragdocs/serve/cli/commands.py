"""Every declared verb as a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from ragdocs.errors import ValidationError
from ragdocs.serve.cli import completing, hook
from ragdocs.serve.cli.output import FORMATS, print_answer
from ragdocs.serve.cli.project import (
    catch_up,
    catch_up_in_time,
    complete,
    open_workspace,
    save,
    start_server,
)
from ragdocs.serve.surface import REQUIRED, Ask, Param, Verb, bounds, call
from ragdocs.serve.surface.arguments import read_input, read_text

# Returns the text of a file, or of standard input for no name; of a hook's input if it is one.
ReadText = Callable[[str, bool], str]
# What a person types for a text that is piped in.
STANDARD_INPUT = "-"
EXIT_CODES = "exit codes: 0 done, 1 failed or refused with nothing changed, 2 wrong usage"


class VerbCommand(click.Command):
    """A command whose help ends with examples as they are typed, and whose options are bounded."""

    # None for a command that only the process in which it is typed can run.
    verb: Verb | None = None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command unless an option is larger than it can be meant."""
        bounds.check_options(ctx.params)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        del ctx
        if self.epilog:
            formatter.write(f"\n{self.epilog}")


def add_verbs(root: click.Group, verbs: Iterable[Verb]) -> None:
    """Add a command for every verb that has one, below the groups that its name begins with."""
    for verb in verbs:
        if not verb.command:
            continue
        *groups, name = verb.command.split()
        parent = root
        for group in groups:
            child = parent.commands[group]
            assert isinstance(child, click.Group)
            parent = child
        parent.add_command(_command(verb, name))


def common_options() -> list[click.Parameter]:
    """Return the options that every command has."""
    return [
        click.Option(
            ["--project"],
            metavar="DIR",
            help="the project's folder (default: found from here)",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="print JSON for scripts"),
        click.Option(
            ["--set", "settings"],
            multiple=True,
            metavar="KEY=VALUE",
            help="override a setting, e.g. embedding.model=none",
        ),
    ]


def format_option(usual: str = "text", more: Sequence[str] = ()) -> click.Option:
    """Return the option of commands that list things."""
    names = "".join([f"{name}, " for name in more])
    return click.Option(
        ["--format", "form"],
        type=click.Choice([*more, *FORMATS]),
        metavar="FORMAT",
        default=usual,
        help=f"{names}json, md, table or text (default: {usual})",
    )


def _command(verb: Verb, name: str) -> click.Command:
    params: list[click.Parameter] = []
    for param in verb.params_for("command"):
        params += _as_click(param, completing.complete(verb.command, param.name))
    if verb.columns:
        params.append(format_option(verb.usual_format, sorted(verb.formats)))
    command = VerbCommand(
        name,
        params=[*params, *common_options()],
        help=verb.about,
        epilog=_epilog(verb),
        callback=_callback(verb),
    )
    command.verb = verb
    return command


def _epilog(verb: Verb) -> str:
    lines = ["examples:"]
    for line in verb.command_lines():
        lines.append(f"  {line}")
    if len(lines) == 1:
        return f"{EXIT_CODES}\n"
    return "\n".join([*lines, "", EXIT_CODES, ""])


def _callback(verb: Verb) -> Any:
    def run(
        project: str | None,
        as_json: bool,
        settings: tuple[str, ...],
        form: str | None = None,
        **given: Any,
    ) -> int:
        arguments = arguments_of(verb, given, read_named)
        lanes = verb.lanes_for(arguments)
        workspace = open_workspace(project, settings, lanes=lanes, needed=verb.settings)
        # A search says how much of the index is missing; a hook has to be quick.
        hurried = verb.meaning or is_hook(arguments)
        if hurried:
            catch_up_in_time(workspace, embed=verb.meaning)
        elif verb.current:
            catch_up(workspace, embed=False)
        try:
            answer = call.answer(verb, Ask(workspace=workspace, rim="command"), arguments)
            print_answer(
                answer,
                reader_of(verb, arguments),
                as_json=as_json,
                form=form,
                columns=verb.columns,
                formats=verb.formats,
            )
        finally:
            if is_hook(arguments):
                save(workspace)
                start_server(project, settings)
            elif hurried:
                complete(workspace, project, settings)
            elif verb.role == "writer":
                save(workspace)
        return int(verb.failed is not None and verb.failed(answer))

    return run


def is_hook(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a command is run by the host of an agent."""
    return bool(arguments.get("hook"))


def reader_of(verb: Verb, arguments: Mapping[str, Any]) -> Callable[[Any], str]:
    """Return how a person reads the answer of a verb."""
    terminal = verb.terminal
    if terminal is None:
        return verb.text
    return lambda answer: terminal(answer, arguments)


def read_named(file: str, of_hook: bool) -> str:
    """Return the text of a file, or of what is piped in."""
    if file:
        return read_text(file)
    if of_hook:
        return hook.read_input()
    return read_input()


def arguments_of(verb: Verb, given: Mapping[str, Any], read: ReadText) -> dict[str, Any]:
    """Turn what was typed into the arguments of a verb."""
    arguments: dict[str, Any] = {}
    _check_input(verb, given)
    for param in verb.params_for("command"):
        value = given[param.name]
        if param.arg.text:
            arguments[param.name] = _long_text(param, value, given.get(_file_name(param)), read)
        elif param.arg.words:
            arguments[param.name] = " ".join(value) or _absent(param)
        elif param.plain_type == dict[str, Any]:
            arguments[param.name] = _pairs(param, value) or None
        elif param.repeated:
            arguments[param.name] = list(value) or _absent(param)
        else:
            arguments[param.name] = value
    if is_hook(arguments) and not arguments["task"]:
        arguments["task"] = hook.prompt(read("", True)) or None
    return arguments


def _absent(param: Param) -> Any:
    default = param.command_default
    if default is REQUIRED:
        return [] if param.repeated else ""
    return list(default) if param.repeated and default is not None else default


def _long_text(param: Param, typed: str | None, file: str | None, read: ReadText) -> str | None:
    if _is_piped(param, typed, file):
        text = read("", False)
        if param.required:
            return text
        # A part of a text does not end with the last line end of a pipe.
        return text.removesuffix("\n")
    if typed is None and file is not None:
        return read(file, False)
    return typed


def _is_piped(param: Param, typed: str | None, file: str | None) -> bool:
    """Tell whether a text is read from standard input."""
    if typed is not None:
        return typed == STANDARD_INPUT
    if file is not None:
        return file == STANDARD_INPUT
    return param.required


def _check_input(verb: Verb, given: Mapping[str, Any]) -> None:
    """Refuse two texts from standard input, which can be read once."""
    piped = []
    for param in verb.params_for("command"):
        if param.arg.text and _is_piped(param, given[param.name], given.get(_file_name(param))):
            piped.append(param.name)
    if len(piped) > 1:
        raise ValidationError(
            f"{' and '.join(piped)} cannot both be read from standard input",
            "Give one of them in a file",
        )


def _pairs(param: Param, pairs: Iterable[str]) -> dict[str, str | None]:
    fields: dict[str, str | None] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            shape = param.arg.metavar or "KEY=VALUE"
            raise ValidationError(f"{param.option} {pair!r} is not {shape}", f"Write it as {shape}")
        fields[key.strip()] = value.strip() or None
    return fields


def _file_name(param: Param) -> str:
    return f"{param.name}_file"


def _as_click(param: Param, complete: completing.Complete | None) -> list[click.Parameter]:
    if param.arg.positional:
        return [_argument(param, complete)]
    if param.arg.text:
        return [_option(param, complete), _file_option(param)]
    return [_option(param, complete)]


def _file_option(param: Param) -> click.Option:
    """Return the option for a file with the text; one that is required may also be piped in."""
    flag = f"{param.option}-file"
    usual = ""
    if param.required:
        flag = "--file"
        usual = " (the default)"
    about = f"a file with the text; - is standard input{usual}"
    return click.Option([flag, _file_name(param)], metavar="FILE", help=about)


def _argument(param: Param, complete: completing.Complete | None) -> click.Argument:
    default = param.command_default
    facts: dict[str, Any] = {"type": _click_type(param), "shell_complete": complete}
    facts["required"] = default is REQUIRED and not param.arg.text
    if param.repeated or param.arg.words:
        facts["nargs"] = -1
    elif default is not REQUIRED or param.arg.text:
        # A default that is said, even if it is nothing, makes a required argument optional.
        facts["default"] = None if default is REQUIRED else default
    return click.Argument([param.name], **facts)


def _option(param: Param, complete: completing.Complete | None) -> click.Option:
    names = [param.option, param.name]
    help_text = param.arg.help
    if param.plain_type is bool:
        return click.Option(names, is_flag=True, help=help_text)
    default = param.command_default
    facts: dict[str, Any] = {"type": _click_type(param), "shell_complete": complete}
    facts["metavar"] = param.arg.metavar or None
    facts["required"] = default is REQUIRED and not param.arg.text
    if param.repeated or param.plain_type == dict[str, Any]:
        facts["multiple"] = True
        help_text += "; may be repeated"
    elif default not in (REQUIRED, None):
        facts["default"] = default
        if default != "":
            help_text += f" (default: {default})"
    return click.Option(names, help=help_text, **facts)


def _click_type(param: Param) -> Any:
    if param.choices:
        return click.Choice(param.choices)
    if param.plain_type is int:
        return click.INT
    return click.FLOAT if param.plain_type is float else click.STRING
