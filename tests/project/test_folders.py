"""Projects: where they begin, and where their things live."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragdocs.config import Config, MemoryConfig, load
from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.project import folders as project
from ragdocs.project import layout

DIRECTORIES = {
    project.data_dir: ("XDG_DATA_HOME", ".local/share"),
    project.cache_dir: ("XDG_CACHE_HOME", ".cache"),
    project.state_dir: ("XDG_STATE_HOME", ".local/state"),
    project.config_dir: ("XDG_CONFIG_HOME", ".config"),
}
posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and links are those of POSIX")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return {"HOME": str(home), "USERPROFILE": str(home)}


@pytest.fixture
def shop(environ: dict[str, str]) -> Path:
    root = Path(environ["HOME"]) / "code" / "shop"
    root.mkdir(parents=True)
    return root


def say(folder: Path, text: str) -> None:
    (folder / "config.toml").write_text(text, encoding="utf-8")


# Directories


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own places")
@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda function: function.__name__)
def test_each_directory_follows_its_xdg_variable_unless_that_is_empty_or_relative(
    environ: dict[str, str], directory: type
) -> None:
    home = Path(environ["HOME"])
    variable, below_home = DIRECTORIES[directory]
    environ[variable] = str(home / "elsewhere")
    assert directory(environ) == home / "elsewhere" / "ragdocs"
    for value in ("", "relative/path"):
        environ[variable] = value
        assert directory(environ) == home / below_home / "ragdocs"


def test_windows_has_its_own_places(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    environ |= {"APPDATA": "/roaming", "LOCALAPPDATA": "/local"}
    assert project.config_dir(environ) == Path("/roaming/ragdocs")
    assert project.data_dir(environ) == Path("/local/ragdocs/data")
    assert project.cache_dir(environ) == Path("/local/ragdocs/cache")


def test_a_client_that_strips_the_environment_still_has_a_home() -> None:
    assert project.home({}) == Path.home()
    assert project.data_dir({}).is_absolute()


def test_an_unknown_home_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    # As it answers for a user of whom the system knows nothing.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ConfigError, match="Set HOME or XDG_DATA_HOME"):
        project.data_dir({})


# The walk upward


def test_the_walk_upward_ends_below_home(environ: dict[str, str]) -> None:
    start = Path(environ["HOME"]) / "code" / "shop"
    start.mkdir(parents=True)
    assert list(project.ancestors(start, environ)) == [start, start.parent]


@posix_only
def test_the_walk_upward_ends_below_a_folder_shared_with_strangers_which_may_be_the_start(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    shared = tmp_path.resolve() / "shared"
    start = shared / "mine" / "deep"
    start.mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / ".git").mkdir()
    assert list(project.ancestors(start, environ)) == [start, start.parent]
    assert project.nearest_marked(start, environ) == start
    assert next(project.ancestors(shared, environ)) == shared


def test_the_worktree_file_of_git_marks_a_root_as_well(environ: dict[str, str]) -> None:
    root = Path(environ["HOME"]) / "tree"
    (root / "src").mkdir(parents=True)
    (root / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    assert project.nearest_marked(root / "src", environ) == root


@posix_only
def test_a_link_to_itself_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ConfigError, match="--project"):
        project.settled(tmp_path / "loop")


# Which directory is the project


def test_the_file_is_found_upward_and_its_directory_is_the_root(
    shop: Path, environ: dict[str, str]
) -> None:
    say(shop, "[memory]\nenabled = true\n")
    deep = shop / "src" / "deep"
    (deep / ".git").mkdir(parents=True)
    settled = load(deep, environ=environ)
    assert settled.root == shop
    assert settled.origin("memory.enabled") == "config.toml:2"


@pytest.mark.parametrize("marker", [".git", ".memories", ""])
def test_without_a_file_the_nearest_marker_or_else_the_start_is_the_root(
    shop: Path, environ: dict[str, str], marker: str
) -> None:
    deep = shop / "src" / "deep"
    deep.mkdir(parents=True)
    (shop / marker).mkdir(exist_ok=True)
    assert load(deep, environ=environ).root == (shop if marker else deep)


def test_a_given_project_is_the_root_whatever_lies_above(
    shop: Path, environ: dict[str, str]
) -> None:
    say(shop, "[memory]\nenabled = true\n")
    (shop / ".git").mkdir()
    inner = shop / "inner"
    inner.mkdir()
    settled = load(shop.parents[1], environ=environ, project=inner)
    assert (settled.root, settled.memory.enabled) == (inner, False)


FOREIGN = {
    "hugo": 'baseURL = "https://example.org/"\ntitle = "Site"\n[params]\nx = 1\n[[server.headers]]\nfor = "/**"\n',
    "streamlit": "[server]\nport = 8501\n[theme]\nbase = 'dark'\n",
    "zola": 'base_url = "/"\nbuild_search_index = true\n[markdown]\nhighlight_code = true\n',
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_another_programs_file_is_passed_over_with_a_note(
    shop: Path, environ: dict[str, str], text: str
) -> None:
    say(shop, "[memory]\nenabled = true\n")
    site = shop / "site"
    site.mkdir()
    say(site, text)
    settled = load(site, environ=environ)
    assert (settled.root, settled.memory.enabled) == (shop, True)
    assert settled.problems == (f"{site}/config.toml was left aside: it holds no key of ragdocs",)


def test_a_file_in_which_all_is_commented_out_still_marks_the_root(
    shop: Path, environ: dict[str, str]
) -> None:
    say(shop, "# [memory]\n# enabled = true\n")
    deep = shop / "deep"
    (deep / ".git").mkdir(parents=True)
    assert load(deep, environ=environ).root == shop


def test_files_in_the_home_directory_itself_speak_for_no_project(
    shop: Path, environ: dict[str, str]
) -> None:
    say(shop.parents[1], "[memory]\nenabled = true\n")
    (shop.parents[1] / ".git").mkdir()
    settled = load(shop, environ=environ)
    assert (settled.root, settled.memory.enabled) == (shop, False)


def test_the_switch_for_other_file_systems_is_no_unknown_setting(
    shop: Path, environ: dict[str, str]
) -> None:
    environ |= {"RAGDOCS_PORTABLE": "1", "RAGDOCS_PORTABEL": "1"}
    problems = load(shop, environ=environ).problems
    assert [problem.split()[1] for problem in problems] == ["RAGDOCS_PORTABEL"]


def test_the_users_own_file_is_not_taken_for_a_projects(
    shop: Path, environ: dict[str, str]
) -> None:
    own = shop.parents[1] / ".config" / "ragdocs"
    own.mkdir(parents=True)
    say(own, '[embedding]\nmodel = "somebody/else"\n')
    settled = load(own, environ=environ)
    assert settled.embedding.model == "somebody/else"


def test_home_and_the_top_are_refused_with_the_way_out(
    shop: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(shop.parents[1])
    for start in (shop.parents[1], linked, Path(shop.parents[1].anchor)):
        for named in (None, start):
            with pytest.raises(ConfigError, match="not a project") as caught:
                load(start, environ=environ, project=named)
            assert "--project" in caught.value.hint


@pytest.mark.parametrize("name", ["absent", "a file", "nul\0byte"])
def test_a_project_that_is_no_directory_is_refused(
    shop: Path, environ: dict[str, str], name: str
) -> None:
    (shop / "a file").touch()
    with pytest.raises(ConfigError):
        load(shop, environ=environ, project=shop / name)


# Memories and indexes


def test_memories_of_a_project_live_in_the_project(tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    assert layout.memory_root(config) == tmp_path / ".memories"
    assert layout.index_root(config, MEMORY) == tmp_path / ".memories" / "indices"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own places")
def test_memories_of_the_user_live_in_one_bank_for_all_projects(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    bank = Path(environ["HOME"]) / ".local/share/ragdocs/memories"
    for name in ("a", "b"):
        config = Config(root=tmp_path / name, memory=MemoryConfig(storage_strategy="user"))
        assert layout.memory_root(config, environ) == bank
        assert layout.index_root(config, MEMORY, environ) == bank / "indices"


@posix_only
@pytest.mark.parametrize("linked", [".memories", ".memories/indices"])
def test_a_memory_folder_that_a_clone_linked_elsewhere_is_refused(
    tmp_path: Path, linked: str
) -> None:
    target = tmp_path / "private"
    target.mkdir()
    link = tmp_path / "clone" / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    with pytest.raises(UnavailableError, match="symbolic link"):
        layout.index_root(Config(root=tmp_path / "clone"), MEMORY)


def test_the_index_of_documents_is_kept_outside_the_project(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    root = tmp_path / "My Shop!"
    root.mkdir()
    place = layout.index_root(Config(root=root), DOCS, environ)
    assert place.is_relative_to(project.cache_dir(environ) / "projects")
    assert place.name == "docs"
    assert place.parent.name.startswith("my-shop-")
    assert list(root.iterdir()) == []


def test_two_projects_of_one_name_have_two_keys_and_a_link_has_the_key_of_its_target(
    tmp_path: Path,
) -> None:
    one, two, link = tmp_path / "one" / "app", tmp_path / "two" / "app", tmp_path / "link"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    link.symlink_to(one)
    assert project.project_key(one) != project.project_key(two)
    assert project.project_key(one) == project.project_key(link)
    assert project.project_key(tmp_path / "日本").isalnum()
