"""The tasks of this project: each makes its virtual environment first, so Python and pip are all that is needed."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

# No syntax newer than Python 3.6 above or below, or an old Python would fail before it can say why.
if sys.version_info < (3, 11):  # noqa: UP036 - the one line that an older Python is meant to reach
    sys.exit(
        "ragdocs needs Python 3.11 or newer; this is Python {}.{} ({}).\n"
        "Run it with a newer one, for example: python3.12 tasks.py".format(
            *sys.version_info[:2], sys.executable
        )
    )

ROOT = Path(__file__).resolve().parent
WINDOWS = os.name == "nt"
# Tasks are started in any directory, also in one whose files are named like modules of Python.
SAFE_PATH = "-P"
# Large packages of which tests import little: Python compiles that when it is imported.
SELDOM_IMPORTED = (
    r"site-packages[/\\]"
    r"(torch|transformers|sympy|mpmath|scipy|sklearn|mypy|mypyc|pip|setuptools)[/\\]"
)
# Where Linux has a file system in memory, and how much of it the files of tests may take, in bytes.
MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it
MEMORY_NEEDED = 4_000_000_000

TASKS = """tasks:
  serve               serve this project's docs/ and .memories/ over MCP stdio; prints the client configuration
  test [ARGUMENTS]    run the tests, lint and check types meanwhile; the arguments go to pytest
  lint                lint and check types only
  docs                write the tables of tools, commands and keys into docs/, the help and the first answers of a window
  pictures            draw the terminals of docs/pictures from real commands on a small project
  bench [NAME]        run bench/NAME.py, or list the benchmarks
  plugins             write plugins/, server.json and the marketplace from their template, with this version
  agents [OPTIONS]    run Claude Code, Codex, opencode and Gemini CLI from npm against a model on loopback
  release [--out DIR] build and check wheel and sdist, measure them, write an SBOM and the notes of the version
  golden              accept what tools, commands and searches answer now as the golden files of tests/golden

examples:
  python3 tasks.py serve
  python3 tasks.py test
  python3 tasks.py test -k encode --durations=5
  python3 tasks.py bench speed --only search
  python3 tasks.py --venv /tmp/fresh test

Every task creates the virtual environment when it is missing and installs into it when pyproject.toml or
constraints.txt changed.
"""


def main() -> int:
    """Run the task that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python3 tasks.py", epilog=TASKS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--venv",
        type=Path,
        default=Path(os.environ.get("RAGDOCS_VENV") or ROOT / ".venv"),
        help="directory of the virtual environment (default: $RAGDOCS_VENV, or .venv here)",
    )
    parser.add_argument(
        "task",
        nargs="?",
        choices=list(RUN),
        metavar="TASK",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    options = parser.parse_args()
    if options.task is None:
        parser.print_help()
        return 0
    environment = Environment(options.venv.expanduser().absolute())
    return RUN[options.task](environment, options.arguments)


class Environment:
    """A virtual environment with this project in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.scripts = directory / ("Scripts" if WINDOWS else "bin")
        self.python = self.program("python")

    def program(self, name: str) -> Path:
        """Return the path of a program in the environment."""
        return self.scripts / (name + ".exe" if WINDOWS else name)

    def install(self, extra: str = "") -> None:
        """Install the project, editable, unless that was done since its requirements last changed."""
        requirements = [
            (ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")
        ]
        digest = hashlib.sha256(b"\0".join([*requirements, str(ROOT).encode()])).hexdigest()
        # The test extra holds everything the plain installation does.
        stamps = [
            self.directory / ("ragdocs-installed-" + name) for name in {extra or "base", "test"}
        ]
        if self.python.exists() and any(
            stamp.is_file() and stamp.read_text() == digest for stamp in stamps
        ):
            return
        self.create()
        target = str(ROOT) + ("[" + extra + "]" if extra else "")
        say("installing " + target + " into " + str(self.directory))
        command = [*self.pip(), "install", "-q", "-c", str(ROOT / "constraints.txt")]
        if extra:
            command.append("--no-compile")
        code = quiet([*command, "-e", target])
        if code:
            sys.exit(f"pip failed with code {code}; its messages are above.")
        if extra:
            self.compile()
        (self.directory / ("ragdocs-installed-" + (extra or "base"))).write_text(digest)

    def compile(self) -> None:
        """Compile what tests import, on all cores; pip would compile everything, on one.

        Some packages cause warnings when they are compiled, which would fail the test that imports
        them first.
        """
        words = ["-qq", "-j", "0", "-x", SELDOM_IMPORTED, str(self.directory)]
        quiet([str(self.python), SAFE_PATH, "-W", "ignore", "-m", "compileall", *words])

    def create(self) -> None:
        """Create the environment, with pip inside where this Python can do that."""
        if self.python.exists():
            return
        ours = (self.directory / "pyvenv.cfg").is_file()
        if self.directory.exists() and not ours and any(self.directory.iterdir()):
            sys.exit(f"{self.directory} holds something else; name an empty directory with --venv.")
        say("creating " + str(self.directory))
        # A broken environment (its Python was removed) is replaced; anything else was refused above.
        command = [sys.executable, SAFE_PATH, "-m", "venv", "--clear"]
        # Debian packs ensurepip separately, and venv then stops half-way.
        if quiet([*command, str(self.directory)]) and quiet(
            [*command, "--without-pip", str(self.directory)]
        ):
            sys.exit("The virtual environment could not be created; the messages are above.")

    def pip(self) -> "list[str]":
        """Return the command of a pip that installs into the environment."""
        inside = [str(self.python), SAFE_PATH, "-m", "pip"]
        found = (
            subprocess.run([*inside, "--version"], capture_output=True, check=False).returncode == 0
        )
        return (
            inside
            if found
            else [sys.executable, SAFE_PATH, "-m", "pip", "--python", str(self.python)]
        )

    def run(self, *command: str, path: str = "", output: "int | None" = None) -> int:
        """Run a module of the environment, or of the folder `path`, in the project's directory."""
        environ = dict(os.environ, PYTHONPATH=path) if path else None
        whole = [str(self.python), SAFE_PATH, "-m", *command]
        return subprocess.run(
            whole, cwd=ROOT, env=environ, stdout=output, stderr=output, check=False
        ).returncode


def say(text: str) -> None:
    """Print for a person: standard output belongs to the protocol, or to the tool that runs."""
    print(text, file=sys.stderr, flush=True)


def quiet(command: "list[str]") -> int:
    """Run a command that must neither read the client's messages nor write among the server's."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
    ).returncode


def serve(environment: Environment, arguments: "list[str]") -> int:
    """Serve this project over MCP stdio."""
    environment.install()
    program, *rest = server_command(environment, arguments)
    server = {"command": program, "args": rest}
    say("Paste this into the configuration of your MCP client:")
    say(json.dumps({"mcpServers": {"ragdocs": server}}, indent=2))
    say("Serving on standard input and output; closing the input ends it.")
    if not WINDOWS:
        os.execv(program, [program, *rest])  # noqa: S606 - the program we installed ourselves
    # There, exec starts another process and lets the client believe that this one has ended.
    return subprocess.run([program, *rest], check=False).returncode


def server_command(environment: Environment, arguments: "list[str]") -> "list[str]":
    """Return the command of the server: neither its working directory nor PYTHONPATH is a place to import from."""
    return [
        str(environment.python),
        "-E",
        SAFE_PATH,
        "-m",
        "ragdocs",
        "mcp",
        "--project",
        str(ROOT),
        *arguments,
    ]


def lint(environment: Environment, _: "list[str]") -> int:
    """Lint and check types."""
    environment.install("test")
    codes = [
        environment.run("ruff", "check", "."),
        environment.run("ruff", "format", "--check", "."),
        environment.run("mypy"),
    ]
    return next(filter(None, codes), 0)


def test(environment: Environment, arguments: "list[str]") -> int:
    """Lint and check types while the tests run, which often wait for each other's processes."""
    environment.install("test")
    # Tests start hundreds of processes; none of them has to compile again what another one did.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.run("compileall", "-q", "src")
    linting = Linting(environment)
    if not (ROOT / "tests" / "__pycache__").is_dir():
        # The tests are compiled once; otherwise each process of the first run would compile all.
        environment.run("pytest", "--collect-only", *arguments, output=subprocess.DEVNULL)
    # A server that a test started may still write its last files there.
    with tempfile.TemporaryDirectory(
        dir=MEMORY if in_memory() else None, ignore_cleanup_errors=True
    ) as folder:
        files = str(Path(folder) / "files")
        spread = ["-n", str(workers()), "--dist", "worksteal", "--basetemp", files]
        tested = environment.run("pytest", *spread, *arguments)
    linted = linting.wait()
    if linted:
        say("lint failed; its messages are above")
    return tested or linted


class Linting(threading.Thread):
    """The linters beside the tests: their messages are shown together, as soon as they are done."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            [
                sys.executable,
                SAFE_PATH,
                str(ROOT / "tasks.py"),
                "--venv",
                str(environment.directory),
                "lint",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.start()

    def run(self) -> None:
        """Show what the linters say."""
        output, _ = self._process.communicate()
        sys.stderr.buffer.write(b"\n" + output)
        sys.stderr.flush()

    def wait(self) -> int:
        """Return the exit code."""
        self.join()
        return self._process.returncode


def in_memory() -> bool:
    """Return whether the files of tests fit into memory: they are synced thousands of times.

    With TMPDIR set they go there instead.
    """
    if os.environ.get("TMPDIR") or not Path(MEMORY).is_dir():
        return False
    room = os.statvfs(MEMORY)
    programs_run = not room.f_flag & os.ST_NOEXEC
    return programs_run and room.f_bavail * room.f_frsize > MEMORY_NEEDED


def workers() -> int:
    """Return how many processes run tests: two more than cores, since most wait for others at times."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) + 2


def docs(environment: Environment, _: "list[str]") -> int:
    """Write the generated tables of the documentation, and the first answers of windows."""
    environment.install()
    code = environment.run("ragdocs.serve.reference", "--write")
    return code or environment.run("ragdocs.serve.shared.record")


def pictures(environment: Environment, _: "list[str]") -> int:
    """Draw the pictures of the documentation."""
    environment.install()
    return environment.run("bench._pictures", path=str(ROOT))


def plugins(environment: Environment, _: "list[str]") -> int:
    """Write what marketplaces and registries read."""
    environment.install()
    return environment.run("plugins.make", path=str(ROOT))


def agents(environment: Environment, arguments: "list[str]") -> int:
    """Run real agents through what `ragdocs install` writes."""
    environment.install("test")
    return environment.run("bench.agents", *arguments, path=str(ROOT))


def release(environment: Environment, arguments: "list[str]") -> int:
    """Build what is published and check it in an empty environment."""
    environment.install("test")
    return environment.run("bench._release", *arguments, path=str(ROOT))


def golden(environment: Environment, arguments: "list[str]") -> int:
    """Write the golden files; `git diff tests/golden` shows what changed."""
    environment.install("test")
    os.environ["RAGDOCS_GOLDEN"] = "write"
    return environment.run("pytest", "tests/test_golden.py", *arguments)


def bench(environment: Environment, arguments: "list[str]") -> int:
    """Run one benchmark, or list them."""
    known = sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py"))
    if not arguments or arguments[0] not in known:
        print("benchmarks: " + " ".join(known))
        return 2 if arguments else 0
    environment.install("test")
    return environment.run("bench." + arguments[0], *arguments[1:], path=str(ROOT))


RUN = {
    "serve": serve,
    "test": test,
    "lint": lint,
    "docs": docs,
    "pictures": pictures,
    "bench": bench,
    "plugins": plugins,
    "agents": agents,
    "release": release,
    "golden": golden,
}

if __name__ == "__main__":
    sys.exit(main())
