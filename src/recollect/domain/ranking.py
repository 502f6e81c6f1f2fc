"""Lists of found memories and how they add up: Hit, RankedList, Contribution, Fused.

What a recall makes by the hundred is a NamedTuple: as immutable as a frozen dataclass, at a fraction of its price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Passage:
    """The stretch of a long memory that matched best: character offsets into its content."""

    start: int
    end: int


class Hit(NamedTuple):
    """One memory in one list. `score` is the list's own number, higher is better."""

    id: str
    score: float
    passage: Passage | None = None


@dataclass(frozen=True, slots=True)
class RankedList:
    """The answer of one leg or signal, best first, known by its name. Its order is authoritative."""

    name: str
    hits: tuple[Hit, ...]
    weight: float = 1.0
    flattened: bool = False
    """Whether its scores are flat by making, so that they do not tell how clear it is."""
    ceiling: float | None = None
    """The most that any score could be, where that is known of what was looked for."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


class Contribution(NamedTuple):
    """What one list gave to one memory's fused score."""

    list: str
    """Its name: lexical, similarity, …"""
    rank: int
    raw: float
    """The list's own number: BM25, cosine, …"""
    weight: float
    value: float
    """What it added to the score."""


class Fused(NamedTuple):
    """A memory after fusion: the score is the sum of its contributions."""

    id: str
    score: float
    contributions: tuple[Contribution, ...] = ()
