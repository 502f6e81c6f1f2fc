"""A long text cut into overlapping passages that an embedder can take in whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from recollect.stages.sentences import sentences

Count = Callable[[str], int]
Stretch = tuple[int, int]

# A passage is never longer than this many characters per token: some tokenisers count any blob as one unknown word.
MAX_CHARACTERS_PER_TOKEN = 32
MAX_PASSAGES = 4096

# A line that begins a turn in a transcript: who speaks, and a colon.
_SPEAKER = re.compile(
    r"^(?:(?P<person>user|human)|assistant|ai|model|system|tool)[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE
)
MIN_TURNS = 2

MAX_TALK_CHARACTERS = 1_000
"""A longer turn of a person is a text that was pasted, not talk."""
MIN_THOUGHT_CHARACTERS = 40
"""A shorter sentence says too little to stand alone: it stays with the next."""

_LINE = re.compile(r"[^\n]*\n+|[^\n]+")
_WORD = re.compile(r"\S+\s*|\s+")


def split(
    text: str, max_tokens: int, count: Count, overlap: float = 0.15, max_passages: int = MAX_PASSAGES
) -> list[Stretch]:
    """Passages of whole sentences, at most `max_tokens` each, that cover the text from end to end.

    Neighbours share whole sentences worth up to `overlap` of a passage, so that a thought on the border is found in
    one of them. A sentence that is too long is cut at line breaks, then between words, then anywhere. Should there be
    more than `max_passages`, neighbours are joined until there are not: everything is still covered, but an embedder
    will see only the beginning of each.
    """
    max_tokens = max(1, max_tokens)
    if not text:
        return []
    if len(text) <= max_tokens * MAX_CHARACTERS_PER_TOKEN and count(text) <= max_tokens:
        return [(0, len(text))]
    pieces = list(_pieces(text, (0, len(text)), max_tokens, count, 0))
    passages = _pack(text, pieces, max_tokens, count, max_tokens * min(max(overlap, 0.0), 0.5))
    if len(passages) > max_passages:
        group = -(-len(passages) // max_passages)
        passages = [
            (passages[place][0], passages[min(place + group, len(passages)) - 1][1])
            for place in range(0, len(passages), group)
        ]
    return passages


def of_memory(text: str, max_tokens: int, count: Count, max_passages: int = MAX_PASSAGES) -> list[Stretch]:
    """The passages of a memory: a transcript is cut at its turns, any other text is split as it comes.

    A question is near to the turn that answers it, not to the whole conversation. What a person says in one turn is
    often more than one thought ("By the way, …"), so it is cut at its sentences; an assistant's answer is one thought.
    """
    said = turns(text)
    finely = [one for turn in said for one in (thoughts(text, turn.stretch) if turn.by_person else [turn.stretch])]
    for parts in (finely, [turn.stretch for turn in said]):
        cut = [
            (start + first, start + last)
            for start, end in parts
            for first, last in split(text[start:end], max_tokens, count)
        ]
        if 0 < len(cut) <= max_passages:
            return cut
    return split(text, max_tokens, count, max_passages=max_passages)


class Turn(NamedTuple):
    """What one speaker of a transcript said, without the name, and whether it was a person who said it."""

    stretch: Stretch
    by_person: bool


def turns(text: str) -> list[Turn]:
    """The turns of a transcript; nothing for a text that does not begin as one."""
    marks = list(_SPEAKER.finditer(text))
    if len(marks) < MIN_TURNS or text[: marks[0].start()].strip():
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    said = [(mark, mark.end() + len(text[mark.end() : end].rstrip())) for mark, end in zip(marks, ends)]
    return [Turn((mark.end(), end), mark["person"] is not None) for mark, end in said if end > mark.end()]


def thoughts(text: str, turn: Stretch | None = None) -> list[Stretch]:
    """The sentences of what a person said, short ones together with the next; a text too long for talk as it is."""
    start, end = turn or (0, len(text.rstrip()))
    if end - start > MAX_TALK_CHARACTERS:
        return [(start, end)]
    found: list[Stretch] = []
    begun = start
    for _, last in sentences(text[start:end]):
        length = len(text[begun : start + last].rstrip())
        if length >= MIN_THOUGHT_CHARACTERS:
            found.append((begun, begun + length))
            begun = start + last
    if begun < end:
        # A short last sentence has no next one: it stays with the one before.
        found[-1:] = [(found[-1][0] if found else start, end)]
    return found


def _pieces(text: str, stretch: Stretch, max_tokens: int, count: Count, level: int) -> Iterator[Stretch]:
    """The smallest parts a passage is built of: sentences, and parts of those that are too long."""
    start, end = stretch
    short = end - start <= max_tokens * MAX_CHARACTERS_PER_TOKEN
    if level and short and count(text[start:end]) <= max_tokens:
        yield stretch
    elif level == 0:
        for first, last in sentences(text):
            yield from _pieces(text, (first, last), max_tokens, count, 1)
    elif level in (1, 2):
        for part in (_LINE if level == 1 else _WORD).finditer(text, start, end):
            yield from _pieces(text, part.span(), max_tokens, count, level + 1)
    else:
        yield from _slices(text, stretch, max_tokens, count)


def _slices(text: str, stretch: Stretch, max_tokens: int, count: Count) -> Iterator[Stretch]:
    """A run without any place to cut it, in even slices: halved until one fits."""
    place, end = stretch
    size = max_tokens * MAX_CHARACTERS_PER_TOKEN
    while place < end:
        while size > 1 and count(text[place : min(place + size, end)]) > max_tokens:
            size //= 2
        yield place, min(place + size, end)
        place += size


def _pack(text: str, pieces: list[Stretch], max_tokens: int, count: Count, shared_tokens: float) -> list[Stretch]:
    """Pieces put together as long as they fit; the next passage starts a few pieces back, but always gets further."""
    # Many tokenisers add marks to every text: they are paid once per passage, not once per piece.
    marks = count("")
    # And each piece costs something: any number of free ones would be shared with the next passage.
    costs = [max(1, count(text[start:end]) - marks) for start, end in pieces]
    passages: list[Stretch] = []
    first = covered = 0
    while covered < len(pieces):
        last = _last_that_fits(pieces, costs, first, max_tokens)
        # Joined text can cost more than its parts, where a tokeniser sees new words across the borders.
        while last > first and count(text[pieces[first][0] : pieces[last][1]]) > max_tokens:
            last -= 1
        if last < covered:
            # The shared beginning leaves no room for the next piece: go on without it.
            first = covered
            continue
        passages.append((pieces[first][0], pieces[last][1]))
        begun, first, shared = first, last + 1, 0
        covered = first
        while first - 1 > begun and shared + costs[first - 1] <= shared_tokens:
            first -= 1
            shared += costs[first]
    return passages


def _last_that_fits(pieces: list[Stretch], costs: list[int], first: int, max_tokens: int) -> int:
    last, total = first, costs[first]
    furthest = pieces[first][0] + max_tokens * MAX_CHARACTERS_PER_TOKEN
    while last + 1 < len(pieces) and total + costs[last + 1] <= max_tokens and pieces[last + 1][1] <= furthest:
        last += 1
        total += costs[last]
    return last
