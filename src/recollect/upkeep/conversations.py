"""A turn of a conversation as it was heard: its date, the two turns before it, and itself, each with its speaker."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain.errors import RecollectError
from recollect.domain.memory import Memory
from recollect.ports import Pending, Store

TURNS_BEFORE = 2
MAX_TURN_CHARACTERS = 400
MAX_LEANING_CHARACTERS = 1_000
"""A longer turn speaks for itself: its view would be little else than the turn once more."""


def conversation_views(store: Store, waiting: Sequence[Pending]) -> dict[str, str]:
    """For every waiting memory that follows another in a conversation, the text that shows it in its place."""
    if store.links is None:
        return {}
    try:
        short = [one.id for one in waiting if len(one.content) <= MAX_LEANING_CHARACTERS]
        around = store.links.neighbours(short, TURNS_BEFORE, 0) if short else {}
        needed = {id for turns in around.values() for _, id in turns} | set(around)
        known = {one.id: one for one in store.records.fetch(sorted(needed))} if needed else {}
    except RecollectError:
        return {}
    return {
        id: view(known[id], [known[other] for _, other in turns if other in known])
        for id, turns in around.items()
        if id in known
    }


def view(memory: Memory, before: Sequence[Memory]) -> str:
    """The turn with its date and the turns before it; sensitive ones are left out."""
    earlier = [_spoken(one)[:MAX_TURN_CHARACTERS] for one in before if not one.sensitive]
    return "\n".join([f"[{memory.created_at:%d %B %Y}]".replace("[0", "["), *earlier, _spoken(memory)])


def _spoken(memory: Memory) -> str:
    speaker = memory.metadata.get("speaker") or memory.metadata.get("role")
    if not isinstance(speaker, str) or not speaker or memory.content.startswith(f"{speaker}:"):
        return memory.content
    return f"{speaker}: {memory.content}"
