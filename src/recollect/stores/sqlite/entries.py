"""What new memories become in each table: rows, index text and token streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.domain.changes import Change, Put
from recollect.domain.errors import RecollectError
from recollect.domain.gist import gist
from recollect.stores.rows import encode
from recollect.stores.scope_terms import scope_text
from recollect.stores.sqlite.derived import tags_text
from recollect.stores.sqlite.lexicon import Lexicon, Reading
from recollect.stores.tokens import plain


class Entry(NamedTuple):
    """One insertion: the values of the memory's row, and its text as it is indexed."""

    put: Put
    values: tuple[Any, ...]
    number: int
    content: str
    tags: str
    scope: str


@dataclass(frozen=True, slots=True)
class Entries:
    """The insertions of one caller, and their texts read."""

    each: Sequence[Entry]
    reading: Reading


def entries_of(changes: Sequence[Change]) -> list[Entry] | None:
    """The entries of a caller's changes; None where they are not all insertions, or one of them cannot be written.

    The writer then makes them one by one and finds out what is wrong.
    """
    each: list[Entry] = []
    try:
        for change in changes:
            if not isinstance(change, Put) or change.expected_version is not None:
                return None
            each.append(_entry(change))
    except (RecollectError, UnicodeEncodeError, OverflowError):
        return None
    return each


def read(each: Sequence[Entry], lexicon: Lexicon) -> Entries:
    """The entries with their texts read; many at once cost less than each by itself."""
    return Entries(each, lexicon.read([(entry.content, entry.tags) for entry in each]))


def _entry(put: Put) -> Entry:
    memory = put.memory
    return Entry(
        put,
        encode(memory, memory.version, None, memory.access_count),
        gist(memory.content),
        plain(memory.content),
        tags_text(memory),
        scope_text(memory),
    )
