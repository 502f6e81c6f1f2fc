"""Questions without an answer, made from those that have one: each is asked where its answer is not.

Both kinds hold the same questions, so that nothing about the question itself can tell them apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from recollect.evals.datasets import Dataset, Document, Query

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


def swapped(dataset: Dataset, rounds: int = 1) -> list[Query]:
    """Questions that have no answer: those of one conversation asked of the next, with the speakers' names exchanged.

    Only questions that name a speaker are taken: without a name they might as well be about anybody. More rounds ask
    them of further conversations too.
    """
    speakers = _speakers(dataset.documents)
    spaces = [name for name, people in speakers.items() if len(people) >= 2]
    found: list[Query] = []
    for step in range(1, min(rounds, len(spaces) - 1) + 1):
        for place, here in enumerate(spaces):
            there = spaces[(place + step) % len(spaces)]
            names = dict(zip(speakers[here], speakers[there], strict=False))
            pattern = re.compile(r"\b(" + "|".join(re.escape(name) for name in names) + r")\b")
            for one in dataset.queries:
                if one.namespace == here and one.kind == "counted" and pattern.search(one.text):
                    text = pattern.sub(lambda match, names=names: names[match[0]], one.text)
                    id = f"swapped{step if step > 1 else ''}:{one.id}"
                    found.append(replace(one, id=id, text=text, kind="unanswerable", namespace=there, relevant={}))
    return found


def _speakers(documents: Sequence[Document]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for one in documents:
        speaker = one.metadata.get("speaker")
        if one.namespace is not None and isinstance(speaker, str) and speaker:
            found.setdefault(one.namespace, {})[speaker] = None
    return {namespace: list(people) for namespace, people in found.items()}


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
