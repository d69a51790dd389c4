"""Build what is published, twice; check it in an empty environment; say what is in it and how large it is."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from bench import _sample
from plugins import make

import ragdocs

ROOT = Path(__file__).resolve().parent.parent
WINDOWS = os.name == "nt"
TOOLS = ("build", "hatchling", "twine", "cyclonedx-bom")
# The size without bytecode, which pip writes beside the modules and other installers do not.
MOST_MEGABYTES = 300
QUESTION = "how are tokens refreshed"
ANSWERED_BY = "docs/auth.md"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "release", "version": "1"},
    },
}


class ReleaseError(Exception):
    """Something that must not be published."""


@dataclass(frozen=True)
class Size:
    """What one package takes on disk, in bytes."""

    name: str
    files: int
    bytecode: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 tasks.py release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the results")
    parser.add_argument("--tag", default="", help="refuse unless this tag names the version")
    options = parser.parse_args()
    out = options.out.resolve()
    with tempfile.TemporaryDirectory(prefix="ragdocs-release-") as folder:
        try:
            check_tag(options.tag, ragdocs.__version__)
            release(Path(folder), out)
        except ReleaseError as error:
            print(f"not releasable: {error}", file=sys.stderr)
            return 1
    return 0


def release(work: Path, out: Path) -> None:
    version = ragdocs.__version__
    notes = changelog_section((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
    if make.outdated():
        raise ReleaseError("plugins/ has another version: run python3 tasks.py plugins")
    if run(["git", "status", "--porcelain"], cwd=ROOT).strip():
        say("there are changes that are not committed; the last commit is built")
    say("installing the tools")
    tools = environment(work / "tools")
    install(tools, *TOOLS)
    epoch = run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip()
    first, second = (build(tools, work / name, epoch) for name in ("first", "second"))
    compare(first, second)
    packages = sorted(first.iterdir())
    print(run([str(tools), "-m", "twine", "check", "--strict", *map(str, packages)]).strip())
    (wheel,) = first.glob("*.whl")
    if wheel.name.split("-")[1] != version:
        raise ReleaseError(f"{wheel.name} is not of version {version}")
    say("installing the wheel into an empty environment")
    python = environment(work / "empty")
    install(python, str(wheel))
    try_out(python, work / "trial", version)
    sizes = list(measure(distributions(path=[site_packages(python)])))
    table = size_table(sizes)
    print(table)
    # The folder may hold other things than an earlier release.
    shutil.rmtree(out / "packages", ignore_errors=True)
    (out / "packages").mkdir(parents=True)
    for package in packages:
        shutil.copy2(package, out / "packages")
        print(f"{hashlib.sha256(package.read_bytes()).hexdigest()}  {package.name}")
    (out / "sizes.md").write_text(table, encoding="utf-8")
    (out / "notes.md").write_text(notes, encoding="utf-8")
    bill_of_materials(tools, python, out / "sbom.cdx.json")
    print(notes)
    total = sum(size.files for size in sizes) / 1e6
    if total > MOST_MEGABYTES:
        raise ReleaseError(f"{total:.0f} MB are installed, at most {MOST_MEGABYTES} are allowed")
    say(f"everything is in {out}")


def check_tag(tag: str, version: str) -> None:
    """Refuse a tag that names another version."""
    if tag and tag != f"v{version}":
        raise ReleaseError(f"the tag {tag} is not of version {version}")


def build(python: Path, folder: Path, epoch: str) -> Path:
    """Build wheel and sdist of the last commit in a folder of its own; return where they are."""
    say(f"building: {folder.name} time")
    source = folder / "source"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    run(["git", "archive", "--output", str(archive), "HEAD"], cwd=ROOT)
    shutil.unpack_archive(archive, source, filter="data")
    environ = dict(os.environ, SOURCE_DATE_EPOCH=epoch)
    packages = folder / "packages"
    words = [str(python), "-m", "build", "--no-isolation", "--outdir", str(packages), str(source)]
    run(words, environ=environ)
    return packages


def compare(first: Path, second: Path) -> None:
    """Refuse packages that are not the same bytes each time."""
    names = sorted(path.name for path in first.iterdir())
    if names != sorted(path.name for path in second.iterdir()):
        raise ReleaseError("two builds made different files")
    for name in names:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise ReleaseError(f"two builds of {name} differ")
    say("both builds have the same bytes")


def try_out(python: Path, folder: Path, version: str) -> None:
    """Start what was installed as a person and as a client do."""
    project = _sample.write(folder / "harbour")
    environ = plain_environment(folder)
    program = str(python.with_name("ragdocs.exe" if WINDOWS else "ragdocs"))
    printed = run([program, "--version"], environ=environ, cwd=folder)
    if version not in printed:
        raise ReleaseError(f"ragdocs --version prints {printed!r}")
    words = [program, "docs", "search", QUESTION, "--json", "--project", str(project)]
    hits = json.loads(run(words, environ=environ, cwd=folder))["result"]
    if not hits or hits[0]["path"] != ANSWERED_BY:
        raise ReleaseError(f"a search of the installed wheel finds {hits}")
    line = json.dumps(INITIALIZE) + "\n"
    words = [program, "mcp", "--project", str(project)]
    answers = run(words, environ=environ, cwd=folder, stdin=line).splitlines()
    results = [json.loads(answer).get("result") for answer in answers]
    servers = [result["serverInfo"] for result in results if result]
    if [server["version"] for server in servers] != [version]:
        raise ReleaseError(f"initialize is answered with {answers}")
    say("the installed wheel prints its version, finds a passage and answers initialize")


def plain_environment(home: Path) -> dict[str, str]:
    """Return the variables of a user who has never used ragdocs."""
    kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"):
        environ[name] = str(home)
    for name in ("CACHE", "STATE", "DATA", "CONFIG"):
        environ[f"XDG_{name}_HOME"] = str(home / name.lower())
    # A shared server would outlive the trial.
    environ["RAGDOCS_SERVER_SHARED"] = "false"
    return environ


def changelog_section(text: str, version: str) -> str:
    """Return what the changelog says about a version, without its heading."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading.startswith(f"[{version}]"):
            return body.strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section for {version}")


def measure(installed: Iterable[Distribution]) -> Iterable[Size]:
    """Measure the files that installed packages list as their own."""
    for distribution in installed:
        files = bytecode = 0
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if not path.is_file():
                continue
            if path.suffix == ".pyc":
                bytecode += path.stat().st_size
            else:
                files += path.stat().st_size
        yield Size(distribution.metadata["Name"].lower().replace("_", "-"), files, bytecode)


def size_table(sizes: Sequence[Size]) -> str:
    """Write sizes in megabytes as a table, the largest first."""
    lines = ["| package | MB | with bytecode |", "|---|---:|---:|"]
    for size in sorted(sizes, key=lambda size: -size.files):
        lines.append(_row(size.name, size.files, size.bytecode))
    files = sum(size.files for size in sizes)
    lines.append(_row("all", files, sum(size.bytecode for size in sizes)))
    return "\n".join(lines) + "\n"


def _row(name: str, files: int, bytecode: int) -> str:
    return f"| {name} | {files / 1e6:.1f} | {(files + bytecode) / 1e6:.1f} |"


def bill_of_materials(tools: Path, python: Path, target: Path) -> None:
    """Write what is installed with ragdocs as CycloneDX, without times and random numbers."""
    program = tools.with_name("cyclonedx-py.exe" if WINDOWS else "cyclonedx-py")
    words = [str(program), "environment", "--pyproject", str(ROOT / "pyproject.toml")]
    words += ["--output-reproducible", "--spec-version", "1.6", "--output-format", "JSON"]
    run([*words, "--output-file", str(target), str(python)])
    count = len(json.loads(target.read_text("utf-8"))["components"])
    say(f"{target.name} lists {count} packages")


def environment(folder: Path) -> Path:
    """Create an environment with nothing in it; return its Python."""
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    return folder / ("Scripts/python.exe" if WINDOWS else "bin/python")


def install(python: Path, *packages: str) -> None:
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
    run([*words, "-c", str(ROOT / "constraints.txt"), *packages])


def site_packages(python: Path) -> str:
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return run([str(python), "-c", program]).strip()


def run(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    stdin: str = "",
) -> str:
    """Run a command and return what it prints; its failure ends the release."""
    done = subprocess.run(
        words, cwd=cwd, env=environ, input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
