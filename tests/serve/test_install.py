"""Clients learn of ragdocs, and forget it, without losing anything else in their settings."""

from __future__ import annotations

import io
import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client as McpClient
from mcp import StdioServerParameters
from tests.conftest import Project
from tests.text.test_jsonc import written

from ragdocs.config import Config
from ragdocs.errors import ConflictError
from ragdocs.serve.cli import app
from ragdocs.serve.install import hooks, plan, rules
from ragdocs.serve.install.clients import CLIENTS, Client, machine
from ragdocs.serve.install.parts import parts
from ragdocs.serve.surface.catalog import offered
from ragdocs.text import jsonc

Run = Callable[..., tuple[int, str, str]]
PYTHON = [sys.executable, "-E", "-P"]
EVERYTHING = ("--hooks", "--rules", "--yes")
# What people have in such files.
JSON_TEXTS = {
    "comments": """\
// my settings
{
  "theme": "dark", // easy on the eyes
  /* servers */
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "server-github"]}, // work
    // "old": {"command": "x"},
  },
  "servers": {},
  "context_servers": {"a": {"url": "https://a.example/mcp"}},
}
""",
    "windows": '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "b"\r\n\t\t}\r\n\t}\r\n}',
    "minified": '{"mcpServers":{"a":{"command":"b"}},"hooks":{"SessionStart":[]},"x":[1,2]}',
    "empty object": "{}\n",
    "empty": "",
    "only a comment": "// nothing yet\n",
}
TOML_TEXTS = {
    "comments": """\
# Codex
model = "gpt-x" # the large one

[mcp_servers.github]
command = "npx"
args = [
  "-y", # no questions
]

# sandboxes
[sandbox]
note = '''
[mcp_servers.ragdocs]
'''
""",
    "windows": 'model = "x"\r\n[a]\r\nb = 1',
    "minified": "a=1",
    "empty object": "\n",
    "empty": "",
    "only a comment": "# nothing yet\n",
}
RULES_TEXT = "# Rules\n\nBe kind.\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user a home, and the command a project in it."""
    home = tmp_path / "home"
    (home / "work/.git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(home / "work")
    return home


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def command(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = app.main(words)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return all files and folders."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found[name] = path.read_bytes() if path.is_file() else None
    return found


def lay_out(client: Client, scope: str, home: Path, style: str) -> None:
    """Give a client files that were there before."""
    for part in parts(client, scope, machine(home / "work"), PYTHON):  # type: ignore[arg-type]
        if part.is_whole:
            continue
        part.file.parent.mkdir(parents=True, exist_ok=True)
        text = RULES_TEXT
        if part.kind != "rules":
            text = (TOML_TEXTS if part.file.suffix == ".toml" else JSON_TEXTS)[style]
        part.file.write_bytes(text.encode())


def server_of(client: Client, file: Path) -> Any:
    text = file.read_text(encoding="utf-8-sig")
    loaded = tomllib.loads(text) if client.is_toml else jsonc.loads(text)
    return loaded[client.key]["ragdocs"]


@pytest.mark.parametrize("style", JSON_TEXTS)
@pytest.mark.parametrize("scope", ["project", "user"])
def test_every_client_is_told_once_and_forgets_to_the_byte(
    home: Path, run: Run, scope: str, style: str
) -> None:
    for client in CLIENTS.values():
        lay_out(client, scope, home, style)
    before = tree(home)
    code, out, error = run("install", *CLIENTS, "--scope", scope, *EVERYTHING)
    assert code == 0, out + error
    for client in CLIENTS.values():
        made = list(parts(client, scope, machine(home / "work"), PYTHON))  # type: ignore[arg-type]
        entry = server_of(client, made[0].file)
        words = entry["command"] if client.shape == "list" else [entry["command"], *entry["args"]]
        assert words[:6] == [*PYTHON, "-m", "ragdocs", "mcp"]
    after = tree(home)
    assert after != before
    code, out, _ = run("install", *CLIENTS, "--scope", scope, *EVERYTHING)
    assert code == 0
    assert out.startswith("No file needs a change.")
    assert tree(home) == after
    assert run("uninstall", "--scope", scope, "--yes")[0] == 0
    assert tree(home) == before


def test_nothing_is_left_where_there_was_nothing(home: Path, run: Run) -> None:
    before = tree(home)
    assert run("install", *CLIENTS, *EVERYTHING)[0] == 0
    assert tree(home) != before
    assert run("uninstall")[0] == 0
    assert tree(home) == before
    assert "nothing was changed" in run("uninstall")[1]


def test_what_a_user_changed_since_stays(home: Path, run: Run) -> None:
    file = home / "work/.mcp.json"
    rules_file = home / "work/CLAUDE.md"
    hooks_file = home / "work/.claude/settings.local.json"
    run("install", "claude-code", *EVERYTHING)
    text = file.read_text()
    text = jsonc.put(text, ("mcpServers", "mine"), {"command": "x"})
    text = jsonc.put(text, ("mcpServers", "ragdocs", "env"), {"RAGDOCS_WATCH_ENABLED": "false"})
    file.write_text(f"// theirs\n{text}")
    rules_file.write_text(f"# Ours\n\n{rules_file.read_text()}\nMore.\n")
    other = {"type": "command", "command": "date"}
    grown = jsonc.append(hooks_file.read_text(), ("hooks", "Stop"), {"hooks": [other]})
    loaded = jsonc.loads(grown)
    loaded["hooks"]["UserPromptSubmit"][0]["hooks"].append(other)
    hooks_file.write_text(json.dumps(loaded, indent=4))
    assert run("install", "claude-code", *EVERYTHING)[0] == 0
    assert jsonc.loads(file.read_text())["mcpServers"]["ragdocs"]["env"]
    assert run("uninstall", "claude-code")[0] == 0
    assert jsonc.loads(file.read_text()) == {"mcpServers": {"mine": {"command": "x"}}}
    assert file.read_text().startswith("// theirs\n")
    assert rules_file.read_text() == "# Ours\n\n\nMore.\n"
    left = jsonc.loads(hooks_file.read_text())["hooks"]
    assert left == {"UserPromptSubmit": [{"hooks": [other]}], "Stop": [{"hooks": [other]}]}


@pytest.mark.parametrize("indent", [None, 4])
def test_nothing_is_left_of_files_that_clients_wrote_anew(
    home: Path, run: Run, indent: int | None
) -> None:
    before = tree(home)
    run("install", *CLIENTS, *EVERYTHING)
    for file in home.rglob("*.json"):
        if ".local" not in file.parts:
            file.write_text(json.dumps(json.loads(file.read_bytes()), indent=indent))
    codex = home / "work/.codex/config.toml"
    codex.write_text(f"\n{codex.read_text()}\n")
    assert run("uninstall", "--yes")[0] == 0
    assert {name: data for name, data in tree(home).items() if ".local" not in name} == before


def test_a_comment_in_a_file_of_ours_stays(home: Path, run: Run) -> None:
    run("install", "claude-code")
    file = home / "work/.mcp.json"
    file.write_text(f"// not today\n{file.read_text()}")
    run("uninstall")
    assert file.read_text() == "// not today\n{}\n"


def test_a_file_of_ours_that_was_reformatted_and_written_again_goes_as_a_whole(
    home: Path, run: Run
) -> None:
    before = tree(home / "work")
    run("install", "cursor")
    file = home / "work/.cursor/mcp.json"
    loaded = json.loads(file.read_bytes())
    loaded["mcpServers"]["ragdocs"]["command"] = "/gone/python"
    file.write_text(json.dumps(loaded, indent=7))
    run("install", "cursor")
    assert run("uninstall")[0] == 0
    assert tree(home / "work") == before


def test_a_file_of_ours_with_something_of_others_stays_after_a_second_install(
    home: Path, run: Run
) -> None:
    run("install", "cursor")
    file = home / "work/.cursor/mcp.json"
    loaded = json.loads(file.read_bytes())
    loaded["mcpServers"]["other"] = {"command": "x"}
    loaded["mcpServers"]["ragdocs"]["command"] = "/gone/python"
    file.write_text(json.dumps(loaded))
    run("install", "cursor")
    run("uninstall")
    assert json.loads(file.read_bytes()) == {"mcpServers": {"other": {"command": "x"}}}


def test_only_what_was_there_is_named_when_it_is_taken_back(home: Path, run: Run) -> None:
    run("install", "gemini")
    out = run("uninstall")[1]
    assert "settings.json (server)" in out


@pytest.mark.parametrize(
    ("variable", "client"),
    [
        ("CODEX_HOME", "codex"),
        ("CLAUDE_CONFIG_DIR", "claude-code"),
        ("XDG_CONFIG_HOME", "opencode"),
        ("XDG_CONFIG_HOME", "claude-desktop"),
    ],
)
def test_a_folder_that_a_variable_names_may_be_outside_the_home(
    home: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    client: str,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv(variable, str(elsewhere))
    code, out, _ = run("install", client, "--scope", "user", *EVERYTHING)
    assert code == 0, out
    (part, *_) = parts(CLIENTS[client], "user", machine(home / "work"), PYTHON)
    assert part.file.is_relative_to(elsewhere)
    assert server_of(CLIENTS[client], part.file)
    # A link that leads out of it is still refused.
    assert run("uninstall", client, "--scope", "user")[0] == 0
    assert tree(elsewhere) == {}
    part.file.parent.mkdir(exist_ok=True)
    part.file.symlink_to(tmp_path / "strange")
    code, out, _ = run("install", client, "--scope", "user")
    assert code == 1
    assert "outside" in out


def test_a_relative_folder_of_settings_is_ignored(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")
    assert run("install", "opencode", "--scope", "user")[0] == 0
    assert (home / ".config/opencode/opencode.json").is_file()


def test_an_older_installation_is_brought_up_to_date(home: Path, run: Run) -> None:
    old = ["/old/python", "-m", "ragdocs", "mcp"]
    (home / "work/.codex").mkdir()
    file = home / "work/.codex/config.toml"
    file.write_text(
        f'[mcp_servers.ragdocs] # mine\ncommand = "{old[0]}"\nargs = {json.dumps(old[1:])}\n'
        "startup_timeout_sec = 20 # slow disk\n"
    )
    hooks_file = home / "work/.codex/hooks.json"
    hooks_file.write_text(hooks.put("", "codex", hooks.items("codex", ["/old/python"], "/x")))
    assert run("install", "codex", "--hooks")[0] == 0
    entry = server_of(CLIENTS["codex"], file)
    assert entry["command"] == sys.executable
    assert entry["startup_timeout_sec"] == 20
    assert "# slow disk" in file.read_text()
    assert "/old/python" not in hooks_file.read_text()
    assert len(jsonc.loads(hooks_file.read_text())["hooks"]["SessionStart"]) == 1
    assert run("uninstall", "codex")[0] == 0
    assert file.read_text() == ""
    assert jsonc.loads(hooks_file.read_text()) == {
        "hooks": {"SessionStart": [], "UserPromptSubmit": []}
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{ broken", "line 1"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
        ('{"mcpServers": {"ragdocs": {"url": "https://team.example"}}}', "another kind"),
        ('{"mcpServers": {"ragdocs": null}}', "another kind"),
        ('{"mcpServers": {}, "mcpServers": {}}', "twice"),
        ("\xff\xfe{", "not UTF-8"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_lines_to_paste(
    home: Path, run: Run, text: str, reason: str
) -> None:
    file = home / "work/.mcp.json"
    file.write_bytes(text.encode("latin-1"))
    code, out, _ = run("install", "claude-code", "cursor")
    assert code == 1
    assert reason in out
    assert "Put these lines there by hand:" in out
    assert '"--project"' in out
    assert file.read_bytes() == text.encode("latin-1")
    # The other client is served all the same.
    assert server_of(CLIENTS["cursor"], home / "work/.cursor/mcp.json")


def test_a_read_only_file_is_refused_with_a_sentence(home: Path, run: Run) -> None:
    file = home / "work/.mcp.json"
    file.write_text("{}")
    file.chmod(0o444)
    code, out, _ = run("install", "claude-code")
    assert code == 1
    assert f"{file} is read-only" in out
    assert "Make it writable, or put these lines there by hand:" in out
    assert "No file needs a change" not in out
    assert file.read_text() == "{}"


def test_lines_that_cannot_be_taken_out_are_left_to_a_person(home: Path, run: Run) -> None:
    run("install", "claude-code")
    file = home / "work/.mcp.json"
    broken = file.read_text() + "}"
    file.write_text(broken)
    code, out, _ = run("uninstall", "claude-code")
    assert code == 1
    assert "Take lines like these out by hand:" in out
    assert file.read_text() == broken


def test_a_note_is_about_the_file_that_was_written(home: Path, run: Run) -> None:
    (home / ".codex").mkdir()
    assert "once you trust the project" in run("install", "codex")[1]
    assert "trust the project" not in run("install", "codex", "--scope", "user")[1]
    (home / "work/.mcp.json").write_text("{ broken")
    refused = run("install", "claude-code", "--hooks")[1]
    assert "settings.local.json (hooks)" in refused
    assert "it asks once" not in refused


def test_what_is_installed_for_all_projects_is_named_where_nothing_else_is(
    home: Path, run: Run
) -> None:
    run("install", "codex", "--scope", "user")
    assert "`ragdocs uninstall --scope user` takes it back" in run("uninstall")[1]
    assert "--scope user" not in run("uninstall", "cursor")[1]
    run("uninstall", "--scope", "user")
    assert "--scope user" not in run("uninstall")[1]


@pytest.mark.parametrize("place", ["home/dotfiles/codex.toml", "elsewhere/codex.toml"])
def test_a_linked_file_is_written_through_only_inside_the_home(
    home: Path, run: Run, tmp_path: Path, place: str
) -> None:
    target = tmp_path / place
    target.parent.mkdir(parents=True)
    target.write_text("# mine\n")
    (home / ".codex").mkdir()
    link = home / ".codex/config.toml"
    link.symlink_to(target)
    code, out, _ = run("install", "codex", "--scope", "user")
    assert link.is_symlink()
    if place.startswith("home"):
        assert code == 0
        assert "[mcp_servers.ragdocs]" in target.read_text()
        run("uninstall", "codex", "--scope", "user")
    else:
        assert code == 1
        assert "outside" in out
    assert target.read_text() == "# mine\n"


def test_a_link_in_a_project_does_not_lead_out_of_it(home: Path, run: Run) -> None:
    secret = home / ".profile"
    secret.write_text("export A=1\n")
    (home / "work/CLAUDE.md").symlink_to(secret)
    code, out, _ = run("install", "claude-code", "--rules")
    assert code == 1
    assert "outside" in out
    assert secret.read_text() == "export A=1\n"


def test_two_names_of_one_file_get_one_paragraph(home: Path, run: Run) -> None:
    (home / "work/AGENTS.md").write_text(RULES_TEXT)
    (home / "work/CLAUDE.md").symlink_to("AGENTS.md")
    assert run("install", "claude-code", "codex", "opencode", "--rules")[0] == 0
    assert (home / "work/AGENTS.md").read_text().count(rules.BEGIN) == 1
    assert "Kept" in run("uninstall", "codex")[1]
    assert "Kept" in run("uninstall", "claude-code")[1]
    assert rules.BEGIN in (home / "work/AGENTS.md").read_text()
    run("uninstall", "opencode")
    assert (home / "work/AGENTS.md").read_text() == RULES_TEXT
    assert (home / "work/CLAUDE.md").is_symlink()


def test_a_dry_run_shows_the_change_and_writes_nothing(home: Path, run: Run) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    text = json.dumps({"mcpServers": {"gh": {"command": "x", "env": {"T": token}}}}, indent=2)
    (home / "work/.mcp.json").write_text(text)
    before = tree(home)
    code, out, _ = run("install", "claude-code", *EVERYTHING, "--dry-run")
    assert code == 0
    assert '+    "ragdocs": {' in out
    assert token not in out
    assert tree(home) == before
    answer = json.loads(run("install", "claude-code", "--dry-run", "--json")[1])
    assert [row["state"] for row in answer["changes"]] == ["planned"]
    assert token not in answer["changes"][0]["diff"]


def test_clients_are_found_by_their_traces(home: Path, run: Run, tmp_path: Path) -> None:
    code, _, error = run("install")
    assert code == 1
    assert "claude-code" in error
    (home / ".cursor").mkdir()
    (home / "work/opencode.jsonc").write_text("{ /* mine */ }")
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    answer = json.loads(run("install", "--dry-run", "--json")[1])
    rows = {row["clients"][0]: row["file"] for row in answer["changes"]}
    assert rows.keys() == {"cursor", "gemini", "opencode"}
    assert rows["opencode"].endswith("opencode.jsonc")


def test_a_client_of_one_project_is_not_taken_from_another(home: Path, run: Run) -> None:
    (home / "other/.git").mkdir(parents=True)
    run("install", "windsurf", "--project", str(home / "other"))
    assert "nothing was changed" in run("uninstall")[1]
    file = home / ".codeium/windsurf/mcp_config.json"
    assert str(home / "other") in file.read_text()
    run("uninstall", "--project", str(home / "other"))
    assert not file.exists()


def test_a_file_that_a_client_wrote_meanwhile_is_not_overwritten(home: Path) -> None:
    file = home / "work/.mcp.json"
    file.write_text("{}")
    server = next(parts(CLIENTS["claude-code"], "project", machine(home / "work"), PYTHON))
    (change,) = plan.installing([server])
    file.write_text('{"mcpServers": {"new": {}}}')
    with pytest.raises(ConflictError, match="in the meantime"):
        plan.write(change, is_install=True)
    assert file.read_text() == '{"mcpServers": {"new": {}}}'


@pytest.mark.parametrize(
    "python",
    [
        "/home/u/.cache/uv/archive-v0/AbC/bin/python",
        "/home/u/.cache/pipx/0a1b/bin/python",
        "/Users/u/Library/Caches/uv/environments-v2/x/bin/python",
        # With UV_CACHE_DIR and PIPX_HOME.
        "/data/packages/archive-v0/AbC/bin/python",
        "/data/programs/.cache/ceaf5001cd716e8/bin/python",
    ],
)
def test_an_installation_in_a_cache_is_not_written_down(
    run: Run, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    code, _, error = run("install", "codex")
    assert code == 1
    assert "uv tool install" in error


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(case=written(), data=st.data())
def test_any_settings_survive_an_installation(
    home: Path, case: tuple[str, Any], data: st.DataObject
) -> None:
    text, value = case
    name = data.draw(st.sampled_from(["claude-code", "gemini", "zed", "opencode", "vscode"]))
    file = home / "work" / CLIENTS[name].project_files[0]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode())
    wanted = parts(CLIENTS[name], "project", machine(home / "work"), PYTHON)
    (change,) = plan.installing([part for part in wanted if part.file == file])
    if change.is_refused:
        assert change.lines()
        return
    plan.write(change, is_install=True)
    loaded = jsonc.loads(file.read_bytes().decode())
    del loaded[CLIENTS[name].key]["ragdocs"]
    assert {key: loaded[key] for key in value if key != "hooks"} == {
        key: value[key] for key in value if key != "hooks"
    }
    wanted = parts(CLIENTS[name], "project", machine(home / "work"), PYTHON)
    for taken in plan.uninstalling(wanted):
        plan.write(taken, is_install=False)
    assert file.read_bytes() == text.encode()


def test_the_paragraph_names_tools_that_are_offered(tmp_path: Path) -> None:
    tools = {verb.name for verb in offered(Config(root=tmp_path))}
    for line in rules.TEXT.splitlines():
        for word in line.split("`")[1::2]:
            assert word in tools | {"ragdocs"}


def test_a_client_starts_the_server_with_what_was_written(project: Project, run: Run) -> None:
    project.doc("guide.md", "# Guide\n\nTokens are refreshed.\n")
    project.write("config.toml", "[memory]\nenabled = true\n")
    assert run("install", "claude-code", "--project", str(project.root), "--yes")[0] == 0
    entry = jsonc.loads((project.root / ".mcp.json").read_text())["mcpServers"]["ragdocs"]
    environment = {name: os.environ[name] for name in os.environ if name.startswith("XDG_")}
    environment["RAGDOCS_SERVER_SHARED"] = "false"
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=environment, cwd="/"
    )
    with start_blocking_portal() as portal:
        client = McpClient(parameters, mode="legacy", read_timeout_seconds=60)
        with portal.wrap_async_context_manager(client) as session:
            names = {tool.name for tool in portal.call(session.list_tools).tools}
    assert {"search_docs", "remember"} <= names


@pytest.mark.parametrize(
    ("event", "key"),
    [("SessionStart", "hookSpecificOutput"), ("sessionStart", "additional_context")],
)
def test_a_hook_answers_in_the_form_of_its_host(
    project: Project, run: Run, event: str, key: str
) -> None:
    project.memory("plan.md", "# The plan\n\nRevoke sessions.\n")
    project.write("config.toml", "[memory]\nenabled = true\n[embedding]\nmodel = 'none'\n")
    code, out, _ = run("context", "--hook", event, "--project", str(project.root))
    assert code == 0
    assert "The plan" in str(json.loads(out)[key])


def test_a_hook_before_a_compaction_says_what_to_keep(project: Project, run: Run) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n[embedding]\nmodel = 'none'\n")
    code, out, _ = run("context", "--hook", "PreCompact", "--project", str(project.root))
    assert code == 0
    assert out.startswith("Keep in the summary")


def test_a_hook_never_ends_with_the_code_that_blocks_a_prompt(run: Run) -> None:
    assert run("context", "--hook", "UserPromptSubmit", "--no-such-option")[0] == 1
