"""Reading a text for comparison: the words that carry its meaning, in order, with equivalent wordings made equal.

Only words listed here are dropped or equated. Every other word counts as meaningful, so that an unknown word can
keep two texts apart but never bring them together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

Kind = Literal["word", "number", "code", "symbol", "relation"]
Form = Literal["base", "ed", "ing"]


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


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _table(lines: str) -> dict[str, str]:
    """Lines of the form "canonical: variant variant" as a lookup from variant to canonical."""
    table: dict[str, str] = {}
    for line in lines.strip().splitlines():
        canonical, variants = line.split(":")
        for variant in variants.split():
            table[variant] = canonical.strip()
    return table


BE = _set("is are be am being been gets")
DROPPED = _set(
    "a an the this that these those which it its and has have do does use uses used using utilize utilise utilizes"
    " utilises please just simply really very quite also actually basically definitely certainly eg ie etc"
)
PREPOSITIONS = _set("to of for in on at with as into onto per")
LIKE_LEADS = frozenset(
    frozenset(pair.split("-")) for pair in _set("in-on in-at on-at in-into to-into on-onto to-onto of-for of-in")
)
WEAK = _set("mode currently presently now")
PERSONS = _table("""
i: i me my mine myself
we: we us our ours ourselves let's lets
you: you your yours yourself
""")
RELATIONS = _table("""
not: not no never none nor neither without avoid avoids avoiding non
before: before
after: after
until: until till
when: when whenever if
unless: unless
because: because since
than: than
from: from
by: by via
over: over
under: under
above: above
below: below
while: while
during: during
against: against
or: or
must: must should ought shall need needs
will: will
may: may might could maybe perhaps possibly
was: was were had did formerly previously
""")
SAME = _table("""
begin: start starts started starting begins beginning begun
delete: remove removes removed removing deletes deleted deleting deletion removal
folder: directory directories folders
configuration: config configs configurations
repository: repo repos repositories
database: db dbs databases
documentation: docs
environment: env envs environments
production: prod
development: dev
application: app apps applications
postgresql: postgres psql pg
kubernetes: k8s
javascript: js
parameter: param params parameters
argument: arg args arguments
maximum: max
minimum: min
information: info
deploy: deployment deployments
require: requirement requirements
every: each
favorite: favourite
color: colour colours colors
behavior: behaviour behaviours behaviors
percent: % percentage
fail: failure failures
large: big
want: wants
""")
UNITS = _table("""
millisecond: ms msec msecs millis millisecond milliseconds
second: s sec secs second seconds
minute: m min mins minute minutes
hour: h hr hrs hour hours
day: d day days
week: w wk wks week weeks
month: mo month months
year: y yr yrs year years
kilobyte: kb kilobyte kilobytes
megabyte: mb megabyte megabytes
gigabyte: gb gigabyte gigabytes
terabyte: tb terabyte terabytes
percent: % percent
dollar: $ usd dollar dollars
euro: € eur euro euros
pound: £ gbp
""")
NUMBERS = _table("""
1: one
2: two
3: three
4: four
5: five
6: six
7: seven
8: eight
9: nine
10: ten
11: eleven
12: twelve
15: fifteen
20: twenty
30: thirty
40: forty
50: fifty
60: sixty
100: hundred
""")
IMPORTANT = _set("important crucial critical essential vital")
CONTRACTIONS = {"won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "will not"}
BARE_NEGATIONS = _set("dont doesnt didnt isnt arent cant wont shouldnt wasnt werent")
UNSTEMMED = _set("news https windows cors")

PHRASES = {
    "instead of": "not",
    "rather than": "not",
    "prior to": "before",
    "as well as": "and",
    "in order to": "to",
    "has to": "must",
    "have to": "must",
    "make sure to": "",
    "make sure that": "",
    "make sure": "",
    "be sure to": "",
    "be sure that": "",
    "do not forget to": "",
    "don't forget to": "",
    "never forget to": "",
    "is going to": "will",
    "are going to": "will",
    "used to": "was",
}
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
LABEL = re.compile(
    r"^\s*(?:[-*•]\s+)?(?:(?:important|note|reminder|remember|tip|decision|gotcha|lesson|lesson learned|learned|fact"
    r"|preference|pattern|fyi|nb|til|warning|caution)\s*:|(?:please\s+)?(?:remember|note|keep in mind|be aware"
    r"|fyi)(?:,|\s+(?:that|to))(?=\s))\s*",
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


@lru_cache(maxsize=20_000)
def stem(word: str, plural: bool = True) -> tuple[str, str, Form]:
    """(root, lemma, form) of a lower-case English word: plural s, -ed and -ing come off, a final e too."""
    if len(word) < 4 or word in UNSTEMMED or not word.isascii():
        return word, word, "base"
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and any(vowel in root for vowel in "aeiouy"):
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
                root = root[:-1]
            return _without_e(root), word, ending
    lemma = _singular(word) if plural else word
    return _without_e(lemma), lemma, "base"


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_e(word: str) -> str:
    if word.endswith("y") and len(word) > 3:
        return word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
