"""Making the tables, and who may do what."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from tests.conftest import Project
from tests.postgres import Cluster, free_port
from tests.team.conftest import IDENTITY, Run, asking

from ragdocs.errors import ConflictError, ForbiddenError, NotFoundError
from ragdocs.project.folders import user_name
from ragdocs.serve.cli import app as cli
from ragdocs.system.postgres.database import Database
from ragdocs.team import Team
from ragdocs.workspace import Workspace


def test_init_makes_the_tables_once_and_an_admin(
    cluster: Cluster, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    address = cluster.create()
    words = ["team", "init", "--project", str(project.root), "--set", f"team.database={address}"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "made 0001_projects" in out
    assert f"{user_name()} is an admin of all projects" in out
    assert cli.main(words) == 0
    assert "the tables are those of this version already" in capsys.readouterr().out
    cluster.drop(address)


def test_a_server_without_pgvector_is_one_sentence_and_nothing_is_made(
    cluster: Cluster, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    address = cluster.create()
    with psycopg.connect(cluster.address, autocommit=True) as session:
        name = address.rpartition("/")[2]
        # Where this server looks for extensions.
        session.execute(f"ALTER DATABASE {name} SET extension_control_path = '/nowhere'".encode())
    words = ["team", "init", "--project", str(project.root), "--set", f"team.database={address}"]
    assert cli.main(words) == 1
    assert "the server has no pgvector" in capsys.readouterr().err
    with psycopg.connect(address) as session:
        assert session.execute("SELECT to_regclass('migrations')").fetchone() == (None,)
    cluster.drop(address)


def test_roles_are_given_listed_and_taken_back(run: Run) -> None:
    assert run("team", "grant", "ann", "--role", "writer").code == 0
    assert run("team", "grant", "ann", "--role", "reader", "--everywhere").code == 0
    members = run("team", "members", "--json").answer
    assert members == [
        {"name": "ann", "role": "reader", "project": "all projects"},
        {"name": "ann", "role": "writer", "project": IDENTITY},
        {"name": user_name(), "role": "admin", "project": "all projects"},
    ]
    assert run("team", "revoke", "ann").code == 0
    missing = run("team", "revoke", "ann")
    assert missing.code == 1
    assert "ann has no role of its own there" in missing.err
    assert "writer" not in run("team", "members").out


def test_only_admins_change_members_and_only_writers_of_everything_add_projects(
    shop: Project,
) -> None:
    team = Team(shop.config())
    with asking("ann"), pytest.raises(ForbiddenError, match="not in the team database yet"):
        _ = team.project
    project = team.project
    for name, role in (("rita", "reader"), ("will", "writer"), ("ada", "admin")):
        team.members.grant(name, role, project.number)
    for name in ("rita", "will", "nobody"):
        with asking(name), pytest.raises(ForbiddenError):
            team.members.grant(name, "admin", project.number)
    with asking("ada"):
        team.members.grant("eve", "reader", project.number)
        with pytest.raises(ForbiddenError):
            team.members.grant("ada", "admin", 0)
        assert {member.name for member in team.members.all()} == {"rita", "will", "ada", "eve"}
    # A credential only takes away.
    with asking("ada", role="writer"), pytest.raises(ForbiddenError):
        team.members.grant("eve", "writer", project.number)
    with asking("rita", role="admin"):
        assert team.projects.role(project.number) == "reader"
        with pytest.raises(ForbiddenError):
            team.projects.add_scope(project.number, "memory")
    with asking("nobody"):
        assert team.projects.role(project.number) is None
        assert team.projects.all() == []


def test_undo_takes_back_what_the_caller_changed_and_nothing_of_others(
    shop: Project, run: Run
) -> None:
    for name in ("ann", "bob", "eve"):
        assert run("team", "grant", name, "--role", "writer").code == 0
    workspace = Workspace(shop.config())

    def write(name: str, path: str, text: str) -> str:
        with asking(name):
            return workspace.memories.append(path, text).written.version

    with asking("ann"):
        for path in ("plan.md", "other.md"):
            workspace.memories.create(path, "Cranes.", ())
    write("ann", "plan.md", "Ann was here.")
    last = write("bob", "other.md", "Bob was here.")
    with asking("ann"):
        assert [step.path for step in workspace.versions.undo().change.steps] == ["plan.md"]
        assert "Ann" not in workspace.corpus("memory").store.read("plan.md").text
        # Bob has changed the next one since.
        with pytest.raises(ConflictError, match=r"other\.md changed since"):
            workspace.versions.undo()
    with asking("eve"), pytest.raises(NotFoundError, match="no change of yours"):
        workspace.versions.undo()
    # Whose change it is, is asked for by naming it.
    with asking("ann"):
        workspace.versions.undo(last)
        assert "Bob" not in workspace.corpus("memory").store.read("other.md").text


def test_a_login_of_its_own_cannot_pretend_to_be_somebody_else(
    cluster: Cluster, shop: Project, team_address: str
) -> None:
    team = Team(shop.config())
    project = team.project
    login = f"ann_{project.number}_{free_port()}"
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(f"CREATE ROLE {login} LOGIN IN ROLE ragdocs_member".encode())
    name = team_address.rpartition("/")[2]
    own = Database(cluster.address_of(name, login), user="whatever")
    with asking(user_name()), own.reading() as session:
        assert session.execute("SELECT count(*) FROM projects").fetchone() == (0,)
    team.members.grant(login, "reader", project.number)
    with asking(user_name()), own.reading() as session:
        assert session.execute("SELECT identity FROM projects").fetchall() == [(IDENTITY,)]
    with asking(user_name()), pytest.raises(ForbiddenError), own.writing() as session:
        session.execute("SELECT add_scope(%s, 'memory', '')", [project.number])
    own.close()
    with psycopg.connect(team_address, autocommit=True) as session:
        session.execute(f"DROP ROLE {login}".encode())


@pytest.mark.parametrize("words", [["init"], ["members"], ["grant", "ann", "--role", "reader"]])
def test_without_a_database_a_command_says_what_to_write(
    project: Project, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert cli.main(["team", *words, "--project", str(project.root)]) == 1
    error = capsys.readouterr().err
    assert "no team database is configured" in error
    assert "under [team] in ~/.config/ragdocs/config.toml" in error


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"postgresql://ann:pa55word@127.0.0.1:{free_port()}/team"
    words = ["--project", str(project.root), "--set", f"team.database={address}"]
    for command in (["team", "init"], ["team", "members"]):
        assert cli.main([*command, *words]) == 1
        error = capsys.readouterr().err
        assert "the team database cannot be reached" in error
        assert "pa55word" not in error
    assert cli.main(["check-config", *words]) == 0
    assert "pa55word" not in capsys.readouterr().out


def test_whoever_is_in_no_team_imports_nothing_of_it(project: Project) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    program = (
        "import sys\nfrom ragdocs.serve.cli.app import main\n"
        "for words in (['memory', 'list'], ['status'], ['search', 'x']):\n"
        "    main([*words, '--set', 'embedding.model=hash'])\n"
        "print([name for name in sys.modules if 'psycopg' in name or 'postgres' in name])\n"
        "print('ragdocs.team' in sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-2:] == ["[]", "False"]
