"""Commands about serving over HTTP: the server, the page, and the tokens that let callers in."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragdocs.config import NO_DATABASE, Config
from ragdocs.project.folders import data_dir
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.source import Source, load_config
from ragdocs.system import files

if TYPE_CHECKING:
    from ragdocs.serve.site import Own

SERVE_EXAMPLES = """\
examples:
  ragdocs serve --http                         this project, for this machine only
  ragdocs serve --http --all                   all your projects, at /p/NAME/
  ragdocs serve --http --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
  ragdocs serve --http --forwarded-allow-ips 10.0.0.2 --name docs.example.com
"""
EXAMPLES_OF_TOKENS = """\
examples:
  ragdocs token create laptop --role writer --days 90
  ragdocs token create ci --role reader --project .
  ragdocs token list
  ragdocs token revoke laptop
"""


def _serve(project: str | None, as_json: bool, settings: tuple[str, ...], **options: Any) -> int:
    from ragdocs.serve.site import (
        Limits,
        Listening,
        Opened,
        log_as_json,
        serve_http,
    )

    del as_json
    if not options["http"]:
        raise click.UsageError(
            "say --http to serve over HTTP; `ragdocs mcp` serves one client over stdio"
        )
    listening = Listening(
        address=options["host"],
        port=options["port"],
        names=options["name"],
        origins=options["allow_origin"],
        certificate=options["tls_cert"] or "",
        key=options["tls_key"] or "",
        proxies=options["forwarded_allow_ips"] or "",
        plain=options["plain_http"],
        issuer=options["oauth_issuer"] or "",
        audience=options["oauth_audience"],
    )
    limits = Limits(
        body_bytes=int(options["max_body_mb"] * 1_000_000),
        requests_a_second=options["requests_a_second"],
        running=options["max_running"],
        call_seconds=options["call_seconds"],
    )
    projects = _projects(project, settings, all_projects=options["all_projects"])
    log_as_json()
    serve_http(Opened(projects, limits), listening, limits)
    return 0


def _projects(
    project: str | None, settings: tuple[str, ...], *, all_projects: bool
) -> Mapping[str, Own]:
    """Return what is served: one project, or all of this user or of a team."""
    from ragdocs.serve.site import Own, SharedProjects, registered

    if not all_projects:
        # Mistakes in the configuration end the command; later ones only warn.
        root = load_config(project, settings).root
        return {"": Own(root, Source(project, settings))}
    # Whichever folder this is run in, such as the user's home, is no project.
    files.make_directories(data_dir())
    config = load_config(data_dir(), settings)
    if config.team.database == NO_DATABASE:
        return registered(settings)
    return SharedProjects(config, settings)


def _web(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, port: int, browser: bool
) -> int:
    from ragdocs.serve.shared.client import page_address, server_arguments

    # Mistakes in the configuration are said here and not in the log of a server.
    config = load_config(project, settings)
    address = None
    if not port and config.server.shared:
        address = page_address(server_arguments(project, settings))
    if address is None:
        own = Source(project, settings)
        return _serve_page(config, own, port, as_json=as_json, browser=browser)
    _show_address(config, address, as_json=as_json, browser=browser)
    return 0


def _serve_page(config: Config, source: Source, port: int, *, as_json: bool, browser: bool) -> int:
    """Serve the page from this process, until it is interrupted."""
    import anyio

    from ragdocs.serve.site import Limits, Listening, Opened, Own, Server, until_signalled

    limits = Limits()
    opened = Opened({"": Own(config.root, source)}, limits)
    server = Server(opened, Listening(port=port), limits)
    _show_address(config, server.invitation(), as_json=as_json, browser=browser)
    if not as_json:
        click.echo("Ctrl-C ends the server")
    sys.stdout.flush()
    anyio.run(until_signalled, server)
    os._exit(0)


def _show_address(config: Config, address: str, *, as_json: bool, browser: bool) -> None:
    if as_json:
        print_answer({"address": address}, str, as_json=True)
    else:
        click.echo(f"the page of {config.root.name}: {address}")
        click.echo("the address works once, within five minutes")
    if browser:
        open_browser(address)


def open_browser(address: str) -> None:
    """Open an address without showing it to other users, who can see the arguments of programs."""
    import webbrowser

    folder = Path(tempfile.mkdtemp(prefix="ragdocs-"))
    page = folder / "open.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><title>ragdocs</title>'
        f'<meta http-equiv="refresh" content="0; url={address}">',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())


def _token_create(
    project: str | None, as_json: bool, settings: tuple[str, ...], **options: Any
) -> int:
    from ragdocs.project.tokens import EVERY_PROJECT, Tokens

    scope = EVERY_PROJECT
    if not options["every_project"]:
        scope = str(load_config(project, settings).root)
    token, text = Tokens().create(
        options["name"], options["role"], scope, options["days"], datetime.now(UTC)
    )
    answer = {**token.public(), "token": text}
    print_answer(answer, _created_text, as_json=as_json)
    return 0


def _created_text(answer: Mapping[str, str]) -> str:
    project = "all your projects"
    if answer["project"] != "*":
        project = answer["project"]
    article = "an" if answer["role"] == "admin" else "a"
    return (
        f"{answer['token']}\n\n"
        f"{answer['name']} may use it as {article} {answer['role']} of {project} "
        f"until {answer['expires_at'][:10]}.\n"
        "It is not stored and cannot be shown again. Clients send it as\n"
        "  Authorization: Bearer TOKEN"
    )


def _token_list(project: str | None, as_json: bool, settings: tuple[str, ...]) -> int:
    from ragdocs.project.tokens import Tokens

    del project, settings
    tokens = [token.public() for token in Tokens().all()]
    print_answer(tokens, _tokens_text, as_json=as_json)
    return 0


def _tokens_text(tokens: Sequence[Mapping[str, str]]) -> str:
    now = datetime.now(UTC)
    rows = []
    for token in tokens:
        state = f"until {token['expires_at'][:10]}"
        if datetime.fromisoformat(token["expires_at"]) <= now:
            state = f"expired {token['expires_at'][:10]}"
        rows.append(
            f"{token['id']}  {token['role']:<6}  {state}  {token['project']}  {token['name']}"
        )
    return "\n".join(rows) or "no tokens; make one with `ragdocs token create NAME`"


def _token_revoke(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, name: str
) -> int:
    from ragdocs.project.tokens import Tokens

    del project, settings
    revoked = [token.public() for token in Tokens().revoke(name)]
    print_answer(revoked, _revoked_text, as_json=as_json)
    return 0


def _revoked_text(tokens: Sequence[Mapping[str, str]]) -> str:
    return "\n".join(f"revoked {token['id']} ({token['name']})" for token in tokens)


def _command(
    name: str, about: str, run: Any, *options: click.Parameter, epilog: str = ""
) -> click.Command:
    params = [*options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


_SERVE = _command(
    "serve",
    "serve the page, the API and MCP over HTTP",
    _serve,
    click.Option(["--http"], is_flag=True, help="over HTTP"),
    click.Option(
        ["--all", "all_projects"],
        is_flag=True,
        help="all projects that have memories, or all of the team",
    ),
    click.Option(["--host"], default="127.0.0.1", help="the address to listen on"),
    click.Option(["--port"], type=int, default=7420, help="the port; 0 for any that is free"),
    click.Option(["--name"], multiple=True, help="a public name by which callers reach it"),
    click.Option(["--allow-origin"], multiple=True, help="a site whose pages may call it"),
    click.Option(["--tls-cert"], metavar="FILE", help="the certificate, for TLS"),
    click.Option(["--tls-key"], metavar="FILE", help="the key of the certificate"),
    click.Option(["--forwarded-allow-ips"], metavar="IPS", help="proxies in front of it"),
    click.Option(["--plain-http"], is_flag=True, help="without TLS, on a private network"),
    click.Option(["--oauth-issuer"], metavar="URL", help="an identity provider to trust"),
    click.Option(
        ["--oauth-audience"],
        default="ragdocs",
        metavar="NAME",
        help="for whom its tokens must be meant",
    ),
    click.Option(["--max-body-mb"], type=float, default=4.0, help="the largest request"),
    click.Option(["--requests-a-second"], type=float, default=50.0, help="of one caller"),
    click.Option(["--max-running"], type=int, default=8, help="calls that run at once"),
    click.Option(["--call-seconds"], type=float, default=30.0, help="the longest call"),
    epilog=SERVE_EXAMPLES,
)
_WEB = _command(
    "web",
    "open the page in a browser",
    _web,
    click.Option(["--port"], type=int, default=0, help="the port; any that is free by default"),
    click.Option(["--browser/--no-browser"], default=True, help="open a browser"),
)
_TOKEN = click.Group("token", help="tokens that let clients in over HTTP", epilog=None)
_TOKEN.add_command(
    _command(
        "create",
        "make a token and show it once",
        _token_create,
        click.Argument(["name"]),
        click.Option(
            ["--role"],
            type=click.Choice(("reader", "writer", "admin")),
            default="reader",
            help="what it allows at most",
        ),
        click.Option(["--days"], type=int, default=90, help="how long it is good for"),
        click.Option(
            ["--all-projects", "every_project"], is_flag=True, help="not only for this project"
        ),
        epilog=EXAMPLES_OF_TOKENS,
    )
)
_TOKEN.add_command(_command("list", "list the tokens", _token_list))
_TOKEN.add_command(
    _command(
        "revoke",
        "refuse a token from now on",
        _token_revoke,
        click.Argument(["name"], metavar="ID|NAME"),
    )
)
COMMANDS = (_SERVE, _WEB, _TOKEN)
