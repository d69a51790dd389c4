"""What is configured, by whom.

And may they? Each key is declared once, as a field of its section below.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.errors import ConfigError, RagdocsError
from ragdocs.keys import FILE_NAME, Key, declare, nearest, shown, toml
from ragdocs.lanes import DOCS, JOURNAL, MEMORY
from ragdocs.project.folders import ancestors, checked_root, config_dir, nearest_marked, settled
from ragdocs.system import files as fsio

DEFAULT_MODEL = "all-MiniLM-L6-v2"
TOOLSETS = ("docs", "memory", "recall")
MORE_TOOLSETS = ("edit", "entries", "repo", "journal", "quality")
RANKING = MEMORY.ranking
# A hundred times what a person writes; a file from a clone may be anything.
FILE_LIMIT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsConfig:
    """The documentation lane."""

    enabled: bool = declare(True, "Whether documents are searched.")
    include: tuple[str, ...] = declare(
        DOCS.include, "Globs of the documents, relative to the project.", low=1, globs=True
    )
    exclude: tuple[str, ...] = declare((), "Globs of files to leave out.", globs=True)
    gitignore: bool = declare(DOCS.gitignore, "Whether files that git ignores are left out.")
    commits: bool = declare(
        False, "Whether the project's own commits are searched, too: search_commits."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """The memory lane."""

    enabled: bool = declare(False, "Whether memories are kept and searched.")
    storage_strategy: str = declare(
        "project",
        "Keep memories in the project, or in one bank of the user for all projects.",
        choices=("project", "user"),
        project_choices=("project",),
    )
    recency_boost_days: int = declare(
        RANKING.recency_days, "Age in days up to which a memory ranks higher.", high=36_500
    )
    recency_boost_factor: float = declare(
        RANKING.recency_factor, "What a recent score is multiplied by.", low=1.0, high=2.0
    )
    entries_vector_weight: float = declare(
        0.7, "What meaning counts in memory_search; words have the rest.", high=1.0
    )
    branch_scope: str = declare(
        "perBranch",
        "Whether conventions, decisions, notes and summaries belong to the branch or to the repository.",
        choices=("perBranch", "sharedRepo"),
        shared_variable="MEMORY_BRANCH_SCOPE",
    )
    max_summaries_in_context: int = declare(
        10, "How many summaries a context pack has at most.", high=100
    )
    summaries_max_entries: int = declare(
        100, "How many summaries are kept; the oldest leave.", low=1, high=10_000
    )
    summaries_max_bytes: int = declare(
        1_000_000,
        "Largest size of all summaries together; the oldest leave.",
        low=1000,
        high=100_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalConfig:
    """The journal: a git repository whose commits are entries."""

    enabled: bool = declare(False, "Whether a journal is kept; its tools are offered then.")
    path: str = declare(
        "journal-data", "The journal's folder, a git repository of its own.", folder=True
    )
    author: str = declare("Journal Server <journal@localhost>", "Who the commits are by.")
    auto_gc: bool = declare(True, "Whether git packs what has piled up.")
    half_life_days: float = declare(
        JOURNAL.ranking.half_life_days,
        "Days after which an entry is half as present.",
        low=1.0,
        high=36_500.0,
    )
    minimum_salience: float = declare(
        JOURNAL.ranking.easiest, "The score that a fresh entry needs to be found.", high=1.0
    )
    context_weight: float = declare(
        0.5, "What the work context counts in journal_search; the content has the rest.", high=1.0
    )
    default_salience_threshold: float = declare(
        0.5, "The salience_threshold of a journal_search that names none.", high=1.0
    )
    max_results: int = declare(20, "Most entries in the answer of journal_search.", low=1, high=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingConfig:
    """The model that turns text into vectors."""

    model: str = declare(
        DEFAULT_MODEL,
        'The embedding model: the built-in one, "none" for keywords only, or a name or path for sentence-transformers.',
        project_choices=(DEFAULT_MODEL, "none"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the MCP server offers."""

    toolsets: tuple[str, ...] = declare(
        TOOLSETS, "Groups of tools that are offered.", low=1, choices=(*TOOLSETS, *MORE_TOOLSETS)
    )
    shared: bool = declare(True, "Whether the windows of one project share one server process.")
    answer_chars: int = declare(
        9000, "Largest size of one answer, in characters.", low=1000, high=40_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """How edits made by hand are noticed."""

    enabled: bool = declare(True, "Whether a running server follows changes of files.")
    debounce_ms: int = declare(
        500, "Quiet milliseconds after a change before it is indexed.", high=60_000
    )
    poll: bool = declare(
        False, "Whether to look for changes by polling, where file events do not arrive."
    )
    largest_kb: int = declare(
        10_000, "Largest file that is indexed; larger ones are reported.", low=1, high=10_000
    )
    reconcile_seconds: int = declare(
        300, "Seconds between full comparisons of files and index.", low=1, high=86_400
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionConfig:
    """Secrets that are kept out of what is written."""

    patterns: tuple[str, ...] = declare(
        (), "Regular expressions of further secrets to keep out of memories."
    )


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
    journal: JournalConfig = field(default_factory=JournalConfig)
    origins: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def origin(self, key: str) -> str:
        """Tell where the value of a key such as `memory.enabled` came from."""
        return self.origins.get(key, "default")


SECTIONS: dict[str, Any] = {
    entry.name: entry.default_factory
    for entry in dataclasses.fields(Config)
    if dataclasses.is_dataclass(entry.default_factory)
}
KEYS: dict[str, Key] = {
    f"{section}.{entry.name}": Key(
        section=section, name=entry.name, default=entry.default, **entry.metadata
    )
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
        section: kind(
            **{key.name: value for key, value, _ in settings.values() if key.section == section}
        )
        for section, kind in SECTIONS.items()
    }
    origins = {
        name: where.removeprefix(f"{root}{os.sep}") for name, (_, _, where) in settings.items()
    }
    return Config(root=root, **sections, origins=origins, problems=tuple(problems))


def render_table(config: Config) -> list[tuple[str, str, str]]:
    """Return each key with its value as TOML and its origin."""
    values = {name: getattr(getattr(config, key.section), key.name) for name, key in KEYS.items()}
    return [(name, toml(value), config.origin(name)) for name, value in values.items()]


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
                raise ConfigError(
                    f"{self._where(section)}: {section} is not a section",
                    f"Write it as [{section}]",
                )
            for key, value in table.items():
                name = f"{section}.{key}"
                yield _setting(name, value, self._where(name), trusted=trusted)

    def is_ours(self) -> bool:
        """Tell our file from that of Hugo or others that use the same name.

        Even if ours is misspelt.
        """
        for name, table in self.document.items():
            section = nearest(name, SECTIONS)
            if (
                section
                and isinstance(table, dict)
                and any(f"{section}.{key}" in KEYS for key in table)
            ):
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
        text = (
            fsio.read_bytes(Path(os.path.realpath(path)), FILE_LIMIT)
            .decode("utf-8-sig")
            .replace("\r\n", "\n")
        )
        return _File(path, tomli.loads(text), _line_numbers(text))
    except RagdocsError as error:
        raise ConfigError(
            error.message, f"Make it a readable file of at most {FILE_LIMIT} bytes"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not valid TOML: {str(error)[:200]}", "Mend it and try again"
        ) from error


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
    for key in KEYS.values():
        if text := environ.get(key.shared_variable, "").strip():
            yield _setting(key.full_name, key.parse(text), f"environment {key.shared_variable}")
    variables = {key.variable: key for key in KEYS.values()}
    for variable in sorted(name for name in environ if name.startswith("RAGDOCS_")):
        own, text, where = variables.get(variable), environ[variable], f"environment {variable}"
        if own is None:
            # Not an error: the environment is not ours alone.
            near = nearest(variable, variables)
            problems.append(
                f"{where} means nothing to ragdocs" + (f"; did you mean {near}?" if near else "")
            )
        elif text.strip():
            yield _setting(own.full_name, own.parse(text), where)


def _from_flags(flags: Mapping[str, object]) -> Iterator[Setting]:
    for name, value in flags.items():
        if value is not None:
            given = KEYS[name].parse(value) if name in KEYS and isinstance(value, str) else value
            yield _setting(name, given, "flag")


def _setting(name: str, value: object, where: str, *, trusted: bool = True) -> Setting:
    if name not in KEYS:
        section = f"{name.partition('.')[0]}."
        raise _unknown(name, where, [key for key in KEYS if key.startswith(section)] or KEYS)
    return KEYS[name], KEYS[name].check(value, where, trusted=trusted), where


def _unknown(name: str, where: str, options: Iterable[str]) -> ConfigError:
    last = name.rpartition(".")[2]
    near = next((key for key in KEYS if key.endswith(f".{last}")), "") or nearest(name, options)
    hint = f"Did you mean {near}?" if near else f"Known are {', '.join(options)}"
    return ConfigError(f"{where}: {shown(name)} is unknown", hint)
