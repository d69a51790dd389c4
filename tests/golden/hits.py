"""Searches of all lanes with every signal of every hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.golden.normal import significant
from tests.golden.still import START
from tests.golden.world import World

from ragdocs import config
from ragdocs.types import Filter, Hit, Probe, Query
from ragdocs.workspace import Workspace


@dataclass(frozen=True)
class Ask:
    """One search; `days` is a range of ages, `work` a second text with a weight of its own."""

    lane: str
    text: str
    limit: int = 5
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    prefix: str = ""
    linked_to: tuple[str, ...] = ()
    days: tuple[int, int] | None = None
    archived: bool = False
    importance: float = 0.0
    threshold: float = 0.0
    work: str = ""
    weights: tuple[float, float] | None = None
    floored: bool = False

    def query(self) -> Query:
        since, until = (
            (START - timedelta(days=age) for age in self.days) if self.days else (None, None)
        )
        where = Filter(
            tags=self.tags,
            kinds=self.kinds,
            prefix=self.prefix,
            linked_to=self.linked_to,
            since=since,
            until=until,
            hidden=("",) if self.archived else (),
            min_importance=self.importance,
        )
        probes = [Probe(self.text)] if self.text else []
        probes += [Probe(self.work, "work", 0.5)] if self.work else []
        return Query(
            probes=tuple(probes),
            limit=self.limit,
            where=where,
            min_score=self.threshold,
            weights=self.weights,
            floored=self.floored,
        )

    def label(self) -> str:
        """Return the search as the golden file shows it: what differs from a plain one."""
        plain = Ask(self.lane, self.text)
        more = [
            f"{name}={value}" for name, value in vars(self).items() if value != vars(plain)[name]
        ]
        text = (
            self.text
            if len(self.text) <= 100
            else f"{self.text[:80]}… ({len(self.text)} characters)"
        )
        return " ".join([f"{self.lane}: {text}", *more])


LONG = " ".join(["The session keeps the token because the old way failed under load."] * 12)
DOCS = (
    Ask("docs", "session token refresh"), Ask("docs", "how are invoices refunded"),
    Ask("docs", "retry with jitter and backoff", floored=True),
    Ask("docs", "snapshot compaction checksum"), Ask("docs", "berth booking overlap", limit=10),
    Ask("docs", "ranking passages by vector and keyword"),
    Ask("docs", "rollback after a migration"), Ask("docs", "keyboard focus in a modal form"),
    Ask("docs", "golden fixtures for regression"), Ask("docs", "alert threshold of the pager"),
    Ask("docs", "tokn refrsh", floored=True), Ask("docs", "invioce currancy"),
    Ask("docs", "pipline rolback canry"), Ask("docs", "certifcate handshke"),
    Ask("docs", "索引保存每个段落的向量"), Ask("docs", "令牌过期"), Ask("docs", "潮汐表"), Ask("docs", LONG),
    Ask("docs", " ".join(["token"] * 200)), Ask("docs", "session", tags=("auth",)),
    Ask("docs", "session", tags=("billing", "area0")),
    Ask("docs", "quota", prefix="docs/storage/"), Ask("docs", "quota", prefix="docs/nowhere/"),
    Ask("docs", "token", linked_to=("src/auth/main.py",)),
    Ask("docs", "token", linked_to=("docs/auth/page-010.md",)),
    Ask("docs", "outage", days=(30, 0)), Ask("docs", "outage", days=(90, 60)),
    Ask("docs", "configuration limits"), Ask("docs", "Notes"), Ask("docs", "the"),
    Ask("docs", "zzzz qqqq"), Ask("docs", "zzzz qqqq", floored=True),
    Ask("docs", "SESSION TOKEN"), Ask("docs", "page-042"), Ask("docs", "src/storage/main.py"),
    Ask("docs", "metric", limit=1), Ask("docs", "metric", limit=20),
    Ask("docs", "dashboard histogram", weights=(1.0, 0.0)),
    Ask("docs", "dashboard histogram", weights=(0.0, 1.0)),
    Ask("docs", "what did we write last week about tax"),
)  # fmt: skip
MEMORY = (
    Ask("memory", "session token refresh"),
    Ask("memory", "refund of a deposit", floored=True),
    Ask("memory", "socket timeout behind a proxy"),
    Ask("memory", "replica and shard"),
    Ask("memory", "tide and holiday schedule", limit=10),
    Ask("memory", "synonym stemmer"),
    Ask("memory", "hotfix during a freeze"),
    Ask("memory", "contrast of a button"),
    Ask("memory", "flaky benchmark seed"),
    Ask("memory", "incident sampling"),
    Ask("memory", "what happened last week"),
    Ask("memory", "payments two months ago"),
    Ask("memory", "yesterday"),
    Ask("memory", "in march 2025 the gateway"),
    Ask("memory", "2024-12"),
    Ask("memory", "token", days=(60, 0)),
    Ask("memory", "token", days=(400, 200)),
    Ask("memory", "plan", kinds=("plan",)),
    Ask("memory", "plan", kinds=("plan",), archived=True, limit=10),
    Ask("memory", "fact", kinds=("fact", "insight")),
    Ask("memory", "ledger", tags=("billing",)),
    Ask("memory", "ledger", tags=("team1",)),
    Ask("memory", "ledger", tags=("nobody",)),
    Ask("memory", "load", linked_to=("src/auth/main.py",)),
    Ask("memory", "load", linked_to=("src/none.py",)),
    Ask("memory", "load", linked_to=("note-007",), archived=True),
    Ask("memory", "snapshot", prefix="storage/"),
    Ask("memory", "balance", importance=7),
    Ask("memory", "sesion tokn"),
    Ask("memory", "potry zebra", floored=True),
    Ask("memory", "令牌过期后"),
    Ask("memory", LONG),
    Ask("memory", "note-042"),
    Ask("memory", "follow-up"),
    Ask("memory", "canary release", weights=(0.5, 0.5)),
    Ask("memory", "canary release", weights=(1.0, 0.0)),
)
JOURNAL = (
    Ask("journal", "session token"),
    Ask("journal", "retries after an outage", work="debugging the socket"),
    Ask("journal", "invoice", work="designing the ledger", limit=10),
    Ask("journal", "", work="testing the fixture"),
    Ask("journal", "index ranking", threshold=0.5),
    Ask("journal", "index ranking", threshold=0.1, limit=10),
    Ask("journal", "berth", days=(60, 0)),
    Ask("journal", "berth", days=(200, 100)),
    Ask("journal", "migraton pipline"),
    Ask("journal", "zzzz", threshold=0.3),
    Ask("journal", LONG, threshold=0.3),
    Ask("journal", "quota", prefix="storage/"),
)
COMMITS = (
    Ask("commits", "session token"),
    Ask("commits", "why is the deposit delayed"),
    Ask("commits", "jitter", limit=10),
    Ask("commits", "compaction", tags=("Ada",)),
    Ask("commits", "release", days=(30, 0)),
    Ask("commits", "release", days=(160, 80)),
    Ask("commits", "src/search", linked_to=("src/search",)),
    Ask("commits", "query", linked_to=("src/search/ranking.py",)),
    Ask("commits", "dashbord metrc"),
    Ask("commits", "zzzz"),
    Ask("commits", "frontend: hides the modal"),
    Ask("commits", LONG),
)
QUERIES = (*DOCS, *MEMORY, *JOURNAL, *COMMITS)
MEANING = (*DOCS[:10], *MEMORY[:10])


def record(world: World, model: str, asks: Sequence[Ask], digits: int) -> dict[str, Any]:
    """Run searches with a model and return their hits by what was asked."""
    flags = {"embedding.model": model}
    with world.entered(f"hits {model}"):
        workspace = Workspace(
            config.load(world.project, project=world.project, flags=flags), world.clock
        )
        workspace.sync()
        workspace.embed()
        recorded = {}
        notes: set[str] = set()
        for ask in asks:
            findings = workspace.corpus(ask.lane).search(ask.query(), START)
            recorded[ask.label()] = {
                "hits": [_hit(hit, digits) for hit in findings.hits],
                "omitted": findings.omitted,
            }
            notes.update(findings.notes)
    assert len(recorded) == len(asks), "two searches have the same label"
    return {"notes of any search": sorted(notes), "searches": recorded}


def _hit(hit: Hit, digits: int) -> dict[str, Any]:
    signals = [
        [
            signal.probe,
            signal.source,
            signal.rank,
            significant(signal.raw, digits),
            significant(signal.share, digits),
        ]
        for signal in hit.signals
    ]
    place = f"{hit.document.path}:{hit.chunk.start_line}-{hit.chunk.end_line}"
    shown: dict[str, Any] = {
        "hit": place,
        "score": significant(hit.score, digits),
        "signals": signals,
    }
    return {**shown, "words": list(hit.words)} if hit.words else shown
