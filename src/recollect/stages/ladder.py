"""The retry ladder: ever looser readings of a question whose words found nothing. Each rung is a pure function.

Rung: (question, lexicon) -> the query to try, or None when there is nothing to search for. The lexical leg walks the
profile's rungs, stops at the first that finds something, and writes every attempt into the trace. What a rung must
know of the index comes in a Lexicon: `rare_candidates` and `fuzzy_words` say which words the leg should look up.

Whatever a question excludes (`NOT x`, `-x`) stays excluded on every rung.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from recollect.domain.query import And, Node, Not, Or, Phrase, Term, Unit
from recollect.domain.question import Question
from recollect.stages.cleaning import clean
from recollect.stages.lexing import pieces
from recollect.stages.parse import MAX_WORDS, expand, join
from recollect.stages.stopwords import is_stop_word

MIN_STRONG_CHARACTERS = 3
MIN_SIMILARITY = 0.3

# Bounds of the last rung: words looked up, and neighbours taken for each.
MAX_FUZZY_WORDS = 8
MAX_SIMILAR = 8

Similar = Mapping[str, Sequence[tuple[str, float]]]

_NO_FREQUENCIES: Mapping[str, int] = MappingProxyType({})
_NO_SIMILAR: Similar = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What the index knows about the words of one question.

    frequencies: in how many memories a word (lower-cased, as in `rare_candidates`) occurs.
    similar: for a word of `fuzzy_words` the vocabulary's nearest words with their trigram Jaccard.
    """

    frequencies: Mapping[str, int] = field(default_factory=lambda: _NO_FREQUENCIES)
    similar: Similar = field(default_factory=lambda: _NO_SIMILAR)


Rung = Callable[[Question, Lexicon], Node | None]


def initial(question: Question, _lexicon: Lexicon) -> Node | None:
    """The question as it was asked."""
    return question.query


def strongest_term(question: Question, lexicon: Lexicon) -> Node | None:
    """The one word of the question that says most."""
    return _single(question, strongest(question.words, lexicon.frequencies))


def force_refresh(_question: Question, _lexicon: Lexicon) -> Node | None:
    """No search: the place of a cache that is gone, kept so that traces can be compared."""
    return None


def refreshed_sanitised(question: Question, _lexicon: Lexicon) -> Node | None:
    """Any of the plain words: no operators, no punctuation, no stop words, aliases added."""
    return _keep_exclusions(question, join("or", _sanitised_units(question)))


def refreshed_strongest(question: Question, lexicon: Lexicon) -> Node | None:
    """The strongest of the plain words, aliases included."""
    return _single(question, strongest(_sanitised_words(question), lexicon.frequencies))


def trigram_fuzzy(question: Question, lexicon: Lexicon) -> Node | None:
    """Any word of the vocabulary that looks like one of the plain words: typos and other spellings."""
    return _keep_exclusions(question, join("or", [Term(word) for word in similarities(lexicon.similar)]))


RUNGS: Mapping[str, Rung] = {
    "initial": initial,
    "strongest_term": strongest_term,
    "force-refresh": force_refresh,
    "refreshed_sanitised": refreshed_sanitised,
    "refreshed_strongest": refreshed_strongest,
    "trigram_fuzzy": trigram_fuzzy,
}


def strongest(words: Sequence[str], frequencies: Mapping[str, int]) -> str | None:
    """The longest word of three characters or more that is no stop word.

    Ties go to the rarer word in the index, then to the earlier one; a word that the index does not hold could find
    nothing, so it comes behind those it holds.
    """
    strong = _strong(words)

    def key(place: int) -> tuple[int, bool, int, int]:
        frequency = frequencies.get(strong[place], 0)
        return -len(strong[place]), frequency == 0, frequency, place

    return strong[min(range(len(strong)), key=key)] if strong else None


def sanitised(question: Question) -> tuple[str, ...]:
    """The plain words of a question: letters and digits only, lower-cased, distinct, without stop words if any stay."""
    # Lower-casing can part a letter from its accent (Greek U+03AA U+0301): a word is not cut there.
    split = [piece for word in question.words for piece in pieces(clean(word))]
    distinct = list(dict.fromkeys(split))
    return tuple([word for word in distinct if not is_stop_word(word)] or distinct)[:MAX_WORDS]


def rare_candidates(question: Question) -> tuple[str, ...]:
    """The words whose frequencies the strongest rungs want to know: only ties for the longest need any."""
    found: dict[str, None] = {}
    for words in (question.words, _sanitised_words(question)):
        strong = _strong(words)
        longest = max(map(len, strong), default=0)
        found.update(dict.fromkeys(word for word in strong if len(word) == longest))
    return tuple(found)[:MAX_WORDS]


def fuzzy_words(question: Question) -> tuple[str, ...]:
    """The words whose neighbours the last rung wants to know: the longest plain ones, in the order of the question."""
    words = sanitised(question)
    longest = sorted(range(len(words)), key=lambda place: (-len(words[place]), place))[:MAX_FUZZY_WORDS]
    return tuple(words[place] for place in sorted(longest) if len(words[place]) >= MIN_STRONG_CHARACTERS)


def similarities(similar: Similar, minimum: float = MIN_SIMILARITY) -> dict[str, float]:
    """Vocabulary word → its best similarity to any word asked: a memory is worth the best of the words it holds."""
    best: dict[str, float] = {}
    for neighbours in similar.values():
        near = sorted((-score, word) for word, score in neighbours if score >= minimum)[:MAX_SIMILAR]
        for score, word in near:
            best[word] = max(best.get(word, 0.0), -score)
    ordered = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:MAX_WORDS])


def _sanitised_units(question: Question) -> list[Unit]:
    """The plain words and what their aliases add."""
    return [unit for word in sanitised(question) for unit in expand(Term(word), question.aliases)][:MAX_WORDS]


def _sanitised_words(question: Question) -> list[str]:
    """The words of these units one by one."""
    units = _sanitised_units(question)
    return [word for unit in units for word in (unit.words if isinstance(unit, Phrase) else (unit.text,))]


def _strong(words: Sequence[str]) -> list[str]:
    """The words that are long enough to say something and are no stop words."""
    return [word for word in words if len(word) >= MIN_STRONG_CHARACTERS and not is_stop_word(word)]


def _single(question: Question, word: str | None) -> Node | None:
    return None if word is None else _keep_exclusions(question, Term(word))


def _keep_exclusions(question: Question, node: Node | None) -> Node | None:
    """The looser query, still without anything that the question ruled out."""
    drop = join("or", _exclusions(question.query)) if question.query is not None else None
    return node if node is None or drop is None else Not(node, drop)


def _exclusions(node: Node) -> list[Node]:
    if isinstance(node, Not):
        return [*_exclusions(node.keep), node.drop]
    if isinstance(node, And | Or):
        return [drop for part in node.parts for drop in _exclusions(part)]
    return []
