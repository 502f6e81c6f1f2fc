"""Questions without an answer, made from those that have one: each is asked where its answer is not.

Both kinds hold the same questions, so that nothing about the question itself can tell them apart.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from recollect.evals.datasets import Dataset, Query, swapped

ROUNDS = 2
"""How many other places each question is asked of."""


def contrasted(dataset: Dataset) -> list[Query]:
    """The set's counted questions and unanswerable ones, made as the set allows.

    Conversations: asked of two others, the speakers' names exchanged. Haystacks: asked of two other questions'
    haystacks. Anything else: the memories are divided in halves by their hash; a question whose evidence lies in one
    half is asked of both.
    """
    counted = [one for one in dataset.queries if one.kind == "counted"]
    exchanged = swapped(dataset, ROUNDS)
    if exchanged:
        return [*counted, *exchanged]
    if any(one.candidates is not None for one in counted):
        return [*counted, *borrowed(counted), *(one for one in dataset.queries if one.kind == "unanswerable")]
    return halved(dataset, counted)


def borrowed(queries: list[Query]) -> list[Query]:
    """Each question asked of the next haystacks that hold none of its evidence."""
    found: list[Query] = []
    for place, one in enumerate(queries):
        others = (*queries[place + 1 :], *queries[:place])
        without = [other for other in others if other.candidates and not set(one.relevant) & other.candidates]
        for number, other in enumerate(without[:ROUNDS]):
            found.append(
                replace(
                    one, id=f"borrowed{number}:{one.id}", kind="unanswerable", candidates=other.candidates, relevant={}
                )
            )
    return found


def halved(dataset: Dataset, queries: list[Query]) -> list[Query]:
    """Questions whose whole evidence lies in one half: asked of it, and of the other."""
    ids = [one.id for one in dataset.documents]
    first = frozenset(id for id in ids if hashlib.sha256(id.encode()).digest()[0] % 2)
    second = frozenset(ids) - first
    found: list[Query] = []
    for one in queries:
        for here, there in ((first, second), (second, first)):
            if set(one.relevant) <= here:
                found.append(replace(one, candidates=here))
                found.append(replace(one, id=f"elsewhere:{one.id}", kind="unanswerable", candidates=there, relevant={}))
    return found
