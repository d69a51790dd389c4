"""Hostile memories and documents: nothing runs, nothing is loaded, nothing leads away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.web.payloads import payloads
from tests.web.visit import Office, Screen, Visit, office

if TYPE_CHECKING:
    from tests.tally import Tally

PARTS = 6
FEWEST = 200
# Names that a file may have on disk although no verb would write them.
NAMES = (
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'-alert(1)-'",
    "javascript:alert(1)",
    "{{7*7}}${7*7}",
    "a&lt;script&gt;b",
)
# What the rendered text is made of that could run or load, and attributes that could.
HARMFUL = """() => {
  const found = [];
  const bad = "script, iframe, object, embed, img, svg, video, audio, link, style, meta, base, form, input, template";
  for (const prose of document.querySelectorAll(".prose, .raw, .diff, .quoted, .front, .side-rows, h1")) {
    for (const element of prose.querySelectorAll(bad)) found.push(element.outerHTML);
    for (const element of prose.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on") || name === "style" || name === "srcdoc") found.push(element.outerHTML);
        if (name === "href" && !/^(https?:|mailto:|#|\\/text\\/|\\/\\?tag=)/.test(value)) found.push(value);
        if (name === "id" && !/^(h-|L\\d)/.test(value)) found.push(value);
      }
    }
  }
  return found;
}"""


# Resolves when the policy has refused something; the policy forbids Playwright's own waiting.
REFUSED = """() => new Promise((done) => {
  const look = () => (window.__refused.length ? done() : setTimeout(look, 20));
  look();
})"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, screen: Screen) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("hostile"), screen) as opened:
        yield opened


def check(visit: Visit, tally: Tally, payload_count: int = 1) -> None:
    """Fail if anything ran, was tried, or could be led to."""
    ran = visit.page.evaluate("window.__ran")
    refused = visit.page.evaluate("window.__refused")
    tally(
        "W1 hostile texts in a browser",
        payloads_shown=payload_count,
        pages=1,
        ran=len(ran),
        refused_by_the_policy=len(refused),
        requests_to_others=len(visit.outside),
    )
    assert ran == []
    assert refused == []
    assert visit.page.evaluate(HARMFUL) == []
    assert visit.outside == []


def test_the_watch_sees_what_runs_what_is_refused_and_what_is_harmful(
    place: Office, tally: Tally
) -> None:
    place.ask("create_memory", filename="calm.md", content="words", tags=[])
    with place.visit() as visit:
        visit.open("/text/memory/calm.md")
        check(visit, tally, 0)
        visit.page.evaluate("alert(1)")
        visit.page.evaluate(
            """document.querySelector(".prose").innerHTML = '<img src=x onerror="alert(2)">'"""
        )
        visit.page.evaluate(REFUSED)
        assert visit.page.evaluate("window.__ran") == ["alert"]
        assert visit.page.evaluate(HARMFUL)


def test_payloads_in_a_text_do_nothing(place: Office, tally: Tally) -> None:
    every = payloads()
    assert len(every) >= FEWEST
    with place.visit() as visit:
        for part in range(PARTS):
            some = every[part::PARTS]
            tally("W1 hostile texts in a browser", payloads=len(some))
            body = "\n\n".join(some)
            name = f"hostile-{part}.md"
            content = f"Words first.\n\n{body}\n"
            place.ask("create_memory", filename=name, content=content, tags=[])
            place.ask("append_memory", filename=name, content=body)
            for path in (f"/text/memory/{name}", f"/text/memory/{name}?raw"):
                visit.open(path)
                check(visit, tally, len(some))
            visit.open(f"/edit/memory/{name}")
            visit.page.wait_for_selector("#preview p")
            check(visit, tally, len(some))


def test_payloads_in_titles_tags_fields_and_links_do_nothing(place: Office, tally: Tally) -> None:
    every = payloads()
    for number in range(0, len(every), 12):
        words = " ".join(every[number].split())
        fields = {"title": words, "aliases": [words], "author": words, words[:90]: words}
        place.ask("create_memory", filename=f"t{number}.md", content="x [[t0]]", tags=[])
        place.ask("edit_memory", filename=f"t{number}.md", fields=fields)
        tags = [words[:90].replace(",", " ")]
        answer = place.site.ask(
            "/api/edit_memory",
            {"filename": f"t{number}.md", "fields": {"tags": tags}},
            token=place.token,
        )
        assert answer.status in (200, 400)
    place.ask("create_memory", filename="listed.md", content="x", tags=[])
    place.ask("edit_memory", filename="listed.md", fields={"aliases": every, "author": every})
    with place.visit() as visit:
        for name in ("listed", *(f"t{number}" for number in range(0, len(every), 12))):
            visit.open(f"/text/memory/{name}.md")
            assert visit.page.inner_text("h1") != "Not there"
            check(visit, tally)


def test_payloads_in_file_names_do_nothing(place: Office, tally: Tally) -> None:
    for name in NAMES:
        place.project.doc(f"{name}.md", f"# {name}\n\n[[{name}]] and words\n")
        place.project.memory(f"{name}.md", f"# {name}\n\n[[{name}]] and words\n")
    with place.visit() as visit:
        for name in map(quote, NAMES):
            for path in (f"docs/docs/{name}.md", f"memory/{name}.md"):
                for before in ("/text", "/edit"):
                    visit.open(f"{before}/{path}")
                    check(visit, tally)
            visit.open(f"/new?filename={name}")
            check(visit, tally)


def test_payloads_as_search_terms_and_on_every_other_page_do_nothing(
    place: Office, tally: Tally
) -> None:
    with place.visit() as visit:
        for number, payload in enumerate(payloads()[:: len(NAMES)]):
            words = quote(" ".join(payload.split())[:200])
            visit.open(
                (f"/?q={words}", f"/?tag={words}&path={words}", f"/?q=x&why={words}")[number % 3]
            )
            check(visit, tally)
        for path in (
            "/graph?limit=300",
            "/graph?limit=300&as=table",
            "/tidy",
            "/timeline",
            "/status",
        ):
            visit.open(path)
            check(visit, tally)
        visit.complaints.clear()


def test_no_other_page_can_frame_ours(place: Office, tally: Tally) -> None:
    with place.visit() as visit:
        for path in ("/", "/tidy", "/new", "/status", "/api/index_status"):
            visit.page.goto("about:blank")
            visit.page.set_content(f'<iframe src="{visit.address}{path}"></iframe>')
            (frame,) = visit.page.frames[1:]
            frame.wait_for_load_state()
            tally("W6 framed by another page", tried=1, framed=frame.url.startswith(visit.address))
            assert frame.url.startswith("chrome-error:")
