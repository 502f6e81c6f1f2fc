"""How sure an answer is that it found anything: signs, what each is worth, and the calibration that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the calibration's curve: with this log-odds as floor, these shares still get an answer."""

    kept: float
    """Of the questions that have an answer."""
    log_odds: float
    injected: float
    """Of the questions that have none."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic over signs, fitted by `recollect eval abstain`; data, not code.

    model: the embedder it was fitted with, as the beginning of its id; "" means by words alone.
    """

    name: str
    intercept: float
    weights: Mapping[str, float]
    typical: Mapping[str, float]
    """The values at which the signs say nothing either way: there the log-odds are the intercept."""
    curve: tuple[Point, ...]
    """From the lowest share kept to the highest."""
    model: str = ""
    fitted: str = ""


@dataclass(frozen=True, slots=True)
class ConfidenceRecipe:
    """What a profile says about empty answers: rates, and what they rest on.

    keep: of the recalls that somebody asked for, the share of answerable ones that must get an answer; keep_unasked: of
    the memories that are put before a model without being asked for, as hooks do. 1 never leaves an answer empty.
    unasked_from: with fewer memories to choose from, what is put before a model is never left empty: that the best of a
    handful stands out from the others says little.
    """

    keep: float = 1.0
    keep_unasked: float = 1.0
    unasked_from: int = 0
    calibrations: tuple[Calibration, ...] = ()


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that speaks for or against an answer: its value, and what it adds to the log-odds."""

    name: str
    value: float
    adds: float


@dataclass(frozen=True, slots=True)
class Confidence:
    """The chance that something relevant is among the candidates, were half of all questions answerable.

    keep: the rate that was asked for; floor: the chance below which the answer stays empty, None where it never does.
    """

    chance: float
    calibration: str
    base: float
    """The log-odds before any sign."""
    signs: tuple[Sign, ...] = ()
    keep: float = 1.0
    floor: float | None = None
    injected: float = 1.0
    """The share of unanswerable questions that got past this floor when it was calibrated."""
    doubtful: bool = False
    """Whether nothing would be put before a model that had not asked."""
    is_handful: bool = False
    """Whether there was too little to choose from for the chance to mean anything, and nobody asked for a rate."""

    @property
    def enough(self) -> bool:
        """Whether there is an answer."""
        return self.floor is None or self.chance >= self.floor
