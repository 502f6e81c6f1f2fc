"""Full text by looking at every memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recollect.domain.memory import Memory
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Unit, is_flat, units
from recollect.domain.question import Filter
from recollect.domain.subjects import Words, subject
from recollect.domain.trigrams import jaccard, trigrams
from recollect.ports import TEXT_COLUMNS, ScopeCounts, TextMatches
from recollect.stores.memory.contents import Row, Shelf

# How often each unit of a query occurs in the columns of one memory; units without tokens are left out.
Tally: TypeAlias = dict[Unit, list[int]]
NEVER = [0] * len(TEXT_COLUMNS)


@dataclass(frozen=True, slots=True)
class Run:
    """The tokens a unit looks for, one after the other; `open_end` lets the last one go on."""

    tokens: tuple[str, ...]
    open_end: bool

    def count(self, column: list[str]) -> int:
        """How often the run occurs in one column, overlapping occurrences included."""
        *whole, last = self.tokens
        size = len(whole)
        return sum(
            (token.startswith(last) if self.open_end else token == last) and column[start : start + size] == whole
            for start, token in enumerate(column[size:])
        )


class MemoryText:
    """The TextIndex port: every match is a candidate, so none can be missed."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def match(
        self,
        query: Node,
        filter: Filter,
        limit: int,
        weights: Sequence[float] = (1.0, 1.0),  # noqa: ARG002 - nothing is cut off, so nothing is weighed
    ) -> TextMatches:
        with self._shelf.lock:
            rows = list(self._shelf.contents.rows.values())
            runs = [(unit, self._run(unit)) for unit in _all_units(query)]
        tallies: list[Tally] = [
            {unit: [run.count(column) for column in row.columns] for unit, run in runs if run.tokens} for row in rows
        ]
        found = [
            (row, tally)
            for row, tally in zip(rows, tallies)
            if limit > 0 and filter.allows(row.memory) and matches(query, tally)
        ]
        asked = units(query)
        counts = [[tally.get(unit, NEVER) for unit in asked] for _, tally in found]
        frequencies = [sum(any(tally.get(unit, NEVER)) for tally in tallies) for unit in asked]
        inside = [tally for row, tally in zip(rows, tallies) if filter.allows(row.memory)]
        held = [sum(any(tally.get(unit, NEVER)) for tally in inside) for unit in asked]
        return TextMatches(
            ids=tuple(row.memory.id for row, _ in found),
            lengths=np.array([_length(row) for row, _ in found], dtype=np.float64),
            counts=np.array(counts, dtype=np.float64).reshape(len(found), len(asked), len(TEXT_COLUMNS)),
            units=asked,
            frequencies=np.array(frequencies, dtype=np.float64),
            documents=len(rows),
            average_length=sum(map(_length, rows)) / len(rows) if rows else 0.0,
            compiled=written(query),
            scope=ScopeCounts(len(inside), np.array(held, dtype=np.float64)) if limit > 0 and is_flat(query) else None,
        )

    def about(self, names: Sequence[Words], filter: Filter, most: int) -> dict[Words, list[str]]:
        with self._shelf.lock:
            memories = [row.memory for row in self._shelf.contents.rows.values()]
        subjects: dict[Words, list[Memory]] = {}
        for memory in (one for one in memories if one.scope.namespace == filter.namespace):
            subjects.setdefault(subject(memory), []).append(memory)
        known = {name: subjects[name] for name in names if name and 0 < len(subjects.get(name, ())) <= most}
        found = {name: sorted(one.id for one in held if filter.allows(one)) for name, held in known.items()}
        return {name: ids for name, ids in found.items() if ids}

    def tokens(self, text: str) -> list[str]:
        with self._shelf.lock:
            return self._shelf.tokens.terms(text)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        with self._shelf.lock:
            rows = list(self._shelf.contents.rows.values())
        return [sum(any(term in column for column in row.columns) for row in rows) for term in terms]

    def similar(self, word: str, minimum: float, limit: int) -> list[tuple[str, float]]:
        with self._shelf.lock:
            folded = "".join(self._shelf.tokens.words(word))
            vocabulary = {known for row in self._shelf.contents.rows.values() for known in row.words}
        wanted = trigrams(folded)
        likeness = {known: jaccard(wanted, trigrams(known)) for known in vocabulary}
        close = [(known, value) for known, value in likeness.items() if value > 0 and value >= minimum]
        return sorted(close, key=lambda pair: (-pair[1], pair[0]))[: max(limit, 0)]

    def _run(self, unit: Unit) -> Run:
        text = " ".join(unit.words) if isinstance(unit, Phrase) else unit.text
        return Run(tuple(self._shelf.tokens.terms(text)), open_end=isinstance(unit, Prefix))


def matches(node: Node, tally: Tally) -> bool | None:
    """Whether a memory satisfies a query; None where the query has no token and so asks for nothing."""
    if isinstance(node, And | Or):
        asked = [answer for part in node.parts if (answer := matches(part, tally)) is not None]
        combine: Callable[[list[bool]], bool] = all if isinstance(node, And) else any
        return combine(asked) if asked else None
    if isinstance(node, Not):
        kept = matches(node.keep, tally)
        return kept and not matches(node.drop, tally)
    return any(tally[node]) if node in tally else None


def written(node: Node) -> str:
    """The query as FTS5 would write it, for the trace."""
    if isinstance(node, And | Or):
        word = " AND " if isinstance(node, And) else " OR "
        return "(" + word.join(written(part) for part in node.parts) + ")"
    if isinstance(node, Not):
        return f"({written(node.keep)} NOT {written(node.drop)})"
    text = " ".join(node.words) if isinstance(node, Phrase) else node.text
    quoted = '"' + text.replace('"', '""') + '"'
    return quoted + " *" if isinstance(node, Prefix) else quoted


def _all_units(node: Node) -> set[Unit]:
    if isinstance(node, And | Or):
        return {unit for part in node.parts for unit in _all_units(part)}
    if isinstance(node, Not):
        return _all_units(node.keep) | _all_units(node.drop)
    return {node}


def _length(row: Row) -> int:
    return sum(len(column) for column in row.columns)
