"""Metadata: a small JSON object, checked before it is stored so that it comes back as it went in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from recollect.domain.errors import InvalidInput

LARGEST_INTEGER = 2**63 - 1


def checked_metadata(value: Any, limit_bytes: int, limit_depth: int) -> dict[str, Any]:
    """A private copy of the object, tuples as lists; InvalidInput when it is no JSON, too large or too deep."""
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata must be an object", 'such as {"path": "docs/db.md"}', "metadata")
    copied = _copied(cast(Any, value), limit_depth)
    size = len(json.dumps(copied, ensure_ascii=False, separators=(",", ":")).encode())
    if size > limit_bytes:
        raise InvalidInput(f"metadata has {size} bytes, more than {limit_bytes}", "keep only what you need", "metadata")
    return cast(dict[str, Any], copied)


def _copied(value: Any, depth_left: int) -> Any:
    """Depth counts nested objects and lists; it is checked on the way down, so no input can exhaust the stack."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _number(value)
    if depth_left == 0:
        raise InvalidInput("metadata is nested too deeply", "flatten it", "metadata")
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value)
        return {_name(name): _copied(item, depth_left - 1) for name, item in items.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, depth_left - 1) for item in cast(list[Any], value)]
    raise InvalidInput(f"metadata holds a {type(value).__name__}", "use text, numbers, lists and objects", "metadata")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"metadata has the name {str(name)[:40]!r}", "names must be text", "metadata")
    return _text(name)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("metadata holds half of a surrogate pair", "send valid Unicode", "metadata") from error
    if "\0" in value:
        raise InvalidInput("metadata holds a NUL character", "remove it", "metadata")
    return value


def _number(value: int | float) -> int | float:
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise InvalidInput("metadata holds a whole number beyond 64 bits", "write it as text", "metadata")
    elif not math.isfinite(value):
        raise InvalidInput("metadata holds a number that is not finite", "leave it out", "metadata")
    return value
