"""What is configured, by whom, and may they? Each key is declared once, as a field of its section below."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import itertools
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs import fsio
from ragdocs.errors import ConfigError, RagdocsError
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.project import ancestors, checked_root, config_dir, nearest_marked, settled

FILE_NAME = "config.toml"
DEFAULT_MODEL = "all-MiniLM-L6-v2"
TOOLSETS = ("docs", "memory", "recall")
MORE_TOOLSETS = ("edit", "entries")
RANKING = MEMORY.ranking
# A hundred times what a person writes; a file from a clone may be anything.
FILE_LIMIT = 65_536
LIST_LIMIT = 64
TEXT_LIMIT = 512
SHOWN_LIMIT = 60
USER_FILE = f"~/.config/ragdocs/{FILE_NAME}"
WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _key(default: object, about: str, **rules: object) -> Any:
    """Declare a key: its default, one sentence about it, and its rules as fields of `Key`."""
    return field(default=default, metadata={"about": about, **rules})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsConfig:
    """The documentation lane."""

    enabled: bool = _key(True, "Whether documents are searched.")
    include: tuple[str, ...] = _key(DOCS.include, "Globs of the documents, relative to the project.", low=1, globs=True)
    exclude: tuple[str, ...] = _key((), "Globs of files to leave out.", globs=True)
    gitignore: bool = _key(DOCS.gitignore, "Whether files that git ignores are left out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """The memory lane."""

    enabled: bool = _key(False, "Whether memories are kept and searched.")
    storage_strategy: str = _key(
        "project",
        "Keep memories in the project, or in one bank of the user for all projects.",
        choices=("project", "user"),
        project_choices=("project",),
    )
    recency_boost_days: int = _key(RANKING.recency_days, "Age in days up to which a memory ranks higher.", high=36_500)
    recency_boost_factor: float = _key(
        RANKING.recency_factor, "What a recent score is multiplied by.", low=1.0, high=2.0
    )
    entries_vector_weight: float = _key(0.7, "What meaning counts in memory_search; words have the rest.", high=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingConfig:
    """The model that turns text into vectors."""

    model: str = _key(
        DEFAULT_MODEL,
        'The embedding model: the built-in one, "none" for keywords only, or a name or path for sentence-transformers.',
        project_choices=(DEFAULT_MODEL, "none"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the MCP server offers."""

    toolsets: tuple[str, ...] = _key(
        TOOLSETS, "Groups of tools that are offered.", low=1, choices=(*TOOLSETS, *MORE_TOOLSETS)
    )
    shared: bool = _key(True, "Whether the windows of one project share one server process.")
    answer_chars: int = _key(9000, "Largest size of one answer, in characters.", low=1000, high=40_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """How edits made by hand are noticed."""

    enabled: bool = _key(True, "Whether a running server follows changes of files.")
    debounce_ms: int = _key(500, "Quiet milliseconds after a change before it is indexed.", high=60_000)
    poll: bool = _key(False, "Whether to look for changes by polling, where file events do not arrive.")
    largest_kb: int = _key(10_000, "Largest file that is indexed; larger ones are reported.", low=1, high=10_000)
    reconcile_seconds: int = _key(300, "Seconds between full comparisons of files and index.", low=1, high=86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionConfig:
    """Secrets that are kept out of what is written."""

    patterns: tuple[str, ...] = _key((), "Regular expressions of further secrets to keep out of memories.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The resolved configuration of one project; `problems` are worth telling but stop nothing."""

    root: Path
    docs: DocsConfig = field(default_factory=DocsConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    redaction: RedactionConfig = field(default_factory=RedactionConfig)
    origins: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def origin(self, key: str) -> str:
        """Tell where the value of a key such as `memory.enabled` came from."""
        return self.origins.get(key, "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: what it accepts, and from whom; `low` and `high` bound a number, or the length of a list."""

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
                raise self._error(where, f"is {_shown(value)}, out of range")
            if isinstance(self.default, float):
                value = float(value)
        if isinstance(self.default, tuple) and isinstance(value, list | tuple):
            return self._checked_list(value, where)
        if type(value) is not type(self.default):
            raise self._error(where, f"is {_shown(value)}")
        if isinstance(value, str):
            self._check_text(value, where)
            if self.project_choices and not trusted and value not in self.project_choices:
                allowed = " or ".join(map(toml, self.project_choices))
                hint = f"Write {allowed} there; your own choice goes into {USER_FILE} or {self.variable}"
                raise ConfigError(f"{where}: a project may not set {self.full_name} to {_shown(value)}", hint)
        return value

    def _checked_list(self, values: Sequence[object], where: str) -> tuple[str, ...]:
        if not self.low <= len(values) <= self.high:
            raise self._error(where, f"has {len(values)} entries", f"{self.low} to {self.high} of them")
        for value in values:
            if not isinstance(value, str):
                raise self._error(where, f"holds {_shown(value)}")
            self._check_text(value, where)
            if self.globs and not _stays_inside(value):
                raise self._error(where, f"holds {_shown(value)}", "relative to the project and inside it")
        return tuple(dict.fromkeys(map(str, values)))

    def _check_text(self, value: str, where: str) -> None:
        if self.choices and value not in self.choices:
            near = _nearest(value, self.choices)
            raise self._error(where, f"names {_shown(value)}", f"perhaps {toml(near)}" if near else "")
        control = any(unicodedata.category(character) in {"Cc", "Cs"} for character in value)
        if control or not value.strip() or len(value) > TEXT_LIMIT:
            raise self._error(where, f"holds {_shown(value)}", f"of 1 to {TEXT_LIMIT} printable characters")

    def _error(self, where: str, fault: str, more: str = "") -> ConfigError:
        accepts = ", ".join(filter(None, (self.wanted, more)))
        hint = f"It takes {accepts}; the default is {self.name} = {toml(self.default)}"
        return ConfigError(f"{where}: {self.full_name} {fault}", hint)


SECTIONS: dict[str, Any] = {
    entry.name: entry.default_factory
    for entry in dataclasses.fields(Config)
    if dataclasses.is_dataclass(entry.default_factory)
}
KEYS: dict[str, Key] = {
    f"{section}.{entry.name}": Key(section=section, name=entry.name, default=entry.default, **entry.metadata)
    for section, kind in SECTIONS.items()
    for entry in dataclasses.fields(kind)
}

# A key, its checked value, and where that was said.
Setting = tuple[Key, object, str]


def load(
    start: Path,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    project: Path | None = None,
) -> Config:
    """Resolve the configuration for a working directory, or for exactly the project given."""
    environ = os.environ if environ is None else environ
    begin = checked_root(settled(start if project is None else project), environ)
    own = _read(config_dir(environ) / FILE_NAME)
    problems: list[str] = []
    found = _find(ancestors(begin, environ) if project is None else [begin], own, problems)
    root = found.path.parent if found else begin if project else nearest_marked(begin, environ)
    # From the weakest voice to the strongest.
    said = itertools.chain(
        own.settings(trusted=True) if own else (),
        found.settings(trusted=False) if found else (),
        _from_environment(environ, problems),
        _from_flags(flags or {}),
    )
    settings = {setting[0].full_name: setting for setting in said}
    sections: dict[str, Any] = {
        section: kind(**{key.name: value for key, value, _ in settings.values() if key.section == section})
        for section, kind in SECTIONS.items()
    }
    origins = {name: where.removeprefix(f"{root}{os.sep}") for name, (_, _, where) in settings.items()}
    return Config(root=root, **sections, origins=origins, problems=tuple(problems))


def render_table(config: Config) -> list[tuple[str, str, str]]:
    """Return each key with its value as TOML and its origin."""
    values = {name: getattr(getattr(config, key.section), key.name) for name, key in KEYS.items()}
    return [(name, toml(value), config.origin(name)) for name, value in values.items()]


def toml(value: object) -> str:
    """Write a value as TOML, which for these types is JSON."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _File:
    """A configuration file as read."""

    path: Path
    document: dict[str, Any]
    lines: Mapping[str, int]

    def settings(self, *, trusted: bool) -> Iterator[Setting]:
        """Yield what the file says, checked."""
        for section, table in self.document.items():
            if section not in SECTIONS:
                raise _unknown(section, self._where(section), SECTIONS)
            if not isinstance(table, dict):
                raise ConfigError(f"{self._where(section)}: {section} is not a section", f"Write it as [{section}]")
            for key, value in table.items():
                name = f"{section}.{key}"
                yield _setting(name, value, self._where(name), trusted=trusted)

    def is_ours(self) -> bool:
        """Tell our file from that of Hugo or others that use the same name, even if ours is misspelt."""
        for name, table in self.document.items():
            section = _nearest(name, SECTIONS)
            if section and isinstance(table, dict) and any(f"{section}.{key}" in KEYS for key in table):
                return True
        return self.document.keys() <= SECTIONS.keys()

    def _where(self, name: str) -> str:
        line = self.lines.get(name)
        return f"{self.path}:{line}" if line else str(self.path)


def _find(folders: Iterable[Path], own: _File | None, problems: list[str]) -> _File | None:
    for folder in folders:
        file = _read(folder / FILE_NAME)
        if file is None or (own and file.path.resolve() == own.path.resolve()):
            continue
        if file.is_ours():
            return file
        problems.append(f"{file.path} was left aside: it holds no key of ragdocs")
    return None


def _read(path: Path) -> _File | None:
    import tomli

    if not os.path.lexists(path):
        return None
    try:
        # People link their own file into place, so a link is followed.
        text = fsio.read_bytes(Path(os.path.realpath(path)), FILE_LIMIT).decode("utf-8-sig").replace("\r\n", "\n")
        return _File(path, tomli.loads(text), _line_numbers(text))
    except RagdocsError as error:
        raise ConfigError(error.message, f"Make it a readable file of at most {FILE_LIMIT} bytes") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {str(error)[:200]}", "Mend it and try again") from error


def _line_numbers(text: str) -> dict[str, int]:
    """Map sections and keys to lines, as far as they are written in the plain form."""
    found: dict[str, int] = {}
    prefix = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
            prefix = f"{header[1]}."
            found.setdefault(header[1], number)
        elif entry := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(f"{prefix}{entry[1]}", number)
    return found


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[Setting]:
    variables = {key.variable: key for key in KEYS.values()}
    for variable in sorted(name for name in environ if name.startswith("RAGDOCS_")):
        key, text, where = variables.get(variable), environ[variable], f"environment {variable}"
        if key is None:
            # Not an error: the environment is not ours alone.
            near = _nearest(variable, variables)
            problems.append(f"{where} means nothing to ragdocs" + (f"; did you mean {near}?" if near else ""))
        elif text.strip():
            yield _setting(key.full_name, key.parse(text), where)


def _from_flags(flags: Mapping[str, object]) -> Iterator[Setting]:
    for name, value in flags.items():
        if value is not None:
            given = KEYS[name].parse(value) if name in KEYS and isinstance(value, str) else value
            yield _setting(name, given, "flag")


def _setting(name: str, value: object, where: str, *, trusted: bool = True) -> Setting:
    if name not in KEYS:
        raise _unknown(name, where, KEYS)
    return KEYS[name], KEYS[name].check(value, where, trusted=trusted), where


def _unknown(name: str, where: str, options: Iterable[str]) -> ConfigError:
    last = name.rpartition(".")[2]
    near = next((key for key in KEYS if key.endswith(f".{last}")), "") or _nearest(name, options)
    hint = f"Did you mean {near}?" if near else f"Known are {', '.join(options)}"
    return ConfigError(f"{where}: {_shown(name)} is unknown", hint)


def _nearest(word: str, options: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(word[:TEXT_LIMIT], list(options), 1)), "")


def _stays_inside(glob: str) -> bool:
    return not re.match(r"[/\\~]|[A-Za-z]:", glob) and ".." not in re.split(r"[/\\]", glob)


def _shown(value: object) -> str:
    """Show a value that may come from anybody: short, on one line, and harmless to a terminal."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN_LIMIT else f"{value[:SHOWN_LIMIT]}…")
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < sys.maxsize):
        return toml(value)
    return {list: "a list", dict: "a table", int: "a huge number"}.get(type(value), f"a {type(value).__name__}")
