"""FTS5's own tokenizers, so that this store splits, folds and stems exactly as an FTS5 table does; letters of scripts
without spaces are parted before, as in every store."""

from __future__ import annotations

import apsw

from recollect.domain.memory import Memory
from recollect.domain.scripts import spread


class Tokens:
    """The tokenizers of one private connection. Not for two threads at once."""

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")
        self._stemmed = self._connection.fts5_tokenizer("porter", ["unicode61"])
        self._plain = self._connection.fts5_tokenizer("unicode61", [])

    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order: `porter unicode61`."""
        return _run(self._stemmed, text)

    def words(self, text: str) -> list[str]:
        """The words of a text as people wrote them, folded but not stemmed: `unicode61`."""
        return _run(self._plain, text)


def text_columns(memory: Memory) -> tuple[str, str]:
    """What the full text of a memory is made of, in the order of ports.TEXT_COLUMNS."""
    return memory.content, " ".join(memory.tags)


def _run(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    # A lone surrogate has no UTF-8; the "?" that stands in for it separates words.
    encoded = spread(text).encode("utf-8", "replace")
    tokens = tokenizer(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in tokens]
