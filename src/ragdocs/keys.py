"""What may a key of the configuration be? Its type, its bounds, its default, and who may set it."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragdocs.errors import ConfigError

FILE_NAME = "config.toml"
LIST_LIMIT = 64
TEXT_LIMIT = 512
SHOWN_LIMIT = 60
USER_FILE = f"~/.config/ragdocs/{FILE_NAME}"
WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def declare(default: object, about: str, **rules: object) -> Any:
    """Declare a key: its default, one sentence about it, and its rules as fields of `Key`."""
    return field(default=default, metadata={"about": about, **rules})


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: what it accepts, and from whom.

    `low` and `high` bound a number, or the length of a list.
    """

    section: str
    name: str
    default: Any
    about: str
    low: float = 0
    high: float = LIST_LIMIT
    choices: tuple[str, ...] = ()
    # What a project's own file may say, where that is less than the user may.
    project_choices: tuple[str, ...] = ()
    globs: bool = False
    # A second variable that other programs read too; the own one has the last word.
    shared_variable: str = ""
    # A folder; a project may only name one inside itself.
    folder: bool = False

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
        if self.numeric:
            return f"a {'whole ' if isinstance(self.default, int) else ''}number from {self.low} to {self.high}"
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, str):
            return " or ".join(map(toml, self.choices)) or "a text"
        return f"a list of {', '.join(map(toml, self.choices)) or ('globs' if self.globs else 'texts')}"

    def parse(self, text: str) -> object:
        """Read a value from plain text; what cannot be read stays text, for `check` to refuse."""
        word = text.strip()
        if isinstance(self.default, bool):
            return WORDS.get(word.casefold(), word)
        if isinstance(self.default, tuple):
            return [part.strip() for part in word.split(",") if part.strip()]
        if self.numeric:
            with contextlib.suppress(ValueError):
                return type(self.default)(word)
        return word

    def check(self, value: object, where: str, *, trusted: bool = True) -> object:
        """Return the value in the type of the default, or raise what is wrong with it."""
        if self.numeric and isinstance(value, int | float) and not isinstance(value, bool):
            if not self.low <= value <= self.high:
                raise self._error(where, f"is {shown(value)}, out of range")
            if isinstance(self.default, float):
                value = float(value)
        if isinstance(self.default, tuple) and isinstance(value, list | tuple):
            return self._checked_list(value, where)
        if type(value) is not type(self.default):
            raise self._error(where, f"is {shown(value)}")
        if isinstance(value, str):
            self._check_text(value, where)
            if self.folder and not trusted and not _stays_inside(value):
                hint = f"Name one inside the project there; your own choice goes into {USER_FILE} or {self.variable}"
                raise ConfigError(
                    f"{where}: a project may not set {self.full_name} to {shown(value)}", hint
                )
            if self.project_choices and not trusted and value not in self.project_choices:
                allowed = " or ".join(map(toml, self.project_choices))
                hint = f"Write {allowed} there; your own choice goes into {USER_FILE} or {self.variable}"
                raise ConfigError(
                    f"{where}: a project may not set {self.full_name} to {shown(value)}", hint
                )
        return value

    def _checked_list(self, values: Sequence[object], where: str) -> tuple[str, ...]:
        if not self.low <= len(values) <= self.high:
            raise self._error(
                where, f"has {len(values)} entries", f"{self.low} to {self.high} of them"
            )
        for value in values:
            if not isinstance(value, str):
                raise self._error(where, f"holds {shown(value)}")
            self._check_text(value, where)
            if self.globs and not _stays_inside(value):
                raise self._error(
                    where, f"holds {shown(value)}", "relative to the project and inside it"
                )
        return tuple(dict.fromkeys(map(str, values)))

    def _check_text(self, value: str, where: str) -> None:
        if self.choices and value not in self.choices:
            near = nearest(value, self.choices)
            raise self._error(
                where, f"names {shown(value)}", f"perhaps {toml(near)}" if near else ""
            )
        control = any(unicodedata.category(character) in {"Cc", "Cs"} for character in value)
        if control or not value.strip() or len(value) > TEXT_LIMIT:
            raise self._error(
                where, f"holds {shown(value)}", f"of 1 to {TEXT_LIMIT} printable characters"
            )

    def _error(self, where: str, fault: str, more: str = "") -> ConfigError:
        accepts = ", ".join(filter(None, (self.wanted, more)))
        hint = f"It takes {accepts}; the default is {self.name} = {toml(self.default)}"
        return ConfigError(f"{where}: {self.full_name} {fault}", hint)


def toml(value: object) -> str:
    """Write a value as TOML, which for these types is JSON."""
    return json.dumps(value, ensure_ascii=False)


def nearest(word: str, options: Iterable[str]) -> str:
    """Return the option that a misspelt word is nearest to, or nothing."""
    return next(iter(difflib.get_close_matches(word[:TEXT_LIMIT], list(options), 1)), "")


def _stays_inside(glob: str) -> bool:
    return not re.match(r"[/\\~]|[A-Za-z]:", glob) and ".." not in re.split(r"[/\\]", glob)


def shown(value: object) -> str:
    """Show a value that may come from anybody: short, on one line, and harmless to a terminal."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN_LIMIT else f"{value[:SHOWN_LIMIT]}…")
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < sys.maxsize):
        return toml(value)
    return {list: "a list", dict: "a table", int: "a huge number"}.get(
        type(value), f"a {type(value).__name__}"
    )
