"""One key of the configuration: which values it takes, and from whom."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragdocs.errors import ConfigError

FILE_NAME = "config.toml"
USER_FILE = f"~/.config/ragdocs/{FILE_NAME}"
LIST_LIMIT = 64
# Entries of a list in a message.
MOST_SHOWN = 4
TEXT_LIMIT = 512
EXCERPT_LIMIT = 60
TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")
BOOLEANS = dict.fromkeys(TRUE_WORDS, True) | dict.fromkeys(FALSE_WORDS, False)


def declare(default: object, about: str, **rules: object) -> Any:
    """Declare a key: its default, one sentence about it, and its rules as fields of `Key`."""
    is_shown = not rules.get("secret")
    return field(default=default, metadata={"about": about, **rules}, repr=is_shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: the values it accepts, and from whom.

    `low` and `high` bound a number, or the length of a list.
    """

    section: str
    name: str
    default: Any
    about: str
    low: float = 0
    high: float = LIST_LIMIT
    choices: tuple[str, ...] = ()
    # The values that a project's own file may set, where the user may set more.
    project_choices: tuple[str, ...] = ()
    globs: bool = False
    # A second variable that other programs read too; the own one has the last word.
    shared_variable: str = ""
    # A folder; a project may only name one inside itself.
    folder: bool = False
    # Only the user's own file, the environment and flags may set it.
    personal: bool = False
    # It may hold a password, so it is shown without one.
    secret: bool = False

    @property
    def full_name(self) -> str:
        """The dotted name."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return f"RAGDOCS_{self.section}_{self.name}".upper()

    @property
    def numeric(self) -> bool:
        """Whether the value is a number."""
        return type(self.default) in {int, float}

    @property
    def wanted(self) -> str:
        """The values accepted, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"a whole number from {self.low} to {self.high}"
        if isinstance(self.default, float):
            return f"a number from {self.low} to {self.high}"
        choices = list(map(toml, self.choices))
        if isinstance(self.default, str):
            return " or ".join(choices) or "a text"
        if self.globs:
            return "a list of globs"
        return f"a list of {', '.join(choices) or 'texts'}"

    @property
    def shown_default(self) -> str:
        """The default as TOML; of a long list its beginning."""
        if isinstance(self.default, tuple) and len(self.default) > MOST_SHOWN:
            beginning = toml(self.default[:MOST_SHOWN]).removesuffix("]")
            return f"{beginning}, and {len(self.default) - MOST_SHOWN} more]"
        return toml(self.default)

    def parse(self, text: str) -> object:
        """Read a value from plain text; text that cannot be read stays, for `check` to refuse."""
        word = text.strip()
        if isinstance(self.default, bool):
            return BOOLEANS.get(word.casefold(), word)
        if isinstance(self.default, tuple):
            return _words(word)
        if self.numeric:
            with contextlib.suppress(ValueError):
                return type(self.default)(word)
        return word

    def check(self, value: object, source: str, *, trusted: bool = True) -> object:
        """Return the value in the type of the default, or raise what is wrong with it."""
        if self.personal and not trusted:
            raise ConfigError(
                f"{source}: a project may not set {self.full_name}",
                f"Remove it there; your own choice goes into {USER_FILE} or {self.variable}",
            )
        if self.numeric and isinstance(value, int | float) and not isinstance(value, bool):
            if not self.low <= value <= self.high:
                raise self._error(source, f"is {self._excerpt(value)}, out of range")
            if isinstance(self.default, float):
                value = float(value)
        if isinstance(self.default, tuple) and isinstance(value, list | tuple):
            return self._checked_list(value, source)
        if type(value) is not type(self.default):
            raise self._error(source, f"is {self._excerpt(value)}")
        if isinstance(value, str):
            self._check_text(value, source)
            if not trusted:
                self._check_project_may(value, source)
        return value

    def _checked_list(self, values: Sequence[object], source: str) -> tuple[str, ...]:
        if not self.low <= len(values) <= self.high:
            bounds = f"{self.low} to {self.high} of them"
            raise self._error(source, f"has {len(values)} entries", bounds)
        texts: list[str] = []
        for value in values:
            if not isinstance(value, str):
                raise self._error(source, f"holds {excerpt(value)}")
            self._check_text(value, source)
            if self.globs and not _stays_inside(value):
                rule = "relative to the project and inside it"
                raise self._error(source, f"holds {excerpt(value)}", rule)
            texts.append(value)
        return tuple(dict.fromkeys(texts))

    def _check_text(self, value: str, source: str) -> None:
        if self.choices and value not in self.choices:
            suggestion = nearest(value, self.choices)
            if suggestion:
                suggestion = f"perhaps {toml(suggestion)}"
            raise self._error(source, f"names {excerpt(value)}", suggestion)
        categories = set(map(unicodedata.category, value))
        has_controls = not categories.isdisjoint({"Cc", "Cs"})
        if has_controls or not value.strip() or len(value) > TEXT_LIMIT:
            rule = f"of 1 to {TEXT_LIMIT} printable characters"
            raise self._error(source, f"holds {self._excerpt(value)}", rule)

    def show(self, value: object) -> str:
        """Write a value as TOML, without a password."""
        if self.secret and isinstance(value, str) and value != self.default:
            from ragdocs.system.postgres.database import without_password

            return toml(without_password(value))
        return toml(value)

    def _excerpt(self, value: object) -> str:
        if self.secret and isinstance(value, str):
            return "a value that is not shown"
        return excerpt(value)

    def _check_project_may(self, value: str, source: str) -> None:
        """Raise if a project sets a value that only the user may."""
        if self.folder and not _stays_inside(value):
            allowed = "Name one inside the project"
        elif self.project_choices and value not in self.project_choices:
            allowed = "Write " + " or ".join(map(toml, self.project_choices))
        else:
            return
        raise ConfigError(
            f"{source}: a project may not set {self.full_name} to {excerpt(value)}",
            f"{allowed} there; your own choice goes into {USER_FILE} or {self.variable}",
        )

    def _error(self, source: str, fault: str, rule: str = "") -> ConfigError:
        accepts = ", ".join(filter(None, (self.wanted, rule)))
        hint = f"It takes {accepts}; the default is {self.name} = {self.shown_default}"
        return ConfigError(f"{source}: {self.full_name} {fault}", hint)


def toml(value: object) -> str:
    """Write a value as TOML, which for these types is JSON."""
    return json.dumps(value, ensure_ascii=False)


def nearest(word: str, options: Iterable[str]) -> str:
    """Return the option that a misspelt word is nearest to, or nothing."""
    import difflib

    matches = difflib.get_close_matches(word[:TEXT_LIMIT], list(options), 1)
    return "".join(matches)


def excerpt(value: object) -> str:
    """Show a value that anybody may have written: short, on one line, harmless to a terminal."""
    if isinstance(value, str):
        if len(value) > EXCERPT_LIMIT:
            value = f"{value[:EXCERPT_LIMIT]}…"
        return repr(value)
    is_huge = isinstance(value, int) and abs(value) >= sys.maxsize
    if isinstance(value, int | float) and not is_huge:
        return toml(value)
    names = {list: "a list", dict: "a table", int: "a huge number"}
    return names.get(type(value), f"a {type(value).__name__}")


def _words(text: str) -> list[str]:
    """Read a list as it is written on a command line, or as it is copied out of a file."""
    if text.startswith("[") and text.endswith("]"):
        import tomllib

        with contextlib.suppress(tomllib.TOMLDecodeError):
            return list(map(str, tomllib.loads(f"list = {text}")["list"]))
    return list(filter(None, map(str.strip, text.split(","))))


def _stays_inside(path: str) -> bool:
    is_absolute = re.match(r"[/\\~]|[A-Za-z]:", path)
    return not is_absolute and ".." not in re.split(r"[/\\]", path)
