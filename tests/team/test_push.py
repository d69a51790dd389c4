"""Documentation is pushed from where its files are; memories come in and go out as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from tests.conftest import Project
from tests.plain_git import plain_git
from tests.team.conftest import IDENTITY, Run, clone

from ragdocs import team
from ragdocs.project.folders import user_name


def files_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_only_what_changed_is_pushed_and_branches_are_apart(shop: Project, run: Run) -> None:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
    shop.doc("ships.md", "# Ships\n\nShips bring grain.\n")
    tried = run("push", "--dry-run", "--json").answer
    assert (len(tried["changed"]), tried["pushed"]) == (2, False)
    assert run("team", "status", "--json").answer["scopes"] == []
    assert len(run("push", "--json").answer["changed"]) == 2
    shop.doc("cranes.md", "# Cranes\n\nCranes lift coal.\n")
    (shop.root / "docs" / "ships.md").unlink()
    state = run("status").out
    assert "the documentation of branch main, as it was pushed" in state
    assert "2 files here differ from it; `ragdocs push` sends them" in state
    pushed = run("push", "--branch", "coal", "--json").answer
    assert (pushed["changed"], pushed["removed"]) == (["docs/cranes.md"], [])
    # The branch that is checked out is main, of which there is an older state.
    assert "grain" in run("docs", "search", "cranes").out
    assert "coal" in run("docs", "search", "cranes", "--set", "team.branch=coal").out
    assert "grain" in run("docs", "search", "cranes", "--set", "team.branch=unknown").out
    pushed = run("push", "--json").answer
    assert (pushed["changed"], pushed["removed"]) == (["docs/cranes.md"], ["docs/ships.md"])
    assert run("push", "--json").answer["unchanged"] == 1
    assert run("verify").code == 0


def test_a_push_that_was_interrupted_goes_on(
    shop: Project, run: Run, monkeypatch: pytest.MonkeyPatch, team_address: str
) -> None:
    for number in range(5):
        shop.doc(f"{number}.md", f"# Page {number}\n\nText of page {number}.\n")
    monkeypatch.setattr("ragdocs.stores.postgres.push.BATCH", 2)
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(
            b"ALTER TABLE texts ADD CONSTRAINT stop CHECK (path <> 'docs/4.md') NOT VALID"
        )
    with pytest.raises(psycopg.errors.CheckViolation):
        run("push")
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(b"ALTER TABLE texts DROP CONSTRAINT stop")
    assert run("push", "--json").answer["changed"] == ["docs/4.md"]
    assert "Page 1" in run("docs", "search", "page 1").out


def test_two_clones_are_one_project(shop: Project, run: Run, tmp_path: Path) -> None:
    other = clone(tmp_path.resolve() / "other")
    plain_git(other.root, "remote", "set-url", "origin", "https://host.example/shop/api")
    assert run("memory", "create", "plan.md", "--content", "Cranes lift grain.").code == 0
    assert "Cranes lift" in run("memory", "read", "plan.md", folder=other.root).out
    scopes = run("team", "status", "--json", folder=other.root).answer["scopes"]
    assert {scope["project"] for scope in scopes} == {IDENTITY}
    changes = run("memory", "timeline", "--json", folder=other.root)
    assert changes.code == 0, changes.err


def test_memories_come_in_and_go_out_byte_for_byte(shop: Project, run: Run, tmp_path: Path) -> None:
    shop.memory("plan.md", "---\ntype: plan\n---\nCranes.\n")
    shop.memory("deep/odd.md", "no newline")
    (shop.root / ".memories" / "crlf.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    before = files_of(shop.root / ".memories")
    folder = str(shop.root / ".memories")
    assert len(run("team", "import", folder, "--json").answer["copied"]) == 3
    assert run("team", "import", folder, "--json").answer["unchanged"] == 3
    out = tmp_path / "out"
    assert len(run("team", "export", str(out), "--json").answer["copied"]) == 3
    assert files_of(out) == before
    assert run("search", "cranes").out.startswith("1. .memories/plan.md")
    (out / "plan.md").write_text("Ships.\n")
    conflict = run("team", "export", str(out))
    assert conflict.code == 1
    assert "conflict plan.md: the two texts differ" in conflict.err + conflict.out
    assert (out / "plan.md").read_text() == "Ships.\n"


def test_a_text_with_a_secret_comes_in_as_it_is_or_not_at_all(shop: Project, run: Run) -> None:
    secret = "ghp_" + "9aB3kQ7zXw2LmN5vRt8YpC1dEf4GhJ6sUoK0"
    shop.memory("key.md", f"first\n\nThe key is {secret}.\n")
    shop.memory("plan.md", "Cranes.\n")
    folder = str(shop.root / ".memories")
    refused = run("team", "import", folder)
    assert refused.code == 1
    assert "imported 1 texts" in refused.out
    assert "skipped key.md: there seems to be a secret in line 3" in refused.out
    assert secret not in refused.out
    assert run("memory", "read", "key.md").code == 1
    # Refused before anything was written, so that no revision has it either.
    assert run("team", "import", folder, "--as-is", "--json").answer["copied"] == ["key.md"]
    assert run("team", "import", folder, "--json").answer["unchanged"] == 2


def test_a_machine_without_a_model_searches_by_words_and_leaves_vectors_to_others(
    shop: Project, run: Run
) -> None:
    without = ("--set", "embedding.model=none")
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
    # Nobody has a model yet; the first who has one makes the vectors of all.
    assert run("push", "--json", *without).answer["vectors"] == 0
    assert run("push", "--json").answer["vectors"] == 1
    assert "lift grain" in run("docs", "search", "cranes", *without).out
    assert "switched off" in run("status", *without).out
    shop.doc("ships.md", "# Ships\n\nShips bring grain.\n")
    pushed = run("push", "--json", *without).answer
    assert (pushed["documents"], pushed["vectors"]) == (2, 1)
    assert run("verify", *without).code == 0
    assert run("index", *without).code == 0
    assert run("index").code == 0
    assert run("verify").code == 0
    scopes = run("team", "status", "--json").answer["scopes"]
    assert [(scope["vectors"], scope["waiting"]) for scope in scopes if scope["passages"]] == [
        (2, 0)
    ]


def test_another_model_a_newer_schema_and_a_missing_extra_are_one_sentence_each(
    shop: Project, run: Run, team_address: str
) -> None:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
    assert run("push").code == 0
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(b"UPDATE indexes SET encoder = 'another/model'")
    for words in (["push"], ["docs", "search", "cranes"]):
        refused = run(*words)
        assert refused.code == 1
        assert "were made with another/model" in refused.err
    assert run("index", "--rebuild").code == 0
    assert run("verify").code == 0
    assert run("docs", "search", "cranes").code == 0
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(
            b"INSERT INTO migrations (number, name, digest) VALUES (9999, 'later', 'x')"
        )
    for words in (["push"], ["memory", "list"], ["team", "status"], ["team", "init"]):
        team.disconnect()
        refused = run(*words)
        assert refused.code == 1
        assert "made by a newer ragdocs" in refused.err
    program = (
        "import sys\nsys.modules['psycopg'] = None\nfrom ragdocs.serve.cli.app import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    for words in (["team", "init"], ["push"], ["memory", "list"]):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", program, *words, "--project", str(shop.root)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert 'pip install "ragdocs[team]"' in ended.stderr
        assert "Traceback" not in ended.stderr


def test_whoever_wrote_is_named_in_the_history(shop: Project, run: Run, team_address: str) -> None:
    assert run("memory", "create", "plan.md", "--content", "Cranes lift grain.").code == 0
    with psycopg.connect(team_address) as session:
        assert session.execute("SELECT author FROM change_sets").fetchall() == [(user_name(),)]


def test_sources_stay_on_this_machine_and_a_translated_page_is_one(
    shop: Project, run: Run, tmp_path: Path
) -> None:
    shop.doc("en/cranes.md", "# Cranes\n\nThe cranes lift grain, and this is how.\n")
    shop.doc("de/cranes.md", "# Kräne\n\nDie cranes heben Getreide, und so geht das.\n")
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook/rules.md").write_text("# Rules\n\nNobody stands below cranes.\n")
    run("push")
    sources = ("--set", f"docs.sources={tmp_path / 'handbook'}")
    found = run("docs", "search", "how the cranes lift", *sources, "--json").answer["result"]
    assert {hit["path"] for hit in found} == {"docs/en/cranes.md", "handbook@local/rules.md"}
    found = run("docs", "search", "wie die cranes heben", "--json").answer["result"]
    assert [hit["path"] for hit in found] == ["docs/de/cranes.md"]
    assert "sources are on this machine only" in run("status", *sources).out
    assert "handbook" not in run("team", "status").out
