"""A configuration that changes while clients are connected over HTTP."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.http.site import Site, make_token, serving
from tests.http.test_mcp import ACCEPT, HELLO
from tests.serve.windows import until

if TYPE_CHECKING:
    import http.client

    from tests.conftest import Project

WITHOUT = "[memory]\nenabled = false\n"
WITH = "[memory]\nenabled = true\n"
STATS = "/api/get_memory_stats"


class Agent:
    """A client of the handshake era that keeps one session and its stream of notifications."""

    def __init__(self, site: Site, token: str) -> None:
        self._site = site
        self._token = token
        begun = self._send(HELLO)
        self.capabilities = _result(begun.text)["capabilities"]
        self._session = {"mcp_session_id": begun.headers["mcp-session-id"]}
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.connection = site.connection()
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "text/event-stream",
            "mcp-session-id": begun.headers["mcp-session-id"],
        }
        self.connection.request("GET", "/mcp", headers=headers)
        self.stream: http.client.HTTPResponse = self.connection.getresponse()
        assert self.stream.status == 200

    def tools(self) -> set[str]:
        """List the tools in the same session as ever."""
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        return {tool["name"] for tool in _result(self._send(listing).text)["tools"]}

    def next_notification(self) -> str:
        """Wait for the next thing that the server says by itself."""
        while True:
            line = self.stream.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data:") and line.strip() != b"data:":
                return str(json.loads(line.removeprefix(b"data:"))["method"])

    def _send(self, message: object) -> Any:
        session = getattr(self, "_session", {})
        answer = self._site.ask("/mcp", message, token=self._token, **ACCEPT, **session)
        assert answer.status in (200, 202), answer.text
        return answer


def _result(text: str) -> Any:
    (line,) = [line for line in text.splitlines() if line.startswith("data: {")]
    return json.loads(line.removeprefix("data: "))["result"]


def test_clients_are_told_of_new_tools_and_keep_their_session(project: Project) -> None:
    project.write("config.toml", WITHOUT)
    token = make_token(project.root, "--role", "writer")
    with serving(project.root, cold=True) as site:
        agent = Agent(site, token)
        assert agent.capabilities["tools"]["listChanged"]
        assert "search_memories" not in agent.tools()
        assert site.ask(STATS, token=token).status == 503
        (project.root / "config.toml").write_text(WITH)
        assert agent.next_notification() == "notifications/tools/list_changed"
        assert "search_memories" in agent.tools()
        assert site.ask(STATS, token=token).status == 200
        # The way back is the same.
        (project.root / "config.toml").write_text(WITHOUT)
        while agent.next_notification() != "notifications/tools/list_changed":
            pass
        assert "search_memories" not in agent.tools()
        assert site.ask(STATS, token=token).status == 503
        agent.connection.close()
        assert site.stop() == 0


def test_a_broken_configuration_takes_nothing_away(project: Project) -> None:
    project.write("config.toml", WITH)
    token = make_token(project.root)
    with serving(project.root) as site:
        assert site.ask(STATS, token=token).status == 200
        (project.root / "config.toml").write_text("[memory\n")
        until(lambda: any("config.toml" in line for line in site.log))
        assert site.ask(STATS, token=token).status == 200
        (project.root / "config.toml").write_text(WITHOUT)
        until(lambda: site.ask(STATS, token=token).status == 503)


def test_an_open_page_hears_of_changes_under_the_new_configuration(project: Project) -> None:
    project.write("config.toml", WITHOUT)
    token = make_token(project.root)
    with serving(project.root) as site, closing(site.connection()) as connection:
        headers = {"authorization": f"Bearer {token}", "host": site.host}
        connection.request("GET", "/api/events", headers=headers)
        stream = connection.getresponse()
        project.memory("news.md", "# News\n\nfresh\n")
        (project.root / "config.toml").write_text(WITH)
        line = b""
        while not line.startswith(b"data:"):
            line = stream.readline()
        assert json.loads(line.removeprefix(b"data:"))["path"] == "news.md"
