"""How to rank: a Profile is data, read from TOML. Stages look their functions up by the kinds named here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from recollect.domain.confidence import ConfidenceRecipe

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Range:
    """The values a numeric option may take, ends included: `alpha: Annotated[float, Range(0, 1)]`."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Part:
    """One step of the pipeline: which function of its table, with which options."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class ListSpec:
    """A leg or a signal: the name of the list it makes, the function that makes it, and its say in fusion.

    weight 0 means it is not run; votes = false means it only widens the pool.
    """

    name: str
    kind: str
    weight: float = 1.0
    votes: bool = True
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class LiveSetting:
    """A knob that users turn while the system runs: its public name, what it sets, and its range."""

    name: str
    sets: str
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole ranking recipe. `source` is the file it came from, for error messages."""

    name: str
    description: str = ""
    limit: int = 5
    scope: str = "exact"
    """"exact": filter on what is given · "project": a session widens to all sessions of its project."""
    without_dense: str | None = None
    """The profile to use instead while the store holds no vectors."""
    query: Part = Part("query")
    spelling: Part | None = None
    legs: tuple[ListSpec, ...] = ()
    signals: tuple[ListSpec, ...] = ()
    ladder: tuple[str, ...] = ("initial",)
    fusion: Part = Part("rrf")
    priors: tuple[Part, ...] = ()
    rerank: Part | None = None
    confidence: ConfidenceRecipe | None = None
    select: tuple[Part, ...] = ()
    render: Part = Part("section")
    settings: tuple[LiveSetting, ...] = ()
    source: str = ""
