"""A short way to parse in tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from recollect.domain.question import Filter, Question
from recollect.stages.parse import parse

NOW = datetime(2024, 5, 15, 12, 30, tzinfo=UTC)  # a Wednesday


def ask(text: str, **options: Any) -> Question:
    given: dict[str, Any] = {"now": NOW, "filter": Filter(), "limit": 5, "mode": "auto", "sort_by": "relevance"}
    return parse(text, **(given | options))
