"""Documentation beyond the project: found, read and listed beside that of the project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.asking import ask
from tests.engines.wrappers import Counting
from tests.plain_git import plain_git
from tests.stores.test_sources import commit, install, repository

from ragdocs import caller, config
from ragdocs.caller import Caller
from ragdocs.errors import ConfigError, NotFoundError, UnavailableError
from ragdocs.serve.surface.present import docs as present_docs
from ragdocs.serve.surface.present import quality as present_quality

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

SECRET = "ghp_" + "9fKq2LmZ7xWv4RtB8nYc3HdJ6sPa1GuE5oTi"


def configured(project: Project, *lines: object) -> Workspace:
    return project.open(**{"docs.sources": [str(line) for line in lines]})


def paths(answer: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [hit["path"] for hit in answer["result"]]


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules/travel.md").write_text("# Travel\n\nZebra expenses are paid weekly.\n")
    (folder / "keys.md").write_text(f"# Keys\n\nThe walrus token is {SECRET}.\n")
    return folder


def test_sources_are_found_beside_the_project_and_each_hit_has_its_version(
    project: Project, handbook: Path
) -> None:
    project.doc("zoo.md", "# Zoo\n\nZebra expenses of the zoo.\n")
    install(project.root)
    workspace = configured(project, handbook, "pip:tidy-lamp")
    answer = ask(workspace, "search_docs", query="zebra expenses")
    assert set(paths(answer)) >= {"docs/zoo.md", "handbook@local/rules/travel.md"}
    hit = ask(workspace, "search_docs", query="zebra shade", source="tidy-lamp")["result"][0]
    assert hit["path"] == "tidy-lamp@2.3.1/api/tidy_lamp.md"
    assert (hit["source"], hit["version"]) == ("tidy-lamp", "2.3.1")


def test_a_search_in_one_source_finds_nothing_else(project: Project, handbook: Path) -> None:
    project.doc("zoo.md", "# Zoo\n\nZebra expenses of the zoo.\n")
    workspace = configured(project, handbook)

    def found(**arguments: str) -> list[str]:
        return paths(ask(workspace, "search_docs", query="zebra expenses", **arguments))

    travel = "handbook@local/rules/travel.md"
    everything = found(source="handbook")
    assert everything[0] == travel
    assert all(path.startswith("handbook@local/") for path in everything)
    assert found(source="handbook@local", path="rules") == [travel]
    assert found(path="handbook@local/rules") == [travel]
    assert found(source="handbook", path="other") == []
    assert found(source="project") == ["docs/zoo.md"]
    assert found(path="docs") == ["docs/zoo.md"]
    with pytest.raises(NotFoundError, match="no source 'hand'") as refused:
        found(source="hand")
    assert refused.value.hint == "There are handbook, project"


def test_a_hit_of_a_source_can_be_read_in_full_and_by_section(
    project: Project, handbook: Path
) -> None:
    workspace = configured(project, handbook)
    for reference in ("handbook@local/rules/travel.md", "handbook@local/rules/travel#travel"):
        text = ask(workspace, "read_doc", path=reference)
        assert text["path"] == "handbook@local/rules/travel.md"
        assert "Zebra expenses" in text["content"]
    whole = ask(workspace, "show_text", path="handbook@local/rules/travel.md", text_lane="sources")
    assert whole["location"] == str(handbook / "rules/travel.md")
    with pytest.raises(NotFoundError, match="no document") as refused:
        ask(workspace, "read_doc", path="handbook@2.0/rules/travel.md")
    assert "handbook@local/rules/travel.md" in refused.value.hint


def test_secrets_in_a_source_are_neither_found_nor_read(project: Project, handbook: Path) -> None:
    workspace = configured(project, handbook)
    hit = ask(workspace, "search_docs", query="walrus token")["result"][0]
    text = ask(workspace, "read_doc", path="handbook@local/keys.md")
    assert "walrus token" in hit["content"]
    assert SECRET not in hit["content"] + text["content"]


def test_a_link_out_of_a_source_is_not_followed(
    project: Project, handbook: Path, tmp_path: Path
) -> None:
    (tmp_path / "private.md").write_text("# Private\n\nzebra diary")
    (handbook / "diary.md").symlink_to(tmp_path / "private.md")
    workspace = configured(project, handbook)
    assert "handbook@local/diary.md" not in workspace.corpus("sources").stamps()
    with pytest.raises(NotFoundError):
        ask(workspace, "read_doc", path="handbook@local/diary.md")


def test_a_branch_that_moves_and_a_package_that_is_upgraded_are_read_again(
    project: Project, tmp_path: Path
) -> None:
    root = repository(tmp_path / "tool", guide="# Guide\n\nold zebra", other="# Other")
    site = install(project.root)
    workspace = configured(project, f"git:{root}@main", "pip:tidy-lamp")
    corpus = workspace.corpus("sources")
    before = corpus.stamps()
    commit(root, guide="# Guide\n\nnew walrus")
    shutil.move(site / "tidy_lamp-2.3.1.dist-info", site / "tidy_lamp-2.4.0.dist-info")
    metadata = site / "tidy_lamp-2.4.0.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("2.3.1", "2.4.0"))
    corpus.sync()
    assert corpus.stamps()["tool@main/other.md"] == before["tool@main/other.md"]
    assert {path.partition("/")[0] for path in corpus.stamps()} == {"tool@main", "tidy-lamp@2.4.0"}
    hit = ask(workspace, "search_docs", query="new walrus", source="tool")["result"][0]
    assert hit["path"] == "tool@main/guide.md"


def test_a_change_in_a_source_concerns_its_document_or_its_version(
    project: Project, handbook: Path, tmp_path: Path
) -> None:
    zod = project.root / "node_modules/zod"
    zod.mkdir(parents=True)
    (zod / "README.md").write_text("# Zod")
    (zod / "package.json").write_text('{"version": "3.1.0"}')
    tool = repository(tmp_path / "tool", guide="# Guide")
    workspace = configured(project, handbook, "npm:zod", f"git:{tool}@main")
    shelf = workspace.open_lanes["sources"].store
    travel = handbook / "rules/travel.md"
    assert shelf.relative(str(travel)) == "handbook@local/rules/travel.md"
    assert shelf.relative(str(zod / "package.json")) == ""
    assert shelf.relative(str(tool / ".git/refs/heads/main")) == ""
    assert shelf.relative(str(tmp_path / "elsewhere.md")) is None
    assert all(folder.is_dir() for folder, _ in shelf.watched())
    corpus = workspace.corpus("sources")
    travel.write_text("# Travel\n\nOkapi expenses.")
    (zod / "package.json").write_text('{"version": "3.2.0"}')
    corpus.sync({"handbook@local/rules/travel.md"})
    assert corpus.stamps().keys() >= {"handbook@local/rules/travel.md", "zod@3.1.0/README.md"}
    assert ask(workspace, "search_docs", query="okapi expenses")["result"]
    corpus.sync({""})
    assert "zod@3.2.0/README.md" in corpus.stamps()
    assert "zod@3.1.0/README.md" not in corpus.stamps()


def test_two_versions_of_one_source_are_one_page(project: Project, tmp_path: Path) -> None:
    root = repository(tmp_path / "tool", guide="# Guide\n\nzebra flags")
    plain_git(root, "tag", "v1.9")
    commit(root, guide="# Guide\n\nzebra flags and more")
    plain_git(root, "tag", "v1.10")
    workspace = configured(project, f"git:{root}@v1.9", f"git:{root}@v1.10")
    answer = ask(workspace, "search_docs", query="zebra flags")
    assert paths(answer) == ["tool@v1.10/guide.md"]
    older = {"path": "tool@v1.9/guide.md", "version": "v1.9"}
    assert answer["result"][0]["siblings"] == [older]
    assert paths(ask(workspace, "search_docs", query="zebra flags", source="tool@v1.9")) == [
        "tool@v1.9/guide.md"
    ]


def test_an_unreadable_source_is_an_error_and_never_an_absence(
    project: Project, handbook: Path, tmp_path: Path
) -> None:
    workspace = configured(project, handbook, "npm:zod", "nonsense")
    shutil.move(handbook, tmp_path / "unmounted")
    workspace.sync()
    assert "handbook@local/rules/travel.md" in workspace.corpus("sources").stamps()
    states = {source["name"]: source for source in ask(workspace, "list_sources")["result"]}
    assert "is not a readable folder" in states["handbook"]["problem"]
    assert "not installed" in states["zod"]["problem"]
    assert "is not a source" in states["nonsense"]["problem"]
    status = ask(workspace, "index_status")
    problems = next(lane["problems"] for lane in status["lanes"] if lane["lane"] == "sources")
    assert problems.keys() >= {"handbook@local", "zod", "nonsense"}
    notes = ask(workspace, "search_docs", query="nothing has such words", path="docs")["notes"]
    assert any(note.startswith("the source handbook@local cannot be read") for note in notes)
    with pytest.raises(NotFoundError) as refused:
        ask(workspace, "search_docs", query="x", source="zod")
    assert refused.value.hint.startswith("It cannot be read: zod is not installed")
    # What a search in a process that starts now says.
    shutil.move(tmp_path / "unmounted", handbook)
    workspace.sync()
    assert not ask(workspace, "list_sources")["result"][0]["problem"]


def test_sources_are_listed_with_what_they_have(project: Project, handbook: Path) -> None:
    install(project.root)
    workspace = configured(project, f"rules={handbook}", "pip:tidy-lamp")
    text = present_docs.sources(ask(workspace, "list_sources"))
    assert f"rules local · 2 documents · {handbook}" in text
    assert "README and docstrings only: the package bundles no documentation" in text
    status = present_quality.status(ask(workspace, "index_status"))
    assert "note: tidy-lamp 2.3.1: 2 documents; README and docstrings only" in status
    assert present_docs.sources(ask(project.open(), "list_sources")) == "no sources are configured"


def test_a_source_that_is_named_twice_is_read_once(project: Project, handbook: Path) -> None:
    workspace = configured(project, handbook, f"handbook={handbook / 'rules'}")
    first, second = ask(workspace, "list_sources")["result"]
    assert first["documents"] == 2
    assert "write name= before one" in second["problem"]


def test_a_project_may_not_name_sources_and_needs_none(project: Project) -> None:
    assert "sources" not in project.open().open_lanes
    with pytest.raises(NotFoundError) as refused:
        ask(project.open(), "search_docs", query="x", source="zod")
    assert "None are configured" in refused.value.hint
    project.write("config.toml", '[docs]\nsources = ["/etc"]\n')
    with pytest.raises(ConfigError, match=r"a project may not set docs\.sources"):
        config.load(project.root, project=project.root)


def test_somebody_with_a_token_does_not_see_the_files_of_the_user(
    project: Project, handbook: Path
) -> None:
    project.doc("zoo.md", "# Zoo\n\nZebra expenses of the zoo.\n")
    workspace = configured(project, handbook)
    with caller.acting(Caller(name="guest", remote=True)):
        assert paths(ask(workspace, "search_docs", query="zebra expenses")) == ["docs/zoo.md"]
        assert paths(ask(workspace, "search", query="zebra expenses")) == ["docs/zoo.md"]
        assert ask(workspace, "list_sources")["result"] == []
        assert [lane["lane"] for lane in ask(workspace, "index_status")["lanes"]] != ["sources"]
        with pytest.raises(NotFoundError):
            ask(workspace, "read_doc", path="handbook@local/rules/travel.md")
        with pytest.raises(UnavailableError):
            ask(workspace, "search", query="zebra", lane=["sources"])


def test_a_search_asks_each_index_a_handful_of_times(project: Project, handbook: Path) -> None:
    project.doc("zoo.md", "# Zoo\n\nZebra expenses of the zoo.\n")
    workspace = configured(project, handbook)
    counters = []
    for name in ("docs", "sources"):
        corpus = workspace.corpus(name)
        counters.append(Counting(corpus.index))
        corpus.index = counters[-1]
    vector = workspace.corpus("docs").encoded("zebra expenses")
    for counter in counters:
        counter.calls.clear()
    workspace.documents.search("zebra expenses")
    assert vector is not None
    for counter in counters:
        # One more where everything is below the floor, one to ask whether there are vectors.
        assert counter.calls.total() <= 6, counter.calls


def test_a_context_pack_has_documentation_beyond_the_project_as_a_group_of_its_own(
    project: Project, handbook: Path
) -> None:
    project.doc("zoo.md", "# Zoo\n\nZebra expenses of the zoo.\n")
    workspace = configured(project, handbook)
    pack = ask(workspace, "build_context", task="zebra expenses")["context"]
    own, beyond = pack.split("## Documentation beyond the project")
    assert "docs/zoo.md" in own
    assert "handbook@local/rules/travel.md" in beyond
    assert "Zebra expenses are paid weekly." in beyond
    assert "handbook@local" not in own
    small = ask(workspace, "build_context", task="zebra expenses", max_chars=600)
    assert len(small["context"]) <= 600
    without_task = ask(workspace, "build_context", files=["src/zebra.py"])["context"]
    assert "beyond the project" not in without_task


def test_a_context_pack_for_a_remote_caller_has_no_documentation_beyond_the_project(
    project: Project, handbook: Path
) -> None:
    workspace = configured(project, handbook)
    with caller.acting(Caller(name="guest", remote=True)):
        pack = ask(workspace, "build_context", task="zebra expenses")["context"]
    assert "handbook" not in pack
