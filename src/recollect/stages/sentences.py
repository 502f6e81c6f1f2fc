"""Where a text may be cut without hurting: at the ends of its sentences and lines."""

from __future__ import annotations

import re

# An end mark with its closing quotes, then white space; a full stop of Chinese or Japanese needs none. A blank line
# always ends a sentence, a line break does unless the next line goes on in lower case (wrapped prose).
# Runs are taken whole and only from their start, so that a megabyte of full stops is read once.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++(?![a-z])|[。！？]++[」』”’）]*+\s*+|\n[^\S\n]*+\n\s*+|\n(?![a-z])\s*+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Za-z]|mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|no|fig|inc|ltd|jr|sr|approx)\.\s+$", re.IGNORECASE
)
_LONGEST_ABBREVIATION = 16


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences as stretches that lie side by side and cover the whole text, white space included."""
    found: list[tuple[int, int]] = []
    start = 0
    for end in _END.finditer(text):
        tail = text[max(start, end.start() - _LONGEST_ABBREVIATION) : end.end()]
        if end.end() < len(text) and not ("\n" not in end.group() and _ABBREVIATION.search(tail)):
            found.append((start, end.end()))
            start = end.end()
    if start < len(text):
        found.append((start, len(text)))
    return found
