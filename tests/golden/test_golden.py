"""Every profile ranks as it was written down, on the memory store, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect import profiles
from tests.golden.rankings import EXPECTED, rankings


def close(found: Any, expected: Any, where: str) -> None:
    """Equal, numbers to 1e-9."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            close(found[key], expected[key], f"{where} / {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            close(one, other, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-9, rel=1e-9), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("kind", ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
@pytest.mark.parametrize("profile", profiles.builtin_names())
def test_the_ranking_is_the_golden_one(profile: str, kind: str) -> None:
    expected = json.loads((EXPECTED / f"{profile}.json").read_text(encoding="utf-8"))
    close(json.loads(json.dumps(rankings(profile, kind))), expected, profile)
