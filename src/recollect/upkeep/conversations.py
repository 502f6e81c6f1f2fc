"""A turn of a conversation as it was heard: its date, the two turns before it, and itself, each with its speaker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.domain.errors import RecollectError
from recollect.domain.memory import EPISODE, TURNS_BEFORE, Memory
from recollect.ports import Pending, Store

MAX_TURN_CHARACTERS = 400
MAX_LEANING_CHARACTERS = 1_000
"""A longer turn speaks for itself: its view would be little else than the turn once more."""


USERS = frozenset({"user", "human"})


class View(NamedTuple):
    """A turn in its place, and whether a user said it to an assistant: one turn of theirs is often several thoughts."""

    text: str
    by_user: bool


def conversation_views(store: Store, waiting: Sequence[Pending]) -> dict[str, View]:
    """For every waiting turn of a conversation, how it is seen in its place; a first turn has only its date."""
    if store.links is None:
        return {}
    try:
        found = store.records.fetch([one.id for one in waiting if len(one.content) <= MAX_LEANING_CHARACTERS])
        turns = {one.id: one for one in found if one.type == EPISODE and one.scope.session is not None}
        around = store.links.neighbours(list(turns), TURNS_BEFORE, 0) if turns else {}
        needed = {id for earlier in around.values() for _, id in earlier} - set(turns)
        known = turns | {one.id: one for one in store.records.fetch(sorted(needed))}
    except RecollectError:
        return {}
    return {
        id: View(view(turn, [known[other] for _, other in around.get(id, ()) if other in known]), _who(turn) in USERS)
        for id, turn in turns.items()
    }


def view(memory: Memory, before: Sequence[Memory]) -> str:
    """The turn with its date and the turns before it; sensitive ones are left out."""
    earlier = [_spoken(one)[:MAX_TURN_CHARACTERS] for one in before if not one.sensitive]
    return "\n".join([f"[{memory.created_at:%d %B %Y}]".replace("[0", "["), *earlier, _spoken(memory)])


def _spoken(memory: Memory) -> str:
    speaker = _who(memory)
    return (
        f"{speaker}: {memory.content}" if speaker and not memory.content.startswith(f"{speaker}:") else memory.content
    )


def _who(memory: Memory) -> str:
    speaker = memory.metadata.get("speaker") or memory.metadata.get("role")
    return speaker if isinstance(speaker, str) else ""
