"""Two memories that say the same: what the one that stands keeps and gains."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.domain.memory import Memory
from recollect.stages.merging import strengthened

NOW = datetime(2026, 6, 1, tzinfo=UTC)
STANDING = Memory("m1", "the code is 1234", tags=("door",), created_at=NOW, updated_at=NOW)
LATER = NOW + timedelta(days=1)


@pytest.mark.parametrize("flag", ["pinned", "sensitive"])
def test_what_is_pinned_or_sensitive_stays_so_whichever_of_the_two_it_was(flag: str) -> None:
    marked = replace(STANDING, **{flag: True})
    assert getattr(strengthened(marked, STANDING, LATER), flag)
    assert getattr(strengthened(STANDING, marked, LATER), flag)


def test_tags_come_together_up_to_the_limit_those_that_stand_first() -> None:
    other = replace(STANDING, tags=("home", "door", "lock"))
    assert strengthened(STANDING, other, LATER).tags == ("door", "home", "lock")
    assert strengthened(STANDING, other, LATER, tags_limit=2).tags == ("door", "home")


def test_only_what_changed_has_a_new_time() -> None:
    assert strengthened(STANDING, replace(STANDING, confidence=0.1, importance=0.5), LATER) is STANDING
    assert strengthened(STANDING, replace(STANDING, importance=0.9), LATER).updated_at == LATER
