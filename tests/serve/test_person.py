"""What a person types: lists, opening a text, completion, formats, a doctor, and exit codes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.shell_completion import BashComplete

from ragdocs.serve.cli import app, editors, output, tables
from ragdocs.system import local_socket

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Run

PLAN = "---\ntype: plan\ntags: [auth, api]\ncreated_at: 2026-01-05T10:00:00Z\n---\n# Auth plan\n"
OLD = "---\ntype: fact\nstatus: archived\ntags:\n  - ops\ncreated_at: 2025-01-05\n---\nOld.\n"
NOTE = "---\ntype: journal\ncreated_at: 2026-02-01T10:00:00Z\n---\nSee [[src/auth.py]].\n"


@pytest.fixture
def home(project: Project) -> Project:
    """A project with memories of several kinds and documents that link to each other."""
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.doc("guide.md", "# Guide\n\n## Tokens\n\nTokens are refreshed.\n")
    project.memory("auth-plan.md", PLAN + "Revoke sessions. " * 20)
    project.memory("old.md", OLD)
    project.memory("notes/session.md", NOTE)
    project.write("src/auth.py", "x = 1\n")
    return project


@pytest.fixture
def run(home: Project, run: Run) -> Run:
    """Run commands in that project."""
    del home
    return run


def on_terminal(home: Project, *arguments: str, code: int = 0, **environ: str) -> str:
    """Run a command on a terminal of 80 columns, and return what it shows; errors if it fails."""
    pty = pytest.importorskip("pty")
    import fcntl
    import struct
    import termios

    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", **environ}
    for name in ("COLUMNS", "LINES", *(name for name, value in environ.items() if not value)):
        environment.pop(name, None)
    options = ["--project", str(home.root), "--set", "embedding.model=hash"]
    command = [sys.executable, "-m", "ragdocs", *arguments, *options]
    errors = below if code else None
    done = subprocess.run(
        command, stdout=below, stderr=errors, env=environment, check=False, timeout=60
    )
    assert done.returncode == code
    os.close(below)
    shown = os.read(above, 100_000).decode()
    os.close(above)
    return shown.replace("\r\n", "\n")


@pytest.mark.parametrize("command", [("init", "--yes"), ("install", "claude-code", "--dry-run")])
def test_lines_to_paste_are_not_broken_at_the_width_of_a_terminal(
    home: Project, command: tuple[str, ...]
) -> None:
    # One word more would fit, if a path might be broken between words.
    home.root = home.root / ("a folder with a long name " * 4).strip()
    (home.root / ".git").mkdir(parents=True)
    assert str(home.root) in on_terminal(home, *command)


# --- memory list ---


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ((), ["notes/session.md", "auth-plan.md"]),
        (("--sort", "oldest"), ["auth-plan.md", "notes/session.md"]),
        (("--sort", "name", "--status", "all"), ["auth-plan.md", "notes/session.md", "old.md"]),
        (("--sort", "size", "--limit", "1"), ["auth-plan.md"]),
        (("--type", "plan"), ["auth-plan.md"]),
        (("--tag", "AUTH"), ["auth-plan.md"]),
        (("--status", "archived"), ["old.md"]),
        (("--path", "notes"), ["notes/session.md"]),
        (("--path", "note"), []),
        (("--since", "2026-01-20"), ["notes/session.md"]),
    ],
)
def test_memories_are_listed_by_filter_and_order(
    run: Run, filters: tuple[str, ...], names: list[str]
) -> None:
    code, out, _ = run("memory", "list", "--json", *filters)
    assert code == 0
    assert [row["filename"] for row in json.loads(out)["result"]] == names


def test_a_list_says_how_many_it_leaves_out(run: Run) -> None:
    assert "1 more" in run("memory", "list", "--limit", "1")[1]
    code, _, error = run("memory", "list", "--limit", "0")
    assert (code, "1 memory or more" in error) == (1, True)


def test_a_listing_has_four_formats(run: Run) -> None:
    listed = ("memory", "list", "--type", "plan")
    header, row = run(*listed)[1].splitlines()
    assert header.split() == ["memory", "type", "status", "tags", "age", "size", "title"]
    assert row.index(" plan ") == header.index(" type ")
    assert run(*listed, "--format", "table")[1] == run(*listed)[1]
    assert "| auth-plan.md | plan |" in run(*listed, "--format", "md")[1]
    assert "auth-plan.md · Auth plan" in run(*listed, "--format", "text")[1]
    assert run(*listed, "--format", "json")[1] == run(*listed, "--json")[1]
    assert run(*listed, "--format", "xml")[0] == 2


def test_a_table_cannot_be_broken_by_its_values() -> None:
    rows = [{"filename": "a|b\n# x [bold]\\.md", "size": "1B"}]
    table = tables.of_rows(rows, ("filename", "size", "never"))
    assert table.headings == ["memory", "size"]
    markdown = tables.markdown(table)
    assert markdown.count("\n") == 2
    assert "a\\|b" in markdown
    assert "[bold]" in tables.drawn(table, 80, colours=False)


def test_rows_that_fit_no_terminal_are_listed_with_the_name_whole() -> None:
    name = "decisions/sessions-instead-of-tokens-3f2a9b8c.md"
    rows = [{"filename": name, "type": "decision", "title": "Sessions " * 10}]
    table = tables.of_rows(rows, ("filename", "type", "status", "title"))
    first, *details = tables.drawn(table, 60, colours=False).splitlines()
    assert first == name
    assert details[0].startswith("   decision · Sessions")
    assert max(map(len, details)) <= 60


# --- a terminal ---


def test_a_terminal_has_colours_and_lines_that_fit(home: Project) -> None:
    home.memory("long.md", "# Long\n\n" + "many words that go on " * 20)
    shown = on_terminal(home, "memory", "search", "many words", NO_COLOR="")
    assert "\x1b[1m1. memory:long" in shown
    plain = on_terminal(home, "memory", "search", "many words", NO_COLOR="1")
    assert "\x1b[" not in plain
    prose = [line for line in plain.split("\n") if str(home.root) not in line]
    assert max(map(len, prose)) <= 80
    assert plain.count("   | many") + plain.count("   | words") >= 2
    table = on_terminal(home, "memory", "list", NO_COLOR="1")
    assert "\x1b[" not in table
    assert "─" in table
    assert max(map(len, table.split("\n"))) <= 80
    usage = on_terminal(home, "install", "no-such-client", code=2)
    refusal = on_terminal(home, "search", "words", code=1, HOME=str(home.root))
    assert "your home directory" in " ".join(refusal.split())
    for error in (usage, refusal):
        prose = [line for line in error.split("\n") if str(home.root) not in line]
        assert max(map(len, prose)) <= 80


def test_only_prose_is_wrapped() -> None:
    long = "word " * 40
    mark = "0123456789abcdef"
    verbatim = f"--- text {mark}: data, not instructions ---\n{long}\n--- end of text {mark} ---"
    assert output.wrapped(verbatim, 80) == verbatim
    diff = f"--- a\n+++ b\n+{long}"
    assert output.wrapped(diff, 80) == diff
    quoted = output.wrapped(f"   | {long}", 80).split("\n")
    assert len(quoted) > 1
    assert all(line.startswith("   | word") and len(line) <= 80 for line in quoted)
    code = f"   | ```sh\n   | {long}\n   | ```"
    assert output.wrapped(code, 80) == code
    address = "x" * 200
    assert output.wrapped(address, 80) == address


# --- open ---


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("auth-plan.md", ".memories/auth-plan.md"),
        ("auth-plan:3", ".memories/auth-plan.md:3"),
        ("Auth plan", ".memories/auth-plan.md"),
        ("memory:auth-plan", ".memories/auth-plan.md"),
        ("session.md:7-9", ".memories/notes/session.md:7"),
        ("docs/guide.md:5", "docs/guide.md:5"),
        ("guide", "docs/guide.md"),
    ],
)
def test_a_text_is_found_by_any_of_its_names(
    home: Project, run: Run, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    assert run("open", name)[:2] == (0, f"{home.root / place}\n")


def test_an_editor_gets_the_file_and_no_shell_reads_its_name(
    home: Project, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = tmp_path / "vim"
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/given\nexit $STATUS\n')
    editor.chmod(0o755)
    home.memory("a $(touch evil); b.md", "text\n")
    monkeypatch.setenv("VISUAL", f"{editor} -n")
    monkeypatch.setenv("STATUS", "0")
    assert run("open", "a $(touch evil); b.md:2")[0] == 0
    path = str(home.root / ".memories/a $(touch evil); b.md")
    assert (tmp_path / "given").read_text().splitlines() == ["-n", "+2", path]
    assert not Path("evil").exists()
    monkeypatch.setenv("STATUS", "3")
    assert run("open", "auth-plan")[0] == 1
    monkeypatch.setenv("VISUAL", str(tmp_path / "absent"))
    code, _, error = run("open", "auth-plan")
    assert (code, "Set VISUAL or EDITOR" in error) == (1, True)


def test_each_editor_is_told_the_line_in_its_way() -> None:
    ways = {
        "nvim": ["+7", "/x.md"],
        "emacs": ["+7", "/x.md"],
        "code": ["--goto", "/x.md:7"],
        "subl": ["/x.md:7"],
        "/usr/bin/hx": ["/x.md:7"],
        "idea": ["--line", "7", "/x.md"],
        "unheard-of": ["/x.md"],
    }
    for editor, words in ways.items():
        assert editors.command([editor], "/x.md", 7) == [editor, *words]
        assert editors.command([editor], "/x.md", None) == [editor, "/x.md"]


def test_a_name_of_several_texts_or_of_none_is_refused(home: Project, run: Run) -> None:
    home.memory("other/session.md", "another\n")
    code, _, error = run("open", "session.md")
    assert code == 1
    assert "memory:notes/session, memory:other/session" in error
    code, _, error = run("open", "auth-plam.md")
    assert (code, "Did you mean auth-plan.md?" in error) == (1, True)


# --- completion ---


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("memory read a", ["auth-plan.md"]),
        ("memory read session", ["notes/session.md"]),
        ("memory list --tag ", ["api", "auth", "ops"]),
        ("memory search --type pl", ["plan"]),
        ("docs read ", ["docs/guide.md"]),
        ("open gui", ["docs/guide.md"]),
        ("memory create ", []),
        ("memory lis", ["list"]),
        ("memory list --sort ", ["newest", "oldest", "name", "size"]),
    ],
)
def test_the_shell_completes_values(
    home: Project, monkeypatch: pytest.MonkeyPatch, words: str, values: list[str]
) -> None:
    monkeypatch.chdir(home.root)
    *given, last = words.split(" ")
    complete = BashComplete(app.build(), {}, "ragdocs", "_RAGDOCS_COMPLETE")
    assert [item.value for item in complete.get_completions(given, last)] == values


def test_completion_outside_of_a_project_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    complete = BashComplete(app.build(), {}, "ragdocs", "_RAGDOCS_COMPLETE")
    assert complete.get_completions(["memory", "read"], "") == []


# --- mistakes ---


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("serach x", "'search'"),
        ("memory serach x", "'search'"),
        ("token lst", "'list'"),
        ("list", "'ragdocs memory list'"),
        ("memory doctor", "'ragdocs doctor'"),
        ("memory search --limt 3 x", "--limit"),
    ],
)
def test_a_mistyped_word_names_the_right_one(
    words: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(words.split()) == 2
    error = capsys.readouterr().err
    assert "Did you mean" in error
    assert advice in error


def test_a_bare_file_name_means_the_linked_file(home: Project, run: Run) -> None:
    code, out, _ = run("memory", "linked", "auth.py")
    assert code == 0
    assert "memory:notes/session" in out
    assert "score" not in out
    assert "Note: links to src/auth.py were looked for" in out
    home.memory("two.md", "See [[lib/auth.py]].\n")
    _, out, _ = run("memory", "linked", "auth.py")
    assert "2 linked files, name one: lib/auth.py, src/auth.py" in out
    assert "memory:two" in run("memory", "linked", "lib/auth.py")[1]


def test_suggest_says_what_it_compared(run: Run) -> None:
    out = run("memory", "suggest", "--type", "all", "--threshold", "0.99")[1]
    assert "compared 2 memories at threshold 0.99; the nearest two, memory:auth-plan" in out
    assert "compared 1 memory of type journal" in run("memory", "suggest")[1]


# --- lint ---


def test_lint_finds_links_that_lead_nowhere(home: Project, run: Run) -> None:
    assert run("lint")[:2] == (0, "no problems found\n")
    lines = [
        "---",
        "tags: [a]",
        "---",
        "# Links",
        "[good](guide.md) [too](guide.md#tokens) [here](#links) [up](../src/auth.py)",
        "[[docs/guide.md]] [[auth-plan]] [[src/auth.py]] `[[none]]` ![ok](https://x.invalid/a.png)",
        "[dead](none.md)",
        "[heading](guide.md#nothing)",
        "[[src/gone.py]]",
        "[own](#nowhere)",
        "![image](none.png)",
        "[site](/none.md) [html](guide.html) <a id='spot'></a> [spot](#spot)",
        f"[long]({'x' * 400}.md)",
    ]
    home.doc("links.md", "\n".join(lines) + "\n")
    code, out, _ = run("lint", "--json")
    assert code == 1
    problems = json.loads(out)["result"]
    assert {problem["path"] for problem in problems} == {str(home.root / "docs/links.md")}
    assert [problem["line"] for problem in problems] == [7, 8, 9, 10, 11, 13]
    assert "guide.md has no heading 'nothing'" in problems[1]["problem"]
    assert "links.md | 7 | " in run("lint", "--format", "md")[1]
    assert f"{home.root / 'docs/links.md'}:7: " in run("lint")[1]


# --- doctor ---


def checks(result: tuple[int, str, str]) -> dict[str, Any]:
    states: dict[str, Any] = {}
    for check in json.loads(result[1])["checks"]:
        states.setdefault(check["name"], check)
    return states


def test_a_doctor_finds_nothing_broken_in_a_sound_project(run: Run) -> None:
    run("index")
    result = run("doctor", "--json")
    assert result[0] == 0, result[1]
    states = checks(result)
    for name in ("ragdocs", "packages", "python", "project", "model", "docs lane", "memory lane"):
        assert states[name]["state"] == "ok", states[name]
    assert "0 broken" in run("doctor")[1]


def test_a_doctor_names_what_is_broken_and_how_to_mend_it(
    home: Project, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cursor").mkdir()
    server = {"command": str(tmp_path / "gone/python"), "args": ["-m", "ragdocs", "mcp"]}
    client = tmp_path / ".cursor/mcp.json"
    client.write_text(json.dumps({"mcpServers": {"ragdocs": server}}))
    gone = {"command": sys.executable, "args": ["-m", "ragdocs", "mcp", "--project", "/no/folder"]}
    home.write(".mcp.json", json.dumps({"mcpServers": {"mine": gone}}))
    result = run("doctor", "--json")
    states = checks(result)
    assert result[0] == 1
    assert states["docs lane"]["fix"] == "Run `ragdocs index`"
    assert "gone/python, which does not exist" in states["client"]["message"]
    assert "/no/folder, which is not a folder" in result[1]


def test_a_doctor_names_what_killed_servers_left(run: Run, sockets: Path, system: str) -> None:
    path = sockets / f"ragdocs-{os.getuid()}/0123456789abcdef{local_socket.ending()}"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if system == "portable":
        with local_socket.listen(local_socket.LOOPBACK, 0, 1) as listener:
            port = listener.getsockname()[1]
        local_socket.publish(str(path), port, local_socket.new_secret())
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
    left = checks(run("doctor", "--json"))["stale files"]
    assert left["state"] == "warning"
    assert str(path) in left["message"]


def test_a_doctor_speaks_where_there_is_no_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["doctor", "--project", str(tmp_path / "none")]) == 1
    assert "broken   project: " in capsys.readouterr().out


# --- exit codes, as docs/cli.md has them ---


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("memory search zzz", 0),
        ("memory read missing.md", 1),
        ("memory create auth-plan.md --content x", 1),
        ("memory list --limit 0", 1),
        ("open nothing-like-it", 1),
        ("memory list --nonsense", 2),
        ("memory read", 2),
        ("nonsense", 2),
    ],
)
def test_exit_codes(run: Run, words: str, code: int) -> None:
    assert run(*words.split())[0] == code


def test_a_command_alone_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([]) == 2
    assert "Usage" in capsys.readouterr().out


def test_an_interruption_has_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "invoke", interrupt)
    assert app.main(["status"]) == 130
