"""The store that lives in memory: plain dictionaries and brute force. It defines what the ports mean."""

from __future__ import annotations

from recollect.ports import Store
from recollect.stores.memory.care import MemoryCare
from recollect.stores.memory.contents import Shelf
from recollect.stores.memory.links import MemoryLinks
from recollect.stores.memory.records import MemoryRecords
from recollect.stores.memory.text import MemoryText
from recollect.stores.memory.vectors import MemoryVectors


def open_memory() -> Store:
    """A new, empty store with all ports; it is gone when the last reference to it is."""
    shelf = Shelf()
    return Store(
        records=MemoryRecords(shelf),
        care=MemoryCare(shelf),
        text=MemoryText(shelf),
        vectors=MemoryVectors(shelf),
        links=MemoryLinks(shelf),
    )
