"""A person at a browser: a page of a real server, and all that must not happen on it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import Project
from tests.http.site import Site, serving

from ragdocs.serve.cli import app as cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    # Without these, pages are painted by a process of its own that imitates a graphics card.
    "--disable-software-rasterizer",
    "--in-process-gpu",
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

    def watch(self) -> None:
        """Note errors, and requests to anybody else."""
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note_message)
        self.page.on("request", self._note_request)

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


@dataclass(frozen=True)
class Office:
    """A server with a project, a browser, and a token for others who write."""

    site: Site
    project: Project
    browser: Browser
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
    def visit(self, width: int = 1440, kind: Any = Visit, **options: Any) -> Iterator[Any]:
        """Open a window of the signed-in person; fail if it reached out or met an error."""
        context = self.browser.new_context(viewport={"width": width, "height": 900}, **options)
        name, _, value = self.cookie.partition("=")
        origin = f"http://{self.site.host}"
        context.add_cookies([{"name": name, "value": value, "url": origin}])
        context.add_init_script(WATCH)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        visit = kind(page, self.site)
        visit.watch()
        try:
            yield visit
            assert visit.outside == []
            assert visit.errors == []
        finally:
            context.close()


def write_nothing(project: Project) -> None:
    """Leave a project as it is."""


@dataclass(frozen=True)
class Served:
    """A server with a project, the cookie of its owner and a token for others who write."""

    site: Site
    project: Project
    cookie: str
    token: str


@contextlib.contextmanager
def served(folder: Path, write: Callable[[Project], None] = write_nothing) -> Iterator[Served]:
    """Serve a project."""
    before = dict(os.environ)
    for variable in ("CACHE", "STATE", "DATA", "CONFIG"):
        os.environ[f"XDG_{variable}_HOME"] = str(folder / variable.casefold())
    project = Project(folder / "project")
    project.root.mkdir()
    project.write("config.toml", "[memory]\nenabled = true\n")
    write(project)
    token = writers_token(project.root)
    with serving(project.root) as site:
        os.environ.clear()
        os.environ.update(before)
        yield Served(site, project, site.sign_in(), token)


def writers_token(root: Path) -> str:
    """Make a token in this process: a command of its own takes as long as to start a server."""
    printed = io.StringIO()
    words = ["token", "create", "test", "--json", "--role", "writer", "--project", str(root)]
    with contextlib.redirect_stdout(printed):
        assert cli.main(words) == 0
    return str(json.loads(printed.getvalue())["token"])


@contextlib.contextmanager
def looking(at: Served) -> Iterator[Office]:
    """Look with a browser at a project that is served."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield Office(at.site, at.project, browser, at.cookie, at.token)
        browser.close()


def need_browser() -> None:
    """Skip a test where there is no browser."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    pytest.importorskip("playwright.sync_api")


@contextlib.contextmanager
def office(folder: Path, write: Callable[[Project], None] = write_nothing) -> Iterator[Office]:
    """Serve a project that a person looks at."""
    need_browser()
    with served(folder, write) as at, looking(at) as opened:
        yield opened
