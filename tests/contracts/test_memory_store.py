"""What only the memory store has to prove: its one lock."""

from __future__ import annotations

import threading

from contract_cases import ALL, ids, note

from recollect.domain.changes import Put
from recollect.stores.memory.contents import Shelf
from recollect.stores.memory.records import MemoryRecords


def test_a_write_keeps_other_writes_waiting() -> None:
    """A second write that starts in the middle of a first one is neither lost nor mixed into it."""
    shelf = Shelf()
    records = MemoryRecords(shelf)
    usual = shelf.tokens.terms
    second = threading.Thread(target=lambda: records.write([Put(note("b"))]))

    def interrupted(text: str) -> list[str]:
        if not second.ident:
            second.start()
            second.join(0.2)
        return usual(text)

    shelf.tokens.terms = interrupted
    records.write([Put(note("a"))])
    second.join()
    assert ids(records.scan(ALL, order="id")) == ["a", "b"]
