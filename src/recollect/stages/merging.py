"""Two memories that say the same: when they may become one, which of them stands, and what it gains."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from recollect.domain.memory import EPISODE, MAX_TAGS, Memory

DEFAULT_IMPORTANCE = 0.5
IMPORTANCE_WORDS = {"high": 0.9, "medium": 0.5, "low": 0.2}


def may_be_one(one: Memory, standing: Memory) -> bool:
    """Whether `one` could be merged into what stands at all: no episodes, the same place, the same secrecy.

    Without a project a session is searched alone, so what was said in another one is not there to be found.
    """
    ours, theirs = one.scope, standing.scope
    return (
        EPISODE not in (one.type, standing.type)
        and (ours.namespace, ours.project) == (theirs.namespace, theirs.project)
        and (ours.project is not None or ours.session == theirs.session)
        and one.sensitive == standing.sensitive
    )


def worth(memory: Memory) -> tuple[bool, float, datetime, str]:
    """The greatest of several that say the same is the one to keep: pinned, then trusted, then new."""
    return memory.pinned, memory.confidence, memory.created_at, memory.id


def strengthened(standing: Memory, other: Memory, now: datetime, tags_limit: int = MAX_TAGS) -> Memory:
    """What stands, confirmed by what was said again: the higher confidence, both sets of tags, pinned if either is.

    An importance that was merely left at its default says nothing and changes nothing. Unchanged it keeps its time.
    """
    louder = other.importance if other.importance > DEFAULT_IMPORTANCE else standing.importance
    confirmed = replace(
        standing,
        confidence=max(standing.confidence, other.confidence),
        importance=max(standing.importance, louder),
        tags=tuple(dict.fromkeys((*standing.tags, *other.tags)))[:tags_limit],
        pinned=standing.pinned or other.pinned,
        sensitive=standing.sensitive or other.sensitive,
    )
    return standing if confirmed == standing else replace(confirmed, updated_at=now)
