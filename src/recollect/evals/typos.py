"""Misspelling by rule: what fingers do, at a place that the seed chooses, the same on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from recollect.evals.bench import Case

SHORTEST = 4
ATTEMPTS = 20
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
WORD = re.compile(r"[^\W\d_]+")


def chance(*parts: object) -> Random:
    """A generator that depends on these parts alone, not on the order in which things are made."""
    digest = hashlib.sha256("\0".join(str(part) for part in parts).encode("utf-8", "surrogatepass")).digest()
    return Random(int.from_bytes(digest[:8], "big"))


def misspelt(text: str, seed: int, edits: int = 1, known: Callable[[str], bool] = lambda _word: False) -> str | None:
    """The text with `edits` typing errors, each in another word where there are enough; None if no word is long enough.

    known: words that a misspelling must not turn into, so that it stays one.
    """
    choose = chance("typo", seed, edits, text)
    places = [match for match in WORD.finditer(text) if len(match[0]) >= SHORTEST]
    if not places:
        return None
    chosen = choose.sample(places, min(edits, len(places)))
    pieces = {match.start(): match[0] for match in chosen}
    for number in range(edits):
        start = sorted(pieces)[number % len(pieces)]
        for _ in range(ATTEMPTS):
            wrong = _edited(pieces[start], choose)
            if wrong.lower() != pieces[start].lower() and not known(wrong.lower()):
                pieces[start] = wrong
                break
    result, end = "", 0
    for match in sorted(chosen, key=lambda one: one.start()):
        result += text[end : match.start()] + pieces[match.start()]
        end = match.end()
    result += text[end:]
    return None if result == text else result


def misspelt_case(case: Case, seed: int, edits: int = 1) -> Case:
    """The same question with typing errors; one that has no word to misspell stays as it is."""
    return replace(case, text=misspelt(case.text, seed, edits) or case.text)


def _edited(word: str, choose: Random) -> str:
    """One of: two letters swapped, one left out, one doubled, one replaced by its neighbour on the keyboard.

    The first letter stays: people rarely get it wrong.
    """
    place = choose.randrange(1, len(word))
    rule = choose.choice(("swap", "drop", "double", "neighbour"))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    if rule == "swap" and after:
        return before + after[0] + letter + after[1:]
    if rule == "drop":
        return before + after
    if rule == "double":
        return before + letter * 2 + after
    return before + _neighbour(letter, choose) + after


def _neighbour(letter: str, choose: Random) -> str:
    for row in ROWS:
        place = row.find(letter.lower())
        if place >= 0:
            return choose.choice(row[max(0, place - 1) : place] + row[place + 1 : place + 2])
    return letter
