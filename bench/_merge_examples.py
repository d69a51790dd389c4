"""Pairs of statements as agents write them down, with what a person says of each pair."""

from __future__ import annotations

# The second says the same as the first.
SAME = (
    (
        "The refresh endpoint rotates the refresh token and revokes the previous one.",
        "The refresh endpoint revokes the previous refresh token and rotates the new one.",
    ),
    ("Uploads are limited to 10 MB per file.", "Uploads are limited to 10 MB for each file."),
    ("Run the migrations before the deploy.", "Run migrations before each deploy."),
    (
        "We chose Postgres over MySQL because of partial indexes.",
        "Postgres was chosen over MySQL because of its partial indexes.",
    ),
    ("Timestamps are stored in UTC.", "Timestamps are always stored in UTC."),
    ("The worker retries a job 3 times.", "A job is retried 3 times by the worker."),
    ("Logs go to stderr only.", "All logs go to stderr only."),
    (
        "The parser drops comments in the second pass.",
        "In the second pass, the parser drops comments.",
    ),
)
# The second cannot hold together with the first.
OPPOSITE = (
    ("The gateway allows 100 requests per minute.", "The gateway allows 250 requests per minute."),
    ("Retries are enabled for the payment client.", "Retries are disabled for the payment client."),
    ("We deploy on Fridays.", "We do not deploy on Fridays."),
    (
        "Sessions expire after 15 minutes of silence.",
        "Sessions expire after 60 minutes of silence.",
    ),
    ("The cache is shared between workers.", "The cache is not shared between workers."),
    ("Feature flags are read at start-up.", "Feature flags are never read at start-up."),
    ("The queue holds at most 1,000 messages.", "The queue holds at most 5000 messages."),
    (
        "Migrations run before the new version starts.",
        "Migrations run after the new version starts.",
    ),
    ("The API key is required for read requests.", "The API key is optional for read requests."),
    ("Results are sorted in ascending order.", "Results are sorted in descending order."),
    ("The admin page is public inside the VPN.", "The admin page is private inside the VPN."),
    (
        "Backups are kept for 30 days in cold storage.",
        "Backups are kept for 7 days in cold storage.",
    ),
    ("We can't change the schema without a lock.", "We can change the schema without a lock."),
)
# The two are about one matter and hold both.
DIFFERENT = (
    ("The gateway allows 100 requests per minute.", "The search page allows 20 queries a minute."),
    ("Sessions expire after 15 minutes.", "Access keys expire after 90 days."),
    ("On 2026-01-02 we moved billing to the new queue.", "On 2026-02-03 we moved mail to it."),
    ("Released version 1.4 with the new parser.", "Released version 1.5 with the new lexer."),
    ("See src/auth.py:12 for the check of tokens.", "See src/auth.py:80 for the check of tokens."),
    (
        "The cache is not shared between workers.",
        "The cache is shared between threads of a worker.",
    ),
    ("Fixed #412: the parser dropped comments.", "Fixed #413: the parser dropped comments."),
    ("Uploads are limited to 10 MB.", "Downloads are limited to 50 MB per second."),
    ("The worker retries a job 3 times.", "The worker sleeps 5 seconds between two jobs."),
    ("Logs go to stderr only.", "Metrics go to the collector every 10 seconds."),
    ("We use ruff for formatting.", "We do not use black for formatting since we have ruff."),
    ("Migrations are written by hand.", "Fixtures are not written by hand but generated."),
    ("Meeting of 10:30 about the queue with Ada.", "Meeting of 11:30 about the queue with Ada."),
    ("Commit 4f2a9b8c fixes the race in the pool.", "Commit 77aa01bc fixes the race in the pool."),
)
