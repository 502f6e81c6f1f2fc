"""Saying nothing when there is nothing: how many unanswerable questions inject something, at what price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.evals.asking import Asked

KEPT = (0.9, 0.95, 0.97, 0.99, 1.0)
POINTS = 101


def curve(answerable: Sequence[Asked], unanswerable: Sequence[Asked]) -> dict[str, Any] | None:
    """None without unanswerable questions.

    `shipped` is what the profile does as it stands. The curve asks what a threshold on the answer's confidence (or on
    the best hit's score, where the profile gives no confidence) could do: at each share of answerable questions that
    still get an answer, the share of unanswerable ones that get one too. auc is the chance that an answerable
    question stands above an unanswerable one.
    """
    if not answerable or not unanswerable:
        return None
    calibrated = all(one.confidence is not None for one in (*answerable, *unanswerable))
    known, unknown = (_signal(group, calibrated) for group in (answerable, unanswerable))
    return {
        "answerable": len(answerable),
        "unanswerable": len(unanswerable),
        "shipped": {"kept": _share(answerable), "injected": _share(unanswerable)},
        "signal": "confidence" if calibrated else "score",
        "injected_at": {f"{kept:g}": injected_at(known, unknown, kept) for kept in KEPT},
        "curve": [
            [round(float(kept), 4), injected_at(known, unknown, float(kept))] for kept in np.linspace(0, 1, POINTS)
        ],
        "auc": auc(known, unknown),
    }


def injected_at(answerable: Sequence[float], unanswerable: Sequence[float], kept: float) -> float:
    """The share of the unanswerable at or above the highest threshold that keeps this share of the answerable."""
    needed = math.ceil(kept * len(answerable) - 1e-9)
    if needed == 0:
        return 0.0
    threshold = sorted(answerable, reverse=True)[needed - 1]
    return sum(one >= threshold for one in unanswerable) / len(unanswerable)


def _signal(answers: Sequence[Asked], calibrated: bool) -> list[float]:
    given = [one.confidence if calibrated else one.best_score for one in answers]
    return [float("-inf") if one is None else one for one in given]


def _share(answers: Sequence[Asked]) -> float:
    return sum(one.injects for one in answers) / len(answers)


def auc(known: Sequence[float], unknown: Sequence[float]) -> float:
    """By rank sums: ties count half."""
    below = np.sort(np.asarray(unknown))
    values = np.asarray(known)
    less = np.searchsorted(below, values, side="left")
    not_more = np.searchsorted(below, values, side="right")
    return float((less + not_more).sum() / 2 / (len(known) * len(unknown)))
