"""The MCP reference memory server: a line per entity with observations, a line per relation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from recollect.domain.errors import InvalidInput
from recollect.importers.lines import as_list, as_object, as_text, numbered_lines, parse_json
from recollect.importers.report import Problem
from recollect.writing import Draft


def sniff(_name: str, head: str) -> bool:
    first = head.lstrip().split("\n", 1)[0].replace(" ", "")
    return '"type":"entity"' in first or ('"type":"relation"' in first and '"relationType"' in first)


def read(stream: TextIO, _name: str) -> Iterator[Draft | Problem]:
    for number, line in numbered_lines(stream):
        if line is None:
            yield Problem(number, "the line is too long")
        elif line.strip():
            try:
                yield from _read(as_object(parse_json(line)), number)
            except InvalidInput as error:
                yield Problem(number, error.message)


def _read(record: dict[str, Any], number: int) -> Iterator[Draft | Problem]:
    match record.get("type"):
        case "entity":
            entity, kind = as_text(record.get("name")), as_text(record.get("entityType"))
            for observation in as_list(record.get("observations")):
                if isinstance(observation, str) and entity:
                    metadata = {"entity": entity, "entity_type": kind}
                    yield Draft(f"{entity}: {observation}", tags=[kind] if kind.strip() else [], metadata=metadata)
        case "relation":
            source, relation, target = (as_text(record.get(name)) for name in ("from", "relationType", "to"))
            if source and relation and target:
                metadata = {"from": source, "relation": relation, "to": target}
                yield Draft(f"{source} {relation.replace('_', ' ')} {target}", metadata=metadata)
        case other:
            yield Problem(number, f"unknown type {str(other)[:40]!r}")
