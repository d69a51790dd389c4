"""Arguments that come from a program: their types, their sizes, and defaults from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic import ValidationError as ArgumentError

from ragdocs.config import Config
from ragdocs.errors import ValidationError
from ragdocs.serve.surface import REQUIRED, VERBS, Param, Verb, bounds

# Whose parameters are accepted: those of the API, or those of commands too.
Accepted = Literal["api", "all"]
MOST_PROBLEMS = 5


def arguments_model(verb: Verb, accepted: Accepted = "api") -> type[BaseModel]:
    """Return the arguments of a verb as a model that refuses unknown ones."""
    return _arguments_model(verb.name, accepted)


@cache
def _arguments_model(verb_name: str, accepted: Accepted) -> type[BaseModel]:
    verb = VERBS[verb_name]
    fields: dict[str, Any] = {}
    for param in _params(verb, accepted):
        fields[param.name] = (param.type, _field(param))
    name = "".join(word.capitalize() for word in verb.name.split("_"))
    return create_model(f"{name}Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _params(verb: Verb, accepted: Accepted) -> tuple[Param, ...]:
    if accepted == "all":
        return verb.params
    return verb.params_for("api")


def _field(param: Param) -> Any:
    if param.default is REQUIRED:
        return Field(description=param.arg.help)
    return Field(default=param.default, description=param.arg.help)


def checked(
    verb: Verb, config: Config, given: Mapping[str, Any], accepted: Accepted = "api"
) -> dict[str, Any]:
    """Return all arguments of a call; refuse what is unknown, too large or of another type."""
    bounds.check_arguments(verb.name, given)
    try:
        model = arguments_model(verb, accepted).model_validate(given)
    except ArgumentError as error:
        raise ValidationError(_problems(error), "Correct the arguments and call again") from error
    arguments = dict(model)
    for param in _params(verb, accepted):
        if param.arg.setting and param.name not in given:
            section, _, key = param.arg.setting.partition(".")
            arguments[param.name] = getattr(getattr(config, section), key)
    return arguments


def _problems(error: ArgumentError) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_input=False)[:MOST_PROBLEMS]:
        parameter = ".".join(map(str, problem["loc"]))
        problems.append(f"{parameter}: {problem['msg']}")
    return "; ".join(problems)
