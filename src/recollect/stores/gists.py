"""What every store tells of the memories that it finds by the gist of a text (`domain/gist.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from recollect.domain.changes import Put
from recollect.domain.lookup import Lookup, Wanted
from recollect.domain.memory import EPISODE, same_text

MOST_ALIKE = 20
"""So many are told of: where there are more, the texts have hardly a word that tells them apart."""

Text: TypeAlias = tuple[str, str, str | None, str]
"""Id, type, session and content of a memory."""
Place: TypeAlias = tuple[str, str | None, str]
"""Namespace, project, and the text as it counts."""


def lookups_of(
    wanted: Sequence[Wanted], keys: Mapping[str, str], texts: Mapping[int, Sequence[Text]], buried: Collection[int]
) -> list[Lookup]:
    """The answers, from who holds which key, and from what is alike and what is buried by the place of the question."""
    return [
        Lookup(
            key_id=None if one.key is None else keys.get(one.key),
            content_id=None if one.content is None else text_holder(texts.get(place, ()), one.content),
            alike=_alike(texts.get(place, ()), one.session),
            buried=place in buried,
        )
        for place, one in enumerate(wanted)
    ]


def text_holder(found: Sequence[Text], content: str, not_id: str | None = None) -> str | None:
    """The first of them, other than `not_id`, that holds the same text."""
    if not found:
        return None
    wanted = same_text(content)
    return next((id for id, _, _, held in found if id != not_id and same_text(held) == wanted), None)


def _alike(found: Iterable[Text], session: str | None) -> tuple[str, ...]:
    """The first of them that are no turns of a conversation, which say no fact. Without a project, only those of the
    same session may become one: they come before all others."""
    facts = [(other != session, id) for id, type, other, _ in found if type != EPISODE]
    return tuple([id for _, id in sorted(facts, key=_is_elsewhere)[:MOST_ALIKE]])


def _is_elsewhere(one: tuple[bool, str]) -> bool:
    return one[0]


def comes_twice(puts: Sequence[Put], held: Collection[tuple[str, str | None, str]]) -> bool:
    """Whether a text that is to be kept once comes twice, or is in its place already.

    `held` are namespace, project and content of those that share a gist with one of them.
    """
    places = [_place(put.memory.scope.namespace, put.memory.scope.project, put.memory.content) for put in puts]
    there, times = {_place(*one) for one in held}, Counter(places)
    return any(put.once and (place in there or times[place] > 1) for put, place in zip(puts, places))


def _place(namespace: str, project: str | None, content: str) -> Place:
    return namespace, project, same_text(content)
