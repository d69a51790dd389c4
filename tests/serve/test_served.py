"""Commands through a warm server: the same answers, without the imports.

Real processes: a window that keeps the server, and commands as a shell runs them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import Project
from tests.golden import rims
from tests.serve.windows import PATIENCE, Window, servers, until

from ragdocs.serve.cli import hook
from ragdocs.serve.shared import client

READING = (
    ("search", "tokens"),
    ("search", "tokens", "--limit", "1", "--explain"),
    ("search", "--lane", "memory", "zebra"),
    ("search", "nothing of the kind", "--path", "absent"),
    ("docs", "search", "tokens", "--path", "docs"),
    ("docs", "read", "docs/guide.md"),
    ("docs", "read", "docs/guide.md", "--heading", "Guide"),
    ("docs", "read", "docs/guid.md"),
    ("memory", "read", "plan.md"),
    ("memory", "read", "plam.md"),
    ("memory", "search", "zebra", "--tag", "animal"),
    ("memory", "linked", "docs/guide.md"),
    ("memory", "stats"),
    ("memory", "log"),
    ("memory", "log", "--format", "table"),
    ("memory", "list"),
    ("memory", "list", "--format", "md", "--tag", "animal"),
    ("memory", "list", "--json"),
    ("memory", "read", "x" * 5000),
    ("entry", "search", "zebra", "--mode", "keyword"),
    ("recall", "--since", "1w"),
    ("repo", "show"),
    ("explain", "tokens", "docs/guide.md"),
    ("context", "tokens"),
    ("context", "--hook", "SessionStart", "tokens"),
    ("commits", "anything"),
    ("journal", "search", "anything"),
    ("search",),
    ("search", "tokens", "--limit", "many"),
    ("memory", "raed", "plan.md"),
    ("docs",),
)
HEAVY = ("numpy", "click", "pydantic", "ragdocs.config", "ragdocs.serve.surface")


@dataclass
class Outcome:
    code: int
    out: str
    error: str
    modules: set[str]


@dataclass
class Shell:
    """Runs commands in a project as a person does."""

    project: Project
    # The folders of the user, if they are not those of the test.
    environ: dict[str, str] = field(default_factory=dict)

    def _options(self) -> list[str]:
        return ["--project", str(self.project.root), "--set", "embedding.model=hash"]

    def run(self, *words: str, stdin: str = "", **variables: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-P", "-m", "ragdocs", *words, *self._options()],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, **self.environ, **variables},
        )
        lines = done.stderr.splitlines(keepends=True)
        imports = [line for line in lines if line.startswith("import time:")]
        error = "".join(line for line in lines if not line.startswith("import time:"))
        modules = {line.rpartition("|")[2].strip() for line in imports}
        return Outcome(done.returncode, done.stdout, error, modules)

    @property
    def runtime(self) -> Path:
        """The folder of the server's socket."""
        return Path(self.environ["XDG_RUNTIME_DIR"], f"ragdocs-{os.getuid()}")

    def alone(self, *words: str, stdin: str = "") -> Outcome:
        """Run a command that asks no server, in this process: the same program without its start."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environ, "RAGDOCS_SERVER_SHARED": "false"}.items():
                patch.setenv(name, value)
            ended = rims.command([*words, *self._options()], stdin)
        return Outcome(ended.code, ended.out, ended.err, set())


@contextmanager
def opened(folder: Path) -> Iterator[Shell]:
    """Open a window on a new project, whose server answers the commands."""
    project = Project(folder / "project")
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.doc("guide.md", "# Guide\n\nTokens are refreshed every quarter of an hour.\n")
    project.memory("plan.md", "---\ntags: [animal]\n---\n# Plan\n\nThe zebra [[docs/guide.md]].\n")
    project.doc("other.md", "# Other\n\nSessions end, tokens expire.\n")
    environ = {"RAGDOCS_SERVER_SHARED": "true"}
    for name in ("CACHE", "STATE", "DATA", "CONFIG"):
        environ[f"XDG_{name}_HOME"] = str(folder / name.casefold())
    # The name of a socket must be short.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as runtime:
        environ["XDG_RUNTIME_DIR"] = runtime
        shell = Shell(project, environ)
        window = Window(project, **environ).greet()
        window.call("index_status")
        try:
            yield shell
            window.close()
        finally:
            for server in servers(shell.runtime):
                os.kill(server, signal.SIGKILL)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Give one project and its server to all tests that can share them."""
    with opened(tmp_path_factory.mktemp("served")) as shell:
        yield shell


def is_light(outcome: Outcome) -> bool:
    return not outcome.modules.intersection(HEAVY)


def test_commands_answer_as_in_their_own_process(tmp_path: Path, system: str) -> None:
    commands = list(READING)
    if system == "as it is":
        # The other system has another way to the server, and the same forms of answers.
        commands += [(*words, "--json") for words in READING]
    light = 0
    # In a project of its own: what other tests have just written is a second older each second.
    with opened(tmp_path) as shell:
        for words in commands:
            served = shell.run(*words)
            alone = shell.alone(*words)
            assert (served.code, served.out) == (alone.code, alone.out), words
            assert served.error == alone.error, words
            light += is_light(served)
    assert light >= (len(READING) - 7) * len(commands) // len(READING)


def test_a_command_that_is_served_imports_no_engine_and_no_declaration(shell: Shell) -> None:
    outcome = shell.run("search", "tokens")
    assert "docs/guide.md" in outcome.out
    assert is_light(outcome), outcome.modules.intersection(HEAVY)
    alone = shell.run("search", "tokens", RAGDOCS_SERVER_SHARED="false")
    assert alone.out == outcome.out
    assert not is_light(alone)


def test_a_text_may_be_typed_piped_or_in_a_file(shell: Shell) -> None:
    file = shell.project.write("note.txt", "the text of a file\n")
    absent = str(shell.project.root / "absent.txt")
    assert is_light(shell.run("memory", "create", "typed.md", "--content", "typed"))
    assert is_light(shell.run("memory", "create", "piped.md", stdin="piped\r\nin\n"))
    assert is_light(shell.run("memory", "create", "filed.md", "--file", str(file)))
    assert is_light(shell.run("memory", "create", "dash.md", "--content", "-", stdin="a dash\n"))
    texts = {}
    for name in ("typed", "piped", "filed", "dash"):
        texts[name] = (shell.project.root / f".memories/{name}.md").read_text().rstrip()
    assert texts["typed"].endswith("typed")
    assert texts["piped"].endswith("piped\nin")
    assert texts["filed"].endswith("the text of a file")
    assert texts["dash"].endswith("a dash")
    for words, stdin in (
        (("memory", "create", "typed.md"), "again"),
        (("memory", "create", "large.md"), "x" * 1_000_001),
        (("memory", "create", "x.md", "--file", absent), ""),
        (("memory", "update", "absent.md"), "new"),
    ):
        outcome = shell.run(*words, stdin=stdin)
        alone = shell.alone(*words, stdin=stdin)
        assert (outcome.code, outcome.out, outcome.error) == (1, alone.out, alone.error)


def test_what_is_written_through_the_server_is_there_for_everybody(shell: Shell) -> None:
    shell.run("remember", "the okapi decision")
    assert "okapi" in shell.alone("recall").out
    assert "okapi" in shell.run("recall").out
    written = shell.run("memory", "create", "a.md", "--content", "same", "--json")
    alone = shell.alone("memory", "create", "b.md", "--content", "same", "--json")
    assert json.loads(written.out).keys() == json.loads(alone.out).keys()


def test_a_file_is_found_by_the_command_after_its_writing(shell: Shell) -> None:
    for number in range(5):
        shell.project.doc(f"new{number}.md", f"# New\n\nThe quagga{number} is new.\n")
        outcome = shell.run("search", f"quagga{number}")
        assert is_light(outcome)
        assert f"docs/new{number}.md" in outcome.out


def test_the_secrets_of_a_command_are_not_written_by_the_server(shell: Shell) -> None:
    secret = "correct-horse-battery-staple-42"
    content = f"the key is {secret}"
    outcome = shell.run("memory", "create", "s.md", "--content", content, SERVICE_TOKEN=secret)
    assert outcome.code == 0
    assert is_light(outcome)
    assert secret not in (shell.project.root / ".memories/s.md").read_text()
    outcome = shell.run("memory", "read", secret, SERVICE_TOKEN=secret)
    assert outcome.code == 1
    assert secret not in outcome.error


def test_a_command_of_another_project_is_declined(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (lock,) = shell.runtime.glob("*.lock")
    environ = {**shell.environ}
    del environ["RAGDOCS_SERVER_SHARED"]
    request: dict[str, object] = {
        "words": ["search", "tokens", "--set", "embedding.model=hash"],
        "project": None,
        "settings": ["embedding.model=hash"],
        "folder": str(shell.project.root),
        "environ": environ,
    }
    for change, declines in (
        ({}, False),
        ({"folder": str(other)}, True),
        ({"settings": []}, True),
        ({"project": str(other)}, True),
        ({"environ": {**environ, "RAGDOCS_MEMORY_ENABLED": "false"}}, True),
        ({"environ": {**environ, "XDG_DATA_HOME": str(other)}}, True),
    ):
        connection = client._connected(str(lock.with_suffix("")))
        assert connection is not None
        with connection:
            answer = client._request(connection, {**request, **change})
        assert ("declined" in answer) is declines, change


def test_a_hook_is_answered_by_the_prompt_it_is_given(shell: Shell) -> None:
    prompt = json.dumps(
        {"hook_event_name": "UserPromptSubmit", "prompt": "how are tokens refreshed"}
    )
    words = ("context", "--hook", "UserPromptSubmit")
    # A pack of a command alone waits for no vectors, so they must be in its index already.
    shell.alone("search", "zebra")
    shell.alone("memory", "search", "zebra")
    outcome = shell.run(*words, stdin=prompt)
    assert is_light(outcome)
    assert outcome.out == shell.alone(*words, stdin=prompt).out
    output = json.loads(outcome.out)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Guide" in output["additionalContext"]
    for stdin in ("", "no JSON", "[1]", '{"prompt": 1}'):
        outcome = shell.run(*words, stdin=stdin)
        assert (outcome.code, is_light(outcome)) == (0, True)
        assert "Guide" not in json.loads(outcome.out)["hookSpecificOutput"]["additionalContext"]


def test_a_hook_does_not_wait_for_an_input_that_stays_open(shell: Shell) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-P", "-m", "ragdocs", "context", "--hook", "SessionStart"]
    command += ["--project", str(shell.project.root), "--set", "embedding.model=hash"]
    os.write(writing, b'{"prompt": "zebra"}')
    done = subprocess.run(
        command,
        stdin=reading,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        env={**os.environ, **shell.environ},
    )
    assert "zebra" in done.stdout
    os.close(writing)
    os.close(reading)


def test_a_hook_without_a_server_starts_one_for_the_next_time(
    served: Project, runtime: Path
) -> None:
    shell = Shell(served)
    outcome = shell.run("context", "--hook", "SessionStart", stdin="{}")
    assert outcome.code == 0
    assert not is_light(outcome)
    until(lambda: servers(runtime))
    until(lambda: is_light(shell.run("context", "--hook", "SessionStart", stdin="{}")))


def test_a_server_that_does_not_answer_does_not_keep_a_command_waiting(shell: Shell) -> None:
    (server,) = servers(shell.runtime)
    os.kill(server, signal.SIGSTOP)
    try:
        outcome = shell.run("search", "tokens")
    finally:
        os.kill(server, signal.SIGCONT)
    assert "docs/guide.md" in outcome.out
    assert not is_light(outcome)


def test_what_hooks_said_before_is_no_part_of_the_prompt() -> None:
    # As Gemini CLI 0.61 writes it.
    said = "<hook_context># Context of harbour\n\n## Latest memories\n</hook_context>\n\n"
    asked = "What does <hook_context> mean, and </hook_context>?"
    assert hook.prompt(json.dumps({"prompt": said + asked})) == asked
    assert hook.prompt(json.dumps({"prompt": "<hook_context>"})) == "<hook_context>"


def test_a_long_prompt_is_cut_where_a_task_must_end() -> None:
    text = json.dumps({"prompt": " zebra" * 20_000})
    assert len(hook.prompt(text)) == hook.LONGEST_PROMPT
