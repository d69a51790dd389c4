"""Configuration: layered, checked, and trusted only as far as its author is."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs import config
from ragdocs.config import KEYS, SECTIONS, load
from ragdocs.errors import ConfigError
from ragdocs.keys import Key, toml
from ragdocs.lanes import DOCS, MEMORY

REPOSITORY = Path(__file__).parent.parent
NAMES = sorted(KEYS)


class Place:
    """A project and a user of it, on disk."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = self.home / "code" / "shop"
        self.user_file = self.home / ".config" / "ragdocs" / "config.toml"
        self.environ = {"HOME": str(self.home)}
        self.root.mkdir(parents=True)
        self.user_file.parent.mkdir(parents=True)

    def project_says(self, text: str) -> None:
        (self.root / "config.toml").write_text(text, encoding="utf-8")

    def user_says(self, text: str) -> None:
        self.user_file.write_text(text, encoding="utf-8")

    def load(self, **flags: object) -> config.Config:
        return load(self.root, environ=self.environ, flags=flags)

    def error(self) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load()
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def line(key: Key, value: str) -> str:
    return f"[{key.section}]\n{key.name} = {value}\n"


def other_value(key: Key) -> object:
    """A valid value that is not the default."""
    if isinstance(key.default, bool):
        return not key.default
    if isinstance(key.default, tuple):
        return key.choices[:1] or ("notes/*.md",)
    if isinstance(key.default, str):
        return next((choice for choice in key.choices if choice != key.default), "none")
    return type(key.default)(key.low + 1)


def value_of(settled: config.Config, key: Key) -> object:
    return getattr(getattr(settled, key.section), key.name)


# Defaults and layers


def test_without_any_file_the_documented_defaults_hold(place: Place) -> None:
    settled = place.load()
    assert settled.memory == config.MemoryConfig(
        enabled=False, storage_strategy="project", recency_boost_days=7, recency_boost_factor=1.2
    )
    assert settled.docs.include == DOCS.include
    assert settled.memory.recency_boost_days == MEMORY.ranking.recency_days
    assert {origin for _, _, origin in config.render_table(settled)} == {"default"}


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_read_from_file_variable_and_flag_typed_or_as_text(
    place: Place, name: str
) -> None:
    key = KEYS[name]
    value = other_value(key)
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    loaded = {"flag": place.load(**{name: value}), "flag as text": place.load(**{name: text})}
    place.user_says("# first\n" + line(key, toml(value)))
    loaded[f"{place.user_file}:3"] = place.load()
    place.environ[key.variable] = text
    loaded[f"environment {key.variable}"] = place.load()
    for origin, settled in loaded.items():
        assert value_of(settled, key) == value
        assert type(value_of(settled, key)) is type(key.default)
        assert settled.origin(name) == origin.removesuffix(" as text")


def test_a_flag_beats_the_environment_beats_the_project_beats_the_user(place: Place) -> None:
    name = "memory.recency_boost_days"

    def seen(**flags: object) -> tuple[int, str]:
        settled = place.load(**flags)
        return settled.memory.recency_boost_days, settled.origin(name)

    assert seen() == (7, "default")
    place.user_says("[memory]\nrecency_boost_days = 1\n")
    assert seen() == (1, f"{place.user_file}:2")
    place.project_says("[memory]\n\nrecency_boost_days = 2\n")
    assert seen() == (2, "config.toml:3")
    place.environ["RAGDOCS_MEMORY_RECENCY_BOOST_DAYS"] = "3"
    assert seen() == (3, "environment RAGDOCS_MEMORY_RECENCY_BOOST_DAYS")
    assert seen(**{name: 4}) == (4, "flag")
    assert seen(**{name: None, "watch.poll": True})[0] == 3


def test_an_unknown_flag_is_refused_with_the_nearest_key(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean watch\.poll\?"):
        place.load(**{"watch.pol": True})


@pytest.mark.parametrize(
    ("data", "origin"),
    [
        (b"memory.enabled = true\n", "config.toml:1"),
        (b"memory = { enabled = true }\n", "config.toml"),
        (b"\xef\xbb\xbf[memory]\r\nenabled = true\r\n", "config.toml:2"),
    ],
    ids=["dotted key", "inline table", "file from Windows"],
)
def test_every_way_to_write_a_key_is_read(place: Place, data: bytes, origin: str) -> None:
    (place.root / "config.toml").write_bytes(data)
    assert place.load().memory.enabled
    assert place.load().origin("memory.enabled") == origin


def test_a_linked_user_file_is_followed(place: Place) -> None:
    dotfiles = place.home / "dotfiles.toml"
    dotfiles.write_text("[watch]\npoll = true\n", encoding="utf-8")
    place.user_file.symlink_to(dotfiles)
    assert place.load().watch.poll


# The environment


@pytest.mark.parametrize(("words", "value"), [("1 TRUE yes on", True), ("0 False NO off", False)])
def test_switches_in_the_environment_may_be_said_in_several_words(
    place: Place, words: str, value: bool
) -> None:
    place.user_says(f"[watch]\npoll = {toml(not value)}\n")
    for word in words.split():
        place.environ["RAGDOCS_WATCH_POLL"] = f" {word} "
        assert place.load().watch.poll is value


def test_lists_in_the_environment_are_separated_by_commas_and_empty_ones_are_absent(
    place: Place,
) -> None:
    place.environ["RAGDOCS_DOCS_INCLUDE"] = " guides/**/*.md, README.md ,,README.md"
    place.environ["RAGDOCS_DOCS_EXCLUDE"] = " "
    assert place.load().docs.include == ("guides/**/*.md", "README.md")
    assert place.load().origin("docs.exclude") == "default"


def test_a_list_in_a_variable_may_be_copied_out_of_a_file(place: Place) -> None:
    place.environ["RAGDOCS_DOCS_INCLUDE"] = '["guides/**/*.md", "README.md"]'
    place.environ["RAGDOCS_DOCS_EXCLUDE"] = "[ab]"
    loaded = place.load()
    assert loaded.docs.include == ("guides/**/*.md", "README.md")
    # A glob of one character is no list.
    assert loaded.docs.exclude == ("[ab]",)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RAGDOCS_WATCH_POLL", "perhaps"),
        ("RAGDOCS_WATCH_DEBOUNCE_MS", "1.5"),
        ("RAGDOCS_WATCH_DEBOUNCE_MS", "9" * 5000),
        ("RAGDOCS_MEMORY_RECENCY_BOOST_FACTOR", "nan"),
        ("RAGDOCS_MEMORY_RECENCY_BOOST_FACTOR", "inf"),
        ("RAGDOCS_SERVER_TOOLSETS", "docs,memories"),
        ("RAGDOCS_DOCS_INCLUDE", ","),
        ("RAGDOCS_EMBEDDING_MODEL", "bad\udc80bytes"),
    ],
)
def test_a_bad_variable_is_named_in_the_error(place: Place, variable: str, text: str) -> None:
    place.environ[variable] = text
    message = place.error()
    assert message.startswith(f"environment {variable}: ")
    assert message.encode("utf-8")


def test_a_misspelt_variable_is_a_problem_with_the_nearest_name_but_not_an_error(
    place: Place,
) -> None:
    place.environ["RAGDOCS_MEMORY_ENABLE"] = "true"
    (problem,) = place.load().problems
    assert problem.startswith("environment RAGDOCS_MEMORY_ENABLE means nothing to ragdocs; ")
    assert problem.endswith("did you mean RAGDOCS_MEMORY_ENABLED?")


# What is wrong, where, and what to write


def wrong_values(key: Key) -> list[str]:
    wrong = ["1979-05-27", "{ a = 1 }", "[[1]]", "0x" + "f" * 5000]
    if not isinstance(key.default, bool):
        wrong.append("true")
    if isinstance(key.default, bool | tuple):
        wrong += ["1", '"true"', "2.5"]
    if isinstance(key.default, tuple):
        wrong += ["[1]", '["docs", true]', '["a\\u0000b"]', '[""]']
        wrong += [toml(["x" * 600]), toml(["docs"] * 65)]
    if isinstance(key.default, str):
        wrong += ["1", '[""]', '""', '" "', '"a\\u001bb"', toml("x" * 600)]
    if key.numeric:
        wrong += ['"1"', str(key.low - 1), str(key.high + 1), "nan", "-inf"]
    if isinstance(key.default, int):
        wrong.append("7.5")
    return wrong


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in NAMES for value in wrong_values(KEYS[name])]
)
def test_every_wrong_value_of_every_key_is_refused_with_place_key_and_remedy(
    place: Place, name: str, value: str
) -> None:
    key = KEYS[name]
    place.user_says(line(key, value))
    message = place.error()
    assert message.startswith(f"{place.user_file}:2: {name} ")
    assert f"It takes {key.wanted}" in message
    assert f"the default is {key.name} = {key.shown_default}" in message
    assert len(message) < 600


@pytest.mark.parametrize("name", [name for name in NAMES if KEYS[name].numeric])
def test_the_limits_of_a_range_belong_to_it_and_whole_numbers_are_good_for_any(
    place: Place, name: str
) -> None:
    for limit in (KEYS[name].low, KEYS[name].high):
        place.user_says(line(KEYS[name], str(limit)))
        assert value_of(place.load(), KEYS[name]) == limit
        place.user_says(line(KEYS[name], f"{limit:.0f}"))
        assert type(value_of(place.load(), KEYS[name])) is type(KEYS[name].default)


@pytest.mark.parametrize("name", NAMES)
def test_every_misspelt_key_is_refused_with_the_right_one(place: Place, name: str) -> None:
    section, _, key = name.partition(".")
    place.project_says(f"[{section}]\n{key}x = 1\n")
    message = place.error()
    assert message.startswith(f"{place.root}/config.toml:2: '{name}x' is unknown")
    assert f"Did you mean {name}?" in message


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("[memroy]\nenabled = true\n", "Did you mean memory?"),
        ("[memory]\nenabled = true\n[zzz]\n", "Known are docs, memory, embedding, server, watch"),
        ("[docs]\nrecency_boost_days = 3\n", "Did you mean memory.recency_boost_days?"),
        ("poll = true\n[docs]\nenabled = true\n", "Did you mean watch.poll?"),
        ("[memory]\nqqq = 1\n", "Known are memory.enabled"),
        ("memory = 3\n", "Write it as [memory]"),
        ("[[memory]]\nenabled = true\n", "Write it as [memory]"),
        ('[server]\ntoolsets = ["docs", "memori"]\n', 'perhaps "memory"'),
        ('[memory]\nstorage_strategy = "users"\n', 'perhaps "user"'),
        ("[memory\n", "not valid TOML"),
        ("[memory]\nenabled = true\nenabled = true\n", "not valid TOML"),
        ("a = " + "[" * 20_000, "not valid TOML"),
        ("a = " + "1" * 5_000, "not valid TOML"),
        ("#" * 70_000, "at most 65536 bytes"),
    ],
)
@pytest.mark.parametrize("author", ["project", "user"])
def test_a_faulty_file_is_refused_with_a_remedy(
    place: Place, author: str, text: str, remedy: str
) -> None:
    file = {"project": place.root / "config.toml", "user": place.user_file}[author]
    file.write_text(text, encoding="utf-8")
    message = place.error()
    assert str(file) in message
    assert remedy in message
    assert len(message) < 600


def forbid(path: Path) -> None:
    path.write_text("[memory]\nenabled = true\n", encoding="utf-8")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("the superuser may read everything")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (getattr(os, "mkfifo", os.mkdir), "not a regular file"),
        (os.mkdir, "not a regular file"),
        (lambda path: path.symlink_to(path.with_name("nowhere.toml")), "cannot read"),
        (forbid, "cannot read"),
    ],
    ids=["pipe", "folder", "link to nowhere", "no permission"],
)
def test_what_is_no_readable_file_is_refused_without_waiting(
    place: Place, make: Callable[[Path], None], complaint: str
) -> None:
    make(place.root / "config.toml")
    assert complaint in place.error()


# Trust


@pytest.mark.parametrize(
    "glob",
    ["../secret/*.md", "/etc/*", "~/.ssh/*", "docs/../../x", "C:/x", "\\\\host\\x", "a\\..\\..\\b"],
)
@pytest.mark.parametrize("name", ["include", "exclude"])
def test_globs_that_leave_the_project_are_refused_and_dots_in_names_are_not(
    place: Place, name: str, glob: str
) -> None:
    place.project_says(f"[docs]\n{name} = {toml([glob])}\n")
    assert "relative to the project and inside it" in place.error()
    place.project_says(f'[docs]\n{name} = ["docs/v1..v2/*.md", "..notes/*.md"]\n')
    assert getattr(place.load().docs, name) == ("docs/v1..v2/*.md", "..notes/*.md")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedding.model", "./model"),
        ("embedding.model", "somebody/else"),
        ("memory.storage_strategy", "user"),
    ],
)
def test_what_only_the_user_may_choose_is_refused_from_a_project(
    place: Place, name: str, value: str
) -> None:
    key = KEYS[name]
    place.project_says(line(key, toml(value)))
    # A voice that is trusted does not excuse the file of the project.
    for variables in ({}, {key.variable: str(key.default)}):
        place.environ |= variables
        message = place.error()
        assert f"a project may not set {name}" in message
        assert key.variable in message
    place.environ.pop(key.variable)
    (place.root / "config.toml").unlink()
    place.user_says(line(key, toml(value)))
    assert value_of(place.load(), key) == value


PERSONAL = [name for name in NAMES if KEYS[name].personal]


@pytest.mark.parametrize("name", PERSONAL)
def test_a_project_says_nothing_about_the_team_of_its_user(place: Place, name: str) -> None:
    value = "postgresql://ann:pa55word@host/team" if KEYS[name].secret else other_value(KEYS[name])
    place.project_says(line(KEYS[name], toml(value)))
    message = place.error()
    assert f"config.toml:2: a project may not set {name}. Remove it there" in message
    assert str(place.user_file).removeprefix(str(place.home)) in message
    assert "pa55word" not in message


def test_the_database_of_a_team_is_named_without_its_password(place: Place) -> None:
    place.environ["RAGDOCS_DATABASE"] = "postgresql://ann:pa55word@host/team"
    settled = place.load()
    assert settled.team.database == "postgresql://ann:pa55word@host/team"
    assert settled.origin("team.database") == "environment RAGDOCS_DATABASE"
    assert settled.problems == ()
    shown = {name: value for name, value, _ in config.render_table(settled)}
    assert shown["team.database"] == '"postgresql://ann:***@host/team"'
    assert "pa55word" not in repr(settled)
    place.environ.clear()
    place.environ["HOME"] = str(place.home)
    for wrong in ("pa55word\x1b", "pa55word" * 100):
        place.user_says(line(KEYS["team.database"], toml(wrong)))
        assert "pa55" not in place.error()


@pytest.mark.parametrize("model", ["none", "all-MiniLM-L6-v2"])
def test_a_project_may_choose_between_the_built_in_model_and_none(place: Place, model: str) -> None:
    place.project_says(f"[embedding]\nmodel = {toml(model)}\n")
    assert place.load().embedding.model == model


# Tables


def test_the_table_shows_every_key_and_can_be_pasted_into_a_file(place: Place) -> None:
    place.project_says('[docs]\nexclude = ["docs/é.md"]\n')
    rows = config.render_table(place.load())
    assert [name for name, _, _ in rows] == list(KEYS)
    assert ("docs.exclude", '["docs/é.md"]', "config.toml:2") in rows
    (place.root / "config.toml").unlink()
    place.user_says("".join(f"{name} = {value}\n" for name, value, _ in rows))
    pasted = place.load()
    assert pasted.docs.exclude == ("docs/é.md",)
    assert set(pasted.origins) == set(KEYS)
    docs = dataclasses.replace(pasted.docs, exclude=config.DocsConfig().exclude)
    assert dataclasses.replace(pasted, docs=docs, origins={}) == config.Config(root=place.root)


def test_every_key_has_a_sentence_and_a_default_that_is_valid() -> None:
    for key in KEYS.values():
        assert re.fullmatch(r"[A-Z].*\.", key.about)
        assert key.check(key.default, "default", trusted=key.personal) == key.default


def test_this_repository_serves_its_documents_and_memories(place: Place) -> None:
    settled = load(REPOSITORY, environ=place.environ)
    assert settled.root == REPOSITORY.resolve()
    assert settled.docs.enabled
    assert settled.memory.enabled
    assert settled.problems == ()


# Anything at all

WORDS = st.one_of(
    st.sampled_from(sorted({*SECTIONS, *(key.name for key in KEYS.values())})), st.text(max_size=12)
)
ODD = ["0x" + "f" * 5000, "true", "7", "1e999", "nan", '"none"']
ODD += ["[]", '["docs"]', "[[1]]", "{a=1}", "07:32:00"]
VALUES = st.one_of(
    st.sampled_from(ODD), st.text(max_size=30).map(toml), st.lists(st.text(max_size=9)).map(toml)
)
LINES = st.one_of(
    WORDS.map(lambda word: f"[{toml(word)}]\n"),
    st.tuples(WORDS, VALUES).map(lambda pair: f"{toml(pair[0])} = {pair[1]}\n"),
)
DOCUMENTS = st.lists(LINES, max_size=8).map(lambda lines: "".join(lines).encode("utf-8", "replace"))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(DOCUMENTS, st.binary(max_size=80)))
def test_no_document_raises_anything_but_a_configuration_error(place: Place, data: bytes) -> None:
    project_file = place.root / "config.toml"
    for file, other in ((project_file, place.user_file), (place.user_file, project_file)):
        other.unlink(missing_ok=True)
        file.write_bytes(data)
        problem = ""
        try:
            place.load()
        except ConfigError as error:
            problem = str(error)
        # No escape sequence of a stranger reaches the terminal.
        assert problem.isprintable()
