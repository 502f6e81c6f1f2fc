"""Concepts: the names and terms by which one memory leads to another, found by rule, without a language model.

A concept is a capitalised span ("Bank of Norway"), an identifier (FL-4031, app.config) or a quoted name.
"""

from __future__ import annotations

import re
from functools import lru_cache

from recollect.domain.subjects import MAX_NAME_WORDS, Words, fold, name
from recollect.stages.stopwords import is_stop_word

MAX_CHARACTERS = 4_000
MOSTLY_CAPITAL = 0.31
"""From this share of capitalised words inside sentences on, a capital says little (German nouns): only spans count."""

_WORD = re.compile(r"[^\W_](?:[\w'’&./:@+-]*[\w+])?")
_PLAIN = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?:]['\"”’)\]]*\s*$|\n\s*$|^\s*$|[-*•]\s*$")
_IDENTIFIER = re.compile(r"(?=.*[A-Za-z])(?=.*[\d_./@:]).{3,}|[a-z]+[A-Z]\w*")
_QUOTED = re.compile(r"[\"“‘`]([^\"”’`\n]{2,60})[\"”’`]")
_INSIDE = frozenset(
    ["of", "the", "de", "la", "le", "von", "van", "der", "den", "del", "and", "for", "in", "at", "on", "&", "y"]
)


@lru_cache(maxsize=4096)
def concepts(text: str) -> tuple[Words, ...]:
    """The concepts of a text in the order they first occur, folded, without doubles."""
    text = text[:MAX_CHARACTERS]
    words = _words(text)
    inner = [word for word, opening in words if not opening and not is_stop_word(word.lower())]
    loose = sum(word[0].isupper() for word in inner) > MOSTLY_CAPITAL * max(len(inner), 1)
    seen_inside = {word for word, opening in words if not opening and word[0].isupper()}
    found: dict[Words, None] = {}
    for whole, opening in _spans(words):
        span = whole[1:] if loose and opening else whole
        says_little = loose or (opening and whole[0] not in seen_inside) or is_stop_word(whole[0].lower())
        if len(span) > 1 or (span and not says_little):
            found[name(" ".join(span))] = None
    odd = [word for word, _ in words if not (word.islower() and word.isalpha())]
    found.update((fold(word), None) for word in odd if _IDENTIFIER.fullmatch(word))
    found.update((name(quoted), None) for quoted in _QUOTED.findall(text))
    return tuple(one for one in found if len(one) <= MAX_NAME_WORDS and len("".join(one)) > 2)


def _words(text: str) -> list[tuple[str, bool]]:
    """The words, and whether each opens a sentence; what only a blank parts from the word before does not."""
    words: list[tuple[str, bool]] = []
    end = len(text)  # nothing stands before the first word
    for found in _WORD.finditer(text):
        start = found.start()
        opens = text[end:start] != " " and _SENTENCE_END.search(text[max(0, start - 4) : start]) is not None
        words.append((found[0], opens))
        end = found.end()
    return words


def _spans(words: list[tuple[str, bool]]) -> list[tuple[list[str], bool]]:
    """Runs of capitalised words, small words inside allowed; a new sentence begins a new run."""
    spans: list[tuple[list[str], bool]] = []
    current: list[str] = []
    opening = False
    for word, opens in [*words, ("", True)]:
        if current and (opens or not (word[0].isupper() or word[0].isdigit() or word.lower() in _INSIDE)):
            while current and current[-1].lower() in _INSIDE:
                current.pop()
            if current:
                spans.append((current, opening))
            current = []
        if word and word[0].isupper() and not current:
            # "The" or "Then" at the head of a sentence is no part of a name.
            if not (opens and is_stop_word(word.lower())):
                current, opening = [word], opens
        elif current:
            current.append(word)
    return spans


def mentions(words: Words, wanted: Words) -> bool:
    """Whether a name occurs in a text, word by word."""
    size = len(wanted)
    if not wanted or wanted[0] not in words:  # nearly always so, and told without a look at every place
        return False
    return any(words[place : place + size] == wanted for place in range(len(words) - size + 1))


def names(text: str) -> set[Words]:
    """Everything in a text that may be the subject of another memory: its concepts, and every run of two to six words
    that begins with a capital or a digit, so that a name is recognised inside a longer one as well."""
    text = text[:MAX_CHARACTERS]
    written = _PLAIN.findall(text)
    words = tuple(word.casefold() for word in written)
    runs = (
        words[place : place + size]
        for place, word in enumerate(written)
        if word[0].isupper() or word[0].isdigit()
        for size in range(2, MAX_NAME_WORDS + 1)
    )
    return {run for run in runs if len(run) > 1}.union(concepts(text))
