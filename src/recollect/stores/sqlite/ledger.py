"""What a write adds up to: counts that are kept exact inside the same transaction, so that no search has to count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from recollect.domain.errors import StoreTooNew
from recollect.stores.sqlite.connection import Connection, one, rows, whole
from recollect.stores.sqlite.lexicon import Lexicon
from recollect.stores.tokens import Text, Tokenizer

KNOWN_WORDS = 500_000
LOGGED_VECTORS = 20_000
"""A process that missed more changes than this takes the saved index, or reads all vectors anew."""


MERGED_FROM = 16
"""So many texts are indexed before the index is merged a bit: a page for each of them, which is more than it needs."""
MOST_LEFT = 64
"""A transaction with more texts merges by itself; otherwise that is left to the next one."""
MOST_MERGED = 1_000


@dataclass(slots=True)
class Ledger:
    """The sums of one caller's changes; thrown away when they are rolled back."""

    documents: int = 0
    tokens: int = 0
    indexed: int = 0
    """Texts that were entered into the full-text index or taken out of it."""
    namespaces: Counter[str] = field(default_factory=Counter[str])
    terms: Counter[str] = field(default_factory=Counter[str])
    words: set[str] = field(default_factory=set[str])
    unlisted: set[str] = field(default_factory=set[str])
    done: Counter[int] = field(default_factory=Counter[int])
    purge: bool = False
    gaps: bool = False
    """Whether a purge is to clear the unused room of a large file too."""
    logged: bool = False
    rewritten: bool = False

    def add(self, other: Ledger) -> None:
        """Take over the sums of changes that are certain."""
        self.documents += other.documents
        self.tokens += other.tokens
        self.indexed += other.indexed
        self.namespaces.update(other.namespaces)
        self.terms.update(other.terms)
        self.words = (self.words - other.unlisted) | other.words
        self.unlisted |= other.unlisted
        self.done.update(other.done)
        self.purge |= other.purge
        self.gaps |= other.gaps
        self.logged |= other.logged
        self.rewritten |= other.rewritten

    def take_back_texts(self, other: Ledger) -> None:
        """Count against sums that are still to be written, because all texts are being counted anew."""
        self.documents -= other.documents
        self.tokens -= other.tokens
        self.namespaces.subtract(other.namespaces)
        self.terms.subtract(other.terms)


class Writing:
    """The writer's connection with what it knows about the file: common terms, words already listed, models."""

    def __init__(self, connection: Connection, lexicon: Lexicon) -> None:
        self.connection = connection
        self.lexicon = lexicon
        self.tokenizer = Tokenizer(connection)
        self.ledger = Ledger()
        self.total = self.ledger
        """The sums of the transaction so far, where the ledger is one caller's."""
        self.common: frozenset[str] = frozenset()
        self.models: dict[str, int] = {}
        self.has_tombstones = True
        self._words: set[str] = set()
        self._removed: int | None = None
        """How often words have been taken off the list; until it was asked, no word is taken for listed."""
        self._version: int | None = None
        self._seen = -1
        self._unmerged = 0

    def refresh(self) -> None:
        """Inside a fresh transaction: forget what another process may have changed."""
        changed = self.connection.data_version()
        if changed == self._seen:
            return
        version = int(one(self.connection, "PRAGMA user_version"))
        if self._version not in (None, version):
            raise StoreTooNew("a newer recollect has migrated the store", "start this program again with the newer one")
        self._version = version
        removed = counter(self.connection, "words_removed")
        if self._removed not in (None, removed):
            self.forget_words()
        self._removed = removed
        self.reload()

    def reload(self) -> None:
        """Read the small tables that every write consults."""
        common = frozenset(term for (term,) in rows(self.connection, "SELECT term FROM common_terms"))
        if common != self.common:
            self.common = common
            self.lexicon.count(common)
        self.has_tombstones = bool(one(self.connection, "SELECT EXISTS (SELECT 1 FROM tombstones)"))
        self.models = dict(rows(self.connection, "SELECT name, model FROM models"))
        self._seen = self.connection.data_version()

    def forget_words(self) -> None:
        """Nobody knows which words are on the list."""
        self._words.clear()
        self.lexicon.unlisted()

    def forget(self) -> None:
        """After a failed commit nothing in memory can be trusted."""
        self._seen = -1

    def count_text(self, text: Text, namespace: str, sign: int) -> None:
        """Enter a memory's text into the sums, or take it out."""
        ledger = self.ledger
        ledger.documents += sign
        ledger.tokens += sign * text.size
        ledger.indexed += 1
        ledger.namespaces[namespace] += sign
        for term in self.common.intersection(text.terms):
            ledger.terms[term] += sign

    def list_words(self, words: Iterable[str]) -> None:
        """Make new words known to the fuzzy search."""
        self.ledger.words.update(words)

    def unlist_words(self, words: list[str]) -> None:
        """Take words off the list of the fuzzy search."""
        self.connection.executemany("DELETE FROM words WHERE word = ?", [(word,) for word in words])
        self.ledger.unlisted.update(words)
        self.ledger.words.difference_update(words)
        self._words.difference_update(words)
        self.lexicon.unlisted(words)

    def settle(self, ledger: Ledger) -> None:
        """Write the sums of the whole transaction, just before it commits."""
        self._unmerged += ledger.indexed
        if ledger.indexed > MOST_LEFT:
            self.merge()
        execute = self.connection.execute
        for name, change in (("documents", ledger.documents), ("tokens", ledger.tokens)):
            if change:
                execute("UPDATE counters SET value = value + ? WHERE name = ?", (change, name))
        for namespace, change in ledger.namespaces.items():
            if not change:
                continue
            execute(
                "INSERT INTO namespaces VALUES (?, ?)"
                " ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
                (namespace, change),
            )
            if change < 0:
                execute("DELETE FROM namespaces WHERE namespace = ? AND memories <= 0", (namespace,))
        changed = [(change, term) for term, change in ledger.terms.items() if change]
        if changed:
            self.connection.executemany("UPDATE common_terms SET memories = memories + ? WHERE term = ?", changed)
            if any(change < 0 for change, _ in changed):
                execute("DELETE FROM common_terms WHERE memories <= 0")  # a word that nobody says any more is not kept
                if self.connection.changes():
                    self.reload()
        for model, change in ledger.done.items():
            execute("UPDATE models SET done = done + ? WHERE model = ?", (change, model))
        fresh = ledger.words.difference(self._words)
        if fresh:
            execute("INSERT OR IGNORE INTO words (word) SELECT value FROM json_each(?)", (json.dumps(sorted(fresh)),))
        if ledger.unlisted:
            execute("UPDATE counters SET value = value + 1 WHERE name = 'words_removed'")
        if ledger.purge:
            execute("UPDATE counters SET value = 1 WHERE name = 'purge'")
            execute("UPDATE counters SET value = value + 1 WHERE name = 'purges'")
            execute("UPDATE models SET saved = NULL")
        if ledger.rewritten:
            execute("INSERT INTO counters VALUES ('rewrites', 1) ON CONFLICT DO UPDATE SET value = value + 1")
        if ledger.logged:
            execute(
                "DELETE FROM vector_log WHERE sequence <= (SELECT max(sequence) FROM vector_log) - ?", (LOGGED_VECTORS,)
            )

    @property
    def is_unmerged(self) -> bool:
        """Whether the last transactions have left something to `merge`."""
        return self._unmerged >= MERGED_FROM

    def merge(self) -> None:
        """Merge segments of the full-text index, a little at a time, so that no commit takes much longer than others.

        Left to itself FTS5 merges hundreds of pages at every tenth commit or so.
        """
        if self.is_unmerged:
            pages, self._unmerged = min(self._unmerged, MOST_MERGED), 0
            self.connection.execute("INSERT INTO fulltext (fulltext, rank) VALUES ('merge', ?)", (pages,))

    def committed(self, ledger: Ledger) -> None:
        """Remember what is now certain, as long as nobody else can have written."""
        self._seen = self.connection.data_version()
        if ledger.unlisted and self._removed is not None:
            self._removed += 1
        if len(self._words) + len(ledger.words) > KNOWN_WORDS:
            self._words.clear()
        self._words |= ledger.words
        self.lexicon.listed(ledger.words)


def counter(connection: Connection, name: str) -> int:
    """One exact count."""
    return whole(one(connection, "SELECT value FROM counters WHERE name = ?", (name,)) or 0)
