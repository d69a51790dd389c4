"""Tidying up in a real browser: merge and take it back, skip, remove, say what is meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import Desk
from tests.web.visit import Visit

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


def files(desk: Desk) -> dict[str, str]:
    memories = Path(desk.project.root, ".memories").glob("*.md")
    return {path.name: path.read_text(encoding="utf-8") for path in memories}


def test_a_merge_is_drafted_done_and_taken_back(desk: Desk) -> None:
    before = files(desk)
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        draft = page.inner_text(".proposal")
        assert "Swept in 30 days." in draft
        assert "Split by month." in draft
        assert page.locator(".leaf .also").count() == 4
        page.keyboard.press("ArrowDown")
        page.keyboard.press("m")
        page.wait_for_selector(".done:has-text('Merged 2 memories')")
        merged = files(desk)
        assert len(merged) == len(before) - 1
        page.keyboard.press("u")
        page.wait_for_selector("#toast:has-text('Taken back')")
    assert files(desk) == before


def open_tidy(window: Visit) -> None:
    """Open the page; on a slow machine it has some of the suggestions only the next time."""
    for _ in range(20):
        window.open("/tidy")
        if "Still being looked for" not in window.text():
            return


MISSING = '<p>Still being looked for. <a data-again href="/tidy">Look again</a></p>'


def unfinished(page: Page) -> list[str]:
    """Let the page come once without its broken links; return the requests for it."""
    requests: list[str] = []

    def answer(route: Route) -> None:
        requests.append(route.request.url)
        response = route.fetch()
        text = response.text()
        if len(requests) == 1:
            begin = text.index('<section class="sec" id="broken">')
            end = text.index("</section>", begin)
            text = f'{text[:begin]}<section class="sec" id="broken">{MISSING}{text[end:]}'
        route.fulfill(response=response, body=text)

    page.route("**/tidy", answer)
    return requests


def test_sections_that_were_missing_are_filled_without_a_reload(desk: Desk) -> None:
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        whole = page.inner_text("#broken")
        numbers = page.inner_text(".contents")
        requests = unfinished(page)
        window.open("/tidy")
        page.evaluate("window.isTheSame = true")
        page.click("text=Edit draft")
        page.fill("article textarea", "Half a thought")
        page.wait_for_selector("#broken .suggestion")
        assert len(requests) == 2
        assert page.inner_text("#broken") == whole
        assert page.inner_text(".contents") == numbers
        assert page.input_value("article textarea") == "Half a thought"
        assert page.evaluate("window.isTheSame")
        assert page.locator("#broken [data-write]:disabled").count() == 0


def test_a_click_is_followed_although_suggestions_come_meanwhile(desk: Desk) -> None:
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        requests = unfinished(page)
        opened: list[Route] = []

        def hold(route: Route) -> None:
            opened.append(route)

        page.route("**/text/memory/**", hold)
        window.open("/tidy")
        page.evaluate("document.querySelectorAll('.compared').forEach((each) => each.remove())")
        page.click("#gaps td a", no_wait_after=True)
        while len(requests) < 2:
            page.wait_for_timeout(50)
        page.wait_for_timeout(200)
        opened[0].continue_()
        page.wait_for_url("**/text/memory/**")


@pytest.mark.parametrize("is_target", [True, False])
def test_a_source_that_others_changed_is_neither_merged_nor_lost(
    desk: Desk, is_target: bool
) -> None:
    before = files(desk)
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        page.click("text=Edit draft")
        page.fill("article textarea", "One text for both.")
        target = str(page.get_attribute("[data-act=merge]", "data-target"))
        names = [str(leaf.get_attribute("data-path")) for leaf in page.locator(".leaf").all()[:2]]
        (changed,) = (name for name in names if (name == target) == is_target)
        desk.ask("append_memory", filename=changed, content="News.")
        page.click("[data-act=merge]")
        page.wait_for_selector("article [role=alert]:not([hidden])")
        assert f"{changed} changed" in page.inner_text("article [role=alert]")
        assert "News." in page.inner_text(f'[data-path="{changed}"]')
        assert page.input_value("article textarea") == "One text for both."
        assert files(desk) == {**before, changed: files(desk)[changed]}
        # With what is new in sight, the same button merges; now another memory may say most.
        target = str(page.get_attribute("[data-act=merge]", "data-target"))
        page.click("[data-act=merge]")
        page.wait_for_selector(".done:has-text('Merged 2 memories')")
        assert files(desk)[target].endswith("One text for both.")
        page.click(".done button")
        page.wait_for_selector("#toast:has-text('Taken back')")
        window.complaints.clear()  # the browser logs the refusal
    desk.ask("undo_memory_change")
    assert files(desk) == before


def test_skipping_is_remembered_and_taken_back(desk: Desk) -> None:
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        page.click("[data-act=skip]")
        page.reload()
        assert page.locator("article.suggestion:visible").count() == 0
        page.evaluate("localStorage.clear()")
        page.reload()
        page.click("[data-act=skip]")
        page.click(".done button")
        page.wait_for_selector("article.suggestion:visible")


def test_the_other_groups_have_their_actions(desk: Desk) -> None:
    before = files(desk)
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        assert "docs/disputes.md" in page.inner_text("#gaps")
        assert "src/gone.py" in page.inner_text("#broken")
        assert page.inner_text('.nav [aria-current="page"] i') == "6"
        assert "docs/broken.md" in page.inner_text("#pages")
        page.click("#ambiguous button >> nth=1")
        page.wait_for_selector("#ambiguous .done")
        assert "[[docs/b/overview.md]]" in files(desk)["skew.md"]
        page.click("#ambiguous .done button")
        page.wait_for_selector("#ambiguous .suggestion:visible")
        page.click("#expired [data-act=remove]")
        page.wait_for_selector("#expired .done")
        assert "old.md" not in files(desk)
        page.click("#expired .done button")
        page.wait_for_selector("#expired .suggestion:visible")
    assert files(desk) == before


def test_a_person_says_which_of_two_memories_holds(desk: Desk) -> None:
    before = files(desk)
    texts = {"limit-a.md": "The gateway allows 100 requests per minute.", "limit-b.md": ""}
    texts["limit-b.md"] = texts["limit-a.md"].replace("100", "250")
    for name, text in texts.items():
        desk.ask("create_memory", filename=name, content=text, tags=[], memory_type="fact")
    with desk.window() as window:
        open_tidy(window)
        page = window.page
        assert "100 and 250" in page.inner_text("#contradictions")
        page.click("#contradictions [data-act=holds] >> nth=1")
        page.wait_for_selector("#contradictions .done:has-text('supersedes')")
        assert "supersedes:: [[limit-a]]" in files(desk)["limit-b.md"]
        window.open("/tidy?only=superseded")
        assert "limit-a.md" in page.inner_text("#superseded")
    for _ in range(3):
        desk.ask("undo_memory_change")
    assert files(desk) == before
