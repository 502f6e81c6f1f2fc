"""A query tree → its canonical text: what the trace shows, and what parses to the same tree again."""

from __future__ import annotations

from recollect.domain.query import And, Node, Not, Or, Phrase, Prefix, Term


def unparse(node: Node | None) -> str:
    """The tree with every operator written out and no bracket that is not needed; "" for no tree."""
    if node is None:
        return ""
    if isinstance(node, Term):
        return node.text
    if isinstance(node, Prefix):
        return f"{node.text}*"
    if isinstance(node, Phrase):
        return f'"{" ".join(node.words)}"'
    if isinstance(node, Not):
        return f"{_bracketed(node.keep, Or, Not)} NOT {_bracketed(node.drop, Or, And, Not)}"
    if isinstance(node, And):
        return " AND ".join(_bracketed(part, Or, Not) for part in node.parts)
    return " OR ".join(unparse(part) for part in node.parts)


def nesting(node: Node) -> int:
    """How deep the brackets of the canonical text go."""
    if isinstance(node, Not):
        return max(
            nesting(node.keep) + isinstance(node.keep, Or | Not),
            nesting(node.drop) + isinstance(node.drop, Or | And | Not),
        )
    if isinstance(node, And):
        return max(nesting(part) + isinstance(part, Or | Not) for part in node.parts)
    if isinstance(node, Or):
        return max(nesting(part) for part in node.parts)
    return 0


def _bracketed(node: Node, *kinds: type) -> str:
    text = unparse(node)
    return f"({text})" if isinstance(node, kinds) else text
