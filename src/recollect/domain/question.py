"""What is asked: the Filter every leg obeys, and the Question that travels down the pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from recollect.domain.memory import DEFAULT_NAMESPACE
from recollect.domain.query import Node

Mode = Literal["auto", "bm25", "semantic", "hybrid", "hybrid-rerank"]
MODES: tuple[Mode, ...] = ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank")

SortBy = Literal["relevance", "importance", "recency"]
SORTS: tuple[SortBy, ...] = ("relevance", "importance", "recency")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories may be seen at all. Checked inside every leg, before any limit is applied.

    Empty tuples and None do not restrict. `tags` must all be present; `types` and `sessions` are alternatives.
    `after` is inclusive and `before` exclusive, on created_at.
    """

    namespace: str = DEFAULT_NAMESPACE
    project: str | None = None
    sessions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    without_types: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    exclude: frozenset[str] = frozenset()
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time that the words of a question point at ("last week"): start inclusive, end exclusive."""

    start: datetime
    end: datetime
    words: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One recall, parsed: everything the pure stages may know. There is no clock but `now`."""

    text: str
    now: datetime
    filter: Filter = field(default_factory=Filter)
    query: Node | None = None
    plain: bool = True
    """No quotes, operators or fields were used: the words may be freely rewritten."""
    words: tuple[str, ...] = ()
    """The words of the query in order, lower-cased, stop words included."""
    limit: int = 5
    mode: Mode = "auto"
    sort_by: SortBy = "relevance"
    budget_tokens: int | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    window: TimeWindow | None = None
    intents: tuple[str, ...] = ()
