"""A project as an object: every verb is there with its types, and the examples of the page run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import assert_type

import pytest
from bench import _sample
from tests.conftest import Project as Files

from ragdocs import Project, errors, open_project
from ragdocs.serve.surface import docs
from ragdocs.serve.surface.catalog import every
from ragdocs.serve.surface.shapes.docs import DocHits

PAGE = Path(__file__).parents[2] / "docs/library.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
WORDS_ONLY = {"embedding.model": "none"}


def test_every_verb_is_a_method_with_the_parameters_of_its_declaration() -> None:
    for verb in every():
        method = getattr(Project, verb.name)
        parameters = list(inspect.signature(method).parameters)
        assert parameters == [param.name for param in verb.params]
        assert inspect.getdoc(method) == inspect.getdoc(verb.run)
        assert method.__qualname__ == f"Project.{verb.name}"


@pytest.mark.parametrize("number", range(3))
def test_the_examples_of_the_page_run(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(_sample.write(tmp_path / "harbour"))
    monkeypatch.setenv("RAGDOCS_EMBEDDING_MODEL", "hash")
    exec(compile(EXAMPLES[number], "library.md", "exec"), {})
    expected = [r"docs/auth\.md", r"has [1-9]\d* words\.", r"no-such-plan\.md does not exist\b"]
    assert re.search(expected[number], capsys.readouterr().out)


def test_the_page_has_three_examples() -> None:
    assert len(EXAMPLES) == 3


def test_a_call_sees_files_that_changed_since_the_last_one(project: Files) -> None:
    with open_project(project.root, WORDS_ONLY) as opened:
        answer = opened.search_docs("zebra")
        assert_type(answer, DocHits)
        assert answer["result"] == []
        project.doc("zoo.md", "# Zoo\n\nThe zebra sleeps.\n")
        assert opened.search_docs("zebra")["result"][0]["path"] == "docs/zoo.md"
        assert opened.call(docs.read_doc, "docs/zoo.md")["title"] == "Zoo"


def test_a_wrong_argument_is_refused_by_its_name(project: Files) -> None:
    with open_project(project.root, WORDS_ONLY) as opened:
        with pytest.raises(errors.ValidationError, match="limit"):
            opened.search_docs("zebra", limit="many")  # type: ignore[arg-type]
        with pytest.raises(errors.ValidationError, match="query is longer"):
            opened.search_docs("z" * 30_000)
        with pytest.raises(TypeError, match="colour"):
            opened.search_docs("zebra", colour="grey")  # type: ignore[call-arg]


def test_a_closed_project_says_so(project: Files) -> None:
    opened = open_project(project.root, WORDS_ONLY)
    opened.close()
    opened.close()
    with pytest.raises(errors.UnavailableError, match="closed"):
        opened.search_docs("zebra")


def test_importing_the_package_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import ragdocs; "
        "print(*set(sys.modules) - before, hasattr(ragdocs, 'nothing'))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["ragdocs", "False"]


def test_the_package_ships_its_types() -> None:
    assert (files("ragdocs") / "py.typed").is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_a_closed_project_holds_no_files(tmp_path: Path) -> None:
    def open_files() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    settings = {"embedding.model": "hash", "memory.enabled": True}
    counts = []
    for number in range(50):
        files = Files(tmp_path / str(number))
        files.doc("zoo.md", "# Zoo\n\nThe zebra sleeps.\n")
        files.memory("lion.md", "The lion hunts, see [[docs/zoo.md]].\n")
        with open_project(files.root, settings) as opened:
            assert opened.search_docs("zebra")["result"]
        # What was saved is mapped by whoever opens it again.
        with open_project(files.root, settings) as opened:
            assert opened.search_memories("lion")["result"]
            opened.memory_search("lion")
            opened.lint_texts()
            opened.build_context(task="zebra")
        counts.append(open_files())
    # The first one leaves what Python keeps open for its imports.
    assert counts[-1] == counts[0]
