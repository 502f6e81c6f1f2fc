"""The shapes of structured results: the documents of `doors.wire`, told to clients as output schemas."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

# A field that a later version adds is passed on, not dropped.
open_shape = with_config(ConfigDict(extra="allow"))

Truncated = Annotated[bool, Field(description="The text goes on: memory_expand shows all of it.")]


@open_shape
class ScopeShape(TypedDict):
    project: str | None
    session: str | None
    namespace: NotRequired[str]


@open_shape
class MemoryShape(TypedDict):
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
    scope: ScopeShape
    source: str
    key: str | None
    pinned: bool
    sensitive: bool
    metadata: dict[str, Any]
    version: int
    truncated: NotRequired[Truncated]


@open_shape
class HitShape(TypedDict):
    rank: int
    id: str
    score: float
    content: str
    type: str
    tags: list[str]
    confidence: float
    importance: float
    created_at: str
    scope: ScopeShape
    source: str
    metadata: dict[str, Any]
    pinned: bool
    sensitive: bool
    redirected_from: Annotated[str | None, Field(description="The superseded memory in whose place this one stands.")]
    resolved_by: list[str]
    truncated: NotRequired[Truncated]
    contributions: NotRequired[list[dict[str, Any]]]
    adjustments: NotRequired[list[dict[str, Any]]]
    passage: NotRequired[dict[str, Any] | None]
    excerpt: NotRequired[str | None]
    rerank_score: NotRequired[float | None]


Sureness = Annotated[
    float | None, Field(description="The chance that something relevant is here; none where it is unknown.")
]


@open_shape
class SearchResult(TypedDict):
    query: str
    profile: str
    mode: str
    abstained: Annotated[bool, Field(description="Nothing was relevant enough.")]
    hits: list[HitShape]
    notes: Annotated[list[str], Field(description="What worked less well than usual, in words.")]
    confidence: Sureness
    dropped: NotRequired[list[dict[str, Any]]]
    trace: NotRequired[dict[str, Any]]


@open_shape
class RecallResult(TypedDict):
    query: str
    profile: str
    mode: str
    abstained: bool
    rendered: Annotated[str, Field(description="The block for a prompt; empty when nothing is relevant.")]
    ids: Annotated[list[str], Field(description="The memories in the block, best first.")]
    notes: list[str]
    confidence: Sureness


@open_shape
class CitationShape(TypedDict):
    number: Annotated[int, Field(description="The [number] in the text that this memory carries.")]
    id: str
    quote: str
    type: str
    created_at: str
    source: str


@open_shape
class AskResult(TypedDict):
    question: str
    text: Annotated[str, Field(description="The answer, with [numbers] that point at citations.")]
    found: Annotated[bool, Field(description="False: the memory does not hold the answer.")]
    method: Literal["model", "extractive"]
    citations: list[CitationShape]
    notes: list[str]


@open_shape
class LinkResult(TypedDict):
    source: str
    type: str
    target: str
    created_at: str


@open_shape
class ExpandResult(MemoryShape):
    next_offset: NotRequired[Annotated[int, Field(description="Give it as `offset` for what follows in the text.")]]
    links: list[LinkResult]
    neighbours: Annotated[list[MemoryShape], Field(description="The memories at the other ends of the links.")]


@open_shape
class ListResult(TypedDict):
    memories: list[MemoryShape]
    next_cursor: Annotated[str | None, Field(description="Give it as `cursor` for the next page; null at the end.")]


@open_shape
class RememberResult(TypedDict):
    id: Annotated[str, Field(description="The memory that now holds the text.")]
    action: Annotated[
        Literal["added", "merged", "skipped", "redacted"],
        Field(description="merged: an existing memory says the same; redacted: stored with secrets hidden."),
    ]
    duplicate_of: str | None
    reason: str


@open_shape
class ForgetResult(TypedDict):
    forgotten: int
    ids: list[str]


@open_shape
class MergeShape(TypedDict):
    kept: str
    merged: str
    reason: str
    overlap: float
    cosine: float | None


@open_shape
class ConsolidateResult(TypedDict):
    merges: list[MergeShape]
    examined: int
    dry_run: bool
    cursor: Annotated[str | None, Field(description="Not null: there is more, and the next call goes on behind it.")]
    lost_races: int


@open_shape
class EmbeddingShape(TypedDict):
    model: Annotated[str | None, Field(description="null: recall works by words alone.")]
    done: int
    pending: int
    failed: int


@open_shape
class StatusResult(TypedDict):
    version: str
    profile: str
    memories: int
    types: dict[str, int]
    projects: dict[str, int]
    links: int
    vectors: int
    embedding: EmbeddingShape
