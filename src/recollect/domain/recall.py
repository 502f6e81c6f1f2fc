"""The answer to a question: hits with their reasons, near misses with theirs, and the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from recollect.domain.confidence import Confidence
from recollect.domain.memory import Link, Memory
from recollect.domain.ranking import Contribution, Hit, Passage


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What one prior did to a score."""

    prior: str
    before: float
    after: float


class Candidate(NamedTuple):
    """A memory on its way through priors, rerank and selection."""

    memory: Memory
    score: float
    contributions: tuple[Contribution, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
    passage: Passage | None = None
    redirected_from: str | None = None
    resolved_by: tuple[str, ...] = ()
    rerank_score: float | None = None
    excerpt: str | None = None
    """The part of a long memory that fits the budget; None means all of it."""

    @property
    def id(self) -> str:
        return self.memory.id


@dataclass(frozen=True, slots=True)
class RecallHit:
    """One memory that is returned, with the reason for its rank."""

    rank: int
    memory: Memory
    score: float
    """Higher is better; comparable within one answer only."""
    contributions: tuple[Contribution, ...] = ()
    """What each list gave: together the fused score, which priors and a reranker may change."""
    adjustments: tuple[Adjustment, ...] = ()
    """What each prior did, in order."""
    passage: Passage | None = None
    """The stretch of a long memory that matched best."""
    redirected_from: str | None = None
    """The superseded memory that was found, whose place this one has."""
    resolved_by: tuple[str, ...] = ()
    """Ids of the memories that resolve it."""
    rerank_score: float | None = None
    excerpt: str | None = None
    """The part of a long memory that fits the budget; None means all of it."""

    @property
    def id(self) -> str:
        """That of the memory."""
        return self.memory.id

    @property
    def content(self) -> str:
        """That of the memory."""
        return self.memory.content


class Dropped(NamedTuple):
    """A candidate that was not returned: at which stage it fell out, and why."""

    id: str
    stage: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rung of the retry ladder: the query it tried and how many it found (0 where it issues no search)."""

    rung: str
    query: str
    hits: int


@dataclass(frozen=True, slots=True)
class LegStep:
    """What one leg or signal did: how many hits, how long, and why it did not run if it did not."""

    hits: int = 0
    ms: float = 0.0
    skipped: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RerankStep:
    """Whether a reranker changed the order, and if not, why not."""

    used: bool = False
    skipped: str | None = None
    ms: float = 0.0
    considered: int = 0

    @property
    def is_lacking(self) -> bool:
        """Whether one was wanted, and is not here, failed or was late."""
        return self.skipped not in (None, "off", "unanimity", "nothing to reorder")


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything needed to retell a recall."""

    mode_asked: str = "auto"
    mode_used: str = "bm25"
    fell_back_to_bm25: bool = False
    """Whether meaning was asked for by name and could not be had."""
    query: str = ""
    """The compiled full-text query of the attempt that won."""
    attempts: tuple[Attempt, ...] = ()
    legs: Mapping[str, LegStep] = field(default_factory=dict[str, LegStep])
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The fusion inputs: for each list the ids in order."""
    unanimity: bool | None = None
    """Whether the lists agreed on the best, so that a reranker need not be asked; None where nobody looked."""
    rerank: RerankStep = RerankStep()
    pool: int = 0
    """How many candidates there were."""
    notes: tuple[str, ...] = ()
    """Degradations and fallbacks, in words."""
    stages: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds by stage."""
    confidence: float | None = None
    """The calibrated chance that something relevant is here, were half of all questions answerable; None: unknown."""
    evidence: Confidence | None = None
    """What that chance rests on, and the floor it was held against."""
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: iterate over it for the hits, or take `len(answer)` and `answer[0]`."""

    query: str
    profile: str
    mode: str
    """How it was found: bm25, semantic, hybrid or hybrid-rerank."""
    hits: tuple[RecallHit, ...]
    dropped: tuple[Dropped, ...] = ()
    """Candidates that were not returned, with the reason."""
    trace: Trace = Trace()
    abstained: bool = False
    """Whether it is empty because nothing was sure enough."""
    rendered: str = ""

    def __iter__(self) -> Iterator[RecallHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.hits[index]

    def render(self) -> str:
        """The block for a prompt, in the profile's form, within the budget, without what is sensitive."""
        return self.rendered


@dataclass(frozen=True, slots=True)
class Pool:
    """All candidates of one recall, fetched once: what the pure stages may look at."""

    memories: Mapping[str, Memory]
    similarities: Mapping[str, Hit] = field(default_factory=dict[str, Hit])
    """The cosine with the question, once per candidate that has a vector."""
    links: tuple[Link, ...] = ()
    """Links that start or end at a candidate."""
    found: Mapping[str, Sequence[Hit]] = field(default_factory=dict[str, Sequence[Hit]])
    """What each leg found, by its name."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """One memory with what surrounds it."""

    memory: Memory
    links: tuple[Link, ...]
    neighbours: tuple[Memory, ...]
