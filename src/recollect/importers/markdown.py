"""Markdown notes: each section is a memory, with its path of headings and the note's front matter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TextIO

from recollect.importers.lines import as_list, as_time, numbered_lines
from recollect.importers.renewing import named
from recollect.importers.report import Problem
from recollect.writing import Draft

HEADING = re.compile(r"^(#{1,6})\s(.*)$")
FENCE = re.compile(r"^\s*(```+|~~~+)")
PAIR = re.compile(r"^([^\W\d_][\w -]{0,63}):\s*(.*)$")
ITEM = re.compile(r"^\s*-\s+(.+)$")
TAG = re.compile(r"(?:^|\s)#([^\W\d_][\w/-]{0,63})")
MAX_FRONT_MATTER_LINES = 200

Lines = Iterator[tuple[int, str | None]]


def sniff(name: str, _head: str) -> bool:
    return name.lower().endswith((".md", ".markdown", ".mdx"))


@dataclass(slots=True)
class _Note:
    """The section that is being read."""

    name: str
    front: dict[str, Any] = field(default_factory=dict[str, Any])
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    lines: list[str] = field(default_factory=list[str])
    fence: str = ""
    read: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])

    def section(self) -> Iterator[Draft]:
        """What has been gathered; a heading with nothing under it says nothing by itself."""
        body = "\n".join(self.lines).strip()
        self.lines = []
        said = "\n".join(line for line in body.splitlines() if not HEADING.match(line))
        if not said.strip():
            return
        tags = [*_words(self.front.get("tags")), *TAG.findall(said)]
        headings = [title for _, title in self.headings]
        self.read[tuple(headings)] += 1
        metadata: dict[str, Any] = {"path": self.name, "headings": headings}
        kind = _type(self.front.get("type", "fact"))
        told = ("tags", "type") if kind == self.front.get("type") else ("tags",)
        extra = {key: value for key, value in self.front.items() if key not in told}
        if extra:
            metadata["front_matter"] = extra
        yield Draft(
            body,
            type=kind,
            tags=tags[:64],
            key=named(headings, self.read[tuple(headings)]),
            created_at=as_time(self.front.get("created")) or as_time(self.front.get("date")),
            metadata=metadata,
        )

    def enter(self, level: int, title: str) -> None:
        self.headings = [(depth, name) for depth, name in self.headings if depth < level]
        self.headings.append((level, title))


def read(stream: TextIO, name: str) -> Iterator[Draft | Problem]:
    front, lines = _front_matter(numbered_lines(stream))
    note = _Note(name, front)
    for number, line in lines:
        if line is None:
            yield Problem(number, "the line is too long")
        elif (mark := FENCE.match(line)) and (not note.fence or line.strip().startswith(note.fence)):
            note.fence = "" if note.fence else mark[1]
            note.lines.append(line)
        elif not note.fence and (heading := HEADING.match(line)):
            yield from note.section()
            note.enter(len(heading[1]), _title(heading[2]))
            note.lines.append(line)
        else:
            note.lines.append(line)
    yield from note.section()


def _title(text: str) -> str:
    """A heading without the marks that may close it."""
    bare = text.strip()
    return bare.rstrip("#").rstrip() or bare


def _front_matter(lines: Lines) -> tuple[dict[str, Any], Lines]:
    """What stands between two rules at the top, and the lines of the note; where it is none, the note has all lines."""
    taken: list[tuple[int, str | None]] = []
    for number, line in lines:
        taken.append((number, line))
        rule = line is not None and line.strip() in ("---", "...")
        if number == 1 and not rule:
            break
        if number > 1 and rule:
            inner = [text for _, text in taken[1:-1] if text is not None and text.strip() and not text.startswith("#")]
            if not inner or PAIR.match(inner[0]):
                return _pairs(inner), lines
            break
        if line is None or number > MAX_FRONT_MATTER_LINES:
            break
    return {}, chain(taken, lines)


def _pairs(lines: list[str]) -> dict[str, Any]:
    """The simple part of YAML that notes use: `key: value`, `[a, b]` and dashed lists. Nothing is evaluated."""
    values: dict[str, Any] = {}
    last = ""
    for line in lines:
        if pair := PAIR.match(line):
            last, value = pair[1].strip().lower(), pair[2].strip()
            listed = value.startswith("[") and not value.startswith("[[")
            values[last] = _plain(value.strip("[]").split(",")) if listed else value.strip("\"'")
        elif last and (item := ITEM.match(line)):
            values[last] = [*as_list(values[last]), *_plain([item[1]])]
    return {key: value for key, value in values.items() if value}


def _plain(values: list[str]) -> list[str]:
    """Without quotes and what is empty."""
    return [text for value in values if (text := value.strip().strip("\"'").strip())]


def _type(value: Any) -> str:
    """One word, as types are; notes are also of several words, or of the name of another note."""
    words = re.findall(r"[\w.-]+", (" ".join(map(str, as_list(value))) or str(value)).lower())
    return "-".join(words).strip("-._")[:64] or "fact"


def _words(value: Any) -> list[str]:
    """Tags: a list of them, or several in one line."""
    given = re.split(r"[,\s]+", value) if isinstance(value, str) else [str(one) for one in as_list(value)]
    return [tag for one in given if (tag := one.strip("\"'#").strip())]
