"""Markdown notes: each section is a memory, with its path of headings and the note's front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from recollect.importers.lines import as_list, as_time, numbered_lines
from recollect.importers.report import Problem
from recollect.writing import Draft

HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
FENCE = re.compile(r"^\s*(```+|~~~+)")
PAIR = re.compile(r"^([A-Za-z][\w -]{0,63}):\s*(.*)$")
ITEM = re.compile(r"^\s*-\s+(.+)$")
TAG = re.compile(r"(?:^|\s)#([^\W\d_][\w/-]{0,63})")
MAX_FRONT_MATTER_LINES = 200


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

    def section(self) -> Iterator[Draft]:
        """What has been gathered; a heading with nothing under it says nothing by itself."""
        body = "\n".join(self.lines).strip()
        self.lines = []
        said = "\n".join(line for line in body.splitlines() if not HEADING.match(line))
        if not said.strip():
            return
        tags = [*_words(self.front.get("tags")), *TAG.findall(said)]
        metadata: dict[str, Any] = {"path": self.name, "headings": [title for _, title in self.headings]}
        extra = {key: value for key, value in self.front.items() if key not in ("tags", "type")}
        if extra:
            metadata["front_matter"] = extra
        yield Draft(
            body,
            type=str(self.front.get("type", "fact")),
            tags=tags[:64],
            created_at=as_time(self.front.get("created")) or as_time(self.front.get("date")),
            metadata=metadata,
        )

    def enter(self, level: int, title: str) -> None:
        self.headings = [(depth, name) for depth, name in self.headings if depth < level]
        self.headings.append((level, title))


def read(stream: TextIO, name: str) -> Iterator[Draft | Problem]:
    lines = numbered_lines(stream)
    note = _Note(name)
    for number, line in lines:
        if line is None:
            yield Problem(number, "the line is too long")
        elif number == 1 and line.strip() == "---":
            note.front = _front_matter(lines)
        elif (mark := FENCE.match(line)) and (not note.fence or line.strip().startswith(note.fence)):
            note.fence = "" if note.fence else mark[1]
            note.lines.append(line)
        elif not note.fence and (heading := HEADING.match(line)):
            yield from note.section()
            note.enter(len(heading[1]), heading[2])
            note.lines.append(line)
        else:
            note.lines.append(line)
    yield from note.section()


def _front_matter(lines: Iterator[tuple[int, str | None]]) -> dict[str, Any]:
    """The simple part of YAML that notes use: `key: value`, `[a, b]` and dashed lists. Nothing is evaluated."""
    values: dict[str, Any] = {}
    last = ""
    for number, line in lines:
        if line is None or line.strip() in ("---", "...") or number > MAX_FRONT_MATTER_LINES:
            break
        if pair := PAIR.match(line):
            last, value = pair[1].strip().lower(), pair[2].strip()
            values[last] = _words(value) if value.startswith("[") else value.strip("\"'")
        elif last and (item := ITEM.match(line)):
            values[last] = [*as_list(values[last]), item[1].strip().strip("\"'")]
    return {key: value for key, value in values.items() if value}


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        parts = re.split(r"[,\s]+", value.strip().strip("[]"))
        return [part.strip("\"'#") for part in parts if part.strip("\"'#")]
    return [str(part).lstrip("#") for part in as_list(value)]
