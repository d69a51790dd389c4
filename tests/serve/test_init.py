"""`ragdocs init`: it looks for documentation, and changes nothing that exists."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import shapes
from tests.plain_git import plain_git
from tests.shapes import plant

from ragdocs.config import KEYS, load
from ragdocs.errors import ConfigError, UnavailableError
from ragdocs.project.formats import EXTRAS, is_installed
from ragdocs.serve.init.project import client_configuration, init, look
from ragdocs.serve.init.proposal import in_force
from ragdocs.serve.init.survey import duration, survey
from ragdocs.workspace import Workspace


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
    plain_git(root, "init")
    init(root, environ)
    (root / ".memories" / "indices" / "generation").touch()
    (root / ".memories" / "plan.md").touch()
    seen = plain_git(root, "status", "--porcelain", "--untracked-files=all")
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


# --- the look before ---


def settings_of(root: Path, environ: dict[str, str]) -> tuple[set[str], set[str]]:
    docs = load(root, environ=environ, project=root).docs
    return set(docs.include), set(docs.exclude)


# How many files of a project are read, and the globs that are written for it.
CHOSEN = {
    "OBSIDIAN": (16, "**/*.md", ""),
    "NEXT": (15, "docs/**/*.mdx packages/next/**/*.md *.md", ""),
    "ASCIIDOCTOR": (8, "docs/**/*.adoc *.adoc", ""),
    "LANGCHAIN": (13, "docs/**/*.mdx docs/**/*.ipynb docs/**/*.html *.md", ""),
    "ASTRO": (9, "src/content/docs/en/**/*.mdx *.md", ""),
    "VUE": (12, "src/**/*.md *.md", ""),
    "DJANGO": (9, "docs/**/*.txt *.rst", "docs/**/requirements.txt"),
    "PACKAGE": (1, "*.md", ""),
    "MONOREPO": (
        12,
        "packages/**/*.md *.md",
        "packages/**/CHANGELOG.md packages/**/test/** packages/**/vendor/**",
    ),
    "DOCUSAURUS": (3, "docs/**/*.md *.md", "README.ja.md README_CN.md"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_written_chooses_the_documentation(
    root: Path, environ: dict[str, str], name: str
) -> None:
    count, include, exclude = CHOSEN[name]
    plant(root, getattr(shapes, name))
    proposal = look(root, environ)
    init(root, environ)
    assert settings_of(root, environ) == (set(include.split()), set(exclude.split()))
    workspace = Workspace(load(root, project=root, flags={"embedding.model": "none"}))
    workspace.sync()
    assert len(workspace.corpus("docs").stamps()) == count == len(proposal.paths)


def test_each_glob_has_its_reason_and_copies_are_offered(
    root: Path, environ: dict[str, str]
) -> None:
    plant(root, shapes.ASTRO)
    init(root, environ)
    lines = [line.strip() for line in (root / "config.toml").read_text("utf-8").splitlines()]
    offered = '# "src/content/docs/fr/**/*.mdx",'
    assert lines[lines.index(offered) - 1] == "# 7 files, translation: fr"
    chosen = '"src/content/docs/en/**/*.mdx",'
    assert lines[lines.index(chosen) - 1] == "# 8 files, Markdown"


@pytest.mark.parametrize("name", [name for name in vars(shapes) if name.isupper()])
def test_the_table_fits_into_80_columns(root: Path, environ: dict[str, str], name: str) -> None:
    shape = getattr(shapes, name)
    if not isinstance(shape, dict):
        return
    plant(root, shape)
    table = survey(look(root, environ)).splitlines()[2:]
    assert max(map(len, table)) <= 80


def test_the_table_names_what_is_not_read_and_why(
    root: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXTRAS, "office", ("no_such_package",))
    is_installed.cache_clear()
    plant(root, {"docs/a.md": "# A", "docs/words.txt": "words", "docs/b.pdf": "x"})
    rows = [line.split(maxsplit=5)[2:] for line in survey(look(root, environ)).splitlines()]
    is_installed.cache_clear()
    assert ["text", "5", "B", "index, without headings"] in rows
    assert ["PDF", "1", "B", "needs ragdocs[office]"] in rows


def test_pictures_in_notebooks_are_no_passages(root: Path, environ: dict[str, str]) -> None:
    picture = json.dumps({"cells": [{"outputs": [{"data": {"image/png": "A" * 110_000}}]}]})
    (root / "book").mkdir()
    for number in range(5):
        (root / "book" / f"{number}.ipynb").write_text(picture, encoding="utf-8")
    assert 40 < look(root, environ).passages < 60


def test_languages_of_one_folder_share_a_row(root: Path, environ: dict[str, str]) -> None:
    codes = ("en", "de", "es", "fr", "ja", "ko", "pt", "ru", "tr", "zh")
    plant(root, {f"docs/{code}/page.md": "# P" for code in codes})
    rows = [line for line in survey(look(root, environ)).splitlines() if "translations" in line]
    assert len(rows) == 1
    assert rows[0].split()[:2] == ["docs/*", "9"]
    assert rows[0].endswith("+6")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a second"),
        (9.6, "about 10 seconds"),
        (70, "about 1 minute"),
        (430, "about 7 minutes"),
        (7300, "about 2 hours"),
    ],
)
def test_durations_are_guessed_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_existing_configuration_is_kept_and_told_its_gaps(
    root: Path, environ: dict[str, str]
) -> None:
    plant(root, shapes.VUE)
    own = '[docs]\ninclude = ["README.md"]\n\n[memory]\nenabled = true\n'
    (root / "config.toml").write_text(own, encoding="utf-8")
    lines = init(root, environ)
    assert (root / "config.toml").read_text(encoding="utf-8") == own
    assert "11 files of documentation lie outside the configured globs" in lines
    advice = next(line for line in lines if "docs.include" in line)
    assert "(config.toml:2)" in advice
    assert '"src/**/*.md",' in advice


def test_a_configuration_without_gaps_is_told_nothing(root: Path, environ: dict[str, str]) -> None:
    plant(root, shapes.MONOREPO)
    init(root, environ)
    assert not any("outside" in line for line in init(root, environ))


def test_globs_of_names_from_others_stay_valid_toml(root: Path, environ: dict[str, str]) -> None:
    files = {f'we"ird [x] \\ {{}}#/page{number}.md': "# P" for number in range(3)}
    plant(root, files)
    proposal = look(root, environ)
    init(root, environ)
    assert len(proposal.paths) == 3
    assert settings_of(root, environ)[0] == set(in_force(proposal.include))


def test_very_many_folders_and_copies_stay_within_the_limits_of_a_configuration(
    root: Path, environ: dict[str, str]
) -> None:
    files = {}
    for number in range(90):
        files[f"area{number}/page.md"] = "# P"
        files[f"area{number}/page.fr.md"] = "# P"
    plant(root, files)
    init(root, environ)
    include, exclude = settings_of(root, environ)
    assert include == {"**/*.md"}
    assert len(exclude) <= 64


# --- the command ---


def run(*words: str, root: Path, answer: str | None = None) -> tuple[int, str]:
    """Run `ragdocs init`: in a pipe, or on a terminal that answers."""
    command = [sys.executable, "-P", "-m", "ragdocs", "init", "--project", str(root), *words]
    if answer is None:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        return done.returncode, done.stdout
    return on_terminal(command, answer)


def on_terminal(command: list[str], answer: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, type an answer, and return what it shows."""
    import os
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.environ["PAGER"] = "cat"
        os.execv(command[0], command)
    os.write(terminal, f"{answer}\n".encode())
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            # The other end is closed.
            break
        if not data:
            break
        shown += data
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_in_a_pipe_nothing_is_asked(root: Path) -> None:
    plant(root, shapes.VUE)
    code, shown = run(root=root)
    assert code == 0
    assert "[Y/n]" not in shown
    assert "To index: 12 files" in shown
    assert (root / "config.toml").exists()


def test_a_dry_run_shows_the_file_and_writes_nothing(root: Path) -> None:
    plant(root, shapes.VUE)
    before = files_in(root)
    code, shown = run("--dry-run", root=root)
    assert code == 0
    assert '"src/**/*.md",' in shown
    assert files_in(root) == before


def test_json_has_groups_globs_and_an_estimate(root: Path) -> None:
    plant(root, shapes.ASTRO)
    code, shown = run("--json", "--dry-run", root=root)
    answer = json.loads(shown)
    assert code == 0
    assert answer["written"] is False
    documentation = answer["documentation"]
    assert documentation["files"] == 9
    assert documentation["include"] == ["src/content/docs/en/**/*.mdx", "*.md"]
    verdicts = {(group["folder"], group["verdict"]) for group in documentation["found"]}
    assert ("src/content/docs/fr", "translation") in verdicts
    assert documentation["seconds_by_meaning"] > documentation["seconds_by_words"] >= 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_on_a_terminal_no_is_respected_and_yes_writes(root: Path) -> None:
    plant(root, shapes.VUE)
    before = files_in(root)
    code, shown = run(root=root, answer="n")
    assert code == 1
    assert "Write config.toml with these? [Y/n]" in shown
    assert files_in(root) == before
    code, shown = run(root=root, answer="")
    assert code == 0
    assert (root / "config.toml").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_on_a_terminal_yes_in_advance_is_not_asked(root: Path) -> None:
    plant(root, shapes.VUE)
    code, shown = run("--yes", root=root, answer="")
    assert code == 0
    assert "[Y/n]" not in shown
    assert (root / "config.toml").exists()
