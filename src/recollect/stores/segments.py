"""Rows of a vector index in columns: segments that only grow at their end, and the parts of them a search may see."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sketches import Projection, Sketch

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = dict[str, NDArray[Any]]  # by name, all of one length: a row is one place in each

STEP_ROWS = 4_096  # what is gathered or encoded at once stays in the caches


@dataclass(slots=True)
class Segment:
    """Rows with full vectors or codes; grows at its end and changes only `live`, so who noted `count` needs no lock."""

    columns: Columns
    live: Flags
    count: int
    rising: bool  # owners never fall: usual, as they are row numbers of memories, and then found by bisection
    dead: int = 0
    sketch: Sketch | None = None

    @property
    def coded(self) -> bool:
        return "codes" in self.columns

    @classmethod
    def full(cls, columns: Columns) -> "Segment":
        owners = columns["owners"]
        rising = bool((owners[1:] >= owners[:-1]).all())
        return cls(columns, np.ones(len(owners), np.bool_), len(owners), rising)

    @classmethod
    def room(cls, size: int, like: Columns) -> "Segment":
        """Room in bytearrays: for arrays of its own numpy asks for large pages, which a system may search for long."""
        columns = {
            name: np.frombuffer(bytearray(size * column[:1].nbytes), column.dtype).reshape(size, *column.shape[1:])
            for name, column in like.items()
        }
        return cls(columns, np.ones(size, np.bool_), 0, True)

    def append(self, batch: Columns, first: int) -> int:
        """Copy what fits of the batch from `first` on; say how many rows that was."""
        count = min(len(batch["rows"]) - first, len(self.live) - self.count)
        for name, column in batch.items():
            self.columns[name][self.count : self.count + count] = column[first : first + count]
        edge = self.columns["owners"][max(0, self.count - 1) : self.count + count]
        self.rising = self.rising and bool((edge[1:] >= edge[:-1]).all())
        self.count += count
        return count

    def owned(self, keys: Ints, count: int) -> Ints:
        """Positions under `count` whose owner is one of the sorted, distinct `keys`, in rising order."""
        owners: Ints = self.columns["owners"][:count]
        low, high = (owners[0], owners[-1]) if self.rising else (owners.min(), owners.max())
        keys = keys[np.searchsorted(keys, low) : np.searchsorted(keys, high, "right")]
        if not self.rising or len(keys) > count // 8:
            return np.flatnonzero(np.isin(owners, keys))
        left = np.searchsorted(owners, keys)
        runs = np.searchsorted(owners, keys, "right") - left
        return np.repeat(left - np.cumsum(runs) + runs, runs) + np.arange(int(runs.sum()))

    def units(self, places: slice | Ints) -> Floats:
        """Rows as unit vectors, from their codes."""
        return self.columns["codes"][places] * self.columns["factors"][places, None]

    def sketched(self, projection: Projection, count: int) -> Sketch:
        """The first `count` rows."""
        steps = (slice(first, min(first + STEP_ROWS, count)) for first in range(0, count, STEP_ROWS))
        return projection.sketch((self.units(step) for step in steps), self.columns["owners"][:count])

    def lacks_sketch(self, projection: Projection, count: int) -> bool:
        """Whether a part worth sketching is not, or in another way."""
        sketch = self.sketch
        known = len(sketch) if sketch is not None and sketch.projection is projection else 0
        return count - known >= max(STEP_ROWS, count // 8)

    def compacted(self) -> "Segment":
        """The living rows in a segment of just their size."""
        kept = np.flatnonzero(self.live[: self.count])
        return Segment.full({name: column[kept] for name, column in self.columns.items()})


@dataclass(frozen=True, slots=True)
class Part:
    """What one search may return of one segment: the rows at `kept`, None meaning the first `count`."""

    segment: Segment
    count: int
    kept: Ints | None

    def __len__(self) -> int:
        return self.count if self.kept is None else len(self.kept)

    def column(self, name: str) -> NDArray[Any]:
        return self.segment.columns[name][slice(self.count) if self.kept is None else self.kept]
