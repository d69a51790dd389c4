"""Writing in a browser: nothing is lost, whoever else writes at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.visit import Office, Screen, Visit, office

LEDGER = """---
type: plan
tags: [ledger]
---
# Split the ledger

Cut over on 24 November, with writes paused.

## Steps

- backfill 2025
- switch reads
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, screen: Screen) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("writing"), screen) as opened:
        yield opened


def put(place: Office, name: str, text: str = LEDGER) -> str:
    """Write a memory as an agent does, and return its version."""
    return str(place.ask("create_memory", filename=name, content=text, tags=[])["version"])


def retype(visit: Visit, old: str, new: str) -> None:
    """Replace words in the editor."""
    text = visit.page.input_value("#content")
    assert old in text
    visit.page.fill("#content", text.replace(old, new))


def test_a_new_memory_is_previewed_and_saved_without_its_secrets(place: Office) -> None:
    key = "AKIA" + "Q3EGRZ7TJ5WNXK2B"
    with place.visit() as visit:
        visit.open("/new")
        visit.page.fill("#filename", "auth/keys.md")
        visit.page.select_option("#kind", "fact")
        visit.page.fill("#tags", "auth, keys")
        visit.page.fill("#content", f"# Keys\n\nThe key is {key} for now.\n")
        visit.page.wait_for_selector("#preview h1:text('Keys')")
        visit.page.wait_for_selector("#secrets .note")
        assert "line 3" in visit.text("#secrets")
        assert key not in visit.text("#secrets")
        visit.page.click("#save")
        visit.page.wait_for_url("**/text/memory/auth/keys.md")
        written = place.read("auth/keys.md")
        assert key not in written
        assert "tags: [auth, keys]" in written.replace("\n- ", " ") or "- auth" in written
        visit.page.click("#toast button")
        visit.page.wait_for_selector("h1:text('Not there')")
    assert not (place.project.root / ".memories/auth/keys.md").exists()


def test_two_writers_get_both_changes(place: Office) -> None:
    version = put(place, "ledger.md")
    with place.visit() as visit:
        visit.open("/text/memory/ledger.md")
        visit.page.keyboard.press("e")
        visit.page.wait_for_selector("#content:focus")
        retype(visit, "writes paused", "writes open")
        retype(visit, "- switch reads", "- switch reads\n- drop ledger")
        place.ask(
            "update_memory",
            filename="ledger.md",
            content=place.read("ledger.md")
            .replace("24 November", "1 December")
            .replace("2025", "2025 (done)"),
            expected_version=version,
        )
        visit.page.wait_for_selector("#news .note")
        visit.page.click("#save")
        visit.page.wait_for_selector("#save-merged")
        assert visit.page.locator(".hunk").count() == 3
        assert "1 needs you" in visit.text("#conflict")
        assert "Cut over on 1 December, with writes open." in visit.text("#blocks .check")
        # One choice is made, and then a third text arrives.
        visit.page.check(".hunk:nth-of-type(1) input[value=yours]")
        assert visit.page.locator("#blocks .check").count() == 0
        place.ask("append_memory", filename="ledger.md", content="A third hand wrote this.")
        visit.page.click("#save-merged")
        visit.page.wait_for_selector("#blocks p:has-text('A third hand')")
        assert visit.page.is_checked(".hunk:nth-of-type(1) input[value=yours]")
        visit.page.keyboard.press("Control+Enter")
        visit.page.wait_for_url("**/text/memory/ledger.md")
    text = place.read("ledger.md")
    assert "Cut over on 24 November, with writes open." in text
    for line in ("- backfill 2025 (done)", "- drop ledger", "A third hand wrote this."):
        assert line in text
    assert "<<<<<<<" not in text


def test_a_conflict_survives_a_reload_and_can_be_written_by_hand(place: Office) -> None:
    version = put(place, "hand.md")
    with place.visit() as visit:
        visit.open("/edit/memory/hand.md")
        retype(visit, "24 November", "2 January")
        place.ask(
            "update_memory",
            filename="hand.md",
            content=place.read("hand.md").replace("24 November", "1 December"),
            expected_version=version,
        )
        visit.page.reload()
        visit.page.wait_for_selector("#save-merged")
        visit.page.keyboard.press("3")
        assert visit.page.is_checked(".hunk input[value=yours]")
        visit.page.click("#edit-merged")
        visit.page.fill("#merged-text", visit.page.input_value("#merged-text") + "By hand.\n")
        visit.page.click("#save-merged")
        visit.page.wait_for_url("**/text/memory/hand.md")
    assert "2 January" in place.read("hand.md")
    assert place.read("hand.md").endswith("By hand.\n")


def test_unsaved_text_survives_a_reload_until_it_is_discarded(place: Office) -> None:
    put(place, "draft.md")
    with place.visit() as visit:
        visit.open("/edit/memory/draft.md")
        retype(visit, "switch reads", "switch nothing")
        visit.page.reload()
        assert "switch nothing" in visit.page.input_value("#content")
        assert "unsaved text" in visit.text("#news")
        with visit.page.expect_navigation():
            visit.page.click("#discard")
        assert "switch reads" in visit.page.input_value("#content")
        visit.open("/new")
        visit.page.fill("#filename", "../outside.md")
        visit.page.fill("#content", "words that must not be lost")
        visit.page.click("#save")
        visit.page.wait_for_selector("#failed .note")
        visit.page.reload()
        assert visit.page.input_value("#content") == "words that must not be lost"
        assert visit.page.input_value("#filename") == "../outside.md"


def test_append_puts_a_paragraph_behind_what_others_wrote(place: Office) -> None:
    put(place, "log.md", "# Log\n\nfirst\n")
    with place.visit() as visit:
        visit.open("/text/memory/log.md")
        visit.page.keyboard.press("a")
        visit.page.wait_for_selector("#content:focus")
        visit.page.fill("#content", "third")
        place.ask("append_memory", filename="log.md", content="second")
        visit.page.click("#save")
        visit.page.wait_for_selector("#failed .note")
        visit.page.keyboard.press("Control+Enter")
        visit.page.wait_for_url("**/text/memory/log.md")
    text = place.read("log.md")
    assert text.index("first") < text.index("second") < text.index("third")


def test_rename_archive_and_delete_can_be_taken_back(place: Office) -> None:
    put(place, "old.md", "# Old\n\nwords\n")
    put(place, "link.md", "# Link\n\nSee [[old]].\n")
    with place.visit() as visit:
        visit.open("/text/memory/old.md")
        visit.page.click("#rename")
        visit.page.fill("#new-name", "new.md")
        visit.page.click("#rename-form .main")
        visit.page.wait_for_url("**/text/memory/new.md")
        assert "1 link rewritten" in visit.text("#toast")
        assert "[[new]]" in place.read("link.md")
        visit.page.click("#toast button")
        visit.page.wait_for_url("**/text/memory/old.md")
        assert "[[old]]" in place.read("link.md")
        visit.page.click("#archive")
        visit.page.wait_for_selector("button:text('Unarchive')")
        assert "status: archived" in place.read("old.md")
        # Somebody writes elsewhere meanwhile; their change is not the one that is taken back.
        put(place, "elsewhere.md")
        visit.page.click("#toast button")
        visit.page.wait_for_selector("button:text-is('Archive')")
        assert (place.project.root / ".memories/elsewhere.md").exists()
        visit.page.click("#delete")
        visit.page.wait_for_selector("h1:text('Not there')")
        visit.page.click("#toast button")
        visit.page.wait_for_selector("h1:text('Old')")
        visit.page.click("#delete")
        visit.page.wait_for_selector("h1:text('Not there')")
        visit.page.click("[data-restore] >> nth=0")
        visit.page.wait_for_selector("h1:text('Old')")


def test_a_stale_page_overwrites_nothing(place: Office) -> None:
    put(place, "stale.md", "# Stale\n\nwords\n")
    with place.visit() as visit:
        visit.open("/text/memory/stale.md")
        place.ask("append_memory", filename="stale.md", content="theirs")
        visit.page.click("#delete")
        visit.page.wait_for_selector("#toast div")
        assert "theirs" in place.read("stale.md")


def test_line_ends_stay_as_they_are(place: Office) -> None:
    path = place.project.root / ".memories" / "crlf.md"
    put(place, "crlf.md", "# Crlf\r\n\r\nfirst\r\nsecond\r\n")
    before = path.read_bytes()
    with place.visit() as visit:
        visit.open("/edit/memory/crlf.md")
        retype(visit, "second", "third")
        visit.page.click("#save")
        visit.page.wait_for_url("**/text/memory/crlf.md")
    assert path.read_bytes() == before.replace(b"second", b"third")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_writing_fits_a_narrow_window(place: Office, scheme: str) -> None:
    name = f"narrow-{scheme}.md"
    put(place, name, LEDGER + "word" * 100)
    with place.visit(360, color_scheme=scheme) as visit:
        visit.open("/new")
        assert not visit.is_wider_than_the_window()
        visit.open(f"/edit/memory/{name}")
        retype(visit, "24 November", "2 January")
        visit.page.wait_for_selector("#preview h1")
        assert not visit.is_wider_than_the_window()
        place.ask("edit_memory", filename=name, find="24 November", text="1 December" * 30)
        visit.page.click("#save")
        visit.page.wait_for_selector("#save-merged")
        assert not visit.is_wider_than_the_window()
