"""From tokens to lexemes, and from our query tree to a tsquery that finds at least what it matches.

The lexemes of a text are our own tokens (those of FTS5's `porter unicode61`): those that a tag holds have the weight A,
the others D. Their positions say nothing: a phrase is proved by the token stream. Every lexeme is quoted; no operator
of a user ever reaches PostgreSQL.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import apsw
import numpy as np

from recollect.domain.memory import Memory
from recollect.domain.query import And, Node, Not, Or, Unit
from recollect.stores.expressions import Run, runs_of
from recollect.stores.scope_terms import scope_text
from recollect.stores.tokens import MARK, Text, Tokenizer, plain, token_hash

LONGEST = 150
"""Longer tokens are cut to so many bytes; the token streams tell them apart."""
LONGEST_NAME = 2_000
"""Longer ones do not fit into a B-tree beside the name of their tenant."""
MOST_BYTES = 1_000_000
"""A tsvector holds hardly more. The rare text beyond it is a candidate of every query."""
POSITION_BYTES = 6
"""What a lexeme takes beside its letters."""
ENDLESS = f"{MARK}endless"
TAGGED = "A"
"""The weight of a lexeme that a tag holds. A lexeme without a position would match every weight, so that all of them
stand at the first; those of older versions stand nowhere, and count as in a tag."""


class Tokens:
    """FTS5's tokenizers behind a lock, for all threads of a store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokenizer = Tokenizer(apsw.Connection(":memory:"))

    def tokens(self, text: str) -> list[str]:
        """The index terms of a text."""
        with self._lock:
            return self._tokenizer.tokens(text)

    def words(self, text: str) -> list[str]:
        """The unstemmed, folded words of a text."""
        with self._lock:
            return self._tokenizer.words(text)

    def text(self, content: str, tags: Iterable[str]) -> Text:
        """Everything the index needs to know of one memory."""
        with self._lock:
            return self._tokenizer.text(plain(content), plain(" ".join(tags)))

    def runs(self, query: Node) -> dict[Unit, Run]:
        """The run of tokens of every unit of a query; InvalidInput for one that would cost too much."""
        with self._lock:
            return runs_of(query, self._tokenizer)


def vector_text(memory: Memory, text: Text, of_tags: Iterable[str]) -> str:
    """The tsvector of a memory: its terms, those of its tags marked, and the tokens of its scope."""
    scope = scope_text(memory).split()
    if sum(len(term.encode()) + POSITION_BYTES for term in text.terms) > MOST_BYTES:
        return _joined([*scope, ENDLESS])
    words = [f"{quoted(lexeme(term))}:1" for term in text.terms]
    marked = [f"{quoted(lexeme(term))}:1{TAGGED}" for term in dict.fromkeys(of_tags)]
    return " ".join([_joined(scope), *words, *marked])


def _joined(lexemes: Iterable[str]) -> str:
    return " ".join(quoted(one) for one in lexemes)


def lexeme(token: str) -> str:
    """A token as it is indexed, cut where it is endless."""
    return token if len(token) <= LONGEST // 4 else token.encode()[:LONGEST].decode(errors="ignore")


def fits_index(name: str) -> bool:
    """Whether an index on names takes this one as it is."""
    return len(name) <= LONGEST_NAME // 4 or len(name.encode()) <= LONGEST_NAME


def counted_name(term: str) -> str:
    """A term as it stands in the table of frequencies: one that is too long by its hash, which no term can be."""
    return term if fits_index(term) else f"{MARK}{hashlib.sha256(term.encode()).hexdigest()}"


def quoted(text: str) -> str:
    """A lexeme in the text of a tsvector or tsquery."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def phrase_bytes(tokens: tuple[str, ...]) -> bytes:
    """What the token stream of a text holds where these tokens follow one another: the low halves of their hashes."""
    return np.array([token_hash(token) & 0xFFFF_FFFF for token in tokens], dtype="<u4").tobytes()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A piece of a tsquery; `exact` when it matches nothing but what it should."""

    text: str
    exact: bool


def unit_query(run: Run, only: str = "") -> Compiled:
    """All tokens of a unit, `only` those of a weight; with several of them their order is still to be proved."""
    parts = [quoted(lexeme(token)) for token in run.tokens]
    if only:
        parts = [f"{part}:{only}" for part in parts]
    if run.open_end:
        parts[-1] += "*" if only else ":*"
    cut = any(lexeme(token) != token for token in run.tokens)
    return Compiled(f"({' & '.join(dict.fromkeys(parts))})", len(run.tokens) == 1 and not cut)


def compiled(node: Node, runs: dict[Unit, Run]) -> Compiled | None:
    """The tsquery of a query, without its scope; None when it asks for nothing."""
    if isinstance(node, And | Or):
        parts = [part for child in node.parts if (part := compiled(child, runs)) is not None]
        if not parts:
            return None
        word = " & " if isinstance(node, And) else " | "
        return Compiled(f"({word.join(part.text for part in parts)})", all(part.exact for part in parts))
    if isinstance(node, Not):
        keep, drop = compiled(node.keep, runs), compiled(node.drop, runs)
        if keep is None or drop is None:
            return keep
        # What is dropped by a guess might have to stay: only what is exact is dropped here.
        return Compiled(f"({keep.text} & !{drop.text})", keep.exact) if drop.exact else Compiled(keep.text, False)
    return unit_query(runs[node]) if runs[node].tokens else None
