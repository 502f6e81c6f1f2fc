"""The query as a tree. The parser builds it, the ladder rewrites it, a text index compiles it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Term:
    """One plain word."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must follow one another."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a word: `deploy*`."""

    text: str


@dataclass(frozen=True, slots=True)
class And:
    """Every part must match."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part must match."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """`keep` without anything that matches `drop`."""

    keep: Node
    drop: Node


Unit: TypeAlias = Term | Phrase | Prefix
Node: TypeAlias = Unit | And | Or | Not


def units(node: Node | None) -> tuple[Unit, ...]:
    """The distinct words, phrases and prefixes that count towards the score, in the order they were written.

    What stands under the `drop` side of a Not takes no part in the score.
    """
    return () if node is None else tuple(dict.fromkeys(_counted(node)))


def _counted(node: Node) -> list[Unit]:
    if isinstance(node, And | Or):
        return [unit for part in node.parts for unit in _counted(part)]
    return _counted(node.keep) if isinstance(node, Not) else [node]


def unwanted(node: Node | None) -> Node | None:
    """What no memory of the answer may match, whoever finds it; None where the query excludes nothing.

    A memory that the query asks for all the same, by another branch of an OR, is wanted.
    """
    if node is None or not (drops := _drops(node)):
        return None
    drop = drops[0] if len(drops) == 1 else Or(drops)
    return drop if isinstance(node, Not) and len(drops) == 1 else Not(drop, node)


def _drops(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Not):
        return (node.drop, *_drops(node.keep))
    return tuple(drop for part in node.parts for drop in _drops(part)) if isinstance(node, And | Or) else ()


def is_flat(node: Node) -> bool:
    """Whether a query asks for any of some units and for nothing else."""
    return not isinstance(node, And | Not) and (not isinstance(node, Or) or all(map(is_unit, node.parts)))


def is_unit(node: Node) -> bool:
    return not isinstance(node, And | Or | Not)
