"""Prometheus metrics: counts and times by route, recalls by mode, writes by action, the backlog, the store's size."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from recollect.ports import EmbeddingProgress, StoreSize

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.24, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"})


class Metrics:
    """One registry per app, so that several apps can live in one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "recollect_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "recollect_request_seconds", "Time to answer.", ("route",), registry=self._registry, buckets=BUCKETS
        )
        self._recalls = Counter("recollect_recalls", "Recalls by the mode used.", ("mode",), registry=self._registry)
        self._writes = Counter("recollect_writes", "Writes by what they did.", ("action",), registry=self._registry)
        self._busy = Gauge("recollect_busy", "Work running or waiting, by lane.", ("lane",), registry=self._registry)
        self._outbox = Gauge(
            "recollect_outbox", "Memories by the state of their embedding.", ("state",), registry=self._registry
        )
        self._bytes = Gauge("recollect_store_bytes", "Size of the store.", registry=self._registry)
        self._memories = Gauge("recollect_memories", "Memories in the store.", registry=self._registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def recalled(self, mode: str) -> None:
        self._recalls.labels(mode).inc()

    def wrote(self, action: str) -> None:
        self._writes.labels(action).inc()

    def page(self, size: StoreSize, progress: EmbeddingProgress | None, busy: dict[str, int]) -> bytes:
        """The page that Prometheus reads, with the gauges as they are now."""
        self._bytes.set(size.bytes)
        self._memories.set(size.memories)
        for lane, count in busy.items():
            self._busy.labels(lane).set(count)
        if progress is not None:
            for state in ("done", "pending", "failed"):
                self._outbox.labels(state).set(getattr(progress, state))
        return generate_latest(self._registry)
