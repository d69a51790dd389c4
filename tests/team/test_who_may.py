"""Two walls: verbs ask for the role of the caller, and rows are shown by its grants alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import Project
from tests.http.site import serving
from tests.team.conftest import Run, asking

from ragdocs.errors import ForbiddenError, NotFoundError, RagdocsError
from ragdocs.serve.surface import Ask, Verb, call
from ragdocs.serve.surface.catalog import every
from ragdocs.types import Expect, Put
from ragdocs.workspace import Workspace

VERBS = list(every())
WRITING = [verb for verb in VERBS if verb.role == "writer"]
# Written by the owner of the tables only.
SCOPED = "SELECT table_name FROM information_schema.columns WHERE column_name = 'scope'"


@pytest.fixture
def workspace(shop: Project, run: Run) -> Workspace:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain, see [[harbour]].\n")
    assert run("push").code == 0
    assert run("memory", "create", "plan.md", "--content", "Cranes lift [[grain]].").code == 0
    assert run("team", "grant", "rita", "--role", "reader").code == 0
    assert run("team", "grant", "will", "--role", "writer").code == 0
    return Workspace(shop.config(**{"docs.commits": True, "journal.enabled": True}))


def test_no_verb_answers_a_caller_without_a_role(workspace: Workspace) -> None:
    for verb in VERBS:
        with asking("stranger"), pytest.raises(ForbiddenError, match="you have no role in"):
            call.answer(verb, Ask(workspace=workspace), {})


def test_no_reader_writes_and_a_credential_only_takes_away(workspace: Workspace) -> None:
    for verb in WRITING:
        for name, role in (("rita", "admin"), ("will", "reader")):
            with asking(name, role), pytest.raises(ForbiddenError, match="is for writers"):
                call.answer(verb, Ask(workspace=workspace), {})
    by_name = {verb.name: verb for verb in VERBS}
    with asking("rita"):
        assert found(by_name["search_memories"], workspace) == 1
    with asking("will"):
        assert workspace.memories.append("plan.md", "More.").written.version


def found(verb: Verb, workspace: Workspace) -> int:
    answer = call.answer(verb, Ask(workspace=workspace), {"query": "cranes"})
    return len(answer["result"])


def test_a_verb_that_forgets_to_ask_shows_and_changes_nothing(workspace: Workspace) -> None:
    """The second wall: as if the first one were not there."""
    with asking("stranger"):
        assert workspace.corpus("memory").documents() == []
        assert workspace.corpus("docs").documents() == []
        assert workspace.corpus("memory").store.scan().stamps == {}
        assert workspace.memories.search("cranes").hits == ()
        with pytest.raises(NotFoundError):
            workspace.corpus("memory").store.read("plan.md")
        assert workspace.recall.recall("cranes", scope="global").memories == []
        assert workspace.versions.corpus.versioned.history() == []
    store = workspace.corpus("memory").versioned
    for name, role in (("stranger", "admin"), ("rita", "admin"), ("will", "reader")):
        with asking(name, role), pytest.raises(RagdocsError):
            store.commit([Put("other.md", "x", Expect.ABSENT)])
    assert list(workspace.corpus("memory").store.scan().stamps) == ["plan.md"]


def test_a_statement_that_forgets_the_scope_sees_no_row_of_others(workspace: Workspace) -> None:
    database = workspace.team.database
    with database.maintaining() as session:
        tables = [name for (name,) in session.execute(SCOPED).fetchall()]
        filled = {name for name in tables if count(session, name)}
        protected = session.execute(
            "SELECT relname FROM pg_class WHERE relrowsecurity AND relkind = 'r'"
        ).fetchall()
    assert set(tables) <= {name for (name,) in protected}
    assert {"texts", "bodies", "documents", "passages", "postings", "vectors", "links"} <= filled
    for table in tables:
        with asking("stranger"), database.reading() as session:
            assert count(session, table) == 0, table
        for name in ("stranger", "rita"):
            # Some tables cannot be written to at all.
            with asking(name), suppress(ForbiddenError), database.writing() as session:
                assert session.execute(f"DELETE FROM {table}".encode()).rowcount == 0, table
        if table in filled:
            with asking("rita"), database.reading() as session:
                assert count(session, table) > 0, table


def count(session: object, table: str) -> int:
    row = session.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()  # type: ignore[attr-defined]
    return int(row[0])


def test_another_project_is_recalled_by_those_who_may_read_it(
    workspace: Workspace, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Project(tmp_path / "light")
    other.root.mkdir()
    monkeypatch.setenv("RAGDOCS_TEAM_PROJECTS", f"{other.root}=lighthouse")
    words = ("remember", "The lamp turns", "--set", "memory.enabled=true")
    assert run(*words, folder=other.root).code == 0
    everywhere = workspace.recall.recall("lamp", scope="global").memories
    assert [hit.project for hit in everywhere] == ["lighthouse"]
    with asking("rita"):
        assert workspace.recall.recall("lamp", scope="global").memories == []
    grant = ("team", "grant", "rita", "--role", "reader")
    assert run(*grant, folder=other.root).code == 0
    with asking("rita"):
        assert len(workspace.recall.recall("lamp", scope="global").memories) == 1


def test_over_http_a_token_is_known_by_its_name_and_its_role_only_lowers(
    shop: Project, run: Run
) -> None:
    assert run("memory", "create", "plan.md", "--content", "Cranes lift grain.").code == 0
    run("team", "grant", "will", "--role", "writer")
    run("team", "grant", "rita", "--role", "admin")
    tokens = {}
    for name, role in (("will", "writer"), ("rita", "reader"), ("stranger", "admin")):
        words = ("token", "create", name, "--role", role, "--all-projects", "--json")
        tokens[name] = run(*words).answer["token"]
    # A server of all projects of the team, which has none of their files.
    with serving(shop.root, "--all") as site:

        def ask(name: str, verb: str, **arguments: object) -> int:
            return site.ask(f"/p/api/api/{verb}", arguments, token=tokens[name]).status

        more = {"filename": "plan.md", "content": "More."}
        assert ask("will", "append_memory", **more) == 200
        assert ask("rita", "search_memories", query="cranes") == 200
        assert ask("rita", "append_memory", **more) == 403
        assert ask("stranger", "search_memories", query="cranes") == 403
        assert site.ask("/p/api/api/events", token=tokens["stranger"]).status == 403
        assert site.ask("/", token=tokens["will"]).json == {"projects": ["api"]}
        assert site.ask("/", token=tokens["stranger"]).json == {"projects": []}
        assert site.ask("/metrics", token=tokens["stranger"]).status == 403
    assert "More." in run("memory", "read", "plan.md").out
