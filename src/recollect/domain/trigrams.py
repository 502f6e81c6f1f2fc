"""How alike two words are spelt: by the three-letter pieces that they share."""

from __future__ import annotations


def trigrams(word: str) -> frozenset[str]:
    """The three-letter pieces of a word with "$" at both ends; an empty word has none."""
    padded = f"${word}$"
    return frozenset(padded[start : start + 3] for start in range(len(padded) - 2))


def jaccard(ours: frozenset[str], theirs: frozenset[str]) -> float:
    """|shared| / |all|; 0 where there are none at all."""
    return len(ours & theirs) / len(ours | theirs) if ours or theirs else 0.0
