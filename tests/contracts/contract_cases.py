"""Short ways to say what the contract suites write and what they expect."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from recollect.domain.changes import Put
from recollect.domain.memory import Memory, Scope, content_hash
from recollect.domain.query import And, Node, Not, Phrase, Prefix, Term
from recollect.domain.question import Filter
from recollect.ports import Embedded, Store, TextMatches

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ALL = Filter()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def note(id: str, content: str | None = None, **fields: Any) -> Memory:
    """A memory; namespace, project and session may be given as if they were its own fields."""
    places = {name: fields.pop(name) for name in ("namespace", "project", "session") if name in fields}
    text = f"the text of {id}" if content is None else content
    return Memory(id=id, content=text, scope=Scope(**places), **fields)


def put(store: Store, *memories: Memory) -> None:
    store.records.write([Put(memory) for memory in memories])


def one(store: Store, id: str) -> Memory:
    (memory,) = store.records.fetch([id])
    return memory


def ids(memories: Sequence[Memory]) -> list[str]:
    return [memory.id for memory in memories]


def embedded(memory: Memory, *rows: Sequence[float], passages: tuple[tuple[int, int], ...] = ()) -> Embedded:
    return Embedded(memory.id, content_hash(memory.content), np.array(rows, dtype=np.float32), passages)


def failed(memory: Memory) -> Embedded:
    return Embedded(memory.id, content_hash(memory.content), None, error="no answer")


def bm25(found: TextMatches, weights: Sequence[float] = (1.0, 1.0)) -> dict[str, float]:
    """The score FTS5 gives, from nothing but what a text index returns."""
    scores: dict[str, float] = {}
    for row, id in enumerate(found.ids):
        norm = 1.2 * (1 - 0.75 + 0.75 * found.lengths[row] / found.average_length)
        scores[id] = 0.0
        for unit, frequency in enumerate(found.frequencies):
            idf = math.log((found.documents - frequency + 0.5) / (frequency + 0.5))
            count = sum(weight * found.counts[row, unit, column] for column, weight in enumerate(weights))
            scores[id] += (idf if idf > 0 else 1e-6) * count * 2.2 / (count + norm)
    return scores


UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")


def parted(text: str) -> str:
    """Letters of scripts without spaces are words of their own, in every store."""
    return "".join(
        f" {sign} " if unicodedata.name(sign, "").startswith(UNSPACED) and sign.isalpha() else sign for sign in text
    )


def fts5(node: Node) -> str:
    """A query of our own in FTS5's language."""
    if isinstance(node, Not):
        return f"({fts5(node.keep)} NOT {fts5(node.drop)})"
    if isinstance(node, Term | Phrase | Prefix):
        text = parted(" ".join(node.words) if isinstance(node, Phrase) else node.text).rstrip()
        return '"' + text.replace('"', '""') + '"' + (" *" if isinstance(node, Prefix) else "")
    return "(" + (" AND " if isinstance(node, And) else " OR ").join(fts5(part) for part in node.parts) + ")"
