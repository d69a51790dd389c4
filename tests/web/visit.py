"""A person at a browser: a page of a real server, and all that must not happen on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import Project
from tests.http.site import Site, make_token, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    # Without these, pages are painted by a process of its own that imitates a graphics card.
    "--disable-software-rasterizer",
    "--in-process-gpu",
    # A process for the next site is started with every window, and seldom used.
    "--disable-features=SpareRendererForSitePerProcess,HttpsUpgrades,MediaRouter,PaintHolding,Translate",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# A search that the machine has no time for is slow, not broken.
PATIENCE_MS = 60_000
# Reports what runs although nothing may.
WATCH = """
window.__ran = [];
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => window.__ran.push(name);
window.__refused = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__refused.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@dataclass
class Visit:
    """A page, and what it did that a page must not do."""

    page: Page
    site: Site
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    # What the browser logs as an error, such as an answer that is a refusal.
    complaints: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://{self.site.host}"

    def open(self, path: str) -> None:
        """Open an address of the server."""
        self.page.goto(f"{self.address}{path}")

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note errors, and requests to anybody else."""
        watched: list[tuple[Any, Any]] = [
            ("pageerror", lambda error: self.errors.append(str(error))),
            ("console", self._note_message),
            ("request", self._note_request),
        ]
        for event, note in watched:
            self.page.on(event, note)
        yield
        for event, note in watched:
            self.page.remove_listener(event, note)

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "about:")):
            self.outside.append(request.url)

    def text(self, selector: str = "main") -> str:
        """Return the words of a part of the page."""
        return self.page.inner_text(selector)

    def is_wider_than_the_window(self) -> bool:
        """Tell whether the page scrolls sideways."""
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


class Screen:
    """A browser for all tests of a worker.

    Its windows take turns with one page, emptied in between: a new one has a process of its own.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._spare: Page | None = None
        self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)

    @contextlib.contextmanager
    def driven(self) -> Iterator[None]:
        """Drive the browser in a block; other tests run loops of their own."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    @contextlib.contextmanager
    def window(self, origin: str, *, java_script_enabled: bool) -> Iterator[Page]:
        """Open a window on what a server shows."""
        page = self._spare if java_script_enabled else None
        if page is None:
            page = self._new_page(java_script_enabled=java_script_enabled)
        self._spare = None
        try:
            yield page
            if java_script_enabled and not page.is_closed():
                self._empty(page, origin)
                self._spare = page
        finally:
            if self._spare is None:
                page.context.close()

    def _new_page(self, *, java_script_enabled: bool) -> Page:
        context = self.browser.new_context(java_script_enabled=java_script_enabled)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        return page

    def _empty(self, page: Page, origin: str) -> None:
        """Forget all that a page has loaded, stored and set."""
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.unroute_all()
        if page.url.startswith(origin):
            page.evaluate("sessionStorage.clear()")
        page.goto("about:blank")
        page.mouse.move(0, 0)
        session = page.context.new_cdp_session(page)
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        session.send("Page.resetNavigationHistory")
        session.detach()


@dataclass(frozen=True)
class Office:
    """A server with a project, a browser, and a token for others who write."""

    site: Site
    project: Project
    screen: Screen
    cookie: str
    token: str

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Call a verb as an agent does."""
        answer = self.site.ask(f"/api/{verb}", arguments, token=self.token)
        assert answer.status == 200, answer.text
        return answer.json

    def wait_for_vectors(self) -> None:
        """Wait until texts can be compared by meaning."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while True:
            lanes = self.ask("index_status")["lanes"]
            if all(lane["chunks"] == lane["vectors"] > 0 for lane in lanes):
                return
            assert time.monotonic() < deadline, "the vectors never came"
            time.sleep(0.05)

    @contextlib.contextmanager
    def window(self, width: int = 1440, **options: Any) -> Iterator[Visit]:
        """Open a window in which the browser has nothing to complain about either."""
        with self.visit(width, **options) as visit:
            yield visit
            assert visit.complaints == []

    def read(self, name: str) -> str:
        """Return a memory as it stands in its file."""
        return (self.project.root / ".memories" / name).read_text(encoding="utf-8")

    @contextlib.contextmanager
    def visit(
        self,
        width: int = 1440,
        kind: Any = Visit,
        *,
        java_script_enabled: bool = True,
        **media: Any,
    ) -> Iterator[Any]:
        """Open a window of the signed-in person; fail if it reached out or met an error."""
        name, _, value = self.cookie.partition("=")
        origin = f"http://{self.site.host}"
        looks = {"color_scheme": "light", "reduced_motion": "no-preference", **media}
        opening = self.screen.window(origin, java_script_enabled=java_script_enabled)
        with self.screen.driven(), opening as page:
            page.context.add_cookies([{"name": name, "value": value, "url": origin}])
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(**looks)
            visit = kind(page, self.site)
            with visit.watching():
                yield visit
            assert visit.outside == []
            assert visit.errors == []


def write_nothing(project: Project) -> None:
    """Leave a project as it is."""


@contextlib.contextmanager
def opened_browser() -> Iterator[Screen]:
    """Start a browser, or skip where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    player = sync_api.sync_playwright().start()
    browser = player.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
    screen = Screen(browser)
    yield screen
    with screen.driven():
        browser.close()
        player.stop()


@contextlib.contextmanager
def office(
    folder: Path, screen: Screen, write: Callable[[Project], None] = write_nothing
) -> Iterator[Office]:
    """Serve a project that a person looks at."""
    before = dict(os.environ)
    for variable in ("CACHE", "STATE", "DATA", "CONFIG"):
        os.environ[f"XDG_{variable}_HOME"] = str(folder / variable.casefold())
    project = Project(folder / "project")
    project.root.mkdir()
    project.write("config.toml", "[memory]\nenabled = true\n")
    write(project)
    token = make_token(project.root, "--role", "writer")
    with serving(project.root) as site:
        os.environ.clear()
        os.environ.update(before)
        yield Office(site, project, screen, site.sign_in(), token)
