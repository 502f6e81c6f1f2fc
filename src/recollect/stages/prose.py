"""Prompts: prose that somebody wrote for an agent, often with code or a log pasted into it, and no query.

What is asked for stands at the beginning or at the end of what is pasted, so a long prompt is read from both.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.stages.stopwords import is_stop_word

MEANT = 1_200
"""So many characters are embedded: with more, what is pasted drowns what is asked."""

_GAP = "\n…\n"

_GREETINGS = "hello hi hey hallo moin bye cheers"
_THANKS = "thanks thank thx ty danke dankeschön merci"
_ASSENT = "ok okay yes yep yeah yup sure right exactly correct agreed fine ja jo jap genau passt gut klar einverstanden"
_DISSENT = "nope nah wrong nein nicht doch falsch"
_PRAISE = "good great perfect nice cool awesome excellent amazing brilliant wonderful super toll prima klasse perfekt"
_ONWARDS = "go ahead continue proceed keep going next more again now then try retry weiter los mach nochmal jetzt"
_HALT = "stop wait cancel hm hmm oh ah well stopp halt warte"
_FILLERS = "lets bitte das es so mal und aber"

NODS: frozenset[str] = frozenset(
    " ".join((_GREETINGS, _THANKS, _ASSENT, _DISSENT, _PRAISE, _ONWARDS, _HALT, _FILLERS)).split()
)
"""Words, English and German, that keep a conversation going and are about nothing."""


def ends(text: str, most: int) -> str:
    """The beginning and the end of a text that is longer than this, cut between words where there are any."""
    if len(text) <= most:
        return text
    half = (most - len(_GAP)) // 2
    head, tail = text[:half], text[-half:]
    return head[: _last_space(head)] + _GAP + tail[len(tail) - _last_space(tail[::-1]) :]


def says_nothing(words: Iterable[str]) -> bool:
    """Whether these words (lower-cased) only nod, thank, choose or push on: no memory can matter for them."""
    return all(word in NODS or is_stop_word(word) or (len(word) == 1 and word.isascii()) for word in words)


def _last_space(text: str) -> int:
    """Where the last whole word of a text ends; the end of the text where that would leave less than half."""
    place = next((place for place in range(len(text) - 1, len(text) // 2, -1) if text[place].isspace()), None)
    return len(text) if place is None else place
