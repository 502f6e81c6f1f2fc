"""Checksums of what cannot be rebuilt beside the memories: links, tombstones, and vectors for as long as they stand."""

from __future__ import annotations

import zlib


def link_checksum(source: int, type: str, target: int, created_at: int) -> int:
    """CRC-32 over all columns of a link."""
    return zlib.crc32(repr((source, type, target, created_at)).encode())


def tombstone_checksum(key: bytes, namespace: str, hashed: bytes) -> int:
    """CRC-32 over a tombstone and the key that it was made with."""
    return zlib.crc32(repr((key, namespace, hashed)).encode())


def holds_vector(place: int, start: int | None, stop: int | None, checksum: int, data: bytes | None) -> bool:
    """Whether a vector is as it was written; in a damaged file it may not even be bytes."""
    return isinstance(data, bytes) and vector_checksum(place, start, stop, data) == checksum


def vector_checksum(place: int, start: int | None, stop: int | None, data: bytes | memoryview) -> int:
    """CRC-32 over all columns of a vector."""
    facts = b"(%d, None, None)" % place if start is None and stop is None else repr((place, start, stop)).encode()
    return zlib.crc32(data, zlib.crc32(facts))
