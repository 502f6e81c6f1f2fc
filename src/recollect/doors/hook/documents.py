"""JSON to and from elsewhere, read tolerantly: what does not have the expected shape is empty, never an error.

The module `json` loads regular expressions, which takes as long as the start of Python itself. Its compiled half does
all that is needed here; where a Python has none, `json` does it.
"""

from __future__ import annotations

try:
    from _json import encode_basestring, encode_basestring_ascii, make_scanner
except ImportError:
    from json.encoder import py_encode_basestring as encode_basestring
    from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii

    make_scanner = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = " \t\n\r"


class _Rules:
    """How `json` itself sets up its scanner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan = None if make_scanner is None else make_scanner(_Rules)  # pyright: ignore[reportArgumentType] (any such object)


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; anything else is an empty one."""
    text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").strip(BLANKS)
    try:
        if _scan is None:
            import json

            return as_object(json.loads(text))
        value, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration, SystemError):
        # SystemError: the compiled half raises an error of `json`, and fails to where that was never loaded.
        return {}
    return as_object(value) if end == len(text) else {}


def dumped(value: Any, *, ascii: bool = True) -> str:
    """JSON as `json.dumps` writes it; with `ascii` false, characters stand as they are."""
    return _dumped(value, encode_basestring_ascii if ascii else encode_basestring)


def _dumped(value: Any, quoted: Callable[[str], str]) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        items = as_object(value).items()
        return "{" + ", ".join(f"{quoted(name)}: {_dumped(one, quoted)}" for name, one in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_dumped(one, quoted) for one in as_list(value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float) and value - value == 0:
        return float.__repr__(value)
    raise TypeError(f"{type(value).__name__} is no JSON of ours")


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_text(value: Any) -> str:
    """A text that can be sent on: halves of characters, which JSON can spell but UTF-8 cannot, are replaced.

    Not by "?", as an encoder does: that makes a question of a wish.
    """
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
        return value
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
