"""Reading a text for comparison: the words that carry its meaning, in order, with equivalent wordings made equal.

Only words of `domain/vocabulary.py` are dropped or equated. Every other word counts as meaningful, so that an unknown
word can keep two texts apart but never bring them together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

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
    Form,
    stem,
)

Kind = Literal["word", "number", "code", "symbol", "relation"]


@dataclass(frozen=True, slots=True)
class Word:
    """One meaningful word. `term` is what is compared; the rest tells how it stood in the sentence."""

    term: str
    kind: Kind = "word"
    lemma: str = ""
    """The surface form without plural s: two base forms with the same stem must also have the same lemma."""
    form: Form = "base"
    passive: bool = False
    """A form of "be" stands before it."""
    lead: str = ""
    """The dropped preposition before it."""
    apart: bool = True
    """Something (a dropped word, punctuation, the beginning) separates it from the meaningful word before."""
    weak: bool = False
    """May be missing from one of two texts that say the same."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as the comparison sees it."""

    words: tuple[Word, ...]
    persons: frozenset[str] = frozenset()
    question: bool = False
    labelled: bool = False
    """Some of it stands before a colon: a speaker, a heading. What moves across it changes its part."""

    @property
    def terms(self) -> frozenset[str]:
        return frozenset(word.term for word in self.words)

    @property
    def strong(self) -> tuple[Word, ...]:
        return tuple(word for word in self.words if not word.weak)


LIKE_LEADS = frozenset(
    frozenset(pair.split("-"))
    for pair in ["in-on", "in-at", "on-at", "in-into", "to-into", "on-onto", "to-onto", "of-for", "of-in"]
)
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
LABEL = re.compile(
    rf"^\s*(?:[-*•]\s+)?(?:(?:{'|'.join(LABELS)})\s*:"
    rf"|(?:please\s+)?(?:{'|'.join(CALLS)})(?:,|\s+(?:that|to))(?=\s))\s*",
    re.IGNORECASE,
)
ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
OUTER = "\"'`()[]{}<>.,;:!?*…“”‘’«»—–"
CODE_MARKS = re.compile(r"[_/\\@=|{}$~]|::|\(\)|\w\.\w")
PLAIN_NUMBER = re.compile(r"^([$€£]?)([+-]?\d+(?:,\d{3})*(?:\.\d+)?)(%|[^\W\d_]*)$")
RATE = re.compile(r"^(.+)/([^\W\d_]+)$")
LANGUAGE = re.compile(r"^[A-Za-z](?:\+\+|#)$")
HAS_WORDS = re.compile(r"\w")
DIGIT = re.compile(r"\d")
LETTERS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|[^\w\s]", re.UNICODE)


@dataclass(slots=True)
class _Sentence:
    """What has been read so far, and what the next meaningful word inherits from the dropped words before it."""

    words: list[Word] = field(default_factory=list[Word])
    persons: set[str] = field(default_factory=set[str])
    lead: str = ""
    passive: bool = False
    apart: bool = True
    before: str = ""
    """The raw word before, dropped or not."""
    fresh: bool = True
    """A sentence begins here: a capital says nothing."""

    def add(self, term: str, kind: Kind = "word", lemma: str = "", form: Form = "base", weak: bool = False) -> None:
        self.words.append(Word(term, kind, lemma, form, self.passive, self.lead, self.apart, weak))
        self.lead, self.passive, self.apart = "", False, False

    def drop(self) -> None:
        self.apart = True

    def pause(self) -> None:
        """Punctuation: a preposition with nothing after it belongs to the verb ("sign in") and means something."""
        if self.lead:
            lead, self.lead = self.lead, ""
            self.add(lead, lemma=lead)
        self.passive, self.apart = False, True


@lru_cache(maxsize=1024)  # what one text is compared with, the next one often is too
def read(text: str) -> Reading:
    """The meaningful words of a text. Total: any string has a reading, perhaps an empty one."""
    text = ZERO_WIDTH.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'").replace("—", " — ")
    question = any(chunk.rstrip("\"')").endswith("?") for chunk in text.split())
    text = LABEL.sub("", text)
    labelled = any(chunk.rstrip("*_").endswith(":") for chunk in text.split())
    text = PHRASE.sub(lambda phrase: PHRASES[phrase[0].lower()], text)
    sentence = _Sentence()
    for chunk in text.split():
        bare = chunk.strip(OUTER)
        if chunk[:1] in '([{"“—–':
            sentence.pause()
        _read_chunk(sentence, bare if HAS_WORDS.search(bare) else chunk)
        sentence.fresh = chunk[-1:] in ".:!?" or not HAS_WORDS.search(chunk)
        if chunk[-1:] in '.,;:!?)]}"”':
            sentence.pause()
    sentence.pause()
    return Reading(_predicates(sentence.words), frozenset(sentence.persons), question, labelled)


def _read_chunk(sentence: _Sentence, chunk: str) -> None:
    """Tell what a stretch without spaces is: an operator, a number, a name from code, or plain words."""
    if chunk.isascii() and chunk.isalpha() and chunk.islower():  # most are: none of what follows can hold
        for part in _plain_words(chunk):
            _read_word(sentence, part, name=False)
    elif not HAS_WORDS.search(chunk):
        _read_symbols(sentence, chunk)
    elif LANGUAGE.match(chunk) or (chunk == "A" and not sentence.fresh):
        sentence.add(chunk.casefold(), "code")
    elif (rate := RATE.match(chunk)) and rate[2].casefold() in UNITS:
        _read_chunk(sentence, rate[1])
        sentence.add(UNITS[rate[2].casefold()], "number")
    elif DIGIT.search(chunk):
        _read_number(sentence, chunk)
    elif chunk.casefold() == "and/or":
        sentence.add("or", "relation")
    elif CODE_MARKS.search(chunk) or (chunk[0] == "-" and len(chunk) > 1):
        if chunk.casefold() not in ("e.g", "i.e"):
            sentence.add(chunk, "code")
    else:
        name = chunk.isupper() or (chunk[0].isupper() and not sentence.fresh)
        for part in _plain_words(chunk):
            _read_word(sentence, part, name and not part.endswith("days"))


def _read_symbols(sentence: _Sentence, chunk: str) -> None:
    for character in chunk:
        if character in "<>" or unicodedata.category(character).startswith("S"):
            sentence.add(character, "symbol")
        else:
            sentence.pause()


def _read_number(sentence: _Sentence, chunk: str) -> None:
    lowered = chunk.casefold()
    match = PLAIN_NUMBER.match(lowered)
    if lowered in SAME:
        root, lemma, _ = stem(SAME[lowered])
        sentence.add(root, lemma=lemma)
    elif match is None:
        sentence.add(chunk if CODE_MARKS.search(chunk) else lowered, "number")
    else:
        sentence.add(match[2].replace(",", ""), "number")
        for unit in (match[1], match[3]):
            if unit and unit not in ("st", "nd", "rd", "th"):
                sentence.add(UNITS.get(unit, unit), "number")


def _plain_words(chunk: str) -> Iterator[str]:
    """Lower-case words of a chunk without digits: contractions spelled out, hyphens opened."""
    for part in LETTERS.findall(chunk):
        lowered = part.casefold()
        if lowered in CONTRACTIONS:
            yield from CONTRACTIONS[lowered].split()
        elif lowered.endswith("n't"):
            yield from (lowered[:-3], "not")
        elif lowered in BARE_NEGATIONS:
            yield from (lowered[:-2], "not")
        elif lowered.endswith("'ll"):
            yield from (lowered[:-3], "will")
        elif "'" in lowered and lowered not in PERSONS:
            yield lowered.split("'")[0]
        else:
            yield lowered


def _read_word(sentence: _Sentence, word: str, name: bool) -> None:
    """`name`: it is written as a proper name or acronym, whose final s is no plural ("Teams", "DNS")."""
    before, sentence.before = sentence.before, word
    if word in PERSONS:
        sentence.persons.add(PERSONS[word])
        sentence.drop()
    elif word in BE:
        sentence.pause()
        sentence.passive = True
    elif word in DROPPED or (word == "always" and before in ("", "we", "you", "i", "should", "must", "to")):
        sentence.drop()
    elif word in PREPOSITIONS:
        passive = sentence.passive
        sentence.pause()
        sentence.lead, sentence.passive = word, passive
    elif word in RELATIONS:
        sentence.pause()
        sentence.add(RELATIONS[word], "relation")
    elif len(word) == 1 and not word.isalnum():
        _read_symbols(sentence, word)
    else:
        _read_meaningful(sentence, word, name)


def _read_meaningful(sentence: _Sentence, word: str, name: bool) -> None:
    after_number = bool(sentence.words) and sentence.words[-1].kind == "number" and not sentence.apart
    if word in NUMBERS:
        sentence.add(NUMBERS[word], "number")
    elif word in UNITS and (after_number or len(word) > 3):
        sentence.add(UNITS[word], "number")
    elif word in SAME:
        root, lemma, _ = stem(SAME[word])
        sentence.add(root, lemma=lemma, form=stem(word)[2])
    else:
        root, lemma, form = stem(word, plural=not name)
        sentence.add(root, lemma=lemma, form=form, weak=word in WEAK)


def _predicates(words: list[Word]) -> tuple[Word, ...]:
    """ "matters" and "is crucial" say the same as "is important", but only as predicates: a critical bug is not one."""
    read: list[Word] = []
    for place, word in enumerate(words):
        last = place + 1 == len(words) or words[place + 1].apart
        predicate = word.lemma == "matter" if place else False
        if last and (predicate or (word.passive and word.lemma in IMPORTANT)):
            word = replace(word, term="important", lemma="important", form="base", passive=False)
        read.append(word)
    return tuple(read)
