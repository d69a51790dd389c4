"""A small project with documents, memories and commits, for pictures and for the commands of docs/."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

FILES = {
    "config.toml": """\
[memory]
enabled = true

[journal]
enabled = true

[docs]
commits = true
""",
    ".gitignore": "journal-data/\n.memories/indices/\n",
    "README.md": "# Harbour\n\nA small service that signs people in and keeps their orders.\n",
    "docs/auth.md": """\
# Authentication

People sign in with OAuth. The server keeps a session for each device.

## Tokens

An access token lives for 15 minutes; a client refreshes it before it expires. Every refresh
rotates the refresh token. A second use of an old one ends all sessions of the user.

## Sessions

Sessions are rows in Redis. Logging out deletes the row, so a session can be revoked at once.
""",
    "docs/deploy.md": """\
# Deploying

## Rolling out

Push a tag. The pipeline builds the image, runs the migrations and replaces one machine at a time.

## Rolling back

Run `make rollback`: the last image is started again. Migrations are written so that it still works.
""",
    "docs/errors.md": """\
# Errors of the API

| code | meaning | what to do |
|---|---|---|
| 401 | the access token has expired | refresh it |
| 409 | the order has changed | read it again |
| 429 | too many requests | wait as long as `Retry-After` says |
""",
    "docs/guide.md": """\
# Guide for new colleagues

Start with [authentication](auth.md), then read how we [deploy](deploy.md).
""",
    "plan.txt": "Move sign-in to OAuth, see [[docs/auth.md]].\n",
    "src/auth/login.py": "def log_in(name: str) -> bool:\n    return bool(name)\n",
    "labels/qrels.tsv": "q1\tdocs/auth.md\t1\n",
    "labels/queries.jsonl": '{"_id": "q1", "text": "how are tokens refreshed"}\n',
    ".memories/redis.md": """\
---
type: fact
tags: [redis]
created_at: '{yesterday}T08:10:00Z'
---

Redis must be 7 or newer: older versions lose the stream when they restart.
""",
    ".memories/repo/feature-oauth-379a9d/notes/retry.md": """\
---
type: note
branch: feature/oauth
id: retry
---

The provider answers 503 on Sundays; retry once.
""",
}
PLANS = {
    "plan.md": """\
---
type: plan
tags: [auth]
created_at: '{yesterday}T09:00:00Z'
---

# Sign-in

Move [[src/auth.py]] to OAuth in May, because sessions must be revocable.

## Done

- the callback
""",
    "auth-plan.md": """\
---
type: plan
tags: [auth]
created_at: '{yesterday}T09:00:00Z'
---

# Auth plan

Access tokens live for 15 minutes; [[src/auth.py]] refreshes them.

plans:: [[docs/auth.md]]
""",
}


def write(root: Path) -> Path:
    """Write the project, commit its files, and return its folder."""
    yesterday = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
    plans = {f".memories/{name}": text for name, text in PLANS.items()}
    for name, text in (FILES | plans).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{yesterday}", yesterday), encoding="utf-8")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "auth: rotate the refresh token on every use")
    return root


def git(root: Path, *words: str) -> None:
    """Run git as somebody who has configured nothing."""
    person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *person, *words], cwd=root, check=True, capture_output=True)
