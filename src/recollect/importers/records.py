"""Memories as JSON that anybody can write: objects with `content` and the fields of a memory, listed or one a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from recollect.domain.errors import InvalidInput
from recollect.domain.memory import Scope
from recollect.importers.lines import as_object, as_text, json_entries, parse_json
from recollect.importers.report import Problem
from recollect.writing import Draft, as_moment

# Named as everywhere else; what is not among them is kept as metadata.
FIELDS = ("type", "tags", "confidence", "importance", "source", "key", "pinned", "sensitive")
PLACES = ("content", "scope", "project", "session", "created_at", "metadata", *FIELDS)


def sniff(_name: str, head: str) -> bool:
    """The first object, as far as it can be told from the beginning of the text."""
    text = head.lstrip()
    if text.startswith("["):
        return text[1:].lstrip().startswith("{") and '"content"' in text and '"role"' not in text
    try:
        return bool(as_text(as_object(parse_json(text.split("\n", 1)[0])).get("content")))
    except InvalidInput:
        return False


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for place, entry in json_entries(stream):
        if isinstance(entry, Problem):
            yield entry
            continue
        try:
            yield _draft(as_object(entry))
        except InvalidInput as error:
            yield Problem(place, error.message)


def _draft(record: dict[str, Any]) -> Draft:
    if "content" not in record:
        raise InvalidInput("an entry without content")
    where = {**as_object(record.get("scope")), **record}
    moment = record.get("created_at")
    metadata = {name: value for name, value in record.items() if name not in PLACES}
    metadata.update(as_object(record.get("metadata")))
    return Draft(
        record["content"],
        scope=Scope(project=where.get("project"), session=where.get("session")),
        created_at=None if moment is None else as_moment(moment, "created_at"),
        metadata=metadata,
        **{name: record[name] for name in FIELDS if record.get(name) is not None},
    )
