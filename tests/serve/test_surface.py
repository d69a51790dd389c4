"""One declaration makes a tool, a command and a section of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from typing_extensions import TypedDict

from ragdocs.caller import Caller
from ragdocs.errors import UnavailableError
from ragdocs.serve import reference
from ragdocs.serve.cli import app
from ragdocs.serve.surface import VERBS, Arg, Ask, call, catalog, docs, verb

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


class Greeting(TypedDict):
    """A greeting."""

    greeting: str


@pytest.fixture
def greet() -> Iterator[None]:
    """Declare one more verb, as a developer would in a module of `surface`."""

    def greet(
        ask: Ask,
        name: Annotated[str, Arg(help="whom to greet", positional=True)],
        times: Annotated[int, Arg(help="how often")] = 1,
    ) -> Greeting:
        """Greet somebody. Call it when somebody comes in.

        People may be greeted several times.
        """
        del ask
        return Greeting(greeting=f"hello {name} " * times)

    # Type hints are read in the module of the function, which has to know its names.
    greet.__module__ = docs.__name__
    greet.__annotations__ = {
        "ask": Any,
        "name": Annotated[str, Arg(help="whom to greet", positional=True)],
        "times": Annotated[int, Arg(help="how often")],
        "return": Greeting,
    }
    before = dict(VERBS)
    verb(
        command="docs greet",
        toolset="docs",
        title="Greet",
        effect="read",
        text=lambda answer: answer["greeting"],
        about="greet somebody",
        examples=({"name": "Ada", "times": 2},),
    )(greet)
    yield
    VERBS.clear()
    VERBS.update(before)


@pytest.mark.usefixtures("greet")
def test_a_declared_verb_is_a_tool(connect: Connect) -> None:
    session = connect()
    assert session.call("greet", name="Ada") == {"greeting": "hello Ada "}
    tool = session.listed({"greet"})["greet"]
    assert tool["inputSchema"]["properties"]["name"]["description"] == "whom to greet"
    assert tool["description"] == "Greet somebody. Call it when somebody comes in."


@pytest.mark.usefixtures("greet")
def test_a_declared_verb_is_a_command(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["docs", "greet", "Ada", "--times", "2", "--project", str(project.root)]
    assert app.main(words) == 0
    assert capsys.readouterr().out == "hello Ada hello Ada \n"
    assert app.main(["docs", "greet", "--help"]) == 0
    assert "ragdocs docs greet Ada --times 2" in capsys.readouterr().out


@pytest.mark.usefixtures("greet")
def test_a_declared_verb_is_in_the_documentation() -> None:
    page = reference.tools()
    assert "| `name` | string | required | whom to greet |" in page
    assert 'several times.\n\n```json\n{"name": "Ada", "times": 2}\n```' in page
    assert "| `ragdocs docs greet NAME [--times TIMES]` | greet somebody |" in reference.commands()


def test_every_tool_has_a_command_and_every_parameter_a_few_words() -> None:
    for declared in catalog.every():
        assert declared.command, declared.name
        assert declared.about, declared.name
        for param in declared.params:
            words = len(param.arg.help.split())
            assert words, (declared.name, param.name)
            # A client pays for every word of a tool.
            is_listed = declared.tool and param in declared.params_for("tool")
            assert words <= 8 or not is_listed, (declared.name, param.name)


def test_every_example_is_a_call_that_the_command_line_takes() -> None:
    root = app.build()
    for declared in catalog.every():
        for line in declared.command_lines():
            assert line.split()[0] == "ragdocs" or "|" in line, line
        command: Any = root
        for word in declared.command.split():
            command = command.commands[word]
        for example in declared.examples:
            assert set(example) <= {param.name for param in declared.params}, declared.name


def test_a_parameter_without_words_about_it_cannot_be_declared() -> None:
    def mute(ask: Any, name: str) -> Greeting:
        """Say nothing."""
        del ask, name
        return Greeting(greeting="")

    mute.__annotations__ = {"ask": Any, "name": str, "return": Greeting}
    with pytest.raises(TypeError, match="name has no Arg"):
        verb(toolset="docs", title="Mute", effect="read", text=str)(mute)


def test_a_reader_may_not_write(project: Project) -> None:
    workspace = project.open()
    reader = Ask(workspace=workspace, caller=Caller(role="reader"))
    assert call.answer(VERBS["get_memory_stats"], reader, {})["count"] == 0
    note = {"content": "Ships in the night."}
    with pytest.raises(UnavailableError, match="remember is for writers"):
        call.answer(VERBS["remember"], reader, note)
    writer = Ask(workspace=workspace, caller=Caller())
    assert call.answer(VERBS["remember"], writer, note)["id"].startswith("mem_")


def test_every_verb_that_changes_something_is_for_writers() -> None:
    for declared in catalog.every():
        if declared.effect != "read" and declared.name != "memory_get":
            assert declared.role == "writer", declared.name
