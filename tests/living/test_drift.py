"""What became of the files that memories link to."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.asking import ask
from tests.living.repositories import CODE, STEP, Repository, lose_record

from ragdocs.errors import ConflictError, UnavailableError, ValidationError
from ragdocs.verbs.living import drift as drift_module
from ragdocs.verbs.living.drift import LinkState

GUIDE = "# Guide\n\n## Install\n\nRun the script.\nThen wait.\nThen go on.\n\n## Use\n\nCall it.\n"
MEMORY = "On [[src/a.py]], [[src/a.py#step_3]], [[docs/guide.md#Install]] and [[src/later.py]].\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    made.write("src/a.py", CODE)
    made.write("docs/guide.md", GUIDE)
    made.commit()
    return made


def described(states: dict[str, LinkState]) -> dict[str, str]:
    return {name: state.state for name, state in states.items()}


def test_links_are_compared_with_what_they_were_when_the_memory_was_written(
    repository: Repository,
) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    states = repository.states(workspace, "m.md")
    assert described(states) == {
        "src/a.py": "ok",
        "src/a.py#step_3": "ok",
        "docs/guide.md#Install": "ok",
        "src/later.py": "unknown",
    }
    repository.write("src/a.py", CODE.replace("return 7", "return 70\n    # more"))
    repository.write("docs/guide.md", GUIDE.replace("Call it.", "Call it twice."))
    states = repository.states(workspace, "m.md")
    changed = states["src/a.py"]
    assert (changed.state, changed.added, changed.removed) == ("changed", 2, 1)
    assert states["src/a.py#step_3"].state == "ok", "another definition changed"
    assert states["docs/guide.md#Install"].state == "ok", "another section changed"


def test_what_moved_is_found_under_its_new_name(repository: Repository) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    repository.git("mv", "src/a.py", "src/b.py")
    states = repository.states(workspace, "m.md")
    assert states["src/a.py"].moved_to == "src/b.py", "the same content, not committed yet"
    repository.write("src/b.py", CODE.replace("return 7", "return 70"))
    repository.commit()
    states = repository.states(workspace, "m.md")
    assert (states["src/a.py"].state, states["src/a.py"].moved_to) == ("moved", "src/b.py")
    assert (states["src/a.py"].added, states["src/a.py"].removed) == (1, 1)
    assert states["src/a.py#step_3"].state == "moved"
    repository.write("docs/guide.md", GUIDE.replace("## Install", "## Set up"))
    states = repository.states(workspace, "m.md")
    assert states["docs/guide.md#Install"].moved_to == "docs/guide.md#Guide › Set up"
    repository.git("rm", "--quiet", "-f", "src/b.py")
    assert repository.states(workspace, "m.md")["src/a.py"].state == "missing"


def test_a_definition_that_moved_is_found_in_another_class_or_file(repository: Repository) -> None:
    one_line = "def least(x): return min(x, 100)"
    repository.write("src/a.py", f"class A:\n    {one_line}\n\n\n{CODE}")
    repository.write("src/b.py", "# Nothing yet.\n")
    repository.commit()
    workspace = repository.open()
    names = ("A.least", "step_3", "step_4")
    links = " ".join(f"[[src/a.py#{name}]]" for name in names)
    workspace.memories.create("m.md", f"{links} [[docs/guide.md#Install]]\n", [])
    third, fourth = (STEP.format(number) for number in (3, 4))
    rest = CODE.replace(third, "").replace(fourth, "")
    repository.write("src/a.py", f"class B:\n    {one_line}\n\n\n{rest}")
    repository.write("src/b.py", fourth)
    repository.write("src/new.py", third.replace("This is", "That was"))
    repository.git("mv", "docs/guide.md", "docs/start.md")
    repository.write("docs/start.md", "# Start\n\nOther words.\n")
    repository.write("docs/other.md", GUIDE.replace("# Guide", "# Other"))
    for _ in ("uncommitted", "committed"):
        states = repository.states(workspace, "m.md")
        moved = {name: state.moved_to for name, state in states.items()}
        assert moved == {
            "src/a.py#A.least": "src/a.py#B.least",
            "src/a.py#step_3": "",
            "src/a.py#step_4": "src/b.py#step_4",
            "docs/guide.md#Install": "docs/other.md#Other › Install",
        }
        assert states["src/a.py#step_3"].state == "missing", "half of it is other lines"
        repository.commit()


def test_a_lost_record_is_worked_out_from_history(
    repository: Repository, own_directories: Path
) -> None:
    workspace = repository.open()
    repository.tick()
    workspace.memories.create("m.md", MEMORY, [])
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    repository.write("src/later.py", CODE)
    repository.commit()
    before = described(repository.states(workspace, "m.md"))
    assert before["src/a.py"] == "changed"
    lose_record(own_directories)
    again = repository.open()
    states = repository.states(again, "m.md")
    assert states["src/a.py"].how == "history"
    assert described(states) == {**before, "src/later.py": "ok"}, "it was first committed later"


def test_without_git_times_of_files_tell_what_changed(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    (repository.root / ".git").rename(tmp_path / "gone")
    repository.write("src/a.py", CODE)
    repository.write("src/b.py", CODE)
    repository.write(
        ".memories/m.md",
        f"---\ncreated_at: {repository.now.isoformat()}\n---\n[[src/a.py]] [[src/b.py]]\n",
    )
    for path, hours in (("src/a.py", -1), ("src/b.py", 1)):
        moment = (repository.now + timedelta(hours=hours)).timestamp()
        os.utime(repository.root / path, (moment, moment))
    states = repository.states(repository.open(), "m.md")
    assert states["src/a.py"].state == "ok"
    assert (states["src/b.py"].state, states["src/b.py"].added) == ("changed", None)


def test_only_a_new_text_or_a_check_makes_links_ok_again(repository: Repository) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    workspace.memories.append("m.md", "And more.")
    ask(workspace, "edit_memory", filename="m.md", fields={"status": "active", "importance": 8})
    workspace.edits.rename("m.md", "n.md")
    assert repository.states(workspace, "n.md")["src/a.py"].state == "changed"
    answer = ask(workspace, "verify_memory", filename="n.md")
    assert answer["links"] == []
    assert repository.states(workspace, "n.md")["src/a.py"].state == "ok"
    repository.write("src/a.py", CODE)
    assert repository.states(workspace, "n.md")["src/a.py"].state == "changed"
    workspace.memories.update("n.md", "Now [[src/a.py]] is as it was.\n")
    assert repository.states(workspace, "n.md")["src/a.py"].state == "ok"


def test_a_check_in_the_file_travels_with_the_memory(
    repository: Repository, own_directories: Path
) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    repository.commit()
    repository.tick()
    ask(workspace, "verify_memory", filename="m.md", in_file=True)
    text = (repository.root / ".memories/m.md").read_text()
    assert "verified_at: " in text
    lose_record(own_directories)
    assert repository.states(repository.open(), "m.md")["src/a.py"].state == "ok"


def test_answers_say_what_became_of_the_links(repository: Repository) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    hit = ask(workspace, "search_memories", query="later guide")["result"][0]
    assert hit["drift"] == "ok"
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    words = f"src/a.py changed since {repository.now.date()} (+1 -1 lines)"
    for verb, arguments in (
        ("search_memories", {"query": "later guide"}),
        ("search_linked_memories", {"query": "", "target_document": "src/a.py"}),
        ("search", {"query": "later guide", "lane": ["memory"]}),
        ("recall", {}),
    ):
        hit = ask(workspace, verb, **arguments)["result"][0]
        assert hit["drift"] == words, verb
    assert ask(workspace, "read_memory", filename="m.md")["drift"] == words
    assert words in ask(workspace, "build_context")["context"]
    links = ask(workspace, "text_links", path="m.md")["out"]
    assert links[0]["drift"] == words.removeprefix("src/a.py ")


@pytest.mark.parametrize("verb", ["review_drift", "affected_texts"])
@pytest.mark.parametrize("limit", [0, -3])
def test_a_list_without_rows_is_not_an_answer(
    repository: Repository, verb: str, limit: int
) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    with pytest.raises(ValidationError, match=f"limit is {limit}"):
        ask(workspace, verb, limit=limit)


@pytest.mark.parametrize("verb", ["review_drift", "verify_memory", "update_links"])
def test_without_memories_the_reason_is_given(tmp_path: Path, verb: str) -> None:
    repository = Repository(tmp_path / "project")
    repository.project.flags["memory.enabled"] = False
    with pytest.raises(UnavailableError, match="switched off"):
        ask(repository.open(), verb, filename="m.md")


def test_links_that_moved_are_updated_and_compared_with_what_they_were(
    repository: Repository,
) -> None:
    workspace = repository.open()
    text = (
        "On [[src/a.py]], [[src/a.py#step_3|three]], [code](../src/a.py), [[docs/guide.md#Use]].\n"
    )
    workspace.memories.create("m.md", text, [])
    repository.git("mv", "src/a.py", "src/b.py")
    repository.write("src/b.py", CODE.replace("return 7", "return 70"))
    repository.write("docs/guide.md", GUIDE.replace("Call it.", "Call it twice."))
    repository.commit()
    stale = "0" * 16
    with pytest.raises(ConflictError):
        ask(workspace, "update_links", filename="m.md", expected_version=stale)
    version = ask(workspace, "read_memory", filename="m.md")["version"]
    answer = ask(workspace, "update_links", filename="m.md", expected_version=version)
    assert answer["links"] == [["src/a.py", "src/b.py"], ["src/a.py#step_3", "src/b.py#step_3"]]
    content = ask(workspace, "read_memory", filename="m.md")["content"]
    moved = (
        "On [[src/b.py]], [[src/b.py#step_3|three]], [code](../src/b.py), [[docs/guide.md#Use]]."
    )
    assert moved in content
    states = repository.states(workspace, "m.md")
    assert described(states) == {
        "src/b.py": "changed",
        "src/b.py#step_3": "ok",
        "docs/guide.md#Use": "changed",
    }, "nobody has compared the rest"
    assert ask(workspace, "update_links", filename="m.md")["status"] == "unchanged"
    ask(workspace, "undo_memory_change")
    assert text.strip() in ask(workspace, "read_memory", filename="m.md")["content"]
    assert repository.states(workspace, "m.md")["src/a.py"].state == "moved", "as before"


def test_a_repaired_memory_is_compared_with_what_it_was(repository: Repository) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", "On [[src/a.py]] and [[docs/guide.md#Use]].\n", [])
    repository.git("mv", "src/a.py", "src/b.py")
    repository.write("src/b.py", CODE.replace("return 7", "return 70"))
    repository.write("docs/guide.md", GUIDE.replace("Call it.", "Call it twice."))
    repository.commit()
    assert ask(workspace, "lint_texts", fix=True)["is_repaired"]
    states = repository.states(workspace, "m.md")
    assert described(states) == {"src/b.py": "changed", "docs/guide.md#Use": "changed"}
    assert (states["src/b.py"].added, states["src/b.py"].removed) == (1, 1)
    ask(workspace, "undo_memory_change")
    assert described(repository.states(workspace, "m.md")) == {
        "src/a.py": "moved",
        "docs/guide.md#Use": "changed",
    }, "as before"


def test_entries_and_items_of_the_repository_say_it_too(repository: Repository) -> None:
    workspace = repository.open()
    entry = ask(
        workspace, "memory_add", content="Steps are in [[src/a.py]].", entryType="fact", tags=[]
    )
    ask(workspace, "upsert_decision", summary="Few steps", rationale="See [[src/a.py]].")
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    words = f"src/a.py changed since {repository.now.date()} (+1 -1 lines)"
    assert ask(workspace, "memory_get", id=entry["id"])["entry"]["drift"] == words
    assert ask(workspace, "memory_search", query="steps")["results"][0]["drift"] == words
    assert ask(workspace, "get_repo_memory")["decisions"][0]["drift"] == words


def test_the_worst_is_listed_first_with_what_changed(repository: Repository) -> None:
    workspace = repository.open()
    for name, importance in (("low.md", 2), ("high.md", 9)):
        text = f"---\nimportance: {importance}\n---\nAbout [[src/a.py]].\n"
        workspace.memories.create(name, text, [])
    workspace.memories.create("other.md", "About [[docs/guide.md]].\n", [])
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    answer = ask(workspace, "review_drift")
    assert [row["filename"] for row in answer["result"]] == ["high.md", "low.md"]
    assert "-    return 7\n+    return 70" in answer["result"][0]["links"][0]["content"]
    secret = "ghp_" + "x7Kq9ZpL2mWv4RtB8nYc3HdF6gJs1QaE5uXo"
    repository.write("src/a.py", CODE.replace("return 7", f'token = "{secret}"'))
    assert secret not in str(ask(workspace, "review_drift"))


def test_an_answer_of_a_server_compares_what_it_shows(repository: Repository) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    drift = workspace.living.drift
    document = repository.document(workspace, "m.md")
    old = (repository.now.timestamp(),) * 2
    for path in ("src/a.py", "docs/guide.md"):
        os.utime(repository.root / path, old)
    assert drift.quick_states([document])[document.id][0].state == "ok"
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    os.utime(repository.root / "src/a.py", old)
    assert drift.quick_states([document])[document.id][0].state == "changed"


def test_links_that_take_long_to_compare_come_with_the_next_answer(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    drift = workspace.living.drift
    document = repository.document(workspace, "m.md")
    # Files that were written within the last tick are compared again.
    old = (repository.now.timestamp(),) * 2
    for path in ("src/a.py", "docs/guide.md"):
        os.utime(repository.root / path, old)
    monkeypatch.setattr(drift_module, "PATIENCE_SECONDS", 0.0)
    drift.quick_states([document])
    drift.settle()
    assert drift.quick_states([document])[document.id][0].state == "ok"


def test_what_is_missing_is_looked_for_again(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = repository.open()
    workspace.memories.create("m.md", MEMORY, [])
    drift = workspace.living.drift
    document = repository.document(workspace, "m.md")
    (repository.root / "src/a.py").unlink()
    assert drift.quick_states([document])[document.id][0].state == "missing"
    repository.write("lib/a.py", CODE)
    monkeypatch.setattr(drift_module, "RECHECK_NANOSECONDS", 0)
    drift.quick_states([document])
    drift.settle()
    (state, *_) = drift.quick_states([document])[document.id]
    assert (state.state, state.moved_to) == ("moved", "lib/a.py")


def test_an_append_or_a_rename_says_nothing_about_links_that_were_never_compared(
    repository: Repository,
) -> None:
    repository.write(
        ".memories/m.md", f"---\ncreated_at: {repository.now.isoformat()}\n---\n{MEMORY}"
    )
    repository.write("src/a.py", CODE.replace("return 7", "return 70"))
    repository.write("src/b.py", CODE)
    workspace = repository.open()
    workspace.memories.append("m.md", "More on [[src/b.py]].\n")
    workspace.edits.rename("m.md", "n.md")
    states = repository.states(workspace, "n.md")
    assert states["src/a.py"].state == "changed"
    assert states["src/b.py"].state == "ok"


def test_a_memory_without_links_is_not_written_down(repository: Repository) -> None:
    workspace = repository.open()
    ledger = workspace.living.drift.ledger
    workspace.memories.create("m.md", "About nothing in particular.\n", [])
    before = ledger.state()
    workspace.memories.append("m.md", "And nothing else.\n")
    assert ledger.state() == before
    workspace.memories.append("m.md", "See [[src/a.py]].\n")
    assert ledger.of("m.md").keys() == {("src/a.py", "")}
    workspace.memories.update("m.md", "About nothing again.\n")
    assert ledger.of("m.md") == {}


def test_links_out_of_the_project_are_never_read(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("one\n")
    (repository.root / "leak.txt").symlink_to(tmp_path / "secret.txt")
    workspace = repository.open()
    workspace.memories.create("m.md", "[[leak.txt]] [[.git/config]]\n", [])
    (tmp_path / "secret.txt").write_text("two\n")
    states = repository.states(workspace, "m.md")
    assert set(described(states).values()) == {"unknown"}
    assert ask(workspace, "review_drift")["result"] == []


def test_a_memory_says_that_it_is_of_another_branch(repository: Repository) -> None:
    workspace = repository.open()
    repository.git("switch", "--quiet", "-c", "feature/x")
    repository.commit()
    workspace.recall.remember("A note about parsers")
    note = ask(workspace, "recall")["result"][0]
    assert "branch_state" not in note
    repository.git("switch", "--quiet", "main")

    def state() -> str:
        words: str = ask(workspace, "recall")["result"][0]["branch_state"]
        return words

    assert state() == "another branch, not merged here"
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "feature/x")
    assert state() == "merged here"
    repository.git("pack-refs", "--all")
    assert state() == "merged here"
    repository.git("branch", "--quiet", "-D", "feature/x")
    assert state() == "merged here, the branch is gone"
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert state() == "the branch is gone"


def test_a_new_or_merged_memory_has_the_branch_and_the_commit(repository: Repository) -> None:
    workspace = repository.open()
    for path in ("m.md", "merged.md"):
        if path == "m.md":
            workspace.memories.create(path, MEMORY, [])
        else:
            workspace.merges.merge(["m.md"], path, "All of it.\n")
        state = repository.document(workspace, path).git
        assert state is not None
        assert state.branch == "main"
        assert repository.git("rev-parse", "HEAD").startswith(state.commit)
        assert state.commit


def test_a_section_that_gets_or_loses_one_of_its_name_has_not_moved(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    only = "# Setup\n\n## Run\n\nOn Linux.\nOn BSD.\nOn a Mac.\n"
    both = f"{only}\n## Run\n\nIn a container.\n"
    repository.write("docs/setup.md", only)
    repository.commit()
    workspace = repository.open()
    workspace.memories.create("run.md", "See [[docs/setup.md#Run]].\n", [])

    def state() -> tuple[str, int | None]:
        (found,) = repository.states(workspace, "run.md").values()
        return found.state, found.added

    repository.write("docs/setup.md", both)
    assert state() == ("ok", None)
    repository.write("docs/setup.md", both.replace("On BSD", "On any BSD"))
    assert state() == ("changed", 1)
    workspace.living.drift.verify("run.md", "memory")
    repository.write("docs/setup.md", only.replace("On BSD", "On any BSD"))
    assert state() == ("ok", None)
    repository.write("docs/setup.md", "# Setup\n\n## Run\n\nIn a container.\n")
    assert state() == ("changed", 1)
    repository.write("docs/setup.md", "# Setup\n")
    assert state() == ("missing", None)


def test_a_file_whose_place_a_folder_took_is_missing(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    repository.write("src/a.py", CODE)
    repository.commit()
    workspace = repository.open()
    workspace.memories.create("n.md", "See [[src/a.py]].\n", [])
    (repository.root / "src/a.py").unlink()
    repository.write("src/a.py/part.py", "x = 1\n")
    repository.commit()
    assert repository.states(workspace, "n.md")["src/a.py"].state == "missing"
    repository.write("src/a.py/part.py", CODE)
    repository.commit()
    state = repository.states(workspace, "n.md")["src/a.py"]
    assert (state.state, state.moved_to) == ("moved", "src/a.py/part.py")


def test_what_a_large_file_was_is_worked_out_by_its_size(
    tmp_path: Path, own_directories: Path
) -> None:
    repository = Repository(tmp_path / "project")
    repository.write("data/large.csv", "a,b\n" * 400_000)
    repository.commit()
    workspace = repository.open()
    workspace.memories.create("n.md", "See [[data/large.csv]].\n", [])
    repository.git("mv", "data/large.csv", "data/figures.csv")
    repository.commit()
    lose_record(own_directories)
    workspace = repository.open()
    state = repository.states(workspace, "n.md")["data/large.csv"]
    assert (state.state, state.moved_to, state.added) == ("moved", "data/figures.csv", None)
