"""What every store tells of the memories that it finds by the gist of a text (`domain/gist.py`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from recollect.domain.changes import Put
from recollect.domain.gist import gist
from recollect.domain.lookup import MOST_ALIKE, Lookup, Wanted
from recollect.domain.memory import EPISODE, same_text


class Text(NamedTuple):
    """What is told of a memory that has the gist."""

    id: str
    type: str
    session: str | None
    content: str


Place: TypeAlias = tuple[str, str | None, str]
"""Namespace, project, and the text as it counts."""


class Finders(NamedTuple):
    """How a store finds: who holds which of these keys; id, type, session and content of what has one of these gists in
    its project, lowest id first, and which of these texts are buried, each behind the place of the question."""

    holders: Callable[[Sequence[str]], Mapping[str, str]]
    texts: Callable[[Sequence[tuple[int, int, str | None]]], Iterable[tuple[int, str, str, str | None, str]]]
    buried: Callable[[Sequence[tuple[int, str]]], Collection[int]]


def answers(wanted: Sequence[Wanted], find: Finders) -> list[Lookup]:
    """What each of the questions is answered; the store is asked for all of them at once."""
    keys = [one.key for one in wanted if one.key is not None]
    holders = find.holders(keys) if keys else dict[str, str]()
    asked = [(place, one.content, one.project) for place, one in enumerate(wanted) if one.content is not None]
    texts: dict[int, list[Text]] = defaultdict(list)
    if asked:
        numbered = [(place, gist(content), project) for place, content, project in asked]
        for place, id, type, session, content in find.texts(numbered):
            texts[place].append(Text(id, type, session, content))
    buried = find.buried([(place, content) for place, content, _ in asked]) if asked else ()
    return [
        Lookup(
            key_id=None if one.key is None else holders.get(one.key),
            content_id=None if one.content is None else text_holder(texts[place], one.content),
            alike=_alike(texts[place], one.session),
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
    facts = [one for one in found if one.type != EPISODE]
    facts.sort(key=lambda one: one.session != session)
    return tuple([one.id for one in facts[:MOST_ALIKE]])


def comes_twice(puts: Sequence[Put], held: Collection[tuple[str, str | None, str]]) -> bool:
    """Whether a text that is to be kept once comes twice, or is in its place already.

    `held` are namespace, project and content of those that share a gist with one of them.
    """
    places = [_place(put.memory.scope.namespace, put.memory.scope.project, put.memory.content) for put in puts]
    there, times = {_place(*one) for one in held}, Counter(places)
    return any(put.once and (place in there or times[place] > 1) for put, place in zip(puts, places))


def _place(namespace: str, project: str | None, content: str) -> Place:
    return namespace, project, same_text(content)
