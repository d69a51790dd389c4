"""The page of a shared server: the same process and index as the windows of agents."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.http.site import RAGDOCS, Site
from tests.serve.conftest import quick_servers, runtime, served
from tests.serve.windows import Window, servers

if TYPE_CHECKING:
    from tests.conftest import Project

__all__ = ["quick_servers", "runtime", "served"]

pytestmark = pytest.mark.usefixtures("quick_servers")


def page_of(project: Project) -> Site:
    """Ask for the page as a person does, without a browser."""
    command = [*RAGDOCS, "web", "--no-browser", "--json", "--project", str(project.root)]
    printed = subprocess.run(
        [*command, "--set", "embedding.model=hash"], capture_output=True, text=True, check=True
    )
    address = str(json.loads(printed.stdout)["address"])
    port = int(address.partition("127.0.0.1:")[2].partition("/")[0])
    # The process behind it is nobody's child here.
    return Site(process=None, port=port, invitation=address)  # type: ignore[arg-type]


def test_agents_and_the_page_have_one_server(served: Project, runtime: Path) -> None:
    first = page_of(served)
    cookie = first.sign_in()
    window = Window(served).greet()
    window.call("create_memory", filename="seen.md", content="written by an agent", tags=[])
    found = first.ask("/api/read_memory?filename=seen.md", cookie=cookie)
    assert "written by an agent" in found.json["content"]
    window.close()
    assert len(servers(runtime)) == 1


def test_a_second_address_is_of_the_same_page(served: Project, runtime: Path) -> None:
    first, second = page_of(served), page_of(served)
    assert first.port == second.port
    assert first.invitation != second.invitation
    assert len(servers(runtime)) == 1


def test_a_new_configuration_reaches_the_page(served: Project, runtime: Path) -> None:
    del runtime
    site = page_of(served)
    cookie = site.sign_in()
    assert site.ask("/api/get_memory_stats", cookie=cookie).status == 200
    served.write("config.toml", "[memory]\nenabled = false\n")
    # Whoever connects makes the server look at its files.
    page_of(served)
    assert site.ask("/api/get_memory_stats", cookie=cookie).status == 503


def test_what_is_private_to_the_socket_is_not_served_over_http(
    served: Project, runtime: Path
) -> None:
    del runtime
    site = page_of(served)
    cookie = site.sign_in()
    page = site.ask("/status", cookie=cookie).text
    csrf = page.partition('name="csrf" content="')[2].partition('"')[0]
    for method in ("ragdocs/command", "ragdocs/page"):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"words": ["status"]}}
        refused = site.ask(
            "/mcp",
            request,
            cookie=cookie,
            x_ragdocs_csrf=csrf,
            accept="application/json, text/event-stream",
            content_type="application/json",
            mcp_protocol_version="2026-07-28",
        )
        assert "address" not in refused.text
        assert '"out"' not in refused.text
