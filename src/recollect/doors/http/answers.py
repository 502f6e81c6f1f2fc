"""The shapes of answers, for the OpenAPI description. Documents are made by `doors.wire`, for all doors alike."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class ProblemAnswer(BaseModel):
    """RFC 9457. `field` names what is wrong in the request, `existing_id` what it collided with."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    hint: str


class ScopeAnswer(BaseModel):
    namespace: str = "default"
    project: str | None
    session: str | None


class MemoryAnswer(BaseModel):
    id: str
    content: str
    type: str
    tags: list[str]
    confidence: float
    importance: float
    created_at: str
    updated_at: str
    accessed_at: str
    access_count: int
    scope: ScopeAnswer
    source: str
    key: str | None
    pinned: bool
    sensitive: bool
    metadata: dict[str, Any]
    version: int


class LinkAnswer(BaseModel):
    source: str
    type: str
    target: str
    created_at: str


class ExpandedAnswer(MemoryAnswer):
    """Links and neighbours are there with expand=true."""

    links: list[LinkAnswer] = []
    neighbours: list[MemoryAnswer] = []


class MemoriesAnswer(BaseModel):
    memories: list[MemoryAnswer]
    next_cursor: str | None


class ReceiptAnswer(BaseModel):
    id: str
    action: Literal["added", "merged", "skipped", "redacted"]
    duplicate_of: str | None
    reason: str


class ReceiptsAnswer(BaseModel):
    receipts: list[ReceiptAnswer]


class HitAnswer(BaseModel):
    rank: int
    id: str
    score: float
    content: str
    type: str
    tags: list[str]
    confidence: float
    importance: float
    created_at: str
    scope: ScopeAnswer
    source: str
    metadata: dict[str, Any]
    contributions: list[dict[str, Any]]
    adjustments: list[dict[str, Any]]
    pinned: bool
    sensitive: bool
    passage: dict[str, Any] | None
    excerpt: str | None
    redirected_from: str | None
    resolved_by: list[str]
    rerank_score: float | None


class RecallAnswer(BaseModel):
    query: str
    profile: str
    mode: str
    abstained: bool
    hits: list[HitAnswer]
    dropped: list[dict[str, Any]]
    trace: dict[str, Any]
    rendered: str = ""


class RecollectionAnswer(BaseModel):
    """text is the block for the prompt, fenced as data; fresh tells whether it was made for this prompt."""

    session_id: str
    ids: list[str]
    text: str
    written_at: str
    fresh: bool


class ConsolidationAnswer(BaseModel):
    merges: list[dict[str, Any]]
    examined: int
    dry_run: bool
    cursor: str | None
    lost_races: int


class EmbeddingAnswer(BaseModel):
    model: str | None
    done: int
    pending: int
    failed: int


class StatsAnswer(BaseModel):
    kind: str
    location: str
    memories: int
    tombstones: int
    links: int
    vectors: int
    bytes: int
    schema_version: int
    engine_version: str
    types: dict[str, int]
    projects: dict[str, int]
    namespaces: dict[str, int]
    embedding: EmbeddingAnswer


class StatusAnswer(BaseModel):
    status: str


class SettingsAnswer(BaseModel):
    model_config = ConfigDict(extra="allow")

    semanticWeight: float  # noqa: N815
    keywordWeight: float  # noqa: N815
