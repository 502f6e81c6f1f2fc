"""Reading without trust: lines and JSON documents of bounded size, never an exception but InvalidInput."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TextIO, cast

from recollect.domain.errors import InvalidInput
from recollect.importers.report import Problem
from recollect.writing import as_moment

MAX_LINE_CHARACTERS = 8 * 1024 * 1024
MAX_DOCUMENT_CHARACTERS = 512 * 1024 * 1024


def numbered_lines(stream: TextIO, limit: int = MAX_LINE_CHARACTERS) -> Iterator[tuple[int, str | None]]:
    """(1-based number, line without its end); None in place of a line that is too long, which is read past."""
    number = 0
    while piece := stream.readline(limit + 1):
        number += 1
        if len(piece) > limit and not piece.endswith("\n"):
            while (rest := stream.readline(limit)) and not rest.endswith("\n"):
                pass
            yield number, None
        else:
            yield number, piece.rstrip("\r\n").removeprefix("\ufeff" if number == 1 else "")


def parse_json(text: str) -> Any:
    """One JSON value; InvalidInput for anything else, however deep or odd."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InvalidInput("JSON that is nested too deeply", "this is no file that recollect can read") from error
    except ValueError as error:
        raise InvalidInput(f"no JSON: {str(error)[:100]}", "check that the file is whole") from error


def json_document(stream: TextIO, limit: int = MAX_DOCUMENT_CHARACTERS) -> Any:
    """A whole file as one JSON value."""
    return parse_json(_whole(stream, limit))


def json_entries(stream: TextIO, limit: int = MAX_DOCUMENT_CHARACTERS) -> Iterator[tuple[int, Any]]:
    """(1-based place, entry) of a JSON list, of one object a line, or of a single value; a Problem for a bad line."""
    text = _whole(stream, limit)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > 1 and isinstance(_value(*lines[0]), dict):
        yield from ((number, _value(number, line)) for number, line in lines)
    else:
        document = parse_json(text)
        yield from enumerate(as_list(document) or [document], start=1)


def _whole(stream: TextIO, limit: int) -> str:
    text = stream.read(limit + 1)
    if len(text) > limit:
        raise InvalidInput(f"the file has more than {limit} characters", "split it into several files")
    return text.removeprefix("\ufeff")


def _value(number: int, line: str) -> Any:
    try:
        return parse_json(line)
    except InvalidInput as error:
        return Problem(number, error.message)


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one: readers are tolerant."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a JSON list, else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def as_time(value: Any) -> datetime | None:
    """The moment that a text in ISO 8601 or a number of seconds since 1970 names, else none."""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        return as_moment(value) if isinstance(value, str) else None
    except (InvalidInput, OverflowError, ValueError, OSError):
        return None
