"""The timeline: days, sessions, what was done, and the way to the next page."""

from __future__ import annotations

from tests.web.conftest import Desk


def test_changes_appear_by_day_with_a_way_to_the_text(desk: Desk) -> None:
    desk.ask("create_memory", filename="noted.md", content="A note.", tags=["log"])
    desk.ask("append_memory", filename="noted.md", content="More.")
    desk.ask("rename_memory", filename="noted.md", new_name="kept.md")
    desk.ask("delete_memory", filename="kept.md")
    with desk.window(360, color_scheme="dark") as window:
        window.open("/timeline?since=1d")
        page = window.page
        deeds = page.locator(".session").first.locator(".deed").all_inner_texts()
        assert [deed.split(" ", 1)[1] for deed in deeds[:4]] == [
            "removed",
            "renamed",
            "added to",
            "remembered",
        ]
        assert "was noted.md" in page.inner_text("main")
        assert page.locator("a.gone").first.get_attribute("href") == "/text/memory/kept.md"
        assert not window.is_wider_than_the_window()


def test_a_range_of_days_is_kept_on_the_next_page(desk: Desk) -> None:
    for number in range(51):
        desk.ask("append_memory", filename="locks.md", content=f"Line {number}.")
    with desk.window() as window:
        window.open("/timeline?since=1d")
        window.page.click("a[rel=next]")
        assert "since=1d" in window.page.url
        assert window.page.locator(".deed").count() > 0
        assert window.page.locator("a[rel=prev]").count() == 1
        window.open("/timeline?until=2020-01-01")
        assert "Nothing happened in this time" in window.page.inner_text("main")
    answer = desk.site.ask("/timeline?since=whenever", cookie=desk.cookie)
    assert answer.status == 400
    assert "not a time" in answer.text
