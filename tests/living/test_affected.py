"""Which texts speak about what a diff changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.asking import ask
from tests.living.repositories import CODE, Repository

from ragdocs.errors import ValidationError
from ragdocs.workspace import Workspace

GUIDE = """# Guide

## Steps

Call `step_three` first, see [the code](../src/a.py).

## Install

See [[src/b.py#step_1]].

## Names

The module `src/c.py` holds names.
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    for name in "abc":
        made.write(f"src/{name}.py", CODE.replace("step_3", "step_three"))
    made.write("docs/guide.md", GUIDE)
    made.write(".memories/plan.md", "The plan follows [[docs/guide.md#Install]].\n")
    made.commit()
    return made


def affected(workspace: Workspace, **arguments: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in ask(workspace, "affected_texts", **arguments)["result"]:
        heading = text["header_path"].rpartition(" › ")[2]
        found[f"{text['location']} {heading}".strip()] = text["reasons"]
    return found


def test_links_names_and_mentions_lead_to_what_changed(repository: Repository) -> None:
    workspace = repository.open()
    workspace.repository.upsert_decision(
        "Keep the steps", "They are small", impacted_paths=["src/a.py"]
    )
    assert affected(workspace) == {}
    repository.write(
        "src/a.py", (repository.root / "src/a.py").read_text().replace("step_three", "step_four")
    )
    found = affected(workspace)
    steps = found["docs/guide.md Steps"]
    assert "links to src/a.py" in steps
    assert "mentions step_three, now step_four in src/a.py" in steps
    decisions = [name for name in found if name.startswith(".memories/repo/")]
    assert [found[name] for name in decisions] == [["impacts src/a.py"]]
    repository.write(
        "src/b.py", (repository.root / "src/b.py").read_text().replace("return 9", "x")
    )
    assert "docs/guide.md Install" not in affected(workspace, staged=False), "another definition"
    assert affected(workspace, files=["src/c.py"]) == {"docs/guide.md Names": ["mentions src/c.py"]}


def test_a_heading_that_is_no_part_of_a_file_stands_for_the_whole(repository: Repository) -> None:
    repository.write("src/limits.py", "TIMEOUT = 30\n\n\ndef wait():\n    return TIMEOUT\n")
    repository.write(".memories/limit.md", "See [[src/limits.py#TIMEOUT]].\n")
    repository.write(".memories/wait.md", "See [[src/limits.py#wait]].\n")
    repository.commit()
    repository.write("src/limits.py", "\n\ndef wait():\n    return TIMEOUT\n")
    found = affected(repository.open())
    assert found[".memories/limit.md"] == ["links to src/limits.py"]
    assert not any(reason.startswith("links to") for reason in found.get(".memories/wait.md", []))


def test_a_definition_that_got_a_new_name_in_a_file_that_moved_is_named(
    repository: Repository,
) -> None:
    workspace = repository.open()
    repository.git("mv", "src/b.py", "src/moved.py")
    text = (repository.root / "src/moved.py").read_text()
    repository.write("src/moved.py", text.replace("def step_1(", "def first_step("))
    repository.commit()
    found = affected(workspace, revisions="HEAD~1..HEAD")
    assert "links to src/b.py#step_1, now src/moved.py#first_step" in found["docs/guide.md Install"]


def test_headings_and_renames_count_in_every_kind_of_diff(repository: Repository) -> None:
    workspace = repository.open()
    repository.write("docs/guide.md", GUIDE.replace("## Install", "## Set up"))
    repository.git("mv", "src/a.py", "src/z.py")
    expected = {".memories/plan.md": ["links to docs/guide.md#Guide › Install, now Guide › Set up"]}
    assert affected(workspace, staged=True).keys() == {"docs/guide.md Steps"}
    repository.git("add", "-A", "--", ":!.memories")
    workspace.sync()
    found = affected(workspace, staged=True)
    assert found["docs/guide.md Steps"][0] == "links to src/a.py, now src/z.py"
    assert {name: found[name] for name in expected} == expected
    repository.commit()
    for revisions in ("HEAD~1..HEAD", "HEAD~1", "HEAD~1...HEAD"):
        assert affected(workspace, revisions=revisions) == found
    assert affected(workspace, staged=True) == {}


def test_words_on_changed_lines_lead_to_the_passage_that_mentions_them(
    repository: Repository,
) -> None:
    repository.write("docs/other.md", "# Other\n\nNothing about it.\n")
    repository.write("docs/limits.md", "# Limits\n\nSet `queue_depth` with `--deepest`.\n")
    repository.commit()
    repository.write("src/queue.py", "queue_depth = 5\n")
    repository.commit()
    workspace = repository.open()
    code = "def read(words):\n    queue_depth = words['--deepest']\n    most_burst = 3\n"
    repository.write("src/queue.py", code)
    found = affected(workspace)
    assert found == {
        "docs/limits.md Limits": ["mentions --deepest, queue_depth, changed in src/queue.py"]
    }


def test_texts_that_were_edited_with_a_file_before_go_with_it(repository: Repository) -> None:
    for number in range(24):
        name = "a" if number % 3 == 0 else "b"
        repository.write(f"src/{name}.py", f"{CODE}\nnumber = {number}\n")
        repository.write("docs/log.md", f"# Log\n\nEntry {number}.\n")
        if name == "a":
            repository.write("docs/hints.md", f"# Hints\n\nThere are {number}.\n")
        repository.commit()
    workspace = repository.open()
    repository.write("src/a.py", f"{CODE}\nnumber = 7\n")
    found = affected(workspace)
    assert "docs/log.md Log" not in found, "it is edited with every file"
    assert found["docs/hints.md"] == ["edited with src/a.py in 8 of 9 commits"]
    repository.git("mv", "src/a.py", "src/z.py")
    repository.commit()
    repository.write("src/z.py", f"{CODE}\nnumber = 8\n")
    assert "docs/hints.md" in affected(workspace), "also under another name"


def test_a_line_of_a_long_file_that_is_only_mentioned_is_a_weak_sign(
    repository: Repository,
) -> None:
    workspace = repository.open()
    repository.write("src/a.py", (repository.root / "src/a.py").read_text() + "\nx = 1\n")
    repository.write("src/c.py", (repository.root / "src/c.py").read_text() + "\nx = 1\n")
    answer = ask(workspace, "affected_texts")
    weights = {text["header_path"]: text["weight"] for text in answer["result"]}
    assert weights["Guide › Steps"] < 0.6, "a link is listed, as the least sure"
    assert "Guide › Names" not in weights
    assert answer["notes"] == ["not listed, because their connection is weak: 1"]
    for name in "ac":
        repository.write(f"src/{name}.py", "x = 1\n")
    answer = ask(workspace, "affected_texts")
    weights = {text["header_path"]: text["weight"] for text in answer["result"]}
    assert weights["Guide › Steps"] > 0.7, "nearly all of it changed"
    assert "Guide › Names" in weights


def test_a_definition_that_moved_to_another_file_is_not_gone(repository: Repository) -> None:
    workspace = repository.open()
    code = (repository.root / "src/b.py").read_text()
    repository.write("src/b.py", "\n".join(code.split("\n")[:12]))
    found = affected(workspace)
    assert "mentions step_three, which is gone from src/b.py" in found["docs/guide.md Steps"]
    repository.write("src/d.py", "def step_three():\n    return 3\n")
    reasons = affected(workspace).get("docs/guide.md Steps", [])
    assert not any("gone" in reason for reason in reasons)


@pytest.mark.parametrize(
    "revisions",
    ["--output=/tmp/x", "-p..HEAD", "HEAD..--help", "nothing", "HEAD:src", "a b", "..-x", "@{u}\n"],
)
def test_revisions_that_are_none_are_refused(repository: Repository, revisions: str) -> None:
    workspace = repository.open()
    with pytest.raises(ValidationError):
        ask(workspace, "affected_texts", revisions=revisions)


def test_reports_are_markdown_and_sarif(repository: Repository) -> None:
    workspace = repository.open()
    answer = ask(workspace, "affected_texts", files=["src/c.py"], report="markdown")
    assert "| `docs/guide.md:13` Guide › Names | mentions src/c.py |" in answer["report"]
    answer = ask(workspace, "affected_texts", files=["src/c.py"], report="sarif")
    run = json.loads(answer["report"])["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "docs/guide.md"},
        "region": {"startLine": 13},
    }


def test_the_command_writes_the_formats_by_their_names(repository: Repository) -> None:
    command = [sys.executable, "-m", "ragdocs", "affected", "--file", "src/c.py"]
    command += ["--set", "embedding.model=none", "--format"]
    starts = {"markdown": "**1 passage to check**", "sarif": "{", "json": "{"}
    for name, start in starts.items():
        done = subprocess.run(
            [*command, name], cwd=repository.root, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(start), name


def test_the_hook_of_the_documentation_works_in_plain_git(repository: Repository) -> None:
    page = (Path(__file__).parents[2] / "docs/living-links.md").read_text()
    script = page.partition("<!-- hook -->\n```bash\n")[2].partition("```")[0]
    assert "ragdocs affected --staged" in script
    hook = repository.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(script)
    hook.chmod(0o755)
    command = ["git", "-C", str(repository.root), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    # Of the second, git shows only an index of its own to the hook.
    for words in (["-m", "staged"], ["-a", "-m", "all"]):
        repository.write("src/c.py", f"NAMES = {words!r}\n")
        if "-a" not in words:
            repository.git("add", "src/c.py")
        done = subprocess.run(
            [*command, "commit", *words],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert "docs/guide.md:13" in done.stdout + done.stderr, words


def environment() -> dict[str, str]:
    """Return an environment in which the command of this installation is found."""
    import sys

    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_a_submodule_with_another_commit_changes_its_files(
    repository: Repository, tmp_path: Path
) -> None:
    library = Repository(tmp_path / "library")
    library.write("lib.py", CODE)
    library.write("other.py", CODE)
    library.commit()
    repository.git("submodule", "--quiet", "add", str(library.root), "vendor/lib")
    repository.write(".memories/folder.md", "The library is in [[vendor/lib]].\n")
    repository.write(".memories/step.md", "See [[vendor/lib/lib.py#step_1]].\n")
    repository.write(".memories/other.md", "See [[vendor/lib/other.py]].\n")
    repository.commit()
    library.write("lib.py", CODE.replace("# This is step 1.", "# The first."))
    library.commit()
    repository.git("-C", "vendor/lib", "pull", "--quiet", "origin", "main")
    workspace = repository.open()
    expected = {
        ".memories/folder.md": ["links to vendor/lib"],
        ".memories/step.md": ["links to vendor/lib/lib.py#step_1"],
    }
    assert affected(workspace) == {}, "git looks into no submodule"
    repository.git("add", "vendor/lib")
    assert affected(workspace, staged=True) == expected
    repository.commit()
    assert affected(workspace, revisions="HEAD~1..HEAD") == expected
    repository.git("submodule", "--quiet", "deinit", "--force", "vendor/lib")
    folder = {".memories/folder.md": ["links to vendor/lib"]}
    assert affected(workspace, revisions="HEAD~1..HEAD") == folder, "its commits are not here"


def test_another_text_of_a_large_file_is_a_change_and_other_line_ends_are_none(
    repository: Repository,
) -> None:
    repository.write("data/large.csv", "a,b\n" * 400_000)
    repository.write(".memories/large.md", "The figures are in [[data/large.csv]].\n")
    repository.write(".memories/code.md", "See [[src/a.py]].\n")
    repository.commit()
    repository.write("data/large.csv", "a,c\n" * 400_000)
    (repository.root / "src/a.py").write_bytes(
        (repository.root / "src/a.py").read_bytes().replace(b"\n", b"\r\n")
    )
    repository.commit()
    found = affected(repository.open(), revisions="HEAD~1..HEAD")
    assert found == {".memories/large.md": ["links to data/large.csv"]}


def test_a_file_of_the_working_tree_that_cannot_be_read_hides_no_other(
    repository: Repository, tmp_path: Path
) -> None:
    workspace = repository.open()
    (tmp_path / "elsewhere.py").write_text(CODE)
    (repository.root / "src/elsewhere.py").symlink_to(tmp_path / "elsewhere.py")
    (repository.root / "src/a.py").unlink()
    repository.write("src/a.py/part.py", CODE)
    assert "links to src/a.py" in affected(workspace)["docs/guide.md Steps"]


def test_a_file_that_a_range_removes_is_gone_whatever_the_working_tree_has(
    repository: Repository,
) -> None:
    repository.git("rm", "--quiet", "src/b.py")
    repository.commit()
    repository.write("src/b.py", CODE)
    found = affected(repository.open(), revisions="HEAD~1..HEAD")
    assert found["docs/guide.md Install"][0] == "links to src/b.py#step_1, which is gone"


def test_a_link_to_the_first_of_equal_headings_is_about_that_section(
    repository: Repository,
) -> None:
    text = "# Setup\n\n## Run\n\nOn Linux.\n\n## Run\n\nOn a Mac.\n"
    repository.write("docs/setup.md", text)
    repository.write(".memories/run.md", "See [[docs/setup.md#Run]].\n")
    repository.commit()
    workspace = repository.open()
    repository.write("docs/setup.md", text.replace("a Mac", "another Mac"))
    assert ".memories/run.md" not in affected(workspace)
    repository.write("docs/setup.md", text.replace("Linux", "any Linux"))
    assert affected(workspace)[".memories/run.md"] == ["links to docs/setup.md#Setup › Run"]
    repository.write("docs/setup.md", text.replace("## Run\n\nOn a Mac.\n", ""))
    assert ".memories/run.md" not in affected(workspace), "it lost its number only"
