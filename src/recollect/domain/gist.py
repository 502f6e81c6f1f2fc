"""A number that texts share if they may say the same: what is compared before a write is found by it, at any size.

It is the sum of numbers for the beginnings of all words that two such texts must have in common, in whatever form and
order, and as often; a text without any has the number of its very words. Texts of other meaning share one by chance:
`stages/similarity.py` decides. Stores keep the number of every memory, so it has to be found quickly.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from recollect.domain.memory import same_text
from recollect.domain.vocabulary import MAY_BE_MISSING, NUMBERS, SAME, stem

LONGEST = 8_000
"""Longer texts say the same only if they are the same; this is twice as many as are compared in any other way."""
KNOWN_WORDS = 100_000
LONGEST_KNOWN = 40
"""Longer words are hardly ever met again, and would fill the memory."""
BITS = (1 << 63) - 1
ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
WORD = re.compile(r"[^\W_]+")
PART = re.compile(r"[^\W\d_]+|\d+")
THOUSANDS = re.compile(r",(?=\d{3})(?<=\d,)")
FOLDED = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128)).encode().ljust(256)
"""ASCII in lower case, with a space for all that divides words."""
UNSURE = re.compile("[a-z][xz]e")
"""So may begin a word of two letters in another form: "axes", of which "ax" is the root."""


def gist(content: str) -> int:
    """A 63-bit number, equal for texts that count as the same and for texts that may say the same."""
    if len(content) <= LONGEST and content.isascii():  # as mostly: neither spaces nor case are worth a look
        return _gist(content)
    text = same_text(content)
    return _gist(text) if len(text) <= LONGEST else _number(text)


@lru_cache(maxsize=1024)  # asked for in turn by who compares, by the store that looks and by the store that writes
def _gist(text: str) -> int:
    plain = THOUSANDS.sub("", text) if "," in text else text
    if plain.isascii():
        words = plain.encode().translate(FOLDED).decode().split()
    else:
        words = WORD.findall(ZERO_WIDTH.sub("", unicodedata.normalize("NFKC", plain)).casefold())
    return sum([_plain[word[:3]] or _known[word] for word in words]) & BITS or _number(same_text(text))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class _Plain(dict[str, int]):
    """What words add that begin like no word that may be missing: their first letters tell. There are few of them, so
    that they stay in the processor's cache. 0 for all others."""

    def __missing__(self, first: str) -> int:
        if len(self) >= KNOWN_WORDS:
            self.clear()
        first_of_form = _first(first)
        is_plain = len(first) == 3 and first.isascii() and first.isalpha() and first_of_form not in _DROPPED_FIRST
        self[first] = worth = _number(first_of_form) if is_plain and not UNSURE.fullmatch(first) else 0
        return worth


class _Known(dict[str, int]):
    """What every other word met so far adds."""

    def __missing__(self, word: str) -> int:
        if len(self) >= KNOWN_WORDS:
            self.clear()
        told = SAME.get(word, word)
        added = _worth(told) if told.isalpha() else sum(map(_worth, PART.findall(told)))
        if len(word) <= LONGEST_KNOWN:
            self[word] = added
        return added


def _worth(word: str) -> int:
    beginning = _beginning(word)
    return _number(beginning) if beginning else 0


def _beginning(word: str) -> str:
    """What all forms of a word share; nothing of words that may be missing."""
    if word in NUMBERS or word.isdigit():
        return NUMBERS.get(word, word)
    left = word.removesuffix("n")  # of "isn't", without its "not"
    if not _DROPPED_ROOTS.isdisjoint((*_roots(word), *_roots(left))):
        return ""
    if not word.isascii():  # has no other forms, and without spaces it may be a sentence
        return word
    return "" if len(word) < 3 or (len(word) == 4 and UNSURE.match(word)) else _first(word)


def _first(word: str) -> str:
    """The letters that a root keeps of its word, but for the i of "flies", which is the y of "fly"."""
    return f"{word[:2]}i" if word[2:3] == "y" else word[:3]


def _roots(word: str) -> tuple[str, str]:
    """A word's root if it is a common word, and if it is a name."""
    return stem(word)[0], stem(word, plural=False)[0]


_DROPPED_ROOTS = frozenset(root for word in MAY_BE_MISSING for root in _roots(word))
_DROPPED_FIRST = frozenset(_first(one) for one in (*_DROPPED_ROOTS, *SAME, *NUMBERS))
_plain, _known = _Plain(), _Known()
