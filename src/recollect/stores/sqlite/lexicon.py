"""What a process knows of words, so that a text costs one look at each of its words.

A word that was met has its hash here. Words that may not be on the store's list yet are remembered until a commit has
listed them, and so are the terms that every write counts. All that can become wrong when another writer takes words
off the list or has a term counted: then `state` changes, and what was prepared in another state is not used.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, cast

import apsw
import numpy as np

from recollect.stores.sqlite.connection import Connection
from recollect.stores.tokens import BOUNDARY, CACHED_WORDS, END, NARROW_BYTES, Tokenizer, narrow, piece

AT_ONCE = 100
"""So many texts are read before another thread may."""
UNKNOWN = b""
"""Stands for the hash of a word that was not met before."""


class Tokens(NamedTuple):
    """A memory's narrow token stream, how many tokens it has, and how many of them are the content's."""

    content: int
    size: int
    stream: bytes


@dataclass(slots=True)
class Reading:
    """Several texts as the index sees them; `words` and `terms` are what the store has to be told in this state."""

    state: int
    tokens: list[Tokens] = field(default_factory=list[Tokens])
    words: set[str] = field(default_factory=set[str])
    terms: Counter[str] = field(default_factory=Counter[str])


class _Pieces(dict[str, bytes]):
    """The hash of each word that was met; others are noted, as often as they are asked for, and hashed in one go."""

    def __init__(self) -> None:
        super().__init__({BOUNDARY: END})
        self.unknown: list[str] = []

    def __missing__(self, word: str) -> bytes:
        self.unknown.append(word)
        return UNKNOWN


class _OddWord(Exception):
    """A word that is not itself again when it is folded twice: only the tokenizer knows its terms."""


class Lexicon:
    """Shared by the threads of a process."""

    def __init__(self) -> None:
        self._own = cast(Connection, apsw.Connection(":memory:"))
        self._tokenizer = Tokenizer(self._own)
        self._lock = threading.Lock()
        self._pieces = _Pieces()
        self._unlisted: set[str] = set()
        self._counted: dict[bytes, str] = {}
        self._alone: Reading | None = None
        """The reading that has all words that are not listed yet."""
        self.state = 0

    def read(self, columns: Sequence[tuple[str, str]]) -> Reading:
        """Contents and tags, each pair one memory. The writer looks whether the state is still the same."""
        reading = Reading(self.state)
        for first in range(0, len(columns), AT_ONCE):
            some = columns[first : first + AT_ONCE]
            with self._lock:
                if len(self._pieces) > CACHED_WORDS:
                    self._begin_anew()
                try:
                    self._read(some, reading)
                except _OddWord:
                    self._read_slowly(some, reading)
                except BaseException:
                    # Ctrl-C, or no memory: what was noted belongs to no text, and what was met is not told.
                    self._begin_anew()
                    raise
        return reading

    def _begin_anew(self) -> None:
        """No word was met: each is on the list of none, as far as anybody knows."""
        self._pieces = _Pieces()
        self._unlisted, self._alone = set(), None

    def _read(self, columns: Sequence[tuple[str, str]], reading: Reading) -> None:
        every = self._tokenizer.columns(list(chain.from_iterable(columns)))
        if not self._unlisted:
            self._alone = reading
        pieces = list(map(self._pieces.__getitem__, every))
        if self._pieces.unknown:
            reading.words |= self._learn(pieces)
            self._alone = reading if self._alone is reading else None
        if self._alone is not reading:
            reading.words.update(filter(self._unlisted.__contains__, every))
        parts = np.frombuffer(b"".join(pieces), dtype="<u2").reshape(-1, 3)
        low = parts[:, :2].tobytes()
        empty = (parts[:, 0] | parts[:, 1] | parts[:, 2]) == 0
        ends: list[int] = np.flatnonzero(empty).tolist()  # no hash is 0: of each text, two boundaries
        counted, start = frozenset(self._counted), 0
        for _, end, last in zip(columns, ends[::2], ends[1::2], strict=True):
            stream = low[NARROW_BYTES * start : NARROW_BYTES * last]
            reading.tokens.append(Tokens(end - start, last - start - 1, stream))
            if counted:
                reading.terms.update([self._counted[held] for held in counted.intersection(pieces[start:last])])
            start = last + 1

    def _learn(self, pieces: list[bytes]) -> set[str]:
        """Put the hashes of words that were not met before where they are missing; those words."""
        unknown, self._pieces.unknown = self._pieces.unknown, []
        hashes = self._tokenizer.pieces(unknown)
        if hashes is None:
            raise _OddWord
        place = -1
        for word, hashed in zip(unknown, hashes, strict=True):
            place = pieces.index(UNKNOWN, place + 1)
            pieces[place] = self._pieces[word] = hashed
        learned = set(unknown)
        self._unlisted |= learned
        return learned

    def _read_slowly(self, columns: Sequence[tuple[str, str]], reading: Reading) -> None:
        counted = frozenset(self._counted.values())
        for pair in columns:
            text = self._tokenizer.text(*pair)
            reading.tokens.append(Tokens(text.content_tokens, text.size, narrow(text.stream)))
            reading.words |= text.words
            reading.terms.update(counted & text.terms)

    def listed(self, words: Iterable[str]) -> None:
        """These words are on the list, for certain."""
        with self._lock:
            self._unlisted.difference_update(words)
            self._alone = None

    def unlisted(self, words: Iterable[str] | None = None) -> None:
        """These words were taken off the list; None: nobody knows which."""
        with self._lock:
            self._unlisted.update(self._pieces if words is None else words)
            self._unlisted.discard(BOUNDARY)
            self._alone = None
            self.state += 1

    def count(self, terms: Iterable[str]) -> None:
        """From now on every write counts these terms."""
        with self._lock:
            self._counted = {piece(term): term for term in terms}
            self.state += 1
