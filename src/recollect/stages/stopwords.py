"""English words that carry no subject. They are dropped from plain questions and never chosen as a strongest term."""

from __future__ import annotations

_ARTICLES_AND_DETERMINERS = "a an the this that these those some any each such"
_CONJUNCTIONS = "and or but nor if because as than then so"
_PREPOSITIONS = "of at by for with about into to from in on onto upon out off over under through during between up down"
_PRONOUNS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers "
    "herself it its itself they them their theirs themselves"
)
_QUESTIONS = "what which who whom whose when where why how"
_AUXILIARIES = (
    "is am are was were be been being do does did doing done have has had having can could will would shall should may "
    "might must ought"
)
_FILLERS = "not no there here just also too very please tell"
_CONTRACTIONS = (
    "i'm i've i'd i'll you're you've you'd you'll he's she's it's we're we've we'd we'll they're they've they'd "
    "they'll that's there's what's where's who's how's when's why's here's let's isn't aren't wasn't weren't don't "
    "doesn't didn't haven't hasn't hadn't can't couldn't won't wouldn't shouldn't mustn't"
)

STOP_WORDS: frozenset[str] = frozenset(
    " ".join(
        (
            _ARTICLES_AND_DETERMINERS,
            _CONJUNCTIONS,
            _PREPOSITIONS,
            _PRONOUNS,
            _QUESTIONS,
            _AUXILIARIES,
            _FILLERS,
            _CONTRACTIONS,
        )
    ).split()
)

QUESTION_WORDS: frozenset[str] = frozenset(_QUESTIONS.split())


def is_stop_word(word: str) -> bool:
    """Whether the word is one of the list, in any case and with either apostrophe."""
    return word.lower().replace("’", "'") in STOP_WORDS


def without_stop_words(words: list[str]) -> list[str]:
    """The words that carry a subject; all of them when none does, for a query must not become empty.

    A stop word in capitals among other writing is a name ("the IT budget", "CAN bus", "US sales") and stays.
    """
    shouted = all(word == word.upper() for word in words)
    kept = [word for word in words if not is_stop_word(word) or (len(word) > 1 and word.isupper() and not shouted)]
    return kept or words
