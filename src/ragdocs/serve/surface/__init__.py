"""What each verb is called, takes and answers, declared once; every rim is made from the
declarations.
"""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from ragdocs.caller import Caller, current
from ragdocs.types import Hit

if TYPE_CHECKING:
    # Opening a workspace imports every engine: whoever answers has done that.
    from ragdocs.workspace import Workspace

Effect = Literal["read", "add", "replace", "remove"]
Role = Literal["reader", "writer"]

REQUIRED = inspect.Parameter.empty

# Which parameters each rim offers, by what is said of them.
OFFERED = {
    "tool": ("", "tool"),
    "command": ("", "command", "people"),
    "api": ("", "tool", "people"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """What is said about one parameter, and how the command line writes it."""

    help: str
    # The command's option, if it is not the parameter's own name.
    flag: str = ""
    # The name of the value in the command's help.
    metavar: str = ""
    # Written without an option.
    positional: bool = False
    # All words that are left belong to it.
    words: bool = False
    # A long text: an option, a file, or standard input.
    text: bool = False
    # Offered to tools only, to commands only, or to both commands and pages: each parameter of a
    # tool costs every agent tokens.
    only: Literal["", "tool", "command", "people"] = ""
    # The key of the configuration that has the default.
    setting: str = ""
    # The default on the command line, where a person expects another one than an agent.
    command_default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a verb, read off its signature."""

    name: str
    type: Any
    default: Any
    arg: Arg

    @property
    def required(self) -> bool:
        """Whether a call must have it."""
        return self.default is REQUIRED

    @property
    def command_default(self) -> Any:
        """The value on the command line where none is given; REQUIRED if one must be."""
        if self.arg.command_default is REQUIRED:
            return self.default
        return self.arg.command_default

    @property
    def option(self) -> str:
        """The option of the command line."""
        return self.arg.flag or "--" + self.name.replace("_", "-")

    @property
    def plain_type(self) -> Any:
        """The type of a value that is given, so without None."""
        options = [option for option in get_args(self.type) if option is not type(None)]
        optional = type(None) in get_args(self.type)
        if optional and len(options) == 1:
            return options[0]
        return self.type

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that are allowed, where only some are."""
        kind = self.plain_type
        if get_origin(kind) is list:
            kind = get_args(kind)[0]
        if get_origin(kind) is not Literal:
            return ()
        return get_args(kind)

    @property
    def repeated(self) -> bool:
        """Whether the command line takes it several times."""
        return get_origin(self.plain_type) is list


@dataclass(frozen=True, slots=True)
class ServerState:
    """How the server that answers stands to its files."""

    ready: bool
    watcher: str
    heartbeat: str | None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the client's own model wrote."""

    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call: of which project, by whom, and what only the rim knows."""

    workspace: Workspace
    caller: Caller = field(default_factory=current)
    # Whose words an answer uses: an agent's tools or a person's commands.
    rim: Literal["tool", "command"] = "tool"
    # What the caller has read since it connected; nothing for a command, which is alone.
    session: dict[str, Any] | None = None
    state: ServerState | None = None
    model_answer: ModelAnswer | None = None

    @property
    def room(self) -> int:
        """How many characters an answer may have."""
        return self.workspace.room

    @property
    def role(self) -> str:
        """What the caller may do in this project."""
        if self.workspace.shared_lanes:
            return self.workspace.role()
        return self.caller.role

    def note_question(self, question: str, hits: Iterable[Hit]) -> None:
        """Keep a question whose hits are all below the floor, where the user keeps such."""
        if self.workspace.tidying.questions is None:
            return
        # What is not found yet may be in a file that is not read yet.
        if self.state is not None and not self.state.ready:
            return
        from ragdocs.search.floor import FLOOR

        is_found = any(hit.score >= FLOOR for hit in hits)
        self.workspace.tidying.questions.note(question, self.now, found=is_found)

    @property
    def now(self) -> datetime:
        """The moment of the call, in the time zone of the caller."""
        return self.workspace.clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Everything that is known about a verb outside the function that does it."""

    name: str
    run: Callable[..., Any]
    text: Callable[[Any], str]
    toolset: str
    title: str
    effect: Effect
    # When an agent calls it, as the instructions say it: "remember for a single note".
    situation: str = ""
    # Further toolsets that bring it along.
    also_in: tuple[str, ...] = ()
    # Of the command, such as "memory search"; "" for none.
    command: str = ""
    # What must be open; nothing else is opened or brought up to date.
    lanes: tuple[str, ...] = ()
    # Settings that a command needs, whatever the configuration says.
    settings: Mapping[str, object] = field(default_factory=dict)
    # Whether a command brings the index up to its files first.
    current: bool = True
    # Whether passages must have vectors before a command answers.
    meaning: bool = False
    # How a person reads the answer in a terminal, where that differs from the text; it sees the
    # arguments too.
    terminal: Callable[[Any, Mapping[str, Any]], str] | None = None
    # The fields of each result that a table shows; without any there is no table.
    columns: tuple[str, ...] = ()
    # Further formats of the command, and how each is written.
    formats: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    # How a command writes the answer where no format is named.
    usual_format: Literal["text", "table"] = "text"
    # Whether an answer is a failure to a script: exit code 1.
    failed: Callable[[Any], bool] | None = None
    # Whether an agent has it as a tool.
    tool: bool = True
    # Whether the page asks it through the API, although no agent has it as a tool.
    page: bool = False
    role: Role = "reader"
    # Calls that work, for help and documentation.
    examples: tuple[Mapping[str, Any], ...] = ()
    # Further lines for the command's help, such as pipes.
    shell_examples: tuple[str, ...] = ()
    # A sentence for the list of commands, where the description is for an agent.
    about: str = ""
    # The question that the client's own model may be asked, made from the arguments.
    question: Callable[..., str] | None = None
    params: tuple[Param, ...] = ()
    result: Any = None

    @property
    def purpose(self) -> str:
        """What the verb does and when to call it: the first paragraph of its docstring.

        A model is told this and no more, because a client pays for it in every session.
        """
        first, _, _ = inspect.cleandoc(self.run.__doc__ or "").partition("\n\n")
        return " ".join(first.split())

    @property
    def details(self) -> str:
        """What people read beside the purpose: the rest of the docstring."""
        _, _, rest = inspect.cleandoc(self.run.__doc__ or "").partition("\n\n")
        return " ".join(rest.split())

    @property
    def explanation(self) -> str:
        """What people are told: purpose, details, and calls that work."""
        text = f"{self.purpose} {self.details}".rstrip()
        return f"{text}{_examples(self.examples)}"

    def params_for(self, rim: Literal["tool", "command", "api"]) -> tuple[Param, ...]:
        """Return the parameters that a rim offers."""
        offered = OFFERED[rim]
        return tuple(param for param in self.params if param.arg.only in offered)

    def lanes_for(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the lanes that a call needs: those it names, or all that the verb may use."""
        named = arguments.get("lane")
        if not named or "all" in named:
            return self.lanes
        return tuple(_listed(named))

    def command_lines(self) -> Iterator[str]:
        """Write the examples as commands."""
        for example in self.examples:
            yield command_line(self, example)
        yield from self.shell_examples


VERBS: dict[str, Verb] = {}
# A function keeps its signature when it is declared, so that a library has its types.
Run = TypeVar("Run", bound=Callable[..., Any])


def verb(**declared: Any) -> Callable[[Run], Run]:
    """Declare a function as a verb; its first parameter is who asks and of what, the others are the
    caller's.
    """

    def declare(run: Run) -> Run:
        hints = get_type_hints(run, include_extras=True)
        signature = inspect.signature(run)
        given = list(signature.parameters.values())[1:]
        params = tuple(_param(parameter, hints[parameter.name]) for parameter in given)
        if run.__name__ in VERBS:
            raise TypeError(f"{run.__name__} is declared twice")
        VERBS[run.__name__] = Verb(
            name=run.__name__, run=run, params=params, result=hints["return"], **declared
        )
        return run

    return declare


def _param(parameter: inspect.Parameter, hint: Any) -> Param:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{parameter.name} has no Arg, so nobody would be told what it is")
    kind, arg = get_args(hint)
    return Param(parameter.name, kind, parameter.default, arg)


def _examples(examples: tuple[Mapping[str, Any], ...]) -> str:
    if not examples:
        return ""
    written = [json.dumps(example, ensure_ascii=False) for example in examples]
    word = "Example" if len(written) == 1 else "Examples"
    return f" {word}: {' or '.join(written)}"


def command_line(verb: Verb, arguments: Mapping[str, Any]) -> str:
    """Write a call as a person would type it."""
    words = ["ragdocs", *verb.command.split()]
    options: list[str] = []
    for param in verb.params_for("command"):
        value = arguments.get(param.name)
        if value is None or value is False:
            continue
        if param.arg.positional:
            words += _positional_words(value)
        else:
            options += _option_words(param, value)
    return " ".join([*words, *options])


def _positional_words(value: Any) -> list[str]:
    return [shlex.quote(str(word)) for word in _listed(value)]


def _option_words(param: Param, value: Any) -> list[str]:
    if value is True:
        return [param.option]
    if isinstance(value, dict):
        return _option_words(param, _pairs(value))
    words: list[str] = []
    for item in _listed(value):
        words += [param.option, shlex.quote(str(item))]
    return words


def _pairs(table: Mapping[str, Any]) -> list[str]:
    """Write a table as KEY=VALUE; a key without a value is one to remove."""
    pairs = []
    for key, value in table.items():
        written = "" if value is None else value
        pairs.append(f"{key}={written}")
    return pairs


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value]
