"""The configuration: its keys, who may set them, and where their values come from.

Each key is declared once, as a field of its section below.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ragdocs.errors import ConfigError, RagdocsError
from ragdocs.keys import FILE_NAME, Key, declare, excerpt, nearest
from ragdocs.lanes import DOCS, JOURNAL, MEMORY
from ragdocs.project import folders
from ragdocs.system import files
from ragdocs.system.platform import PORTABLE_VARIABLE

DEFAULT_MODEL = "all-MiniLM-L6-v2"
TOOLSETS = ("docs", "memory", "recall")
MORE_TOOLSETS = ("edit", "entries", "repo", "journal", "quality")
RANKING = MEMORY.ranking
# A hundred times what a person writes; a file from a clone may be anything.
FILE_LIMIT = 65_536
# Of a user who is in no team.
NO_DATABASE = "none"
# As git calls the branch that is checked out.
CHECKED_OUT = "HEAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsConfig:
    """The documentation lane."""

    enabled: bool = declare(True, "Whether documents are searched.")
    include: tuple[str, ...] = declare(
        DOCS.include, "Globs of the documents, relative to the project.", low=1, globs=True
    )
    exclude: tuple[str, ...] = declare((), "Globs of files to leave out.", globs=True)
    gitignore: bool = declare(DOCS.gitignore, "Whether files that git ignores are left out.")
    version: str = declare(
        DOCS.version,
        'Version that is shown of a page which is there in several, such as "2.1"; "newest" for '
        "the one that readers are sent to.",
    )
    sources: tuple[str, ...] = declare(
        (),
        'Documentation beyond the project, as in ["~/handbook", "git:~/src/tool@v2.1", '
        '"pip:starlette", "npm:zod", "llms:~/docs/tool/llms.txt"].',
        personal=True,
    )
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
        RANKING.recency_factor, "Factor for the score of a recent memory.", low=1.0, high=2.0
    )
    entries_vector_weight: float = declare(
        0.7, "Weight of semantic similarity in memory_search, 0 to 1.", high=1.0
    )
    branch_scope: str = declare(
        "perBranch",
        "Whether conventions, decisions, notes and summaries belong to the branch "
        "or to the repository.",
        choices=("perBranch", "sharedRepo"),
        shared_variable="MEMORY_BRANCH_SCOPE",
    )
    max_summaries_in_context: int = declare(
        10, "How many summaries a context pack has at most.", high=100
    )
    summaries_max_entries: int = declare(
        100, "How many summaries are kept; the oldest are removed.", low=1, high=10_000
    )
    summaries_max_bytes: int = declare(
        1_000_000,
        "Largest size of all summaries in bytes; the oldest are removed.",
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
    author: str = declare("Journal Server <journal@localhost>", "Author of the journal's commits.")
    auto_gc: bool = declare(True, "Whether git packs loose objects in the background.")
    half_life_days: float = declare(
        JOURNAL.ranking.half_life_days,
        "Half-life of an entry's salience, in days.",
        low=1.0,
        high=36_500.0,
    )
    minimum_salience: float = declare(
        JOURNAL.ranking.fresh_min_score, "The score that a fresh entry needs to be found.", high=1.0
    )
    context_weight: float = declare(
        0.5, "Weight of the work context in journal_search, 0 to 1.", high=1.0
    )
    default_salience_threshold: float = declare(
        0.5, "Default salience_threshold of journal_search.", high=1.0
    )
    max_results: int = declare(20, "Most entries in the answer of journal_search.", low=1, high=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingConfig:
    """The model that turns text into vectors."""

    model: str = declare(
        DEFAULT_MODEL,
        'The embedding model: the built-in one, "none" for keywords only, '
        "or a name or path for sentence-transformers.",
        project_choices=(DEFAULT_MODEL, "none"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the MCP server offers."""

    toolsets: tuple[str, ...] = declare(
        TOOLSETS, "Groups of tools that are offered.", low=1, choices=(*TOOLSETS, *MORE_TOOLSETS)
    )
    shared: bool = declare(True, "Whether the windows of one project share one server process.")
    keep_questions: bool = declare(
        False,
        "Whether searches that find nothing are kept on this machine, for `ragdocs gaps`.",
        personal=True,
    )
    answer_chars: int = declare(
        9000, "Largest size of one answer, in characters.", low=1000, high=40_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchConfig:
    """How edits made by hand are noticed."""

    enabled: bool = declare(True, "Whether a running server follows changes of files.")
    debounce_ms: int = declare(
        500, "Milliseconds without a further change before a change is indexed.", high=60_000
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
class TeamConfig:
    """The database that a team shares."""

    database: str = declare(
        NO_DATABASE,
        'Address of the PostgreSQL database that a team shares, as in "postgresql://host/name"; '
        '"none" for files.',
        shared_variable="RAGDOCS_DATABASE",
        personal=True,
        secret=True,
    )
    projects: tuple[str, ...] = declare(
        (),
        'Names of projects in the team database, as in "/srv/handbook=handbook", for folders '
        "without a git remote.",
        personal=True,
    )
    branch: str = declare(
        CHECKED_OUT,
        'Branch whose pushed documentation is searched; "HEAD" for the one that is checked out.',
        personal=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The resolved configuration of one project; `problems` are shown but stop nothing."""

    root: Path
    docs: DocsConfig = field(default_factory=DocsConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    redaction: RedactionConfig = field(default_factory=RedactionConfig)
    journal: JournalConfig = field(default_factory=JournalConfig)
    team: TeamConfig = field(default_factory=TeamConfig)
    origins: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def origin(self, key: str) -> str:
        """Return where the value of a key such as `memory.enabled` came from."""
        return self.origins.get(key, "default")


def _sections() -> dict[str, Any]:
    """Map the names of the sections to their classes."""
    sections: dict[str, Any] = {}
    for section in dataclasses.fields(Config):
        if dataclasses.is_dataclass(section.default_factory):
            sections[section.name] = section.default_factory
    return sections


def _keys() -> dict[str, Key]:
    """Map the dotted names of all keys to their declarations."""
    keys = {}
    for section, kind in SECTIONS.items():
        for entry in dataclasses.fields(kind):
            rules: Mapping[str, Any] = entry.metadata
            key = Key(section=section, name=entry.name, default=entry.default, **rules)
            keys[key.full_name] = key
    return keys


SECTIONS = _sections()
KEYS = _keys()


class Setting(NamedTuple):
    """A key, its checked value, and the file, variable or flag that sets it."""

    key: Key
    value: object
    source: str


def load(
    start: Path,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    project: Path | None = None,
) -> Config:
    """Resolve the configuration for a working directory, or for exactly the project given."""
    if environ is None:
        environ = os.environ
    begin = folders.checked_root(folders.settled(project or start), environ)
    user_file = _read(folders.config_dir(environ) / FILE_NAME)
    problems: list[str] = []
    candidates: Iterable[Path] = [begin]
    root = begin
    if project is None:
        candidates = folders.ancestors(begin, environ)
        root = folders.nearest_marked(begin, environ)
    project_file = _find(candidates, user_file, problems)
    # From the weakest source to the strongest: a later setting of a key replaces an earlier one.
    settings: list[Setting] = []
    if user_file:
        settings += user_file.settings(trusted=True)
    if project_file:
        root = project_file.path.parent
        settings += project_file.settings(trusted=False)
    settings += _from_environment(environ, problems)
    settings += _from_flags(flags or {})
    return _resolved(root, settings, tuple(problems))


def _resolved(root: Path, settings: Sequence[Setting], problems: tuple[str, ...]) -> Config:
    values: dict[str, dict[str, object]] = {}
    origins = {}
    for key, value, source in settings:
        values.setdefault(key.section, {})[key.name] = value
        origins[key.full_name] = source.removeprefix(f"{root}{os.sep}")
    sections: dict[str, Any] = {}
    for section, kind in SECTIONS.items():
        sections[section] = kind(**values.get(section, {}))
    return Config(root=root, **sections, origins=origins, problems=problems)


def render_table(config: Config) -> list[tuple[str, str, str]]:
    """Return each key with its value as TOML and its origin."""
    rows = []
    for name, key in KEYS.items():
        value = getattr(getattr(config, key.section), key.name)
        rows.append((name, key.show(value), config.origin(name)))
    return rows


@dataclass(frozen=True, slots=True)
class _File:
    """A configuration file as read."""

    path: Path
    document: dict[str, Any]
    lines: Mapping[str, int]

    def settings(self, *, trusted: bool) -> Iterator[Setting]:
        """Yield the settings of the file, checked."""
        for section, table in self.document.items():
            source = self._source(section)
            if section not in SECTIONS:
                raise _unknown(section, source, SECTIONS)
            if not isinstance(table, dict):
                raise ConfigError(
                    f"{source}: {section} is not a section", f"Write it as [{section}]"
                )
            for key, value in table.items():
                name = f"{section}.{key}"
                yield _setting(name, value, self._source(name), trusted=trusted)

    def is_ours(self) -> bool:
        """Tell our file, even a misspelt one, from that of Hugo or others with the same name."""
        for name, table in self.document.items():
            section = name
            if name not in SECTIONS:
                section = nearest(name, SECTIONS)
            if section and isinstance(table, dict):
                keys = {f"{section}.{key}" for key in table}
                if not keys.isdisjoint(KEYS):
                    return True
        return self.document.keys() <= SECTIONS.keys()

    def _source(self, name: str) -> str:
        number = self.lines.get(name)
        if number is None:
            return str(self.path)
        return f"{self.path}:{number}"


def _find(candidates: Iterable[Path], user_file: _File | None, problems: list[str]) -> _File | None:
    """Return the first configuration file of a project that is ours."""
    for folder in candidates:
        file = _read(folder / FILE_NAME)
        if file is None or (user_file and file.path.resolve() == user_file.path.resolve()):
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
        data = files.read_bytes(Path(os.path.realpath(path)), FILE_LIMIT)
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        return _File(path, tomli.loads(text), _line_numbers(text))
    except RagdocsError as error:
        hint = f"Make it a readable file of at most {FILE_LIMIT} bytes"
        raise ConfigError(error.message, hint) from error
    except (ValueError, RecursionError) as error:
        message = f"{path} is not valid TOML: {str(error)[:200]}"
        raise ConfigError(message, "Mend it and try again") from error


def _line_numbers(text: str) -> dict[str, int]:
    """Map sections and keys to lines, as far as they are written in the plain form."""
    numbers: dict[str, int] = {}
    prefix = ""
    for number, row in enumerate(text.split("\n"), start=1):
        header = re.match(r"\s*\[\s*([\w-]+)\s*\]", row)
        entry = re.match(r"\s*([\w.-]+)\s*=", row)
        if header:
            prefix = f"{header[1]}."
            numbers.setdefault(header[1], number)
        elif entry:
            numbers.setdefault(f"{prefix}{entry[1]}", number)
    return numbers


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[Setting]:
    variables = {}
    permitted = {PORTABLE_VARIABLE}
    for key in KEYS.values():
        variables[key.variable] = key
        permitted.add(key.shared_variable)
        text = environ.get(key.shared_variable, "").strip()
        if text:
            source = f"environment {key.shared_variable}"
            yield _setting(key.full_name, key.parse(text), source)
    for variable in sorted(environ):
        if not variable.startswith("RAGDOCS_") or variable in permitted:
            continue
        source = f"environment {variable}"
        own_key = variables.get(variable)
        if own_key is None:
            # Not an error: the environment is not ours alone.
            problems.append(f"{source} means nothing to ragdocs{_suggestion(variable, variables)}")
        elif environ[variable].strip():
            yield _setting(own_key.full_name, own_key.parse(environ[variable]), source)


def _suggestion(variable: str, variables: Iterable[str]) -> str:
    suggestion = nearest(variable, variables)
    if suggestion:
        return f"; did you mean {suggestion}?"
    return ""


def _from_flags(flags: Mapping[str, object]) -> Iterator[Setting]:
    for name, value in flags.items():
        if isinstance(value, str) and name in KEYS:
            yield _setting(name, KEYS[name].parse(value), "flag")
        elif value is not None:
            yield _setting(name, value, "flag")


def _setting(name: str, value: object, source: str, *, trusted: bool = True) -> Setting:
    key = KEYS.get(name)
    if key is None:
        section = f"{name.partition('.')[0]}."
        siblings = [other for other in KEYS if other.startswith(section)]
        raise _unknown(name, source, siblings or KEYS)
    return Setting(key, key.check(value, source, trusted=trusted), source)


def _unknown(name: str, source: str, options: Iterable[str]) -> ConfigError:
    ending = f".{name.rpartition('.')[2]}"
    suggestions = [key for key in KEYS if key.endswith(ending)]
    suggestions.append(nearest(name, options))
    hint = f"Known are {', '.join(options)}"
    if suggestions[0]:
        hint = f"Did you mean {suggestions[0]}?"
    return ConfigError(f"{source}: {excerpt(name)} is unknown", hint)
