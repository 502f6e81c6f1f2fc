"""Slips of the finger: which words of a question may be misspelt, what they may have meant, and the question read so.

Pure. What the index knows of the words comes as arguments (`legs.spelling` asks it). A word that stands in quotes, an
identifier, an acronym or a number is never touched.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace

from recollect.domain.query import And, Node, Or, Term
from recollect.domain.question import Question
from recollect.domain.scripts import has_unspaced
from recollect.domain.trigrams import trigrams
from recollect.stages.parse import MAX_CHARACTERS, MAX_WORDS, join
from recollect.stages.stopwords import is_stop_word

# A word by itself: what touches digits, dots, slashes and the like is a name of something else.
_WORD = re.compile(r"(?<![\w.@/\\#$:+=-])[^\W\d_]+(?!\w|[@/\\#$:+=(]|[.-]\w)")

# Of all the letters that can be put in a place, one was; neighbours can be exchanged, a letter doubled or left out in
# one way only. And people rarely get the first letter wrong.
_ONE_OF_MANY = 0.1
_FIRST_LETTER = 0.1
# What is less likely, by the slip and by the number of memories that hold the word, is rather a word nobody wrote yet.
_LEAST_LIKELY = 0.1


def folded(word: str) -> str:
    """As the index's vocabulary spells it: lower case, without accents."""
    lower = word.lower()
    if lower.isascii():
        return lower
    return "".join(sign for sign in unicodedata.normalize("NFD", lower) if not unicodedata.combining(sign))


def suspects(question: Question, shortest: int) -> tuple[str, ...]:
    """The first ordinary words of a plain question that are long enough to be told apart, folded, distinct."""
    if not question.plain:
        return ()
    words = (match[0] for match in _WORD.finditer(question.text[:MAX_CHARACTERS]))
    long_enough = dict.fromkeys(folded(word) for word in words if len(word) >= shortest and _is_ordinary(word))
    return tuple(long_enough)[:MAX_WORDS]


def least_likeness(word: str) -> float:
    """The trigram Jaccard that a word one slip away has at least, if any: four trigrams are broken at the worst."""
    size = len(trigrams(word))
    return max(size - 4, 0.5) / (size + 4)


def slip(written: str, meant: str) -> float:
    """How likely one slip makes `written` of `meant`; 0 where it takes more than one. Both are folded and differ."""
    first = next((place for place, (a, b) in enumerate(zip(written, meant)) if a != b), min(len(written), len(meant)))
    likely = 1.0 if first else _FIRST_LETTER
    ours, theirs = written[first:], meant[first:]
    if len(ours) == len(theirs):
        if ours[2:] == theirs[2:] and ours[:2] == theirs[1::-1]:
            return likely
        return likely * _ONE_OF_MANY if ours[1:] == theirs[1:] else 0.0
    if ours == theirs[1:]:
        return likely
    if ours[1:] == theirs:
        return likely if ours[0] == written[first - 1 : first] else likely * _ONE_OF_MANY
    return 0.0


def most_likely(written: str, frequencies: Mapping[str, float]) -> str | None:
    """Of the words that memories hold the one that was meant: by the slip, and by how often it is written at all."""
    likely = {word: slip(written, word) * count for word, count in frequencies.items()}
    enough = [word for word in likely if likely[word] >= _LEAST_LIKELY]
    return min(enough, key=lambda word: (-likely[word], word), default=None)


def respelt(question: Question, meant: Mapping[str, str]) -> Question:
    """The plain question with these words (folded) read as those, and a note for each."""
    if not meant:
        return question
    otherwise = "" if question.prose else "; put it in quotes to have it as it is"  # in prose quotes mean nothing
    notes = [f"read {word!r} as {other!r}{otherwise}" for word, other in meant.items()]
    return replace(
        question,
        text=_mended(question.text, meant),
        words=tuple(_mended(word, meant) for word in question.words),
        query=(_mended_node(question.query, meant) if question.query else None) or question.query,
        notes=(*question.notes, *notes),
    )


def _mended(text: str, meant: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: _in_case(match[0], meant.get(folded(match[0]))), text)


def _mended_node(node: Node, meant: Mapping[str, str]) -> Node | None:
    if isinstance(node, Term):
        text = _mended(node.text, meant)
        return None if text != node.text and is_stop_word(text) else Term(text)
    if isinstance(node, And | Or):
        kept = [part for each in node.parts if (part := _mended_node(each, meant)) is not None]
        return join("or" if isinstance(node, Or) else "and", kept)
    return node  # what an alias added; a plain question excludes nothing


def _is_ordinary(word: str) -> bool:
    """Neither a stop word nor an acronym nor camelCase, and in a script whose words have spaces around them."""
    return word[1:] == word[1:].lower() and not is_stop_word(word) and not has_unspaced(word)


def _in_case(written: str, meant: str | None) -> str:
    return written if meant is None else meant.capitalize() if written[0].isupper() else meant
