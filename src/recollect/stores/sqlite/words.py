"""The vocabulary of unstemmed words, and the search for words that look alike.

`words` lists every folded word of every text once. A process keeps their trigrams in arrays, adds new words as they
appear and starts over when words were taken away.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.stores.sqlite.connection import Connection, one, rows, text
from recollect.stores.sqlite.ledger import Writing, counter

WITNESSES = 200
"""So many other texts are read to see whether a word is still in use."""
READ_WORDS = 20_000
"""So many words are read at a time: some fifty milliseconds."""


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
    """Which words hold each trigram of a store: a lookup reads only the lists of the word that is looked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._removed: int = -1
        self._words = Words()

    def nearest(self, connection: Connection, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        """Words by trigram Jaccard, best first, ties by word. The connection is inside a read transaction."""
        with self._lock:
            while self._read(connection):
                pass
            words = self._words
        wanted = _trigram_codes(word)
        if not word or not len(words.sizes) or limit <= 0:
            return []
        shared = np.bincount(words.holding(wanted), minlength=len(words.sizes))
        likeness = shared / (words.sizes + len(wanted) - shared)
        near = np.flatnonzero((shared > 0) & (likeness >= minimum)).tolist()
        found = [(words.word(place), float(likeness[place])) for place in near]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def read(self, connection: Connection) -> bool:
        """Read some of the words that are not known yet; whether there may be more."""
        with self._lock:
            return self._read(connection)

    def _read(self, connection: Connection) -> bool:
        removed = counter(connection, "words_removed")
        if removed != self._removed:
            self._removed, self._last, self._words = removed, 0, Words()
        if (one(connection, "SELECT max(number) FROM words") or 0) == self._last:
            return False
        sql = "SELECT number, word FROM words WHERE number > ? ORDER BY number LIMIT ?"
        fresh = rows(connection, sql, (self._last, READ_WORDS))
        if fresh:
            self._words = self._words.with_more([text(word) for _, word in fresh])
            self._last = fresh[-1][0]
        return len(fresh) == READ_WORDS


@dataclass(frozen=True, slots=True)
class Words:
    """A vocabulary in arrays: its words one behind the other, and for each trigram the places of the words that hold
    it. As strings and lists of Python hundreds of thousands of words would take many times as much."""

    spelt: bytes = b""
    spelt_ends: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sizes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """How many trigrams a word has."""
    codes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    ends: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    holders: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def word(self, place: int) -> str:
        return self.spelt[self.spelt_ends[place - 1] if place else 0 : self.spelt_ends[place]].decode()

    def holding(self, codes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The places of the words that hold these trigrams, each as often as it holds one of them."""
        places = np.searchsorted(self.codes, codes)
        known: list[int] = places[places < np.searchsorted(self.codes, codes, "right")].tolist()
        lists = [self.holders[self.ends[place - 1] if place else 0 : self.ends[place]] for place in known]
        return np.concatenate([np.empty(0, dtype=np.int32), *lists])

    def with_more(self, fresh: list[str]) -> Words:
        """These words behind the others, also in the list of each of their trigrams."""
        codes, owners = _trigrams(fresh)
        held = np.unique(np.concatenate((self.codes, codes)))
        counts = np.zeros(len(held), dtype=np.int64)
        counts[np.searchsorted(held, self.codes)] = np.diff(self.ends, prepend=0)
        places = np.searchsorted(held, codes)
        spelt = [word.encode() for word in fresh]
        lengths = np.cumsum([len(word) for word in spelt], dtype=np.int64)
        return Words(
            spelt=self.spelt + b"".join(spelt),
            spelt_ends=np.concatenate((self.spelt_ends, len(self.spelt) + lengths)),
            sizes=np.concatenate((self.sizes, np.bincount(owners, minlength=len(fresh)).astype(np.int32))),
            codes=held,
            ends=np.cumsum(counts + np.bincount(places, minlength=len(held))),
            holders=np.insert(self.holders, np.cumsum(counts)[places], owners + len(self.sizes)),
        )


def _trigrams(words: list[str]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The trigrams of these words, each once for a word, in order, beside the places of the words."""
    padded = [f"${word}$" for word in words]
    lengths = np.array([len(word) for word in padded], dtype=np.int64)
    points = np.frombuffer("".join(padded).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    codes = _pack(points[:-2], points[1:-1], points[2:])
    owners = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    inside = owners[:-2] == owners[2:]
    codes, owners = codes[inside], owners[:-2][inside]
    order = np.lexsort((owners, codes))
    codes, owners = codes[order], owners[order]
    distinct = np.ones(len(codes), dtype=bool)
    distinct[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
    return codes[distinct], owners[distinct]
