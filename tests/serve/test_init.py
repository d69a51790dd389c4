"""`ragdocs init`: a directory becomes a project, and nothing that exists is changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ragdocs.config import KEYS, load
from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.serve.init import client_configuration, init


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "shop"
    folder.mkdir()
    return folder


def files_in(root: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()
    }


def test_a_bare_directory_gets_a_configuration_with_memory_on(
    root: Path, environ: dict[str, str]
) -> None:
    lines = init(root, environ)
    assert set(files_in(root)) == {"config.toml", ".memories/indices/.gitignore"}
    assert lines[:2] == [f"Wrote {root}/config.toml", f"Wrote {root}/.memories/indices/.gitignore"]
    settled = load(root, environ=environ)
    assert settled.memory.enabled
    assert set(settled.origins) == {"memory.enabled"}


def test_every_line_offered_in_the_written_file_is_valid_when_uncommented(
    root: Path, environ: dict[str, str]
) -> None:
    init(root, environ)
    file = root / "config.toml"
    text = file.read_text(encoding="utf-8")
    offered = [line.removeprefix("# ") for line in text.splitlines() if " = " in line]
    assert len(offered) > 5
    assert "storage_strategy" not in text
    file.write_text(
        "\n".join(
            line if line.startswith("[") else line.removeprefix("# ")
            for line in text.splitlines()
            if " = " in line or line.startswith("[")
        ),
        encoding="utf-8",
    )
    settled = load(root, environ=environ)
    assert len(settled.origins) == len(offered)
    assert set(settled.origins) <= set(KEYS)


def test_a_second_time_nothing_changes(root: Path, environ: dict[str, str]) -> None:
    init(root, environ)
    before = files_in(root)
    lines = init(root, environ)
    assert files_in(root) == before
    assert lines[:2] == [f"Kept {root}/config.toml", f"Kept {root}/.memories/indices/.gitignore"]


def test_git_does_not_see_the_index(root: Path, environ: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    init(root, environ)
    (root / ".memories" / "indices" / "generation").touch()
    (root / ".memories" / "plan.md").touch()
    command = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert seen.split() == ["??", ".memories/plan.md", "??", "config.toml"]


@pytest.mark.parametrize("text", ["[docs]\nenabled = true\n", "[memory]\nenabled = false\n"])
def test_a_configuration_without_memory_is_kept_and_told_what_to_add(
    root: Path, environ: dict[str, str], text: str
) -> None:
    (root / "config.toml").write_text(text, encoding="utf-8")
    lines = init(root, environ)
    assert files_in(root) == {"config.toml": text.encode()}
    assert (
        f"Memory is off; to turn it on, write into {root}/config.toml:\n[memory]\nenabled = true"
        in lines
    )


def test_beside_another_programs_file_the_environment_is_the_way(
    root: Path, environ: dict[str, str]
) -> None:
    (root / "config.toml").write_text('baseURL = "/"\n', encoding="utf-8")
    assert any("RAGDOCS_MEMORY_ENABLED=true" in line for line in init(root, environ))
    environ["RAGDOCS_MEMORY_ENABLED"] = "true"
    assert f"Wrote {root}/.memories/indices/.gitignore" in init(root, environ)
    assert files_in(root)["config.toml"] == b'baseURL = "/"\n'


def test_with_a_shared_bank_the_project_gets_no_memory_directory(
    root: Path, environ: dict[str, str]
) -> None:
    environ["RAGDOCS_MEMORY_STORAGE_STRATEGY"] = "user"
    environ["XDG_DATA_HOME"] = f"{environ['HOME']}/data"
    init(root, environ)
    assert set(files_in(root)) == {"config.toml"}
    assert (
        Path(f"{environ['HOME']}/data/ragdocs/memories/indices/.gitignore").read_text(
            encoding="utf-8"
        )
        == "*\n"
    )


def test_a_faulty_configuration_is_reported_and_left_alone(
    root: Path, environ: dict[str, str]
) -> None:
    (root / "config.toml").write_text("[memory]\nenabel = true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"memory\.enabled"):
        init(root, environ)
    assert files_in(root) == {"config.toml": b"[memory]\nenabel = true\n"}


def test_home_is_refused_and_stays_as_it_was(environ: dict[str, str]) -> None:
    home = Path(environ["HOME"])
    with pytest.raises(ConfigError, match="home directory"):
        init(home, environ)
    assert list(home.iterdir()) == []


def test_nothing_is_written_through_a_linked_memory_directory(
    root: Path, environ: dict[str, str]
) -> None:
    private = root.parent / "private"
    private.mkdir()
    (root / ".memories").symlink_to(private)
    with pytest.raises(UnavailableError, match="symbolic link"):
        init(root, environ)
    assert list(private.iterdir()) == []


def test_nothing_is_written_through_a_linked_configuration(
    root: Path, environ: dict[str, str]
) -> None:
    (root / "config.toml").symlink_to(root.parent / "elsewhere.toml")
    with pytest.raises(ConfigError):
        init(root, environ)
    assert not (root.parent / "elsewhere.toml").exists()


def test_the_client_is_told_everything_it_needs_and_no_more(
    root: Path, environ: dict[str, str]
) -> None:
    server = json.loads(client_configuration(root))["mcpServers"]["ragdocs"]
    assert server == {
        "command": sys.executable,
        "args": ["-E", "-P", "-m", "ragdocs", "mcp", "--project", str(root)],
    }
    assert init(root, environ)[-1] == client_configuration(root)
