"""From our query tree to an FTS5 expression. Every word is quoted; no operator of a user ever reaches FTS5."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from recollect.domain.errors import InvalidInput
from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Unit, is_flat
from recollect.stores.tokens import Tokenizer, plain

MAX_UNITS = 64
MAX_TERMS = 256
"""Single words of which any may occur; phrases, prefixes and whatever is joined otherwise are bound by MAX_UNITS."""
MAX_RUN = 64
MAX_TOKENS = 1_024
MAX_PREFIXES = 8
MAX_DEPTH = 32
SHORT_PREFIX = 2


@dataclass(frozen=True, slots=True)
class Run:
    """The tokens that a unit looks for, one after the other; with `open_end` the last one may go on."""

    text: str
    tokens: tuple[str, ...]
    open_end: bool

    @property
    def quoted(self) -> str:
        """The unit in FTS5's language. FTS5 cuts it into the same tokens, because it has the same tokenizer."""
        escaped = self.text.replace('"', '""')
        return f'"{escaped}" *' if self.open_end else f'"{escaped}"'

    def open_count(self, column: list[str]) -> int:
        """How often a run with an open end occurs in the tokens of one column."""
        *whole, last = self.tokens
        size = len(whole)
        return sum(
            column[start + size].startswith(last) and column[start : start + size] == whole
            for start in range(len(column) - size)
        )


def unit_text(unit: Unit) -> str:
    """The words of a unit, without what FTS5 cannot carry: NUL would end the query early."""
    text = " ".join(unit.words) if isinstance(unit, Phrase) else unit.text
    return plain(text).replace("\0", " ").encode("utf-8", "replace").decode()


def runs_of(query: Node, tokenizer: Tokenizer) -> dict[Unit, Run]:
    """The run of every unit of a query, bounded: a query is no way to make the index work for minutes."""
    runs: dict[Unit, Run] = {}
    for unit in _all_units(query):
        prefix = isinstance(unit, Prefix)
        text = unit_text(unit)
        runs[unit] = Run(text, tuple(tokenizer.query_tokens(text, prefix)), prefix)
    prefixes = [run for run in runs.values() if run.open_end and run.tokens]
    short = [run for run in prefixes if len(run.tokens) == 1 and len(run.tokens[0]) < SHORT_PREFIX]
    single = [run for run in runs.values() if len(run.tokens) < 2 and not run.open_end] if is_flat(query) else []
    if (
        len(runs) > MAX_TERMS
        or len(runs) - len(single) > MAX_UNITS
        or sum(len(run.tokens) for run in runs.values()) > MAX_TOKENS
    ):
        raise InvalidInput(f"the query has more than {MAX_UNITS} words", "ask with fewer words", "query")
    if any(len(run.tokens) > MAX_RUN for run in runs.values()):
        raise InvalidInput(f"a phrase has more than {MAX_RUN} words", "quote a shorter one", "query")
    if len(prefixes) > MAX_PREFIXES or len(short) > 1:
        raise InvalidInput(
            f"at most {MAX_PREFIXES} prefixes, and one of a single letter", "write the words out", "query"
        )
    return runs


def _all_units(query: Node) -> list[Unit]:
    """Every unit, those that are shut out included; too deep a tree is refused before FTS5's parser sees it."""
    found: dict[Unit, None] = {}
    todo: list[tuple[Node, int]] = [(query, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH or len(todo) > MAX_TERMS:
            raise InvalidInput("the query is nested too deeply or too long", "ask with fewer words", "query")
        if isinstance(node, And | Or):
            todo.extend((part, depth + 1) for part in reversed(node.parts))
        elif isinstance(node, Not):
            todo.extend(((node.drop, depth + 1), (node.keep, depth + 1)))
        else:
            found[node] = None
    return list(found)


def expression(node: Node, runs: dict[Unit, Run], left_out: Collection[Unit] = ()) -> str | None:
    """The query for FTS5; None when it asks for nothing. `left_out` are parts of a top-level Or that only score."""
    if isinstance(node, And | Or):
        parts = [
            compiled for part in node.parts if part not in left_out and (compiled := expression(part, runs)) is not None
        ]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else f"({(' AND ' if isinstance(node, And) else ' OR ').join(parts)})"
    if isinstance(node, Not):
        keep, drop = expression(node.keep, runs, left_out), expression(node.drop, runs)
        return keep if keep is None or drop is None else f"({keep} NOT {drop})"
    return runs[node].quoted if runs[node].tokens else None


def finders(query: Node) -> tuple[Unit, ...]:
    """The units of a top-level Or (also under a Not): the only ones of which some may be left to scoring."""
    node = query.keep if isinstance(query, Not) else query
    if not isinstance(node, Or) or any(isinstance(part, And | Or | Not) for part in node.parts):
        return ()
    return tuple(dict.fromkeys(part for part in node.parts if not isinstance(part, And | Or | Not)))
