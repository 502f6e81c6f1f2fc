"""The derived vector index: 8-bit codes scanned exactly, for a head that the store scores with the full vectors.

Up to `exact_rows` rows the full vectors stay in memory and nothing is missed. Beyond, a row costs its dimension in
bytes and twenty more (four in a file): the vector in steps of 1/127 of its largest coordinate, and the factor that
turns the whole product with a query, in steps of its own, into a cosine. That is off by about a thousandth, so that
half as many rows again as are wanted hold all that are wanted. One pass over memory, no training, nothing to tune.

Derived data: a lost, stale or torn file is ignored and the index built again from the store.
"""

import json
import math
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeAlias

import numkong
import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.int8]
Flags: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = dict[str, NDArray[Any]]  # by name, all of one length: a row is one place in each
Allowed: TypeAlias = Ints | Callable[[Ints], Flags]

EXACT_ROWS = 8_192  # 12 MB of float32 and a scan of a millisecond
HEAD_ROWS = 20  # and half as many again as are wanted: recall@100 is over 0.999 on real embeddings
SEGMENT_ROWS = 65_536  # appends fill a segment and never move one
SHARED_ROWS = 150_000  # from so many on, a scan takes longer than what else can be done meanwhile
PIECE_ROWS = 32_768  # of such a scan: a millisecond
STEP_ROWS = 4_096  # what is gathered or encoded at once stays in the caches
SAMPLED = 32  # of so many scores one is looked at, to guess where the best begin
FLOAT_SLACK = 1e-4  # a float32 dot product of unit vectors is nearer than this to the float64 one
SHUT_SHARE = 16  # up to this part of a segment's rows is scored in vain: to pick out the others takes far longer
NOBODY: Ints = np.empty(0, np.int64)
STEPS = 127  # of a coordinate on either side of zero
MAGIC = b"RCLCODE3"
NUMBERS = ("rows", "owners")  # mostly rise by one step: in a file they are deflated steps, a sixteenth of a byte a row
TRAILER = struct.Struct("<II8s")  # length of the description, checksum of all before, magic


@dataclass(slots=True)
class Segment:
    """Rows with full vectors or codes; grows at its end and changes only `live`, so who noted `count` needs no lock."""

    columns: Columns
    live: Flags
    count: int
    rising: bool  # owners never fall: usual, as they are row numbers of memories, and then found by bisection
    dead: int = 0

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

    def compacted(self) -> "Segment":
        """The living rows in a segment of just their size."""
        kept = np.flatnonzero(self.live[: self.count])
        return Segment.full({name: column[kept] for name, column in self.columns.items()})


@dataclass(frozen=True, slots=True)
class Part:
    """What one search may return of one segment: the rows at `kept`, None for the first `count`, but none `shut`."""

    segment: Segment
    count: int
    kept: Ints | None
    shut: Ints

    def __len__(self) -> int:
        return self.count if self.kept is None else len(self.kept)

    def column(self, name: str) -> NDArray[Any]:
        return self.segment.columns[name][slice(self.count) if self.kept is None else self.kept]

    def picked(self) -> "Part":
        """The same without anything shut."""
        if not len(self.shut):
            return self
        is_open = np.ones(self.count, np.bool_)
        is_open[self.shut] = False
        kept = np.flatnonzero(is_open) if self.kept is None else self.kept[is_open[self.kept]]
        return Part(self.segment, self.count, kept, NOBODY)


def _norms(vectors: Floats | Doubles) -> Doubles:
    """Lengths, never zero; in float64, as squares of small float32 numbers would vanish."""
    wide = vectors.astype(np.float64, copy=False)
    return np.maximum(np.sqrt(np.vecdot(wide, wide)), 1e-30)


def _distinct(numbers: Ints) -> Ints:
    """Sorted and distinct; a look first, as most callers bring them so and sorting 100k takes milliseconds."""
    numbers = np.asarray(numbers, np.int64)
    return numbers if bool((numbers[1:] > numbers[:-1]).all()) else np.unique(numbers)


def _peaks(vectors: Floats) -> Floats:
    """The size of each row's largest coordinate; NaN or infinite where one is."""
    return np.maximum(vectors.max(axis=1), -vectors.min(axis=1))


def _codes(vectors: Floats, peaks: Floats) -> tuple[Bytes, Floats]:
    """Every row in steps of its own, and what a whole product with it is to be multiplied with."""
    scaled = vectors * (STEPS / np.maximum(peaks, 1e-30)).astype(np.float32)[:, None]
    lengths = np.sqrt(np.vecdot(scaled, scaled))
    return np.rint(scaled, out=scaled).astype(np.int8), (1 / np.maximum(lengths, 1)).astype(np.float32)


def _columns(rows: Ints, owners: Ints, vectors: Floats, coded: bool) -> Columns:
    if not coded:
        return {"rows": rows, "owners": owners, "vectors": vectors, "norms": _norms(vectors).astype(np.float32)}
    codes, factors = _codes(vectors, _peaks(vectors))
    return {"rows": rows, "owners": owners, "codes": codes, "factors": factors}


def _products(probe: Bytes, codes: Bytes) -> Floats:
    return np.asarray(numkong.cdist(probe, codes, "dot", out_dtype="float32"))[0]


def _code_scores(part: Part, probe: Bytes, first: int, last: int) -> Floats:
    """factor x <probe, code> of a stretch of a part's rows, in whole numbers: equal codes score equal wherever they
    stand."""
    codes, factors = part.segment.columns["codes"], part.segment.columns["factors"]
    if part.kept is None:
        return _products(probe, codes[first:last]) * factors[first:last]
    kept = part.kept[first:last]
    low, high = int(kept[0]), int(kept[-1]) + 1
    if len(kept) * 5 > high - low:  # to scan all and thin after is cheaper than to gather
        products = _products(probe, codes[low:high])[kept - low]
    else:
        pieces = (kept[start : start + STEP_ROWS] for start in range(0, len(kept), STEP_ROWS))
        products = np.concatenate([_products(probe, np.take(codes, piece, axis=0)) for piece in pieces])
    return products * factors[kept]


@lru_cache(maxsize=1)
def _helpers(_process: int) -> ThreadPoolExecutor:
    """Threads for all scans of a process, as starting them takes as long as scanning ten thousand rows. A forked
    process has none of them, so that it asks under its own number for others."""
    return ThreadPoolExecutor(max((os.cpu_count() or 1) - 1, 1), "recollect-scan")


def _all_scores(parts: list[Part], probe: Bytes) -> Floats:
    """The scores of all rows, one part after the other. Many rows are shared out to threads, piece by piece, as a
    product of codes lets go of the interpreter."""
    scores = np.empty(sum(map(len, parts)), np.float32)
    rooms = np.split(scores, np.cumsum([len(part) for part in parts])[:-1])
    shared = len(scores) >= SHARED_ROWS
    step = PIECE_ROWS if shared else len(scores)
    pieces = [
        (part, room, first, min(first + step, len(part)))
        for part, room in zip(parts, rooms)
        for first in range(0, len(part), step)
    ]
    left = iter(pieces)  # whoever is free takes the next one

    def work() -> None:
        for part, room, first, last in left:
            room[first:last] = _code_scores(part, probe, first, last)

    others = min(os.cpu_count() or 1, len(pieces)) - 1 if shared else 0
    helping = [_helpers(os.getpid()).submit(work) for _ in range(others)]
    work()
    for one in helping:
        if not one.cancel():  # one that has not begun has nothing left to do
            one.result()
    for part, room in zip(parts, rooms):
        room[part.shut] = -np.inf
    return scores


def _edge(scores: Floats, size: int) -> np.float32:
    """The score of the `size`-th best; a sample shows where to look, as parting all of them takes a millisecond."""
    guess = 2 * size // SAMPLED + 8
    if guess * SAMPLED < len(scores) // 4:
        sample = scores[::SAMPLED]
        better = scores[scores >= np.partition(sample, len(sample) - guess)[len(sample) - guess]]
        scores = better if len(better) >= size else scores
    return np.partition(scores, len(scores) - size)[len(scores) - size]


def _best(scores: Floats, size: int) -> Ints:
    """Positions (rising) of the `size` best scores; of more than as many equal ones at the edge the earlier rows."""
    edge = _edge(scores, size)
    good = np.flatnonzero(scores >= edge)
    if len(good) > 2 * size:  # thousands of equal rows must not make a search slow
        good = np.union1d(np.flatnonzero(scores > edge), np.flatnonzero(scores == edge)[:size])
    return good


def _chosen(parts: list[Part], flat: Ints) -> list[Part]:
    """The parts cut down to rising positions counted through all of them."""
    bounds = np.cumsum([0, *(len(part) for part in parts)])
    cut: list[Part] = []
    for part, first, some in zip(parts, bounds, np.split(flat, np.searchsorted(flat, bounds[1:-1]))):
        if len(some):
            kept = some - first if part.kept is None else part.kept[some - first]
            cut.append(Part(part.segment, part.count, kept, NOBODY))
    return cut


def _joined(parts: list[Part], name: str) -> NDArray[Any]:
    return np.concatenate([part.column(name) for part in parts])


def _by_owner(scores: NDArray[Any], owners: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The order (score falling, owner, row), and the places in it where an owner comes for the first time."""
    order = np.lexsort((rows, owners, -scores))
    return order, np.sort(np.unique(owners[order], return_index=True)[1])


def _head(parts: list[Part], scores: Floats, wanted: int) -> tuple[Ints, Ints, Floats]:
    """Rows, owners and scores of the best rows, down to the first one of the `wanted`-th owner."""
    size = min(2 * wanted, len(scores))
    while True:
        some = _best(scores, size)
        chosen, best = _chosen(parts, some), scores[some]
        rows, owners = _joined(chosen, "rows"), _joined(chosen, "owners")
        order, firsts = _by_owner(best, owners, rows)
        if len(firsts) >= wanted:
            order = order[: firsts[wanted - 1] + 1]
        elif size < len(scores):
            size = min(4 * size, len(scores))
            continue
        return rows[order], owners[order], best[order]


def _near_vectors(unit: Floats, limit: int, parts: list[Part]) -> tuple[Ints, Ints]:
    """By float32 dot products: the best owners' rows, and all that stand within their error of the last place."""
    scores = np.concatenate([np.vecdot(part.column("vectors"), unit) / part.column("norms") for part in parts])
    near = _chosen(parts, np.flatnonzero(scores >= _head(parts, scores, limit)[2].min() - FLOAT_SLACK))
    return _joined(near, "rows"), _joined(near, "owners")


def _near_codes(unit: Floats, limit: int, parts: list[Part]) -> tuple[Ints, Ints]:
    """By codes."""
    probe = _codes(unit[None], _peaks(unit[None]))[0]
    rows, owners, scores = _head(parts, _all_scores(parts, probe), limit + limit // 2 + HEAD_ROWS)
    is_open = scores > -np.inf
    return rows[is_open], owners[is_open]


class CodeIndex:
    """Rows of vectors, several to an owner; finds the owners nearest to a query. Its length is that of living rows.

    Safe to share between threads: a search sees the rows there were when it began, less some removed meanwhile.
    """

    def __init__(self, dimension: int, *, exact_rows: int = EXACT_ROWS) -> None:
        if not 0 < dimension <= 8_192:
            raise ValueError("between 1 and 8192 dimensions")
        self.dimension = dimension
        self._exact_rows = exact_rows
        self._lock = threading.Lock()
        self._segments: list[Segment] = []
        self._top_row = -(2**63)

    def __len__(self) -> int:
        return sum(segment.count - segment.dead for segment in self._segments)

    def add(self, rows: Ints, owners: Ints, vectors: Floats) -> None:
        """Add rows; a number known already replaces the earlier row. Once too many, codes take over for good."""
        rows, owners = np.array(rows, np.int64), np.array(owners, np.int64)
        vectors = np.ascontiguousarray(vectors, np.float32)
        if vectors.shape != (len(rows), self.dimension) or owners.shape != rows.shape:
            raise ValueError(f"{len(rows)} rows, {len(owners)} owners, vectors {vectors.shape}")
        if len(_distinct(rows)) != len(rows) or not np.isfinite(_peaks(vectors)).all():
            raise ValueError("a row number comes twice, or a vector holds NaN or infinity")
        for here in (slice(start, start + STEP_ROWS) for start in range(0, len(rows), STEP_ROWS)):
            self._add(rows[here], owners[here], vectors[here])

    def remove(self, owners: Ints) -> None:
        """Forget every row of these owners; an unknown owner is no error."""
        keys = _distinct(owners)
        with self._lock:
            self._bury([segment.owned(keys, segment.count) for segment in self._segments])

    def nearest(
        self, query: Floats, limit: int, allowed: Allowed | None = None, refused: Ints = NOBODY
    ) -> tuple[Ints, Ints]:
        """Rows and their owners that are worth an exact look, in no order, among the allowed ones only.

        The best `limit` owners by cosine are all there while the full vectors are held, nearly all of them later.
        `allowed` is an array of owners (best sorted), or a function from owners to flags; `refused` are owners that
        are passed over.
        """
        unit = np.asarray(query, np.float64)
        if unit.shape != (self.dimension,) or not np.isfinite(unit).all():
            raise ValueError(f"the query is not {self.dimension} finite numbers")
        unit, parts = (unit / _norms(unit)).astype(np.float32), self._visible(allowed, _distinct(refused))
        if limit < 1 or not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return (_near_codes if parts[0].segment.coded else _near_vectors)(unit, limit, parts)

    def save(self, path: Path, stamp: str) -> None:
        """Write the living rows to one file, whole or not at all: temporary file, fsync, rename.

        The stamp names the state of the store that the index holds now: let no add or remove run beside the call.
        """
        parts = [one.picked() for one in self._visible(None)]
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            temporary.touch(0o600)
            with temporary.open("wb") as file:
                _write(file, parts, {"dimension": self.dimension, "stamp": stamp})
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path, stamp: str, dimension: int, *, exact_rows: int = EXACT_ROWS) -> "CodeIndex | None":
        """Map a saved index; None if there is none, or it is of another state or dimension, or damaged."""
        index = cls(dimension, exact_rows=exact_rows)
        try:
            columns = _read(path, {"dimension": dimension, "stamp": stamp})
            if columns:
                index._segments = [
                    Segment.full({name: column[start : start + SEGMENT_ROWS] for name, column in columns.items()})
                    for start in range(0, len(columns["rows"]), SEGMENT_ROWS)
                ]
                index._top_row = int(columns["rows"].max())
        except (OSError, ValueError, KeyError, TypeError, struct.error, zlib.error):
            return None
        return index

    def _add(self, rows: Ints, owners: Ints, vectors: Floats) -> None:
        batch = _columns(rows, owners, vectors, self._codes_with(len(rows)))  # the dear part, before the lock
        with self._lock:
            if int(rows.min()) <= self._top_row:
                known = [segment.columns["rows"][: segment.count] for segment in self._segments]
                self._bury([np.flatnonzero(np.isin(column, rows)) for column in known])
            coded = self._codes_with(len(rows))
            if coded != ("codes" in batch):
                batch = _columns(rows, owners, vectors, coded)
            if coded:
                self._change_over()
            self._append(batch)
            self._top_row = max(self._top_row, int(rows.max()))

    def _codes_with(self, more: int) -> bool:
        """Whether an index with so many more rows holds codes; one that does goes on with them while it has rows."""
        return len(self) + more > self._exact_rows or bool(self._segments and self._segments[0].coded)

    def _append(self, batch: Columns) -> None:
        done, count = 0, len(batch["rows"])
        while done < count:
            if not self._segments or self._segments[-1].count == len(self._segments[-1].live):
                size = min(SEGMENT_ROWS, max(1_024, len(self), count - done))
                self._segments.append(Segment.room(size, batch))
            done += self._segments[-1].append(batch, done)

    def _change_over(self) -> None:
        """From full vectors to codes; searches under way keep the old segments."""
        old = [segment.compacted().columns for segment in self._segments if not segment.coded]
        self._segments = [segment for segment in self._segments if segment.coded]
        for columns in old:
            self._append(_columns(columns["rows"], columns["owners"], columns["vectors"], True))

    def _bury(self, doomed: list[Ints]) -> None:
        """Mark rows of each segment dead; rewrite what is more than half dead, so that memory follows the living."""
        for segment, positions in zip(self._segments, doomed, strict=True):
            segment.dead += int(segment.live[positions].sum())
            segment.live[positions] = False
        lasting = [segment for segment in self._segments if segment.count > segment.dead]
        self._segments = [one.compacted() if 2 * one.dead > one.count else one for one in lasting]

    def _visible(self, allowed: Allowed | None, refused: Ints = NOBODY) -> list[Part]:
        """The rows a search may return, at one moment."""
        with self._lock:
            seen = [(segment, segment.count) for segment in self._segments]
        keys = None if allowed is None or callable(allowed) else _distinct(allowed)
        parts: list[Part] = []
        for segment, count in seen:
            kept = None if keys is None else segment.owned(keys, count)
            if callable(allowed):
                kept = np.flatnonzero(allowed(segment.columns["owners"][:count]))
            shut = segment.owned(refused, count) if len(refused) else NOBODY
            if segment.dead:
                live = segment.live[:count].copy()  # flatnonzero of flags that change meanwhile makes numbers up
                shut = np.union1d(shut, np.flatnonzero(~live))
            part = Part(segment, count, kept, shut)
            if kept is not None or not segment.coded or len(shut) * SHUT_SHARE > count:
                part = part.picked()
            if len(part):
                parts.append(part)
        return parts


def _write(file: IO[bytes], parts: list[Part], facts: dict[str, Any]) -> None:
    """Columns on 64-byte bounds, a description of them, and last the trailer, so that a torn file has none."""
    pieces: dict[str, Iterable[NDArray[Any]]] = {}
    for name in parts[0].segment.columns if parts else ():
        pieces[name] = (part.column(name) for part in parts)
    crc, stated = 0, dict[str, Any]()
    for name, arrays in pieces.items():
        offset, length, array = file.tell(), 0, np.empty(0)
        for array in arrays if name not in NUMBERS else (_deflated(np.concatenate(list(arrays))),):
            block = np.ascontiguousarray(array).data
            crc, length = zlib.crc32(block, crc), length + len(array)
            file.write(block)
        stated[name] = [offset, array.dtype.str, [length, *array.shape[1:]]]
        crc = zlib.crc32(padding := bytes(-file.tell() % 64), crc)
        file.write(padding)
    text = json.dumps({**facts, "columns": stated}).encode()
    file.write(text + TRAILER.pack(len(text), zlib.crc32(text, crc), MAGIC))


def _read(path: Path, facts: dict[str, Any]) -> Columns:
    """Map and check a file; ValueError if it is torn, damaged or states other facts."""
    # Windows refuses to rename over a mapped file
    mapped = np.memmap(path, np.uint8, "r") if os.name == "posix" else np.fromfile(path, np.uint8)
    data, trailer = np.split(mapped.view(np.ndarray), [max(0, len(mapped) - TRAILER.size)])
    size, crc, magic = TRAILER.unpack(trailer.tobytes())
    if magic != MAGIC or zlib.crc32(data.data) != crc:
        raise ValueError("torn")
    stated = json.loads(data[len(data) - size :].tobytes())
    if any(stated[name] != value for name, value in facts.items()):
        raise ValueError("stale")
    columns = {
        name: data[offset : offset + math.prod(shape) * np.dtype(kind).itemsize].view(kind).reshape(shape)
        for name, (offset, kind, shape) in stated["columns"].items()
    }
    count = max((len(column) for name, column in columns.items() if name not in NUMBERS), default=0)
    return {name: _inflated(one, count) if name in NUMBERS else one for name, one in columns.items()}


def _deflated(numbers: Ints) -> NDArray[np.uint8]:
    return np.frombuffer(zlib.compress(np.diff(numbers, prepend=0).astype("<i8").tobytes(), 1), np.uint8)


def _inflated(data: NDArray[np.uint8], count: int) -> Ints:
    steps = zlib.decompressobj().decompress(data.data, 8 * count)
    if len(steps) != 8 * count:
        raise ValueError("torn")
    return np.cumsum(np.frombuffer(steps, "<i8"))
