"""Scripts that are written without spaces: where no space tells words apart, every letter is indexed as a word, and
questions ask for the pieces of their runs, each as a phrase. Nothing needs to know the words of the language.
"""

from __future__ import annotations

import re

# Letters that mean a syllable or more: Han, kana, bopomofo, Hangul (whose spaces part phrases, not words).
_DENSE = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
# Alphabets of South-East Asia: Thai, Lao, Burmese, Khmer; signs above and below letters are nothing to an index.
_SPELT = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6\u1000-\u102a\u1780-\u17b3"
_SIGNS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u17dd"

_LETTERS = re.compile(f"[{_DENSE}{_SPELT}]+")
_RUN = re.compile(f"(?P<dense>[{_DENSE}]+)|(?P<spelt>[{_SPELT}][{_SPELT}{_SIGNS}]*)")
_SIGN = re.compile(f"[{_SIGNS}]")

DENSE_PIECE = 2
SPELT_PIECE = 4


def has_unspaced(text: str) -> bool:
    """Whether any of it is written without spaces."""
    return not _is_western(text) and _LETTERS.search(text) is not None


def spread(text: str) -> str:
    """The text with every letter of such a script as a word of its own."""
    return text if _is_western(text) else _LETTERS.sub(lambda run: f" {' '.join(run.group())} ", text)


def letters(text: str) -> list[int]:
    """Where the letters of such scripts stand in it: each is a word of the index."""
    return [] if _is_western(text) else [place for run in _LETTERS.finditer(text) for place in range(*run.span())]


def _is_western(text: str) -> bool:
    """Told without a look at every letter for most texts: their accents, dashes and quotes are all in one old table."""
    if text.isascii():
        return True
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def pieces_of(word: str) -> list[str]:
    """A word of a question in pieces: overlapping pairs of dense letters, fours of spelt ones; the rest as it is."""
    found: list[str] = []
    place = 0
    for run in _RUN.finditer(word):
        found.append(word[place : run.start()])
        place = run.end()
        bare = _SIGN.sub("", run.group())
        size = DENSE_PIECE if run.lastgroup == "dense" else SPELT_PIECE
        found.extend(bare[start : start + size] for start in range(max(1, len(bare) - size + 1)))
    return [piece for piece in (*found, word[place:]) if piece]
