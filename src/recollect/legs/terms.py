"""What the words of a text are called in an index."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ports import TextIndex


def terms_of(index: TextIndex, words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each word with its index terms: in one go where every word is plainly one term."""
    if all(word.isascii() and word.isalnum() for word in words):
        together = index.tokens(" ".join(words))
        if len(together) == len(words):
            return [(word, [term]) for word, term in zip(words, together)]
    return [(word, index.tokens(word)) for word in words]
