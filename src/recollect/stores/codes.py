"""The derived vector index: quantised codes scanned exactly, for a head that the store scores with the full vectors.

Up to `exact_rows` rows the full vectors stay in memory and nothing is missed. Beyond, a row costs about 265 bytes at
384 dimensions, and a search narrows in steps, each dearer and for the rows the last one left:

    coarse   sign bits x sign bits of the query       48 B a row, popcounts over column-major words
    sharp    sign bits x 3-bit query                  the same words again
    fine     4-bit codes x float query                192 B a row

Codes are of x = (v / |v| - mean) R, with R a random rotation: real sentence embeddings share a large mean (0.83 of
the norm for arctic-embed-s) that would waste most sign bits, and R spreads outlying coordinates. The query is rotated
but *not* centred: <q, v> = <q, mean> + <qR, x>, whose first term is the same for every row. A row keeps a factor
|x|^2 / <x, code> for each code, so that factor x <qR, code> estimates <qR, x> without bias.

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
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = dict[str, NDArray[Any]]  # by name, all of one length: a row is one place in each
Allowed: TypeAlias = Ints | Callable[[Ints], Flags]

EXACT_ROWS = 20_000  # 30 MB of float32 and a scan of 2 to 3 ms, which codes do not beat
SHARP_ROWS = 32_768  # at least, or a sixth of all rows
FINE_ROWS = 8_192  # and 1 / 64 of all rows
HEAD_ROWS = 50  # and twice the limit: with these, recall@100 is over 0.99 on real embeddings up to a million rows
SEGMENT_ROWS = 65_536  # appends fill a segment and never move one
SHARED_ROWS = 400_000  # from so many on, threads are worth their mutual waiting
STEP_ROWS = 32_768  # words, popcounts and sums of one step stay in a 512 KiB second-level cache
FLOAT_SLACK = 1e-4  # a float32 dot product of unit vectors is nearer than this to the float64 one
FOUR_BIT_STEP, THREE_BIT_STEP = 0.335, 0.586  # of the best uniform quantisers of a unit normal variable
MAGIC = b"RCLCODE1"
TRAILER = struct.Struct("<II8s")  # length of the description, checksum of all before, magic


class Probe(NamedTuple):
    """A query in the frame: float coordinates, their signs as words, two bits of their size as masks of words."""

    coordinates: Floats
    signs: Words
    masks: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The coordinates in which codes are taken; frozen once trained, so that no code is ever taken again."""

    mean: Floats
    rotation: Floats

    @classmethod
    def train(cls, vectors: Floats) -> "Frame":
        """Take the mean; pad the rotation to whole words, which keeps inner products (R R^T = 1)."""
        dimension, width = vectors.shape[1], -(-vectors.shape[1] // 64) * 64
        mean = (vectors / _norms(vectors)[:, None]).mean(axis=0).astype(np.float32)
        gauss = np.random.default_rng(20_261_115).standard_normal((width, width))
        return cls(mean, np.linalg.qr(gauss)[0][:dimension].astype(np.float32))

    def probe(self, unit: Floats) -> Probe:
        """Quantise the query to sign x (1, 3, 5, 7) in steps of its own deviation: three bits a coordinate."""
        turned = unit @ self.rotation
        step = THREE_BIT_STEP * np.maximum(np.sqrt(np.mean(turned * turned)), 1e-12)
        levels = np.clip(np.abs(turned) / step, 0, 3).astype(np.uint8)[None]
        masks = tuple(_pack(levels & np.uint8(bit) != 0)[0] for bit in (1, 2))
        return Probe(turned, _pack(turned[None] > 0)[0], masks)

    def encode(self, rows: Ints, owners: Ints, vectors: Floats) -> Columns:
        """Sign bits as one column for each word, 4-bit codes two to a byte, and the factor of each."""
        turned = ((vectors / _norms(vectors)[:, None]).astype(np.float32) - self.mean) @ self.rotation
        square = np.vecdot(turned, turned)
        deviation = np.sqrt(square / turned.shape[1])[:, None]
        levels = np.clip(np.floor(turned / (FOUR_BIT_STEP * np.maximum(deviation, 1e-12))), -8, 7)
        coarse = square / np.maximum(np.abs(turned).sum(axis=1), 1e-12)
        fine = square / np.maximum(np.vecdot(turned, levels + np.float32(0.5)), 1e-12)
        low, high = np.split((levels + 8).astype(np.uint8), 2, axis=1)
        columns = {"rows": rows, "owners": owners, "coarse": coarse, "fine": fine, "nibbles": low | high << 4}
        return columns | {f"signs{word}": column for word, column in enumerate(_pack(turned > 0).T)}


@dataclass(slots=True)
class Segment:
    """Rows with full vectors or codes; grows at its end and changes only `live`, so who noted `count` needs no lock."""

    columns: Columns
    live: Flags
    count: int
    rising: bool  # owners never fall: usual, as they are row numbers of memories, and then found by bisection
    dead: int = 0

    @classmethod
    def full(cls, columns: Columns) -> "Segment":
        owners = columns["owners"]
        rising = bool((owners[1:] >= owners[:-1]).all())
        return cls(columns, np.ones(len(owners), np.bool_), len(owners), rising)

    @classmethod
    def room(cls, size: int, like: Columns) -> "Segment":
        columns = {name: np.empty((size, *column.shape[1:]), column.dtype) for name, column in like.items()}
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
    """What one search may return of one segment: the rows at `kept`, None meaning the first `count`."""

    segment: Segment
    count: int
    kept: Ints | None

    def __len__(self) -> int:
        return self.count if self.kept is None else len(self.kept)

    def column(self, name: str) -> NDArray[Any]:
        return self.segment.columns[name][slice(self.count) if self.kept is None else self.kept]


def _pack(bits: Flags) -> Words:
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _norms(vectors: Floats | Doubles) -> Doubles:
    """Lengths, never zero; in float64, as squares of small float32 numbers would vanish."""
    wide = vectors.astype(np.float64, copy=False)
    return np.maximum(np.sqrt(np.vecdot(wide, wide)), 1e-30)


def _distinct(numbers: Ints) -> Ints:
    """Sorted and distinct; a look first, as most callers bring them so and sorting 100k takes milliseconds."""
    numbers = np.asarray(numbers, np.int64)
    return numbers if bool((numbers[1:] > numbers[:-1]).all()) else np.unique(numbers)


def _sign_scores(part: Part, probe: Probe, masks: tuple[Words, ...]) -> Floats:
    """factor x sum of sign agreement x level, the level being 1 + 2 m0 + 4 m1 as far as `masks` go.

    By columns, in buffers that stay cached. Three words differ in at most 192 bits, so most additions are of bytes.
    """
    if part.kept is not None and not masks and len(part) * 3 > part.count:  # to scan all and thin after is cheaper
        return _sign_scores(Part(part.segment, part.count, None), probe, masks)[part.kept]
    words = [part.segment.columns[f"signs{word}"] for word in range(len(probe.signs))]
    rows, last, size = len(part), len(words) - 1, min(len(part), STEP_ROWS)
    word, kept, ones = np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.uint8)
    threes, scaled = np.empty((len(masks) + 1, size), np.uint8), np.empty(size, np.uint16)
    total, scores = np.empty(size, np.uint16), np.empty(rows, np.float32)
    most = 64 * len(words) + sum(int(np.bitwise_count(mask).sum()) << bit for bit, mask in enumerate(masks, 1))
    for start in range(0, rows, STEP_ROWS):
        stop = min(start + STEP_ROWS, rows)
        here = slice(stop - start)
        total[here] = 0
        for place, column in enumerate(words):
            given = column[start:stop] if part.kept is None else np.take(column, part.kept[start:stop])
            np.bitwise_xor(given, probe.signs[place], out=word[here])
            for bit, three in enumerate(threes):
                differing = np.bitwise_and(word[here], masks[bit - 1][place], out=kept[here]) if bit else word[here]
                np.bitwise_count(differing, out=(ones if place % 3 else three)[here])
                if place % 3:
                    np.add(three[here], ones[here], out=three[here])
                if place % 3 == 2 or place == last:
                    np.left_shift(three[here], bit, out=scaled[here], dtype=np.uint16)
                    np.add(total[here], scaled[here], out=total[here])
        np.multiply(total[here], np.float32(-2), out=scores[start:stop], dtype=np.float32)
        np.add(scores[start:stop], np.float32(most), out=scores[start:stop])
    return np.multiply(scores, part.column("coarse"), out=scores)


def _nibble_scores(part: Part, probe: Probe) -> Floats:
    """factor x <query, 4-bit code>; one dot product a row, so equal codes score equal wherever they stand."""
    nibbles, step = part.segment.columns["nibbles"], STEP_ROWS // 16
    places = np.arange(part.count) if part.kept is None else part.kept
    low, byte = np.split(probe.coordinates * np.repeat(np.array([1, 1 / 16], np.float32), nibbles.shape[1]), 2)
    rest, size = low - byte, min(len(places), step)  # a byte is low + 16 high: the shift is in the weights
    packed, wide = np.empty((size, len(low)), np.uint8), np.empty((size, len(low)), np.float32)
    scores, more = np.empty(len(places), np.float32), np.empty(size, np.float32)
    for start in range(0, len(places), step):
        stop = min(start + step, len(places))
        here = slice(0, stop - start)
        np.copyto(wide[here], np.take(nibbles, places[start:stop], axis=0, out=packed[here], mode="clip"))
        np.vecdot(wide[here], byte, out=scores[start:stop])
        np.copyto(wide[here], np.bitwise_and(packed[here], 15, out=packed[here]))
        scores[start:stop] += np.vecdot(wide[here], rest, out=more[here])
    scores -= np.float32(7.5) * probe.coordinates.sum()
    return np.multiply(scores, part.column("fine"), out=scores)


def _best(parts: list[Part], scores: Floats, count: int) -> list[Part]:
    """The parts cut down to the `count` best scores; ties at the edge go to the earlier rows."""
    if count >= len(scores):
        return parts
    edge = np.partition(scores, len(scores) - count)[len(scores) - count]
    good = np.flatnonzero(scores >= edge)
    if len(good) > 2 * count:  # thousands of equal rows must not make a search slow
        good = np.union1d(np.flatnonzero(scores > edge), np.flatnonzero(scores == edge)[:count])
    return _chosen(parts, good)


def _chosen(parts: list[Part], flat: Ints) -> list[Part]:
    """The parts cut down to rising positions counted through all of them."""
    bounds = np.cumsum([0, *(len(part) for part in parts)])
    cut: list[Part] = []
    for part, first, some in zip(parts, bounds, np.split(flat, np.searchsorted(flat, bounds[1:-1]))):
        if len(some):
            kept = some - first if part.kept is None else part.kept[some - first]
            cut.append(Part(part.segment, part.count, kept))
    return cut


def _joined(parts: list[Part], name: str) -> NDArray[Any]:
    return np.concatenate([part.column(name) for part in parts])


def _by_owner(scores: NDArray[Any], owners: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The order (score falling, owner, row), and the places in it where an owner comes for the first time."""
    order = np.lexsort((rows, owners, -scores))
    return order, np.sort(np.unique(owners[order], return_index=True)[1])


def _head(scores: Floats, owners: Ints, rows: Ints, wanted: int) -> tuple[Ints, int]:
    """Positions (rising) of the best rows down to the first one of the `wanted`-th owner; how many owners they have."""
    size = min(2 * wanted, len(scores))
    while True:
        some = np.flatnonzero(scores >= np.partition(scores, len(scores) - size)[len(scores) - size])
        order, firsts = _by_owner(scores[some], owners[some], rows[some])
        if len(firsts) >= wanted:
            return some[np.sort(order[: firsts[wanted - 1] + 1])], wanted
        if size == len(scores):
            return some, len(firsts)
        size = min(4 * size, len(scores))


def _near_vectors(unit: Floats, limit: int, parts: list[Part]) -> tuple[Ints, Ints]:
    """By float32 dot products: the best owners' rows, and all that stand within their error of the last place."""
    scores = np.concatenate([np.vecdot(part.column("vectors"), unit) / part.column("norms") for part in parts])
    head, _ = _head(scores, _joined(parts, "owners"), _joined(parts, "rows"), limit)
    near = _chosen(parts, np.flatnonzero(scores >= scores[head].min() - FLOAT_SLACK))
    return _joined(near, "rows"), _joined(near, "owners")


def _scored(score: Callable[[Part], Floats], parts: list[Part]) -> Floats:
    """All parts' scores; many rows are shared out to threads, as numpy lets go of the interpreter while it computes."""
    if sum(map(len, parts)) < SHARED_ROWS:
        return np.concatenate([score(part) for part in parts])
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return np.concatenate(list(threads.map(score, parts)))


def _near_codes(probe: Probe, limit: int, parts: list[Part]) -> tuple[Ints, Ints]:
    """By the steps of the cascade; widens by itself when few owners hold the best rows."""
    total, wider = sum(map(len, parts)), math.sqrt(max(1.0, limit / 100))
    while True:
        sharp, fine = int(wider * max(SHARP_ROWS, total // 6)), int(wider * (FINE_ROWS + total // 64))
        some = parts
        if total > sharp:
            some = _best(parts, _scored(lambda part: _sign_scores(part, probe, ()), parts), sharp)
        if total > fine:
            some = _best(some, _scored(lambda part: _sign_scores(part, probe, probe.masks), some), fine)
        scores = _scored(lambda part: _nibble_scores(part, probe), some)
        rows, owners = _joined(some, "rows"), _joined(some, "owners")
        head, found = _head(scores, owners, rows, 2 * limit + HEAD_ROWS)
        if found >= limit or len(rows) == total:
            return rows[head], owners[head]
        wider *= 4


class CodeIndex:
    """Rows of vectors, several to an owner; finds the owners nearest to a query. Its length is that of living rows.

    Safe to share between threads: a search sees the rows there were when it began, less some removed meanwhile.
    """

    def __init__(self, dimension: int, *, exact_rows: int = EXACT_ROWS) -> None:
        if not 0 < dimension <= 8_192:  # sums of sign scores are kept in 16 bits
            raise ValueError("between 1 and 8192 dimensions")
        self.dimension = dimension
        self._exact_rows = exact_rows
        self._lock = threading.Lock()
        self._frame: Frame | None = None
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
        if len(_distinct(rows)) != len(rows) or not np.isfinite(_norms(vectors)).all():
            raise ValueError("a row number comes twice, or a vector holds NaN or infinity")
        for here in (slice(start, start + STEP_ROWS) for start in range(0, len(rows), STEP_ROWS)):
            self._add(rows[here], owners[here], vectors[here])

    def remove(self, owners: Ints) -> None:
        """Forget every row of these owners; an unknown owner is no error."""
        keys = _distinct(owners)
        with self._lock:
            self._bury([segment.owned(keys, segment.count) for segment in self._segments])

    def nearest(self, query: Floats, limit: int, allowed: Allowed | None = None) -> tuple[Ints, Ints]:
        """Rows and their owners that are worth an exact look, in no order, among the allowed ones only.

        The best `limit` owners by cosine are all there while the full vectors are held, nearly all of them later.
        `allowed` is an array of owners (best sorted), or a function from owners to flags.
        """
        unit = np.asarray(query, np.float64)
        if unit.shape != (self.dimension,) or not np.isfinite(unit).all():
            raise ValueError(f"the query is not {self.dimension} finite numbers")
        unit, (frame, parts) = (unit / _norms(unit)).astype(np.float32), self._visible(allowed)
        if limit < 1 or not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return _near_vectors(unit, limit, parts) if frame is None else _near_codes(frame.probe(unit), limit, parts)

    def save(self, path: Path, stamp: str) -> None:
        """Write the living rows to one file, whole or not at all: temporary file, fsync, rename.

        The stamp names the state of the store that the index holds now: let no add or remove run beside the call.
        """
        frame, parts = self._visible(None)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            temporary.touch(0o600)
            with temporary.open("wb") as file:
                _write(file, frame, parts, {"dimension": self.dimension, "stamp": stamp})
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
            if "mean" in columns:
                index._frame = Frame(columns.pop("mean"), columns.pop("rotation"))
            if columns:
                index._segments = [
                    Segment.full({name: column[start : start + SEGMENT_ROWS] for name, column in columns.items()})
                    for start in range(0, len(columns["rows"]), SEGMENT_ROWS)
                ]
                index._top_row = int(columns["rows"].max())
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return None
        return index

    def _columns(self, rows: Ints, owners: Ints, vectors: Floats) -> Columns:
        if self._frame is not None:
            return self._frame.encode(rows, owners, vectors)
        return {"rows": rows, "owners": owners, "vectors": vectors, "norms": _norms(vectors).astype(np.float32)}

    def _add(self, rows: Ints, owners: Ints, vectors: Floats) -> None:
        batch = self._columns(rows, owners, vectors)  # the dear part, before the lock
        with self._lock:
            if int(rows.min()) <= self._top_row:
                known = [segment.columns["rows"][: segment.count] for segment in self._segments]
                self._bury([np.flatnonzero(np.isin(column, rows)) for column in known])
            if self._frame is None and len(self) + len(rows) > self._exact_rows:
                self._train(vectors)
            if self._frame is not None and "vectors" in batch:
                batch = self._columns(rows, owners, vectors)
            self._append(batch)
            self._top_row = max(self._top_row, int(rows.max()))

    def _append(self, batch: Columns) -> None:
        done, count = 0, len(batch["rows"])
        while done < count:
            if not self._segments or self._segments[-1].count == len(self._segments[-1].live):
                size = min(SEGMENT_ROWS, max(1_024, len(self), count - done))
                self._segments.append(Segment.room(size, batch))
            done += self._segments[-1].append(batch, done)

    def _train(self, coming: Floats) -> None:
        """Change over to codes; searches under way keep the old segments."""
        old = [segment.compacted().columns for segment in self._segments]
        self._frame = Frame.train(np.concatenate([*(columns["vectors"] for columns in old), coming]))
        self._segments = []
        for columns in old:
            self._append(self._columns(columns["rows"], columns["owners"], columns["vectors"]))

    def _bury(self, doomed: list[Ints]) -> None:
        """Mark rows of each segment dead; rewrite what is more than half dead, so that memory follows the living."""
        for segment, positions in zip(self._segments, doomed, strict=True):
            segment.dead += int(segment.live[positions].sum())
            segment.live[positions] = False
        lasting = [segment for segment in self._segments if segment.count > segment.dead]
        self._segments = [one.compacted() if 2 * one.dead > one.count else one for one in lasting]

    def _visible(self, allowed: Allowed | None) -> tuple[Frame | None, list[Part]]:
        """The frame and the rows a search may return, at one moment."""
        with self._lock:
            frame, seen = self._frame, [(segment, segment.count) for segment in self._segments]
        keys = None if allowed is None or callable(allowed) else _distinct(allowed)
        parts: list[Part] = []
        for segment, count in seen:
            kept = None if keys is None else segment.owned(keys, count)
            if callable(allowed):
                kept = np.flatnonzero(allowed(segment.columns["owners"][:count]))
            if segment.dead:
                live = segment.live[:count].copy()  # flatnonzero of flags that change meanwhile makes numbers up
                kept = np.flatnonzero(live) if kept is None else kept[live[kept]]
            if kept is None or len(kept):
                parts.append(Part(segment, count, kept))
        return frame, parts


def _write(file: IO[bytes], frame: Frame | None, parts: list[Part], facts: dict[str, Any]) -> None:
    """Columns on 64-byte bounds, a description of them, and last the trailer, so that a torn file has none."""
    pieces: dict[str, Iterable[NDArray[Any]]] = {}
    if frame is not None:
        pieces = {"mean": [frame.mean], "rotation": [frame.rotation]}
    for name in parts[0].segment.columns if parts else ():
        pieces[name] = (part.column(name) for part in parts)
    crc, stated = 0, dict[str, Any]()
    for name, arrays in pieces.items():
        offset, length, array = file.tell(), 0, np.empty(0)
        for array in arrays:
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
    return {
        name: data[offset : offset + math.prod(shape) * np.dtype(kind).itemsize].view(kind).reshape(shape)
        for name, (offset, kind, shape) in stated["columns"].items()
    }
