"""Whether the full-text index holds just the words of the texts, by reading alone.

FTS5's own comparison with the texts counts as a write and would keep all writers out for as long as it takes. Here
every occurrence of a term (in which memory, column and place) is a number, and the sums of both sides are compared.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sqlite.connection import Connection
from recollect.stores.tokens import TOKEN_BYTES, Text, Tokenizer, narrow

LONGEST_TERM = 32_768
"""FTS5 cuts longer words off after so many bytes."""
WIDE = (1 << 64) - 1
LOW = 0xFFFF_FFFF
ROWS, COLUMNS, PLACES = 2_654_435_761, 7_919, 40_503
"""Odd numbers that spread rows, columns and places; a square on top, so that no exchange of two adds up to nothing."""
SPREAD = (
    f"((doc % {2**31 - 1}) * {ROWS}"
    f" + CASE col WHEN 'content' THEN 0 WHEN 'tags' THEN {COLUMNS} ELSE {2 * COLUMNS} END"
    f" + offset * {PLACES} & {2**31 - 1})"
)
INDEXED = f"""
SELECT CAST(term AS BLOB), sum((spread * spread >> 13 & {LOW}) + 1)
FROM (SELECT term, {SPREAD} AS spread FROM temp.instances) GROUP BY term
"""


def indexed_sum(connection: Connection) -> int:
    """The sum of all that the index holds."""
    return sum(_number(term) * spread for term, spread in connection.execute(INDEXED)) & WIDE


def text_sum(tokenizer: Tokenizer, row: int, text: Text, columns: tuple[str, str], scope: str) -> int:
    """What the index should hold of one memory."""
    if any(len(word) > LONGEST_TERM // 4 for word in text.words):
        content, tags = (_numbers(tokenizer.tokens(column)) for column in columns)
    else:
        stream = np.frombuffer(narrow(text.stream), dtype="<u4").astype(np.uint64)
        content, tags = stream[: text.content_tokens], stream[text.content_tokens + 1 :]
    parts = enumerate((content, tags, _scope(scope)))
    return sum(_sum(row, column, numbers) for column, numbers in parts) & WIDE


def _sum(row: int, column: int, numbers: NDArray[np.uint64]) -> int:
    at = np.int64(row % (2**31 - 1) * ROWS + column * COLUMNS)
    spread = at + np.arange(len(numbers), dtype=np.int64) * PLACES & (2**31 - 1)
    return int(((spread * spread >> 13 & LOW).astype(np.uint64) + np.uint64(1)) @ numbers) if len(numbers) else 0


@lru_cache(maxsize=10_000)
def _scope(scope: str) -> NDArray[np.uint64]:
    return _numbers(scope.split())


def _numbers(terms: list[str]) -> NDArray[np.uint64]:
    return np.array([_number(term.encode()[:LONGEST_TERM]) for term in terms], dtype=np.uint64)


def _number(term: bytes) -> int:
    """The low half of what stands for the term in a stream."""
    return int.from_bytes(hashlib.blake2b(term, digest_size=TOKEN_BYTES).digest(), "little") & LOW
