"""Plain text: every line that says something is a memory; list bullets are not part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from recollect.importers.lines import numbered_lines
from recollect.importers.report import Problem
from recollect.writing import Draft

BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


def sniff(name: str, head: str) -> bool:
    return name.lower().endswith((".txt", ".text")) or (bool(head.strip()) and head.lstrip()[:1] not in "{[<")


def read(stream: TextIO, name: str) -> Iterator[Draft | Problem]:
    for number, line in numbered_lines(stream):
        if line is None:
            yield Problem(number, "the line is too long")
            continue
        text = BULLET.sub("", line).strip()
        if any(character.isalnum() for character in text):
            yield Draft(text, metadata={"file": name, "line": number})
