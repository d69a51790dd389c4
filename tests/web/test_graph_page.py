"""The graph in a real browser: drawn, chosen, dragged, found, opened."""

from __future__ import annotations

import re

from tests.web.conftest import Desk

WHOLE = "0.0 0.0 1000.0 700.0"
NODE = '.n a[href="/text/memory/split-ledger.md"]'


def test_the_graph_is_drawn_and_a_node_leads_to_its_text(desk: Desk) -> None:
    with desk.window() as window:
        window.open("/graph")
        page = window.page
        assert page.locator(".n.plan a").count() == 1
        assert page.locator(".n.ghost a").count() == 2
        assert page.locator("path.e.plans").count() == 2  # drawn, and in the legend
        page.locator(NODE).click()
        page.wait_for_selector("#side h2:has-text('About split-ledger')")
        assert page.locator(".n .near").count() == 3
        assert "Split it." in page.inner_text("#side")
        opened = page.get_attribute("#side .btn.main", "href")
        assert opened == "/text/memory/split-ledger.md"
        assert page.get_attribute(NODE, "href") == opened


def test_keys_choose_zoom_and_clear(desk: Desk) -> None:
    with desk.window() as window:
        window.open("/graph")
        page = window.page
        page.keyboard.press("/")
        page.keyboard.type("sessions")
        assert page.locator(".n .hit").count() == 1
        page.keyboard.press("Enter")
        page.wait_for_selector("#side h2:has-text('About sessions')")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.get_attribute(".n .chosen", "href") != "/text/memory/sessions.md"
        page.keyboard.press("+")
        assert page.get_attribute("#graph", "viewBox") != WHOLE
        page.keyboard.press("0")
        assert page.get_attribute("#graph", "viewBox") == WHOLE
        page.keyboard.press("Escape")
        assert page.locator(".n .chosen").count() == 0


def test_a_dragged_node_takes_its_links_along(desk: Desk) -> None:
    with desk.window() as window:
        window.open("/graph")
        page = window.page
        before = page.get_attribute(NODE, "transform")
        box = page.locator(f"{NODE} use").first.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 60, y + 40, steps=4)
        page.mouse.up()
        after = page.get_attribute(NODE, "transform")
        assert after != before
        assert page.locator(".n .chosen").count() == 0
        point = re.sub(r"[^\d. ]", "", after or "")
        assert page.locator(f'path.e[d*="{point}"]').count() == 3


def test_around_one_text_with_a_filter_and_as_a_table(desk: Desk) -> None:
    with desk.window(360, color_scheme="dark") as window:
        window.open("/graph?around=memory:locks&steps=1")
        assert window.page.locator(".n a").count() == 3
        assert not window.is_wider_than_the_window()
        window.open("/graph?type=decision&ghosts=hide&as=table")
        assert "About sessions" in window.page.inner_text("tbody")
        assert "gone.py" not in window.page.inner_text("tbody")
        assert not window.is_wider_than_the_window()
    answer = desk.site.ask("/graph?around=nowhere", cookie=desk.cookie)
    assert answer.status == 404
    assert "no text and no link is named" in answer.text
