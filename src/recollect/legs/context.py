"""Turns of a conversation lean on their neighbours: the words of a turn count, a little, for the turns around it.

tf'(turn) = tf(turn) + Σ weight · min(1, cap / length) · tf(neighbour): an answer is found by the words of the question
it answers. The cap keeps long replies from drowning short turns. Lengths grow alike, by what a full neighbourhood adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recollect.ports import LinkIndex, TextMatches

NEIGHBOUR_TOKENS = 20.0


def in_context(matches: TextMatches, links: LinkIndex, before: Sequence[float], after: Sequence[float]) -> TextMatches:
    """The candidates and their neighbours, each with the counts of its surroundings mixed in.

    A match lends its words to the turns that follow it (it is *before* them) and to those that precede it.
    """
    turns = matches.ids if matches.turns is None else [id for id in matches.ids if id in matches.turns]
    around = links.neighbours(turns, len(after), len(before)) if turns else {}
    if not around:
        return matches
    place = {id: number for number, id in enumerate(matches.ids)}
    newcomers = sorted({id for turns in around.values() for _, id in turns} - set(place))
    place.update((id, len(matches.ids) + number) for number, id in enumerate(newcomers))
    counts = np.zeros((len(place), *matches.counts.shape[1:]))
    counts[: len(matches.ids)] = matches.counts
    for number, id in enumerate(matches.ids):
        lent = min(1.0, NEIGHBOUR_TOKENS / max(matches.lengths[number], 1.0)) * matches.counts[number]
        for offset, other in around.get(id, ()):
            counts[place[other]] += (before[offset - 1] if offset > 0 else after[-offset - 1]) * lent
    added = NEIGHBOUR_TOKENS * (sum(before) + sum(after))
    lengths = np.full(len(place), matches.average_length)
    lengths[: len(matches.ids)] = matches.lengths
    lent_to = np.zeros(len(place), dtype=bool)
    lent_to[[place[id] for id in (*around, *newcomers)]] = True
    return replace(
        matches,
        ids=tuple(place),
        counts=counts,
        lengths=np.where(lent_to, lengths + added, lengths),
        average_length=matches.average_length + added,
    )
