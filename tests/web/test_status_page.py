"""The status: lanes, problems that open, clients, and the settings that are set."""

from __future__ import annotations

from tests.web.conftest import Desk

from ragdocs.serve.web.status import BAR_STEP, MOST_TIMES, Times


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


def test_the_bar_of_the_latest_search_is_above_the_word_now() -> None:
    times = Times()
    times.observe("search_docs", 0.2, failed=False)
    times.observe("search_docs", 0.1, failed=False)
    chart = times.chart()
    assert chart is not None
    last = (MOST_TIMES - 1) * BAR_STEP
    assert [bar["x"] for bar in chart["bars"]] == [last - BAR_STEP, last]


def test_all_pages_can_be_reached_on_a_phone_without_scrolling_sideways(desk: Desk) -> None:
    with desk.window(360) as window:
        window.open("/status")
        # With a number beside Tidy up, as it is counted a moment after a page was opened.
        width, room = window.page.evaluate("""() => {
            const nav = document.querySelector(".nav");
            nav.querySelector("i")?.remove();
            const badge = document.createElement("i");
            badge.textContent = "19";
            nav.children[2].append(badge);
            return [nav.scrollWidth, nav.clientWidth];
        }""")
        assert width <= room
