"""The vocabulary of unstemmed words, and the search for words that look alike.

`words` lists every folded word of every text once. A process keeps their trigrams in arrays, adds new words as they
appear and starts over when words were taken away.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sqlite.connection import Connection, one, rows
from recollect.stores.sqlite.ledger import Writing, counter

WITNESSES = 200
"""So many other texts are read to see whether a word is still in use."""


def unlist_vanished(writing: Writing, words: frozenset[str]) -> None:
    """Drop the words that no other text has; its own entry must be out of the index already.

    Privacy first: a word whose stem lives on in very many texts is dropped as well if the newest of them do not show
    it; the next text that uses it lists it again.
    """
    gone = [word for word in sorted(words) if not _is_used(writing, word)]
    if gone:
        writing.unlist_words(gone)


def _is_used(writing: Writing, word: str) -> bool:
    """Look at the newest texts that hold the word's stem, one at a time: a common word is seen almost at once."""
    witnesses = writing.connection.execute(
        "SELECT content, tags FROM (SELECT rowid AS witness FROM fulltext WHERE fulltext MATCH ?"
        " ORDER BY rowid DESC LIMIT ?) JOIN indexed_texts ON row = witness",
        (f'{{content tags}} : "{word}"', WITNESSES),
    )
    words = writing.tokenizer.words
    return any(word in words(content) or word in words(tags) for content, tags in witnesses)


def _trigram_codes(word: str) -> NDArray[np.uint64]:
    """The distinct trigrams of "$" + word + "$", three code points packed into one number: exact, not hashed."""
    points = np.frombuffer(f"${word}$".encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    return np.unique(_pack(points[:-2], points[1:-1], points[2:]))


def _pack(first: NDArray[np.uint64], second: NDArray[np.uint64], third: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (first << np.uint64(42)) | (second << np.uint64(21)) | third


class Lookalikes:
    """The trigrams of all words of a store, sorted, each beside the word that holds it: a lookup reads only those of
    the word that is looked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reset(-1)

    def _reset(self, removed: int) -> None:
        self._removed = removed
        self._last = 0
        self._words: list[str] = []
        self._codes = np.empty(0, dtype=np.uint64)
        self._holders = np.empty(0, dtype=np.int64)
        self._sizes = np.empty(0, dtype=np.int64)

    def nearest(self, connection: Connection, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        """Words by trigram Jaccard, best first, ties by word. The connection is inside a read transaction."""
        with self._lock:
            self._refresh(connection)
            words, codes, holders, sizes = self._words, self._codes, self._holders, self._sizes
        wanted = _trigram_codes(word)
        if not word or not words or limit <= 0:
            return []
        runs = zip(np.searchsorted(codes, wanted), np.searchsorted(codes, wanted, "right"))
        shared = np.bincount(np.concatenate([holders[first:last] for first, last in runs]), minlength=len(words))
        likeness = shared / (sizes + len(wanted) - shared)
        near = np.flatnonzero((shared > 0) & (likeness >= minimum))
        found = sorted(((words[place], float(likeness[place])) for place in near), key=lambda pair: (-pair[1], pair[0]))
        return found[:limit]

    def _refresh(self, connection: Connection) -> None:
        removed = counter(connection, "words_removed")
        if removed != self._removed:
            self._reset(removed)
        if (one(connection, "SELECT max(number) FROM words") or 0) == self._last:
            return
        fresh = rows(connection, "SELECT number, word FROM words WHERE number > ? ORDER BY number", (self._last,))
        if fresh:
            self._add([word for _, word in fresh])
            self._last = fresh[-1][0]

    def _add(self, fresh: list[str]) -> None:
        padded = [f"${word}$" for word in fresh]
        lengths = np.array([len(word) for word in padded], dtype=np.int64)
        points = np.frombuffer("".join(padded).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
        codes = _pack(points[:-2], points[1:-1], points[2:])
        owners = np.repeat(np.arange(len(fresh), dtype=np.int64), lengths)
        inside = owners[:-2] == owners[2:]
        codes, owners = codes[inside], owners[:-2][inside]
        order = np.lexsort((owners, codes))
        codes, owners = codes[order], owners[order]
        distinct = np.ones(len(codes), dtype=bool)
        distinct[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
        codes, owners = codes[distinct], owners[distinct]
        places = np.searchsorted(self._codes, codes)
        self._codes = np.insert(self._codes, places, codes)
        self._holders = np.insert(self._holders, places, owners + len(self._words))
        self._sizes = np.concatenate((self._sizes, np.bincount(owners, minlength=len(fresh))))
        self._words = self._words + fresh
