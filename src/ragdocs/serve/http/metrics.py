"""What a monitoring system reads: requests, calls by verb, and how each index stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from ragdocs.serve.live import Live

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# From a search that is warm to a call that is given up.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Projects = Callable[[], Mapping[str, Live]]


class Metrics:
    """The figures of one server."""

    def __init__(self, projects: Projects) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "ragdocs_http_requests",
            "Requests by method and status.",
            ("method", "status"),
            registry=self.registry,
        )
        self._calls = Histogram(
            "ragdocs_call_seconds",
            "Time of a call by verb and outcome, whichever way it came.",
            ("verb", "outcome"),
            registry=self.registry,
            buckets=SECONDS,
        )
        self._open_requests = Gauge(
            "ragdocs_http_open_requests", "Requests being answered.", registry=self.registry
        )
        self._open = 0
        self.registry.register(_Indexes(projects))

    @property
    def is_busy(self) -> bool:
        """Whether any request is being answered; an open page always has one."""
        return self._open > 0

    def begin_request(self) -> None:
        """Count a request that is being answered."""
        self._open += 1
        self._open_requests.set(self._open)

    def count_request(self, method: str, status: int) -> None:
        """Count one request that was answered."""
        self._open -= 1
        self._open_requests.set(self._open)
        self._requests.labels(method, str(status)).inc()

    def observe(self, verb: str, seconds: float, failed: bool) -> None:
        """Note how long a call took."""
        outcome = "failed" if failed else "done"
        self._calls.labels(verb, outcome).observe(seconds)

    def text(self) -> bytes:
        """Return all figures as a monitoring system reads them."""
        return generate_latest(self.registry)


class _Indexes:
    """The figures of the indexes, read when somebody asks for them."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects

    def collect(self) -> Iterable[Any]:
        labels = ("project", "lane")
        documents = GaugeMetricFamily("ragdocs_documents", "Documents indexed.", labels=labels)
        passages = GaugeMetricFamily("ragdocs_passages", "Passages indexed.", labels=labels)
        queue = GaugeMetricFamily(
            "ragdocs_passages_to_embed", "Passages without a vector.", labels=labels
        )
        unread = GaugeMetricFamily(
            "ragdocs_files_to_read", "Files changed and not indexed yet.", labels=labels
        )
        skipped = GaugeMetricFamily(
            "ragdocs_files_skipped", "Files that cannot be indexed.", labels=labels
        )
        fresh = GaugeMetricFamily(
            "ragdocs_seconds_since_compared",
            "Time since the index was last compared with its files.",
            labels=("project",),
        )
        for name, live in self._projects().items():
            age = live.seconds_since_compared
            if age is not None:
                fresh.add_metric((name,), age)
            for lane, corpus in live.corpora().items():
                info = corpus.info()
                key = (name, lane)
                documents.add_metric(key, info.documents)
                passages.add_metric(key, info.passages)
                missing = 0 if corpus.embedding_unavailable else info.passages - info.vectors
                queue.add_metric(key, missing)
                unread.add_metric(key, corpus.unread)
                skipped.add_metric(key, len(corpus.skipped))
        return [documents, passages, queue, unread, skipped, fresh]
