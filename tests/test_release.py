"""What is published: notes, sizes, workflows, and a reason for every package that is installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
import tasks
import yaml
from bench import _release
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ragdocs

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = (ROOT / "docs/internals/dependencies.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def names(requirements: list[str]) -> set[str]:
    packages = {str(canonicalize_name(Requirement(line).name)) for line in requirements}
    return packages - {"ragdocs"}


def rows(heading: str) -> set[str]:
    """Return the packages in the table below a heading of the page."""
    section = DEPENDENCIES.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| ([a-z0-9-]+) \|", section, re.MULTILINE)) - {"package"}


def brought_along(direct: list[str]) -> set[str]:
    """Return the packages that installed packages require, and those that these require."""
    packages: set[str] = set()
    pending = [Requirement(line) for line in direct]
    while pending:
        requirement = pending.pop()
        extras = ["", *requirement.extras]
        for line in distribution(requirement.name).requires or ():
            inner = Requirement(line)
            marker = inner.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                name = str(canonicalize_name(inner.name))
                if name not in packages or inner.extras:
                    pending.append(inner)
                packages.add(name)
    return packages - names(direct)


def test_every_package_that_is_imported_has_a_reason() -> None:
    assert rows("What ragdocs imports") == names(PYPROJECT["dependencies"])


def test_every_package_that_is_brought_along_is_named() -> None:
    # Other systems and versions of Python bring others; all that are installed here are named.
    missing = brought_along(PYPROJECT["dependencies"]) - rows("What those bring along")
    assert not missing - {"colorama", "exceptiongroup", "pywin32", "importlib-metadata", "zipp"}


def test_every_package_of_an_extra_has_a_reason() -> None:
    extras = [line for lines in PYPROJECT["optional-dependencies"].values() for line in lines]
    assert rows("Extras") == names(extras)


def test_every_package_that_a_release_uses_has_one_version() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w-]+)==", constraints, re.MULTILINE))
    direct = names(PYPROJECT["dependencies"]) | set(_release.TOOLS)
    assert direct <= {str(canonicalize_name(name)) for name in pinned}


def test_the_notes_are_the_section_of_the_version() -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - today\n\n- old\n\n## [0.1.0]\n"
    assert _release.changelog_section(text, "0.2.0") == "- old\n"
    with pytest.raises(_release.ReleaseError, match=r"0\.3\.0"):
        _release.changelog_section(text, "0.3.0")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert _release.changelog_section(changelog, ragdocs.__version__).strip()


def test_a_tag_must_name_the_version() -> None:
    _release.check_tag("v1.2.3", "1.2.3")
    with pytest.raises(_release.ReleaseError, match=r"v1\.2\.4"):
        _release.check_tag("v1.2.4", "1.2.3")


def test_packages_that_differ_are_refused(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.whl").write_text("same")
    _release.compare(tmp_path / "first", tmp_path / "second")
    (tmp_path / "second/a.whl").write_text("other")
    with pytest.raises(_release.ReleaseError, match=r"a\.whl"):
        _release.compare(tmp_path / "first", tmp_path / "second")


def test_sizes_are_those_of_the_files_on_disk(tmp_path: Path) -> None:
    info = tmp_path / "two_words-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Two_Words\nVersion: 1.0\n")
    (info / "RECORD").write_text("two.py,,\ntwo.pyc,,\ngone.py,,\n")
    (tmp_path / "two.py").write_bytes(b"x" * 2_000_000)
    (tmp_path / "two.pyc").write_bytes(b"x" * 500_000)
    sizes = list(_release.measure([Distribution.at(info)]))
    assert sizes == [_release.Size("two-words", 2_000_000, 500_000)]
    assert "| two-words | 2.0 | 2.5 |\n| all | 2.0 | 2.5 |\n" in _release.size_table(sizes)


def test_an_installation_without_bytecode_starts_without_warnings(tmp_path: Path) -> None:
    # As uv installs: Python compiles Whoosh when it is first imported, and has objections.
    program = "import ragdocs.text.languages, ragdocs.engines.local.segments"
    command = [sys.executable, "-P", "-W", "error::SyntaxWarning", "-c", program]
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=str(tmp_path))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def steps(workflow: Any) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_tasks_that_exist_and_may_do_little(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        # A tag can be moved to other code, a commit cannot.
        assert re.search(r"@[0-9a-f]{40}$", step.get("uses", f"@{'0' * 40}"))
        if "tasks.py" in step.get("run", ""):
            words = shlex.split(step["run"])
            assert words[:2] == ["python", "tasks.py"]
            assert words[2] in tasks.RUN
        # A value of the event is no part of a command: its text could be one.
        assert "${{" not in step.get("run", "")


def test_the_workflows_cover_three_systems_and_all_versions_of_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    assert PYPROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_the_workflow_checks_the_plugins_with_the_checkers_from_npm() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["plugins"]["steps"] if "run" in step]
    # The first one installs them; without them, the tests of the second are skipped.
    assert commands == ["python tasks.py agents", "python tasks.py test tests/test_plugins.py"]


def test_only_the_job_that_publishes_may_prove_who_it_is() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    may = {
        name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})
    }
    assert may == {"pypi"}
    assert workflow["jobs"]["pypi"]["needs"] == "build"
