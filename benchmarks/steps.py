"""How long a second step takes: personalised PageRank over the links around what was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import each
from recollect.domain.changes import AddLink
from recollect.domain.memory import EPOCH, Link
from recollect.domain.question import Question
from recollect.legs.graph import graph
from recollect.ports import Store

LINKED = 100_000
"""So many memories have links, at most."""
LINKS_EACH = 3
ANCHORS = 10
WRITTEN_AT_ONCE = 5_000


def measure_steps(store: Store, size: int, questions: int) -> dict[str, Any]:
    """The graph leg from ten memories anywhere. Links go to memories near by and, one of three, far away."""
    assert store.links is not None
    links, linked, chance = store.links, min(size, LINKED), np.random.default_rng(1)
    ends = [linked, *[50] * (LINKS_EACH - 1)]
    targets = [
        (source, (source + 1 + int(chance.integers(reach - 1))) % linked)
        for source in range(linked)
        for reach in (min(one, linked) for one in ends)
    ]
    made = sorted({(source, target) for source, target in targets if source != target})
    for start in range(0, len(made), WRITTEN_AT_ONCE):
        some = made[start : start + WRITTEN_AT_ONCE]
        store.records.write([AddLink(Link(_id(source), "see-also", _id(target))) for source, target in some])
    question = Question(text="", now=EPOCH)
    anchors = [[_id(int(one)) for one in chance.integers(linked, size=ANCHORS)] for _ in range(questions)]
    graph(links, question, anchors[0])
    times, found = each(lambda one: graph(links, question, one), anchors)
    return {"links": len(made), "found": int(np.median([len(one.hits) for one in found])), **times.as_dict()}


def _id(number: int) -> str:
    return f"m{number:09d}"
