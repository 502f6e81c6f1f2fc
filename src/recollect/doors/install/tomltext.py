"""A table in somebody's TOML file: added at the end between two marks, taken out with them, the rest left as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

BEGIN = "# >>> recollect: added by `recollect install`, removed by `recollect uninstall`"
END = "# <<< recollect"
_HEADER = re.compile(r"^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(\[[^\r\n]*)", re.MULTILINE)


class Malformed(ValueError):
    """The text is not TOML, or would no longer be."""


def parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise Malformed(f"not valid TOML: {error}") from None


def with_table(text: str, path: Sequence[str], values: Mapping[str, str | list[str]]) -> str:
    """The text with our table at its end; a table of that name that is not ours is left alone."""
    bare = without_table(text)
    if has_table(bare, path):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [BEGIN, f"[{'.'.join(path)}]", *(f"{name} = {_toml(value)}" for name, value in values.items()), END]
    gap = "" if not bare else newline if bare.endswith("\n") else newline * 2
    return _checked(bare + gap + newline.join(lines) + newline, path, values)


def has_table(text: str, path: Sequence[str]) -> bool:
    """Whether anything stands there."""
    return _at(parse(text), path) is not None


def own_table(text: str, path: Sequence[str]) -> dict[str, Any] | None:
    """What our table holds now; None where it is not there."""
    found = _at(parse(text), path) if without_table(text) != text else None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None


def updated(text: str, path: Sequence[str], values: Mapping[str, str | list[str]]) -> str:
    """The text with these values in our table; whatever else stands there stays, to the character."""
    held = own_table(text, path) or {}
    start, end = _marks(text)
    table = text[start:end]
    for name, value in values.items():
        if held.get(name) != value:
            line = f"{name} = {_toml(value)}"
            table = re.sub(rf"(?m)^{name}[ \t]*=[^\r\n]*", lambda _, line=line: line, table, count=1)
    return _checked(text[:start] + table + text[end:], path, {**held, **values})


def _checked(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """The text, if it now says what it shall."""
    try:
        right = _at(parse(text), path) == dict(values)
    except Malformed:
        right = False
    if not right:
        raise Malformed(f"written so that [{'.'.join(path)}] cannot be put into it")
    return text


def without_table(text: str) -> str:
    """The text without our table and the empty line before it.

    Codex keeps a comment that ends the file where it is and puts new tables before it: those behind ours stay.
    """
    start, end = _marks(text)
    if start < 0 or end < 0:
        return text
    theirs = text[_end_of_table(text, start, end) : end]
    end += len(END)
    rest = text[end:]
    rest = theirs + (rest[2:] if rest.startswith("\r\n") else rest.removeprefix("\n"))
    before = text[:start]
    if before.endswith("\n\n") or before.endswith("\n\r\n"):
        before = before[: -2 if before.endswith("\r\n") else -1]
    return before + rest


def _end_of_table(text: str, start: int, end: int) -> int:
    """Between our marks: where the first table begins that is not ours, with the empty lines and comments above it."""
    ours: list[str] = []
    for found in _HEADER.finditer(text, start + len(BEGIN), end):
        try:
            parse(text[start : found.start()])  # within a list over several lines it is no header
            path = _path(parse(found[1]))
        except Malformed:
            continue
        ours = ours or path
        if path[: len(ours)] != ours:
            return found.start()
    return end


def _path(document: Any) -> list[str]:
    """The names in the header of a table."""
    if isinstance(document, list):
        return _path(cast(list[Any], document)[0])
    return [step for name, inner in cast(dict[str, Any], document).items() for step in (name, *_path(inner))]


def _marks(text: str) -> tuple[int, int]:
    """Where our two marks stand, each -1 where it does not."""
    start = _mark(text, BEGIN, 0)
    return start, _mark(text, END, start) if start >= 0 else -1


def _mark(text: str, mark: str, after: int) -> int:
    """A mark is a comment at the start of a line: without it the file says the same. Within a text it is part of that.

    In a file that is no TOML the first one counts.
    """
    for found in re.compile(rf"^{re.escape(mark)}", re.MULTILINE).finditer(text, after):
        try:
            # As texts: one nan is not equal to another.
            is_comment = repr(parse(text)) == repr(parse(text[: found.start()] + text[found.end() :]))
        except Malformed:
            is_comment = True
        if is_comment:
            return found.start()
    return -1


def _at(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = document
    for step in path:
        found = cast(dict[str, Any], found).get(step) if isinstance(found, dict) else None
    return found


def _toml(value: str | list[str]) -> str:
    """JSON's strings are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
