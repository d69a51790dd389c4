"""The search page in a real browser: type, filter, open, explain; and texts that mean harm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest
from tests.conftest import Project
from tests.web.visit import Office, Screen, Visit, office

if TYPE_CHECKING:
    from playwright.sync_api import Route

WORDS = (
    ("ledger", "invoice", "refund"),
    ("tenant", "currency", "dispute"),
    ("replica", "partition", "snapshot"),
    ("limiter", "backoff", "signature"),
)
QUERY = "webhook delivered twice"
HARM = '"><img src=x onerror="window.ran = 1"><script>window.ran = 1</script>'
# Titles lose their tags when they are read, so that this one tries to leave its attribute.
HARMFUL_TITLE = 'quokka" onfocus="window.ran = 1" autofocus="'


class Search(Visit):
    """The search page."""

    def search(self, query: str) -> None:
        """Put a query into the box and wait for its results."""
        with self.expect_results(query):
            self.page.fill("#q", query)

    @contextmanager
    def expect_results(self, query: str) -> Iterator[None]:
        """Wait for the results of the whole query: slow keys ask for parts of it before."""
        address = f"**/search-fragment?*q={quote_plus(query)}*"
        with self.page.expect_response(address):
            yield
        self.page.wait_for_selector("#results:not(.waiting)")

    def choose(self, selector: str) -> None:
        """Click on a filter and wait for its results."""
        with self.page.expect_response("**/search-fragment**"):
            self.page.click(selector)
        self.page.wait_for_selector("#results:not(.waiting)")

    def titles(self) -> list[str]:
        return self.page.locator(".hit .open").all_inner_texts()

    def query(self) -> str:
        """Return the query of the address."""
        return str(self.page.evaluate("location.search"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, screen: Screen) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("search"), screen, _fill) as opened:
        yield opened


def _fill(project: Project) -> None:
    """Write enough passages that both lanes have a floor, and a few that matter."""
    for number in range(110):
        first, second, third = WORDS[number % len(WORDS)]
        body = f"The {first} waits for {second} number {number} and then for the {third}.\n"
        project.doc(f"ops/page-{number}.md", f"# Page {number}\n\n{body}")
        project.memory(f"notes/note-{number}.md", f"---\ntype: journal\n---\n{body}")
    project.doc(
        "api/hooks.md",
        "---\ntags: [api]\n---\n# Hooks\n\nGeneral remarks.\n\n## Duplicates\n\n"
        "A `webhook` that was delivered twice is skipped by its receipt.\n",
    )
    project.memory(
        "dedup.md",
        "---\ntitle: Deduplicate by event id\ntype: fact\ntags: [api, billing]\n---\n"
        "A webhook delivered twice has one event id. See [[docs/api/hooks.md]].\n",
    )
    project.memory(
        "plan.md", "---\ntype: plan\ntags: [billing]\n---\nLog a webhook delivered twice.\n"
    )
    for number in range(12):
        project.doc(f"many/deploy-{number}.md", f"# Deploy {number}\n\nThe zebra deploys it.\n")
    project.memory(
        "harm.md",
        f"---\ntitle: '{HARMFUL_TITLE}'\ntype: '{HARM}'\ntags: ['{HARM}']\nauthor: '{HARM}'\n---\n"
        f"# {HARM}\n\nquokka {HARM} `{HARM}`\n",
    )


@pytest.fixture
def visit(place: Office, request: pytest.FixtureRequest) -> Iterator[Search]:
    settings: dict[str, Any] = getattr(request, "param", {})
    with place.visit(kind=Search, **settings) as visit:
        visit.open("/")
        yield visit
        assert not visit.complaints
        if not visit.page.is_closed():
            ran = visit.page.evaluate("[window.ran ?? 0, window.__ran, window.__refused]")
            assert ran == [0, [], []]


def test_results_come_while_one_types_and_the_address_holds_them(visit: Search) -> None:
    page = visit.page
    assert page.locator("h2.latest").inner_text() == "Latest"
    visit.search(QUERY)
    assert set(visit.titles()[:3]) == {"Deduplicate by event id", "Plan", "Hooks"}
    assert page.locator(".hit mark").first.inner_text().casefold() in QUERY
    assert "q=webhook+delivered+twice" in visit.query()
    assert " passages · " in page.inner_text(".found")
    assert page.title().startswith(QUERY)
    titles = visit.titles()
    page.reload()
    assert page.input_value("#q") == QUERY
    assert visit.titles() == titles


def test_filters_change_the_results_and_the_address_and_keep_their_place(visit: Search) -> None:
    page = visit.page
    visit.search(QUERY)
    labels = page.locator(".facets label").all_inner_texts()
    visit.choose(".facets [name=type][value=fact]")
    assert visit.titles() == ["Deduplicate by event id"]
    assert "type=fact" in visit.query()
    names = [label.split("\n")[0] for label in labels]
    again = page.locator(".facets label").all_inner_texts()
    assert [label.split("\n")[0] for label in again] == names
    # Its own counts are those without it; others are for what is left.
    assert page.inner_text("label:has([name=type][value=plan]) b") == "1"
    assert page.inner_text("label:has([name=lane][value=docs]) .n") == "0"
    assert page.evaluate("document.activeElement.value") == "fact"
    page.reload()
    assert page.is_checked(".facets [name=type][value=fact]")
    visit.choose(".facets [name=type][value=fact]")
    visit.choose(".lanes [value=memory]")
    assert visit.titles() == ["Hooks"]
    assert visit.query().endswith("lane=docs")


def test_a_result_is_opened_at_its_line_with_the_keyboard_alone(visit: Search) -> None:
    page = visit.page
    page.click("h1", force=True)
    page.keyboard.press("/")
    with visit.expect_results("webhook receipt skipped"):
        page.keyboard.type("webhook receipt skipped")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".hit.on .open") == "Hooks"
    page.keyboard.press("x")
    assert page.locator(".hit.on .explain").get_attribute("open") is not None
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    target = page.locator(".hit.on .open").get_attribute("href")
    assert target == "/text/docs/docs/api/hooks.md#L4"
    sent: list[str] = []

    def stop(route: Route) -> None:
        sent.append(route.request.url)
        route.abort()

    page.route("**/text/**", stop)
    with page.expect_event("requestfailed", lambda request: "/text/" in request.url):
        page.keyboard.press("Enter")
    assert sent == [f"{visit.address}{target}".partition("#")[0]]
    visit.complaints.clear()
    # It is on its way to another page, which has nothing to tell.
    page.close()


def test_enter_makes_a_step_that_one_can_go_back_from(visit: Search) -> None:
    page = visit.page
    for query in (QUERY, "zebra deploys"):
        visit.search(query)
        with page.expect_response("**/search-fragment**"):
            page.keyboard.press("Enter")
        page.wait_for_selector("#results:not(.waiting)")
    with page.expect_response("**/search-fragment**"):
        page.go_back()
    page.wait_for_selector("#results:not(.waiting)")
    assert page.input_value("#q") == QUERY
    assert "Hooks" in visit.titles()


def test_the_parts_of_a_score_add_up_and_are_drawn(visit: Search) -> None:
    visit.search(QUERY)
    for hit in visit.page.locator(".hit").all():
        score = float(hit.locator(".val").inner_text())
        numbers = hit.locator(".explain .num").all_text_contents()
        *parts, total = map(float, numbers)
        assert sum(parts) == pytest.approx(total, abs=0.01)
        assert total == pytest.approx(score, abs=0.01)
        bars = hit.locator(".bar rect:not(.s-track)").evaluate_all(
            "bars => bars.map((bar) => Number(bar.getAttribute('width')))"
        )
        assert sum(bars) / 176 == pytest.approx(score, abs=0.04)
        assert "floor 0.50" in (hit.locator(".bar").get_attribute("aria-label") or "")


def test_what_is_not_relevant_is_said_so_with_the_best_candidate(visit: Search) -> None:
    visit.search("sumo wrestlers rank their oldest stable partition")
    assert "Nothing relevant" in visit.page.inner_text("#results")
    assert visit.page.inner_text(".found").startswith("nothing relevant · ")
    assert float(visit.page.inner_text(".hit.below .val")) < 0.5
    assert visit.page.inner_text("label:has([name=type][value=fact]) b") == "0"


def test_a_document_that_was_expected_is_explained(visit: Search) -> None:
    page = visit.page
    visit.search(QUERY)
    titles = visit.titles()
    page.fill("[name=why]", "docs/ops/page-1.md")
    with page.expect_response("**/search-fragment**why=**"):
        page.click("#explain")
    page.wait_for_selector(".stages .stop")
    assert page.locator(".stages li").count() == 5
    assert page.locator(".stages .done").all_inner_texts() == ["indexed", "passes the filters"]
    assert "page-1.md" in visit.query()
    assert visit.titles() == titles


def test_more_results_are_on_the_next_page(visit: Search) -> None:
    visit.search("zebra deploys")
    first = visit.titles()
    assert len(first) == 8
    with visit.page.expect_navigation():
        visit.page.click("[rel=next]")
    assert len(visit.titles()) == 4
    assert not set(first) & set(visit.titles())
    with visit.page.expect_navigation():
        visit.page.click("[rel=prev]")
    assert visit.titles() == first


def test_a_memory_that_is_written_meanwhile_is_announced_and_moves_nothing(
    visit: Search, place: Office
) -> None:
    page = visit.page
    visit.search("okapi pasture")
    page.wait_for_selector("body:not(.offline)")
    content = "The okapi leaves its pasture at night."
    saved = place.site.ask(
        "/api/create_memory",
        {"filename": "okapi.md", "content": content, "tags": []},
        token=place.token,
    )
    assert saved.status == 200, saved.text
    page.wait_for_selector("#fresh:not([hidden])")
    assert "saved a memory that matches" in page.inner_text("#fresh")
    assert "Okapi" not in visit.titles()
    page.click("#fresh button")
    assert page.inner_text(".hit.on .open") == "Okapi"


@pytest.mark.parametrize("visit", [{"width": 360}], indirect=True)
def test_a_narrow_window_folds_the_filters_and_does_not_scroll_sideways(visit: Search) -> None:
    assert not visit.is_wider_than_the_window()
    visit.search(f"quokka {'w' * 300}")
    assert not visit.is_wider_than_the_window()
    assert not visit.page.is_visible(".facets label")
    visit.page.click("#facets > summary")
    assert visit.page.is_visible(".facets label")
    assert not visit.is_wider_than_the_window()


def test_dark_looks_different(visit: Search) -> None:
    light = visit.page.screenshot()
    visit.page.emulate_media(color_scheme="dark")
    assert visit.page.screenshot() != light


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_it_is_a_form(visit: Search) -> None:
    page = visit.page
    page.fill("#q", QUERY)
    page.check(".facets [name=type][value=fact]")
    with page.expect_navigation():
        page.click("noscript button, .facets button")
    assert visit.titles() == ["Deduplicate by event id"]
    page.close()


def test_texts_and_queries_that_mean_harm_do_nothing(visit: Search) -> None:
    page = visit.page
    visit.search("quokka")
    assert HARMFUL_TITLE.rstrip() in visit.titles()
    assert HARM in page.inner_text(".hit .meta")
    page.keyboard.press("Escape")
    visit.search(HARM)
    visit.open(f"/?q={QUERY}&lane=%3Cscript%3E&why=%3Cb%3E")
    assert "there is no lane" in page.inner_text("#results")
    # The browser logs the refusal.
    visit.complaints.clear()
    page.goto(
        f"{visit.address}/?q=quokka&tag={HARM}&path={HARM}&since=7d&offset=x".replace('"', "%22")
    )
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
