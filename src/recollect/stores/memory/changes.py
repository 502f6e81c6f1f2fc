"""What each change does to the contents. A raised error leaves a spoilt draft, which is thrown away."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from recollect.domain.changes import AddLink, Change, DropLink, Erase, Put, SetSetting, Touch
from recollect.domain.gist import gist
from recollect.domain.memory import Link, Memory, same_text, turn_of
from recollect.domain.times import whole_milliseconds
from recollect.stores import refusals
from recollect.stores.gists import Text, text_holder
from recollect.stores.memory.contents import Contents, LinkKey, Row
from recollect.stores.memory.tokens import Tokens, text_columns
from recollect.stores.rows import dump_json


def apply(change: Change, contents: Contents, tokens: Tokens) -> None:
    """Make one change, or raise Conflict, NotFound or InvalidInput."""
    match change:
        case Put():
            _put(change, contents, tokens)
        case Erase():
            _erase(change, contents)
        case Touch():
            _touch(change, contents)
        case AddLink(link):
            _add_link(link, contents)
        case DropLink(link):
            contents.links.pop(_link_key(link), None)
        case SetSetting(name, None):
            contents.settings.pop(name, None)
        case SetSetting(name, value):
            contents.settings[name] = _as_json(value, f"setting {name}")


def key_holder(contents: Contents, namespace: str, key: str) -> str | None:
    """The memory of this namespace that holds this key."""
    for row in contents.rows.values():
        if row.memory.scope.namespace == namespace and row.memory.key == key:
            return row.memory.id
    return None


def texts_alike(contents: Contents, namespace: str, project: str | None, wanted: int) -> list[Text]:
    """What has this gist in this namespace and project, lowest id first."""
    memories = [row.memory for row in contents.rows.values() if row.gist == wanted]
    here = [one for one in memories if (one.scope.namespace, one.scope.project) == (namespace, project)]
    return [Text(one.id, one.type, one.scope.session, one.content) for one in sorted(here, key=lambda one: one.id)]


def _put(change: Put, contents: Contents, tokens: Tokens) -> None:
    replaced = contents.rows.get(change.memory.id)
    held = None if replaced is None else (replaced.memory.scope.namespace, replaced.memory.version)
    refusals.check_version(change, held)
    key = change.memory.key
    if key is not None:
        refusals.check_key(change.memory, key_holder(contents, change.memory.scope.namespace, key))
    _check_text(change, contents, replaced)
    memory = _to_store(change, replaced)
    moved = replaced is not None and turn_of(replaced.memory) != turn_of(memory)
    if replaced is not None and moved:
        contents.renew_followers(replaced.memory)
    if replaced is not None and (memory.content != replaced.memory.content or memory.sensitive or moved):
        contents.drop_vectors(memory.id)
    columns = text_columns(memory)
    contents.rows[memory.id] = Row(
        memory=memory,
        same_text=same_text(memory.content),
        gist=gist(memory.content),
        columns=tuple(tokens.terms(column) for column in columns),
        words=frozenset(word for column in columns for word in tokens.words(column)),
        apart=change.apart if replaced is None else replaced.apart,
    )
    before = None if replaced is None else (replaced.memory.content, replaced.memory.sensitive)
    if moved or before != (memory.content, memory.sensitive):
        contents.renew_followers(memory)


def _check_text(change: Put, contents: Contents, replaced: Row | None) -> None:
    memory, scope = change.memory, change.memory.scope
    if change.once:
        others = texts_alike(contents, scope.namespace, scope.project, gist(memory.content))
        refusals.check_text(text_holder(others, memory.content, not_id=memory.id))
    grave = contents.grave(scope.namespace, memory.content)
    if change.revive:
        contents.graves = replace(contents.graves, hashes=contents.graves.hashes - {grave})
    elif grave in contents.graves.hashes and (replaced is None or replaced.same_text != same_text(memory.content)):
        raise refusals.buried()


def _to_store(change: Put, replaced: Row | None) -> Memory:
    memory = change.memory
    accessed_at, access_count = whole_milliseconds(memory.accessed_at), memory.access_count
    if replaced is not None:
        accessed_at = max(accessed_at, replaced.memory.accessed_at)
        access_count = max(access_count, replaced.memory.access_count)
    return replace(
        memory,
        created_at=whole_milliseconds(memory.created_at),
        updated_at=whole_milliseconds(memory.updated_at),
        accessed_at=accessed_at,
        access_count=access_count,
        metadata=_as_json(dict(memory.metadata), "metadata"),
        version=memory.version if change.expected_version is None else change.expected_version + 1,
    )


def _erase(change: Erase, contents: Contents) -> None:
    row = contents.rows.get(change.id)
    if row is None:
        raise refusals.nothing_to_forget(change.id)
    refusals.check_erased(change, row.memory.version)
    contents.renew_followers(row.memory)
    contents.drop_vectors(change.id)
    del contents.rows[change.id]
    contents.links = {key: link for key, link in contents.links.items() if change.id not in (link.source, link.target)}
    if change.tombstone:
        grave = contents.grave(row.memory.scope.namespace, row.memory.content)
        contents.graves = replace(contents.graves, hashes=contents.graves.hashes | {grave})


def _touch(change: Touch, contents: Contents) -> None:
    accessed_at = whole_milliseconds(change.accessed_at)
    for id in set(change.ids) & contents.rows.keys():
        row = contents.rows[id]
        touched = replace(
            row.memory,
            accessed_at=max(accessed_at, row.memory.accessed_at),
            access_count=row.memory.access_count + change.count,
        )
        contents.rows[id] = replace(row, memory=touched)


def _add_link(link: Link, contents: Contents) -> None:
    ends = [contents.rows.get(id) for id in (link.source, link.target)]
    namespaces = {None if row is None else row.memory.scope.namespace for row in ends}
    if None in namespaces or len(namespaces) > 1:
        raise refusals.loose_link(link)
    contents.links.setdefault(_link_key(link), replace(link, created_at=whole_milliseconds(link.created_at)))


def _link_key(link: Link) -> LinkKey:
    return link.source, link.type, link.target


def _as_json(value: Any, what: str) -> Any:
    """A private copy of a JSON value, as it would come back from a file."""
    return json.loads(dump_json(value, what))
