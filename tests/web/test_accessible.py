"""What everybody needs of a page: names of controls, headings in order, landmarks, contrast."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import Desk
from tests.web.visit import Visit

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

PAGES = [
    "/",
    "/?q=locks",
    "/?q=zzzz",
    "/text/memory/locks.md",
    "/text/memory/locks.md?raw",
    "/text/docs/docs/auth.md",
    "/text/memory/nowhere.md",
    "/edit/memory/locks.md",
    "/new",
    "/graph",
    "/graph?around=memory:locks",
    "/graph?as=table",
    "/tidy",
    "/timeline",
    "/status",
]
NARROW: ViewportSize = {"width": 360, "height": 900}
WIDE: ViewportSize = {"width": 1440, "height": 900}
RULES = Path(__file__).with_name("rules.js").read_text(encoding="utf-8")
# A node of the graph shows the letter of its type, which its name has in words.
WITHOUT = '{"label-content-name-mismatch": {enabled: false}}'
AXE = f"async () => (await axe.run({{rules: {WITHOUT}}})).violations.map(say)"
# What another scheme and a narrow window can change.
LOOKS = """async () => {
  const rules = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"];
  return (await axe.run({ runOnly: rules })).violations.map(say);
}"""
SAY = """window.say = (violation) =>
  `${violation.id}: ${violation.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`;
null;"""


def axe() -> str:
    """Return the script of axe-core, which a package of Playwright's users brings."""
    pytest.importorskip("axe_playwright_python")
    for file in files("axe-playwright-python") or ():
        if file.name == "axe.min.js":
            return file.read_text(encoding="utf-8")
    raise AssertionError("axe-playwright-python has no axe.min.js")


def problems(visit: Visit, script: str) -> list[str]:
    """Return the rules that a page breaks, light and wide or dark and narrow."""
    page = visit.page
    page.evaluate(script)
    broken = [*page.evaluate(RULES), *page.evaluate(AXE)]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    broken += [*page.evaluate(RULES), *page.evaluate(LOOKS)]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    return broken


def make_conflict(desk: Desk, visit: Visit) -> None:
    """Save a text that somebody changed meanwhile."""
    desk.ask("create_memory", filename="both.md", content="One line.\n", tags=[])
    visit.open("/edit/memory/both.md")
    visit.page.fill("#content", "One line, by a person.\n")
    desk.ask("edit_memory", filename="both.md", find="One line.", text="One line, by an agent.")
    visit.page.click("#save")
    visit.page.wait_for_selector("#save-merged")


def test_every_page_keeps_the_rules(desk: Desk) -> None:
    script = axe() + SAY
    broken = {}
    with desk.visit(reduced_motion="reduce") as visit:
        for path in PAGES:
            visit.open(path)
            broken[path] = problems(visit, script)
        visit.page.keyboard.press("?")
        visit.page.wait_for_selector("#keys[open]")
        broken["the list of keys"] = problems(visit, script)
        make_conflict(desk, visit)
        broken["a conflict"] = problems(visit, script)
    assert {path: rules for path, rules in broken.items() if rules} == {}


def test_the_rules_find_what_is_wrong(desk: Desk) -> None:
    with desk.visit() as visit:
        visit.open("/status")
        visit.page.evaluate("document.querySelector('h1').outerHTML = '<button></button>'")
        found = problems(visit, axe() + SAY)
    assert {"no name", "button-name", "not one h1"} <= {rule.split(":")[0] for rule in found}
