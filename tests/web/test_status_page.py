"""The status: lanes, problems that open, clients, and the settings that are set."""

from __future__ import annotations

from tests.web.conftest import Desk


def test_the_state_of_the_project_is_told(desk: Desk) -> None:
    desk.ask("search_docs", query="tokens")
    with desk.window(360, color_scheme="dark") as window:
        window.open("/status")
        page = window.page
        words = page.inner_text("main")
        assert "files compared" in words
        assert "outside the configured globs" in words
        assert "search_docs" in words
        assert "this page" in words
        assert page.inner_text(".facts dd >> nth=4") == "hash"
        assert page.locator("tr.set:visible").count() == 2
        assert not page.locator("td:has-text('watch.debounce_ms')").is_visible()
        page.click("text=Show all")
        assert page.locator("details tr:visible").count() > 10
        opened = page.get_attribute("a.btn:has-text('Open')", "href")
        assert opened == "/text/docs/docs/broken.md"
        assert not window.is_wider_than_the_window()
