"""The file of a vector index: named columns, a description of them, and a checksum over everything."""

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"RCLCODE3"
NUMBERS = ("rows", "owners")  # mostly rise by one step: in a file they are deflated steps, a sixteenth of a byte a row
TRAILER = struct.Struct("<II8s")  # length of the description, checksum of all before, magic
DAMAGE = (OSError, ValueError, KeyError, TypeError, struct.error, zlib.error)
"""What reading a lost, torn, stale or damaged file raises."""


def write(file: IO[bytes], columns: Mapping[str, Iterable[NDArray[Any]]], facts: Mapping[str, Any]) -> None:
    """Columns, each in pieces, on 64-byte bounds, a description of them, and last the trailer: a torn file has none."""
    crc, stated = 0, dict[str, Any]()
    for name, arrays in columns.items():
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


def read(path: Path, facts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
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


def _deflated(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.frombuffer(zlib.compress(np.diff(numbers, prepend=0).astype("<i8").tobytes(), 1), np.uint8)


def _inflated(data: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    steps = zlib.decompressobj().decompress(data.data, 8 * count)
    if len(steps) != 8 * count:
        raise ValueError("torn")
    return np.cumsum(np.frombuffer(steps, "<i8"))
