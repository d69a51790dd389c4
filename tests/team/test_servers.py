"""Several servers on one database: what one writes, the others find."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.conftest import Project
from tests.team.conftest import Run, clone
from tests.team.servers import ServerProcess, until

from ragdocs.serve import follow
from ragdocs.stores.postgres import pruning
from ragdocs.types import Expect, Put
from ragdocs.workspace import Workspace

# Notes each vector that a server writes.
COUNT_VECTORS = """
CREATE TABLE filled (doc_id bigint, slot int);
CREATE FUNCTION note_filled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO filled VALUES (NEW.doc_id, NEW.slot);
    RETURN NEW;
END
$$;
CREATE TRIGGER note_filled AFTER INSERT OR UPDATE ON vectors
    FOR EACH ROW EXECUTE FUNCTION note_filled();
"""
LONG = "\n\n".join(f"## Berth {n}\n\nCrane {n} lifts {n * 7} tons of grain." for n in range(60))
LONG += "\n\n## Lighthouse\n\nThe keeper of the lighthouse is called Ada.\n"


def paths(found: object) -> list[str]:
    assert isinstance(found, dict), found
    return [hit["file_path"].rpartition("/")[2] for hit in found["result"]]


def test_a_write_on_one_server_is_found_on_another_and_nothing_is_encoded_twice(
    shop: Project, run: Run, tmp_path: Path, team_address: str
) -> None:
    other = clone(tmp_path.resolve() / "other")
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(COUNT_VECTORS.encode())
    with ServerProcess(shop.root) as one, ServerProcess(other.root) as two:
        assert paths(until_ready(two, "crane")) == []
        created = one.call(
            "create_memory", filename="cranes.md", content=LONG, tags=[], memory_type="fact"
        )
        until(
            lambda: paths(two.call("search_memories", query="lighthouse keeper")) == ["cranes.md"]
        )
        until(lambda: "still embedding" not in str(two.call("search_memories", query="crane")))
        with psycopg.connect(team_address, autocommit=True) as session:
            passages = session.execute("SELECT count(*) FROM vectors").fetchone()
            encoded = session.execute("SELECT count(*) FROM filled").fetchone()
        assert encoded == passages
        theirs = {"filename": "cranes.md", "expected_version": created["version"]}
        assert two.call("update_memory", content="Sold.", **theirs)["version"]
        assert "Sold." in one.call("update_memory", content="Lost.", **theirs)
        assert "Sold." in one.call("read_memory", filename="cranes.md")["content"]
        one.call("delete_memory", filename="cranes.md")
        until(lambda: not paths(two.call("search_memories", query="sold")))
    assert run("verify").code == 0


def until_ready(server: ServerProcess, query: str) -> object:
    """Search until the project is open."""
    return until(
        lambda: (
            answer
            if isinstance(answer := server.call("search_memories", query=query), dict)
            else None
        )
    )


def test_what_a_writer_left_behind_is_indexed_by_a_server(
    shop: Project,
) -> None:
    store = Workspace(shop.config(), lanes=("memory",)).corpus("memory").versioned
    with ServerProcess(shop.root) as server:
        until_ready(server, "grain")
        # As if the writer had died before it indexed its text.
        store.commit([Put("plan.md", "Cranes lift grain.", Expect.ABSENT)])
        until(lambda: "plan.md" in str(server.call("search_memories", query="grain")))


def test_documentation_that_is_pushed_is_searched_by_servers_that_run(
    shop: Project, run: Run
) -> None:
    with ServerProcess(shop.root) as server:
        until(lambda: "was pushed yet" in str(server.call("search_docs", query="cranes")))
        shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
        pushed = run("push", "--json").answer
        assert pushed["changed"] == ["docs/cranes.md"]
        until(lambda: "docs/cranes.md" in str(server.call("search_docs", query="cranes")))


def test_a_server_drops_old_changes_of_a_team_that_writes_little(
    shop: Project, team_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "KEEP_ALWAYS", 1)
    monkeypatch.setattr(follow, "UPKEEP_SECONDS", 0.0)
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.1)
    workspace = Workspace(shop.config(), lanes=("memory",))
    store = workspace.corpus("memory").versioned
    for number in range(3):
        store.commit([Put("plan.md", f"Text {number}.")])
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(b"UPDATE change_sets SET made_at = now() - interval '9 years'")
    follower = follow.follow(workspace, lambda *_: None)
    assert follower is not None
    follower.start()
    until(lambda: len(store.commits()) == 1)
    follower.stop()
