"""A number that texts share if they may say the same: what is compared before a write is found by it, at any size.

It is made of the beginnings of all words that two such texts must have in common, in whatever form, order and company;
a text without any has the number of its very words. Texts of other meaning share one by chance:
`stages/similarity.py` decides. Stores keep the number of every memory.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from recollect.domain.memory import same_text
from recollect.domain.vocabulary import (
    BARE_NEGATIONS,
    BE,
    CALLS,
    CONTRACTIONS,
    DROPPED,
    IMPORTANT,
    LABELS,
    NUMBERS,
    PERSONS,
    PHRASES,
    PREPOSITIONS,
    RELATIONS,
    SAME,
    UNITS,
    WEAK,
    stem,
)

LONGEST = 8_000
"""Longer texts say the same only if they are the same; this is twice as many as are compared in any other way."""
KNOWN_WORDS = 100_000
ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
PART = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
WITH_DIGITS = re.compile(rf"\b(?:{'|'.join(word for word in SAME if not word.isalpha() and word.isalnum())})\b")


def gist(content: str) -> int:
    """A 63-bit number, equal for texts that count as the same and for texts that may say the same."""
    text = same_text(content)
    return _gist(text) if len(text) <= LONGEST else _number(text)


@lru_cache(maxsize=1024)  # asked for in turn by who compares, by the store that looks and by the store that writes
def _gist(text: str) -> int:
    if not text.isascii():
        text = ZERO_WIDTH.sub("", unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")
    if "," in text:
        text = THOUSANDS.sub("", text)
    if "8" in text:
        text = WITH_DIGITS.sub(lambda found: SAME[found[0]], text)
    parts = set(map(_known.__getitem__, PART.findall(text)))
    parts.discard("")
    return _number(" ".join(sorted(parts)) if parts else text)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class _Known(dict[str, str]):
    """What every word met so far adds to a gist."""

    def __missing__(self, word: str) -> str:
        if len(self) >= KNOWN_WORDS:
            self.clear()
        self[word] = part = _part(word)
        return part


def _roots(word: str) -> tuple[str, str]:
    """A word's root if it is a common word, and if it is a name."""
    return stem(word)[0], stem(word, plural=False)[0]


def _all_roots() -> frozenset[str]:
    """The roots of all words that may be dropped, or be something else in another place of a sentence."""
    phrases = " ".join((*PHRASES, *PHRASES.values(), *LABELS, *CALLS, *CONTRACTIONS.values())).split()
    groups = (BE, DROPPED, PREPOSITIONS, WEAK, RELATIONS, RELATIONS.values(), UNITS, UNITS.values(), IMPORTANT)
    words = {*phrases, "always", "matter", *(word for group in groups for word in group)}
    words |= {SAME[word] for word in words if word in SAME}  # "min" is a unit, or the minimum
    return frozenset(root for word in words for root in _roots(word))


_DROPPED_ROOTS = _all_roots()
_known = _Known()


def _part(word: str) -> str:
    """The beginning that all forms of a word share; nothing for words that may be missing.

    A root keeps the first three letters of its word, but for the i of "flies", which is the y of "fly".
    """
    if "'" in word and word not in PERSONS and word not in CONTRACTIONS:
        word = word.removesuffix("n't") if word.endswith("n't") else word.split("'")[0]
    if word in PERSONS or word in CONTRACTIONS or word in BARE_NEGATIONS:
        return ""
    if word in NUMBERS or word.isdigit():
        return NUMBERS.get(word, word)
    word = SAME.get(word, word)
    if not _DROPPED_ROOTS.isdisjoint(_roots(word)):
        return ""
    if not word.isascii():  # has no other forms, and without spaces it may be a sentence
        return word
    if len(word) < 3 or (len(word) == 4 and word.endswith(("xes", "zes"))):  # "ax" is the root of "axes"
        return ""
    return word[:2] + ("i" if word[2] == "y" else word[2])
