"""Pages of a listing: where the next one starts, whatever became of the memory that was the last of the one before."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from recollect.domain.memory import Memory
from recollect.domain.question import name_of
from recollect.domain.times import from_ms, to_ms

_CURSOR = re.compile(r"behind:(-?[0-9]{1,15}):(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Behind:
    """A place in an order by time: behind the memory of this id, even if it has been forgotten since."""

    at: datetime
    id: str


def next_page(last: Memory) -> str:
    """The cursor that doors hand out for the page behind this memory."""
    return f"behind:{to_ms(last.created_at)}:{last.id}"


def page_start(cursor: str | Memory | None) -> str | Behind | None:
    """Where the page starts that is asked for by the last memory, by its cursor, or by its mere id."""
    if isinstance(cursor, Memory):
        return Behind(cursor.created_at, cursor.id)
    found = _CURSOR.fullmatch(name_of(cursor, "cursor")) if cursor is not None else None
    try:
        return Behind(from_ms(int(found[1])), found[2]) if found else cursor
    except OverflowError:  # a moment that no memory can have: then it is no cursor of ours
        return cursor
