"""The files of the fixture project.

Documentation, source, and memories as people and agents leave them.
"""

from __future__ import annotations

# A made-up password, joined here so that nobody's scanner finds a secret in this file.
SECRET = "db_password" + ' = "' + "Tr0ub4dor" + '-harbour-91x"'

CONFIG = """\
[docs]
commits = true

[memory]
enabled = true

[journal]
enabled = true
"""

DOCS = {
    "README.md": """\
# Harbour

Harbour books berths for ships. Start with [the guide](docs/guide.txt) and [authentication](docs/auth.md).

## Development

Run `make test` before you push. The tests need Redis 7.
""",
    "docs/auth.md": """\
---
title: Authentication
tags: [auth, security]
aliases: [login]
---

# Authentication

Clients log in once and get an access token and a refresh token.

## Tokens

An access token lives for 15 minutes. The server refreshes it silently while the refresh token is valid.
See [errors](api/errors.md#expired-tokens) for what clients get afterwards.

### Notes

Clocks may differ by one minute.

## Sessions

Sessions are kept in Redis and can be revoked at once, see [[src/auth.py]].

### Notes

Revoking a session does not end requests that are under way.

```python
def revoke(session):
    # Not a heading
    store.delete(session.key)
```
""",
    "docs/api/errors.md": """\
# Errors

Every error has a code, a message and a hint.

## Expired tokens

Code 401 with `token_expired`. Refresh the token and try again, see [tokens](../auth.md#tokens).

## Rate limits

Code 429. Wait for the number of seconds in `Retry-After`, see [retries](retries.rst).

| Code | Meaning |
|------|---------|
| 401  | log in again |
| 429  | slow down |
""",
    "docs/api/retries.rst": """\
Retries
=======

The client retries three times with exponential backoff and jitter.

Limits
------

More retries would hide outages. See ``src/net/retry.py``.
""",
    "docs/guide.txt": """\
Getting started

Book a berth: choose a harbour, a date and the length of the ship.
A booking is confirmed when the deposit has been paid.
""",
    "docs/deploy.md": """\
---
title: Deployment
tags: [ops]
---

# Deployment

Deploy on weekdays before noon. The pipeline builds an image, migrates the database and switches traffic.

## Rollback

Switch traffic back first, then look at the database. Migrations can be undone for one release.

## Configuration

All settings come from environment variables; see [[docs/auth.md]] for the keys.
""",
    "docs/broken.md": """\
---
title: [unclosed
tags: ops
---

# A page with broken front matter

Its text can be found all the same: lighthouse maintenance.
""",
    "docs/notes/港.md": """\
# 港の予約

船の長さを選んで、予約を確認します。料金は前払いです。
""",
    "docs/empty.md": "",
}

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

MEMORIES = {
    "auth-plan.md": """\
---
type: plan
status: active
tags: [auth, security]
created_at: 2025-05-02T09:00:00+00:00
---

# Auth plan

Move [[src/auth.py]] from JWT to sessions, because tokens cannot be revoked.

## Progress

- Sessions are stored in Redis
- The login page is next, see [docs](../docs/auth.md#sessions)

## Open questions

How long may a session live?
""",
    "session-2025-05-10.md": """\
---
type: journal
tags: [auth, bugfix]
created_at: 2025-05-10T16:30:00+00:00
---

# Session of 10 May

Fixed the refresh of expired tokens in [[src/auth.py]]. It follows [[auth-plan]].
The cause was a clock that was a minute late.
""",
    "facts/rate-limits.md": """\
---
type: fact
tags: [api, limits]
created_at: 2025-03-01T08:00:00+00:00
importance: 8
---

Free accounts may send 100 requests a minute, paid accounts 1000. The code is [[src/net/limits.py]], which is gone.
""",
    "retries.md": """\
---
type: observation
tags: [net]
created_at: 2025-05-13T10:00:00+00:00
---

Three retries are enough: [[src/net/retry.py#retry]] waits with jitter. Compare [[docs/api/retries.rst]].
""",
    "old-deploy-plan.md": """\
---
type: plan
status: archived
tags: [ops]
created_at: 2024-11-20T08:00:00+00:00
---

Deploy with scripts from a laptop. Replaced by the pipeline in [[docs/deploy.md]].
""",
    "expired.md": """\
---
type: fact
tags: [ops]
created_at: 2025-04-01T08:00:00+00:00
expires_at: 2025-05-01T00:00:00+00:00
---

The staging server is frozen until the first of May.
""",
    "broken.md": """\
---
type: [plan
tags: auth
---

A plan whose front matter cannot be read, about the lighthouse.
""",
    "odd-type.md": """\
---
type: poem
tags: not a list
created_at: yesterday
---

Ships in the night. See [[]] and [[  ]].
""",
    "plain.md": "Nobody wrote front matter here. The mooring fees are paid in advance.\n",
    "standup/monday.md": """\
---
type: journal
tags: [standup]
created_at: 2025-05-12T08:00:00+00:00
---

Stand-up: the berth calendar shows wrong weeks in January; Ada looks into the week numbers.
""",
    "standup/tuesday.md": """\
---
type: journal
tags: [standup]
created_at: 2025-05-13T08:00:00+00:00
---

Stand-up: the berth calendar shows wrong weeks in January; Ada looks into the week numbers. Cause found.
""",
    "standup/wednesday.md": """\
---
type: journal
tags: [standup, calendar]
created_at: 2025-05-14T08:00:00+00:00
---

Stand-up: the berth calendar shows wrong weeks in January; Ada looks into the week numbers. Fixed today.
""",
    "leaked.md": f"""\
---
type: fact
tags: [ops]
created_at: 2025-05-05T08:00:00+00:00
---

Somebody wrote this down by hand: {SECRET}
""",
}

# (days before the start, author, message, files to change)
COMMITS = (
    (
        60,
        "Ada <ada@example.org>",
        "docs: describe how berths are booked",
        ("README.md", "docs/guide.txt"),
    ),
    (
        45,
        "Ben <ben@example.org>",
        "auth: issue access and refresh tokens",
        ("src/auth.py", "docs/auth.md"),
    ),
    (
        30,
        "Ada <ada@example.org>",
        "net: limit retries to three\n\nMore retries hid an outage of the payment provider for an hour.",
        ("src/net/retry.py", "docs/api/retries.rst"),
    ),
    (12, "Chen <chen@example.org>", "web: book a berth from the browser", ("web/app.ts",)),
    (
        3,
        "Ada <ada@example.org>",
        "auth: keep sessions in Redis\n\nA session can be revoked at once; a JWT cannot.\n\nRefs: auth-plan",
        ("src/auth.py", "docs/auth.md"),
    ),
)
