"""JSON as text with places: one value is added or taken out, and every other character stays where it is.

Comments and trailing commas are read as well, because some agents allow them in their files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

Path = tuple[str | int, ...]

_PIECE = re.compile(r"\s+|//[^\n]*|/\*.*?\*/|,", re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
DEEPEST = 200


class Malformed(ValueError):
    """The text is not JSON; `line` is where it stops being so."""

    def __init__(self, text: str, place: int) -> None:
        self.line = text.count("\n", 0, place) + 1
        super().__init__(f"not valid JSON at line {self.line}")


@dataclass(slots=True)
class Node:
    """A value and where it stands; `begin` is where its key starts, in an object."""

    start: int
    end: int = 0
    value: Any = None
    begin: int = 0
    children: dict[str | int, Node] = field(default_factory=lambda: cast(dict[str | int, Node], {}))


def parse(text: str) -> Node:
    """The root of a JSON text."""
    begin = 1 if text.startswith("\ufeff") else 0
    place = _skip(text, begin)
    root = _value(text, place, 0)
    if _skip(text, root.end) != len(text):
        raise Malformed(text, root.end)
    return root


def find(root: Node, path: Path) -> Node | None:
    """The value at a path of keys and positions."""
    node: Node | None = root
    for step in path:
        node = node.children.get(step) if node is not None else None
    return node


def appended(text: str, path: Path, key: str | None, value: Any) -> str:
    """The text with a value added at the end of the object (under a key) or the array at a path."""
    parent = find(parse(text), path)
    if parent is None:
        raise KeyError(path)
    newline = "\r\n" if "\r\n" in text else "\n"
    last = list(parent.children.values())[-1] if parent.children else None
    label = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if last is not None and "\n" not in text[parent.start : last.begin]:
        piece = label + json.dumps(value, ensure_ascii=False)
        return f"{text[: last.end]}, {piece}{text[last.end :]}"
    unit = _unit(text)
    outer = _indent(text, parent.start)
    inner = outer + unit if last is None else _indent(text, last.begin)
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{inner}")
    piece = f"\n{inner}{label}{body}".replace("\n", newline)
    closing = parent.end - 1
    place = _end_of_content(text, parent.start + 1 if last is None else last.end, closing)
    rest = text[place:closing]
    if last is None:
        return text[:place] + piece + (rest if "\n" in rest else newline + outer) + text[closing:]
    if _comma(text, last.end) is not None:
        return text[:place] + piece + "," + text[place:]
    return text[: last.end] + "," + text[last.end : place] + piece + text[place:]


def replaced(text: str, path: Path, value: Any) -> str:
    """The text with another value at a path."""
    node = find(parse(text), path)
    if node is None:
        raise KeyError(path)
    outer = _indent(text, node.begin)
    body = json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", f"\n{outer}")
    if "\n" not in text[node.start : node.end] and node.children:
        body = json.dumps(value, ensure_ascii=False)
    return text[: node.start] + body.replace("\n", "\r\n" if "\r\n" in text else "\n") + text[node.end :]


def removed(text: str, path: Path) -> str:
    """The text without the value at a path, without its key and without the comma that it no longer needs."""
    root = parse(text)
    parent, node = find(root, path[:-1]), find(root, path)
    if parent is None or node is None:
        raise KeyError(path)
    siblings = list(parent.children.values())
    place = siblings.index(node)
    before = siblings[place - 1].end if place else parent.start + 1
    start = _end_of_content(text, before, node.begin)
    comma = _comma(text, node.end)
    if comma is not None:
        return text[:start] + text[node.end : comma] + text[comma + 1 :]
    kept = text[:start] + text[node.end :]
    if place == 0:
        inside = text[parent.start + 1 : start] + text[node.end : parent.end - 1]
        return kept if inside.strip() else text[: parent.start + 1] + text[parent.end - 1 :]
    unneeded = _comma(text, before)
    return kept if unneeded is None else kept[:unneeded] + kept[unneeded + 1 :]


def _value(text: str, place: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise Malformed(text, place)
    if text[place : place + 1] in ("{", "["):
        return _container(text, place, depth)
    found = _STRING.match(text, place) or _SCALAR.match(text, place)
    if found is None:
        raise Malformed(text, place)
    try:
        return Node(place, found.end(), json.loads(found[0]), place)
    except ValueError:
        raise Malformed(text, place) from None


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    node = Node(start, begin=start)
    place = _skip(text, start + 1)
    while text[place : place + 1] != closing:
        key, begin = cast(str | int, len(node.children)), place
        if is_object:
            key, place = _key(text, place)
            if key in node.children:
                raise Malformed(text, begin)
        child = _value(text, place, depth + 1)
        child.begin = begin
        node.children[key] = child
        place = _skip(text, child.end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != closing:
            raise Malformed(text, place)
    node.end = place + 1
    values = {key: child.value for key, child in node.children.items()}
    node.value = values if is_object else list(values.values())
    return node


def _key(text: str, place: int) -> tuple[str, int]:
    found = _STRING.match(text, place)
    colon = _skip(text, found.end()) if found else place
    if found is None or text[colon : colon + 1] != ":":
        raise Malformed(text, place)
    try:
        return str(json.loads(found[0])), _skip(text, colon + 1)
    except ValueError:
        raise Malformed(text, place) from None


def _skip(text: str, place: int) -> int:
    """Behind white space and comments."""
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _comma(text: str, place: int) -> int | None:
    """Where the comma behind a value is, if there is one."""
    place = _skip(text, place)
    return place if text[place : place + 1] == "," else None


def _end_of_content(text: str, start: int, stop: int) -> int:
    """Between two places: behind the last comma or comment, or at the start."""
    end = start
    for piece in _pieces(text, start, stop):
        if not text[piece[0] : piece[1]].isspace():
            end = piece[1]
    return end


def _pieces(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """White space, comments and commas, one by one."""
    while start < stop:
        found = _PIECE.match(text, start, stop)
        if found is None:
            return
        # A line comment does not own the line's end.
        end = found.end() - (text[found.end() - 1] == "\r" and found[0].startswith("//"))
        yield start, end
        start = end


def _indent(text: str, place: int) -> str:
    """The white space at the beginning of the line of a place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation, as the file has it."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "
