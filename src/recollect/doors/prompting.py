"""The block for a prompt that a door gives beside the hits: people read the hits, a model reads the block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.domain.recall import Recall
    from recollect.engine import Engine


def with_full_block(engine: Engine, answer: Recall, asked: dict[str, Any]) -> Recall:
    """The answer with a block in which the next best have the places of sensitive hits. `asked` is what gave it."""
    if not any(hit.memory.sensitive for hit in answer):
        return answer
    again: dict[str, Any] = {**asked, "explicit": False, "without_sensitive": True}  # used is used once
    return replace(answer, rendered=engine.recall(answer.query, **again).render())
