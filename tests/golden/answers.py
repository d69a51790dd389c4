"""Play scenarios and write down what came back, for programs and for people."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tests.golden import calls, lines, rims
from tests.golden.normal import pretty
from tests.golden.world import World

STDIN = "stdin:"
RULE = "=" * 8
# Between two calls, so that what they write has times of its own.
SECONDS = 60


def tool_answers(world: World, name: str) -> tuple[str, str]:
    """Play the scenario of a tool; return its structured answers and its texts."""
    scenario = calls.SCENARIOS[name]
    answers: list[rims.Answer] = []
    records: list[dict[str, Any]] = []
    texts: list[str] = []
    world.restore()
    with (
        world.entered(name),
        rims.connect(world.project, scenario.flags, everything=scenario.everything) as connection,
    ):
        for tool, arguments in scenario.calls:
            answer = connection.call(tool, filled(arguments, answers))
            answers.append(answer)
            asked = f"{tool} {shortened(arguments)}"
            kind = "error" if answer.failed else "text"
            texts.append(f"{RULE} {asked}\n{RULE} {kind}\n{world.normal.text(answer.text)}\n")
            if answer.structured is not None:
                records.append({"call": asked, "answer": world.normal.value(answer.structured)})
            world.clock.advance(SECONDS)
    return pretty(records), "\n".join(texts)


def filled(arguments: Mapping[str, Any], answers: Sequence[rims.Answer]) -> dict[str, Any]:
    """Put parts of earlier answers where arguments ask for them."""
    return {name: part(value, answers) for name, value in arguments.items()}


def part(value: Any, answers: Sequence[rims.Answer]) -> Any:
    """Return the part of an earlier answer that a value such as "$0.result.1.id" names.

    An answer without that part has changed its shape, which the comparison shows: the value stays
    as it is.
    """
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    number, *steps = value[1:].split(".")
    named: Any = answers[int(number)].structured
    try:
        for step in steps:
            named = named[int(step)] if isinstance(named, list) else named[step]
    except (LookupError, TypeError):
        return value
    return named


def shortened(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:300]} … ({len(text)} characters)"


def command_answers(world: World, name: str) -> tuple[str, str]:
    """Play the scenario of a command twice; return its answers in JSON and its texts."""
    texts = []
    records = []
    for line, ended in played(world, name, ()):
        parts = [f"{RULE} {line}", f"{RULE} exit code {ended.code}"]
        parts += [world.normal.text(ended.out)] if ended.out else []
        if ended.err and ended.code != rims.WRONG_USAGE:
            # Errors of usage are worded by the parser, which differs between versions of Python.
            parts += [f"{RULE} standard error", world.normal.text(ended.err)]
        texts.append("\n".join(parts).rstrip("\n") + "\n")
    for line, ended in played(world, name, ("--json",)):
        printed = (
            world.normal.value(rims.parsed(ended.out)) if ended.out and "--json" in line else None
        )
        if printed is not None:
            records.append({"line": line, "code": ended.code, "answer": printed})
    return pretty(records), "\n".join(texts)


def played(world: World, name: str, more: Sequence[str]) -> list[tuple[str, rims.Run]]:
    """Run the lines of a scenario in a fresh copy of the project."""
    runs = []
    folders = {"world": str(world.root), "other": str(world.other), "project": str(world.project)}
    world.restore()
    with world.entered(f"{name} {' '.join(more)}"):
        for line in lines.SCENARIOS[name]:
            every = shlex.split(line)
            words = [word for word in every if not word.startswith(STDIN)]
            piped = "".join(word.removeprefix(STDIN) for word in every if word.startswith(STDIN))
            words += more if words else ()
            ended = rims.command([word.format(**folders) for word in words], piped)
            runs.append((f"ragdocs {' '.join(map(quoted, words))}", ended))
            world.clock.advance(SECONDS)
    return runs


def quoted(word: str) -> str:
    return f'"{word}"' if " " in word or not word else word
