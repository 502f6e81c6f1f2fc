"""The [confidence] table of a profile: rates, and the calibrations that turn them into floors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from recollect.domain.confidence import Calibration, ConfidenceRecipe, Point
from recollect.domain.profile import Range
from recollect.profiles.checking import Wrong, checked
from recollect.stages.confidence import LANGUAGE_SIGNS, MEANING_SIGNS, WORD_SIGNS

Rate = Annotated[float, Range(0.5, 1)]

MAX_CALIBRATIONS = 20
MAX_POINTS = 200


def rates(
    *, keep: Rate = 1.0, keep_unasked: Rate = 1.0, unasked_from: Annotated[int, Range(0, 1_000_000)] = 0
) -> ConfidenceRecipe:
    """How many of the questions that have an answer must still get one.

    keep: of recalls that somebody asked for; keep_unasked: of what hooks put before a model unasked, from so many
    memories on (unasked_from).
    """
    return ConfidenceRecipe(keep, keep_unasked, unasked_from)


def calibration(
    *,
    name: str,
    intercept: float,
    weights: Mapping[str, float],
    typical: Mapping[str, float] | None = None,
    curve: tuple[tuple[float, float, float], ...] = (),
    model: str = "",
    fitted: str = "",
) -> Calibration:
    """As `recollect eval abstain` prints it: a logistic over signs, and its curve."""
    points = tuple(Point(*one) for one in curve)
    return Calibration(name, intercept, dict(weights), dict(typical or {}), points, model, fitted)


def recipe(table: Mapping[str, Any]) -> ConfidenceRecipe:
    """The table, checked."""
    given = {name: value for name, value in table.items() if name != "calibrations"}
    chosen = rates(**checked(given, rates, "confidence"))
    listed = table.get("calibrations", [])
    if not isinstance(listed, list) or len(cast(list[Any], listed)) > MAX_CALIBRATIONS:
        raise Wrong("confidence.calibrations", f"must be a list of at most {MAX_CALIBRATIONS} tables")
    entries = enumerate(cast(list[Any], listed))
    calibrations = tuple(_calibration(one, f"confidence.calibrations.{place}") for place, one in entries)
    return replace(chosen, calibrations=calibrations)


def _calibration(given: Any, path: str) -> Calibration:
    if not isinstance(given, dict):
        raise Wrong(path, "must be a table")
    entry = cast(dict[str, Any], given)
    for needed in ("name", "intercept", "weights"):
        if needed not in entry:
            raise Wrong(path, f"{needed} is missing")
    found = calibration(**checked(entry, calibration, path))
    known = (*WORD_SIGNS, *MEANING_SIGNS, *LANGUAGE_SIGNS)
    for table, names in (("weights", found.weights), ("typical", found.typical)):
        strange = next((one for one in names if one not in known), None)
        if strange is not None:
            raise Wrong(f"{path}.{table}", f"unknown sign {strange!r}; allowed: {', '.join(known)}")
    if len(found.curve) > MAX_POINTS:
        raise Wrong(f"{path}.curve", f"must hold at most {MAX_POINTS} points")
    steps = zip(found.curve, found.curve[1:], strict=False)
    if any(not (low.kept < high.kept and low.log_odds >= high.log_odds) for low, high in steps):
        raise Wrong(f"{path}.curve", "must rise in the share kept and fall in the log-odds")
    return found
