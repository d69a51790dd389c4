"""The pictures of docs/pictures: real commands on the sample project, drawn as a terminal in SVG,
and the page of the same project in a browser.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Literal

from bench import _sample
from tests.http.site import serving

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "search": ('ragdocs search "how are tokens refreshed" --limit 2',),
    "memory": (
        'ragdocs remember "Sessions live in Redis, so that [[src/auth.py]] can revoke them" --tag auth',
        'ragdocs memory linked src/auth.py --query "why redis" --limit 2',
    ),
}
# In place of the folder of the sample, and of names that differ at every run.
HOME = "/home/ada/harbour"
MOMENT = re.compile(r"\b\d{4}-\d{2}-\d{2}/\d{6}_[0-9a-f]{4}\b")
IDENTITY = re.compile(r"\bmem_[0-9a-f]{12}\b")
VERSION = re.compile(r"\(version [0-9a-f]+\)")
COMMIT = re.compile(r"\bat [0-9a-f]{10}\b")
AGE = re.compile(r"\b\d+ hours ago\b")

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MODEL = "all-MiniLM-L6-v2"
QUESTION = "/?q=how+are+tokens+refreshed&lane=docs&lane=memory"
COLUMNS = 100
LINE = 20
LETTER = 8.4
MARGIN = 24
BAR = 36
COLOURS = {"prompt": "#7ee787", "head": "#ffffff", "quote": "#c9d1d9", "note": "#8b949e"}


def main() -> int:
    """Run the commands and write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = _sample.write(Path(folder) / "harbour")
        # A picture of an index that is still growing would show that first.
        output(root, "ragdocs index")
        for name, commands in PICTURES.items():
            lines = []
            for command in commands:
                lines += [f"$ {command}", *output(root, command), ""]
            path = FOLDER / f"{name}.svg"
            path.write_text(drawing(lines[:-1]), encoding="utf-8")
            print(path.relative_to(ROOT).as_posix())
        photograph(root)
    return 0


def photograph(root: Path) -> None:
    """Take pictures of the page, light and dark; without a browser they stay as they are."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no chromium: the pictures of the page stay as they are", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright

    with (
        serving(root, model=MODEL, variables=own_folders(root)) as site,
        sync_playwright() as player,
    ):
        chromium = player.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(site.invitation)
        # The first search of a server loads the model.
        page.goto(f"http://{site.host}{QUESTION}", wait_until="load")
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.goto(f"http://{site.host}{QUESTION}", wait_until="load")
            page.locator("details summary").filter(has_text="Explain").first.click()
            path = FOLDER / f"page-{scheme}.png"
            page.screenshot(path=path)
            print(path.relative_to(ROOT).as_posix())
        chromium.close()


def own_folders(root: Path) -> dict[str, str]:
    """Return the variables that keep the sample apart from whoever draws it."""
    return {f"XDG_{kind}_HOME": str(root.parent / kind) for kind in ("CACHE", "DATA", "STATE")}


def output(root: Path, command: str) -> list[str]:
    """Return what a command prints, without what differs from run to run."""
    words = [sys.executable, "-P", "-m", "ragdocs", *shlex.split(command)[1:]]
    folders = own_folders(root)
    environ = {**os.environ, **folders, "RAGDOCS_SERVER_SHARED": "false"}
    done = subprocess.run(
        words, cwd=root, env=environ, capture_output=True, text=True, check=True, timeout=120
    )
    text = done.stdout.replace(str(root), HOME)
    text = MOMENT.sub("2026-11-17/093052_a1b2", text)
    text = IDENTITY.sub("mem_3f2a9b8c7d6e", text)
    text = VERSION.sub("(version 3f2a9b8c7d6e5a41)", text)
    text = COMMIT.sub("at 5d2c71e0aa", text)
    return AGE.sub("yesterday", text).rstrip().splitlines()


def drawing(lines: list[str]) -> str:
    """Return the lines as a terminal."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        rows += wrapped(line)
    width = round(COLUMNS * LETTER + 2 * MARGIN)
    height = BAR + len(rows) * LINE + MARGIN
    size = f'width="{width}" height="{height}"'
    label = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(lines[0])}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>',
        f'<rect {size} rx="10" fill="#0d1117"/>',
    ]
    for position, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        parts.append(f'<circle cx="{MARGIN + position * 20}" cy="18" r="6" fill="{colour}"/>')
    parts.append('<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">')
    for number, (style, row) in enumerate(rows):
        bottom = BAR + (number + 1) * LINE - 4
        weight = ' font-weight="bold"' if style == "head" else ""
        parts.append(
            f'<text x="{MARGIN}" y="{bottom}" fill="{COLOURS[style]}"{weight} '
            f'xml:space="preserve">{escape(row)}</text>'
        )
    parts += ["</g>", "</svg>", ""]
    return "\n".join(parts)


def wrapped(line: str) -> Iterator[tuple[str, str]]:
    """Return a line in rows that fit, each with its style."""
    style = "quote"
    if line.startswith("$ "):
        style = "prompt"
    elif re.match(r"\d+\. ", line):
        style = "head"
    elif line and not line.startswith("   |"):
        style = "note"
    indent = "   | " if line.startswith("   | ") else "     "
    while len(line) > COLUMNS:
        cut = line.rfind(" ", 0, COLUMNS)
        yield style, line[:cut]
        line = indent + line[cut + 1 :]
    yield style, line


if __name__ == "__main__":
    sys.exit(main())
