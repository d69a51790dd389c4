"""Commands about the database that a team shares: its tables, its members, and what is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ragdocs.serve.cli.commands import VerbCommand, common_options, format_option
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.push import EXPORT, IMPORT, PUSH
from ragdocs.serve.source import load_config
from ragdocs.serve.surface.present import plural

if TYPE_CHECKING:
    from ragdocs.stores.postgres.projects import Member
    from ragdocs.team import Team

INIT_EXAMPLES = """\
examples:
  ragdocs team init         make the tables in the database, or bring them up to this version

It may be run again at any time. The address of the database comes from [team] in your own
configuration, or from RAGDOCS_DATABASE.

exit codes: 0 done, 1 failed with nothing written, 2 wrong usage
"""
GRANT_EXAMPLES = """\
examples:
  ragdocs team grant ann --role writer               in this project
  ragdocs team grant ci --role writer --everywhere   in all projects
  ragdocs team grant oauth:248289 --role reader      by the subject at the identity provider
  ragdocs team revoke ann
  ragdocs team members
"""
MEMBER_COLUMNS = ("name", "role", "project")


def _init(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.team import initialise

    made, name = initialise(load_config(project, settings))
    steps = [f"{step.number:04}_{step.name}" for step in made]
    print_answer({"steps": steps, "admin": name}, _init_text, as_json=as_json)
    return 0


def _init_text(answer: Mapping[str, Any]) -> str:
    lines = [f"made {step}" for step in answer["steps"]]
    if not lines:
        lines.append("the tables are those of this version already")
    lines.append(f"{answer['admin']} is an admin of all projects")
    return "\n".join(lines)


def _status(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.stores.postgres.overview import overview

    answer = asdict(overview(_team(project, settings).database))
    print_answer(answer, _status_text, as_json=as_json)
    return 0


def _status_text(answer: Mapping[str, Any]) -> str:
    kind = _kind(answer)
    versions = f"PostgreSQL {answer['server']}, pgvector {answer['pgvector']}"
    size = f"{answer['size_bytes'] / 1e6:,.0f} MB"
    connections = plural(answer["connections"], "connection")
    lines = [
        f"{answer['address']}: {versions}, {kind}",
        f"schema {answer['schema']:04}, {size}, {connections} of ragdocs",
    ]
    for scope in answer["scopes"]:
        lane = scope["lane"]
        if scope["branch"]:
            lane += f" of {scope['branch']}"
        lines.append(
            f"{scope['project']}, {lane}: {plural(scope['texts'], 'text')}, "
            f"{scope['documents']:,} indexed, {plural(scope['passages'], 'passage')}, "
            f"{plural(scope['vectors'], 'vector')}"
        )
        lines += _unfinished(scope)
    return "\n".join(lines)


def _kind(answer: Mapping[str, Any]) -> str:
    """Say which of several servers this is, and how far standbys are behind."""
    lag = "an unknown time"
    if answer["lag_seconds"] is not None:
        lag = f"{answer['lag_seconds']:.1f} s"
    if answer["standby"]:
        return f"a standby, {lag} behind"
    if not answer["standbys"]:
        return "the primary server"
    return f"the primary server, {answer['standbys']} standbys, the slowest {lag} behind"


def _unfinished(scope: Mapping[str, Any]) -> list[str]:
    """Say what servers have still to do."""
    lines = []
    if scope["waiting"]:
        lines.append(f"   {scope['waiting']:,} passages wait for a vector")
    if scope["unfolded"]:
        changes = plural(scope["unfolded"], "change")
        lines.append(f"   {changes} of statistics to be added up")
    if scope["changed_at"]:
        lines.append(f"   {scope['feed']:,} changes in the feed, the last {scope['changed_at']}")
    return lines


def _grant(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    name: str,
    role: str,
    everywhere: bool,
) -> int:
    team = _team(project, settings)
    number, identity = _scope(team, everywhere=everywhere)
    team.members.grant(name, role, number)
    answer = {"name": name, "role": role, "project": identity}
    print_answer(answer, _granted_text, as_json=as_json)
    return 0


def _granted_text(answer: Mapping[str, str]) -> str:
    return f"{answer['name']} is {answer['role']} in {answer['project']}"


def _revoke(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, name: str, everywhere: bool
) -> int:
    team = _team(project, settings)
    number, identity = _scope(team, everywhere=everywhere)
    team.members.revoke(name, number)
    print_answer({"name": name, "project": identity}, _revoked_text, as_json=as_json)
    return 0


def _revoked_text(answer: Mapping[str, str]) -> str:
    return f"{answer['name']} has no role of its own in {answer['project']} any more"


def _members(project: str | None, as_json: bool, settings: tuple[str, ...], *, form: str) -> int:
    rows = [_member(member) for member in _team(project, settings).members.all()]
    print_answer(rows, _members_text, as_json=as_json, form=form, columns=MEMBER_COLUMNS)
    return 0


def _member(member: Member) -> dict[str, str]:
    project = member.identity or EVERYWHERE
    return {"name": member.name, "role": member.role, "project": project}


def _members_text(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [f"{row['role']:<6}  {row['name']}  in {row['project']}" for row in rows]
    return "\n".join(lines) or "nobody has a role that you may see"


def _team(project: str | None, settings: tuple[str, ...]) -> Team:
    from ragdocs.team import Team

    return Team(load_config(project, settings))


def _scope(team: Team, *, everywhere: bool) -> tuple[int, str]:
    """Return the project that a role is for, with its name; or all of them."""
    from ragdocs.stores.postgres.projects import EVERY_PROJECT

    if everywhere:
        return EVERY_PROJECT, EVERYWHERE
    project = team.project
    return project.number, project.identity


def _command(
    name: str, about: str, run: Any, *options: click.Parameter, epilog: str = ""
) -> click.Command:
    params = [*options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


EVERYWHERE = "all projects"
_EVERYWHERE = click.Option(
    ["--everywhere"], is_flag=True, help="in all projects, those to come too"
)
_TEAM = click.Group("team", help="the database that a team shares, and its members")
_TEAM.add_command(
    _command("init", "make the tables of a team database", _init, epilog=INIT_EXAMPLES)
)
_TEAM.add_command(
    _command(
        "grant",
        "give somebody a role in this project",
        _grant,
        click.Argument(["name"]),
        click.Option(
            ["--role"],
            type=click.Choice(("reader", "writer", "admin")),
            required=True,
            help="reader, writer or admin",
        ),
        _EVERYWHERE,
        epilog=GRANT_EXAMPLES,
    )
)
_TEAM.add_command(
    _command(
        "revoke",
        "take a role back",
        _revoke,
        click.Argument(["name"]),
        _EVERYWHERE,
        epilog=GRANT_EXAMPLES,
    )
)
_TEAM.add_command(
    _command("status", "what is in the team database, and what is still to be done", _status)
)
_TEAM.add_command(IMPORT)
_TEAM.add_command(EXPORT)
_TEAM.add_command(_command("members", "list who has which role", _members, format_option()))
COMMANDS = (_TEAM, PUSH)
