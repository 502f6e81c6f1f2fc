"""How many tokens a text costs in a prompt, and the best piece of it that fits into what is left."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from recollect.domain.ranking import Passage
from recollect.stages.sentences import sentences

Counter = Callable[[str], int]

ELLIPSIS = "…"

_SPACE = re.compile(r"\s+")
# Scripts that are written without spaces, and emoji.
_WIDE = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff"
_RUN = re.compile(
    rf"(?P<space>\s+)|(?P<latin>[A-Za-z\u00c0-\u024f]+)|(?P<digits>\d+)|(?P<wide>[{_WIDE}]+)|(?P<letters>[^\W\d_{_WIDE}]+)"
)


def quarter(text: str) -> int:
    """A quarter of the characters, rounded up, for rounding must never hide a cost."""
    return -(-len(text) // 4)


def estimate(text: str) -> int:
    """Closer to what tokenisers do than a quarter of the characters, with no model at hand.

    A Latin word costs one token, and a quarter more for each letter beyond the sixth; digits one per three; scripts
    without spaces one per character; other letters one per two. Any other sign costs one, which makes code dearer than
    prose. Single spaces are free; longer white space (indentation) costs a quarter for each further character.
    """
    cost = 0.0
    signs = len(text)
    for run in _RUN.finditer(text):
        length = run.end() - run.start()
        signs -= length
        cost += _RUN_COSTS[run.lastgroup or ""](length)
    return math.ceil(cost + signs)


_RUN_COSTS: Mapping[str, Callable[[int], float]] = {
    "space": lambda length: (length - 1) / 4,
    "latin": lambda length: 1 + max(0, length - 6) / 4,
    "digits": lambda length: math.ceil(length / 3),
    "wide": lambda length: length,
    "letters": lambda length: length / 2,
}

COUNTERS: Mapping[str, Counter] = {"quarter": quarter, "estimate": estimate}


def snippet(text: str, budget_tokens: int, counter: Counter = quarter, around: Passage | None = None) -> str:
    """The longest piece of whole sentences that fits the budget, with … where text was left out; "" if nothing fits.

    It starts at the sentence where `around` starts (else at the beginning), goes on as far as it may, and what is left
    of the budget is filled backwards. Where not even one sentence fits, it is cut after a word, then after a character.
    """
    if budget_tokens <= 0 or not text.strip():
        return ""
    if counter(text) <= budget_tokens:
        return text
    pieces = sentences(text)
    origin = min(max(around.start, 0), len(text) - 1) if around else 0
    first = next(place for place, (_, end) in enumerate(pieces) if end > origin)

    def fits(start: int, end: int) -> bool:
        return counter(_marked(text, start, end)) <= budget_tokens

    starts = pieces[first][0]
    reach = _furthest(len(pieces) - first, lambda count: fits(starts, pieces[first + count - 1][1]))
    if reach == 0:
        return _cut_sentence(text, pieces[first], budget_tokens, counter)
    ends = pieces[first + reach - 1][1]
    more = _furthest(first, lambda count: fits(pieces[first - count][0], ends))
    return _marked(text, pieces[first - more][0], ends)


def _cut_sentence(text: str, sentence: tuple[int, int], budget_tokens: int, counter: Counter) -> str:
    """The beginning of one sentence that is too long for the budget by itself."""
    start, end = sentence
    length = _furthest(end - start, lambda count: counter(_marked(text, start, start + count)) <= budget_tokens)
    cut = start + length
    if (
        cut < end
        and (spaces := [space.start() for space in _SPACE.finditer(text, start, cut + 1)])
        and spaces[-1] > start
    ):
        cut = spaces[-1]
    marked = _marked(text, start, cut)
    return marked if counter(marked) <= budget_tokens and marked.strip(ELLIPSIS) else ""


def _marked(text: str, start: int, end: int) -> str:
    """A stretch of the text without the white space around it, with … on the sides where there was more."""
    before = ELLIPSIS if text[:start].strip() else ""
    after = ELLIPSIS if text[end:].strip() else ""
    return f"{before}{text[start:end].strip()}{after}"


def _furthest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest count up to the limit that fits, by halving (more text never costs less); 0 if none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
