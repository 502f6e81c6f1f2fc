"""From text to index tokens, and the compact stream of them that is kept for every memory.

The stream lets a search count the words of its candidates without reading their texts. A token is kept as a hash of
48 bits, or of its low 32 in a narrow stream: of a million different words, one in four thousand then has a namesake,
and memories that hold the namesake count it too. The streams are derived: `check` compares them with the texts,
`repair` writes them anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import Corrupt
from recollect.domain.scripts import spread

if TYPE_CHECKING:
    from recollect.stores.sqlite.connection import Connection

# Begins every token of the scope column. Texts are indexed without this private character, so that no text can
# ever look like a scope.
MARK = "\U0010f2c7"
MARK_NUMBER = 0x10F2C7

CACHED_WORDS = 200_000
BOUNDARY = "\x01"
"""Ends every column of a stream; no token holds it."""
TOKEN_BYTES = 6
NARROW_BYTES = 4
END = bytes(TOKEN_BYTES)
"""The piece of a boundary; no token has it."""
FIRST_HASH = bytes([1, 0, 0, 0, 0, 0])
ASCII_WORDS = bytes(ord(chr(number).lower()) if number < 128 and chr(number).isalnum() else 32 for number in range(256))
"""What unicode61 makes of ASCII: letters and digits are words, folded, and everything else stands between them."""
ASCII_COLUMNS = bytes(ord(BOUNDARY) if number == ord(BOUNDARY) else ASCII_WORDS[number] for number in range(256))
"""The same, with boundaries between columns kept."""


def plain(text: str) -> str:
    """The text as it is indexed: without the private character that only scopes may use, and with every letter of a
    script without spaces as a word."""
    return text if text.isascii() else spread(text.replace(MARK, " "))


def token_hash(token: str) -> int:
    """48 bits of a token; 0 is kept for the boundaries between columns."""
    return int.from_bytes(piece(token), "little")


@dataclass(frozen=True, slots=True)
class Text:
    """A memory's text columns as the index sees them."""

    content_tokens: int
    size: int
    stream: bytes
    words: frozenset[str]
    terms: frozenset[str]


class Tokenizer:
    """FTS5's own tokenizers, bound to one connection; not to be used by two threads at once."""

    def __init__(self, connection: Connection) -> None:
        self._stem = connection.fts5_tokenizer("porter", ["unicode61"])
        self._fold = connection.fts5_tokenizer("unicode61", [])
        self._known: dict[str, tuple[bytes, str]] = {BOUNDARY: (END, "")}

    def tokens(self, text: str) -> list[str]:
        """The index terms of a text."""
        return self._run(self._stem, plain(text), apsw.FTS5_TOKENIZE_DOCUMENT)

    def query_tokens(self, text: str, prefix: bool) -> list[str]:
        """The index terms of a piece of a query, as FTS5 itself cuts it."""
        flags = apsw.FTS5_TOKENIZE_QUERY | (apsw.FTS5_TOKENIZE_PREFIX if prefix else 0)
        return self._run(self._stem, text, flags)

    def words(self, text: str) -> list[str]:
        """The unstemmed, folded words of a text; those of plain ASCII are cut here, with less work."""
        if text.isascii():
            return text.encode("ascii").translate(ASCII_WORDS).decode("ascii").split()
        return self._run(self._fold, plain(text), apsw.FTS5_TOKENIZE_DOCUMENT)

    def columns(self, texts: Sequence[str]) -> list[str]:
        """The words of several columns, each ended by a boundary; all of them at once where they are plain ASCII."""
        joined = f" {BOUNDARY} ".join([*texts, ""])
        if joined.isascii() and joined.count(BOUNDARY) == len(texts):
            return joined.encode("ascii").translate(ASCII_COLUMNS).decode("ascii").split()
        return [word for text in texts for word in (*self.words(text), BOUNDARY)]

    def text(self, content: str, tags: str) -> Text:
        """Everything the index needs to know of one memory.

        Folding the text once and stemming each word only the first time it is met is half the work of stemming all.
        """
        first, second = self.words(content), self.words(tags)
        words = frozenset(first).union(second)
        if not self._learn(words):
            return self._whole(content, tags, words)
        known = self._known
        stream = stream_of(b"".join([known[word][0] for word in (*first, BOUNDARY, *second, BOUNDARY)]))
        return Text(len(first), len(first) + len(second), stream, words, self.stems(words))

    def stems(self, words: Iterable[str]) -> frozenset[str]:
        """The index terms of words that have been met."""
        known = self._known
        return frozenset([known[word][1] for word in words])

    def _learn(self, words: set[str] | frozenset[str]) -> bool:
        """Stem the words not met before; False for one that is not itself again when folded twice."""
        fresh = words.difference(self._known)
        if len(self._known) + len(fresh) > CACHED_WORDS:
            self._known = {BOUNDARY: (END, "")}
            fresh = words
        for word in fresh:
            found = self.stem(word)
            if found is None:
                return False
            self._known[word] = found
        return True

    def stem(self, word: str) -> tuple[bytes, str] | None:
        """The hash of a folded word's term, and the term; None if the word is not itself again when folded twice."""
        stems = self._run(self._stem, word, apsw.FTS5_TOKENIZE_DOCUMENT)
        return (piece(stems[0]), stems[0]) if len(stems) == 1 else None

    def pieces(self, words: Sequence[str]) -> list[bytes] | None:
        """The hashes of folded words' terms, in one go where all are ASCII; None as `stem` says None."""
        joined = " ".join(words)
        if joined.isascii():
            return [piece(term) for term in self._run(self._stem, joined, apsw.FTS5_TOKENIZE_DOCUMENT)]
        found = [stem[0] for word in words if (stem := self.stem(word)) is not None]
        return found if len(found) == len(words) else None

    def _whole(self, content: str, tags: str, words: frozenset[str]) -> Text:
        """The slow way, which trusts nothing but the tokenizer on the whole text."""
        first, second = self.tokens(content), self.tokens(tags)
        stream = stream_of(b"".join([*map(piece, first), END, *map(piece, second), END]))
        return Text(len(first), len(first) + len(second), stream, words, frozenset(first).union(second))

    def _run(self, tokenizer: Any, text: str, flags: int) -> list[str]:
        data = text.encode("utf-8", "replace")
        return tokenizer(data, flags, None, include_offsets=False, include_colocated=False)


def piece(token: str) -> bytes:
    """The hash of a token as it stands in a stream that is not split yet."""
    hashed = hashlib.blake2b(token.encode(), digest_size=TOKEN_BYTES).digest()
    return hashed if any(hashed) else FIRST_HASH


def stream_of(pieces: bytes) -> bytes:
    """A stream from its pieces: the low 32 bits of all tokens, then their high 16 bits."""
    parts = np.frombuffer(pieces, dtype="<u2").reshape(-1, 3)
    return parts[:, :2].tobytes() + parts[:, 2].tobytes()


def narrow(stream: bytes) -> bytes:
    """The low halves alone, without the boundary at the end: two thirds of the bytes."""
    return stream[: len(stream) // TOKEN_BYTES * NARROW_BYTES - NARROW_BYTES]


class Streams:
    """The narrow token streams of all candidates of one search, end to end, ready for counting."""

    def __init__(self, streams: Sequence[bytes], content_tokens: Sequence[int]) -> None:
        try:
            sizes = np.array([len(stream) // NARROW_BYTES + 1 for stream in streams], dtype=np.int64)
            split = np.array(content_tokens, dtype=np.int64)
            self._low = np.frombuffer(bytes(NARROW_BYTES).join([*streams, b""]), dtype="<u4")
        except (TypeError, ValueError) as error:  # of a wrong length, or of another kind
            raise Corrupt("a memory's token stream is damaged", "run doctor with repair: it is made again") from error
        self._high: NDArray[np.uint16] | None = None
        self._starts = np.concatenate(([0], np.cumsum(sizes)[:-1])) if len(sizes) else sizes
        self._tags_from = self._starts + split + 1
        self.lengths: NDArray[np.float64] = (sizes - 2).astype(np.float64)

    @classmethod
    def wide(cls, streams: Sequence[bytes], content_tokens: Sequence[int]) -> Streams:
        """The same of streams that have the high 16 bits too."""
        made = cls([narrow(stream) for stream in streams], content_tokens)
        high = b"".join([stream[len(stream) // TOKEN_BYTES * NARROW_BYTES :] for stream in streams])
        made._high = np.frombuffer(high, dtype="<u2")
        return made

    def count(self, run: Sequence[int]) -> NDArray[np.float64]:
        """How often a run of token hashes occurs in each candidate, by column."""
        low = [np.uint32(hashed & 0xFFFF_FFFF) for hashed in run]
        places = np.flatnonzero(self._low == low[0])
        if self._high is None and not all(low):  # one word in four billion, not to be told from a boundary
            places = places[:0]
        for step, hashed in enumerate(run):
            # A boundary ends every column, so a run that starts inside never leaves the array unnoticed.
            at = places[places + step < len(self._low)] + step
            held = self._low[at] == low[step]
            if self._high is not None:
                held &= self._high[at] == np.uint16(hashed >> 32)
            places = at[held] - step
        return self._by_column(places)

    def _by_column(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        owners = np.searchsorted(self._starts, places, side="right") - 1
        columns = (places >= self._tags_from[owners]).astype(np.int64)
        return np.bincount(owners * 2 + columns, minlength=2 * len(self._starts)).reshape(-1, 2).astype(np.float64)
