"""JSON from elsewhere, read tolerantly: what does not have the expected shape is empty, never an error."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; anything else is an empty one."""
    try:
        return as_object(json.loads(data.decode("utf-8-sig", "replace")))
    except (ValueError, RecursionError):
        return {}


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_text(value: Any) -> str:
    """A text that can be sent on: halves of characters, which JSON can spell but UTF-8 cannot, are replaced."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
