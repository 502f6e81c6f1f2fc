"""Reading ahead in a process that stays: the lists of words that many memories hold, before a question needs them, and
the vocabulary, before a question has a word that nobody wrote.

To list a word that a tenth of a large store holds takes longer than the rest of a recall. Which words those are, a
sample of the texts tells: to count all of them would take as long as to list them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

from recollect.stores.sqlite.connection import Connection, Readers, rows
from recollect.stores.sqlite.finding import FOUND_POSTINGS, FOUND_SHARE, LARGE_INDEX
from recollect.stores.sqlite.postings import Postings, View
from recollect.stores.sqlite.words import Lookalikes

SAMPLED_TEXTS = 1_000
SAMPLED_CHARACTERS = 2_000
"""Of each text."""
LEAST_HOLDERS = 3
"""A word that fewer of the sampled texts hold is listed quickly when it is asked for."""
LISTED_ROWS = 4_000_000
"""The bound of what is listed ahead: 24 MB, and about a second of work."""
STEP_ROWS = 100_000
"""What one step lists: some twenty milliseconds."""


class Warming:
    """Lists one word after the other; for a store that has doubled since, once more."""

    def __init__(
        self, readers: Readers, postings: Postings, lookalikes: Lookalikes, tokens: Callable[[str], list[str]]
    ) -> None:
        self._readers = readers
        self._postings = postings
        self._lookalikes = lookalikes
        self._tokens = tokens
        self._sampled = 0
        self._waiting: list[str] = []

    def step(self) -> bool:
        """One bounded piece of the work; whether more is left."""
        with self._readers.reading() as connection:
            view = self._postings.view(connection)
            if view.documents >= max(LARGE_INDEX, 2 * self._sampled):
                self._waiting, self._sampled = self._common(connection, view), view.documents
            if view.documents >= LARGE_INDEX and self._lookalikes.read(connection):
                return True
            listed = 0
            while self._waiting and listed < STEP_ROWS:
                listed += len(self._postings.term(connection, self._waiting.pop(), view).found)
        return bool(self._waiting)

    def _common(self, connection: Connection, view: View) -> list[str]:
        """The terms to list, the commonest last; none so common that it would not find (see `finding`)."""
        numbers = range(1, view.top + 1, max(1, view.top // SAMPLED_TEXTS))
        texts = rows(
            connection,
            "SELECT substr(t.content, 1, ?), t.tags FROM json_each(?) j CROSS JOIN indexed_texts t ON t.row = j.value",
            (SAMPLED_CHARACTERS, json.dumps(list(numbers))),
        )
        holders = Counter(term for content, tags in texts for term in set(self._tokens(f"{content} {tags}")))
        share = view.documents / max(len(texts), 1)
        most = max(FOUND_POSTINGS, FOUND_SHARE * view.documents)
        common = [(term, share * held) for term, held in holders.most_common() if held >= LEAST_HOLDERS]
        useful = [(term, size) for term, size in common if size <= most]
        sums = accumulate(size for _, size in useful)
        return [term for (term, _), together in zip(useful, sums) if together <= LISTED_ROWS][::-1]
