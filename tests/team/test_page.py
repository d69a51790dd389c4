"""The page of a server whose texts are in a team database: searching, reading, writing, tidying."""

from __future__ import annotations

import re

from tests.conftest import Project
from tests.http.site import Site, serving
from tests.team.conftest import Run
from tests.team.servers import until

TWIN = "Deliveries are recorded by event id before anything is posted to the ledger."


class Visitor:
    """Somebody who is signed in to the page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._cookie = site.sign_in()
        self.csrf = re.findall('name="csrf" content="([^"]+)"', self.page("/status"))[0]

    def page(self, path: str) -> str:
        answer = self._site.ask(path, cookie=self._cookie)
        assert answer.status == 200, answer.text
        return answer.text

    def words(self, path: str) -> str:
        """Return what a page says, without its marks."""
        return re.sub("<[^>]+>", "", self.page(path))

    def call(self, verb: str, **arguments: object) -> dict[str, object]:
        """Do what a form of the page does."""
        answer = self._site.ask(
            f"/api/{verb}",
            arguments,
            cookie=self._cookie,
            x_ragdocs_csrf=self.csrf,
            content_type="application/json",
        )
        assert answer.status == 200, answer.text
        called: dict[str, object] = answer.json
        return called


def test_every_part_of_the_page_works_with_a_team(shop: Project, run: Run) -> None:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain, see [[plan]].\n")
    assert run("push").code == 0
    for name in ("twin", "other"):
        text = f"{TWIN}\n\nA duplicate is answered with 200.\n\nThis is the {name} one."
        words = ("memory", "create", f"{name}.md", "--content", text)
        assert run(*words).code == 0
    with serving(shop.root) as site:
        visitor = Visitor(site)
        # Writing, and what was written on every other part.
        text = "# Plan\n\nBuy two cranes, see [[docs/cranes.md]] and [[nowhere]].\n"
        made = visitor.call("create_memory", filename="plan.md", content=text, tags=["port"])
        until(lambda: "Buy two cranes" in visitor.words("/?q=two+cranes"))
        found = visitor.page("/?q=cranes")
        assert "/text/memory/plan.md" in found
        assert "/text/docs/docs/cranes.md" in found
        assert "Buy two cranes" in visitor.words("/text/memory/plan.md")
        assert "Cranes lift grain" in visitor.words("/text/docs/docs/cranes.md")
        assert "Buy two cranes" in visitor.words("/edit/memory/plan.md")
        changed = text.replace("two", "three")
        version = made["version"]
        visitor.call("update_memory", filename="plan.md", content=changed, expected_version=version)
        assert "Buy three cranes" in visitor.words("/text/memory/plan.md")
        until(lambda: "/text/memory/twin.md" in visitor.page("/tidy"))
        tidy = visitor.page("/tidy")
        assert "/text/memory/other.md" in tidy
        assert "branch main, as it was pushed" in visitor.words("/status")
        assert "plan.md" in visitor.words("/timeline")
        assert "plan" in visitor.page("/graph")
        visitor.call("undo_memory_change")
        assert "Buy two cranes" in visitor.words("/text/memory/plan.md")
    # Nothing of it is a file.
    assert not (shop.root / ".memories").exists()
    assert "Buy two cranes" in run("memory", "read", "plan.md").out
