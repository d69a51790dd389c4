"""The files of the fixture project, as people and agents leave them."""

from __future__ import annotations

from pathlib import Path

FIXTURE = Path(__file__).parent / "fixture"
# A made-up password, joined here so that nobody's scanner finds a secret in these files.
SECRET = "db_password" + ' = "' + "Tr0ub4dor" + '-harbour-91x"'
CONFIG = "[docs]\ncommits = true\n\n[memory]\nenabled = true\n\n[journal]\nenabled = true\n"


def _texts(folder: Path) -> dict[str, str]:
    """Read every file below a folder."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("{SECRET}", SECRET)
            texts[path.relative_to(folder).as_posix()] = text
    return texts


DOCS = _texts(FIXTURE / "project")
MEMORIES = _texts(FIXTURE / "memories")
SOURCES = {
    "src/auth.py": '''\
"""Sessions and tokens."""


class Sessions:
    """Keeps sessions in Redis."""

    def revoke(self, key: str) -> None:
        """End a session at once."""


def refresh(token: str) -> str:
    """Return a new access token."""
    return token
''',
    "src/net/retry.py": '''\
"""Retries with jitter."""

ATTEMPTS = 3


def retry(call, attempts=ATTEMPTS):
    """Call until it works."""
    return call()
''',
    "web/app.ts": """\
export class Berth {
  constructor(readonly length: number) {}
}

export function book(berth: Berth): string {
  return `booked ${berth.length}`;
}
""",
    ".gitignore": "journal-data/\n.memories/indices/\n",
}

ADA, BEN, CHEN = (f"{name} <{name.lower()}@example.org>" for name in ("Ada", "Ben", "Chen"))
AUTH = ("src/auth.py", "docs/auth.md")
RETRIES = """\
net: limit retries to three

More retries hid an outage of the payment provider for an hour."""
SESSIONS = """\
auth: keep sessions in Redis

A session can be revoked at once; a JWT cannot.

Refs: auth-plan"""
# Days before the start, author, message, and files that are changed.
COMMITS = (
    (60, ADA, "docs: describe how berths are booked", ("README.md", "docs/guide.txt")),
    (45, BEN, "auth: issue access and refresh tokens", AUTH),
    (30, ADA, RETRIES, ("src/net/retry.py", "docs/api/retries.rst")),
    (12, CHEN, "web: book a berth from the browser", ("web/app.ts",)),
    (3, ADA, SESSIONS, AUTH),
)
