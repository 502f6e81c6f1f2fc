"""What is said of a hit in two lines, without a library for drawing: all that a pipe is given."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.doors.cli.session import one_line

if TYPE_CHECKING:
    from recollect.domain.recall import Recall, RecallHit

INDENT = 4


def plain_lines(answer: Recall, now: datetime | None = None) -> Iterator[str]:
    """Each hit with its text, and below it what it is; one line each, however long."""
    for hit in answer.hits:
        yield from plain_head(hit, now)


def plain_head(hit: RecallHit, now: datetime | None) -> Iterator[str]:
    """The two lines of one hit."""
    yield f"{hit.rank:>2}  {one_line(text_of(hit))}"
    yield " " * INDENT + described(hit, now)


def text_of(hit: RecallHit) -> str:
    """The memory's text, or the passage that it was cut to."""
    return hit.memory.content if hit.excerpt is None else hit.excerpt


def described(hit: RecallHit, now: datetime | None) -> str:
    """What the memory is, beside its text."""
    memory = hit.memory
    about = [hit.id, f"{hit.score:.4f}", memory.type, memory.scope.project or "", *(f"#{tag}" for tag in memory.tags)]
    about += [age(memory.created_at, now), f"confidence {memory.confidence:g}", f"importance {memory.importance:g}"]
    about += ["pinned"] if memory.pinned else []
    return one_line(" · ".join(one for one in about if one))


def age(created_at: datetime, now: datetime | None = None) -> str:
    """How old, in the largest unit that says something."""
    seconds = ((now or datetime.now(UTC)) - created_at).total_seconds()
    for size, unit in ((365 * 86400, "y"), (30 * 86400, "mo"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= (2 * size if unit in ("y", "mo") else size):
            return f"{int(seconds // size)}{unit}"
    return "now"
