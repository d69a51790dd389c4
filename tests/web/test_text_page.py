"""Reading a memory or a document in a browser: its text, links, history, and nothing hostile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import pytest
from tests.web.visit import Office, Screen, Visit, office

GUIDE = """
# Guide

See [the plan](../.memories/plan.md) and [nothing](gone.md).

## Tokens

Tokens are refreshed every quarter of an hour.
"""
PLAN = """
---
type: plan
tags: [auth, tokens]
confidence: 0.9
---
# Move to JWT

Read [[docs/guide.md#Tokens]] first, then [[src/auth.py]], not [[src/old_auth.py]].

## Steps

- issue tokens
- drop sessions, see [[Sessions are stored in Redis]]
"""
SESSIONS = """
---
type: fact
---
# Sessions are stored in Redis

They go when [[plan]] is done.
"""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, screen: Screen) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("text-page"), screen) as opened:
        opened.project.write("src/auth.py", "pass\n")
        opened.project.doc("guide.md", GUIDE)
        opened.ask("create_memory", filename="plan.md", content=PLAN.lstrip(), tags=[])
        opened.ask("create_memory", filename="sessions.md", content=SESSIONS.lstrip(), tags=[])
        opened.site.ask("/api/search_docs?query=tokens", token=opened.token)
        yield opened


def test_a_memory_shows_its_text_fields_and_links_both_ways(place: Office) -> None:
    with place.visit() as visit:
        visit.open("/text/memory/plan.md")
        assert visit.page.inner_text("h1") == "Move to JWT"
        assert visit.page.locator(".prose h1").count() == 0
        assert visit.page.locator(".prose h2#h-steps").count() == 1
        front = visit.text(".front")
        for word in ("plan", "active", "auth", "confidence", "0.9"):
            assert word in front
        side = visit.text(".text-side")
        assert "3 missing" not in side
        assert "1 missing" in side
        assert "They go when plan is done." in side
        assert visit.page.locator(".ghost-link").all_inner_texts() == ["src/old_auth.py"]
        assert visit.page.locator(".file-link").all_inner_texts() == ["src/auth.py"]


def test_links_lead_to_the_heading_and_back(place: Office) -> None:
    with place.visit() as visit:
        visit.open("/text/memory/plan.md")
        visit.page.click(".prose a.wikilink >> nth=0")
        visit.page.wait_for_url("**/text/docs/docs/guide.md#h-tokens")
        assert visit.page.inner_text("h1") == "Guide"
        assert visit.page.locator("#edit").count() == 0
        assert visit.page.locator(".prose a.ghost-link").inner_text() == "nothing"
        visit.page.click(".prose a:text('the plan')")
        visit.page.wait_for_url("**/text/memory/plan.md")
        visit.page.click("text=Sessions are stored in Redis >> nth=0")
        visit.page.wait_for_url("**/text/memory/sessions.md")


def test_an_address_with_a_line_marks_the_passage(place: Office) -> None:
    line = place.read("plan.md").split("\n").index("- issue tokens") + 1
    with place.visit() as visit:
        visit.open(f"/text/memory/plan.md#L{line}")
        assert visit.page.locator(".passage").all_inner_texts() == ["issue tokens"]
        visit.open(f"/text/memory/plan.md?raw#L{line}")
        assert visit.page.locator(".passage").all_inner_texts() == ["- issue tokens"]


def test_reading_works_without_javascript(place: Office) -> None:
    with place.visit(java_script_enabled=False) as visit:
        visit.open("/text/memory/plan.md?raw")
        assert "type: plan" in visit.text(".raw")
        visit.open("/text/memory/plan.md")
        assert "issue tokens" in visit.text(".prose")


def test_history_shows_what_changed_and_brings_a_text_back(place: Office) -> None:
    created = place.ask("create_memory", filename="log.md", content="# Log\n\nfirst\n", tags=[])
    version = created["version"]
    for word in ("second", "third"):
        find = {"second": "first", "third": "second"}[word]
        version = place.ask(
            "edit_memory", filename="log.md", find=find, text=word, expected_version=version
        )["version"]
    with place.visit() as visit:
        visit.open("/text/memory/log.md")
        visit.page.keyboard.press("h")
        assert visit.page.locator(".changes a:focus").count() == 1
        # The name of the token with which it was changed.
        assert visit.page.inner_text(".changes li:first-child span") == "edit by test"
        assert visit.page.inner_text(".diff .removed").endswith("second")
        assert visit.page.inner_text(".diff .added").endswith("third")
        visit.page.click(".changes li:nth-child(2) a")
        assert visit.page.inner_text(".diff .removed").endswith("first")
        visit.page.click("#restore")
        visit.page.wait_for_selector("#toast button")
        assert "first" in visit.text(".prose")
        visit.page.click("#toast button")
        visit.page.wait_for_selector(".prose p:text('third')")
        visit.open("/timeline")
        assert "test" in visit.text(".session")
    assert "third" in place.read("log.md")


def test_a_change_by_an_agent_is_told_without_touching_the_page(place: Office) -> None:
    place.ask("create_memory", filename="watched.md", content="# Watched\n\nold words\n", tags=[])
    with place.visit() as visit:
        visit.open("/text/memory/watched.md")
        visit.page.wait_for_selector("text=connected")
        place.ask("append_memory", filename="watched.md", content="new words")
        visit.page.wait_for_selector("#news .note")
        assert "changed just now" in visit.text("#news")
        assert "new words" not in visit.text(".prose")
        visit.page.click("#news a")
        visit.page.wait_for_selector(".prose p:text('new words')")


def test_what_is_not_there_says_so(place: Office) -> None:
    with place.visit() as visit:
        visit.open("/text/memory/nowhere.md")
        assert visit.page.inner_text("h1") == "Not there"
        visit.open("/text/docs/config.toml")
        assert visit.page.inner_text("h1") == "Not there"
        visit.open("/text/memory/..%2f..%2fetc%2fpasswd")
        assert visit.page.inner_text("h1") == "Not there"


def test_nothing_is_wider_than_the_window(place: Office) -> None:
    place.ask(
        "update_memory",
        filename="sessions.md",
        content=f"# {'Sessions' * 40}\n\n{'x' * 400} [[plan]] `{'y' * 300}`\n\n|a|b|\n|-|-|\n|{'z' * 300}|b|\n",
    )
    with place.visit() as visit:
        for width, scheme in itertools.product((360, 1440), SCHEMES):
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.emulate_media(color_scheme=scheme)
            for path in ("plan.md", "sessions.md", "sessions.md?raw"):
                visit.open(f"/text/memory/{path}")
                assert not visit.is_wider_than_the_window(), (width, scheme, path)


def open_tidy(visit: Visit) -> None:
    """Open the page; on a slow machine it has some of the suggestions only the next time."""
    for _ in range(20):
        visit.open("/tidy")
        if "Still being looked for" not in visit.text():
            return


def test_a_link_that_moved_is_updated_with_one_click_and_taken_back(place: Office) -> None:
    code = "def roam():\n    return 'far away from home'\n"
    place.project.write("src/roaming.py", code)
    content = "# A roaming zebra\n\nIt is in [[src/roaming.py]].\n"
    place.ask("create_memory", filename="roaming.md", content=content, tags=[])
    (place.project.root / "src/roaming.py").rename(place.project.root / "src/roamed.py")
    memory = place.project.root / ".memories/roaming.md"
    before = memory.read_text()
    with place.visit() as visit:
        open_tidy(visit)
        visit.page.click("#drift [data-memory='roaming.md'] [data-act=relink]")
        visit.page.wait_for_selector("#drift .done:has-text('now links to src/roamed.py')")
        assert "[[src/roamed.py]]" in memory.read_text()
        visit.page.click("#drift .done button")
        visit.page.wait_for_selector("#toast:has-text('Taken back')")
        assert memory.read_text() == before
        visit.open("/text/memory/roaming.md")
        visit.page.click("#relink")
        visit.page.wait_for_selector("a:has-text('roamed.py'), .addr:has-text('roamed.py')")
        assert "[[src/roamed.py]]" in memory.read_text()
    place.ask("delete_memory", filename="roaming.md")


def test_all_moved_links_of_a_memory_are_updated_unless_others_changed_it(place: Office) -> None:
    for name in ("ibex", "okapi"):
        place.project.write(f"src/{name}.py", f"def {name}():\n    return 'far from the herd'\n")
    content = "# Two animals\n\nSee [[src/ibex.py]] and [[src/okapi.py]].\n"
    place.ask("create_memory", filename="herd.md", content=content, tags=[])
    for name in ("ibex", "okapi"):
        place.project.root.joinpath(f"src/{name}.py").rename(place.project.root / f"{name}.py")
    memory = place.project.root / ".memories/herd.md"
    rows = "#drift tr[data-memory='herd.md']:visible"
    with place.visit() as visit:
        open_tidy(visit)
        assert visit.page.locator(rows).count() == 2
        place.ask("append_memory", filename="herd.md", content="News.")
        visit.page.click(f"{rows} >> nth=0 >> [data-act=relink]")
        visit.page.wait_for_selector("#toast:has-text('changed')")
        assert "[[src/ibex.py]]" in memory.read_text()
        visit.complaints.clear()  # the browser logs the refusal
        open_tidy(visit)
        visit.page.click(f"{rows} >> nth=0 >> [data-act=relink]")
        visit.page.wait_for_selector("#drift .done:has-text('now links to ibex.py, okapi.py')")
        assert visit.page.locator(rows).count() == 0
        visit.page.click("#drift .done button")
        visit.page.wait_for_selector("#toast:has-text('Taken back')")
        assert visit.page.locator(rows).count() == 2
    place.ask("delete_memory", filename="herd.md")


def test_what_drifted_is_flagged_everywhere_and_found_to_be_still_true(place: Office) -> None:
    place.project.write("src/drifting.py", "one = 1\n")
    content = "# A drifting zebra\n\nIt is in [[src/drifting.py]].\n"
    place.ask("create_memory", filename="drifting.md", content=content, tags=[])
    place.project.write("src/drifting.py", "one = 2\n")
    with place.visit() as visit:
        visit.open("/text/memory/drifting.md")
        assert "1 link is not what it was" in visit.text("#drifted")
        assert visit.page.locator("#links .flag.changed").count() == 1
        visit.open("/?q=zebra")
        visit.page.wait_for_selector(".flag.changed:has-text('1 linked file changed')")
        open_tidy(visit)
        visit.page.click("#drift [data-memory='drifting.md'] [data-act=verify]")
        visit.page.wait_for_selector("#toast:has-text('still true')")
        visit.open("/text/memory/drifting.md")
        assert visit.page.locator("#drifted").count() == 0
        assert visit.page.locator("#links .flag.ok").count() == 1
    place.ask("delete_memory", filename="drifting.md")


def test_what_drifted_is_corrected_from_the_list_and_stays_away(place: Office) -> None:
    place.project.write("src/limits.py", "most = 10\n")
    content = "# Limits\n\nAt most 10, in [[src/limits.py]].\n"
    place.ask("create_memory", filename="limits.md", content=content, tags=[])
    place.project.write("src/limits.py", "most = 20\n")
    row = "#drift [data-memory='limits.md']"
    with place.visit() as visit:
        open_tidy(visit)
        visit.page.click(f"{row} >> text=Correct it")
        visit.page.wait_for_url("**/edit/memory/limits.md")
        text = visit.page.input_value("#content")
        visit.page.fill("#content", text.replace("At most 10", "At most 20"))
        visit.page.click("#save")
        visit.page.wait_for_url("**/text/memory/limits.md")
        assert "At most 20" in place.read("limits.md")
        assert visit.page.locator("#drifted").count() == 0
        assert visit.page.locator("#links .flag.ok").count() == 1
        open_tidy(visit)
        assert visit.page.locator(row).count() == 0
        visit.page.reload()
        visit.page.wait_for_selector("#drift")
        assert visit.page.locator(row).count() == 0
    place.ask("delete_memory", filename="limits.md")
